"""Log p(class, observed features, value) of every value of every feature, for rows with missing values.

In a forest, these numbers are computed by one upward and one downward pass over the features (belief propagation;
Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, chapter 4), both in logarithms. In other structures, they
are computed from the gradient of the log joint of a row with respect to the parameters, by elimination and a backward
pass. If CPTs are too large for the gradient, each value is inserted into the rows.

Shapes: n rows, V values of all features together, C classes; ``start`` (n_features + 1,) first value of each feature;
codes (n_features, n); result (n, V, C).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tanlearn._threads import in_blocks, in_threads
from tanlearn._typing import Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels.mathematics import exp_all, log_all
from tanlearn.models.elimination import Eliminator
from tanlearn.models.log_joint import check_missing, log_joint
from tanlearn.models.marginalization_limits import RAISE_LIMIT, most_operations
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["log_joint_of_values", "log_sum", "value_starts"]

#: Numbers in the largest product of a message and a CPT of a block of rows, 4 MB.
_BLOCK_NUMBERS = 2**19
#: Entries of dense CPTs with which gradients are computed, 32 MB.
_MOST_DENSE = 2**22


def value_starts(n_states: IntArray) -> IntArray:
    """Return the first value of each feature, and the number of all values, (n_features + 1,)."""
    start: IntArray = np.append(0, np.cumsum(n_states)).astype(np.intp)
    return start


def log_joint_of_values(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Compute log p(class, observed features, feature i = v) for all features i and values v.

    The result is -inf for all other values of an observed feature. Missing values are marginalized exactly: a cycle, or
    a row over the limit of operations, raises ValueError.
    """
    start = value_starts(tables.layout.n_states)
    out = np.full((codes.shape[1], int(start[-1]), tables.layout.n_classes), -np.inf)
    rows = np.flatnonzero((codes == missing_code(codes.dtype)).any(axis=0))
    if rows.size:
        check_missing(tables, structure, codes, rows, "cpu")
    if (structure.parents[:, 1:] >= 0).any():
        # The marginal probabilities of all features need every feature, including those without observed descendants.
        eliminator = Eliminator(structure, tables.layout, is_normalized=False)
        is_dense = tables.layout.sizes().sum() <= _MOST_DENSE
        if is_dense and not eliminator.find_inexact(codes, np.arange(codes.shape[1])).size:
            _differentiate(eliminator, tables, codes, start, out, n_jobs)
        else:
            _insert_values(tables, structure, codes, start, out, n_jobs)
        return out
    cpts = [np.asarray(tables[i], np.float64) for i in range(len(tables))]  # [value]([parent value])[class]
    n_rows = max(1, _BLOCK_NUMBERS // max(cpt.size for cpt in cpts))
    order = structure.order.tolist()

    def score(first: int, last: int) -> None:
        _two_passes(cpts, structure.parent, order, tables.log_prior, codes[:, first:last], start, out[first:last])

    in_blocks(score, codes.shape[1], n_rows, n_jobs)
    return out


def _differentiate(
    eliminator: Eliminator, tables: Tables, codes: Codes, start: IntArray, out: FloatArray, n_jobs: int | None
) -> None:
    """Write the log joint of each value from expected counts: the gradient of the log joint of one row and each class.

    For the log joint of one class, the gradient contains P(values of a family | class, observed features).
    """
    cells, layout = np.asarray(tables.cells, np.float64), tables.layout
    rows = np.arange(codes.shape[1])
    own = eliminator.log_joint(codes, rows, cells, n_jobs=n_jobs)
    ones = np.ones((1, layout.n_classes))

    def differentiate(row: int) -> None:
        counts = eliminator.log_joint_adjoint(codes, rows[row : row + 1], cells, ones, n_jobs=1)
        for i, n_values in enumerate(layout.n_states.tolist()):
            family = counts[layout.offset[i] : layout.offset[i + 1]].reshape(n_values, -1, layout.n_classes)
            p = family.sum(axis=1)
            is_possible = (p > 0) & (own[row] > -np.inf)  # undefined for impossible classes
            logs = np.where(is_possible, p, 1.0)
            log_all(logs.ravel(), logs.ravel())
            out[row, start[i] : start[i + 1]] = np.where(is_possible, logs + own[row], -np.inf)

    in_threads(differentiate, range(len(rows)), n_jobs)


def _insert_values(
    tables: Tables, structure: Structure, codes: Codes, start: IntArray, out: FloatArray, n_jobs: int | None
) -> None:
    """Write the log joint of the rows with each value of each feature inserted."""
    own = log_joint(tables, structure, codes, is_exact=True, n_jobs=n_jobs)
    for i, n_values in enumerate(tables.layout.n_states.tolist()):
        is_missing = codes[i] == missing_code(codes.dtype)
        observed, rows = np.flatnonzero(~is_missing), np.flatnonzero(is_missing)
        out[observed, start[i] + codes[i, observed].astype(np.intp)] = own[observed]
        if not rows.size:
            continue
        inserted = np.tile(codes[:, rows], n_values)
        inserted[i] = np.repeat(np.arange(n_values), len(rows))
        try:
            scores = log_joint(tables, structure, inserted, is_exact=True, n_jobs=n_jobs)
        except ValueError as error:  # its row number is one of the inserted rows
            raise ValueError(
                f"the gain of feature {i} cannot be computed exactly, because marginalizing the other missing "
                f"values of a row would take more than {most_operations():,.0f} operations for each of its values. "
                f"Pass rows "
                f"with fewer missing values, learn a structure with fewer parents, or {RAISE_LIMIT}."
            ) from error
        out[rows, start[i] : start[i + 1]] = scores.reshape(n_values, len(rows), -1).swapaxes(0, 1)


def _two_passes(
    cpts: Sequence[FloatArray],
    parent: IntArray,
    order: list[int],
    log_prior: FloatArray,
    codes: Codes,
    start: IntArray,
    out: FloatArray,
) -> None:
    """Write the log joint of each value by an upward and a downward pass over a forest.

    For each feature, ``below`` (n, values, C) is the log probability of the observed values in its subtree, and
    ``above`` is the log probability of its value and all other observed values. The result is their sum.
    """
    n, missing = codes.shape[1], missing_code(codes.dtype)
    children: list[list[int]] = [[] for _ in cpts]
    roots = [i for i in order if parent[i] < 0]
    below: dict[int, FloatArray] = {}
    messages: dict[int, FloatArray] = {}
    for i in reversed(order):
        values = np.arange(start[i + 1] - start[i])
        possible = (codes[i] == missing)[:, np.newaxis] | (codes[i][:, np.newaxis] == values)
        below[i] = np.where(possible, 0.0, -np.inf)[:, :, np.newaxis].repeat(len(log_prior), axis=2)
        for child in children[i]:
            below[i] += messages[child]
        own = below[i] if parent[i] < 0 else below[i][:, :, np.newaxis]
        messages[i] = log_sum(cpts[i] + own, axis=1)
        if parent[i] >= 0:
            children[parent[i]].append(i)
    above: dict[int, FloatArray] = {}
    prior = np.broadcast_to(log_prior, (n, len(log_prior)))
    for i, rest in zip(roots, _sums_of_others(prior, [messages[i] for i in roots]), strict=True):
        above[i] = cpts[i] + rest[:, np.newaxis]
    for j in order:
        out[:, start[j] : start[j + 1]] = above[j] + below[j]
        values = np.arange(start[j + 1] - start[j])
        possible = (codes[j] == missing)[:, np.newaxis] | (codes[j][:, np.newaxis] == values)
        seen = np.where(possible[:, :, np.newaxis], above.pop(j), -np.inf)
        others = _sums_of_others(seen, [messages[i] for i in children[j]])
        for i, rest in zip(children[j], others, strict=True):
            above[i] = log_sum(cpts[i] + rest[:, np.newaxis], axis=2)


def _sums_of_others(base: FloatArray, parts: Sequence[FloatArray]) -> Sequence[FloatArray]:
    """Return the sum of the base and all other parts for each part, without subtractions, which fail for -inf."""
    after = [np.zeros_like(base)]
    for part in parts[:0:-1]:
        after.append(after[-1] + part)
    sums, before = [], base
    for part, rest in zip(parts, reversed(after), strict=False):
        sums.append(before + rest)
        before = before + part
    return sums


def log_sum(log_values: FloatArray, axis: int) -> FloatArray:
    """Return the log of the sum of exponentials over an axis, or -inf where all values are -inf."""
    top = log_values.max(axis=axis, keepdims=True)
    terms = np.ascontiguousarray(log_values - np.where(np.isneginf(top), 0.0, top))
    exp_all(terms.ravel(), terms.ravel())
    total = np.ascontiguousarray(terms.sum(axis=axis))
    is_possible = total > 0
    logs = np.where(is_possible, total, 1.0)
    log_all(logs.ravel(), logs.ravel())
    result: FloatArray = np.where(is_possible, logs + top.squeeze(axis), -np.inf)
    return result
