"""Which rows train and which are held out: all splits are drawn here."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import IntArray

__all__ = ["deal_folds", "hold_out", "search_splits", "stratified_splits", "validation_masks"]


def hold_out(y: IntArray, n_classes: int, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the rows to hold out: a share of every class, to the nearest row, but never all of them.

    Shapes: y: (n_samples,); result: (n_samples,).
    """
    held_out = np.zeros(len(y), dtype=np.bool_)
    for c in range(n_classes):
        rows = rng.permutation(np.flatnonzero(y == c))
        held_out[rows[: min(round(fraction * rows.size), max(rows.size - 1, 0))]] = True
    if not held_out.any():
        raise ValueError(f"a held-out share of {fraction} of {len(y)} rows is not one row. Raise the share.")
    return held_out


def deal_folds(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Draw the fold of every row: of every class, and of all rows, folds get equally many to the nearest one.

    Shapes: y: (n_samples,); result: (n_samples,).
    """
    if len(y) < n_folds:
        raise ValueError(
            f"{n_folds} folds need as many rows of positive weight, but there are {len(y)}. Ask for fewer folds."
        )
    order = rng.permutation(len(y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % n_folds
    return fold


def validation_masks(
    y: IntArray, n_classes: int, validation: float, rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """Draw the rows that are held out once, or those of every fold.

    Shapes: y: (n_samples,); result: (n_samples,).
    """
    if validation < 1:
        return [hold_out(y, n_classes, validation, rng)]
    fold = deal_folds(y, int(validation), rng)
    return [fold == k for k in range(int(validation))]


def stratified_splits(y: IntArray, n_folds: int | None, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Split rows as scikit-learn does: into folds, or once, two thirds to one.

    Shapes: y: (n_samples,); result: (n_train,).
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split  # 0.14 s that most processes can do without

    rows = np.arange(len(y))
    if n_folds is None:
        train, test = train_test_split(rows, test_size=1 / 3, stratify=y, random_state=seed)
        return [(train, test)]
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(rows, y))


def search_splits(
    cv: Any, X: Any, y: IntArray, n_classes: int, present: IntArray, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return the splits that a search asks for, without rows that do not count.

    Shapes: X: (n_samples, n_features); y: (n_samples,); present: (n_present,); result: (n_train,).
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
