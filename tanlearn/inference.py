"""Scores and posteriors of learnt tables, with missing features summed out."""

from __future__ import annotations

import itertools

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from tanlearn._typing import Codes, FloatArray, missing_code
from tanlearn.kernels import scores as kernels
from tanlearn.structures import Structure
from tanlearn.tables import Tables

__all__ = ["log_joint", "log_posterior"]

#: Rows a block: scores and rows of one block stay in the first-level cache.
_BLOCK = 512


def log_joint(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Return log p(class, observed features) of every row.

    Missing features are summed out exactly, in one pass up the tree over the rows that miss something.

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
        If features are missing and the structure has a cycle, or two parents for a feature.

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
    n_samples = codes.shape[1]
    scores = np.empty((n_samples, tables.layout.n_classes))
    missing = missing_code(codes.dtype)
    incomplete = (codes == missing).any(axis=0)
    if incomplete.any():
        rows = np.flatnonzero(incomplete)
        if not structure.is_acyclic or (structure.parents[:, 1] >= 0).any():
            reason = "has a cycle" if not structure.is_acyclic else "gives features two augmenting parents"
            features = np.flatnonzero(codes[:, rows[0]] == missing)
            raise ValueError(
                f"row {rows[0]} misses feature {features[0]} (or has a category there that training did not), and this "
                f"structure {reason}, so it cannot be summed out. Impute it, or use a structure that is a tree."
            )
        complete = np.flatnonzero(~incomplete)
        scores[complete] = _complete(tables, np.ascontiguousarray(codes[:, complete]), n_jobs)
        blocks = np.array_split(rows, max(1, min(len(rows) // _BLOCK, 8 * effective_n_jobs(n_jobs))))
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_incomplete)(tables, structure, codes, block, scores) for block in blocks
        )
        return scores
    return _complete(tables, codes, n_jobs)


def _complete(tables: Tables, codes: Codes, n_jobs: int | None) -> FloatArray:
    """Return the log joint of complete rows."""
    n_samples = codes.shape[1]
    scores = np.empty((n_samples, tables.layout.n_classes))
    arguments = (*tables.layout.arrays(), np.arange(len(tables)), missing_code(codes.dtype))

    def score(first: int, last: int) -> None:
        rows = np.empty(_BLOCK, np.intp)
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            kernels.log_joint(codes, start, tables.cells, *arguments, rows[: stop - start], scores[start:stop])

    n_threads = min(effective_n_jobs(n_jobs), max(1, n_samples // _BLOCK))
    edges = np.linspace(0, n_samples, n_threads + 1).astype(int)
    if n_threads == 1:
        score(0, n_samples)
    else:
        Parallel(n_jobs=n_threads, prefer="threads")(delayed(score)(*edge) for edge in itertools.pairwise(edges))
    return scores


def _incomplete(tables: Tables, structure: Structure, codes: Codes, samples: FloatArray, out: FloatArray) -> None:
    """Write the log joint of rows that miss features."""
    layout = tables.layout
    scores = np.empty((len(samples), layout.n_classes))
    belief = np.empty((len(layout.n_states), int(layout.n_states.max()), layout.n_classes))
    kernels.log_joint_missing(
        codes,
        samples,
        tables.cells,
        structure.parent,
        structure.order,
        layout.n_states,
        layout.offset,
        missing_code(codes.dtype),
        belief,
        scores,
    )
    out[samples] = scores


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
