"""Exact marginalization of missing features in any structure, its gradient, and completions: probable, and drawn.

Most rows are eliminated in one order that suits the structure. A row for which that order is expensive gets an order of
its own, and where its factors would not fit in memory, it is split into slices (``elimination_plans.py``).
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
from tanlearn.network.elimination_plans import EliminationPlan, Graph, elimination_steps, greedy_order, plan_elimination
from tanlearn.network.limits import RAISE_LIMIT, name_others, warn_of_approximations
from tanlearn.network.limits import most_operations as read_limit
from tanlearn.network.slices import blocks_of_slices, expand_slices, log_sum, posterior
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout

__all__ = ["Eliminator"]

#: Numbers that a sample's factors may take, 64 MB a thread.
_CAPACITY = 2**22
#: Features that a factor may have in the order of the structure; with two values each they would be 2**22 numbers.
_MAX_WIDTH = 22
#: Operations from which a row gets an order of its own: 10 ms, about what planning takes.
_CHEAP = 2**18
#: Samples a thread takes at a time.
_BLOCK = 128
#: Parts that gradients are added up in, fewer if they are large.
_PARTS = 8


class _Rows(NamedTuple):
    """Positions of samples, sorted by how they are eliminated."""

    direct: IntArray  # in the order of the structure
    planned: list[tuple[int, EliminationPlan]]  # each in an order of its own
    refused: IntArray  # more operations than the limit


class Eliminator:
    """Marginalizes missing features of the rows of a network."""

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
                "values are missing, and cannot be marginalized in a structure with a cycle, which is a scorer and no "
                "network. Impute them, or use a structure that is a tree."
            )
        self._layout = layout  # Its tables
        # Whether every distribution sums to one; then missing features without observed descendants are left out
        self._is_normalized = is_normalized
        self._limit = read_limit() if most_operations is None else most_operations
        self._most = _CAPACITY if capacity is None else capacity
        # capacity: Numbers that the factors of a sample may take, 4,194,304 by default. What exceeds it is done in
        # slices.
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
        """Return the log joint of some samples.

        Shapes: codes: (n_features, n_all); samples: (n_samples,); cells: (n_cells,); result: (n_samples, n_classes).
        """
        scores = np.empty((len(samples), self._layout.n_classes))
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
        """Return the positions of the samples that :meth:`log_joint` can only approximate.

        Shapes: result: (n_found,).
        """
        return self._sort(codes, samples, is_marginal=self._is_normalized).refused

    def is_cheap(self, codes: Codes, samples: IntArray, most: int) -> bool:
        """Return whether some samples fit in memory without slices, and take at most so much time."""
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
        """Return the gradient for the cells, given that for the log joint.

        Shapes: d_scores: (n_samples, n_classes); result: (n_cells,).
        """
        rows = self._sort(codes, samples, is_marginal=self._is_normalized, n_jobs=n_jobs)
        self._refuse(codes, samples, rows)
        plans, is_direct = dict(rows.planned), np.zeros(len(samples), bool)
        is_direct[rows.direct] = True
        # The same parts for any number of threads: sums of other parts would differ by rounding.
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
        """Return codes in which some samples are filled in with their most probable values, all of a sample together.

        Shapes: y: (n_all,); result: (n_features, n_all).
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
                first = int(np.lexsort((classes, -found))[0])  # of equals the first class, then the first slice
                if best is None or (-found[first], classes[first]) < best:
                    best = -found[first], int(classes[first])
                    completed[:, n], y[n] = filled[:, first], classes[first]

        in_blocks(fill, len(direct), _BLOCK, n_jobs)
        in_threads(fill_slices, rows.planned, n_jobs)
        return completed

    def sample(self, codes: Codes, samples: IntArray, cells: FloatArray, rng: np.random.Generator) -> Codes:
        """Draw the missing values of some samples from their posterior, once for every class.

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
                # A conditioned feature needs no random number of its own, so the slice takes that of the last one.
                left = uniform[k, plan.conditioned[-1]] * bounds[-1]
                last = (bounds < bounds[-1]).sum(axis=0)  # slices of probability zero are not drawn
                chosen = np.minimum((bounds <= left).sum(axis=0), last)
            slices = [expand_slices(column, plan.conditioned, self._states, s, s + 1) for s in chosen.tolist()]
            found = np.empty((codes.shape[0], n_classes, n_classes), codes.dtype)
            columns, numbers = np.concatenate(slices, axis=1), uniform[[k] * n_classes]
            self._run(completions.sample_completions, columns, every, cells, plan, (), numbers, found)
            drawn[:, k] = found[:, every, every]
        return drawn

    def _sort(self, codes: Codes, samples: IntArray, *, is_marginal: bool, n_jobs: int | None = 1) -> _Rows:
        """Return how each sample is eliminated, which depends on its missing features and on nothing else.

        With ``is_marginal``, missing features without observed descendants need no elimination.
        """
        every = np.arange(len(samples))
        if self._is_small:
            return _Rows(every, [], every[:0])
        missing = missing_code(codes.dtype)
        n_values = np.empty(len(samples), np.int64)

        def count(first: int, last: int) -> None:
            n_values[first:last] = self._count(codes, samples[first:last], is_marginal=is_marginal)

        in_blocks(count, len(samples), _BLOCK, n_jobs)
        # In floating point, because products of this size may overflow.
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
        """Return the values that samples take in the order of the structure, -1 where they do not fit in memory."""
        n_values, done = np.empty(len(samples), np.int64), 0
        room = self._layout.n_classes, is_marginal, missing_code(codes.dtype), self._max_width, self._capacity
        while done < len(samples):
            done += kernels.count_values(codes, samples[done:], self._network, *room, n_values[done:])
            n_values[done : done + 1] = -1
            done += 1
        return n_values

    def _plan_of(self, is_missing: AnyArray, *, is_marginal: bool) -> EliminationPlan | None:
        """Return the plan for rows that miss these features; None for too many operations."""
        key = np.packbits(is_missing).tobytes(), is_marginal
        if key not in self._plans:
            graph, n_classes = self._graph(is_missing.tolist(), is_marginal), self._layout.n_classes
            self._plans[key] = plan_elimination(
                graph, self._states, n_classes, capacity=self._most, most_operations=self._limit
            )
        return self._plans[key]

    def _graph(self, is_missing: list[bool], is_marginal: bool) -> Graph:
        """Return the features to eliminate, and their neighbors among these."""
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
        """Write the scores of some samples, eliminated in the order of the structure."""

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
        """Return the log joint of some slices of a sample, of shape (last - first, n_classes)."""
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
        """Run a kernel on samples that fit in memory, in the order of a plan or of the structure."""
        network, room = self._network, (self._max_width, self._capacity)
        if plan is not None:
            is_left = np.ones(len(codes), bool)
            is_left[plan.order] = False
            order = np.append(np.array(plan.order, np.intp), np.flatnonzero(is_left))
            network, room = network._replace(order=order, rank=np.argsort(order)), (plan.width, plan.n_numbers)
        n_done = kernel(codes, samples, cells, network, *marginal, missing_code(codes.dtype), *room, *rest)
        assert n_done == len(samples), "a plan promised less memory than the elimination takes"

    def _refuse(self, codes: Codes, samples: IntArray, rows: _Rows) -> None:
        """Raise if some samples would take too many operations."""
        if not rows.refused.size:
            return
        refused = samples[rows.refused].tolist()
        n_missing = int((codes[:, refused[0]] == missing_code(codes.dtype)).sum())
        if n_missing == len(codes):  # as in score_samples of tables that are not normalized
            raise ValueError(
                f"all {n_missing} features have to be marginalized, because a row misses them all, or because the "
                f"scores are not normalized and a probability of rows is asked for. They depend on each other through "
                f"two parents or more, so that this would take more than {self._limit:,.0f} operations. Rank rows by "
                f"predict_joint_log_proba instead, learn a structure with one augmenting parent, or {RAISE_LIMIT}."
            )
        raise ValueError(
            f"row {refused[0]} misses {n_missing} features that depend on each other through two parents or more, so "
            f"that marginalizing them would take more than {self._limit:,.0f} operations.{name_others(refused)} Impute "
            f"some of them, learn a structure with one augmenting parent, or {RAISE_LIMIT}."
        )


def _reserve(structure: Structure, layout: TableLayout) -> int:
    """Return the numbers that all tables leave of which a feature is marginalized, at most; at least 1."""
    states, total = layout.n_states.tolist(), 1
    for i, row in enumerate(structure.parents.tolist()):
        family = [states[j] for j in (i, *row) if j >= 0]
        total += math.prod(family) // min(family) * layout.n_classes
    return total


def _plan(structure: Structure, layout: TableLayout, capacity: int, limit: float) -> tuple[IntArray, int, int, bool]:
    """Return an order of elimination that suits most rows, and what it takes at most.

    That is: features of a factor, numbers for all of them, and whether all rows are cheap in it.
    """
    n_states, n_classes = layout.n_states, layout.n_classes
    if not (structure.parents[:, 1] >= 0).any():  # a leaf leaves a factor of its parent alone
        size = int(n_states.max()) * n_classes
        return np.ascontiguousarray(structure.order[::-1]), 2, min(size, capacity) + 1, size <= capacity
    graph: Graph = {i: set() for i in range(structure.n_features)}
    for i, row in enumerate(structure.parents.tolist()):
        family = {i, *(j for j in row if j >= 0)}
        for j in family:
            graph[j] |= family - {j}
    # The feature that leaves the smallest factor goes first; in a chain or tree of cliques that adds no neighbors.
    # (Integers of Python: products of many numbers of states do not overflow, and are the same on every CPU.)
    states = n_states.tolist()
    order = greedy_order(graph, states, lambda graph, i: math.prod(states[j] for j in graph[i]))
    steps = elimination_steps(graph, order, states)
    width = max(1 + structure.parents.shape[1], *(1 + len(step.left) for step in steps))
    size = max(states) + sum(step.n_rows for step in steps)
    n_operations = n_classes * sum(step.n_rows * states[step.feature] for step in steps)
    is_small = width <= _MAX_WIDTH and size * n_classes <= capacity and n_operations <= min(_CHEAP, limit)
    return np.array(order), min(width, _MAX_WIDTH), int(min(size * n_classes, capacity)) + 1, is_small
