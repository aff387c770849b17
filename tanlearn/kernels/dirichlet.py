"""Hierarchical Dirichlet smoothing: expected numbers of tables in the Chinese restaurant representation.

In the Chinese restaurant representation of a hierarchical Dirichlet process, n rows of a value with probability p in
the context above occupy about ``c p (psi(c p + n) - psi(c p))`` tables of their context with concentration c. The
context above counts tables instead of rows, so a value that is frequent in a single context has little influence on
other contexts.
"""
# Shapes: a trie of one family with R pairs of context and class and L entries, see kernels/context_trie.py; k parents
# own (L,): rows whose last level is that of the entry, because the next parent is missing or there is none
# above, run, counts, tables, p (L,); totals (R,): sums of counts; c (k + 1,): concentrations; sums (k + 1, 2)
# bounds (k + 2, 2): start of the pairs and of the entries of each level

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import log


@kernel
def digamma_rise(a, n):  # type: ignore[no-untyped-def]
    """Return psi(a + n) - psi(a) for positive a and n, with a relative error of 1e-12."""
    total = 0.0
    while n >= 1.0 and a < 8.0:  # psi(a + 1) - psi(a) = 1 / a
        total += 1.0 / a
        a += 1.0
        n -= 1.0
    if n <= 0.0:
        return total
    b = a + n
    while a < 8.0:
        total += 1.0 / a - 1.0 / b
        a += 1.0
        b += 1.0
    return total + _asymptotic(b) - _asymptotic(a)


@kernel
def _asymptotic(x):  # type: ignore[no-untyped-def]
    """Return psi(x) for x >= 8, by its asymptotic series."""
    r = 1.0 / (x * x)
    series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r * (1.0 / 132.0)))))
    return log(x) - 0.5 / x - series


@kernel
def seat(bounds, above, run, own, c, n_states, p, counts, totals, tables, sums):  # type: ignore[no-untyped-def]
    """Write counts, totals and tables from the longest contexts upwards, and add to ``sums``.

    ``sums[j, 0]`` is the number of tables of level j, and ``sums[j, 1]`` the sum of psi(N + c) - psi(c) over its
    contexts and classes. Their ratio is the concentration that makes the tables of level j most probable.
    """
    for e in range(own.shape[0]):
        counts[e] = own[e]
    totals[:] = 0.0
    for level in range(c.shape[0] - 1, -1, -1):
        for e in range(bounds[level, 1], bounds[level + 1, 1]):
            a = c[level] * (p[above[e]] if level > 0 else 1.0 / n_states)
            tables[e] = min(counts[e], a * digamma_rise(a, counts[e]))
            totals[run[e]] += counts[e]
            sums[level, 0] += tables[e]
            if level > 0:
                counts[above[e]] += tables[e]
        for r in range(bounds[level, 0], bounds[level + 1, 0]):
            sums[level, 1] += digamma_rise(c[level], totals[r])
