"""Losses of one row of scores with their gradients, and a compiled function that selects a loss by number.

The row functions have the same signature, ``(scores, label, p0, p1, p2, d_scores) -> value``, so a fused training
kernel can call :func:`row_loss` on a row while it is in cache. A loss ignores parameters that it does not name. All
arithmetic is in the dtype of the scores: parameters are passed in this dtype and constants are converted to it, because
Numba promotes float32 with a Python number to float64.
"""
# Shapes: n samples, C >= 2 classes
# scores, d_scores (n, C), in row functions (C,); y, loss, row_weight (n,); parameters (3,)

from __future__ import annotations

import math

from tanlearn.kernels._jit import kernel

JOINT_NLL, CONDITIONAL_NLL, HINGE_MARGIN, MARGIN, HYBRID, SOFT_HYBRID = range(6)

#: Softmax weights below exp(-43) = 2e-19 are set to 0. Added to the largest term, 1, they are lost even in float64. In
#: float32 their squares would be denormal in Adam, and below exp(-87) the exponential itself is slow (a row of 26
#: classes: 290 ns instead of 105).
LOWEST_EXPONENT = -43.0


@kernel
def soft_margin(scores, label, left_out, eta, enough, weights):  # type: ignore[no-untyped-def]
    """Return s_label - (1/eta) log sum_{c != left_out} exp(eta s_c), and write the softmax of that sum.

    The largest score is subtracted first, so scores of -30,000 keep their digits in float32. Equal scores differ by 0
    even if both are -inf, so classes that are all impossible tie like any other equal scores. If the margin is
    certainly at least ``enough``, its lower bound is returned with weights 0, without exponentials.
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


@kernel
def joint_nll_row(scores, label, p0, p1, p2, d_scores):  # type: ignore[no-untyped-def]
    """Return -s_y."""
    for c in range(scores.shape[0]):
        d_scores[c] = 0
    d_scores[label] = -1
    return -scores[label]


@kernel
def conditional_nll_row(scores, label, p0, p1, p2, d_scores):  # type: ignore[no-untyped-def]
    """Return -s_y + log sum_c exp(s_c)."""
    one = scores.dtype.type(1)
    value = -soft_margin(scores, label, -1, one, scores.dtype.type(math.inf), d_scores)
    d_scores[label] -= one
    return value


@kernel
def hinge_margin_row(scores, label, p0, gamma, eta, d_scores):  # type: ignore[no-untyped-def]
    """Return max(0, gamma - d) for the soft margin d."""
    value = gamma - soft_margin(scores, label, label, eta, gamma, d_scores)
    if value <= 0:
        for c in range(scores.shape[0]):
            d_scores[c] = 0
        return scores.dtype.type(0)
    d_scores[label] = -1
    return value


@kernel
def margin_row(scores, label, scale, kappa, eta, d_scores):  # type: ignore[no-untyped-def]
    """Return -h(scale d) for the soft margin d, where h is the smooth hinge of half-width kappa."""
    one = scores.dtype.type(1)
    position = scale * soft_margin(scores, label, label, eta, scores.dtype.type(math.inf), d_scores)
    below = one - position
    if below <= 0:
        value = -one
        slope = scores.dtype.type(0)
    elif below < kappa + kappa:
        slope = scale * below / (kappa + kappa)
        value = below * below / (kappa + kappa + kappa + kappa) - one
    else:
        slope = scale
        value = -position - kappa
    for c in range(scores.shape[0]):
        d_scores[c] *= slope
    d_scores[label] = -slope
    return value


@kernel
def hybrid_row(scores, label, trade_off, gamma, eta, d_scores):  # type: ignore[no-untyped-def]
    """Return -s_y + trade_off max(0, gamma - d)."""
    if trade_off == 0:  # 0 times an infinite hinge would be nan
        return joint_nll_row(scores, label, trade_off, gamma, eta, d_scores)
    value = trade_off * hinge_margin_row(scores, label, trade_off, gamma, eta, d_scores) - scores[label]
    for c in range(scores.shape[0]):
        d_scores[c] *= trade_off
    d_scores[label] -= scores.dtype.type(1)
    return value


@kernel
def soft_hybrid_row(scores, label, trade_off, gamma, eta, d_scores):  # type: ignore[no-untyped-def]
    """Return -s_y + trade_off (1/eta) log(1 + exp(eta (gamma - d)))."""
    if trade_off == 0:  # 0 times an infinite term would be nan, as in the hybrid loss
        return joint_nll_row(scores, label, trade_off, gamma, eta, d_scores)
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    d = soft_margin(scores, label, label, eta, scores.dtype.type(math.inf), d_scores)
    shortfall = eta * (gamma - d)
    small = math.exp(-abs(shortfall))  # cannot overflow
    value = trade_off * (max(shortfall, zero) + math.log1p(small)) / eta - scores[label]
    slope = trade_off * (one if shortfall > zero else small) / (one + small)
    for c in range(scores.shape[0]):
        d_scores[c] *= slope
    d_scores[label] = -slope - one
    return value


@kernel
def row_loss(kind, scores, label, p0, p1, p2, d_scores):  # type: ignore[no-untyped-def]
    """Return the loss of one row and write its gradient; ``kind`` is one of the six constants above."""
    if kind == JOINT_NLL:
        return joint_nll_row(scores, label, p0, p1, p2, d_scores)
    if kind == CONDITIONAL_NLL:
        return conditional_nll_row(scores, label, p0, p1, p2, d_scores)
    if kind == HINGE_MARGIN:
        return hinge_margin_row(scores, label, p0, p1, p2, d_scores)
    if kind == MARGIN:
        return margin_row(scores, label, p0, p1, p2, d_scores)
    if kind == HYBRID:
        return hybrid_row(scores, label, p0, p1, p2, d_scores)
    return soft_hybrid_row(scores, label, p0, p1, p2, d_scores)


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
