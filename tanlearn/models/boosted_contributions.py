"""Contributions of features to the scores of boosted terms: Shapley values of each term.

If only some features of a term are observed, its value is the mean over the cells that agree with them, weighted as in
:class:`tanlearn.models.boosted_terms.BoostedTerms`. This defines a cooperative game, whose players are the observed
features of the term. The Shapley value of a feature is the mean increase when its value becomes known, over all orders
in which the values of the row can become known. Contributions therefore add up to the score, and a missing value
contributes 0.

Shapley: A value for n-person games. Contributions to the Theory of Games 2, 1953.
"""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.models.boosted_terms import BoostedTerms, Term

__all__ = ["explain_terms", "term_contributions"]


def explain_terms(model: BoostedTerms, codes: Codes) -> FloatArray:
    """Split the scores of rows into contributions of the features; the last entry is the score without features.

    The contributions add up to the scores whose prior is the class frequencies of training.

    Shapes: codes: (n_features, n_rows); result: (n_rows, n_features + 1, n_classes).
    """
    d, n_rows = codes.shape
    found = np.zeros((n_rows, d + 1, len(model.log_prior)))
    found[:, d] = model.log_frequency
    for term in model.terms():
        cell, known = _cells_and_known(term, codes)
        for mask in np.unique(known).tolist():
            rows = np.flatnonzero(known == mask)
            players, values, mean = term_contributions(term, mask)
            found[rows, d] += mean
            for i, own in zip(players, values, strict=True):
                found[rows, i] += own[cell[rows]]
    return found


def term_contributions(term: Term, known: int) -> tuple[list[int], FloatArray, FloatArray]:
    """Return the observed features of a term, their contributions in each cell, and the mean of the term.

    Bit s of ``known`` is set if the value of split s is known. Cells are compared only in these bits.

    Shapes: (n_features, n_cells, n_classes) and (n_classes,).
    """
    features = term.features.tolist()
    players = [i for i in dict.fromkeys(features) if any(known >> s & 1 for s, j in enumerate(features) if j == i)]
    bits = [sum(1 << s for s, i in enumerate(features) if i == player) for player in players]
    means = {
        chosen: _mean_given(term, sum(bits[p] for p in chosen) & known)
        for size in range(len(players) + 1)
        for chosen in combinations(range(len(players)), size)
    }
    n = len(players)
    found = np.zeros((n, *term.values.shape))
    for p in range(n):
        for chosen, before in means.items():
            if p not in chosen:
                after = means[tuple(sorted((*chosen, p)))]
                found[p] += factorial(len(chosen)) * factorial(n - len(chosen) - 1) / factorial(n) * (after - before)
    return players, found, means[()][0]


def _mean_given(term: Term, known: int) -> FloatArray:
    """Return the mean of a term given only some bits of the cell. Shape: (n_cells, n_classes)."""
    n_splits = len(term.features)
    if known == (1 << n_splits) - 1:
        return term.values
    cube = (2,) * n_splits  # the first axis is the highest bit
    unknown = tuple(n_splits - 1 - s for s in range(n_splits) if not known >> s & 1)
    weights = term.weights.reshape(*cube, 1)
    total = weights.sum(axis=unknown, keepdims=True)
    sums = (weights * term.values.reshape(*cube, -1)).sum(axis=unknown, keepdims=True)
    mean = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
    return np.broadcast_to(mean, (*cube, mean.shape[-1])).reshape(term.values.shape)


def _cells_and_known(term: Term, codes: Codes) -> tuple[IntArray, IntArray]:
    """Return the cell of each row, where missing values have side 0, and a mask of the known bits."""
    cell, known = np.zeros((2, codes.shape[1]), np.intp)
    for s, (i, side) in enumerate(zip(term.features.tolist(), term.sides, strict=True)):
        own = codes[i]
        seen = own < len(side)
        bit: AnyArray = side[np.where(seen, own, 0)].astype(np.intp)
        cell += np.where(seen, bit, 0) << s
        known += seen.astype(np.intp) << s
    return cell, known
