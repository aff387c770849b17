"""Exact marginalization, its gradient, most probable completions and posterior samples for any acyclic structure.

The families of a row are factors over its missing features. The features are eliminated one after another: the factors
that contain the feature are multiplied and summed over its values, which leaves a factor over the other features
(bucket elimination, Dechter, Artificial Intelligence 113, 1999). All factors are in logarithms. The kernels are in
``kernels/elimination.py`` and ``kernels/completions.py``.

The set of missing features determines which of three methods is used for a row:

1. Most rows are eliminated in one order, which depends only on the structure.
2. If this order takes too much time or memory, a separate order is computed for the row, which is split into slices if
   necessary (``elimination_plans.py``, ``slices.py``).
3. If every plan exceeds the limit of operations (``marginalization_limits.py``), the row raises an error or is
   approximated.

Invariant: results of the first two ways are exact and do not depend on other rows or on the number of threads.

Shapes: codes (n_features, n_all), ``samples`` the columns to process, cells (n_cells,) log probabilities, scores
(n_samples, n_classes). A factor with r combinations of values takes r * n_classes numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import in_blocks, in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import completions
from tanlearn.kernels import elimination as kernels
from tanlearn.models.elimination_plans import EliminationPlan, Graph, elimination_steps, greedy_order, plan_elimination
from tanlearn.models.marginalization_limits import RAISE_LIMIT, name_others, warn_of_approximations
from tanlearn.models.marginalization_limits import most_operations as read_limit
from tanlearn.models.slices import blocks_of_slices, expand_slices, log_sum, posterior
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["Eliminator"]

#: Numbers that the factors of a row may take, 64 MB per thread.
_CAPACITY = 2**22
#: Maximum number of features of a factor in the order of the structure. With two values each, they would take 2**22
#: numbers.
_MAX_WIDTH = 22
#: Number of operations above which a row gets a separate plan: 10 ms, about the time of planning.
_CHEAP = 2**18
#: Rows per task of a thread.
_BLOCK = 128
#: Partial sums of the gradient. Fewer are used if they are large.
_PARTS = 8


class _Rows(NamedTuple):
    """Positions in ``samples``, grouped by the method of elimination."""

    direct: IntArray  # eliminated in the order of the structure
    planned: list[tuple[int, EliminationPlan]]  # position and plan of each row with a plan of its own
    refused: IntArray  # every plan exceeds the limit of operations


class Eliminator:
    """Marginalization and completion of rows with missing values by variable elimination.

    With one augmenting parent per feature, a missing feature costs O(n_states^2) operations. With two or more, the cost
    depends on the largest factor. A structure with a cycle raises ValueError. In every method, ``samples`` selects
    columns of ``codes``, and the result does not depend on ``n_jobs``.
    """

    def __init__(
        self,
        structure: Structure,
        layout: TableLayout,
        *,
        is_normalized: bool = True,
        capacity: int | None = None,
        most_operations: float | None = None,
    ) -> None:
        if not structure.is_acyclic:
            raise ValueError(
                "missing values cannot be marginalized in a structure with a cycle, because such a structure is not a "
                "Bayesian network. Impute the missing values, or use a structure that is a tree."
            )
        self._layout = layout
        # If every distribution sums to one, missing features without observed descendants are left out.
        self._is_normalized = is_normalized
        self._limit = read_limit() if most_operations is None else most_operations
        self._most = _CAPACITY if capacity is None else capacity
        # capacity: numbers that the factors of a row may take; rows that need more are split into slices.
        order, self._max_width, self._capacity, self._is_small = _plan(structure, layout, self._most, self._limit)
        self._reserve = _reserve(structure, layout)
        self._network = kernels.Network(
            parents=structure.parents,
            n_states=layout.n_states,
            offset=layout.offset,
            order=order,
            rank=np.argsort(order),
            downward=structure.order,
            belief=np.append(0, np.cumsum(layout.n_states)) * layout.n_classes,
        )
        self._states: list[int] = layout.n_states.tolist()
        self._families = [(i, *(j for j in row if j >= 0)) for i, row in enumerate(structure.parents.tolist())]
        self._plans: dict[tuple[bytes, bool], EliminationPlan | None] = {}

    def log_joint(
        self,
        codes: Codes,
        samples: IntArray,
        cells: FloatArray,
        *,
        is_exact: bool = True,
        n_jobs: int | None = None,
        inexact: list[int] | None = None,
    ) -> FloatArray:
        """Compute the log joint of the selected rows.

        Rows over the limit of operations raise ValueError if ``is_exact``. Otherwise, they are approximated, similar to
        mini-bucket elimination: if the product of the factors of a missing feature would be too large, each factor gets
        its own copy of the feature, with equally probable values. The numbers of these rows are appended to
        ``inexact``, or reported by an InexactMarginalizationWarning if that is None. (For a k-tree on letter with half
        of the values missing and a capacity of 150,000 numbers, one row in 29 is approximated, and the test error is
        35.4 % instead of 35.1 %.)

        Shapes: codes: (n_features, n_all); samples: (n_samples,); cells: (n_cells,); result: (n_samples, n_classes).
        """
        scores = np.empty((len(samples), self._layout.n_classes))
        if self._is_small and len(samples) == 1:  # without the preparation of threads, half of the time
            self._run(kernels.eliminate, codes, samples, cells, None, (self._is_normalized,), 0, scores)
            return scores
        rows = self._sort(codes, samples, is_marginal=self._is_normalized, n_jobs=n_jobs)
        if is_exact:
            self._refuse(codes, samples, rows)
        elif inexact is not None:
            inexact.extend(samples[rows.refused].tolist())
        elif rows.refused.size:
            warn_of_approximations(samples[rows.refused].tolist(), self._limit)
        for positions, reserve in ((rows.direct, 0), (rows.refused, self._reserve)):
            self._eliminate(codes, samples, positions, cells, reserve, scores, n_jobs)
        tasks = [(k, plan, *block) for k, plan in rows.planned for block in blocks_of_slices(plan.n_slices, len(codes))]

        def score(task: tuple[int, EliminationPlan, int, int]) -> FloatArray:
            k, plan, first, last = task
            return log_sum(self._score_slices(codes[:, samples[k]], plan, first, last, cells))

        found: dict[int, list[FloatArray]] = {k: [] for k, _ in rows.planned}
        for task, row in zip(tasks, in_threads(score, tasks, n_jobs), strict=True):
            found[task[0]].append(row)
        for k, parts in found.items():
            scores[k] = log_sum(np.stack(parts))
        return scores

    def find_inexact(self, codes: Codes, samples: IntArray) -> IntArray:
        """Return the positions in ``samples`` of the rows that `log_joint` can only approximate."""
        return self._sort(codes, samples, is_marginal=self._is_normalized).refused

    def is_cheap(self, codes: Codes, samples: IntArray, most: int) -> bool:
        """Return whether all rows fit in memory without slices and take at most ``most`` microseconds together.

        The estimate is for log joint and gradient on one core of 2024: one microsecond for each combination of values
        of an eliminated feature and its neighbors (more with many classes), and one for every 16 features of a row.
        """
        n_classes, left = self._layout.n_classes, most
        for first in range(0, len(samples), _BLOCK):
            n_values = self._count(codes, samples[first : first + _BLOCK], is_marginal=self._is_normalized)
            left -= int((n_values * (20 + n_classes) // 20 + codes.shape[0] // 16).sum())
            if left < 0 or (n_values < 0).any():
                return False
        return True

    def log_joint_adjoint(
        self,
        codes: Codes,
        samples: IntArray,
        cells: FloatArray,
        d_scores: FloatArray,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Compute the gradient with respect to the cells from the gradient of the log joint.

        If ``d_scores`` contains the weight of each row in the column of its class and 0 elsewhere, the result is the
        expected counts. In normalized CPTs, missing features without observed descendants are left out: their
        contribution is proportional to each distribution itself. Rows over the limit of operations raise ValueError.

        Shapes: d_scores: (n_samples, n_classes); result: (n_cells,).
        """
        rows = self._sort(codes, samples, is_marginal=self._is_normalized, n_jobs=n_jobs)
        self._refuse(codes, samples, rows)
        plans, is_direct = dict(rows.planned), np.zeros(len(samples), bool)
        is_direct[rows.direct] = True
        # The partial sums do not depend on the number of threads, so that rounding does not either.
        n_parts = min(_PARTS, len(samples) // _BLOCK + 1, max(1, 4 * _CAPACITY // self._layout.n_cells))
        parts = np.array_split(np.arange(len(samples)), n_parts)
        d_cells = np.zeros((len(parts), self._layout.n_cells))

        def add(part: int) -> None:
            direct, rest = parts[part][is_direct[parts[part]]], parts[part][~is_direct[parts[part]]]
            out, marginal = d_cells[part], (self._is_normalized,)
            self._run(
                kernels.eliminate_adjoint,
                codes,
                samples[direct],
                cells,
                None,
                marginal,
                d_scores[direct],
                d_cells[part],
            )
            for k in rest.tolist():
                plan, column = plans[k], codes[:, samples[k]]
                blocks = list(blocks_of_slices(plan.n_slices, len(codes)))
                found = [self._score_slices(column, plan, *block, cells) for block in blocks]
                total = log_sum(np.stack([log_sum(rows) for rows in found]))
                for block, scores in zip(blocks, found, strict=True):
                    own = d_scores[k] * posterior(scores, total)
                    slices = expand_slices(column, plan.conditioned, self._states, *block)
                    every = np.arange(len(own))
                    self._run(kernels.eliminate_adjoint, slices, every, cells, plan, marginal, own, out)

        in_threads(add, range(len(parts)), n_jobs)
        return d_cells.sum(axis=0)

    def complete(
        self, codes: Codes, samples: IntArray, cells: FloatArray, y: IntArray, *, n_jobs: int | None = None
    ) -> Codes:
        """Return a copy of the codes with the most probable joint completion of each selected row.

        In ``y``, a class -1 is replaced in place by the class that is most probable together with the completion. Rows
        over the limit of operations raise ValueError.

        Shapes: y: (n_all,), intp; result: (n_features, n_all).
        """
        rows = self._sort(codes, samples, is_marginal=False, n_jobs=n_jobs)
        self._refuse(codes, samples, rows)
        completed, direct = codes.copy(), samples[rows.direct]

        def fill(first: int, last: int) -> None:
            self._run(completions.most_probable, codes, direct[first:last], cells, None, (), y, completed)

        def fill_slices(task: tuple[int, EliminationPlan]) -> None:
            n, plan = int(samples[task[0]]), task[1]
            best: tuple[float, int] | None = None
            given = int(y[n])
            for block in blocks_of_slices(plan.n_slices, len(codes)):
                slices = expand_slices(codes[:, n], plan.conditioned, self._states, *block)
                every, classes, filled = np.arange(slices.shape[1]), np.full(slices.shape[1], given), slices.copy()
                self._run(completions.most_probable, slices, every, cells, plan, (), classes, filled)
                scores = np.empty((len(every), self._layout.n_classes))
                self._run(kernels.eliminate, filled, every, cells, plan, (False,), 0, scores)
                found = scores[every, classes]
                first = int(np.lexsort((classes, -found))[0])  # ties: the first class, then the first slice
                if best is None or (-found[first], classes[first]) < best:
                    best = -found[first], int(classes[first])
                    completed[:, n], y[n] = filled[:, first], classes[first]

        in_blocks(fill, len(direct), _BLOCK, n_jobs)
        in_threads(fill_slices, rows.planned, n_jobs)
        return completed

    def sample(self, codes: Codes, samples: IntArray, cells: FloatArray, rng: np.random.Generator) -> Codes:
        """Draw the missing values of each selected row from their posterior, once for each class.

        The classes share their random numbers. Rows over the limit of operations raise ValueError.

        Shapes: result: (n_features, n_samples, n_classes).
        """
        rows = self._sort(codes, samples, is_marginal=False)
        self._refuse(codes, samples, rows)
        n_classes = self._layout.n_classes
        drawn = np.empty((codes.shape[0], len(samples), n_classes), codes.dtype)
        uniform = rng.random((len(samples), codes.shape[0]))
        found = np.empty((codes.shape[0], len(rows.direct), n_classes), codes.dtype)
        direct, numbers = samples[rows.direct], uniform[rows.direct]
        self._run(completions.sample_completions, codes, direct, cells, None, (), numbers, found)
        drawn[:, rows.direct] = found
        every = np.arange(n_classes)
        for k, plan in rows.planned:
            column, chosen = codes[:, samples[k]], np.zeros(n_classes, np.intp)
            if plan.n_slices > 1:
                blocks = blocks_of_slices(plan.n_slices, len(codes))
                scores = np.concatenate(
                    [self._score_slices(column, plan, *b, cells, is_marginal=False) for b in blocks]
                )
                bounds = posterior(scores, log_sum(scores)).cumsum(axis=0)
                # The kernel does not use the random numbers of conditioned features, so one of them draws the slice.
                left = uniform[k, plan.conditioned[-1]] * bounds[-1]
                last = (bounds < bounds[-1]).sum(axis=0)  # never draw a slice of probability zero
                chosen = np.minimum((bounds <= left).sum(axis=0), last)
            slices = [expand_slices(column, plan.conditioned, self._states, s, s + 1) for s in chosen.tolist()]
            found = np.empty((codes.shape[0], n_classes, n_classes), codes.dtype)
            columns, numbers = np.concatenate(slices, axis=1), uniform[[k] * n_classes]
            self._run(completions.sample_completions, columns, every, cells, plan, (), numbers, found)
            drawn[:, k] = found[:, every, every]
        return drawn

    def _sort(self, codes: Codes, samples: IntArray, *, is_marginal: bool, n_jobs: int | None = 1) -> _Rows:
        """Choose the method of elimination of each row, which depends only on its missing features.

        If ``is_marginal``, missing features without observed descendants need no elimination.
        """
        every = np.arange(len(samples))
        if self._is_small:
            return _Rows(every, [], every[:0])
        missing = missing_code(codes.dtype)
        n_values = np.empty(len(samples), np.int64)

        def count(first: int, last: int) -> None:
            n_values[first:last] = self._count(codes, samples[first:last], is_marginal=is_marginal)

        in_blocks(count, len(samples), _BLOCK, n_jobs)
        # In floating point, because the product may overflow 64-bit integers.
        n_operations = np.where(n_values < 0, np.inf, n_values.astype(np.float64) * self._layout.n_classes)
        is_direct = n_operations <= min(_CHEAP, self._limit)
        planned, refused = [], []
        for k in np.flatnonzero(~is_direct).tolist():
            plan = self._plan_of(codes[:, samples[k]] == missing, is_marginal=is_marginal)
            if n_operations[k] <= (self._limit if plan is None else plan.n_operations):
                is_direct[k] = True
            elif plan is None:
                refused.append(k)
            else:
                planned.append((k, plan))
        return _Rows(np.flatnonzero(is_direct), planned, np.array(refused, np.intp))

    def _count(self, codes: Codes, samples: IntArray, *, is_marginal: bool) -> IntArray:
        """Count the combinations of values in all eliminations of each row, for the order of the structure.

        The count is -1 if the factors do not fit in memory.
        """
        n_values, done = np.empty(len(samples), np.int64), 0
        room = self._layout.n_classes, is_marginal, missing_code(codes.dtype), self._max_width, self._capacity
        while done < len(samples):
            done += kernels.count_values(codes, samples[done:], self._network, *room, n_values[done:])
            n_values[done : done + 1] = -1
            done += 1
        return n_values

    def _plan_of(self, is_missing: AnyArray, *, is_marginal: bool) -> EliminationPlan | None:
        """Return the cached plan for a set of missing features, or None if every plan exceeds the limit."""
        key = np.packbits(is_missing).tobytes(), is_marginal
        if key not in self._plans:
            graph, n_classes = self._graph(is_missing.tolist(), is_marginal), self._layout.n_classes
            self._plans[key] = plan_elimination(
                graph, self._states, n_classes, capacity=self._most, most_operations=self._limit
            )
        return self._plans[key]

    def _graph(self, is_missing: list[bool], is_marginal: bool) -> Graph:
        """Build the interaction graph of the features to eliminate, by moralization of the needed families."""
        is_needed = [not is_marginal or not missing for missing in is_missing]
        for i in self._network.downward[::-1].tolist():
            if is_needed[i]:
                for j in self._families[i][1:]:
                    is_needed[j] = True
        graph: Graph = {i: set() for i, missing in enumerate(is_missing) if missing and is_needed[i]}
        for family in self._families:
            if is_needed[family[0]]:
                scope = {j for j in family if is_missing[j]}
                for j in scope:
                    graph[j] |= scope - {j}
        return graph

    def _eliminate(
        self,
        codes: Codes,
        samples: IntArray,
        positions: IntArray,
        cells: FloatArray,
        reserve: int,
        scores: FloatArray,
        n_jobs: int | None,
    ) -> None:
        """Write the log joint of the rows at ``positions`` into scores, in the order of the structure."""

        def score(first: int, last: int) -> None:
            chosen = positions[first:last]
            found = np.empty((len(chosen), self._layout.n_classes))
            marginal = (self._is_normalized,)
            self._run(kernels.eliminate, codes, samples[chosen], cells, None, marginal, reserve, found)
            scores[chosen] = found

        in_blocks(score, len(positions), _BLOCK, n_jobs)

    def _score_slices(
        self,
        column: Codes,
        plan: EliminationPlan,
        first: int,
        last: int,
        cells: FloatArray,
        *,
        is_marginal: bool | None = None,
    ) -> FloatArray:
        """Compute the log joint of some slices of a row. Shape: (last - first, n_classes)."""
        slices = expand_slices(column, plan.conditioned, self._states, first, last)
        scores = np.empty((last - first, self._layout.n_classes))
        marginal = (self._is_normalized if is_marginal is None else is_marginal,)
        self._run(kernels.eliminate, slices, np.arange(last - first), cells, plan, marginal, 0, scores)
        return scores

    def _run(
        self,
        kernel: Callable[..., int],
        codes: Codes,
        samples: IntArray,
        cells: FloatArray,
        plan: EliminationPlan | None,
        marginal: tuple[bool, ...],
        *rest: Any,
    ) -> None:
        """Run a kernel on rows whose factors fit in memory, in the order of a plan or of the structure."""
        network, room = self._network, (self._max_width, self._capacity)
        if plan is not None:
            is_left = np.ones(len(codes), bool)
            is_left[plan.order] = False
            order = np.append(np.array(plan.order, np.intp), np.flatnonzero(is_left))
            network, room = network._replace(order=order, rank=np.argsort(order)), (plan.width, plan.n_numbers)
        n_done = kernel(codes, samples, cells, network, *marginal, missing_code(codes.dtype), *room, *rest)
        assert n_done == len(samples), "the elimination needs more memory than its plan estimated"

    def _refuse(self, codes: Codes, samples: IntArray, rows: _Rows) -> None:
        """Raise ValueError if a row exceeds the limit of operations."""
        if not rows.refused.size:
            return
        refused = samples[rows.refused].tolist()
        n_missing = int((codes[:, refused[0]] == missing_code(codes.dtype)).sum())
        if n_missing == len(codes):  # as in score_samples of unnormalized CPTs
            raise ValueError(
                f"all {n_missing} features have to be marginalized, because all of them are missing in a row, or "
                f"because the probability of rows is computed from scores that are not normalized. The features depend "
                f"on each other through two or more parents, so the marginalization would take more than "
                f"{self._limit:,.0f} operations. Rank rows by predict_joint_log_proba instead, learn a structure with "
                f"one augmenting parent, or {RAISE_LIMIT}."
            )
        raise ValueError(
            f"marginalizing the missing values of a row may take at most {self._limit:,.0f} operations, but row "
            f"{refused[0]} lacks {n_missing} feature{'s' * (n_missing != 1)} that depend on each other "
            f"through two or more parents and "
            f"would take more.{name_others(refused)} Impute some of them, learn a structure with one augmenting "
            f"parent, or {RAISE_LIMIT}."
        )


def _reserve(structure: Structure, layout: TableLayout) -> int:
    """Return the additional numbers that approximate elimination may need, at least 1.

    In the worst case, each CPT leaves one factor, over all of its features except the smallest one.
    """
    states, total = layout.n_states.tolist(), 1
    for i, row in enumerate(structure.parents.tolist()):
        family = [states[j] for j in (i, *row) if j >= 0]
        total += math.prod(family) // min(family) * layout.n_classes
    return total


def _plan(structure: Structure, layout: TableLayout, capacity: int, limit: float) -> tuple[IntArray, int, int, bool]:
    """Choose the order of elimination for most rows.

    Returns the order, the number of features of the largest factor, the size of all factors together, and whether every
    row is cheap in this order.
    """
    n_states, n_classes = layout.n_states, layout.n_classes
    if not (structure.parents[:, 1] >= 0).any():  # eliminating a leaf leaves a factor of its parent only
        size = int(n_states.max()) * n_classes
        return np.ascontiguousarray(structure.order[::-1]), 2, min(size, capacity) + 1, size <= capacity
    graph: Graph = {i: set() for i in range(structure.n_features)}
    for i, row in enumerate(structure.parents.tolist()):
        family = {i, *(j for j in row if j >= 0)}
        for j in family:
            graph[j] |= family - {j}
    # Eliminate the feature that leaves the smallest factor first. In a k-tree this adds no edges.
    # Python integers are used, because their products do not overflow and are the same on every CPU.
    states = n_states.tolist()
    order = greedy_order(graph, states, lambda graph, i: math.prod(states[j] for j in graph[i]))
    steps = elimination_steps(graph, order, states)
    width = max(1 + structure.parents.shape[1], *(1 + len(step.left) for step in steps))
    size = max(states) + sum(step.n_rows for step in steps)
    n_operations = n_classes * sum(step.n_rows * states[step.feature] for step in steps)
    is_small = width <= _MAX_WIDTH and size * n_classes <= capacity and n_operations <= min(_CHEAP, limit)
    return np.array(order), min(width, _MAX_WIDTH), int(min(size * n_classes, capacity)) + 1, is_small
