"""Elimination orders: against all orders of small graphs, and against counting step by step."""

import itertools
import math

import numpy as np
import pytest
from oracles import elimination as naive

from tanlearn.models.elimination_plans import elimination_steps, plan_elimination


def random_graph(rng, n, n_edges):
    pairs = [(i, j) for i in range(n) for j in range(i)]
    graph = {i: set() for i in range(n)}
    for k in rng.choice(len(pairs), n_edges, replace=False):
        i, j = pairs[k]
        graph[i].add(j)
        graph[j].add(i)
    return graph


def n_values(graph, n_states, order):
    """Return the values of an order, counted by the oracle: every edge is a family of two, and nothing is observed."""
    edges = [(i, j) for i in graph for j in graph[i] if j < i]
    parents = [[-1, -1]] * len(graph) + [list(edge) for edge in edges]
    sample = [-1] * len(graph) + [0] * len(edges)  # the edge is an observed child of both ends
    return naive.n_values(sample, parents, n_states + [1] * len(edges), order, False)


@pytest.mark.parametrize("seed", range(12))
def test_orders_are_nearly_as_cheap_as_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    graph, n_states = random_graph(rng, 7, 11), rng.integers(2, 9, 7).tolist()
    plan = plan_elimination(graph, n_states, 3, capacity=10**9, most_operations=math.inf)
    counted = {order: n_values(graph, n_states, order) for order in itertools.permutations(range(7))}
    assert sorted(plan.order) == list(range(7))
    assert plan.n_operations == 3 * (counted[tuple(plan.order)] + 7)
    assert counted[tuple(plan.order)] <= 1.25 * min(counted.values())


def test_fewest_values_and_least_fill_disagree_and_the_cheaper_order_wins():
    """A wheel whose hub has few values: the hub leaves the smallest factor, and joins all that it is connected to."""
    n = 9
    graph = {i: {(i + 1) % n, (i - 1) % n, n} for i in range(n)} | {n: set(range(n))}
    n_states = [20] * n + [2]
    plan = plan_elimination(graph, n_states, 1, capacity=10**9, most_operations=math.inf)
    assert plan.n_operations < 20**3 * 2 * n
    assert plan.order.index(n) >= n - 2


@pytest.mark.parametrize("capacity", [1, 7, 40, 200, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_slices_fit_the_capacity_and_are_counted(seed, capacity):
    rng = np.random.default_rng(seed)
    graph, n_states = random_graph(rng, 8, 16), rng.integers(1, 6, 8).tolist()
    whole = plan_elimination(graph, n_states, 1, capacity=10**9, most_operations=math.inf)
    plan = plan_elimination(graph, n_states, 1, capacity=capacity, most_operations=math.inf)
    assert sorted(plan.order + plan.conditioned) == list(range(8))
    assert {i for i in range(8) if n_states[i] == 1} <= set(plan.conditioned)
    assert plan.n_slices == math.prod(n_states[i] for i in plan.conditioned)
    assert plan.n_numbers <= capacity
    assert plan.n_operations >= whole.n_operations
    left = {i: near - set(plan.conditioned) for i, near in graph.items() if i not in plan.conditioned}
    steps = elimination_steps(left, plan.order, n_states)
    assert plan.n_operations == plan.n_slices * (8 + sum(s.n_rows * n_states[s.feature] for s in steps))
    assert plan.width == max([1, *(1 + len(step.left) for step in steps)])


def test_plans_beyond_the_limit_are_none():
    rng = np.random.default_rng(0)
    graph, n_states = random_graph(rng, 30, 200), [4] * 30
    assert plan_elimination(graph, n_states, 2, capacity=10**6, most_operations=1e9) is None
    small = random_graph(rng, 6, 9)
    plan = plan_elimination(small, [4] * 6, 2, capacity=30, most_operations=math.inf)
    assert plan_elimination(small, [4] * 6, 2, capacity=30, most_operations=plan.n_operations) == plan
    assert plan_elimination(small, [4] * 6, 2, capacity=30, most_operations=plan.n_operations - 1) is None


def test_nothing_to_eliminate_is_one_slice():
    plan = plan_elimination({}, [2, 3], 2, capacity=10, most_operations=100)
    assert (plan.order, plan.n_slices, plan.n_numbers, plan.n_operations) == ([], 1, 0, 4)
