"""Sufficient statistics that add up: class, feature and pair counts of any number of batches."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tanlearn._typing import AnyArray, FloatArray, IntArray, missing_code
from tanlearn.encoded_data import EncodedData
from tanlearn.kernels import counts as kernels
from tanlearn.tables import MAX_PARENTS, TableLayout

__all__ = ["CountState"]

_FORMAT = 1


class CountState:
    """Class, class-conditional feature and class-conditional pair counts of a table.

    Counts of unweighted or integer-weighted rows are 64-bit integers: whatever the partition of the rows and the
    order of merging, the state is the same to the last bit. A batch with real weights turns them into
    float64. A sample counts for a feature or pair only where it is not missing there.

    Parameters
    ----------
    n_states : array-like of shape (n_features,)
        Number of values of every feature.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> from tanlearn import CountState, EncodedData
    >>> data = EncodedData.from_codes([[0, 1], [1, 2], [1, 0]], [0, 1, 1])
    >>> state = CountState(data.n_states, data.n_classes).update(data)
    >>> state.pair(0, 1)[1, 2].tolist()  # x0 = 1 and x1 = 2, in each class
    [0, 1]
    >>> CountState.from_bytes(state.to_bytes()) == state
    True
    """

    def __init__(self, n_states: Any, n_classes: int) -> None:
        self.n_states: IntArray = np.asarray(n_states, dtype=np.intp)
        self.n_classes = int(n_classes)
        if self.n_states.ndim != 1 or self.n_states.size == 0 or self.n_states.min() < 1 or self.n_classes < 1:
            raise ValueError("n_states must list at least one feature; every feature and the class need a value.")
        none = np.full((self.n_features, MAX_PARENTS), -1, np.intp)
        self._layout = TableLayout.of_parents(none, self.n_states, self.n_classes)
        child, parent = np.tril_indices(self.n_features, -1)  # pair (i, j < i) is number i (i - 1) / 2 + j
        sizes = self.n_states[child] * self.n_states[parent] * self.n_classes
        self._pair_offset: IntArray = np.append(0, np.cumsum(sizes)).astype(np.intp)
        self._cells: AnyArray = np.zeros(self._layout.n_cells, np.int64)
        self._pairs: AnyArray = np.zeros(self._pair_offset[-1], np.int64)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_states.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the counts: int64, or float64 once a batch had real weights."""
        return self._cells.dtype

    @property
    def class_counts(self) -> AnyArray:
        """Weight of every class, shape (n_classes,)."""
        return self._cells[: self.n_classes]

    def feature(self, i: int) -> AnyArray:
        """Return the counts of one feature's values within each class.

        Parameters
        ----------
        i : int
            The feature.

        Returns
        -------
        ndarray of shape (n_states[i], n_classes)
            A view.
        """
        cells = self._cells[self._layout.offset[i] : self._layout.offset[i + 1]]
        return cells.reshape(-1, self.n_classes)

    def pair(self, i: int, j: int) -> AnyArray:
        """Return the counts of two features' values within each class.

        Parameters
        ----------
        i, j : int
            Two different features.

        Returns
        -------
        ndarray of shape (n_states[i], n_states[j], n_classes)
            A view.

        Raises
        ------
        ValueError
            If the features are the same.
        """
        if i == j:
            raise ValueError(f"a pair needs two different features, got {i} twice. Use feature({i}).")
        high, low = max(i, j), min(i, j)
        number = high * (high - 1) // 2 + low
        table = self._pairs[self._pair_offset[number] : self._pair_offset[number + 1]]
        table = table.reshape(self.n_states[high], self.n_states[low], self.n_classes)
        return table if i == high else table.swapaxes(0, 1)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> CountState:
        """Add the counts of a batch.

        Parameters
        ----------
        data : EncodedData
            A batch with the same features and classes.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        CountState
            Itself.

        Raises
        ------
        ValueError
            If the batch has other features or classes.
        """
        self._check_same(data.n_states, data.n_classes)
        weights = data.weights
        self._cast(np.result_type(self.dtype, weights.dtype))
        weights = weights.astype(self.dtype, copy=False)
        self._cells += self._layout.count(data.codes, data.y, weights)
        missing = missing_code(data.codes.dtype)
        # Child by child, the longest first, each with its own block of pairs: no two threads share a cell.
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(kernels.count_pairs)(
                data.codes, data.y, weights, i, self.n_states, self.n_classes, self._pair_offset, missing, self._pairs
            )
            for i in range(self.n_features - 1, 0, -1)
        )
        return self

    def merge(self, other: CountState) -> CountState:
        """Add the counts of another state of the same table.

        Parameters
        ----------
        other : CountState
            Left as it is.

        Returns
        -------
        CountState
            Itself.

        Raises
        ------
        ValueError
            If the other state is of other features or classes.
        """
        self._check_same(other.n_states, other.n_classes)
        self._cast(np.result_type(self.dtype, other.dtype))
        self._cells += other._cells
        self._pairs += other._pairs
        return self

    def subtract(self, other: CountState) -> CountState:
        """Take away the counts of rows that are part of this state: total minus fold.

        Parameters
        ----------
        other : CountState
            Counts of a part of the rows; left as it is.

        Returns
        -------
        CountState
            Itself.

        Raises
        ------
        ValueError
            If the other state is of other features or classes, or holds rows that this one does not; nothing is
            changed then.
        """
        self._check_same(other.n_states, other.n_classes)
        self._cast(np.result_type(self.dtype, other.dtype))
        if self.dtype.kind == "i" and ((self._cells < other._cells).any() or (self._pairs < other._pairs).any()):
            raise ValueError("subtract would leave negative counts: the other state holds rows that this one does not.")
        self._cells -= other._cells
        self._pairs -= other._pairs
        return self

    def conditional_mutual_information(self, *, n_jobs: int | None = None) -> FloatArray:
        """Return I(X_i; X_j | C) of the empirical distribution, in nats.

        Parameters
        ----------
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Symmetric, with the conditional entropies H(X_i | C) on the diagonal, unsmoothed. (The published
            ``*_mi.npz`` matrices are the lower triangle of it.)
        """
        information = np.zeros((self.n_features, self.n_features))
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(kernels.pairwise_information)(
                self._pairs, self.n_states, self.n_classes, self._pair_offset, i, information[i]
            )
            for i in range(self.n_features - 1, 0, -1)
        )
        information += information.T
        for i in range(self.n_features):
            # I(X; X | C) = H(X | C): the pair table of a feature with itself is diagonal.
            values = self.feature(i)
            own = np.zeros((len(values), len(values), self.n_classes), self.dtype)
            own[np.arange(len(values)), np.arange(len(values))] = values
            information[i, i] = kernels.conditional_mutual_information(
                own.ravel(), len(values), len(values), self.n_classes
            )
        return information

    def to_bytes(self) -> bytes:
        """Return the state as bytes, to be stored or sent; no pickle is involved.

        Returns
        -------
        bytes
        """
        buffer = io.BytesIO()
        np.savez(
            buffer,
            tanlearn_counts=_FORMAT,
            n_states=self.n_states,
            n_classes=self.n_classes,
            cells=self._cells,
            pairs=self._pairs,
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> CountState:
        """Return the state that :meth:`to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            What :meth:`to_bytes` returned.

        Returns
        -------
        CountState

        Raises
        ------
        ValueError
            If the bytes are damaged, of something else, or of a newer format.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                fields = {name: file[name] for name in file.files}
            version = int(fields["tanlearn_counts"])
            state = cls(fields["n_states"], int(fields["n_classes"]))
            cells, pairs = fields["cells"], fields["pairs"]
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"these {len(data)} bytes are no (or a damaged) CountState: {error}") from error
        if version > _FORMAT:
            raise ValueError(
                f"the CountState has format {version}, this version reads up to {_FORMAT}: upgrade tanlearn."
            )
        known = cells.dtype == pairs.dtype and cells.dtype in (np.int64, np.float64)
        if not known or cells.shape != state._cells.shape or pairs.shape != state._pairs.shape:
            raise ValueError("the CountState's counts do not fit its n_states and n_classes: the bytes are damaged.")
        state._cells, state._pairs = cells, pairs
        return state

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CountState)
            and np.array_equal(self.n_states, other.n_states)
            and np.array_equal(self._cells, other._cells)
            and np.array_equal(self._pairs, other._pairs)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"CountState(n_features={self.n_features}, n_classes={self.n_classes}, "
            f"weight={self.class_counts.sum()}, dtype={self.dtype})"
        )

    def _cast(self, dtype: Any) -> None:
        """Change the type of the counts."""
        self._cells = self._cells.astype(dtype, copy=False)
        self._pairs = self._pairs.astype(dtype, copy=False)

    def _check_same(self, n_states: IntArray, n_classes: int) -> None:
        """Refuse counts of another table."""
        if not np.array_equal(self.n_states, n_states) or self.n_classes != n_classes:
            raise ValueError(
                f"counts add up only over one and the same table: this state has {self.n_classes} classes and "
                f"n_states {self.n_states.tolist()}, the other {n_classes} and {np.asarray(n_states).tolist()}."
            )
