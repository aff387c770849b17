"""Scores and posteriors of learnt tables, with missing features summed out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.elimination import Eliminator
from tanlearn.kernels import scores as kernels
from tanlearn.kernels import upward as pass_kernels
from tanlearn.quantization import IntegerTables
from tanlearn.structures import Structure
from tanlearn.tables import Tables

__all__ = ["log_joint", "log_posterior"]

#: Rows a block: scores and rows of one block stay in the first-level cache.
_BLOCK = 512
#: The logarithm of 1e-300, a normal number.
_LOWEST_LOG = -690.0


def log_joint(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Return log p(class, observed features) of every row.

    Rounded tables are added up as integers. Missing features are summed out exactly: in one pass up the tree, or by
    elimination where features have two augmenting parents. Only rows that miss something pay for it.

    Parameters
    ----------
    tables : Tables
        Log-probabilities, one table a feature.
    structure : Structure
        The parents that the tables belong to.
    codes : ndarray of shape (n_features, n_samples)
        Feature-major codes.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Raises
    ------
    ValueError
        If features are missing and the structure has a cycle, or the missing ones of a row depend on each other in so
        many ways that summing them out would take more than 4 million numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> from tanlearn.inference import log_joint
    >>> data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 1])
    >>> structure = Structure([-1])
    >>> tables = MaximumLikelihood(alpha=0).fit(structure, data, np.random.default_rng(0))
    >>> np.exp(log_joint(tables, structure, data.codes)).round(3).tolist()
    [[0.333, 0.0], [0.0, 0.667], [0.0, 0.667]]
    """
    missing = missing_code(codes.dtype)
    incomplete = (codes == missing).any(axis=0)
    if not incomplete.any():
        return _complete(tables, codes, n_jobs)
    rows = np.flatnonzero(incomplete)
    if not structure.is_acyclic:
        feature = np.flatnonzero(codes[:, rows[0]] == missing)[0]
        raise ValueError(
            f"row {rows[0]} misses feature {feature} (or has a category there that training did not), and this "
            f"structure has a cycle, so it cannot be summed out. Impute it, or use a structure that is a tree."
        )
    scores = np.empty((codes.shape[1], tables.layout.n_classes))
    scores[~incomplete] = _complete(tables, np.ascontiguousarray(codes[:, ~incomplete]), n_jobs)
    if (structure.parents[:, 1] >= 0).any():
        eliminator = Eliminator(structure, tables.layout, is_normalized=tables.is_normalized)
        scores[rows] = eliminator.log_joint(codes, rows, tables.cells, n_jobs=n_jobs)
    else:
        scores[rows] = _incomplete(tables, structure, np.ascontiguousarray(codes[:, rows]), n_jobs)
    return scores


def _complete(tables: Tables, codes: Codes, n_jobs: int | None) -> FloatArray:
    """Return the log joint of complete rows; where the tables hold integers, by adding these."""
    cells: AnyArray
    dtype: Any
    if isinstance(tables, IntegerTables):
        cells, dtype = tables.magnitudes, tables.sum_dtype
    else:
        cells, dtype = tables.cells, np.float64
    scores = np.empty((codes.shape[1], tables.layout.n_classes), dtype)
    arguments = (*tables.layout.arrays(), np.arange(len(tables)), missing_code(codes.dtype))

    def score(first: int, last: int) -> None:
        rows = np.empty(_BLOCK, np.intp)
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            kernels.log_joint(codes, start, cells, *arguments, rows[: stop - start], scores[start:stop])

    _share(score, len(scores), n_jobs)
    return tables.fixed_point.decode(scores) if isinstance(tables, IntegerTables) else scores


def _incomplete(tables: Tables, structure: Structure, codes: Codes, n_jobs: int | None) -> FloatArray:
    """Return the log joint of rows that miss features, by a pass up the forest."""
    layout, parent, missing = tables.layout, structure.parent, missing_code(codes.dtype)
    scores = np.empty((codes.shape[1], layout.n_classes))
    is_hidden = (codes == missing).any(axis=1)
    probabilities = np.empty_like(tables.cells)
    for i in np.flatnonzero(is_hidden | ((parent >= 0) & is_hidden[parent])).tolist():
        probabilities[layout.offset[i] : layout.offset[i + 1]] = np.exp(tables[i].ravel())
    # Of all tables, so that a row's score does not depend on what others miss. (Sums over values must not overflow.)
    lowest = tables.cells.min(initial=-1.0 - np.log(layout.n_states.max()), where=tables.cells > -np.inf)
    most = int(_LOWEST_LOG / lowest)
    place = np.append(0, np.cumsum(layout.n_states)) * layout.n_classes
    upward = np.ascontiguousarray(structure.order[::-1])
    shape = layout.n_states, layout.offset, place
    tree = tables.cells, probabilities, parent, upward, *shape, tables.is_normalized, most, missing

    def score(first: int, last: int) -> None:
        count = np.empty(len(parent), np.intp)
        belief, message, product = (np.empty(n) for n in (place[-1], np.diff(place).max(), layout.n_classes))
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            block = np.ascontiguousarray(codes[:, start:stop])
            pass_kernels.log_joint(block, *tree, count, belief, message, product, scores[start:stop])

    _share(score, len(scores), n_jobs)
    return scores


def _share(work: Callable[[int, int], None], n_samples: int, n_jobs: int | None) -> None:
    """Have the samples done, first to last, in as many threads as it pays."""
    n_threads = min(effective_n_jobs(n_jobs), max(1, n_samples // _BLOCK))
    edges = np.linspace(0, n_samples, n_threads + 1).astype(int)
    if n_threads == 1:
        work(0, n_samples)
    else:  # threads, whatever joblib is told outside: processes would fill copies
        Parallel(n_jobs=n_threads, prefer="threads", require="sharedmem")(
            delayed(work)(*edge) for edge in itertools.pairwise(edges)
        )


def log_posterior(scores: FloatArray) -> FloatArray:
    """Return log p(class | observed features) from log-joint scores.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        Log joint. A row of -inf only (the model holds the sample for impossible) gives the uniform posterior.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.inference import log_posterior
    >>> np.exp(log_posterior(np.array([[-np.inf, -3000.0], [-np.inf, -np.inf]]))).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    top = scores.max(axis=1, keepdims=True)
    shifted = np.where(np.isneginf(top), 0.0, scores - np.where(np.isneginf(top), 0.0, top))
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
