"""Weights of features for weighted naive Bayes.

WANBIA (Zaidi, Cerquides, Carman and Webb 2013) minimizes the conditional negative log-likelihood or the squared error
of the posteriors by L-BFGS. AWNB (Hall 2007) derives the weights from the depths at which decision trees test features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tanlearn._threads import in_blocks, one_blas_thread
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.log_joint import log_posterior
from tanlearn.models.tables import Tables
from tanlearn.training.history import Iteration, Stopwatch

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = [
    "OBJECTIVES",
    "TrainedWeights",
    "lookup_tables",
    "trained_weights",
    "tree_depths",
    "tree_weights",
    "weighted_sum",
]

#: Rows per block: the scores of 26 classes fit in the second-level cache.
_BLOCK = 4096
#: Counts per block of nodes of a tree: 32 MiB.
_COUNTS = 2**22
#: Smallest weight that at least two branches of a split must have, as in C4.5.
_LEAST_BRANCH = 2.0
#: Gains that differ by less than this are treated as equal. The gain of a feature that is independent of the class is a
#: rounding error.
_ROUNDING = 1e-9


def lookup_tables(tables: Tables) -> list[FloatArray]:
    """Return log P(x_i | c) of each feature, with a last row of zeros for missing values.

    Shapes: result: n_features arrays (n_states[i] + 1, n_classes).
    """
    return [np.vstack([tables[i], np.zeros(tables.layout.n_classes)]) for i in range(len(tables))]


def weighted_sum(
    codes: Codes, lookups: list[FloatArray], weights: FloatArray, log_prior: FloatArray, n_jobs: int | None
) -> FloatArray:
    """Return log P(c) + sum over i of w_i log P(x_i | c); missing values contribute 0.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
    """
    scores = np.empty((codes.shape[1], len(log_prior)))

    def add(first: int, last: int) -> None:
        total = np.tile(log_prior, (last - first, 1))
        for i, (table, weight) in enumerate(zip(lookups, weights.tolist(), strict=True)):
            total += (weight * table)[_rows_of(codes[i, first:last], table)]
        scores[first:last] = total

    in_blocks(add, len(scores), _BLOCK, n_jobs)
    return scores


def _rows_of(values: AnyArray, table: FloatArray) -> AnyArray:
    """Return the rows of a lookup table for the values of a feature: the last one for missing values."""
    return np.minimum(values, len(table) - 1)


def _likelihood(log_p: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return -log p(y) of each row and its derivatives with respect to the scores."""
    loss = -np.take_along_axis(log_p, y[:, np.newaxis], 1)[:, 0]
    slope = np.exp(log_p)
    slope[np.arange(len(y)), y] -= 1.0
    return loss, slope


def _squared_error(log_p: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return half the squared error of the posterior of each row and its derivatives with respect to the scores."""
    p = np.exp(log_p)
    error = p.copy()
    error[np.arange(len(y)), y] -= 1.0
    slope = p * (error - (error * p).sum(axis=1, keepdims=True))
    return (error**2).sum(axis=1) / 2, slope


#: Losses by the name of the objective: from log posteriors and classes to losses and their derivatives.
OBJECTIVES: dict[str, Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]] = {
    "conditional-likelihood": _likelihood,
    "squared-error": _squared_error,
}


class TrainedWeights(NamedTuple):
    """Weights that minimize a loss, and the optimization that found them."""

    weights: FloatArray  # (n_features,)
    n_iter: int
    converged: bool
    history: list[Iteration]


def trained_weights(
    data: EncodedData,
    tables: Tables,
    objective: str,
    max_weight: float,
    max_iter: int,
    n_jobs: int | None,
) -> TrainedWeights:
    """Minimize the mean loss over weights from 0 to ``max_weight``, starting at 1."""
    from scipy.optimize import minimize

    lookups, loss_of = lookup_tables(tables), OBJECTIVES[objective]
    row_weights = data.weights / data.weights.sum()
    watch = Stopwatch()
    history: list[Iteration] = []

    def mean_loss(weights: FloatArray) -> tuple[float, FloatArray]:
        watch.n_evaluations += 1
        scores = weighted_sum(data.codes, lookups, weights, tables.log_prior, n_jobs)
        loss, slope = loss_of(log_posterior(scores), data.y)
        slope *= row_weights[:, np.newaxis]
        gradient = [
            (slope * table[_rows_of(values, table)]).sum() for values, table in zip(data.codes, lookups, strict=True)
        ]
        return float((row_weights * loss).sum()), np.array(gradient)

    def report(intermediate_result: OptimizeResult) -> None:
        history.append(watch.iteration(len(history), intermediate_result.fun))

    start = np.full(len(tables), min(1.0, max_weight))
    history.append(watch.iteration(0, mean_loss(start)[0]))
    with one_blas_thread():
        found = minimize(
            mean_loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, max_weight)] * len(tables),
            options={"maxiter": max_iter},
            callback=report,
        )
    return TrainedWeights(np.asarray(found.x, np.float64), int(found.nit), bool(found.success), history)


def tree_weights(data: EncodedData, n_trees: int, subsample: float, rng: np.random.Generator) -> FloatArray:
    """Return the mean of 1 / sqrt(d_i) over bagged trees, where d_i is the least depth at which i is tested (root 1).

    A feature that a tree does not test contributes 0.

    Shapes: result: (n_features,).
    """
    total = np.zeros(data.n_features)
    n_rows = max(1, round(subsample * data.n_samples))
    for _ in range(n_trees):
        rows = rng.choice(data.n_samples, n_rows)
        total += 1.0 / np.sqrt(tree_depths(data.take(rows)))
    return total / n_trees


def tree_depths(data: EncodedData) -> FloatArray:
    """Return the least depth at which an unpruned C4.5 tree tests each feature: 1 for the root, or inf if untested.

    A test has one branch per value, and one for missing values. At least two branches must have a weight of two or
    more. Among the tests with at least the mean information gain of all, the one with the largest gain ratio is used;
    ties are broken by name.

    Shapes: result: (n_features,).
    """
    depths = np.full(data.n_features, np.inf)
    node, rows, depth = np.zeros(data.n_samples, np.intp), np.arange(data.n_samples), 1
    while len(rows):
        test = _best_tests(data, node, rows)
        tested = test[test >= 0]
        depths[tested] = np.minimum(depths[tested], depth)
        goes_on = test[node] >= 0
        node, rows = node[goes_on], rows[goes_on]
        value = data.codes[test[node], rows].astype(np.intp)
        branches = node * (int(data.n_states.max()) + 1) + np.minimum(value, data.n_states[test[node]])
        order = np.argsort(branches, kind="stable")
        rows = rows[order]
        _, node = np.unique(branches[order], return_inverse=True)
        depth += 1
    return depths


def _best_tests(data: EncodedData, node: IntArray, rows: IntArray) -> IntArray:
    """Return the feature that each node tests, or -1 for a leaf; rows are sorted by node.

    Shapes: node, rows: (n_rows,); result: (n_nodes,).
    """
    n_nodes = int(node[-1]) + 1
    gain, ratio = np.zeros((data.n_features, n_nodes)), np.zeros((data.n_features, n_nodes))
    for i in data.by_name.tolist():
        for first, counts in _node_counts(data, node, rows, i):
            nodes = slice(first, first + len(counts))
            gain[i, nodes], ratio[i, nodes] = _gains(counts)
    is_test = gain > _ROUNDING
    mean = gain.sum(axis=0) / np.maximum(is_test.sum(axis=0), 1)
    ratio[~is_test | (gain < mean - _ROUNDING)] = 0.0
    by_name = ratio[data.by_name]
    best = (by_name >= by_name.max(axis=0) - _ROUNDING).argmax(axis=0)
    return np.where(is_test.any(axis=0), data.by_name[best], -1)


def _node_counts(data: EncodedData, node: IntArray, rows: IntArray, i: int) -> Iterator[tuple[int, FloatArray]]:
    """Yield blocks of nodes: the first node, and the weight of each value of a feature and class in each node.

    Shapes: counts: (n_nodes, n_states[i] + 1, n_classes).
    """
    n_values, n_classes, n_nodes = int(data.n_states[i]) + 1, data.n_classes, int(node[-1]) + 1
    width = max(1, _COUNTS // (n_values * n_classes))
    for first in range(0, n_nodes, width):
        last = min(first + width, n_nodes)
        begin, end = np.searchsorted(node, [first, last])
        own = rows[begin:end]
        value = np.minimum(data.codes[i, own].astype(np.intp), n_values - 1)
        cell = ((node[begin:end] - first) * n_values + value) * n_classes + data.y[own]
        counts: AnyArray = np.bincount(
            cell, data.weights[own].astype(np.float64), (last - first) * n_values * n_classes
        )
        yield first, counts.reshape(last - first, n_values, n_classes)


def _gains(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the information gain of a test in nats, and its ratio to the entropy of the branches, or 0 if not allowed.

    Shapes: counts: (n_nodes, n_values, n_classes); result: (n_nodes,) each.
    """
    branch = counts.sum(axis=2)
    total = branch.sum(axis=1)
    is_allowed = (branch >= _LEAST_BRANCH).sum(axis=1) >= 2
    of_class = _xlogx(counts.sum(axis=1)).sum(axis=1)
    of_branch = _xlogx(branch).sum(axis=1)
    of_total = _xlogx(total)
    safe = np.where(total > 0, total, 1.0)
    gain = ((of_total - of_class) - (of_branch - _xlogx(counts).sum(axis=(1, 2)))) / safe
    split = (of_total - of_branch) / safe
    gain = np.where(is_allowed, gain, 0.0)
    return gain, np.where(is_allowed, gain / np.where(split > 0, split, math.inf), 0.0)


def _xlogx(x: FloatArray) -> FloatArray:
    """Return x log x, 0 for 0."""
    logarithm = np.where(x > 0, x, 1.0)
    log_all(logarithm.ravel(), logarithm.ravel())
    return x * logarithm
