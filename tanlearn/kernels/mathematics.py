"""Normalisation of tables, its pull-back, and x log x."""
# Shapes: a table is [k child values][L = parent values x classes], so both sums run along contiguous rows.
# rho, theta, d_theta, d_rho (M,) cells; n_values (G,), offset (G + 1,): group g is k = n_values[g] rows;
# groups (S,): those to work on; scratch (max L,)

from __future__ import annotations

import math

import numpy as np

from tanlearn._jit import kernel


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
