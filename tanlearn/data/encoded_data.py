"""What learners learn from: an encoded table with its classes, checked once and trusted afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.data.raw_numbers import RawNumbers, joined_numbers
from tanlearn.data.validation import read_weights
from tanlearn.kernels._cuda import DEVICES

__all__ = ["EncodedData", "joined", "name_order", "recoded"]


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
    places : tuple of str, optional
        What messages call every feature, such as ``"X column 'age'"``; by default their numbers.
    row_numbers : ndarray of shape (n_samples,), optional
        What messages call every row: its number in the table that the user passed.
    device : {"cpu", "cuda"}, default="cpu"
        Where learners that can do both are to work.
    is_ordered : ndarray of shape (n_features,), bool, optional
        Features of which neighbouring codes are alike: intervals, whole numbers and ordered categories. By default
        none is known to be so. Few learners ask.
    names : sequence of str, optional
        Names of the features. Structure learners use them to break ties, so that results do not depend on the order of
        the columns. Without names, the lower feature number wins.
    base_weight : ndarray of shape (n_samples,), int64 or float64, optional
        Weights before class weights multiplied them, which is what discretization uses. ``None`` means that they equal
        ``sample_weight``.
    raw : RawNumbers, optional
        Numbers behind the codes of discretized features, from which :meth:`split` fits cut points without the rows of a
        fold. ``None`` where cut points do not depend on classes.

    Raises
    ------
    ValueError
        If ``device`` is neither of the two.

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

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise ValueError(f"device must be 'cpu' or 'cuda', got {self.device!r}.")

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
    ) -> EncodedData:
        """Check a table that is encoded already and wrap it.

        Parameters
        ----------
        codes : array-like of shape (n_samples, n_features)
            Integers from 0; -1 means "missing".
        y : array-like of shape (n_samples,)
            Class codes from 0.
        n_states : array-like of shape (n_features,), int, optional
            Number of values of every feature, from 1 to 65,535; by default one more than the largest code seen.
        n_classes : int, optional
            Number of classes; by default one more than the largest class seen.
        sample_weight : array-like of shape (n_samples,), float, or None
            Finite and non-negative, not all zero; a number means the same weight for every row.
        is_ordered : array-like of shape (n_features,), bool, or bool, optional
            Features of which neighbouring codes are alike; True for all of them.

        Returns
        -------
        EncodedData

        Raises
        ------
        ValueError
            If shapes do not fit, anything but a weight is no integer, a code is negative (other than -1) or too
            large, ``is_ordered`` holds anything but truth values, or the weights are negative, not finite, all zero, or
            overflow when they are added up.
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
        n_samples = table.shape[0]
        states = _states(table, n_states)
        labels, classes = _labels(np.asarray(y), n_samples, n_classes)
        dtype = codes_dtype(int(states.max()))
        encoded = np.where(table == -1, missing_code(dtype), table).astype(dtype)
        weights = read_weights(sample_weight, n_samples)
        ordered = _read_order(is_ordered, table.shape[1])
        return cls(np.ascontiguousarray(encoded.T), states, labels, classes, weights, is_ordered=ordered)

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
        """Feature numbers in the order of the names, or in their own order without names."""
        return name_order(self.names, self.n_features)

    @property
    def is_incomplete(self) -> AnyArray:
        """Which rows miss something, shape (n_samples,)."""
        incomplete: AnyArray = (self.codes == missing_code(self.codes.dtype)).any(axis=0)
        return incomplete

    @property
    def has_missing(self) -> bool:
        """Whether any code is the missing code."""
        return bool(self.is_incomplete.any())

    @property
    def weights(self) -> AnyArray:
        """The weights, with ones of integer type where none were given."""
        return np.ones(self.n_samples, np.int64) if self.sample_weight is None else self.sample_weight

    @property
    def base_weights(self) -> AnyArray:
        """The weights before class weights multiplied them."""
        return self.weights if self.base_weight is None else self.base_weight

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
            first = rows.argmin()
            row = rows[first] if self.row_numbers is None else self.row_numbers[rows[first]]
            place = f"feature {features[first]}" if self.places is None else self.places[features[first]]
            raise ValueError(
                f"{learner} learns from complete rows only, but {features.size} values are missing, the first of "
                f"{place} in row {row}. Impute them, drop the rows, or make 'missing' a category of its own; "
                f"prediction does accept missing values."
            )

    def take(self, rows: Any) -> EncodedData:
        """Return the data of some rows.

        Parameters
        ----------
        rows : array-like of shape (n_taken,), int, or of shape (n_samples,), bool
            Row numbers from 0 in any order, which may repeat, or a mask.

        Returns
        -------
        EncodedData
            Copies of those rows, in that order; ``n_states``, ``n_classes`` and the device are the same.

        Raises
        ------
        IndexError
            If there is no such row, or a mask is of another length.
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
        """Return the rows to learn from and the held-out rows, with cut points fitted to the former only.

        Where cut points depend on classes, held-out rows that had a part in them would be predicted too well. The
        numbers of states of discretized features therefore differ from fold to fold; categories stay.

        Parameters
        ----------
        held_out : ndarray of shape (n_samples,), bool
            Rows to hold out.

        Returns
        -------
        rest, held : EncodedData
        """
        rest, held = self.take(~held_out), self.take(held_out)
        if rest.raw is None or held.raw is None or len(np.unique(rest.y[rest.weights > 0])) < 2:
            return rest, held
        features, cuts = rest.raw.features, rest.raw.fit(rest.y, rest.base_weights)
        n_states = self.n_states.copy()
        n_states[features] = cuts.n_states
        dtype = codes_dtype(int(n_states.max()))

        def encoded(data: EncodedData, raw: RawNumbers) -> EncodedData:
            codes: AnyArray = recoded(data.codes, dtype)
            codes[features] = recoded(cuts.encode(raw), dtype)
            return replace(data, codes=codes, n_states=n_states)

        return encoded(rest, rest.raw), encoded(held, held.raw)

    def in_whole_rows(self) -> EncodedData:
        """Return rows that weigh at least 1 on average, those of weight 0 aside, for learners that search.

        Of lighter ones (1e-3 each, or together 1) the smoothed start would be that of no rows at all, and the first
        step as short as the mean's gradient, or shorter: beyond 1e-160 line searches end where they begin.

        Returns
        -------
        EncodedData
            Itself, or with weights divided by their mean.
        """
        mean = self.weights[self.weights > 0].mean()
        return self if mean >= 1 else replace(self, sample_weight=self.weights / mean)

    def take_features(self, features: Any) -> EncodedData:
        """Return the data of some features.

        Parameters
        ----------
        features : array-like of shape (n_taken,), int
            Feature numbers.

        Returns
        -------
        EncodedData
        """
        places = None if self.places is None else tuple(self.places[i] for i in features)
        ordered = None if self.is_ordered is None else self.is_ordered[features]
        names = None if self.names is None else tuple(self.names[i] for i in features)
        raw = None if self.raw is None else self.raw.take_features(features)
        codes, states = np.ascontiguousarray(self.codes[features]), self.n_states[features]
        return replace(self, codes=codes, n_states=states, places=places, is_ordered=ordered, names=names, raw=raw)

    def __repr__(self) -> str:
        return (
            f"EncodedData(n_samples={self.n_samples}, n_features={self.n_features}, n_classes={self.n_classes}, "
            f"n_states={self.n_states.min()}..{self.n_states.max()}, weighted={self.sample_weight is not None}, "
            f"missing={self.has_missing})"
        )


def _states(table: AnyArray, n_states: Any) -> IntArray:
    """Return the number of states of every column after checking the codes against it."""
    n_features = table.shape[1]
    # Everything is compared in the type it came in: a cast would wrap 2**63 around, and cut 2.9 off to 2.
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
        raise ValueError(f"n_states must hold integers, got dtype {states.dtype}. Cast it to int.")
    wrong = (states < 1) | (states > limit)
    if wrong.any():
        j = wrong.argmax()
        raise ValueError(f"n_states must be from 1 to {limit}, but n_states[{j}] is {states[j]}.")
    wrong = largest >= states
    _check_codes(table, wrong, f"codes must be below the feature's n_states, {states[wrong.argmax()]}")
    return states.astype(np.intp)


def name_order(names: Sequence[str] | None, n_features: int) -> IntArray:
    """Return feature numbers in the order of the names, which does not depend on the order of the columns.

    Shapes: result: (n_features,).
    """
    if names is None:
        return np.arange(n_features)
    return np.array(sorted(range(n_features), key=[str(name) for name in names].__getitem__), dtype=np.intp)


def joined(parts: Sequence[EncodedData]) -> EncodedData:
    """Return the rows of several parts of a table, one part behind the other."""
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
    """Return codes in another type, in which the code of a missing value is another, too.

    Shapes: codes: (n_features, n_samples); result: (n_features, n_samples).
    """
    out: Codes = codes.astype(dtype)
    out[codes == missing_code(codes.dtype)] = missing_code(dtype)
    return out


def _read_order(is_ordered: Any, n_features: int) -> AnyArray | None:
    """Return which features have an order after checking that each is said to, or not to."""
    if is_ordered is None:
        return None
    ordered = np.asarray(is_ordered)
    if ordered.dtype.kind != "b" or ordered.shape not in ((), (n_features,)):
        raise ValueError(
            f"is_ordered must be True, False, or one of these per feature ({n_features}), got shape {ordered.shape} of "
            f"dtype {ordered.dtype}. Make a mask of a list of numbers first."
        )
    return np.full(n_features, ordered)


def _check_codes(table: AnyArray, wrong: AnyArray, rule: str) -> None:
    """Raise if any of the columns is wrong."""
    if wrong.any():
        j = wrong.argmax()
        raise ValueError(
            f"codes[:, {j}] holds {table[:, j].min()}..{table[:, j].max()}: {rule}. "
            f"Encode the column with CategoryEncoder, or discretise it with MDLPDiscretizer."
        )


def _labels(y: AnyArray, n_samples: int, n_classes: Any) -> tuple[IntArray, int]:
    """Return class codes and the number of classes after checking them."""
    if y.shape != (n_samples,):
        raise ValueError(
            f"y must have one class per row ({n_samples}), got shape {y.shape}. Are codes of shape (n_samples, "
            f"n_features)?"
        )
    if y.dtype.kind not in "iub":
        raise ValueError(f"y must hold class codes from 0, got dtype {y.dtype}. Number the classes with numpy.unique.")
    smallest, largest = int(y.min()), int(y.max())
    if smallest < 0 or largest >= np.iinfo(np.intp).max:
        raise ValueError(
            f"y must hold class codes from 0 that number the classes, but it holds {smallest}..{largest}. Number the "
            f"classes: numpy.unique(y, return_inverse=True)."
        )
    if n_classes is None:
        return y.astype(np.intp), largest + 1
    if not isinstance(n_classes, Integral):
        raise ValueError(f"n_classes must be an integer, got {n_classes!r}.")
    if largest >= n_classes:
        raise ValueError(
            f"y holds class {largest}, but n_classes is {n_classes} (0..{n_classes - 1}). Raise n_classes, or leave "
            f"it out."
        )
    return y.astype(np.intp), int(n_classes)
