"""Standard errors of the curves of features, by a Laplace approximation.

The curve f of a feature is the sum of its own terms and of the part of its edges that depends on this feature only
(:mod:`tanlearn.models.contributions`). Tables of three features are held fixed. Ridges are normal priors of the terms,
so f has a normal prior, too::

    f = E b + H v,    b ~ N(0, R^-1),    v ~ N(0, I),

where E b are the own terms, and H H' is the prior covariance of the part from edges. Let f be added to the log odds of
class c against the other classes. Hold fixed the curves of other features, the pair contributions that are not part of
a curve, and the odds among the other classes. The Hessian of the loss with respect to f is then

    D = diag(d),    d(x) = sum_n w_n p_n (1 - p_n) over the rows with value x,

where p is the probability of class c. The class prior adds a constant to f in all rows, even if the value is missing,
and has no penalty. R contains the ridges times 1 - 1 / C, because they penalize the terms of each of C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.contributions import fit_sum, smoothed_counts
from tanlearn.terms.basis import OWN_GROUPS, TermBasis
from tanlearn.terms.fitting import Ridges

__all__ = ["curve_errors"]

#: Directions of a prior are left out if their variance is below this fraction of the largest variance.
_LEAST_VARIANCE = 1e-12


def curve_errors(basis: TermBasis, data: EncodedData, probabilities: FloatArray, ridges: Ridges) -> list[FloatArray]:
    """Return the standard error of the contribution of each value, centered over the rows, for each feature.

    Shapes: probabilities: (n_samples, n_classes), of the training rows; result: (n_states, n_classes) per feature.
    """
    n_classes = data.n_classes
    weights = data.in_whole_rows().weights.astype(np.float64)
    curvature = (weights[:, np.newaxis] * probabilities * (1 - probabilities)).T
    penalty = (1 - 1 / n_classes) * np.array(ridges)[basis.kinds]
    codes = basis.encode(data.codes)
    expansions, first = [], 0
    for column in basis.columns:
        expansion = basis.expansion[first : first + column.n_cells]
        own = np.unique(expansion.indices)
        expansions.append((expansion[:, own], own))
        first += column.n_cells + 1
    shared = _edge_factors(basis, codes, weights, expansions, penalty, data.n_features)
    errors: list[FloatArray] = []
    # The own columns come first, in the order of the features.
    for i, (cells, (expansion, own)) in enumerate(zip(codes, expansions, strict=True)):
        if i == data.n_features:
            break
        n_values = basis.columns[i].n_cells
        counts = np.bincount(cells, weights, n_values + 1)[:-1]
        share = counts / counts.sum() if counts.any() else np.full(n_values, 1 / n_values)
        if not len(own):  # a single value
            errors.append(np.zeros((n_values, n_classes)))
            continue
        of_values = np.flatnonzero(basis.kinds[own] == OWN_GROUPS)[-n_values:]  # the finest groups have one value each
        others = np.setdiff1d(np.arange(len(own)), of_values)
        factors = np.hstack([expansion[:, others].toarray() / np.sqrt(penalty[own[others]]), shared[i]])
        of_classes = [np.bincount(cells, factor, n_values + 1).astype(np.float64) for factor in curvature]
        variances = [_variances(penalty[own[of_values]], factors, d, share) for d in of_classes]
        errors.append(np.sqrt(variances).T)
    return errors


def _edge_factors(
    basis: TermBasis,
    codes: Codes,
    weights: FloatArray,
    expansions: list[tuple[Any, IntArray]],
    penalty: FloatArray,
    n_features: int,
) -> list[FloatArray]:
    """Return a factor H (n_states, rank) of the prior covariance for each feature, for its part from edges."""
    covariances: list[FloatArray | None] = [None] * n_features
    groups: list[IntArray] = [np.empty(0, np.intp)] * n_features  # all edges of a feature have the same groups
    for column, cells, (expansion, own_terms) in zip(basis.columns, codes, expansions, strict=True):
        if len(column.features) != 2:
            continue
        counts = np.bincount(cells, weights, column.n_cells + 1)[:-1].reshape(column.n_groups).astype(np.float64)
        every = np.eye(column.n_cells).reshape(*column.n_groups, column.n_cells)
        smoothed = smoothed_counts(counts)
        sides = smoothed.sum(axis=1), smoothed.sum(axis=0)
        for i, own, side, part in zip(column.features, column.groups, sides, fit_sum(every, smoothed), strict=True):
            terms = expansion.T @ _centered(part, side / side.sum()).T  # (n_terms, n_groups)
            covariance = np.einsum("tg,th->gh", terms / penalty[own_terms, np.newaxis], terms)
            before, groups[i] = covariances[i], own
            covariances[i] = covariance if before is None else before + covariance
    factors: list[FloatArray] = []
    for i, (own, covariance) in enumerate(zip(groups, covariances, strict=True)):
        if covariance is None:
            factors.append(np.empty((basis.columns[i].n_cells, 0)))
            continue
        variances, directions = np.linalg.eigh(covariance)
        kept = variances > _LEAST_VARIANCE * max(float(variances.max()), np.finfo(float).tiny)
        factors.append((directions[:, kept] * np.sqrt(variances[kept]))[own])
    return factors


def _variances(penalty: FloatArray, shared: FloatArray, d: FloatArray, share: FloatArray) -> FloatArray:
    """Return the variance of each value's centered contribution to a class. Shape: (n_values,).

    The curve is the sum of one own term per value and of ``shared`` columns with unit variances. Given the class prior
    and v, each own term is a multiple of their sum. The own terms are therefore eliminated, and the time is linear in
    the number of values.

    Shapes: penalty: (n_values,); shared: (n_values, rank); d: (n_values + 1,), the last one of missing values; share:
    (n_values,), fraction of the rows.
    """
    seen = d[:-1]
    inverse = 1 / (seen + penalty)
    kept = penalty * inverse  # fraction of a shift by the class prior or v that own terms leave
    design = np.hstack([np.ones((len(seen), 1)), shared])
    hessian = np.einsum("vt,vs->ts", (seen * kept)[:, np.newaxis] * design, design)
    hessian += np.diag(np.append(max(float(d[-1]), np.finfo(float).tiny), np.ones(shared.shape[1])))
    centered = _centered(kept[:, np.newaxis] * design, share)
    variances: FloatArray = (centered * np.linalg.solve(hessian, centered.T).T).sum(axis=1)
    of_mean = share**2 * inverse
    # Rounding must not make the variance from the other values negative.
    return variances + (1 - share) ** 2 * inverse + np.maximum(of_mean.sum() - of_mean, 0)


def _centered(columns: FloatArray, share: FloatArray) -> FloatArray:
    """Subtract the mean over the rows from each column."""
    centered: FloatArray = columns - (share[:, np.newaxis] * columns).sum(axis=0)
    return centered
