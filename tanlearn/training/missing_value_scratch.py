"""Work arrays of the fused steps for rows with missing values."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, IntArray, missing_code
from tanlearn.kernels.missing_values import Forest
from tanlearn.kernels.train_missing_values import MissingValues
from tanlearn.models.incomplete_rows import make_belief_scratch

__all__ = ["allocate_missing_values"]


def allocate_missing_values(
    codes: AnyArray, n_states: IntArray, n_classes: int, n_cells: int, shape: tuple[int, int], *, is_normalized: bool
) -> MissingValues | None:
    """Allocate the work arrays, or return None if all rows are complete.

    ``codes`` has shape (n_features, n_samples). ``n_cells`` is the maximum number of entries of the drawn CPTs,
    including the prior. ``shape`` is (n_threads, batch_size). If ``is_normalized`` is true, the CPTs with which rows
    are scored sum to one. A missing feature without observed descendants then requires no computation.
    """
    missing = missing_code(codes.dtype)
    is_incomplete_row = (codes == missing).any(axis=0)
    if not is_incomplete_row.any():
        return None
    d = len(n_states)
    belief = np.append(0, np.cumsum(n_states)) * n_classes
    parent, upward, offset = np.empty((3, d), np.intp)
    forest = Forest(parent, upward, n_states, offset, belief)
    return MissingValues(
        is_incomplete_row=is_incomplete_row,
        is_normalized=is_normalized,
        code=missing,
        n_complete=np.zeros(1, np.intp),
        is_missing_feature=np.empty(d, np.bool_),
        is_incomplete_family=np.empty(d, np.bool_),
        batch=np.empty(shape[1], np.int64),
        forest=forest,
        beliefs=make_belief_scratch(forest, n_classes, np.empty(n_cells), is_known=False),
        sample=np.empty(d, codes.dtype),
        cells=np.empty(n_cells),
        d_cells=np.empty(n_cells),
        score=np.empty(n_classes),
        d_score=np.empty(n_classes),
        drawn_start=np.empty(shape, np.int32),
        drawn_choice=np.empty(shape),
    )
