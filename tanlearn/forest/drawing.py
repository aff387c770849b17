"""Random members of a forest: how they cut features, and who depends on whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.feature_cuts import cut_features, merge_codes
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale
from tanlearn.kernels.pair_information import listed_information
from tanlearn.network.pair_information import visited_information

__all__ = ["Cuts", "Grain", "draw_cuts", "draw_parents"]

#: Cells of a table of two features above which it is not made, if rows are not as many: 8 MiB.
_LARGE = 2**20
#: Pairs of features that a member looks at, but for eight candidates of each.
_MOST_PAIRS = 2**13
#: Rows that parents are chosen by: of more, some are drawn. Of 200,000 rows of 50 columns, which parents a feature gets
#: takes a third of the time otherwise.
_MOST_ROWS = 2**16
#: Numbers whose x log x is looked up.
_TABULATED = 2**20


@dataclass(frozen=True)
class Grain:
    """What is drawn of a member."""

    n_cuts: tuple[int, int] = (3, 15)  # Fewest and most cuts of an ordered feature
    # Share of the ordered features that are cut where that tells classes apart; the others anywhere
    supervised: float = 0.5
    max_features: float = 0.5  # Share of the earlier features that may be parents of one
    min_candidates: int = 4  # Fewest of them, if so many are earlier
    max_candidates: int = 32  # Most of them; of over 256 features fewer, to 8
    # Most parents. On 24 tables, 3, 4, 6 and 8 had mean log losses of .363, .360, .361 and .361, and errors of 14.95,
    # 15.15, 15.15 and 15.05 %; 3 cannot tell the parity of five values.
    max_parents: int = 4


@dataclass(frozen=True, eq=False)
class Cuts:
    """How a member sees codes: ordered ones merged into fewer, and missing ones as a value where training has gaps."""

    # (n_codes,): The member's code of every code of a feature, and behind them of a missing one, feature after
    # feature
    merged: AnyArray
    start: IntArray  # (n_features + 1,): Where those of every feature begin
    n_states: IntArray  # (n_features,): Number of the member's values. Its codes from there on are missing.

    def encode(self, codes: Codes) -> Codes:
        """Return the member's codes.

        Shapes: codes: (n_features, n_rows); result: (n_features, n_rows).
        """
        out: AnyArray = np.empty(codes.shape, self.merged.dtype)
        merge_codes(codes, np.diff(self.start) - 1, self.start, self.merged, out)
        return out


def draw_cuts(data: EncodedData, is_ordered: AnyArray, has_gaps: AnyArray, grain: Grain, rng: Any) -> Cuts:
    """Draw how a member cuts the features that have an order.

    Shapes: is_ordered: (n_features,); has_gaps: (n_features,).
    """
    n, d, n_classes = data.n_samples, data.n_features, data.n_classes
    room = np.maximum(data.n_states - 1, 1)
    fewest, most_cuts = np.minimum(grain.n_cuts[0], room), np.minimum(grain.n_cuts[1], room)
    n_cuts = fewest + (rng.random(d) * (most_cuts - fewest + 1)).astype(np.intp)
    is_supervised = rng.random(d) < grain.supervised
    quantiles = rng.random((d, int(most_cuts.max())))
    drawn = _bootstrap(data.base_weights, rng.random(n))  # class weights do not change cut points
    most, n_intervals, scale = int(data.n_states.max()), int(most_cuts.max()) + 1, unit_scale(float(n))
    units = np.empty(n + 1, np.int64)
    tabulate_xlogx(scale, units)
    scratch = (
        np.empty((most, n_classes), np.int64),
        *np.empty((2, n_classes), np.int64),
        *np.empty((4, n_intervals), np.int64),
        np.empty(most),
        np.empty(most, np.bool_),
    )
    start = np.append(0, np.cumsum(data.n_states + 1))
    merged = np.empty(start[-1], np.uint16)
    rows = data.codes, data.n_states, data.y, data.base_weights, drawn
    cut_features(*rows, is_ordered, is_supervised, n_cuts, quantiles, scale, units, scratch, start, merged)
    last = start[1:] - 1
    n_states = merged[last - 1].astype(np.intp) + 1 + has_gaps
    dtype = codes_dtype(int(n_states.max()))
    merged = merged.astype(dtype)
    merged[last] = np.where(has_gaps, n_states - 1, missing_code(dtype))
    return Cuts(merged, start, n_states)


def _bootstrap(weights: AnyArray, uniform: AnyArray) -> IntArray:
    """Return how often every row is drawn, with replacement, in proportion to its weight."""
    reached = np.cumsum(weights)
    rows = np.searchsorted(reached, uniform * reached[-1], side="right").clip(0, len(weights) - 1)
    return np.bincount(rows, minlength=len(weights))


def draw_parents(codes: Codes, n_states: IntArray, data: EncodedData, grain: Grain, rng: Any) -> list[IntArray]:
    """Draw an order and candidates, and take those that say most, given the class.

    Shapes: codes: (n_features, n_samples); n_states: (n_features,).
    """
    d = len(codes)
    order = rng.permutation(d)
    most = min(grain.max_candidates, max(8, _MOST_PAIRS // d))
    candidates = []
    for position in range(d):
        n = min(max(int(np.ceil(position * grain.max_features)), grain.min_candidates), most)
        candidates.append(rng.permutation(order[:position])[:n])
    splits = codes.min(axis=1) < codes.max(axis=1)  # and not information: in whole truth tables, pairs may have none
    if data.n_samples > _MOST_ROWS:
        rows = np.sort(rng.integers(data.n_samples, size=_MOST_ROWS))
        codes, data = np.ascontiguousarray(codes[:, rows]), data.take(rows)
    found = _information(codes, n_states, data, order, candidates)
    parents: list[IntArray] = [np.empty(0, np.intp)] * d
    for child, others, own in zip(order.tolist(), candidates, found, strict=True):
        best = others[np.argsort(-own, kind="stable")]
        parents[child] = best[splits[best]][: grain.max_parents]
    return parents


def _information(
    codes: Codes, n_states: IntArray, data: EncodedData, features: IntArray, others: list[IntArray]
) -> list[FloatArray]:
    """Return I(X; Z | C) of every feature and its candidates, from tables, or value by value where these are large."""
    n_classes, weights = data.n_classes, data.weights
    most = np.array([n_states[own].max(initial=0) for own in others])
    cells = n_states[features] * most * n_classes
    is_large = cells > max(_LARGE, 8 * data.n_samples)
    listed = np.flatnonzero(~is_large)
    start = np.append(0, np.cumsum([len(others[i]) for i in listed]))
    scale = unit_scale(float(weights.sum()))
    units = np.empty(min(int(weights.sum()) + 1, _TABULATED) if weights.dtype.kind == "i" else 0, np.int64)
    tabulate_xlogx(scale, units)
    counts = np.zeros(int(cells[listed].max(initial=0)), weights.dtype)
    margins = np.empty((2 * int(n_states.max()) + 1) * n_classes, weights.dtype)
    information = np.empty(start[-1])
    pairs = features[listed], np.concatenate([np.empty(0, np.intp), *(others[i] for i in listed)]), start
    listed_information(codes, n_states, data.y, weights, *pairs, n_classes, scale, units, counts, margins, information)
    found: list[FloatArray] = [np.empty(0)] * len(features)
    for place, i in enumerate(listed.tolist()):
        found[i] = information[start[place] : start[place + 1]]
    for i in np.flatnonzero(is_large).tolist():
        found[i] = visited_information(codes, n_states, data.y, weights, n_classes, features[i], others[i])
    return found
