"""Hill climbing over directed acyclic graphs by addition, removal and reversal of arcs, with a tabu list and restarts.

The search works with any score: a `MoveScores` returns the change in the score for every legal move. Nodes are numbered
in the order of their names. Among moves with equal changes, the first one is made, in the order removals, additions,
reversals, then by child, then by parent. The result therefore does not depend on the order of columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tanlearn._clock import learning_clock
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import Knowledge, initial_structure, read_rules
from tanlearn.structures.structures import Structure, padded_parents

from .history import ParentChange
from .scored_families import FamilyScorer

__all__ = ["ArcGraph", "Climber", "FamilyMoves", "Move", "MoveScores", "first_graph", "structure_of"]


@dataclass(frozen=True)
class Move:
    """One change of a graph at the arc from ``parent`` to ``child``."""

    kind: str  # "remove", "add" or "reverse"
    child: int
    parent: int

    @property
    def changed(self) -> tuple[int, ...]:
        """Nodes whose parents change."""
        return (self.child, self.parent) if self.kind == "reverse" else (self.child,)


class ArcGraph:
    """Directed acyclic graph, and the moves that keep it acyclic and within the limits on parents."""

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        max_parents: int | None,
        is_allowed: AnyArray | None = None,
        is_required: AnyArray | None = None,
    ) -> None:
        n_nodes = len(parents)
        self.arcs = np.zeros((n_nodes, n_nodes), bool)  # [child, parent]
        for i, given in enumerate(parents):
            self.arcs[i, list(given)] = True
        self.max_parents = n_nodes if max_parents is None else max_parents
        # [child, parent]: arcs that may be added
        self.is_allowed = ~np.eye(n_nodes, dtype=bool) if is_allowed is None else is_allowed
        # [child, parent]: arcs that are neither removed nor reversed
        self.is_required = np.zeros((n_nodes, n_nodes), bool) if is_required is None else is_required
        self._find_ancestors()

    def copy(self) -> ArcGraph:
        """Return an independent copy."""
        duplicate = copy(self)
        duplicate.arcs, duplicate._is_ancestor = self.arcs.copy(), self._is_ancestor.copy()
        return duplicate

    def parents(self, child: int) -> list[int]:
        """Return the parents of a node, in ascending order."""
        return np.flatnonzero(self.arcs[child]).tolist()

    def all_parents(self) -> list[list[int]]:
        """Return the parents of each node, in ascending order."""
        return [self.parents(i) for i in range(len(self.arcs))]

    def removals(self) -> AnyArray:
        """Return the mask of the arcs (child, parent) that may be removed."""
        return self.arcs & ~self.is_required

    def additions(self) -> AnyArray:
        """Return the mask of the arcs (child, parent) that may be added."""
        # A path from the child to the parent would become a cycle.
        return self.is_allowed & ~self.arcs & ~self._is_ancestor.T & self._has_fewer()[:, np.newaxis]

    def reversals(self) -> AnyArray:
        """Return the mask of the arcs (child, parent) that may be reversed."""
        legal = self.removals() & self.is_allowed.T & self._has_fewer()
        n_parents = self.arcs.sum(axis=1)
        for count in np.unique(n_parents[n_parents > 1]).tolist():
            children = np.flatnonzero(n_parents == count)
            parents = np.nonzero(self.arcs[children])[1].reshape(-1, count)
            # Another path from the parent to the child, through another parent of the child, would become a cycle.
            is_cycle = self._is_ancestor[parents[:, :, np.newaxis], parents[:, np.newaxis]].any(axis=1)
            legal[children[:, np.newaxis], parents] &= ~is_cycle
        return legal

    def apply(self, move: Move) -> None:
        """Make a move."""
        self.arcs = self.after(move)
        if move.kind == "add":
            is_below = self._is_ancestor[:, move.child].copy()
            is_below[move.child] = True
            is_above = self._is_ancestor[move.parent].copy()
            is_above[move.parent] = True
            self._is_ancestor[is_below] |= is_above
        else:
            self._find_ancestors()

    def after(self, move: Move) -> AnyArray:
        """Return the arcs after a move."""
        arcs = self.arcs.copy()
        arcs[move.child, move.parent] = move.kind == "add"
        if move.kind == "reverse":
            arcs[move.parent, move.child] = True
        return arcs

    def random_move(self, rng: np.random.Generator) -> Move | None:
        """Return a random legal move, or None if there is none."""
        moves = [
            ("remove", np.argwhere(self.removals())),
            ("add", np.argwhere(self.additions())),
            ("reverse", np.argwhere(self.reversals())),
        ]
        found = [(kind, arc) for kind, arcs in moves for arc in arcs.tolist()]
        if not found:
            return None
        kind, (child, parent) = found[int(rng.integers(len(found)))]
        return Move(kind, child, parent)

    def _has_fewer(self) -> AnyArray:
        """Return the mask of the nodes with fewer parents than the maximum. Shape: (n_nodes,)."""
        return self.arcs.sum(axis=1) < self.max_parents

    def _find_ancestors(self) -> None:
        """Compute the ancestors of all nodes."""
        n_nodes = len(self.arcs)
        self._is_ancestor = np.zeros((n_nodes, n_nodes), bool)  # [node, ancestor]
        remaining = self.arcs.sum(axis=1)
        ready = deque(np.flatnonzero(remaining == 0).tolist())
        while ready:
            j = ready.popleft()
            for i in np.flatnonzero(self.arcs[:, j]).tolist():
                self._is_ancestor[i] |= self._is_ancestor[j]
                self._is_ancestor[i, j] = True
                remaining[i] -= 1
                if remaining[i] == 0:
                    ready.append(i)


class MoveScores(Protocol):
    """Change of a score for each move of a graph."""

    @property
    def n_evaluations(self) -> int:
        """Number of families or structures that were scored."""
        ...

    def value(self) -> float:
        """Return the score of the graph."""
        ...

    def gains(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the changes in the score for removals, additions and reversals, with -inf for illegal moves.

        Shapes: each (n_nodes, n_nodes), [child, parent].
        """
        ...

    def moved(self, move: Move) -> None:
        """Update the score after a move of the graph."""
        ...


class FamilyMoves:
    """Changes of a decomposable score. After a move, only the changes of the affected families are computed again.

    The change in the score when an arc is added or removed depends only on the parents of its child. A reversal is the
    sum of a removal and an addition.
    """

    def __init__(self, graph: ArcGraph, scorer: FamilyScorer) -> None:
        self._graph, self._scorer = graph, scorer
        self._own = np.array([scorer(i, [given])[0] for i, given in enumerate(graph.all_parents())])
        self._change = np.full(graph.arcs.shape, np.nan)  # [child, parent] change if the arc is added or removed

    @property
    def n_evaluations(self) -> int:
        """Number of families that were scored."""
        return self._scorer.n_evaluations

    def value(self) -> float:
        """Return the score of the graph."""
        return self._scorer.class_score + float(self._own.sum())

    def gains(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the changes in the score for removals, additions and reversals, with -inf for illegal moves."""
        graph = self._graph
        removals, additions, reversals = graph.removals(), graph.additions(), graph.reversals()
        needed = (removals | additions | reversals.T) & np.isnan(self._change)
        for i in np.flatnonzero(needed.any(axis=1)).tolist():
            given, others = set(graph.parents(i)), np.flatnonzero(needed[i])
            self._change[i, others] = self._scorer(i, [sorted(given ^ {j}) for j in others.tolist()]) - self._own[i]
        change = self._change
        return (
            np.where(removals, change, -np.inf),
            np.where(additions, change, -np.inf),
            np.where(reversals, change + change.T, -np.inf),
        )

    def moved(self, move: Move) -> None:
        """Score the families that the move changed."""
        for i in move.changed:
            self._own[i] = self._scorer(i, [self._graph.parents(i)])[0]
            self._change[i] = np.nan


class Climber:
    """Steepest ascent by single moves, with a tabu list and restarts; records all changes and keeps the best graph.

    Without a tabu list, a climb ends where no move increases the score. With one, the best move is made even if it
    decreases the score, unless it leads to one of the last ``tabu_length`` graphs. The climb then ends after
    ``tabu_length`` moves in sequence without a new best score.
    """

    def __init__(
        self,
        order: IntArray,
        *,
        tabu_length: int = 0,
        max_steps: int | None = None,
        tolerance: float = 0.0,
        on_step: Callable[[str, float], None],
    ) -> None:
        # order: (n_nodes,) number of each node in records. tolerance: changes in the score up to this are rounding
        # errors. on_step gets a description of each step and the score after it.
        self.history: list[ParentChange] = []
        self.best_value = -np.inf  # best score so far; best is its graph
        self._order, self._tabu_length, self._max_steps, self._tolerance = order, tabu_length, max_steps, tolerance
        self._on_step = on_step
        self._step, self._started = 0, learning_clock()

    def search(
        self,
        graph: ArcGraph,
        make_scores: Callable[[ArcGraph], MoveScores],
        n_restarts: int,
        n_moves: int,
        rng: np.random.Generator,
    ) -> None:
        """Climb from a graph, then ``n_restarts`` times from the best graph after ``n_moves`` random moves."""
        self.climb(graph, make_scores(graph))
        self.restart(n_restarts, n_moves, make_scores, rng)

    def climb(self, graph: ArcGraph, scores: MoveScores) -> None:
        """Climb from a graph, which is changed in place."""
        self._last = graph
        self._offer(graph, scores)
        if self._step == 0:  # the first climb
            self._record(graph, scores, np.flatnonzero(graph.arcs.any(axis=1)).tolist())
        visited = deque([graph.arcs.tobytes()], maxlen=max(1, self._tabu_length))
        n_worse = 0
        while (move := self._best_move(graph, scores, visited)) is not None:
            graph.apply(move)
            scores.moved(move)
            visited.append(graph.arcs.tobytes())
            self._step += 1
            self._record(graph, scores, move.changed)
            self._on_step(f"{move.kind} {self._order[move.parent]} -> {self._order[move.child]}", scores.value())
            n_worse = 0 if self._offer(graph, scores) else n_worse + 1
            if n_worse >= self._tabu_length > 0:
                return

    def restart(
        self, n_restarts: int, n_moves: int, make_scores: Callable[[ArcGraph], MoveScores], rng: np.random.Generator
    ) -> None:
        """Climb again from the best graph after random moves, ``n_restarts`` times."""
        for number in range(n_restarts):
            if self._is_finished():
                return
            graph = self.best.copy()
            for _ in range(n_moves):
                if (move := graph.random_move(rng)) is not None:
                    graph.apply(move)
            scores = make_scores(graph)
            self._step += 1
            self._record(graph, scores, np.flatnonzero((graph.arcs != self._last.arcs).any(axis=1)).tolist())
            self._on_step(f"restart {number + 1} of {n_restarts}", scores.value())
            self.climb(graph, scores)

    def _is_finished(self) -> bool:
        """Return whether the maximum number of steps is reached."""
        return self._max_steps is not None and self._step >= self._max_steps

    def _best_move(self, graph: ArcGraph, scores: MoveScores, visited: deque[bytes]) -> Move | None:
        """Return the best move, or None if the climb ends."""
        if self._is_finished():
            return None
        gains = scores.gains()
        flat = np.concatenate([gain.ravel() for gain in gains])
        if not len(flat) or flat.max() == -np.inf:
            return None
        if not self._tabu_length:
            best = int((flat >= flat.max() - self._tolerance).argmax())
            return _move(best, len(graph.arcs)) if flat[best] > self._tolerance else None
        for number in np.argsort(-flat, kind="stable").tolist():
            if flat[number] == -np.inf:
                break
            move = _move(number, len(graph.arcs))
            if graph.after(move).tobytes() not in visited:
                return move
        return None

    def _offer(self, graph: ArcGraph, scores: MoveScores) -> bool:
        """Keep a graph if it is the best one so far, and return whether it is."""
        value = scores.value()
        if value <= self.best_value + self._tolerance:
            return False
        self.best, self.best_value = graph.copy(), value
        return True

    def _record(self, graph: ArcGraph, scores: MoveScores, changed: Iterable[int]) -> None:
        """Record the parents of the nodes that changed in a step, and the score after it."""
        value, seconds = scores.value(), learning_clock() - self._started
        for i in changed:
            parents = tuple(self._order[graph.parents(i)].tolist())
            change = ParentChange(int(self._order[i]), parents, value, self._step, scores.n_evaluations, seconds)
            self.history.append(change)


def _move(number: int, n_nodes: int) -> Move:
    """Return the move at a position in the concatenated removals, additions and reversals."""
    kind, arc = divmod(number, n_nodes**2)
    return Move(("remove", "add", "reverse")[kind], *divmod(arc, n_nodes))


def first_graph(
    initial: Structure | None, data: EncodedData, max_parents: int | None, knowledge: Knowledge | None
) -> ArcGraph:
    """Return the graph of an initial structure, or of the required edges if it is None; features are sorted by name."""
    rules = read_rules(knowledge, data, max_parents=max_parents)
    parents = _numbered_parents(initial_structure(initial, rules), data, max_parents)
    if rules is None:
        return ArcGraph(parents, max_parents)
    rules = rules.take(data.by_name)
    return ArcGraph(parents, max_parents, rules.allowed, rules.required)


def _numbered_parents(initial: Structure | None, data: EncodedData, max_parents: int | None) -> list[list[int]]:
    """Return the parents in an initial structure, or in naive Bayes if there is none; features are sorted by name."""
    order = data.by_name
    if initial is None:
        return [[] for _ in order]
    most = initial.n_features if max_parents is None else max_parents
    if initial.n_features != data.n_features:
        raise ValueError(
            f"initial has {initial.n_features} features, but the data have {data.n_features}. Pass a structure that "
            f"was learned from these columns, or None."
        )
    n_parents = (initial.parents >= 0).sum(axis=1)
    if not initial.is_acyclic or n_parents.max() > most:
        found = (
            "has a cycle"
            if not initial.is_acyclic
            else (f"has {n_parents.max()} of {data.label(int(n_parents.argmax()))}")
        )
        raise ValueError(
            f"initial must be acyclic with at most max_parents={most} augmenting parents per feature, but it {found}. "
            f"Pass another structure, a larger max_parents, or None."
        )
    position = np.argsort(order)
    return [sorted(position[row[row >= 0]].tolist()) for row in initial.parents[order]]


def structure_of(parents: Sequence[Sequence[int]], order: IntArray) -> Structure:
    """Convert the parents of features that are numbered by name to a structure; ``order``: (n_features,).

    Parents are in the order of their names, so that the results of back-off parameter learners do not depend on the
    order of the columns.
    """
    rows = padded_parents([order[sorted(given)].tolist() for given in parents])
    return Structure(rows[np.argsort(order)])
