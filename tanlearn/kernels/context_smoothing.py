"""Hierarchical smoothing: probabilities of the entries of a trie, each shrunk toward the probability one level above.

With n the count of a value and a class, and N the count of the class, in a context of j parents,

    P_j(x | y, p1..pj) = (n + m_j P_j-1(x | y, p1..pj-1)) / (N + m_j),    P_-1 = 1 / n_states.

With few samples in a context, the estimate with one parent less dominates. A value without samples of a class in a
context has P_j = m_j / (N + m_j) P_j-1, with one factor for all such values. If a context has no sample of a class,
P_j = P_j-1, so nothing is stored for it. For the trie, see ``context_trie.py``; shorter contexts come first.

Reference: Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using
hierarchical Dirichlet processes. Machine Learning 107, 2018, section 3, where it is called m-estimate with back-off.
"""
# Shapes: a trie of F families, R pairs of context and class, and L entries
# uniform (F,): 1 / n_states of each family; above, run, counts, p (L,): see kernels/context_trie.py
# m, unseen (R,): m_j and m_j / (N + m_j)

from __future__ import annotations

from tanlearn.kernels._jit import kernel


@kernel
def smooth_entries(above, run, uniform, m, counts, p, unseen):  # type: ignore[no-untyped-def]
    """Write the probabilities of all entries, and the factors for values without samples of a class."""
    unseen[:] = 0.0
    for e in range(p.shape[0]):
        unseen[run[e]] += counts[e]
    for r in range(unseen.shape[0]):
        unseen[r] += m[r]
    for e in range(p.shape[0]):
        before = p[above[e]] if above[e] >= 0 else uniform[-1 - above[e]]
        p[e] = (counts[e] + m[run[e]] * before) / unseen[run[e]]
    for r in range(unseen.shape[0]):
        unseen[r] = m[r] / unseen[r]


@kernel
def divide_by_above(p, above, ratio):  # type: ignore[no-untyped-def]
    """Write P_j / P_j-1 of all entries, and P_0 in roots."""
    for e in range(p.shape[0]):
        ratio[e] = p[e] / p[above[e]] if above[e] >= 0 else p[e]
