"""Elimination orders of missing features, with slices if the factors of an order would be too large.

Orders are found by greedy heuristics, because finding an optimal order is NP-hard (Kjaerulff 1990; Darwiche 2009,
chapters 6 and 9). If the factors of the best order do not fit in memory, the plan conditions on some features (cutset
conditioning). For each combination of their values, called a slice, the other features are eliminated, and the results
are added. Results of slices are exact. Slices need less memory and more operations.

A graph maps each feature to eliminate to its neighbors, the features that it shares a factor with. Eliminating a
feature connects its neighbors and leaves a factor over them. Functions do not modify their arguments. Sizes are Python
integers, so they do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["EliminationPlan", "Graph", "Step", "elimination_steps", "greedy_order", "plan_elimination"]

#: Neighbors of each feature to eliminate: the features to eliminate that it shares a factor with.
Graph = dict[int, set[int]]

#: Number of operations of the best order so far per step of a heuristic, so that planning takes a fraction of the
#: elimination.
_OPERATIONS_PER_STEP = 64


class EliminationPlan(NamedTuple):
    """Elimination order with its slices and its cost."""

    order: list[int]  # features in the order of elimination
    conditioned: list[int]  # features conditioned on: each combination of their values is a slice
    n_slices: int
    n_numbers: int  # numbers that the factors of one slice take
    width: int  # features of the largest factor
    n_operations: int  # combinations of values in all eliminations, times classes, times slices


class Step(NamedTuple):
    """Elimination of one feature."""

    feature: int  # the eliminated feature
    left: frozenset[int]  # features of the factor that remains
    n_rows: int  # combinations of their values


def plan_elimination(
    graph: Graph, n_states: list[int], n_classes: int, *, capacity: int, most_operations: float
) -> EliminationPlan | None:
    """Return the cheapest plan of several heuristics, with as few slices as the memory allows.

    The result is None if every plan found takes more than ``most_operations``. The factors of a slice may take
    ``capacity`` numbers, at least one for each class.
    """
    single = [i for i in graph if n_states[i] == 1]  # a single value needs no elimination
    graph = _without(graph, set(single))
    order = _best_order(graph, n_states, n_classes, most_operations)
    if order is None:
        return None
    conditioned, n_slices, extra = single, 1, n_classes * len(n_states)
    while True:
        steps = elimination_steps(graph, order, n_states)
        n_numbers = _count_numbers(steps, n_classes)
        n_operations = n_slices * (extra + n_classes * sum(step.n_rows * n_states[step.feature] for step in steps))
        if n_operations > most_operations:
            return None
        if n_numbers <= capacity or not steps:
            width = max((1 + len(step.left) for step in steps), default=1)
            return EliminationPlan(order, conditioned, n_slices, n_numbers, width, n_operations)
        chosen = _feature_to_condition_on(steps, n_states)
        graph, order = _without(graph, {chosen}), [i for i in order if i != chosen]
        conditioned, n_slices = [*conditioned, chosen], n_slices * n_states[chosen]


def greedy_order(
    graph: Graph,
    n_states: list[int],
    cost: Callable[[Graph, int], float],
    *,
    reach: int = 1,
    most_values: float = math.inf,
    most_steps: float = math.inf,
) -> list[int]:
    """Return the greedy order. The next feature has the lowest cost, and ties go to the first one in the graph.

    The elimination of a feature changes the costs of features at a distance of up to ``reach`` edges, 1 or 2. The
    result is empty if the total size of the factors exceeds ``most_values``, or if the evaluations of the cost visit
    more than ``most_steps`` neighbors.
    """
    graph = {i: set(near) for i, near in graph.items()}
    costs = {i: cost(graph, i) for i in graph}
    order: list[int] = []
    n_values, n_steps = 0, sum(map(len, graph.values()))
    while costs:
        v = min(costs, key=costs.__getitem__)
        near = graph.pop(v)
        n_values += n_states[v] * math.prod(n_states[j] for j in near)
        if n_values > most_values or n_steps > most_steps:
            return []
        del costs[v]
        order.append(v)
        for j in near:
            graph[j] |= near - {j}
            graph[j].discard(v)
        changed = near if reach == 1 else near.union(*(graph[j] for j in near))
        for j in changed:
            costs[j] = cost(graph, j)
            n_steps += len(graph[j])
    return order


def _best_order(graph: Graph, n_states: list[int], n_classes: int, most_operations: float) -> list[int] | None:
    """Return the order with the fewest operations among three heuristics, or None if it exceeds the limit."""

    def remainder(graph: Graph, i: int) -> float:
        return math.prod(n_states[j] for j in graph[i])

    def fill(graph: Graph, i: int) -> float:
        near = graph[i]
        return sum(len(near - graph[j]) - 1 for j in near) + _fraction(remainder(graph, i))

    def weighted_fill(graph: Graph, i: int) -> float:
        near = graph[i]
        added = sum(n_states[j] * (sum(n_states[k] for k in near - graph[j]) - n_states[j]) for j in near)
        return added + _fraction(remainder(graph, i))

    def n_operations(order: list[int]) -> int:
        steps = elimination_steps(graph, order, n_states)
        return n_classes * sum(step.n_rows * n_states[step.feature] for step in steps)

    # The first heuristic may be worse than the others by orders of magnitude: it may exceed the limit a thousandfold.
    best = greedy_order(graph, n_states, remainder, most_values=1000 * most_operations / n_classes)
    if graph and not best:
        return None
    fewest = n_operations(best)
    for cost in (fill, weighted_fill):
        limits = {"most_values": fewest / n_classes, "most_steps": fewest / _OPERATIONS_PER_STEP}
        found = greedy_order(graph, n_states, cost, reach=2, **limits)
        if found and n_operations(found) < fewest:
            best, fewest = found, n_operations(found)
    return best if fewest <= most_operations else None


def _fraction(size: float) -> float:
    """Map the size of a factor monotonically to [0, 1), to break ties of equal fill."""
    return 1 - 1 / (1 + math.log(size))


def _without(graph: Graph, features: set[int]) -> Graph:
    """Return the graph without some features."""
    return {i: near - features for i, near in graph.items() if i not in features}


def elimination_steps(graph: Graph, order: list[int], n_states: list[int]) -> list[Step]:
    """Return the steps of eliminating the features in the given order, one step per feature."""
    graph = {i: set(near) for i, near in graph.items()}
    steps = []
    for v in order:
        near = graph.pop(v)
        for j in near:
            graph[j] |= near - {j}
            graph[j].discard(v)
        steps.append(Step(v, frozenset(near), math.prod(n_states[j] for j in near)))
    return steps


def _count_numbers(steps: list[Step], n_classes: int) -> int:
    """Return the maximum number of factor entries of one slice that are in memory at the same time.

    Factors of at most one feature are not stored, because they are added to the belief of the feature immediately.
    """
    used = most = 0
    for step in steps:
        most = max(most, used + step.n_rows * n_classes)
        used += step.n_rows * n_classes if len(step.left) > 1 else 0
    return most


def _feature_to_condition_on(steps: list[Step], n_states: list[int]) -> int:
    """Return the feature of the largest factor whose conditioning adds the fewest operations."""
    largest = max(steps, key=lambda step: step.n_rows)

    def values_after(chosen: int) -> float:
        total = 0
        for step in steps:
            if step.feature != chosen:
                n_values = step.n_rows * n_states[step.feature]
                total += n_values if chosen in step.left else n_values * n_states[chosen]
        return total

    return min(sorted(largest.left or {largest.feature}), key=values_after)
