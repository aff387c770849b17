"""Encoded training data with class codes and weights, validated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.cut_points import OtherFeatures
from tanlearn.encoding.raw_numbers import RawNumbers, joined_numbers
from tanlearn.kernels._cuda import check_device_name
from tanlearn.sources.validation import read_weights

__all__ = ["EncodedData", "joined", "name_order", "recoded"]


@dataclass(frozen=True, eq=False)
class EncodedData:
    """Encoded features and class codes, which are the input of all learners.

    Estimators build this object from user data. To build it from your own codes, use :meth:`from_codes`, which
    validates them. The constructor does not.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples), uint8 or uint16
        Feature-major, C-contiguous array, in which the codes of each feature are contiguous. Codes of feature ``i`` are
        ``0..n_states[i] - 1``, or the largest value of the type for a missing value.
    n_states : ndarray of shape (n_features,), intp
        Number of categories or intervals of every feature.
    y : ndarray of shape (n_samples,), intp
        Class codes ``0..n_classes - 1``.
    n_classes : int
        Number of classes.
    sample_weight : ndarray of shape (n_samples,), int64 or float64, optional
        Weights of the rows. Integer weights are counted exactly. ``None`` means a weight of 1 for every row.
    places : tuple of str, optional
        Name of every feature in messages, such as ``"X column 'age'"``. The default is the feature index.
    row_numbers : ndarray of shape (n_samples,), optional
        Number of every row in the user's data, for messages.
    device : {"cpu", "cuda", "cuda:0", "cuda:1", ...}, default="cpu"
        Device for learners that support it. "cuda" is the first GPU, or the current device of CuPy.
    is_ordered : ndarray of shape (n_features,), bool, optional
        Mask of the features whose codes are ordered: intervals, integers and ordered categories. ``None`` means that no
        feature is known to be ordered. Only a few learners use this mask.
    names : sequence of str, optional
        Feature names. Structure learners use them to break ties, so that results do not depend on the order of the
        columns. Without names, ties are broken by the lowest feature index.
    base_weight : ndarray of shape (n_samples,), int64 or float64, optional
        Weights before multiplication by class weights, which are used for discretization. ``None`` means that they are
        equal to ``sample_weight``.
    raw : RawNumbers, optional
        Values of the discretized features, to which :meth:`split` fits cut points for each fold. ``None`` if cut points
        do not depend on classes.
    has_missing_category : ndarray of shape (n_features,), bool, optional
        Mask of the features whose last code is a category for missing values, which has no position in the order of the
        other codes. ``None`` means that no feature has this category.

    Raises
    ------
    ValueError
        If ``device`` is not "cpu", "cuda" or "cuda:" and a number.

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
    places: tuple[str, ...] | None = None
    row_numbers: IntArray | None = None
    device: str = "cpu"
    is_ordered: AnyArray | None = None
    names: Sequence[str] | None = None
    base_weight: AnyArray | None = None
    raw: RawNumbers | None = None
    has_missing_category: AnyArray | None = None

    def __post_init__(self) -> None:
        check_device_name(self.device)

    @classmethod
    def from_codes(
        cls,
        codes: Any,
        y: Any,
        *,
        n_states: Any = None,
        n_classes: int | None = None,
        sample_weight: Any = None,
        is_ordered: Any = None,
        has_missing_category: Any = None,
    ) -> EncodedData:
        """Build encoded data from integer codes after validating them.

        Parameters
        ----------
        codes : array-like of shape (n_samples, n_features)
            Integers from 0, or -1 for a missing value.
        y : array-like of shape (n_samples,)
            Class codes from 0.
        n_states : array-like of shape (n_features,), int, optional
            Number of categories of every feature, from 1 to 65,535. The default is the largest code plus 1.
        n_classes : int, optional
            Number of classes. The default is the largest class code plus 1.
        sample_weight : array-like of shape (n_samples,), float, or None
            Finite, non-negative weights, not all zero. A scalar is the weight of every row.
        is_ordered : array-like of shape (n_features,), bool, or bool, optional
            Mask of the features whose codes are ordered, or ``True`` for all features.
        has_missing_category : array-like of shape (n_features,), bool, or bool, optional
            Mask of the features whose last code is a category for missing values, or ``True`` for all features.

        Returns
        -------
        EncodedData

        Raises
        ------
        ValueError
            If shapes do not match, codes, classes or ``n_states`` are not integers, a code is negative (other than -1)
            or too large, ``is_ordered`` or ``has_missing_category`` is not boolean, ``has_missing_category`` is true
            for a feature with a single value, or the weights are negative, not finite, all zero, or overflow when
            summed.
        """
        table = np.asarray(codes)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(
                f"codes must have shape (n_samples, n_features) with at least one row and one column, "
                f"got {table.shape}."
            )
        if table.dtype.kind not in "iub":
            raise ValueError(
                f"codes must be integers, got dtype {table.dtype}. Encode raw values with CategoryEncoder."
            )
        n_samples = table.shape[0]
        states = _states(table, n_states)
        labels, classes = _labels(np.asarray(y), n_samples, n_classes)
        dtype = codes_dtype(int(states.max()))
        encoded = np.where(table == -1, missing_code(dtype), table).astype(dtype)
        weights = read_weights(sample_weight, n_samples)
        ordered = _read_mask("is_ordered", is_ordered, table.shape[1])
        with_missing = _read_mask("has_missing_category", has_missing_category, table.shape[1])
        rows = np.ascontiguousarray(encoded.T), states, labels, classes, weights
        if with_missing is not None and (alone := np.flatnonzero(with_missing & (states < 2))).size:
            raise ValueError(
                f"has_missing_category is True for feature {alone[0]}, which has a single value. The category of "
                f"missing values needs another value in its feature: set n_states to at least 2, or the mask to False."
            )
        return cls(*rows, is_ordered=ordered, has_missing_category=with_missing)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.codes.shape[0]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    @property
    def by_name(self) -> IntArray:
        """Feature indices sorted by name, or in their own order without names."""
        return name_order(self.names, self.n_features)

    @property
    def is_incomplete(self) -> AnyArray:
        """Mask of the rows that have missing values. Shape: (n_samples,)."""
        incomplete: AnyArray = (self.codes == missing_code(self.codes.dtype)).any(axis=0)
        return incomplete

    @property
    def has_missing(self) -> bool:
        """True if any value is missing."""
        return bool(self.is_incomplete.any())

    @property
    def weights(self) -> AnyArray:
        """Row weights. If no weights were given, all of them are the integer 1."""
        return np.ones(self.n_samples, np.int64) if self.sample_weight is None else self.sample_weight

    @property
    def base_weights(self) -> AnyArray:
        """Row weights before multiplication by class weights."""
        return self.weights if self.base_weight is None else self.base_weight

    def label(self, feature: int) -> str:
        """Return the name of a feature in messages.

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        str
            The name of the column, or "feature" and the index.
        """
        return f"feature {feature}" if self.places is None else self.places[feature]

    def widest(self) -> str:
        """Return a phrase about the feature with the most values, for messages.

        Returns
        -------
        str
            For example "X column 'zip' has 8,000".
        """
        feature = int(np.argmax(self.n_states))
        return f"{self.label(feature)} has {self.n_states[feature]:,}"

    def require_complete(self, learner: str) -> None:
        """Raise ValueError if any value is missing.

        Parameters
        ----------
        learner : str
            Name of the learner that needs complete rows, which is used in the message.

        Raises
        ------
        ValueError
            If any value is missing.
        """
        features, rows = np.nonzero(self.codes == missing_code(self.codes.dtype))
        if features.size:
            first = rows.argmin()
            row = rows[first] if self.row_numbers is None else self.row_numbers[rows[first]]
            label = self.label(features[first])
            raise ValueError(
                f"{learner} learns from complete rows only, but {features.size} values are missing, the first of "
                f"{label} in row {row}. Impute them, drop the rows, or give missing values their own category with "
                f"encoder=TableEncoder(handle_missing='category'). Rows to predict may have missing values."
            )

    def take(self, rows: Any) -> EncodedData:
        """Return the data of the given rows.

        Parameters
        ----------
        rows : array-like of shape (n_taken,), int, or of shape (n_samples,), bool
            Row numbers, counted from 0, in any order and possibly repeated, or a mask.

        Returns
        -------
        EncodedData
            Copies of these rows, in this order. ``n_states``, ``n_classes`` and the device are unchanged.

        Raises
        ------
        IndexError
            If a row number is out of range, or a mask has the wrong length.
        """
        return replace(
            self,
            codes=np.ascontiguousarray(self.codes[:, rows]),
            y=self.y[rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            row_numbers=None if self.row_numbers is None else self.row_numbers[rows],
            base_weight=None if self.base_weight is None else self.base_weight[rows],
            raw=None if self.raw is None else self.raw.take(rows),
        )

    def split(self, held_out: Any) -> tuple[EncodedData, EncodedData]:
        """Split into training rows and held-out rows, with cut points fitted to the training rows only.

        If cut points depend on classes, they must not be fitted to held-out rows, because these rows would otherwise be
        predicted too well. The number of intervals of a discretized feature may therefore differ between folds.
        Categories are the same in all folds.

        Parameters
        ----------
        held_out : ndarray of shape (n_samples,), bool
            Mask of the held-out rows.

        Returns
        -------
        rest, held : EncodedData
            Training rows and held-out rows.
        """
        rest, held = self.take(~held_out), self.take(held_out)
        if rest.raw is None or held.raw is None or len(np.unique(rest.y[rest.weights > 0])) < 2:
            return rest, held
        features = rest.raw.features
        discretizer = rest.raw.fit(rest.y, rest.base_weights, partial(rest._categorical, features))
        n_states = self.n_states.copy()
        n_states[features] = discretizer.n_states_
        with_missing = np.zeros(0, np.intp)
        if self.has_missing_category is not None:
            with_missing = np.flatnonzero(self.has_missing_category[features])
            n_states[features[with_missing]] += 1
        dtype = codes_dtype(int(n_states.max()))

        def encoded(data: EncodedData, raw: RawNumbers) -> EncodedData:
            codes: AnyArray = recoded(data.codes, dtype)
            own, values = recoded(raw.encode(discretizer), dtype), raw.values
            for k in with_missing.tolist():
                own[k, np.isnan(values[k])] = n_states[features[k]] - 1
            codes[features] = own
            return replace(data, codes=codes, n_states=n_states)

        return encoded(rest, rest.raw), encoded(held, held.raw)

    def _categorical(self, discretized: IntArray) -> OtherFeatures:
        """Return the codes of the features that are not discretized, without their categories of missing values."""
        n_values = self.n_states if self.has_missing_category is None else self.n_states - self.has_missing_category
        others = np.setdiff1d(np.arange(self.n_features), discretized)
        return OtherFeatures(self.codes[others], n_values[others])

    def class_totals(self) -> FloatArray:
        """Sum the weights of the rows of each class, after rescaling by :meth:`in_whole_rows`.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        found: FloatArray = np.bincount(self.y, self.in_whole_rows().weights, self.n_classes).astype(np.float64)
        return found

    def in_whole_rows(self) -> EncodedData:
        """Rescale weights with a mean below 1 to a mean of 1, for learners with an iterative search.

        The mean excludes rows of weight 0. Rows of small weight (1e-3 each, or 1 in total) would hardly affect the
        smoothed start, and would make the first step very short. With weights below 1e-160, line searches would fail.

        Returns
        -------
        EncodedData
            The data itself, or a copy with the weights divided by their mean.
        """
        mean = self.weights[self.weights > 0].mean()
        return self if mean >= 1 else replace(self, sample_weight=self.weights / mean)

    def present(self) -> EncodedData:
        """Return the rows of positive weight, because rows of weight 0 must have no effect, not even on the last bit.

        Returns
        -------
        EncodedData
            The same object if all weights are positive.
        """
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def take_features(self, features: Any) -> EncodedData:
        """Return the data of the given features.

        Parameters
        ----------
        features : array-like of shape (n_taken,), int
            Feature indices.

        Returns
        -------
        EncodedData
        """
        places = None if self.places is None else tuple(self.places[i] for i in features)
        ordered, with_missing = (
            None if mask is None else mask[features] for mask in (self.is_ordered, self.has_missing_category)
        )
        names = None if self.names is None else tuple(self.names[i] for i in features)
        raw = None if self.raw is None else self.raw.take_features(features)
        codes, states = np.ascontiguousarray(self.codes[features]), self.n_states[features]
        masks: dict[str, Any] = {"is_ordered": ordered, "has_missing_category": with_missing}
        return replace(self, codes=codes, n_states=states, places=places, names=names, raw=raw, **masks)

    def __repr__(self) -> str:
        return (
            f"EncodedData(n_samples={self.n_samples}, n_features={self.n_features}, n_classes={self.n_classes}, "
            f"n_states={self.n_states.min()}..{self.n_states.max()}, weighted={self.sample_weight is not None}, "
            f"missing={self.has_missing})"
        )


def _states(table: AnyArray, n_states: Any) -> IntArray:
    """Validate the codes, and return the number of states of each column."""
    n_features = table.shape[1]
    # Values are compared in their own dtype, because a cast would wrap 2**63 around, and truncate 2.9 to 2.
    largest = table.max(axis=0)
    limit = missing_code(np.uint16)
    _check_codes(table, table.min(axis=0) < -1, "codes start at 0, and only -1 (missing) may be below")
    _check_codes(table, largest >= limit, f"at most {limit} states fit the code type")
    seen = np.maximum(largest.astype(np.intp) + 1, 1)
    if n_states is None:
        return seen
    states = np.asarray(n_states)
    if states.shape != (n_features,):
        raise ValueError(f"n_states must have one entry per feature ({n_features}), got shape {states.shape}.")
    if states.dtype.kind not in "iu":
        raise ValueError(f"n_states must contain integers, got dtype {states.dtype}. Cast it to int.")
    wrong = (states < 1) | (states > limit)
    if wrong.any():
        j = wrong.argmax()
        raise ValueError(f"n_states must be from 1 to {limit}, but n_states[{j}] is {states[j]}.")
    wrong = largest >= states
    _check_codes(table, wrong, f"codes must be below the feature's n_states, {states[wrong.argmax()]}")
    return states.astype(np.intp)


def name_order(names: Sequence[str] | None, n_features: int) -> IntArray:
    """Return feature indices (n_features,) sorted by name, which do not depend on the order of the columns."""
    if names is None:
        return np.arange(n_features)
    return np.array(sorted(range(n_features), key=[str(name) for name in names].__getitem__), dtype=np.intp)


def joined(parts: Sequence[EncodedData]) -> EncodedData:
    """Concatenate the rows of several encoded data sets with the same features and classes."""
    is_weighted = any(part.sample_weight is not None for part in parts)
    is_multiplied = any(part.base_weight is not None for part in parts)
    raws = [part.raw for part in parts if part.raw is not None]
    return replace(
        parts[0],
        codes=np.concatenate([part.codes for part in parts], axis=1),
        y=np.concatenate([part.y for part in parts]),
        sample_weight=np.concatenate([part.weights for part in parts]) if is_weighted else None,
        row_numbers=None,
        base_weight=np.concatenate([part.base_weights for part in parts]) if is_multiplied else None,
        raw=joined_numbers(raws) if len(raws) == len(parts) else None,
    )


def recoded(codes: Codes, dtype: Any) -> Codes:
    """Convert codes to another dtype. Missing codes become the missing code of that dtype."""
    out: Codes = codes.astype(dtype)
    out[codes == missing_code(codes.dtype)] = missing_code(dtype)
    return out


def _read_mask(name: str, mask: Any, n_features: int) -> AnyArray | None:
    """Validate a mask of the features, or one boolean for all features. None stays None."""
    if mask is None:
        return None
    chosen = np.asarray(mask)
    if chosen.dtype.kind != "b" or chosen.shape not in ((), (n_features,)):
        raise ValueError(
            f"{name} must be True, False, or a mask with one boolean per feature ({n_features}), got shape "
            f"{chosen.shape} of dtype {chosen.dtype}. Convert a list of feature indices to a mask first."
        )
    return np.full(n_features, chosen)


def _check_codes(table: AnyArray, wrong: AnyArray, rule: str) -> None:
    """Raise ValueError if any column is marked as wrong."""
    if wrong.any():
        j = wrong.argmax()
        raise ValueError(
            f"codes[:, {j}] holds {table[:, j].min()}..{table[:, j].max()}: {rule}. "
            f"Encode the column with CategoryEncoder, or discretize it with MDLPDiscretizer."
        )


def _labels(y: AnyArray, n_samples: int, n_classes: Any) -> tuple[IntArray, int]:
    """Validate class codes, and return them with the number of classes."""
    if y.shape != (n_samples,):
        raise ValueError(
            f"y must have one class per row ({n_samples}), got shape {y.shape}. Do the codes have shape (n_samples, "
            "n_features)?"
        )
    if y.dtype.kind not in "iub":
        raise ValueError(
            f"y must contain class codes from 0, got dtype {y.dtype}. Number the classes with numpy.unique."
        )
    smallest, largest = int(y.min()), int(y.max())
    if smallest < 0 or largest >= np.iinfo(np.intp).max:
        raise ValueError(
            f"y must contain class codes from 0 to the number of classes minus 1, but contains {smallest} to "
            f"{largest}. Number the classes: numpy.unique(y, return_inverse=True)."
        )
    if n_classes is None:
        return y.astype(np.intp), largest + 1
    if not isinstance(n_classes, Integral):
        raise ValueError(f"n_classes must be an integer, got {n_classes!r}. Leave it out to count the classes in y.")
    if largest >= n_classes:
        raise ValueError(
            f"y contains class {largest}, but n_classes is {n_classes}, so classes must be from 0 to {n_classes - 1}. "
            f"Increase n_classes, or leave it out."
        )
    return y.astype(np.intp), int(n_classes)
