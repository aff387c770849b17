"""Log joint and posterior of rows under fitted CPTs, with missing values marginalized."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels._cuda import check_device, on_device, to_device
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.models.tables import Tables
from tanlearn.models.upward_pass import score_in_blocks, score_on_device
from tanlearn.structures.structures import Structure

__all__ = ["check_missing", "log_evidence", "log_joint", "log_posterior"]


def log_joint(
    tables: Tables,
    structure: Structure,
    codes: Codes,
    *,
    is_exact: bool = False,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> FloatArray:
    """Compute log p(class, observed features) of each row.

    Integer CPTs are summed as integers. Missing values are marginalized exactly, by one upward pass in a forest, or by
    variable elimination if features have two or more augmenting parents. A row that would take more operations than the
    limit (1e9, or ``TANLEARN_MAX_ROW_OPERATIONS``) raises ValueError if ``is_exact``; otherwise its score is
    approximate, and an InexactMarginalizationWarning names the row.

    Missing values also raise ValueError if the structure has a cycle, or, on "cuda", if a feature has two augmenting
    parents. The result does not depend on ``n_jobs``; scores of complete rows do not depend on the device.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
    """
    check_device(device)
    with on_device(device):
        return _log_joint(tables, structure, codes, is_exact, n_jobs, device)


def _log_joint(
    tables: Tables, structure: Structure, codes: Codes, is_exact: bool, n_jobs: int | None, device: str
) -> FloatArray:
    """Compute the log joint on the current device."""
    missing = missing_code(codes.dtype)
    incomplete = codes.max(axis=0, initial=0) == missing  # the missing code is the largest
    if not incomplete.any():
        return _complete(tables, codes, n_jobs, device)
    rows = np.flatnonzero(incomplete)
    check_missing(tables, structure, codes, rows, device)
    scores = np.empty((codes.shape[1], tables.layout.n_classes))
    scores[~incomplete] = _complete(tables, np.ascontiguousarray(codes[:, ~incomplete]), n_jobs, device)
    scores[rows] = tables.marginalize(structure, codes, rows, is_exact=is_exact, n_jobs=n_jobs, device=device)
    return scores


def check_missing(tables: Tables, structure: Structure, codes: Codes, rows: IntArray, device: str) -> None:
    """Raise ValueError if missing values cannot be marginalized: in a cycle, or with several parents on "cuda".

    ``rows`` (n_incomplete,) contains the rows with missing values, at least one. The message names the first.
    """
    feature = np.flatnonzero(codes[:, rows[0]] == missing_code(codes.dtype))[0]
    place = f"row {rows[0]} lacks feature {feature} (or has a category there that the training data did not contain)"
    if not structure.is_acyclic:
        raise ValueError(
            f"{place}, but missing values cannot be marginalized in a structure with a cycle. Impute the value, or "
            f"use a tree."
        )
    tables.check_device(device)
    several = np.flatnonzero(structure.parents[:, 1] >= 0)
    if several.size and device != "cpu":
        raise ValueError(
            f"{place}, but device={device!r} can marginalize missing values in trees only, and feature {several[0]} "
            f"has several augmenting parents. Use device='cpu', impute the value, or use a tree."
        )


def _complete(tables: Tables, codes: Codes, n_jobs: int | None, device: str) -> FloatArray:
    """Compute the log joint of complete rows, by integer sums if the CPTs are integers."""
    tables.check_device(device)
    scores, missing = np.empty((codes.shape[1], tables.layout.n_classes), tables.sum_dtype), missing_code(codes.dtype)
    if device == "cpu":
        score = tables.scorer(missing)
        score_in_blocks(lambda first, last: score(codes, first, scores[first:last]), len(scores), n_jobs)
    else:
        arrays = tables.scoring_cells, *tables.layout.arrays(), np.arange(len(tables))
        score_on_device(cuda_kernels.log_joint, (0, *to_device(*arrays), missing, None), codes, scores)
    return tables.decode(scores)


def log_posterior(scores: FloatArray) -> FloatArray:
    """Compute log p(class | observed features) from the log joint.

    For a row of -inf, the posterior is uniform. (Classifiers use the class probabilities instead.)

    Shapes: scores, result: (n_samples, n_classes).
    """
    top = scores.max(axis=1, keepdims=True)
    shifted = np.where(np.isneginf(top), 0.0, scores - np.where(np.isneginf(top), 0.0, top))
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def log_evidence(scores: FloatArray) -> FloatArray:
    """Compute log p(observed features), the log density of each row over all classes.

    It is -inf for rows that are impossible in every class.

    Shapes: scores: (n_samples, n_classes), the log joint; result: (n_samples,).
    """
    evidence: FloatArray = np.logaddexp.reduce(scores, axis=1)
    return evidence
