"""Scores of rows with values that training did not contain, of which none is higher than with a seen value."""

from __future__ import annotations

import math

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray
from tanlearn.network.inference import log_joint
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["bound_new_values", "log_joint_of_new_values"]

#: Laplace's rule of succession after a single row: (0 + 1) / (1 + 2).
_MOST = -math.log(3.0)


def log_joint_of_new_values(
    tables: Tables,
    structure: Structure,
    codes: Codes,
    is_unseen: AnyArray,
    *,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> FloatArray:
    """Return log p(class, observed features) of rows, some of whose values training did not contain.

    An unseen value has the smallest probability of any value that is possible in its place, or the smallest one that
    the network has for any value of any feature, if that is smaller. Its children have their smallest probability over
    the values of the parent. So the log joint is not larger than with a seen value.

    Parameters
    ----------
    tables : Tables
        Log-probabilities, one table per feature.
    structure : Structure
        The parents that the tables belong to.
    codes : ndarray of shape (n_features, n_samples)
        Feature-major codes.
    is_unseen : ndarray of shape (n_features, n_samples), bool
        Where a value is unseen; the code there has no effect.
    n_jobs, device : as for :func:`~tanlearn.network.inference.log_joint`

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> from tanlearn.network.new_values import log_joint_of_new_values
    >>> data, structure = EncodedData.from_codes([[0], [1], [1], [1]], [0, 0, 1, 1]), Structure([-1])
    >>> tables = MaximumLikelihood(alpha=1).fit(structure, data, np.random.default_rng(0))
    >>> codes, is_unseen = np.array([[0, 1, 255]], np.uint8), np.array([[False, False, True]])
    >>> np.exp(log_joint_of_new_values(tables, structure, codes, is_unseen)).round(3).tolist()
    [[0.25, 0.125], [0.25, 0.375], [0.167, 0.125]]
    """
    scores = np.empty((codes.shape[1], tables.layout.n_classes))
    is_new = is_unseen.any(axis=0)
    seen = np.flatnonzero(~is_new)

    def score(tables: Tables, codes: Codes) -> FloatArray:
        return log_joint(tables, structure, np.ascontiguousarray(codes), n_jobs=n_jobs, device=device)

    if seen.size:
        scores[seen] = score(tables, codes[:, seen])
    new = np.flatnonzero(is_new)
    patterns, kind = np.unique(is_unseen[:, new], axis=1, return_inverse=True)
    rarest = bound_new_values(_least(tables))
    for k in range(patterns.shape[1]):
        rows, features = new[kind.ravel() == k], np.flatnonzero(patterns[:, k])
        known = codes[:, rows]
        known[features] = 0  # every value of them has the same probability in these tables
        scores[rows] = score(_without_values(tables, features.tolist(), rarest), known)
    return scores


def bound_new_values(least: FloatArray) -> FloatArray:
    """Return log-probabilities of new values, given the smallest log-probabilities of seen ones.

    A feature whose values are about equally frequent has no rare value to compare a new one with. The rarest value of
    any feature shows what smoothing leaves for values that no row contains.

    Parameters
    ----------
    least : ndarray of shape (n_features, n_classes)
        Smallest log-probability of any value of a feature, given each class.

    Returns
    -------
    ndarray of shape (n_classes,)
        The smallest one that is finite; at most log(1/3).

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.network.new_values import bound_new_values
    >>> np.exp(bound_new_values(np.log([[0.5], [0.01], [1.0]]))).round(2).tolist()
    [0.01]
    """
    rarest: FloatArray = least.min(axis=0, where=np.isfinite(least), initial=_MOST)
    return rarest


def _least(tables: Tables) -> FloatArray:
    """Return the smallest log-probability above -inf of any value of a feature, (n_features, n_classes)."""
    least = np.empty((len(tables), tables.layout.n_classes))
    for i, n_states in enumerate(tables.layout.n_states.tolist()):
        table = np.asarray(tables[i], np.float64).reshape(n_states, -1, tables.layout.n_classes)
        if not tables.is_normalized:
            table = table - _log_totals(table)
        least[i] = table.min(axis=(0, 1), where=np.isfinite(table), initial=0.0)
    return least


def _without_values(tables: Tables, features: list[int], rarest: FloatArray) -> Tables:
    """Return tables in which all values of some features have the smallest probability of them."""
    layout, cells = tables.layout, np.array(tables.cells, np.float64)
    unseen = set(features)
    for i in range(len(tables)):
        family = [i, *(j for j in layout.parents[i].tolist() if j >= 0)]
        axes = tuple(axis for axis, j in enumerate(family) if j in unseen)
        if not axes:
            continue
        table = np.asarray(tables[i], np.float64)
        least = table.min(axis=axes, where=np.isfinite(table), initial=np.inf, keepdims=True)
        if i in unseen:
            totals = 0.0 if tables.is_normalized else _log_totals(table).min(axis=axes, keepdims=True)
            least = np.minimum(least, rarest + totals)
        least = np.where(least < np.inf, least, -np.inf)  # nothing is possible there
        cells[layout.offset[i] : layout.offset[i + 1]] = np.broadcast_to(least, table.shape).ravel()
    return Tables(layout, cells, tables.is_normalized)


def _log_totals(table: FloatArray) -> FloatArray:
    """Return the log of the sum over values of every distribution, with an axis of length one in their place."""
    totals: FloatArray = np.logaddexp.reduce(table, axis=0, keepdims=True)
    return totals
