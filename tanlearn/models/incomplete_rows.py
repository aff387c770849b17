"""Log joint of incomplete rows under a forest, and its gradient, for parameters that change between calls.

The missing features of a row fall into connected components of the forest. The contribution of a component to the log
joint depends only on the observed values around it: the values of the children of its features, and of the parent of
its topmost feature. A component together with these values is an *event*. Many rows share an event. Events are
therefore found once, and each call marginalizes each event once (sum-product message passing,
``kernels/missing_values.py``). Families without missing values are scored as in complete rows.

Shapes: E events, P pairs of a row and one of its events. The log joint of a row is the sum of its observed families and
of the contributions of its events, which are an array (E, n_classes).

Invariant: missing features without observed descendants belong to no event. They marginalize to one, because the CPTs
are normalized. Networks with two augmenting parents per feature use the `Eliminator` row by row instead, which is also
the reference implementation: bucket elimination, Dechter, Artificial Intelligence 113, 1999.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tanlearn._threads import in_blocks, in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import missing_values as kernels
from tanlearn.kernels.mathematics import exp_all
from tanlearn.models.elimination import Eliminator
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["IncompleteRows", "make_belief_scratch"]

#: Events per task of a thread.
_BLOCK = 512
#: Partial sums of the gradient. Fewer are used if they are large.
_PARTS = 8
#: Numbers that all partial sums may take together.
_CAPACITY = 2**24


class _Events(NamedTuple):
    """Distinct components of missing features with the observed values around them, sorted by pattern."""

    sample: IntArray  # (E,) a row that contains the event
    pattern: IntArray  # (E,) nondecreasing
    first: IntArray  # (n_patterns + 1,) start of each pattern in families
    families: IntArray  # families that each pattern touches, by child, children before parents
    row: IntArray  # (P,) row of each pair
    event: IntArray  # (P,) event of each pair


class IncompleteRows:
    """Log joint of rows with missing values, and its gradient, for one structure.

    A structure with a cycle raises ValueError.
    """

    def __init__(self, structure: Structure, layout: TableLayout, codes: Codes) -> None:
        # codes: (n_features, n_samples). The CPTs of the layout must be normalized.
        self._layout, self._codes = layout, np.ascontiguousarray(codes)
        self._eliminator: Eliminator | None = None
        if not structure.is_acyclic or (structure.parents[:, 1] >= 0).any():
            self._eliminator = Eliminator(structure, layout)  # raises if there is a cycle
            return
        self._samples = np.ascontiguousarray(codes.T)
        n_classes = layout.n_classes
        self._forest = kernels.Forest(
            parent=structure.parent,
            upward=np.ascontiguousarray(structure.order[::-1]),
            n_states=layout.n_states,
            offset=layout.offset[:-1],
            belief=np.append(0, np.cumsum(layout.n_states)) * n_classes,
        )
        self._events = _find_events(codes, structure, layout.n_states)

    @property
    def n_events(self) -> int:
        """Number of events, which is 0 for a structure with two augmenting parents per feature."""
        return 0 if self._eliminator is not None else len(self._events.sample)

    def log_joint(self, cells: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the log joint of all rows, with missing values marginalized.

        The result does not depend on ``n_jobs``. It differs from the result of `Eliminator.log_joint` by at most 1e-12
        of the larger of 1 and the result. With two augmenting parents per feature, a row over the limit of operations
        raises ValueError.

        Shapes: cells: (n_cells,), normalized log probabilities; result: (n_samples, n_classes).
        """
        if self._eliminator is not None:
            samples = np.arange(self._codes.shape[1])
            return self._eliminator.log_joint(self._codes, samples, cells, n_jobs=n_jobs)
        layout, events, missing = self._layout, self._events, missing_code(self._codes.dtype)
        scores = np.empty((self._codes.shape[1], layout.n_classes))
        forest, start = self._forest, np.empty(len(scores), np.intp)
        with_zeros = np.append(cells, np.zeros(layout.n_classes))
        observed = forest.parent, forest.n_states, forest.offset, missing, start
        kernels.score_observed(self._codes, with_zeros, *observed, scores)
        found = np.empty((self.n_events, layout.n_classes))
        probabilities = self._probabilities(cells)

        def score(first: int, last: int) -> None:
            plan = self._samples, events.sample[first:last], events.pattern[first:last], events.first, events.families
            scratch = make_belief_scratch(self._forest, layout.n_classes, probabilities, is_known=True)
            kernels.score_events(self._forest, cells, *plan, missing, scratch, found[first:last])

        in_blocks(score, len(found), _BLOCK, n_jobs)
        kernels.add_events(found, events.row, events.event, scores)
        return scores

    def log_joint_adjoint(self, cells: FloatArray, d_scores: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the gradient with respect to the cells from the gradient of the log joint.

        If ``d_scores`` contains the weight of each row in the column of its class and 0 elsewhere, the result is the
        expected counts. It differs from the result of `Eliminator.log_joint_adjoint` by at most 1e-12 of the sum of the
        absolute terms of a cell.

        Shapes: d_scores: (n_samples, n_classes); result: (n_cells,).
        """
        if self._eliminator is not None:
            samples = np.arange(self._codes.shape[1])
            return self._eliminator.log_joint_adjoint(self._codes, samples, cells, d_scores, n_jobs=n_jobs)
        layout, events, missing = self._layout, self._events, missing_code(self._codes.dtype)
        d_events = np.zeros((self.n_events, layout.n_classes))
        kernels.add_events(d_scores, events.event, events.row, d_events)
        # The partial sums do not depend on the number of threads, so that rounding does not either.
        n_parts = max(1, min(_PARTS, self.n_events // _BLOCK, _CAPACITY // layout.n_cells))
        bounds = np.linspace(0, self.n_events, n_parts + 1).astype(int).tolist()
        d_cells = np.zeros((n_parts, layout.n_cells + layout.n_classes))
        probabilities = self._probabilities(cells)

        def add(part: int) -> None:
            mine = slice(bounds[part], bounds[part + 1])
            plan = self._samples, events.sample[mine], events.pattern[mine], events.first, events.families
            scratch = make_belief_scratch(self._forest, layout.n_classes, probabilities, is_known=True)
            kernels.score_events_adjoint(self._forest, cells, *plan, missing, scratch, d_events[mine], d_cells[part])

        in_threads(add, range(n_parts), n_jobs)
        total: FloatArray = d_cells.sum(axis=0)
        forest, start = self._forest, np.empty(len(d_scores), np.intp)
        observed = forest.parent, forest.n_states, forest.offset, missing, start
        kernels.score_observed_adjoint(self._codes, d_scores, *observed, total)
        return total[: layout.n_cells]

    def _probabilities(self, cells: FloatArray) -> FloatArray:
        """Exponentiate all cells."""
        probabilities = np.empty_like(cells)
        exp_all(cells, probabilities)
        return probabilities


def make_belief_scratch(
    forest: kernels.Forest, n_classes: int, probabilities: FloatArray, *, is_known: bool
) -> kernels.BeliefScratch:
    """Allocate the workspace of one thread.

    ``probabilities`` (n_cells,) contains the exponentials of all cells if ``is_known``. Otherwise it is a buffer, in
    which the kernel computes each CPT when it is first used.
    """
    d, n_beliefs = len(forest.parent), int(forest.belief[-1])
    most = int(forest.n_states.max()) * n_classes
    return kernels.BeliefScratch(
        state=np.empty(d, np.intp),
        families=np.empty(d, np.intp),
        log_belief=np.empty(n_beliefs),
        belief=np.empty(n_beliefs),
        d_belief=np.empty(n_beliefs),
        message=np.empty((d, most)),
        top=np.empty((d, n_classes)),
        total=np.empty((d, n_classes)),
        buffer=np.empty(most),
        is_known=np.full(d, is_known),
        probabilities=probabilities,
    )


def _split_missing(is_missing: AnyArray, structure: Structure) -> tuple[AnyArray, AnyArray]:
    """Return masks of the missing features with and without observed descendants."""
    is_hidden = np.zeros_like(is_missing)
    for i in structure.order[::-1].tolist():
        j = structure.parent[i]
        if j >= 0:
            is_hidden[j] |= is_missing[j] & (is_hidden[i] | ~is_missing[i])
    return is_hidden, is_missing & ~is_hidden


def _find_events(codes: Codes, structure: Structure, n_states: IntArray) -> _Events:
    """Find the distinct events of all rows.

    A component is traversed downward from its topmost feature, at once for all rows with this topmost feature. The
    ``key`` of a row encodes the component and the values around it, so rows with equal keys share an event. The pattern
    of an event is its key without the values. The families to visit depend only on the pattern.
    """
    parent = structure.parent
    is_hidden, is_barren = _split_missing(codes == missing_code(codes.dtype), structure)
    children: list[list[int]] = [[] for _ in parent]
    for i, j in enumerate(parent.tolist()):
        if j >= 0:
            children[j].append(i)
    samples, patterns, families, rows, events = [], [], [], [], []
    n_events = n_patterns = 0
    for top in range(len(parent)):
        is_top = is_hidden[top] & ~is_hidden[parent[top]] if parent[top] >= 0 else is_hidden[top]
        here = np.flatnonzero(is_top)
        if not len(here):
            continue
        key, n_keys = np.zeros(len(here), np.int64), 1
        if parent[top] >= 0:
            key, n_keys = codes[parent[top], here].astype(np.int64), int(n_states[parent[top]])
        # Per visited feature: 0 outside the component, 1 missing and inside it, 2 + code observed next to it.
        shown = []
        waiting = [(top, np.ones(len(here), bool))]
        while waiting:
            i, reaches = waiting.pop()
            is_inside = reaches & is_hidden[i, here]
            view = np.where(reaches, np.where(is_inside, 1, codes[i, here].astype(np.int64) + 2), 0)
            shown.append((i, np.minimum(view, 2).astype(np.uint8)))  # patterns ignore the value itself
            key, n_keys = _refine(key, n_keys, view, int(n_states[i]) + 2)
            for child in children[i]:
                below = is_inside & ~is_barren[child, here]
                if below.any():
                    waiting.append((child, below))
        _, sample, event = np.unique(key, return_index=True, return_inverse=True)
        pattern, n_kinds = np.zeros(len(sample), np.int64), 1
        for _, view in shown:
            pattern, n_kinds = _refine(pattern, n_kinds, view[sample].astype(np.int64), 3)
        _, kind, pattern = np.unique(pattern, return_index=True, return_inverse=True)
        upward = shown[::-1]
        families += [[i for i, view in upward if view[sample[k]] > 0] for k in kind.tolist()]
        order = np.argsort(pattern, kind="stable")  # events of a pattern are adjacent
        place = np.empty(len(order), np.intp)
        place[order] = np.arange(len(order))
        samples.append(here[sample[order]])
        patterns.append(n_patterns + pattern[order])
        rows.append(here)
        events.append(n_events + place[event.ravel()])
        n_events, n_patterns = n_events + len(sample), n_patterns + len(kind)
    nothing = [np.empty(0, np.intp)]
    return _Events(
        sample=np.concatenate(nothing + samples),
        pattern=np.concatenate(nothing + patterns),
        first=np.cumsum([0, *map(len, families)]),
        families=np.concatenate(nothing + [np.array(family) for family in families]),
        row=np.concatenate(nothing + rows),
        event=np.concatenate(nothing + events),
    )


def _refine(key: IntArray, n_keys: int, digit: IntArray, n_digits: int) -> tuple[IntArray, int]:
    """Append a digit to mixed-radix keys, renumbering the keys first where 64 bits would overflow."""
    if n_keys * n_digits > 2**62:
        values, key = np.unique(key, return_inverse=True)
        n_keys = len(values)
    return key.ravel() * n_digits + digit, n_keys * n_digits
