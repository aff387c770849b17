"""What learners learn from: an encoded table with its classes, checked once and trusted afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code

__all__ = ["EncodedData"]


@dataclass(frozen=True, eq=False)
class EncodedData:
    """An encoded table and its classes.

    Learners take this object; estimators make it from whatever a user passes in. Build one from your own
    codes with :meth:`from_codes`, which checks them; the plain constructor trusts its arguments.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples), uint8 or uint16
        Feature-major and C-contiguous, so that one feature is one contiguous run. Codes of feature ``i`` are
        ``0..n_states[i] - 1``, or the largest value of the type for "missing".
    n_states : ndarray of shape (n_features,), intp
        Number of values of every feature.
    y : ndarray of shape (n_samples,), intp
        Class codes ``0..n_classes - 1``.
    n_classes : int
        Number of classes.
    sample_weight : ndarray of shape (n_samples,), int64 or float64, optional
        Weights; integers are counted exactly. ``None`` means one each.

    Examples
    --------
    >>> from tanlearn import EncodedData
    >>> data = EncodedData.from_codes([[0, 1], [1, 2], [1, 0]], [0, 1, 1])
    >>> data
    EncodedData(n_samples=3, n_features=2, n_classes=2, n_states=2..3, weighted=False, missing=False)
    """

    codes: Codes
    n_states: IntArray
    y: IntArray
    n_classes: int
    sample_weight: AnyArray | None = None

    @classmethod
    def from_codes(
        cls,
        codes: Any,
        y: Any,
        *,
        n_states: Any = None,
        n_classes: int | None = None,
        sample_weight: Any = None,
    ) -> EncodedData:
        """Check a table that is encoded already and wrap it.

        Parameters
        ----------
        codes : array-like of shape (n_samples, n_features)
            Integers from 0; -1 means "missing".
        y : array-like of shape (n_samples,)
            Class codes from 0.
        n_states : array-like of shape (n_features,), optional
            Number of values of every feature; by default one more than the largest code seen.
        n_classes : int, optional
            Number of classes; by default one more than the largest class seen.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative finite weights.

        Returns
        -------
        EncodedData

        Raises
        ------
        ValueError
            If shapes do not fit, a code is negative (other than -1) or too large, or a weight is not finite.
        """
        table = np.asarray(codes)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(
                f"codes must have shape (n_samples, n_features) with at least one row and one column, "
                f"got {table.shape}."
            )
        if table.dtype.kind not in "iub":
            raise ValueError(
                f"codes must be integers, got dtype {table.dtype}. Encode raw values with CategoryEncoder first."
            )
        n_samples, _n_features = table.shape
        states = _states(table, n_states)
        labels, classes = _labels(np.asarray(y), n_samples, n_classes)
        dtype = codes_dtype(int(states.max()))
        encoded = np.where(table == -1, missing_code(dtype), table).astype(dtype)
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
            weights = weights.astype(np.int64 if weights.dtype.kind in "iub" else np.float64)
            if weights.shape != (n_samples,) or not np.isfinite(weights).all() or (weights < 0).any():
                raise ValueError(
                    f"sample_weight must hold {n_samples} finite, non-negative numbers, got shape {weights.shape}, "
                    f"smallest {weights.min(initial=0)}."
                )
        return cls(np.ascontiguousarray(encoded.T), states, labels, classes, weights)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.codes.shape[0]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    @property
    def has_missing(self) -> bool:
        """Whether any code is the missing code."""
        return bool((self.codes == missing_code(self.codes.dtype)).any())

    @property
    def weights(self) -> AnyArray:
        """The weights, with ones of integer type where none were given."""
        return np.ones(self.n_samples, np.int64) if self.sample_weight is None else self.sample_weight

    def require_complete(self, learner: str) -> None:
        """Refuse a missing value where a learner cannot use one.

        Parameters
        ----------
        learner : str
            Who refuses, for the message.

        Raises
        ------
        ValueError
            If any code is the missing code.
        """
        features, rows = np.nonzero(self.codes == missing_code(self.codes.dtype))
        if features.size:
            raise ValueError(
                f"{learner} learns from complete rows only, but {features.size} values are missing, the first in "
                f"row {rows.min()}, feature {features[rows.argmin()]}. Impute them, drop the rows, or make "
                f"'missing' a category of its own; prediction does accept missing values."
            )

    def take(self, rows: Any) -> EncodedData:
        """Return the data of some rows.

        Parameters
        ----------
        rows : array-like of int or bool
            Row numbers, or a mask.

        Returns
        -------
        EncodedData
        """
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        codes = np.ascontiguousarray(self.codes[:, rows])
        return replace(self, codes=codes, y=self.y[rows], sample_weight=weight)

    def __repr__(self) -> str:
        return (
            f"EncodedData(n_samples={self.n_samples}, n_features={self.n_features}, n_classes={self.n_classes}, "
            f"n_states={self.n_states.min()}..{self.n_states.max()}, weighted={self.sample_weight is not None}, "
            f"missing={self.has_missing})"
        )


def _states(table: AnyArray, n_states: Any) -> IntArray:
    """Return the number of states of every column after checking the codes against it."""
    n_features = table.shape[1]
    largest = table.max(axis=0).astype(np.intp)
    states = largest + 1 if n_states is None else np.asarray(n_states, dtype=np.intp)
    states = np.maximum(states, 1)
    if states.shape != (n_features,):
        raise ValueError(f"n_states must have one entry per feature ({n_features}), got shape {states.shape}.")
    limit = missing_code(np.uint16)
    for wrong, rule in (
        (table.min(axis=0) < -1, "codes start at 0, and only -1 (missing) may be below"),
        (largest >= states, "codes must be below the feature's n_states"),
        (states > limit, f"at most {limit} states fit the code type"),
    ):
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"codes[:, {j}] holds {table[:, j].min()}..{table[:, j].max()} with n_states {states[j]}: {rule}. "
                f"Encode the column with CategoryEncoder, or discretise it with MDLPDiscretizer."
            )
    return states


def _labels(y: AnyArray, n_samples: int, n_classes: int | None) -> tuple[IntArray, int]:
    """Return class codes and the number of classes after checking them."""
    if y.shape != (n_samples,):
        raise ValueError(f"y must have one class per row ({n_samples}), got shape {y.shape}.")
    if y.dtype.kind not in "iub" or y.min() < 0:
        raise ValueError(f"y must hold class codes from 0, got dtype {y.dtype}, smallest value {y.min()}.")
    classes = int(y.max()) + 1 if n_classes is None else n_classes
    if y.max() >= classes:
        raise ValueError(f"y holds class {y.max()}, but n_classes is {classes} (0..{classes - 1}).")
    return y.astype(np.intp), classes
