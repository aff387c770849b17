"""Upward pass in trees: the log joint of rows with missing values, for at most one augmenting parent per feature.

Each feature sends its parent one message per value: the sum of its own probabilities times the messages that it
received. A pass from the leaves to the roots therefore marginalizes all missing features of a row exactly, in
O(n_states^2) operations per missing feature. The kernel is in ``kernels/upward.py``.

Shapes: codes (n_features, n_samples), scores (n_samples, n_classes), cells (n_cells,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.kernels import upward as kernels
from tanlearn.kernels._cuda import cupy, on_device, to_device
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.kernels.mathematics import exp_all, log
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["UpwardPass", "device_blocks", "log_joint_in_trees", "score_in_blocks", "score_on_device"]

#: Rows per block: the codes and scores of a block stay in the L1 cache.
_BLOCK = 512
#: Maximum number of bytes of a block of rows on a device. Its beliefs may take as many again. With 256 features, about
#: a tenth of this keeps a large GPU busy.
_DEVICE_BYTES = 1 << 28
#: The logarithm of 1e-300, a normal number.
_LOWEST_LOG = -690.0


def log_joint_in_trees(
    structure: Structure,
    layout: TableLayout,
    cells: FloatArray,
    codes: Codes,
    *,
    is_normalized: bool,
    n_jobs: int | None,
    device: str,
) -> FloatArray:
    """Compute the log joint of rows with missing values by an upward pass."""
    parent, missing = structure.parent, missing_code(codes.dtype)
    scores = np.empty((codes.shape[1], layout.n_classes))
    is_hidden = (codes == missing).any(axis=1)
    is_used = is_hidden | ((parent >= 0) & is_hidden[parent])
    prepared = UpwardPass(structure, layout, cells, is_normalized=is_normalized, is_used=is_used)
    if device == "cpu":
        score_in_blocks(
            lambda first, last: prepared.score(codes[:, first:last], scores[first:last]), len(scores), n_jobs
        )
    else:
        with on_device(device):
            prepared.score_on_device(codes, scores)
    return scores


class UpwardPass:
    """Upward pass of a tree; all quantities that do not depend on the rows are computed in advance.

    ``is_used`` (n_features,) masks the CPTs that may be used: CPTs of features that are missing, or whose parent is
    missing, in some row. By default, all CPTs may be used.
    """

    def __init__(
        self,
        structure: Structure,
        layout: TableLayout,
        cells: FloatArray,
        *,
        is_normalized: bool,
        is_used: AnyArray | None = None,
    ) -> None:
        probabilities = np.empty_like(cells)
        for i in range(layout.n_tables) if is_used is None else np.flatnonzero(is_used).tolist():
            own = slice(layout.offset[i], layout.offset[i + 1])
            exp_all(cells[own], probabilities[own])
        # The minimum is over all CPTs, so that a score does not depend on other rows. (Sums over values must not
        # overflow.)
        lowest = cells.min(initial=-1.0 - log(float(layout.n_states.max())), where=cells > -np.inf)
        self._rules = is_normalized, int(_LOWEST_LOG / lowest)
        start = np.append(0, np.cumsum(layout.n_states)) * layout.n_classes
        upward = np.ascontiguousarray(structure.order[::-1])
        self._arrays = cells, probabilities, structure.parent, upward, layout.n_states, layout.offset, start
        self._sizes = layout.n_tables, int(start[-1]), layout.n_classes
        self._most_message = int(np.diff(start).max())

    def score(self, codes: Codes, scores: FloatArray) -> None:
        """Write the log joint of rows, on the CPU; safe across threads.

        Shapes: codes: (n_features, n_rows); scores: (n_rows, n_classes).
        """
        count = np.empty(self._sizes[0], np.intp)
        belief, message, product = np.empty(self._sizes[1]), np.empty(self._most_message), np.empty(self._sizes[2])
        block = np.ascontiguousarray(codes)
        rules = *self._rules, missing_code(codes.dtype)
        kernels.log_joint_upward(block, *self._arrays, *rules, count, belief, message, product, scores)

    def score_on_device(self, codes: Codes, scores: FloatArray) -> None:
        """Write the log joint of rows, on the current CUDA device.

        Shapes: codes: (n_features, n_rows); scores: (n_rows, n_classes).
        """
        n_workers = max(1, min(len(scores), _DEVICE_BYTES // (8 * sum(self._sizes))))
        types = np.int64, np.float64, np.float64
        count, belief, product = (
            cupy().empty((n_workers, n), dtype) for n, dtype in zip(self._sizes, types, strict=True)
        )
        rules = *self._rules, missing_code(codes.dtype)
        arguments = *to_device(*self._arrays), *rules, count, belief, None, product
        score_on_device(cuda_kernels.log_joint_upward, arguments, codes, scores)


def score_in_blocks(score: Callable[[int, int], None], n_samples: int, n_jobs: int | None) -> None:
    """Score the samples in blocks, in threads if there are at least two full blocks."""
    in_blocks(score, n_samples, _BLOCK, n_jobs if n_samples >= 2 * _BLOCK else 1)


def score_on_device(kernel: Callable[..., None], arguments: tuple[Any, ...], codes: Codes, scores: AnyArray) -> None:
    """Run a device kernel block by block and copy the scores back."""
    n_samples, n_classes = scores.shape
    for rows in device_blocks(n_samples, len(codes) * codes.itemsize + n_classes * scores.itemsize):
        (block,) = to_device(codes[:, rows])
        found = cupy().empty((block.shape[1], n_classes), scores.dtype)
        kernel(block, *arguments, found)
        scores[rows] = found.get()


def device_blocks(n_samples: int, row_bytes: int) -> list[slice]:
    """Return slices of rows that fit in the memory of a device, with ``row_bytes`` bytes per row."""
    n_rows = max(1, _DEVICE_BYTES // row_bytes)
    return [slice(first, min(first + n_rows, n_samples)) for first in range(0, n_samples, n_rows)]
