"""Random splits into training, validation and test rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import IntArray

__all__ = ["draw_folds", "hold_out", "search_splits", "stratified_splits", "validation_masks"]


def hold_out(y: IntArray, n_classes: int, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a stratified mask of held-out rows. Shape: (n_samples,).

    The fraction ``fraction`` of the rows of each class is held out, rounded to the nearest row, but never all rows.
    """
    held_out = np.zeros(len(y), dtype=np.bool_)
    for c in range(n_classes):
        rows = rng.permutation(np.flatnonzero(y == c))
        held_out[rows[: min(round(fraction * rows.size), max(rows.size - 1, 0))]] = True
    if not held_out.any():
        raise ValueError(
            f"a held-out fraction of {fraction} of {len(y)} rows is less than one row. Increase the fraction."
        )
    return held_out


def draw_folds(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Draw the fold number of every row, stratified by class. Shape: (n_samples,).

    Fold sizes differ by at most one row, within each class and overall.
    """
    if len(y) < n_folds:
        raise ValueError(
            f"{n_folds} folds need at least {n_folds} rows of positive weight, got {len(y)}. Use fewer folds."
        )
    order = rng.permutation(len(y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % n_folds
    return fold


def validation_masks(
    y: IntArray, n_classes: int, validation: float, rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """Draw one mask of held-out rows per fold. Shape: (n_samples,).

    If ``validation`` is below 1, it is the held-out fraction of a single split. Otherwise, it is the number of folds.
    """
    if validation < 1:
        return [hold_out(y, n_classes, validation, rng)]
    fold = draw_folds(y, int(validation), rng)
    return [fold == k for k in range(int(validation))]


def stratified_splits(y: IntArray, n_folds: int | None, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Return stratified ``(train, test)`` row numbers of each fold, or of one split into 2/3 and 1/3 for None."""
    from sklearn.model_selection import StratifiedKFold, train_test_split  # the import takes 0.14 s

    rows = np.arange(len(y))
    if n_folds is None:
        train, test = train_test_split(rows, test_size=1 / 3, stratify=y, random_state=seed)
        return [(train, test)]
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(rows, y))


def search_splits(
    cv: Any, X: Any, y: IntArray, n_classes: int, present: IntArray, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return the ``(train, test)`` row numbers of a parameter search, without rows of weight 0.

    ``cv`` is a number of stratified folds, a held-out fraction, or any value accepted by scikit-learn's ``check_cv``.
    ``present`` (n_present,) contains the numbers of the rows of nonzero weight in increasing order.
    """
    from sklearn.model_selection import check_cv

    if isinstance(cv, Integral):
        return [(present[a], present[b]) for a, b in stratified_splits(y[present], int(cv), seed)]
    if isinstance(cv, Real):
        held_out = hold_out(y[present], n_classes, float(cv), np.random.default_rng(seed))
        return [(present[~held_out], present[held_out])]
    splits = check_cv(cv, y, classifier=True).split(X, y)
    pairs = [(np.asarray(train), np.asarray(test)) for train, test in splits]
    return [(train[np.isin(train, present)], test[np.isin(test, present)]) for train, test in pairs]
