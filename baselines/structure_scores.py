"""Scores of structures by classification, for searches that exchange one family at a time (wrapper searches).

Greedy, order-based, super-parent and annealing searches (maximum margin 2012, section 4; order-based 2008, section 4)
evaluate thousands of structures that differ from the current one in a single family, with maximum-likelihood
parameters. The log joint of all rows is kept, so evaluating a family costs one gather and one comparison per row and
class.

Log probabilities are rounded to multiples of 2**-32 nats. Their sums are exact in any order of addition, so the scores
after thousands of exchanges are bit-identical to those of a structure built from scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from tanlearn._clock import learning_clock
from tanlearn._memory import check_memory
from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.kernels import structure_scores as kernels
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

from .history import ParentChange

KINDS = {"accuracy": kernels.ACCURACY, "margin": kernels.MARGIN, "conditional-likelihood": kernels.LIKELIHOOD}
_QUANTUM = 2.0**-32
#: Minimum gain: sums of the same real weights in different order differ by less.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Families:
    """CPTs of candidate families of one child, one list entry per validation fold."""

    child: int  # number of the feature
    parents: IntArray  # (n_families, 2) augmenting parents, -1 for none
    layouts: list[TableLayout] = field(default_factory=list)  # one CPT per family
    codes: list[Codes] = field(default_factory=list)  # (n_columns, n_samples) columns of the layout
    # (n_cells,) rounded log probabilities; 0 for the class prior
    cells: list[FloatArray] = field(default_factory=list)
    # (n_states[child], n_classes) bounds on the change of the lead of a class over another one by any of the families
    low: list[FloatArray] = field(default_factory=list)
    high: list[FloatArray] = field(default_factory=list)


@dataclass(eq=False)
class _Part:
    """Rows to score, and the rows from which their CPTs are estimated (the same or other rows).

    If cut points depend on classes, they are fitted to the counted rows of each fold. A feature may then have different
    numbers of values in different folds.
    """

    counted: EncodedData  # rows from which CPTs are estimated
    data: EncodedData  # rows to score
    weights: FloatArray  # (n_samples,) weights of the scored rows
    scores: FloatArray  # (n_samples, n_classes) log joint of the current structure
    current: list[tuple[TableLayout, Codes, FloatArray]]  # layout, codes and CPT of each feature's current family

    def without(self, child: int) -> FloatArray:
        """Return the log joint without the family of ``child``. Shape: (n_samples, n_classes)."""
        layout, codes, cells = self.current[child]
        return self.scores - layout.log_joint(codes, cells)


class StructureScorer:
    """Score of the current structure, and of all structures that differ from it in one family.

    Searches add the number of structures that they score to ``n_evaluations``, because scoring runs in threads.
    """

    def __init__(
        self,
        data: EncodedData,
        *,
        score: str,
        gamma: float,
        validation: float | None,
        smoothing: MaximumLikelihood,
        initial: Structure,
        rng: np.random.Generator,
    ) -> None:
        self.n_evaluations, self._started = 0, learning_clock()
        data.require_complete("A wrapper search")
        data = data.present()
        self._data = data
        self._kind, self._gamma = KINDS[score], np.rint(gamma / _QUANTUM) * _QUANTUM
        # Largest contribution of a row, and the range of leads in which the contribution depends on the lead.
        self._most, self._floor, self._ceiling = {
            "accuracy": (1.0, 0.0, 0.0),
            "margin": (self._gamma, -np.inf, self._gamma),
            "conditional-likelihood": (0.0, -np.inf, kernels.NEGLIGIBLE),
        }[score]
        self._smoothing = smoothing
        self.parents: IntArray = initial.parents.copy()  # (n_features, 2) current structure, -1 for none
        parts = [(data, data)]
        if validation is not None:
            parts = [data.split(rows) for rows in validation_masks(data.y, data.n_classes, validation, rng)]
        none = np.zeros((0, data.n_classes))
        self._parts = [_Part(rest, held, held.weights.astype(np.float64), none, []) for rest, held in parts]
        self._weight = float(sum(part.weights.sum() for part in self._parts))
        for part in self._parts:
            codes, (layout, cells) = part.data.codes, self._fitted(part, self.parents.copy())
            part.scores = layout.log_joint(codes, cells)
            cells[: data.n_classes] = 0.0  # a single family excludes the class prior
            for table in np.arange(data.n_features)[:, np.newaxis]:
                part.current.append((layout.select(table), codes, layout.select_cells(cells, table)))
        self.value = self._mean([part.scores for part in self._parts])  # score of the current structure

    @property
    def by_name(self) -> IntArray:
        """Feature indices in the order of the names.

        Searches try features in this order, and keep the first of several equally good ones.
        """
        return self._data.by_name

    def copy(self) -> StructureScorer:
        """Return an independent copy that shares the rows and folds."""
        duplicate = copy(self)
        duplicate.parents = self.parents.copy()
        duplicate._parts = [replace(part, current=part.current.copy()) for part in self._parts]
        return duplicate

    def score(self, parents: IntArray) -> float:
        """Return the score of any structure, computed from scratch; ``parents``: (n_features, 2), -1 for none, last."""
        scores = []
        for part in self._parts:
            layout, cells = self._fitted(part, parents)
            scores.append(layout.log_joint(part.data.codes, cells))
        return self._mean(scores)

    def families(self, child: int, parents: IntArray) -> Families:
        """Estimate the CPTs of candidate families of a child.

        Shapes: parents: (n_families, 2), -1 for none, last.
        """
        families = Families(child, parents)
        for part in self._parts:
            counted, data, contexts = _join_wide_parents(part, parents)
            layout = TableLayout(np.full(len(parents), child, np.intp), contexts, counted.n_states, counted.n_classes)
            check_memory(
                layout.n_cells,
                8 * (2 + len(self._parts)) * layout.n_cells,
                layout.n_cells / max(len(parents), 1) / self._data.n_samples,
                f"the set of CPTs of {self._data.label(child)} given {len(parents)} candidate sets of parents",
                "Use fewer parents, or merge, discretize or leave out columns with so many values",
            )
            counts = layout.count(counted.codes, counted.y, counted.weights)
            cells = self._cells(layout, counts)
            low, high = (np.empty((layout.n_states[child], layout.n_classes)) for _ in range(2))
            if len(parents) > 1:  # a single family is evaluated on all rows, so its bounds are not needed
                own = counts if data is counted else layout.count(data.codes, data.y, data.weights)
                kernels.bound_leads(cells, own, layout.offset, layout.n_classes, low, high)
            cells[: layout.n_classes] = 0.0  # the log joint that it is added to includes the class prior
            families.layouts.append(layout)
            families.codes.append(data.codes)
            families.cells.append(cells)
            families.low.append(low)
            families.high.append(high)
        return families

    def check_memory(self) -> None:
        """Raise TableMemoryError if the CPTs of all edges, 8 bytes per entry and fold, are too large."""
        states = np.max([part.counted.n_states for part in self._parts], axis=0)
        n_cells = self._data.n_classes * (int(states.sum()) ** 2 - int((states**2).sum()))
        check_memory(
            n_cells,
            8 * len(self._parts) * n_cells,
            n_cells / max(1, len(states) * (len(states) - 1)) / self._data.n_samples,
            f"the set of CPTs of all edges between {len(states)} features of up to {states.max():,} values "
            f"({self._data.widest()})",
            "Search along an ordering (OrderSearch), or merge, discretize or leave out columns with so many values",
        )

    def try_families(self, families: Families, selected: IntArray | None = None) -> FloatArray:
        """Return the scores of the structures with each selected family of the child; by default all families.

        Shapes: selected: (n_selected,), numbers of families; result: (n_selected,).
        """
        tried = np.arange(len(families.parents)) if selected is None else selected
        total, value = np.zeros(len(tried)), np.empty(len(tried))
        bounds = zip(families.low, families.high, strict=True)
        of_parts = zip(self._parts, families.layouts, families.codes, families.cells, bounds, strict=True)
        for part, layout, codes, cells, (low, high) in of_parts:
            y, weights, base = part.data.y, part.weights, part.without(families.child)
            if len(tried) > 1:
                undecided = np.empty(len(y), dtype=np.bool_)
                none = np.zeros(part.data.n_classes)
                settled = kernels.find_undecided(
                    codes[families.child],
                    base,
                    none,
                    y,
                    weights,
                    low,
                    high,
                    self._floor,
                    self._ceiling,
                    undecided,
                )
                total += settled * self._most
                codes, y = np.ascontiguousarray(codes[:, undecided]), y[undecided]
                weights, base = weights[undecided], base[undecided]
            kernels.swap_family(
                codes,
                base,
                y,
                weights,
                cells,
                *layout.arrays(),
                tried,
                missing_code(codes.dtype),
                self._kind,
                self._gamma,
                np.empty(len(y), dtype=np.intp),
                value,
            )
            total += value
        return total / self._weight

    def take(self, families: Families, number: int, value: float) -> None:
        """Make a family part of the current structure, given its score ``value`` from :meth:`try_families`."""
        child, chosen = families.child, np.array([number])
        tables = families.layouts, families.codes, families.cells
        for part, layouts, codes, cells in zip(self._parts, *tables, strict=True):
            layout, table = layouts.select(chosen), layouts.select_cells(cells, chosen)
            part.scores = part.without(child) + layout.log_joint(codes, table)
            part.current[child] = (*_own_columns(layout, codes, part.data), table)
        self.parents[child] = families.parents[number]
        self.value = value

    def changes(self, before: IntArray | None, step: int) -> list[ParentChange]:
        """Return the records of all features with other parents than before (None: naive Bayes).

        Shapes: before: (n_features, 2), -1 for none, last.
        """
        changed = self.parents != (-1 if before is None else before)
        rows = np.flatnonzero(changed.any(axis=1)).tolist()
        return [self.change(i, [j for j in self.parents[i].tolist() if j >= 0], step) for i in rows]

    def change(self, child: int, parents: Sequence[int], step: int) -> ParentChange:
        """Return the record of a change that led to the current structure."""
        seconds = learning_clock() - self._started
        return ParentChange(child, tuple(parents), self.value, step, self.n_evaluations, seconds)

    def _mean(self, log_joints: Sequence[FloatArray]) -> float:
        """Return the score, given the log joint of each fold."""
        none = np.zeros(self._data.n_classes)
        values = (
            kernels.classify(scores, none, part.data.y, part.weights, self._kind, self._gamma)
            for part, scores in zip(self._parts, log_joints, strict=True)
        )
        return float(sum(values)) / self._weight

    def _fitted(self, part: _Part, parents: IntArray) -> tuple[TableLayout, FloatArray]:
        """Return the layout and the rounded CPTs of a structure, estimated from the counted rows of a fold."""
        counted = part.counted
        layout = TableLayout.of_parents(parents, counted.n_states, counted.n_classes)
        return layout, self._cells(layout, layout.count(counted.codes, counted.y, counted.weights))

    def _cells(self, layout: TableLayout, counts: AnyArray) -> FloatArray:
        """Estimate CPTs from counts, and round them to multiples of 2**-32 nats."""
        cells = self._smoothing.from_counts(layout, counts).cells
        np.divide(cells, _QUANTUM, out=cells)
        np.rint(cells, out=cells)
        return np.multiply(cells, _QUANTUM, out=cells)


def _own_columns(layout: TableLayout, codes: Codes, data: EncodedData) -> tuple[TableLayout, Codes]:
    """Return the layout of one family and the codes for it, which are copies if its parents were joined."""
    if len(codes) == data.n_features:
        return layout, codes
    columns = [layout.child[0], layout.parents[0, 0]]
    one = np.array([0]), np.array([[1, -1]])
    return TableLayout(*one, layout.n_states[columns], layout.n_classes), np.ascontiguousarray(codes[columns])


def _join_wide_parents(part: _Part, parents: IntArray) -> tuple[EncodedData, EncodedData, IntArray]:
    """Replace pairs of parents with more joint values than rows by one joined column each.

    The joined column numbers the joint values that occur, so the size of a CPT does not grow with the others. Returns
    the counted rows, the scored rows and the parents, with the joined columns appended to the features.
    """
    counted, data = part.counted, part.data
    has_two = parents[:, 1] >= 0
    if not has_two.any():  # fast path of most searches, which call this thousands of times
        return counted, data, parents
    n_samples = counted.n_samples + (0 if data is counted else data.n_samples)
    wide = np.flatnonzero(has_two & (counted.n_states[parents].prod(axis=1) > n_samples))
    if not len(wide):
        return counted, data, parents
    codes = counted.codes if data is counted else np.concatenate([counted.codes, data.codes], axis=1)
    joined = parents.copy()
    columns: list[IntArray] = []
    n_states: list[int] = []
    for t in wide:
        first, second = parents[t]
        key = codes[first].astype(np.intp) * counted.n_states[second] + codes[second]
        seen, column = np.unique(key, return_inverse=True)
        joined[t] = counted.n_features + len(columns), -1
        columns.append(column)
        n_states.append(len(seen))
    codes = np.concatenate([codes, columns]).astype(np.uint32)
    states = np.append(counted.n_states, n_states)
    wider = replace(counted, codes=np.ascontiguousarray(codes[:, : counted.n_samples]), n_states=states)
    if data is counted:
        return wider, wider, joined
    return wider, replace(data, codes=np.ascontiguousarray(codes[:, counted.n_samples :]), n_states=states), joined


class WrapperSearch(BaseEstimator):
    """Base class of wrapper searches, with their common parameters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [StrOptions(set(KINDS))],
        "gamma": [Interval(Real, 1e-6, 1e6, closed="both")],  # far from the rounding unit and from overflow
        "validation": [
            None,
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
        ],
        "smoothing": [None, MaximumLikelihood],
        "initial": [None, Structure],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    score: str
    gamma: float
    validation: float | None
    smoothing: MaximumLikelihood | None
    n_jobs: int | None
    verbose: int
    structure_: Structure
    score_: float
    history_: list[ParentChange]
    n_evaluations_: int

    def _start(self, data: EncodedData, rng: np.random.Generator, initial: Structure | None = None) -> StructureScorer:
        """Check the parameters, and return the scorer at the initial structure."""
        self._validate_params()
        smoothing = MaximumLikelihood() if self.smoothing is None else self.smoothing
        if smoothing.alpha == 0 and smoothing.epsilon is None:
            raise ValueError(
                "smoothing must keep all probabilities above zero, because otherwise single rows would decide the "
                "structure, got "
                f"{smoothing!r}. Pass MaximumLikelihood(alpha=1), or MaximumLikelihood(alpha=0, epsilon=1e-5)."
            )
        n_features = data.n_features
        if initial is not None:
            if initial.n_features != n_features:
                raise ValueError(
                    f"initial has {initial.n_features} features, but the data have {n_features}. Pass a structure "
                    f"that was learned from these columns, or None."
                )
            if not initial.is_acyclic or (initial.parents[:, 1] >= 0).any():
                raise ValueError(
                    f"initial must be a forest, with at most one augmenting parent per feature, got {initial}. "
                    f"Pass the structure_ of another search over forests, or None."
                )
        return StructureScorer(
            data,
            score=self.score,
            gamma=self.gamma,
            validation=self.validation,
            smoothing=smoothing,
            initial=Structure.naive_bayes(n_features) if initial is None else initial,
            rng=rng,
        )

    def _keep(self, scorer: StructureScorer) -> None:
        """Store the current structure and score, so that an interrupted search keeps them."""
        self.structure_ = Structure(scorer.parents)
        self.score_ = scorer.value

    def _report(self, event: str, scorer: StructureScorer) -> None:
        """Print a line of progress if ``verbose`` is set."""
        if self.verbose:
            print(f"{type(self).__name__}: {event}; {self.score} {scorer.value:.6g}", flush=True)  # noqa: T201


def try_many(
    scorer: StructureScorer, tasks: Sequence[tuple[Families, IntArray]], n_jobs: int | None
) -> list[FloatArray]:
    """Evaluate families of many children in threads; the result does not depend on ``n_jobs``.

    Each task is a set of families with the numbers of the families to evaluate; the result has the scores of each task.
    """
    scorer.n_evaluations += sum(len(selected) for _, selected in tasks)
    return in_threads(lambda task: scorer.try_families(*task), tasks, n_jobs)


def first_best(values: Any) -> int:
    """Return the position of the first value within ``ROUNDING`` of the maximum."""
    scores = np.asarray(values)
    return int((scores >= scores.max() - ROUNDING).argmax())


def single_parents(child: int, features: IntArray) -> IntArray:
    """Return the families (n_features - 1, 2) of a child with one augmenting parent, in the given order."""
    others = features[features != child]
    return np.stack([others, np.full(len(others), -1)], axis=1)
