"""Losses of one row of scores with their gradients, selected by number.

A fused training kernel can call :func:`row_loss` on a row while it is in cache. A loss ignores the parameters that it
does not need. All arithmetic is in the dtype of the scores: parameters are passed in this dtype and constants are
converted to it, because Numba promotes float32 with a Python number to float64.
"""
# Shapes: n samples, C >= 2 classes
# scores, d_scores (n, C), in row functions (C,); y, loss, row_weight (n,); parameters (3,)

from __future__ import annotations

import math

from tanlearn.kernels._jit import kernel, shared_kernel

JOINT_NLL, CONDITIONAL_NLL, HINGE_MARGIN, MARGIN, HYBRID, SOFT_HYBRID = range(6)

#: Softmax weights below exp(-43) = 2e-19 are set to 0. Added to the largest term, 1, they are lost even in float64. In
#: float32 their squares would be denormal in Adam, and below exp(-87) the exponential itself is slow (a row of 26
#: classes: 290 ns instead of 105).
LOWEST_EXPONENT = -43.0


@kernel
def soft_margin(scores, label, left_out, eta, enough, weights):  # type: ignore[no-untyped-def]
    """Return s_label - (1/eta) log sum_{c != left_out} exp(eta s_c), and write the softmax of that sum.

    The largest score is subtracted first, so scores of -30,000 keep their digits in float32. Equal scores differ by 0
    even if both are -inf, so impossible classes are tied like any other equal scores. If the margin is certainly at
    least ``enough``, its lower bound is returned with weights 0, without exponentials.
    """
    zero = scores.dtype.type(0)
    lowest = scores.dtype.type(LOWEST_EXPONENT)
    top = scores[1] if left_out == 0 else scores[0]
    for c in range(scores.shape[0]):
        top = max(top, scores[c] if c != left_out else top)
    difference = zero if scores[label] == top else scores[label] - top
    bound = difference - math.log(scores.dtype.type(scores.shape[0] - 1)) / eta
    if bound >= enough:
        for c in range(scores.shape[0]):
            weights[c] = zero
        return bound
    total = zero
    for c in range(scores.shape[0]):
        exponent = zero if scores[c] == top or c == left_out else eta * (scores[c] - top)
        weight = math.exp(max(exponent, lowest))  # this order of arguments propagates nan
        weights[c] = zero if exponent <= lowest or c == left_out else weight
        total += weights[c]
    for c in range(scores.shape[0]):
        weights[c] /= total
    return difference - math.log(total) / eta


@shared_kernel
def row_loss(kind, scores, label, p0, p1, p2, d_scores):  # type: ignore[no-untyped-def]
    """Return the loss of one row and write its gradient; ``kind`` is one of the six constants above.

    All losses but -s_y are functions of the soft margin d of the row. They share one function, because each separate
    function would take a tenth of a second to compile, once for float32 and once for float64.
    """
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    # Without its margin, a hybrid loss is -s_y; 0 times an infinite margin would be nan.
    if kind == JOINT_NLL or (p0 == 0 and kind >= HYBRID):
        for c in range(scores.shape[0]):
            d_scores[c] = 0
        d_scores[label] = -1
        return -scores[label]
    if kind == CONDITIONAL_NLL:  # -s_y + log sum_c exp(s_c)
        value = -soft_margin(scores, label, -1, one, scores.dtype.type(math.inf), d_scores)
        d_scores[label] -= one
        return value
    has_hinge = kind in (HINGE_MARGIN, HYBRID)
    d = soft_margin(scores, label, label, p2, p1 if has_hinge else scores.dtype.type(math.inf), d_scores)
    if has_hinge:  # gamma = p1: max(0, gamma - d), or -s_y + trade_off max(0, gamma - d)
        value, slope, at_label = p1 - d, one, -one
        if value <= 0:
            value, slope, at_label = zero, zero, zero
        if kind == HYBRID:
            value, slope, at_label = p0 * value - scores[label], slope * p0, at_label * p0 - one
    elif kind == MARGIN:  # scale = p0, kappa = p1: -h(scale d), where h is the smooth hinge of half-width kappa
        position = p0 * d
        below = one - position
        if below <= 0:
            value, slope = -one, zero
        elif below < p1 + p1:
            value, slope = below * below / (p1 + p1 + p1 + p1) - one, p0 * below / (p1 + p1)
        else:
            value, slope = -position - p1, p0
        at_label = -slope
    else:  # gamma = p1, eta = p2: -s_y + trade_off (1/eta) log(1 + exp(eta (gamma - d)))
        shortfall = p2 * (p1 - d)
        small = math.exp(-abs(shortfall))  # cannot overflow
        value = p0 * (max(shortfall, zero) + math.log1p(small)) / p2 - scores[label]
        slope = p0 * (one if shortfall > zero else small) / (one + small)
        at_label = -slope - one
    for c in range(scores.shape[0]):
        d_scores[c] *= slope
    d_scores[label] = at_label
    return value


@kernel
def loss_rows(kind, parameters, scores, y, loss, d_scores):  # type: ignore[no-untyped-def]
    """Write the loss and gradient of each row; return the first row with an invalid class, or -1."""
    for i in range(scores.shape[0]):
        if y[i] < 0 or y[i] >= scores.shape[1]:
            return i
        loss[i] = row_loss(kind, scores[i], y[i], parameters[0], parameters[1], parameters[2], d_scores[i])
    return -1


@kernel
def weigh_rows(row_weight, d_scores):  # type: ignore[no-untyped-def]
    """Multiply the gradient of each row by the row's weight in the mean, in place."""
    for i in range(d_scores.shape[0]):
        row, weight = d_scores[i], row_weight[i]
        for c in range(row.shape[0]):
            row[c] *= weight
