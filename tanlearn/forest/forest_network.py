"""One network of a forest: its random discretization, its parents, and the context tries of its families.

A network merges adjacent codes of ordered features into intervals, draws an order of the features, and gives each
feature the candidates with the largest conditional mutual information I(X; parent | C) as parents. The order, the
candidates and the quantiles depend on the seed only, not on the rows. A network grown without a fold therefore
resembles the network of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.counts.mutual_information import candidate_information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.monotone_contexts import MonotoneFamilies
from tanlearn.kernels.feature_cuts import cut_features, merge_codes
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale
from tanlearn.structures.knowledge import EdgeRules
from tanlearn.structures.monotone_columns import numbers_of_ranked

__all__ = ["Discretization", "DrawSettings", "ForestNetwork", "draw_discretization", "draw_parents", "grow_network"]

#: Largest number of candidate pairs of a network, except that each feature has at least eight candidates.
_MOST_PAIRS = 2**13
#: Up to this number of features, candidates are the first ones of a permutation, which takes quadratic time: a third of
#: the time of a network of 5,000 features. Candidates of more features are drawn without permuting the others.
_MOST_PERMUTED = 2**10
#: Largest number of rows for selecting parents. A larger data set is sampled, because the selection would take a third
#: of the time with 200,000 rows of 50 columns.
_MOST_ROWS = 2**16


@dataclass(frozen=True)
class DrawSettings:
    """Settings for the random choices in a network."""

    n_cuts: tuple[int, int] = (3, 15)  # smallest and largest number of cut points of an ordered feature
    supervised: float = 0.5  # fraction of ordered features whose cut points separate classes, not random
    max_features: float = 0.5  # fraction of the earlier features that are candidate parents of a feature
    min_candidates: int = 4  # smallest number of candidates, unless fewer features are earlier
    max_candidates: int = 32  # largest number of candidates; fewer with over 256 features, down to 8
    # Largest number of parents. On 24 data sets, 3, 4, 6 and 8 had mean log losses of .363, .360, .361 and .361, and
    # errors of 14.95, 15.15, 15.15 and 15.05 %; 3 cannot represent the parity of five values.
    max_parents: int = 4
    rules: EdgeRules | None = field(default=None, compare=False)  # required and allowed edges
    # 1 for each feature with rising log odds of two classes, -1 for falling, 0 for others; the rules forbid their
    # children
    directions: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Discretization:
    """Discretization of the codes by one network.

    Adjacent codes of ordered features are merged into intervals. The encoder's category for missing values keeps its
    own value. Codes that are still missing become one more value if the feature has missing codes in training.
    """

    # (n_codes,) for each feature, the network's code for each code of the encoder and for a missing value
    merged: AnyArray
    start: IntArray  # (n_features + 1,) start of each feature in merged
    n_states: IntArray  # (n_features,) number of values in the network; codes of at least this are missing

    def encode(self, codes: Codes) -> Codes:
        """Convert codes of the forest to codes of the network; shapes: (n_features, n_rows)."""
        out: AnyArray = np.empty(codes.shape, self.merged.dtype)
        merge_codes(codes, self._n_codes, self.start, self.merged, out)
        return out

    @cached_property
    def _n_codes(self) -> IntArray:
        """Number of codes of each feature. Shape: (n_features,)."""
        return np.diff(self.start) - 1


@dataclass(frozen=True, eq=False)
class ForestNetwork:
    """Network of a forest, with any number of parents per feature."""

    cuts: Discretization
    tables: ContextTables

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of encoded rows to ``scores`` in place, see `ContextTables.add_scores`.

        Shapes: codes: (n_features, n_rows); weight, slot: (n_features, n_levels); scores: (n_slots, n_rows, n_classes).
        """
        self.tables.add_scores(self.cuts.encode(codes), weight, slot, scores)


def grow_network(
    data: EncodedData,
    is_ordered: AnyArray,
    has_missing: AnyArray,
    draws: DrawSettings,
    seed: int,
    *,
    smoothing: float,
    min_samples: int,
) -> ForestNetwork:
    """Draw the discretization and the parents of a network, and build its context tries.

    ``is_ordered`` and ``has_missing`` (n_features,) mark features with ordered codes, and features with a value for
    missing codes. The order, the candidates and the quantiles depend on the seed only, not on the rows.
    """
    of_cuts, of_parents = (np.random.default_rng([seed, part]) for part in range(2))
    cuts = draw_discretization(data, is_ordered, has_missing, draws, of_cuts)
    codes = cuts.encode(data.codes)
    parents = draw_parents(codes, cuts.n_states, data, draws, of_parents)
    rows, monotone = (data.y, data.weights, data.n_classes), None
    if draws.directions is not None:
        n_ranked = cuts.merged[cuts.start[:-1] + numbers_of_ranked(data) - 1].astype(np.intp) + 1
        monotone = MonotoneFamilies(np.array(draws.directions), n_ranked)
    how: dict[str, Any] = {"smoothing": smoothing, "min_samples": min_samples, "monotone": monotone}
    tables = ContextTables.grow(codes, cuts.n_states, *rows, parents, **how)
    return ForestNetwork(cuts, tables)


def draw_discretization(
    data: EncodedData, is_ordered: AnyArray, has_missing: AnyArray, draws: DrawSettings, rng: Any
) -> Discretization:
    """Draw the discretization of the ordered features for one network.

    Unordered features keep their codes. ``has_missing`` (n_features,) marks features for which a missing code is a
    value. The random numbers of a feature do not depend on the rows, so that a seed gives similar networks for other
    rows.
    """
    n, d, n_classes = data.n_samples, data.n_features, data.n_classes
    with_category = np.zeros(d, np.bool_) if data.has_missing_category is None else data.has_missing_category
    ranked = data.n_states - with_category  # numbers of values without the category for missing values
    room = np.maximum(ranked - 1, 1)
    fewest, most_cuts = np.minimum(draws.n_cuts[0], room), np.minimum(draws.n_cuts[1], room)
    n_cuts = fewest + (rng.random(d) * (most_cuts - fewest + 1)).astype(np.intp)
    is_supervised = rng.random(d) < draws.supervised
    quantiles = rng.random((d, int(most_cuts.max())))
    drawn = _bootstrap(data.base_weights, rng.random(n))  # class weights do not change cut points
    most, n_intervals, scale = int(data.n_states.max()), int(most_cuts.max()) + 1, unit_scale(float(n))
    units = np.empty(n + 1, np.int64)
    tabulate_xlogx(scale, units)
    scratch = (
        np.empty((most, n_classes), np.int64),
        *np.empty((2, 2, n_classes), np.int64),
        *np.empty((4, n_intervals), np.int64),
        np.empty(most),
        np.empty(most, np.bool_),
    )
    start = np.append(0, np.cumsum(data.n_states + 1))
    merged = np.empty(start[-1], np.uint16)
    rows = data.codes, ranked, data.y, data.base_weights, drawn
    cut_features(*rows, is_ordered, is_supervised, n_cuts, quantiles, scale, units, scratch, start, merged)
    last = start[1:] - 1
    n_states = merged[start[:-1] + ranked - 1].astype(np.intp) + 1
    merged[last[with_category] - 1] = n_states[with_category]
    n_states += with_category
    n_states += has_missing
    dtype = codes_dtype(int(n_states.max()))
    merged = merged.astype(dtype)
    merged[last] = np.where(has_missing, n_states - 1, missing_code(dtype))
    return Discretization(merged, start, n_states)


def _bootstrap(weights: AnyArray, uniform: AnyArray) -> IntArray:
    """Draw a weighted bootstrap sample, and return the number of times that each row is drawn."""
    reached = np.cumsum(weights)
    rows = np.searchsorted(reached, uniform * reached[-1], side="right").clip(0, len(weights) - 1)
    return np.bincount(rows, minlength=len(weights))


def draw_parents(codes: Codes, n_states: IntArray, data: EncodedData, draws: DrawSettings, rng: Any) -> list[IntArray]:
    """Draw an order and candidates, and select the candidates with the largest I(X; parent | C) as parents.

    The parents of a feature are sorted by decreasing information. Features with a single value are never parents. If
    ``rules`` are given, the order respects them, only allowed parents are candidates, and required parents come first.

    Shapes: codes: (n_features, n_samples), of the network; n_states: (n_features,).
    """
    d, rules = len(codes), draws.rules
    order = rng.permutation(d)
    if rules is not None:
        order = rules.ordered(order)
    if draws.directions is not None:  # features without children come last, so that they have the most candidates
        order = order[np.argsort(np.array(draws.directions)[order] != 0, kind="stable")]
    most = min(draws.max_candidates, max(8, _MOST_PAIRS // d))
    candidates = []
    for position in range(d):
        n = min(max(int(np.ceil(position * draws.max_features)), draws.min_candidates), most)
        earlier = order[:position]
        if rules is not None:
            child = order[position]
            earlier = earlier[rules.allowed[child, earlier] & ~rules.required[child, earlier]]
        if d > _MOST_PERMUTED:
            candidates.append(rng.choice(earlier, min(n, len(earlier)), replace=False))
        else:
            candidates.append(rng.permutation(earlier)[:n])
    splits = codes.min(axis=1) < codes.max(axis=1)  # in full truth tables, pairs may have no information
    if data.n_samples > _MOST_ROWS:
        rows = np.sort(rng.integers(data.n_samples, size=_MOST_ROWS))
        codes, data = np.ascontiguousarray(codes[:, rows]), data.take(rows)
    found = candidate_information(codes, n_states, data, order, candidates)
    # All candidates in one sort, by child and decreasing information; ties go to the first candidate.
    sizes = [len(own) for own in candidates]
    number = np.repeat(np.arange(d), sizes)
    best = np.concatenate(candidates)[np.lexsort((-np.concatenate(found), number))]
    is_parent = splits[best]
    best, number = best[is_parent], number[is_parent]
    start = np.searchsorted(number, np.arange(d + 1)).tolist()
    parents: list[IntArray] = [np.empty(0, np.intp)] * d
    for place, child in enumerate(order.tolist()):
        own = best[start[place] : start[place + 1]]
        if rules is not None:
            own = np.append(np.flatnonzero(rules.required[child]), own)
        parents[child] = own[: draws.max_parents]
    return parents
