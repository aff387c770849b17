"""Log joint and posterior of rows under fitted CPTs, with missing values marginalized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import upward as forests
from tanlearn.kernels._cuda import check_device, cupy, to_device
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.kernels.mathematics import exp_all, log
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.elimination import Eliminator
from tanlearn.network.local_networks import LocalNetworks
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["check_missing", "device_blocks", "log_joint", "log_posterior"]

#: Rows per block: the codes and scores of a block stay in the L1 cache.
_BLOCK = 512
#: Bytes that a block of rows may take on a device, and its beliefs once more: about ten times what rows of 256
#: features need to keep a large GPU busy.
_DEVICE_BYTES = 1 << 28
#: The logarithm of 1e-300, a normal number.
_LOWEST_LOG = -690.0


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

    Integer CPTs are summed as integers. Missing values are marginalized exactly: by one upward pass in a forest, or by
    variable elimination where features have two or more augmenting parents. A row that would take more operations than
    the limit (1e9, or ``TANLEARN_MAX_ROW_OPERATIONS``) raises ValueError if ``is_exact``; otherwise its score is
    approximate, and an InexactMarginalizationWarning names the row.

    Missing values also raise ValueError if the structure has a cycle, or, on "cuda", if a feature has two augmenting
    parents. The result does not depend on ``n_jobs``; scores of complete rows do not depend on the device.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
    """
    check_device(device)
    missing = missing_code(codes.dtype)
    incomplete = codes.max(axis=0, initial=0) == missing  # the missing code is the largest
    if not incomplete.any():
        return _complete(tables, codes, n_jobs, device)
    rows = np.flatnonzero(incomplete)
    check_missing(tables, structure, codes, rows, device)
    scores = np.empty((codes.shape[1], tables.layout.n_classes))
    scores[~incomplete] = _complete(tables, np.ascontiguousarray(codes[:, ~incomplete]), n_jobs, device)
    if isinstance(tables, BackOffTables):
        scores[rows] = LocalNetworks(tables, structure).log_joint(codes, rows, is_exact=is_exact, n_jobs=n_jobs)
    elif (structure.parents[:, 1] >= 0).any():
        eliminator = Eliminator(structure, tables.layout, is_normalized=tables.is_normalized)
        scores[rows] = eliminator.log_joint(codes, rows, tables.cells, is_exact=is_exact, n_jobs=n_jobs)
    else:
        scores[rows] = _incomplete(tables, structure, np.ascontiguousarray(codes[:, rows]), n_jobs, device)
    return scores


def check_missing(tables: Tables, structure: Structure, codes: Codes, rows: IntArray, device: str) -> None:
    """Raise ValueError if missing values cannot be marginalized: in a cycle, or with two parents per feature on "cuda".

    ``rows`` (n_incomplete,) contains the rows with missing values, at least one. The message names the first.
    """
    feature = np.flatnonzero(codes[:, rows[0]] == missing_code(codes.dtype))[0]
    place = f"row {rows[0]} misses feature {feature} (or has a category there that the training data did not contain)"
    if not structure.is_acyclic:
        raise ValueError(
            f"{place}, and this structure has a cycle, so the value cannot be marginalized. Impute it, or use a "
            f"structure that is a tree."
        )
    tables.check_device(device)
    several = np.flatnonzero(structure.parents[:, 1] >= 0)
    if several.size and device != "cpu":
        raise ValueError(
            f"{place}, and feature {several[0]} has several augmenting parents: device={device!r} marginalizes "
            f"in forests only. Use device='cpu', impute it, or use a structure that is a tree."
        )


def device_blocks(n_samples: int, row_bytes: int) -> list[slice]:
    """Return slices of rows that fit into the memory of a device, at ``row_bytes`` bytes per row."""
    n_rows = max(1, _DEVICE_BYTES // row_bytes)
    return [slice(first, min(first + n_rows, n_samples)) for first in range(0, n_samples, n_rows)]


def _complete(tables: Tables, codes: Codes, n_jobs: int | None, device: str) -> FloatArray:
    """Compute the log joint of complete rows, by integer sums if the CPTs are integers."""
    tables.check_device(device)
    scores, missing = np.empty((codes.shape[1], tables.layout.n_classes), tables.sum_dtype), missing_code(codes.dtype)
    if device == "cpu":
        score = tables.scorer(missing)
        _share(lambda first, last: score(codes, first, scores[first:last]), len(scores), n_jobs)
    else:
        arrays = tables.scoring_cells, *tables.layout.arrays(), np.arange(len(tables))
        _hand_over(cuda_kernels.log_joint, (0, *to_device(*arrays), missing, None), codes, scores)
    return tables.decode(scores)


def _incomplete(tables: Tables, structure: Structure, codes: Codes, n_jobs: int | None, device: str) -> FloatArray:
    """Compute the log joint of rows with missing values by an upward pass in the forest."""
    layout, parent, missing = tables.layout, structure.parent, missing_code(codes.dtype)
    scores = np.empty((codes.shape[1], layout.n_classes))
    is_hidden = (codes == missing).any(axis=1)
    probabilities = np.empty_like(tables.cells)
    for i in np.flatnonzero(is_hidden | ((parent >= 0) & is_hidden[parent])).tolist():
        exp_all(tables[i].ravel(), probabilities[layout.offset[i] : layout.offset[i + 1]])
    # The minimum is over all CPTs, so that a score does not depend on other rows. (Sums over values must not overflow.)
    lowest = tables.cells.min(initial=-1.0 - log(float(layout.n_states.max())), where=tables.cells > -np.inf)
    most = int(_LOWEST_LOG / lowest)
    start = np.append(0, np.cumsum(layout.n_states)) * layout.n_classes
    upward = np.ascontiguousarray(structure.order[::-1])
    arrays = tables.cells, probabilities, parent, upward, layout.n_states, layout.offset, start
    rules = tables.is_normalized, most, missing
    sizes = len(parent), int(start[-1]), layout.n_classes

    def score(first: int, last: int) -> None:
        count = np.empty(sizes[0], np.intp)
        belief, message, product = (np.empty(n) for n in (sizes[1], np.diff(start).max(), sizes[2]))
        block = np.ascontiguousarray(codes[:, first:last])
        forests.log_joint_upward(block, *arrays, *rules, count, belief, message, product, scores[first:last])

    if device == "cpu":
        _share(score, len(scores), n_jobs)
    else:
        n_workers = max(1, min(len(scores), _DEVICE_BYTES // (8 * sum(sizes))))
        types = np.int64, np.float64, np.float64
        count, belief, product = (cupy().empty((n_workers, n), dtype) for n, dtype in zip(sizes, types, strict=True))
        arguments = *to_device(*arrays), *rules, count, belief, None, product
        _hand_over(cuda_kernels.log_joint_upward, arguments, codes, scores)
    return scores


def _share(score: Callable[[int, int], None], n_samples: int, n_jobs: int | None) -> None:
    """Score the samples in blocks, in threads if there are at least two full blocks."""
    in_blocks(score, n_samples, _BLOCK, n_jobs if n_samples >= 2 * _BLOCK else 1)


def _hand_over(kernel: Callable[..., None], arguments: tuple[Any, ...], codes: Codes, scores: AnyArray) -> None:
    """Run a device kernel block by block and copy the scores back."""
    n_samples, n_classes = scores.shape
    for rows in device_blocks(n_samples, len(codes) * codes.itemsize + n_classes * scores.itemsize):
        (block,) = to_device(codes[:, rows])
        found = cupy().empty((block.shape[1], n_classes), scores.dtype)
        kernel(block, *arguments, found)
        scores[rows] = found.get()


def log_posterior(scores: FloatArray) -> FloatArray:
    """Compute log p(class | observed features) from the log joint.

    A row of -inf gets the uniform posterior. (Classifiers use the class probabilities there instead.)

    Shapes: scores, result: (n_samples, n_classes).
    """
    top = scores.max(axis=1, keepdims=True)
    shifted = np.where(np.isneginf(top), 0.0, scores - np.where(np.isneginf(top), 0.0, top))
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
