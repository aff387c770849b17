"""Hierarchical smoothing of one family whose log odds of two classes rise in every context.

As in ``context_smoothing.py``, the counts of a context are n_xc + m P_j-1(x | c). Their sum over the classes is n_x,
and their sum over the values n_c. With the isotonic regression phi of n_x1 / n_x with weights n_x,

    P_j(x | 1) = n_x phi_x / n_1,   P_j(x | 0) = n_x (1 - phi_x) / n_0,

which are normalized, because isotonic regression keeps the sum of n_x phi_x.

Reference: Dykstra, Kochar, Robertson: Inference for likelihood ratio ordering in the two-sample problem. Journal of the
American Statistical Association 90, 1995.
"""
# Shapes: N contexts, each after the one above it; V values of the feature, of which the first n_ranked have an order
# above (N,): context above, -1 for the root; counts, p (N, V, 2); odds (N, V); pools (V, 2) and end (V,) are scratch

from __future__ import annotations

from tanlearn.kernels._jit import kernel


@kernel
def smooth_rising(above, m, n_ranked, is_falling, counts, pools, end, p, odds):  # type: ignore[no-untyped-def]
    """Write the probabilities p and the nondecreasing pooled odds of class 1 to class 0, and smooth the counts.

    If ``is_falling``, the odds are nonincreasing. Values without order keep their own odds.
    """
    n_values = p.shape[1]
    for g in range(p.shape[0]):
        n, zero, one = counts[g], 0.0, 0.0
        for v in range(n_values):
            for c in range(2):
                n[v, c] += m * p[above[g], v, c] if above[g] >= 0 else m / n_values
            zero += n[v, 0]
            one += n[v, 1]
            p[g, v, 0], p[g, v, 1] = n[v, 0], n[v, 1]
            odds[g, v] = n[v, 1] / n[v, 0]
        n_pools = 0
        for i in range(n_ranked):
            v = n_ranked - 1 - i if is_falling else i
            pools[n_pools, 0], pools[n_pools, 1], end[n_pools] = n[v, 0], n[v, 1], i + 1
            k = n_pools
            while k > 0 and pools[k - 1, 1] * pools[k, 0] >= pools[k, 1] * pools[k - 1, 0]:
                pools[k - 1, 0] += pools[k, 0]
                pools[k - 1, 1] += pools[k, 1]
                end[k - 1] = end[k]
                k -= 1
            n_pools = k + 1
        i = 0
        for k in range(n_pools):
            total = pools[k, 0] + pools[k, 1]
            while i < end[k]:
                v = n_ranked - 1 - i if is_falling else i
                both = n[v, 0] + n[v, 1]
                p[g, v, 0], p[g, v, 1] = both * (pools[k, 0] / total), both * (pools[k, 1] / total)
                odds[g, v] = pools[k, 1] / pools[k, 0]
                i += 1
        for v in range(n_values):
            p[g, v, 0] /= zero
            p[g, v, 1] /= one
