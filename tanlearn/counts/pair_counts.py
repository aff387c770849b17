"""Sufficient statistics for learning trees: counts of classes, features and pairs. Counts of batches can be added."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tanlearn._memory import check_memory
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn._warnings import warn
from tanlearn.counts.added_noise import AMOUNTS, AddedNoise, read_noise
from tanlearn.counts.counts_base import Counts, check_differences
from tanlearn.counts.mutual_information import class_information, pair_count_information
from tanlearn.counts.packing import WORDS_A_SAMPLE, are_packed, each_child, number_bits
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import DAMAGE, check_array, fields, read_arrays, read_format
from tanlearn.kernels import bits as bit_kernels
from tanlearn.kernels._backends import backend_of
from tanlearn.kernels._cuda import on_device
from tanlearn.structures.table_layout import TableLayout

__all__ = ["PairCounts"]

#: Newest format of bytes that can be read. Exact counts are written in format 1, which earlier versions can read, too.
_FORMAT = 2

# Rows per block of packed samples: 8 kB per value.
_BLOCK = 2**16


class PairCounts(Counts):
    """Counts of classes, and counts of the values of features and of pairs of features in each class.

    Counts of rows with integer weights, or without weights, are 64-bit integers. They are equal for any partition of
    the rows into batches and any order of merging. A batch with real weights converts them to float64. A row is counted
    for a feature only if its value is observed, and for a pair only if both values are observed.

    Parameters
    ----------
    n_states : array-like of shape (n_features,), int
        Number of values of each feature, at least 1.
    n_classes : int
        Number of classes, at least 1.

    Raises
    ------
    ValueError
        If there are no features, a number is not an integer of at least 1, or there are too many counts.
    TableMemoryError
        If the counts exceed the memory limit.

    Examples
    --------
    >>> from tanlearn import PairCounts, EncodedData
    >>> data = EncodedData.from_codes([[0, 1], [1, 2], [1, 0]], [0, 1, 1])
    >>> state = PairCounts(data.n_states, data.n_classes).update(data)
    >>> state.pair(0, 1)[1, 2].tolist()  # x0 = 1 and x1 = 2, in each class
    [0, 1]
    >>> PairCounts.from_bytes(state.to_bytes()) == state
    True
    """

    kind = "CountState"  # the former name of the class
    has_pairs = True

    def __init__(self, n_states: Any, n_classes: int) -> None:
        _check_pair_memory(n_states, n_classes, lambda feature: f"feature {feature}")
        super().__init__(n_states, n_classes)
        self._layout = TableLayout.of_features(self.n_states, self.n_classes)
        child, parent = np.tril_indices(self.n_features, -1)  # pair (i, j < i) has index i (i - 1) / 2 + j
        sizes = self.n_states[child] * self.n_states[parent] * self.n_classes
        self._pair_offset: IntArray = np.append(0, np.cumsum(sizes)).astype(np.intp)
        self._cells: AnyArray = np.zeros(self._layout.n_cells, np.int64)
        self._pairs: AnyArray = np.zeros(self._pair_offset[-1], np.int64)
        #: Feature names, used by structure learners to break ties; not part of the counts and not serialized.
        self.names: Sequence[str] | None = None

    @classmethod
    def of_features(cls, data: EncodedData) -> PairCounts:
        """Return empty counts for the features and classes of encoded rows.

        Parameters
        ----------
        data : EncodedData
            Rows, which are not counted.

        Returns
        -------
        PairCounts

        Raises
        ------
        TableMemoryError
            If the counts exceed the memory limit. The message names the column with the most values.
        """
        _check_pair_memory(data.n_states, data.n_classes, data.label)
        return cls(data.n_states, data.n_classes)

    @property
    def class_counts(self) -> AnyArray:
        """Weight of each class. Shape: (n_classes,)."""
        return self._cells[: self.n_classes]

    @property
    def cells(self) -> AnyArray:
        """Counts of the classes, then of the values of each feature in each class. Shape: (n_cells,)."""
        return self._cells

    @property
    def pairs(self) -> AnyArray:
        """Counts of all pairs, in the order (1, 0), (2, 0), (2, 1), (3, 0), .... Shape: (n_pair_cells,)."""
        return self._pairs

    def feature(self, i: int) -> AnyArray:
        """Return the counts of the values of a feature in each class.

        Parameters
        ----------
        i : int
            Index of the feature.

        Returns
        -------
        ndarray of shape (n_states[i], n_classes)
            View of the counts.

        Raises
        ------
        IndexError
            If the index is out of range.
        """
        self._check_feature(i)
        cells = self._cells[self._layout.offset[i] : self._layout.offset[i + 1]]
        return cells.reshape(-1, self.n_classes)

    def pair(self, i: int, j: int) -> AnyArray:
        """Return the counts of the values of two features in each class.

        Parameters
        ----------
        i, j : int
            Indices of two different features.

        Returns
        -------
        ndarray of shape (n_states[i], n_states[j], n_classes)
            View of the counts.

        Raises
        ------
        IndexError
            If an index is out of range.
        ValueError
            If the features are the same.
        """
        self._check_feature(i)
        self._check_feature(j)
        if i == j:
            raise ValueError(
                f"a pair needs two different features, got {i} twice. Use feature({i}) for the counts of one feature."
            )
        high, low = max(i, j), min(i, j)
        number = high * (high - 1) // 2 + low
        table = self._pairs[self._pair_offset[number] : self._pair_offset[number + 1]]
        table = table.reshape(self.n_states[high], self.n_states[low], self.n_classes)
        return table if i == high else table.swapaxes(0, 1)

    def empty(self) -> PairCounts:
        """Return empty counts of the same features and classes.

        Returns
        -------
        PairCounts
        """
        state = PairCounts(self.n_states, self.n_classes)
        state.names = self.names
        return state

    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the counts of a batch on its ``device``."""
        self._cast(dtype)
        weights = data.weights.astype(dtype, copy=False)
        cells = self._layout.count(data.codes, data.y, weights, data.device)
        self._count_pairs(data, weights, n_jobs)
        self._cells += cells
        self.names = data.names if self.names is None else self.names

    def _add(self, other: PairCounts, dtype: np.dtype[Any]) -> None:
        """Add other counts."""
        self._cast(dtype)
        self._cells += other._cells
        self._pairs += other._pairs

    def subtract(self, other: PairCounts) -> PairCounts:
        """Subtract the counts of a subset of the rows in place, for example the total minus a fold.

        Parameters
        ----------
        other : PairCounts
            Counts of a subset of the rows. It is not modified.

        Returns
        -------
        PairCounts
            The updated counts themselves.

        Raises
        ------
        ValueError
            If the other counts have other features or classes, or contain rows that these counts do not contain, or if
            either has noise. The counts are then unchanged.
        """
        self._check_schema(other._schema())
        if self.noise or other.noise:
            raise ValueError(
                "counts with noise cannot be subtracted, because the exact counts are unknown. Subtract the exact "
                "counts, and add noise to the difference."
            )
        cells, pairs = self._cells - other._cells, self._pairs - other._pairs
        check_differences([cells, pairs], float(self.class_counts.sum()))
        self._cells, self._pairs = np.maximum(cells, 0), np.maximum(pairs, 0)
        return self

    def conditional_mutual_information(self, *, n_jobs: int | None = None) -> FloatArray:
        """Compute I(X_i; X_j | C) of the empirical distribution, in nats.

        Parameters
        ----------
        n_jobs : int, optional
            Number of threads, as in joblib.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Symmetric, unsmoothed information, with the conditional entropies H(X_i | C) on the diagonal. It is exactly
            0 for a constant feature. For integer counts, it is equal on every CPU. The published ``*_mi.npz`` matrices
            are its lower triangle.
        """
        counts = self._layout, self._cells, self._pairs, self._pair_offset
        return pair_count_information(*counts, n_jobs)

    def mutual_information(self) -> FloatArray:
        """Compute I(X_i; C) of the empirical distribution, in nats.

        Returns
        -------
        ndarray of shape (n_features,)
            Unsmoothed information, computed from the rows in which the feature is observed.
        """
        return class_information(self._layout, self._cells)

    def to_bytes(self) -> bytes:
        """Serialize the counts without pickle.

        Returns
        -------
        bytes
            The counts, with the records of their noise.
        """
        buffer = io.BytesIO()
        others: dict[str, Any] = {"n_states": self.n_states, "n_classes": self.n_classes}
        if self.noise:
            others["noise_mechanisms"] = np.array([own.mechanism for own in self.noise])
            others["noise_amounts"] = np.array([[getattr(own, name) for name in AMOUNTS] for own in self.noise])
        np.savez(buffer, tanlearn_counts=_FORMAT if self.noise else 1, **others, **self.state())
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> PairCounts:
        """Load counts that :meth:`to_bytes` serialized.

        Parameters
        ----------
        data : bytes
            Bytes that :meth:`to_bytes` returned.

        Returns
        -------
        PairCounts

        Raises
        ------
        ValueError
            If the bytes are damaged, are not counts, or have a newer format.
        """
        try:
            arrays = read_arrays(data)
            version = read_format(arrays["tanlearn_counts"])
            if version <= _FORMAT:
                n_states, n_classes, cells, pairs = (arrays[k] for k in ("n_states", "n_classes", "cells", "pairs"))
                _check_counts(n_states, n_classes, cells, pairs)
                noise = _read_noise(arrays) if version > 1 else ()
        except DAMAGE as error:
            raise ValueError(f"these {len(data)} bytes are not a valid PairCounts: {error}") from error
        if version > _FORMAT:
            raise ValueError(
                f"the PairCounts has format {version}, but this version reads formats up to {_FORMAT}: "
                "upgrade tanlearn."
            )
        counts = cls.from_state({"cells": cells, "pairs": pairs}, n_states, int(n_classes))
        counts.noise = noise
        return counts

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: Any, n_classes: int) -> PairCounts:
        """Restore counts from the output of :meth:`state`, for example from a file.

        Parameters
        ----------
        state : dict
            ``cells`` and ``pairs``, arrays as in :attr:`cells` and :attr:`pairs`.
        n_states : array-like of shape (n_features,), int
            Number of values of each feature.
        n_classes : int
            Number of classes.

        Returns
        -------
        PairCounts

        Raises
        ------
        ValueError
            If the counts do not fit the numbers of values, or are invalid.
        """
        cells, pairs = fields(state, "cells", "pairs")
        _check_counts(np.asarray(n_states), np.asarray(n_classes), cells, pairs)
        counts = cls(n_states, int(n_classes))
        counts._cells, counts._pairs = cells.copy(), pairs.copy()  # merge and update change them in place
        return counts

    @classmethod
    def restore(cls, n_states: Any, n_classes: int, cells: AnyArray, pairs: AnyArray) -> PairCounts:
        """Restore counts from arrays; deprecated, use :meth:`from_state`.

        Parameters
        ----------
        n_states : array-like of shape (n_features,), int
            Number of values of each feature.
        n_classes : int
            Number of classes.
        cells : ndarray of shape (n_cells,)
            Counts as in :attr:`cells`.
        pairs : ndarray of shape (n_pair_cells,)
            Counts as in :attr:`pairs`.

        Returns
        -------
        PairCounts

        Warns
        -----
        FutureWarning
            Always: the method will be removed in version 0.4.
        """
        warn("PairCounts.restore will be removed in version 0.4: use PairCounts.from_state.", FutureWarning)
        return cls.from_state({"cells": cells, "pairs": pairs}, n_states, n_classes)

    def arrays(self) -> dict[str, AnyArray]:
        """Return all counts, as arrays by name.

        Returns
        -------
        dict
            :attr:`cells` and :attr:`pairs`.
        """
        return {"cells": self._cells, "pairs": self._pairs}

    def _check_feature(self, i: int) -> None:
        """Raise IndexError if the index is out of range; a negative index would select other counts."""
        if not 0 <= i < self.n_features:
            raise IndexError(
                f"there is no feature {i}: features are numbered from 0 to {self.n_features - 1}. Pass "
                f"one of these numbers."
            )

    def _count_pairs(self, data: EncodedData, weights: AnyArray, n_jobs: int | None) -> None:
        """Add the pair counts of a batch on its device, by words of 64 samples if both features have few values."""
        with on_device(data.device):
            self._count_pairs_here(data, weights, n_jobs)

    def _count_pairs_here(self, data: EncodedData, weights: AnyArray, n_jobs: int | None) -> None:
        """Add the pair counts of a batch on the current device."""
        on_cpu, missing = data.device == "cpu", missing_code(data.codes.dtype)
        is_packed = are_packed(data)
        backend = backend_of(data.device)
        arrays = data.codes, data.y, weights, np.arange(self.n_features), self.n_states, self._pair_offset, self._pairs
        codes, y, weights, features, n_states, offset, pairs = backend.put(*arrays)

        # Children share no counts, here and below, so threads do not conflict.
        def count(i: int) -> None:
            others = np.flatnonzero(~is_packed[:i]) if is_packed[i] else features[:i]
            tables = others, n_states, self.n_classes, offset
            backend.kernels.count_pairs(codes, y, weights, i, *tables, missing, pairs)

        if not is_packed.all():
            each_child(count, self.n_features, data.n_samples * self.n_features**2 // 2, n_jobs if on_cpu else 1)
        packed = np.flatnonzero(is_packed)
        for first in range(0, data.n_samples if len(packed) > 1 else 0, _BLOCK):
            self._count_packed(data.codes, first, data.y[first : first + _BLOCK], packed, n_jobs)
        self._pairs = backend.get(pairs)

    def _count_packed(self, codes: Codes, first: int, y: IntArray, features: IntArray, n_jobs: int | None) -> None:
        """Add the pair counts of the packed features in a block of rows."""
        class_word, bit = number_bits(y, self.n_classes)
        start = np.append(0, np.cumsum(self.n_states[features]))
        bits = np.zeros((class_word[-1], start[-1]), np.uint64)
        bit_kernels.pack_values(codes, first, bit, features, start, bits)

        def count(p: int) -> None:
            shared = np.empty((self.n_classes, self.n_states[features[p]], start[p]), np.int64)
            bit_kernels.count_packed_pairs(
                bits, class_word, p, features, start, self.n_classes, self._pair_offset, shared, self._pairs
            )

        each_child(count, len(features), bits.shape[0] * bits.shape[1] ** 2 // (2 * WORDS_A_SAMPLE), n_jobs)

    def _cast(self, dtype: Any) -> None:
        """Convert the counts to a data type."""
        self._cells = self._cells.astype(dtype, copy=False)
        self._pairs = self._pairs.astype(dtype, copy=False)


def _check_pair_memory(n_states: Any, n_classes: Any, label: Callable[[int], str]) -> None:
    """Raise TableMemoryError if the counts of all pairs exceed the memory limit; ``label`` names a feature."""
    n_cells = sum(_sizes(np.asarray(n_states), np.asarray(n_classes)))
    widest = int(np.argmax(n_states))
    check_memory(
        n_cells,
        8 * n_cells,
        0.0,  # the number of rows is unknown with batches
        f"the set of counts of all pairs of {np.size(n_states)} features ({label(widest)} has {n_states[widest]:,} "
        "values)",
        "Merge, discretize or leave out columns with so many values",
    )


def _sizes(n_states: AnyArray, n_classes: AnyArray) -> tuple[int, int]:
    """Validate the numbers of values and return the numbers of cells and of pair cells."""
    for name, values, n_axes in (("n_states", n_states, 1), ("n_classes", n_classes, 0)):
        if values.ndim != n_axes or values.size == 0 or values.dtype.kind not in "iu" or values.min() < 1:
            raise ValueError(
                f"n_states must list at least one feature, and all numbers of values and classes must be integers "
                f"of at least 1, got {name} {values.tolist()}."
            )
    # Python integers do not overflow.
    states, classes = n_states.tolist(), int(n_classes)
    n_cells = classes * (1 + sum(states))
    n_pairs = classes * (sum(states) ** 2 - sum(k * k for k in states)) // 2
    largest = np.iinfo(np.intp).max // np.dtype(np.int64).itemsize
    if n_cells + n_pairs > largest:
        raise ValueError(f"n_states and n_classes require {n_cells + n_pairs} counts, but the limit is {largest}.")
    return n_cells, n_pairs


def _read_noise(arrays: dict[str, AnyArray]) -> tuple[AddedNoise, ...]:
    """Return the records of noise in an archive. Raise ValueError if they are invalid."""
    mechanisms, amounts = arrays["noise_mechanisms"], arrays["noise_amounts"]
    if mechanisms.ndim != 1 or not mechanisms.size:
        raise ValueError("its noise has no mechanism")
    check_array("its noise_amounts", amounts, np.float64, (len(mechanisms), len(AMOUNTS)))
    pairs = zip(mechanisms.tolist(), amounts.tolist(), strict=True)
    return read_noise([{"mechanism": own, **dict(zip(AMOUNTS, row, strict=True))} for own, row in pairs])


def _check_counts(n_states: AnyArray, n_classes: AnyArray, cells: AnyArray, pairs: AnyArray) -> None:
    """Raise ValueError if arrays are not valid counts, before memory is allocated."""
    if (cells.shape, pairs.shape) != tuple((size,) for size in _sizes(n_states, n_classes)):
        raise ValueError("its counts do not fit its n_states and n_classes")
    if cells.dtype != pairs.dtype or cells.dtype not in (np.int64, np.float64):
        raise ValueError(f"its counts are neither int64 nor float64, but {cells.dtype} and {pairs.dtype}")
    if not all(np.isfinite(counts).all() and (counts >= 0).all() for counts in (cells, pairs)):
        raise ValueError("a count is negative or not finite")
