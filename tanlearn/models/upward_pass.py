"""Upward pass in trees: the log joint of rows with missing values, at most one augmenting parent per feature.

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
from tanlearn.kernels._cuda import cupy, to_device
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.kernels.mathematics import exp_all, log
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["device_blocks", "log_joint_in_trees", "score_in_blocks", "score_on_device"]

#: Rows per block: the codes and scores of a block stay in the L1 cache.
_BLOCK = 512
#: Bytes that a block of rows may take on a device, and its beliefs once more: about ten times what rows of 256
#: features need to keep a large GPU busy.
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
    probabilities = np.empty_like(cells)
    for i in np.flatnonzero(is_hidden | ((parent >= 0) & is_hidden[parent])).tolist():
        own = slice(layout.offset[i], layout.offset[i + 1])
        exp_all(cells[own], probabilities[own])
    # The minimum is over all CPTs, so that a score does not depend on other rows. (Sums over values must not overflow.)
    lowest = cells.min(initial=-1.0 - log(float(layout.n_states.max())), where=cells > -np.inf)
    most = int(_LOWEST_LOG / lowest)
    start = np.append(0, np.cumsum(layout.n_states)) * layout.n_classes
    upward = np.ascontiguousarray(structure.order[::-1])
    arrays = cells, probabilities, parent, upward, layout.n_states, layout.offset, start
    rules = is_normalized, most, missing
    sizes = len(parent), int(start[-1]), layout.n_classes

    def score(first: int, last: int) -> None:
        count = np.empty(sizes[0], np.intp)
        belief, message, product = (np.empty(n) for n in (sizes[1], np.diff(start).max(), sizes[2]))
        block = np.ascontiguousarray(codes[:, first:last])
        kernels.log_joint_upward(block, *arrays, *rules, count, belief, message, product, scores[first:last])

    if device == "cpu":
        score_in_blocks(score, len(scores), n_jobs)
    else:
        n_workers = max(1, min(len(scores), _DEVICE_BYTES // (8 * sum(sizes))))
        types = np.int64, np.float64, np.float64
        count, belief, product = (cupy().empty((n_workers, n), dtype) for n, dtype in zip(sizes, types, strict=True))
        arguments = *to_device(*arrays), *rules, count, belief, None, product
        score_on_device(cuda_kernels.log_joint_upward, arguments, codes, scores)
    return scores


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
    """Return slices of rows that fit into the memory of a device, at ``row_bytes`` bytes per row."""
    n_rows = max(1, _DEVICE_BYTES // row_bytes)
    return [slice(first, min(first + n_rows, n_samples)) for first in range(0, n_samples, n_rows)]
