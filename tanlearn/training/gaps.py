"""Working memory of the fused steps for rows with missing values."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, IntArray, missing_code
from tanlearn.kernels.gaps import Forest
from tanlearn.kernels.train import Gaps
from tanlearn.network.gaps import forest_work

__all__ = ["make_gaps"]


def make_gaps(
    codes: AnyArray, n_states: IntArray, n_classes: int, n_cells: int, shape: tuple[int, int], *, is_normalized: bool
) -> Gaps | None:
    """Allocate the working memory for missing values, or return None if all rows are complete.

    ``codes`` is (n_features, n_samples). ``n_cells`` is the maximum number of entries of the drawn CPTs, prior
    included. ``shape`` is (n_threads, batch_size). ``is_normalized`` means that the scoring CPTs sum to one: a
    missing feature without observed descendants then needs no computation.
    """
    missing = missing_code(codes.dtype)
    is_incomplete = (codes == missing).any(axis=0)
    if not is_incomplete.any():
        return None
    d = len(n_states)
    belief = np.append(0, np.cumsum(n_states)) * n_classes
    parent, upward, offset = np.empty((3, d), np.intp)
    forest = Forest(parent, upward, n_states, offset, belief)
    return Gaps(
        is_incomplete=is_incomplete,
        is_normalized=is_normalized,
        missing=missing,
        n_complete=np.zeros(1, np.intp),
        is_missed=np.empty(d, np.bool_),
        is_touched=np.empty(d, np.bool_),
        batch=np.empty(shape[1], np.int64),
        forest=forest,
        work=forest_work(forest, n_classes, np.empty(n_cells), is_known=False),
        sample=np.empty(d, codes.dtype),
        cells=np.empty(n_cells),
        d_cells=np.empty(n_cells),
        score=np.empty(n_classes),
        d_score=np.empty(n_classes),
        drawn_start=np.empty(shape, np.int32),
        drawn=np.empty(shape),
    )
