"""Normalisation of tables, its pull-back, and logarithms."""
# Shapes: a table is [k child values][L = parent values x classes], so both sums run along contiguous rows.
# rho, theta, d_theta, d_rho (M,) cells; n_values (G,), offset (G + 1,): group g is k = n_values[g] rows;
# groups (S,): those to work on; scratch (max L,)

from __future__ import annotations

import math

import numpy as np

from tanlearn._jit import kernel

_MANTISSA = 0x000FFFFFFFFFFFFF
_SQRT_HALF = 0x3FE6A09E00000000
_TO_ONE = 0x3FF0000000000000 - _SQRT_HALF
_LN2 = 0.6931471805599453


@kernel
def normalize(rho, n_values, offset, scratch, theta):  # type: ignore[no-untyped-def]
    """Write theta = rho - logsumexp(rho) over the child's own values (resource-efficient, eq. 9)."""
    for g in range(n_values.shape[0]):
        k = n_values[g]
        block = rho[offset[g] : offset[g + 1]]
        out = theta[offset[g] : offset[g + 1]]
        width = block.shape[0] // k
        top = scratch[:width]
        first = block[:width]
        for j in range(width):
            top[j] = first[j]
        for v in range(1, k):
            row = block[v * width : (v + 1) * width]
            for j in range(width):
                top[j] = max(top[j], row[j])
        total = out[:width]
        for j in range(width):
            total[j] = np.exp(first[j] - top[j])
        for v in range(1, k):
            row = block[v * width : (v + 1) * width]
            for j in range(width):
                total[j] += np.exp(row[j] - top[j])
        for j in range(width):
            top[j] += np.log(total[j])
        for v in range(k):
            row = block[v * width : (v + 1) * width]
            out_row = out[v * width : (v + 1) * width]
            for j in range(width):
                out_row[j] = row[j] - top[j]


@kernel
def normalize_adjoint(theta, d_theta, groups, n_values, offset, scratch, d_rho):  # type: ignore[no-untyped-def]
    """Write d_rho = d_theta - exp(theta) * (sum of d_theta over the child's values), in the given groups."""
    for s in range(groups.shape[0]):
        g = groups[s]
        k = n_values[g]
        block = theta[offset[g] : offset[g + 1]]
        d_block = d_theta[offset[g] : offset[g + 1]]
        out = d_rho[offset[g] : offset[g + 1]]
        width = block.shape[0] // k
        total = scratch[:width]
        for j in range(width):
            total[j] = 0.0
        for v in range(k):
            d_row = d_block[v * width : (v + 1) * width]
            for j in range(width):
                total[j] += d_row[j]
        for v in range(k):
            row = block[v * width : (v + 1) * width]
            d_row = d_block[v * width : (v + 1) * width]
            out_row = out[v * width : (v + 1) * width]
            for j in range(width):
                out_row[j] = d_row[j] - np.exp(row[j]) * total[j]


@kernel
def xlogx(x):  # type: ignore[no-untyped-def]
    """Return x log x, 0 at 0 and at what rounding leaves below it."""
    return x * math.log(x) if x > 0.0 else 0.0


@kernel
def log_normal(x):  # type: ignore[no-untyped-def]
    """Return the natural logarithm of a positive normal double, to 4e-16 of the larger of 1 and the result.

    That of fdlibm (x = 2^e m, log m = 2 artanh s with s = (m - 1) / (m + 1)), because a call per number keeps a loop
    scalar: 42 ms -> 11 ms for the matrix of mutual information of usps.
    """
    pattern = np.float64(x).view(np.int64) + _TO_ONE
    e = np.float64((pattern >> 52) - 1023)
    m = np.int64((pattern & _MANTISSA) + _SQRT_HALF).view(np.float64)  # from sqrt(1/2) to sqrt(2)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    p = 1.479819860511658591e-1
    p = p * square + 1.531383769920937332e-1
    p = p * square + 1.818357216161805012e-1
    p = p * square + 2.222219843214978396e-1
    p = p * square + 2.857142874366239149e-1
    p = p * square + 3.999999999940941908e-1
    p = p * square + 6.666666666666735130e-1
    return e * _LN2 + s * (2.0 + square * p)
