"""Base class of all counts: checks before counts are added, exact sums, equality, and storage in files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.counts.added_noise import AddedNoise
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array
from tanlearn.structures.structures import Structure

__all__ = ["Counts", "check_counts", "check_differences", "sum_dtype"]


class Counts(ABC):
    """Sufficient statistics of encoded rows, which can be added over batches.

    Counts of rows with integer weights, or without weights, are 64-bit integers. They are equal for any partition of
    the rows into batches and any order of merging. A batch with real weights converts them to float64. Subclasses
    implement the counting; this class checks features, classes and overflow before anything changes.
    """

    #: Name in files, or None if files cannot contain such counts.
    kind: ClassVar[str | None] = None
    #: Whether counts of all pairs of features are included, from which structures can be learned.
    has_pairs: ClassVar[bool] = False
    #: (n_features, width) augmenting parents of each feature, -1 for none; None if the counts are not of a structure.
    parents: IntArray | None = None
    #: Noise of all releases in the sum, for differential privacy; empty for exact counts.
    noise: tuple[AddedNoise, ...] = ()

    def __init__(self, n_states: Any, n_classes: int) -> None:
        self.n_states: IntArray = np.asarray(n_states, np.intp)  # (n_features,) number of values of each feature
        self.n_classes = int(n_classes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_states)

    @property
    @abstractmethod
    def class_counts(self) -> AnyArray:
        """Weight of each class. Shape: (n_classes,)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the counts: int64, or float64 after a batch with real weights."""
        return self.class_counts.dtype

    @abstractmethod
    def empty(self) -> Self:
        """Return empty counts that can be added to this instance."""

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> Self:
        """Add the counts of a batch in place.

        Parameters
        ----------
        data : EncodedData
            Batch with the same features and classes.
        n_jobs : int, optional
            Number of threads, as in joblib. Results do not depend on ``n_jobs``.

        Returns
        -------
        Counts
            The updated counts themselves.

        Raises
        ------
        ValueError
            If the batch has other features or classes, the sum of all integer weights would overflow, or the counts
            have noise. The counts are then unchanged.
        """
        if self.noise:
            raise ValueError(
                "counts with noise for privacy cannot be updated, because more rows would be added without noise. "
                "Count all rows first, then release the counts."
            )
        self._check_schema({"n_states": data.n_states, "n_classes": data.n_classes})
        self._count(data, sum_dtype(self.class_counts, data.weights), n_jobs)
        return self

    def merge(self, other: Self) -> Self:
        """Add other counts in place.

        Parameters
        ----------
        other : Counts
            Counts of other rows, of the same class, features and classes. They are not modified.

        Returns
        -------
        Counts
            The updated counts themselves.

        Raises
        ------
        TypeError
            If the other counts are of another type.
        ValueError
            If the other counts have other features, classes or contexts, the sum of all integer weights would overflow,
            or only one of them has noise and both contain rows. The counts are then unchanged.
        """
        if type(other) is not type(self):
            raise TypeError(
                f"counts of type {type(self).__name__} and {type(other).__name__} cannot be added. Use the same "
                f"type for all counts: pairs, or single values."
            )
        self._check_schema(other._schema())
        if bool(self.noise) != bool(other.noise) and self.class_counts.any() and other.class_counts.any():
            raise ValueError(
                "counts with noise cannot be added to counts without noise, because the rows that were counted without "
                "noise would not be protected. Release both, then add them."
            )
        self._add(other, sum_dtype(self.class_counts, other.class_counts))
        self.noise += other.noise
        return self

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Return a dictionary of arrays that contain all counts."""

    def state(self) -> dict[str, Any]:
        """Return the values that a file stores, except the numbers of values and classes.

        Returns
        -------
        dict
            Arrays and other values by name; :meth:`from_state` restores equal counts from them. Arrays are not copied.
        """
        structure = {} if self.parents is None else {"structure": Structure(self.parents)}
        return {**structure, **self.arrays()}

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Self:
        """Restore counts from the output of :meth:`state`; raise ValueError for inconsistent values."""

    def describe(self) -> str:
        """Describe the number and the kind of the counts in words.

        Returns
        -------
        str
        """
        n_counts = sum(array.size for array in self.arrays().values())
        return f"{n_counts:,} counts of values{' and pairs' if self.has_pairs else ''}"

    @abstractmethod
    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the counts of a batch; ``dtype`` is the dtype of the sum."""

    @abstractmethod
    def _add(self, other: Self, dtype: np.dtype[Any]) -> None:
        """Add other counts; ``dtype`` is the dtype of the sum."""

    def _schema(self) -> dict[str, Any]:
        """Return, by name, the values in which counts must agree before they can be added."""
        parents = {} if self.parents is None else {"parents": self.parents}
        return {"n_states": self.n_states, "n_classes": self.n_classes, **parents}

    def _check_schema(self, other: dict[str, Any]) -> None:
        """Raise ValueError if a value differs from the other schema."""
        found = self._difference(other)
        if found is not None:
            raise ValueError(
                f"counts can be added only if features, classes and contexts are the same, but {found}. Encode all "
                f"rows with one encoder, and create all other counts with empty() of the first counts."
            )

    def _difference(self, other: dict[str, Any]) -> str | None:
        """Describe the first difference from another schema, or return None."""
        schema = self._schema()
        for name, there in other.items():
            here = schema[name]
            if here is there or np.array_equal(here, there):
                continue
            if np.shape(here) != np.shape(there):
                return f"{name} has shape {np.shape(here)} here and {np.shape(there)} there"
            place = tuple(np.argwhere(np.not_equal(here, there))[0].tolist())
            return f"{name}{[*place] or ''} is {np.asarray(here)[place]} here and {np.asarray(there)[place]} there"
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) or self._difference(other._schema()) is not None:
            return False
        pairs = zip(self.arrays().values(), other.arrays().values(), strict=True)
        return all(np.array_equal(here, there) for here, there in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_features={self.n_features}, n_classes={self.n_classes}, "
            f"weight={self.class_counts.sum()}, dtype={self.dtype})"
        )


def sum_dtype(class_counts: AnyArray, weights: AnyArray) -> np.dtype[Any]:
    """Return the data type of the sum of counts and weights: int64, or float64 if some of them are real.

    It raises ValueError if a sum of integers could overflow.
    """
    dtype = np.result_type(class_counts.dtype, weights.dtype)
    if dtype.kind == "i":
        # Each count is at most the total, and neither summand overflows by itself.
        total, largest = int(class_counts.sum()) + int(weights.sum()), np.iinfo(np.int64).max
        if total > largest:
            raise ValueError(
                f"the sum of integer weights must be at most {largest}, got {total}. Divide the weights by a common "
                f"factor, or pass them as floating-point numbers."
            )
    return dtype


def check_differences(differences: Iterable[AnyArray], total: float) -> float:
    """Return the largest rounding error of differences of counts: 0 for integers, otherwise 1e-9 of ``total``.

    It raises ValueError if a difference is negative beyond rounding.
    """
    arrays = list(differences)
    rounding = 1e-9 * total if any(array.dtype.kind == "f" for array in arrays) else 0.0
    if min(float(array.min(initial=0)) for array in arrays) < -rounding:
        raise ValueError(
            "subtract would leave negative counts, because the other counts contain rows that these "
            "counts do not contain. Subtract only counts of rows that were added before."
        )
    return rounding


def check_counts(name: str, counts: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return stored counts unchanged. Raise ValueError unless they are int64 or float64 and not negative."""
    dtype = getattr(counts, "dtype", None)
    if dtype not in (np.int64, np.float64):
        raise ValueError(f"{name} must be int64 or float64, got {dtype}.")
    if (check_array(name, counts, dtype, shape) < 0).any():
        raise ValueError(f"{name} must not be negative.")
    return counts
