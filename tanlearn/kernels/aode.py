"""Joint probabilities of averaged one-dependence estimators (Webb, Boughton and Wang 2005): one gather per estimator.

In each estimator, all features depend on one super-parent: log p(y, x) = log p(y, x_i) + sum over j of log p(x_j | y,
x_i).
"""
# Shapes: n samples, d features, E = d + 1 estimators, C classes, V rows (values of all features and the constant one)
# codes (d, n); start (d + 1,): row of each feature's first value, then that of the constant feature; is_parent (V,)
# parents (E, n): row of the super-parent's value, -1 if the estimator is not used
# children (n, d): offset of x_j in a row; n_parents (n,): number of super-parents of each sample
# log_parent (V * C + LANES,): [x_i][y]; log_child (V * width + LANES,): [x_i][x_j][y], rows of `width` numbers
# lanes (padded(C),) and total (n, C): scratch; scores (n, C)

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, load, splat, store
from tanlearn.kernels.mathematics import exp, log

#: Number of terms that are summed in float32 before their sum is added to the total. The scores of usps (256 features)
#: are then within 8e-5 of those in float64, at no cost; with a single sum over all features, they are within 5e-4.
_CHUNK = 16


@kernel
def pick_rows(codes, start, is_parent, missing, n_classes, parents, children, n_parents):  # type: ignore[no-untyped-def]
    """Write the rows of each sample's values: one estimator per feature, and one for the constant feature.

    The constant feature is the super-parent of samples that have no other, and replaces missing children.
    """
    d, n = codes.shape
    constant = start[d]
    for k in range(n):
        n_parents[k] = 0
    for i in range(d):
        x, chosen = codes[i], parents[i]
        for k in range(n):
            row = start[i] + x[k] if x[k] != missing else constant
            children[k, i] = row * n_classes
            if is_parent[row]:
                chosen[k] = row
                n_parents[k] += 1
            else:
                chosen[k] = -1
    for k in range(n):
        parents[d, k] = constant if n_parents[k] == 0 else -1


@kernel
def log_sum_joint(parents, children, log_parent, log_child, width, lanes, total, scores):  # type: ignore[no-untyped-def]
    """Write the log of the sum over estimators of p(y, x).

    Estimators are the outer loop, because a super-parent has few values: their rows (35 kB each for usps) stay in cache
    for all samples.
    """
    n, n_classes = scores.shape
    for k in range(n):
        row, sums = scores[k], total[k]
        for c in range(n_classes):
            row[c] = -np.inf
            sums[c] = 0.0
    for e in range(parents.shape[0]):
        for k in range(n):
            if parents[e, k] >= 0:
                _log_joint(parents[e, k], children[k], log_parent, log_child, width, n_classes, lanes)
                _add(lanes, total[k], scores[k])
    for k in range(n):
        row, sums = scores[k], total[k]
        for c in range(n_classes):
            if sums[c] > 0.0:
                row[c] += log(sums[c])


@kernel
def _log_joint(parent, children, log_parent, log_child, width, n_classes, lanes):  # type: ignore[no-untyped-def]
    """Write log p(y, x) of one estimator and one sample to ``lanes``; numbers beyond the classes are undefined."""
    d = children.shape[0]
    table = log_child[parent * width : (parent + 1) * width + LANES]
    for c in range(0, n_classes, LANES):
        whole = load(log_parent, parent * n_classes + c)
        for first in range(0, d, _CHUNK):
            part = splat(0.0)
            for j in range(first, min(first + _CHUNK, d)):
                part = part + load(table, children[j] + c)
            whole = whole + part
        store(lanes, c, whole)


@kernel
def _add(terms, total, top):  # type: ignore[no-untyped-def]
    """Add exp(terms) to the sum exp(top) * total in place; ``top`` is the largest term so far."""
    for c in range(top.shape[0]):
        term = np.float64(terms[c])
        if term > top[c]:
            total[c] = total[c] * exp(top[c] - term) + 1.0
            top[c] = term
        elif term > -np.inf:
            total[c] += exp(term - top[c])
