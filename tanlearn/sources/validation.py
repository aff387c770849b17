"""Validation of class labels and sample weights, and selection of the rows with non-zero weight."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from tanlearn.sources.columns import from_array, from_objects, plain
from tanlearn.sources.frames import lazy_error
from tanlearn.sources.table import Column, Table, shorten
from tanlearn.sources.unlabeled_rows import UNLABELED, marks_unlabeled, warn_of_unlabeled

__all__ = [
    "LARGEST_TOTAL",
    "check_classes",
    "check_total",
    "class_code",
    "encode_labels",
    "present_rows",
    "read_classes",
    "read_labels",
    "read_partial_labels",
    "read_target",
    "read_weights",
    "row_weights",
    "zero_weight_rows",
]

# Largest sum of floating-point weights; its inverse is the smallest. Products of two or three such sums, as learners
# form them, neither overflow nor underflow. Line searches failed with weights of 1e300, trees with 1e305.
LARGEST_TOTAL = 1e100
_LARGEST_COUNT = int(np.iinfo(np.int64).max)


def read_classes(
    y: Any, n_samples: int, rows: NDArray[np.bool_] | None = None, *, is_part: bool = False
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Validate class labels and encode them. Return class codes and the sorted classes. Shape: (n_classes,).

    ``rows`` (n_samples,) masks the rows that count; the others are left out of the codes. With ``is_part``, the
    rows are part of a larger data set and may contain one class or none.
    """
    counted = read_target(y, n_samples, None if rows is None else ~rows)
    if rows is not None:
        counted = counted.take(rows)
    classes, codes = _number(counted)
    # Except for floats, check_classification_targets examines the first label and whether most labels differ, which
    # takes 0.8 s for a million strings. One label suffices if labels repeat.
    is_clear = classes.dtype.kind != "f" and (is_part or 2 * len(classes) < len(codes))
    labels = (replace(counted, values=counted.values[:1]) if is_clear else counted).objects
    with np.errstate(invalid="ignore"):  # it casts floats of any size to integers
        if len(labels):  # labels of a part are doubled, because it warns if most labels differ
            try:
                check_classification_targets(np.tile(labels, 2) if is_part and not is_clear else labels)
            except ValueError as error:
                raise _with_fraction(error, labels, rows) from error
    if not is_part:
        check_classes(classes, np.bincount(codes, minlength=len(classes)), len(codes))
    return codes, classes


def _with_fraction(error: ValueError, labels: NDArray[Any], rows: NDArray[np.bool_] | None) -> ValueError:
    """Return scikit-learn's error for classes that are not integers, with the first of them and the remedy."""
    if labels.dtype.kind != "f" or not (labels != np.floor(labels)).any():
        return error
    found = int((labels != np.floor(labels)).argmax())
    row = found if rows is None else int(np.flatnonzero(rows)[found])
    return ValueError(
        f"{error} y holds {labels[found]} in row {row}. Discretize y, for example with pandas.qcut(y, 2, "
        f"labels=['low', 'high']), or use a library for regression."
    )


def check_classes(classes: NDArray[Any], weights: NDArray[Any], n_samples: int) -> None:
    """Raise ValueError unless the rows with non-zero weight have at least two classes; warn if -1 may mean no class.

    Shapes: classes: (n_classes,), sorted; weights: (n_classes,), number or weight of the rows of each class.
    """
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}, in all {n_samples} row(s) with non-zero weight, and a "
            f"classifier needs at least two classes. Add rows of another class."
        )
    warn_of_unlabeled(classes, weights)


def _number(column: Column) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted distinct labels and the code of each label, without sorting all labels."""
    labels = column.values
    if column.categories is not None:
        occurs = np.zeros(len(column.categories), np.bool_)
        occurs[labels] = True
        number_of = np.zeros(len(occurs), np.intp)
        classes, number_of[occurs] = _number(Column(column.categories[occurs], None, None, column.label))
        return classes, number_of[labels]
    classes = column.distinct_values().astype(labels.dtype, copy=False)
    if labels.dtype.kind not in "OUS":
        return classes, np.searchsorted(classes, labels)
    # A dictionary takes 0.1 s for a million strings; sorting takes 1 to 3 s.
    number = {label: code for code, label in enumerate(classes.tolist())}
    return classes, np.fromiter(map(number.__getitem__, labels.tolist()), np.intp, len(labels))


def encode_labels(
    y: Any, n_samples: int, classes: NDArray[Any], rows: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Return the codes of labels among known classes. Shape: (n_rows,).

    ``rows`` (n_samples,) masks the rows that count; the others may have any label and are left out. Raises
    ``ValueError`` for a label that is not in ``classes``.
    """
    number = {label: code for code, label in enumerate(classes.tolist())}
    column = read_target(y, n_samples, None if rows is None else ~rows)
    numbers = None if rows is None else np.flatnonzero(rows)
    if rows is not None:
        column = column.take(rows)
    labels, indices = column.values if column.categories is None else column.categories, column.values
    if column.categories is None:  # distinct numbers once, other labels row by row
        labels, indices = _number(column) if labels.dtype.kind in "biuf" else (labels, np.arange(len(labels)))
    codes = np.fromiter((number.get(label, -1) for label in labels.tolist()), np.intp, len(labels))[indices]
    if (codes < 0).any():
        row = int((codes < 0).argmax())
        label = labels.tolist()[indices[row]]
        row_number = row if numbers is None else numbers[row]
        raise ValueError(
            f"y holds {label!r} in row {row_number}, which is not among the classes: {', '.join(map(repr, number))}. "
            f"Correct it, or fit with rows of this class (with partial_fit, name all classes in the first call)."
        )
    return codes


def class_code(value: Any, classes: NDArray[Any], name: str) -> int:
    """Return the code of the class that the parameter ``name`` specifies."""
    number = {label: code for code, label in enumerate(classes.tolist())}
    with contextlib.suppress(KeyError, TypeError):  # TypeError: an unhashable value
        return number[value]
    raise ValueError(f"{name} must be one of the classes: {', '.join(map(repr, number))}, got {shorten(value)}.")


def read_target(y: Any, n_samples: int | None = None, ignored: NDArray[np.bool_] | None = None) -> Column:
    """Convert class labels to a column; strings and categories are encoded.

    ``ignored`` (n_samples,) masks rows of weight 0, whose labels may be missing or of any type.
    """
    if isinstance(y, Column):
        column = y
    else:
        labels = _label_array(y)
        column = from_array(labels, "y", ignored=ignored)
    if n_samples is not None:
        _check_length("y", len(column.values), n_samples)
    missing = None if column.missing is None else column.missing if ignored is None else column.missing & ~ignored
    if missing is not None and missing.any():
        raise ValueError(
            f"{column.label} is missing in row {missing.argmax()} ({np.count_nonzero(missing)} of "
            f"{len(column.values)} rows). Every row needs a class: drop the rows without one, fit "
            f"SemiSupervisedClassifier(...) to learn from them, or make 'missing' a class of its own."
        )
    if not isinstance(y, Column) and labels.dtype.kind == "O" and column.categories is None:
        _refuse_mixed_labels(labels, ignored)
    return column


def _label_array(y: Any) -> NDArray[Any]:
    """Return class labels as an array. Shape: (n_samples,)."""
    if (error := lazy_error(y, "y")) is not None:
        raise error
    if isinstance(y, str):
        raise ValueError(
            f"y should be a 1d array with one class per row, got {y!r}. If this is a column of a frame, pass "
            f"X=frame.drop(columns={y!r}) and y=frame[{y!r}]."
        )
    # Lists and nullable series are converted as Python objects: NumPy would convert [1, "a"] to strings and Int64 to
    # floats.
    y = plain(y)
    dtype = None if isinstance(getattr(y, "dtype", None), np.dtype) else object
    labels: NDArray[Any] = column_or_1d(y, dtype=dtype, warn=True)
    return labels


def read_partial_labels(
    y: Any, n_samples: int, ignored: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels in their own type and a mask of the rows without a class, each of shape (n_samples,).

    A row has no class if its label is missing, or if -1 marks such rows (see ``unlabeled_rows.py``). An object array
    may mix strings and the integer -1. ``ignored`` masks rows of weight 0, (n_samples,), which the mask leaves out.
    """
    labels = _label_array(y)
    _check_length("y", len(labels), n_samples)
    if labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels):
        labels = labels.copy()
        labels[np.fromiter(map(_is_mark, labels), np.bool_, n_samples)] = None
    column = from_array(labels, "y", ignored=ignored)
    counted = np.ones(n_samples, np.bool_) if ignored is None else ~ignored
    found = ~column.present & counted
    if column.categories is None and marks_unlabeled(column.take(counted).distinct_values()):
        found |= (column.values == UNLABELED) & counted
    return labels, found


def _is_mark(label: Any) -> bool:
    """Return whether a label among strings is the integer -1."""
    return isinstance(label, Integral) and label == UNLABELED


def read_labels(y: Any, n_samples: int | None = None) -> NDArray[Any]:
    """Return validated class labels in their own type. Shape: (n_samples,)."""
    return read_target(y, n_samples).objects


def read_weights(sample_weight: Any, n_samples: int) -> NDArray[Any] | None:
    """Validate the weights (n_samples,) of all rows. None stays None, and integers stay integers.

    A scalar is the weight of every row. Raises ``ValueError`` for negative or non-finite weights, and if all are zero
    or their sum is too large or too small.
    """
    if sample_weight is None:
        return None
    weights = row_weights(sample_weight, n_samples)
    with np.errstate(over="ignore"):  # check_total raises for an infinite sum
        check_total(weights.sum().item(), n_samples)
    return weights


def row_weights(sample_weight: Any, n_samples: int) -> NDArray[Any]:
    """Validate the weights (n_samples,) of some rows. In contrast to :func:`read_weights`, all may be zero."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, sample_weight)
    try:
        weights = check_array(plain(sample_weight), ensure_2d=False, allow_nd=True, ensure_all_finite=False)
    except (OverflowError, TypeError, ValueError) as error:  # raised by NumPy for values that are not numbers
        raise ValueError(
            f"sample_weight must hold one number per row, got {shorten(sample_weight)}. Pass a list or an array "
            f"of numbers, one for each of the {n_samples} rows."
        ) from error
    if weights.dtype.kind == "O" and weights.ndim == 1:
        with contextlib.suppress(TypeError):  # values that are not numbers raise below
            weights = from_objects(weights, "sample_weight").numbers()
    if weights.ndim != 1 or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight must hold one number per row, got shape {weights.shape} of dtype {weights.dtype}: "
            f"{shorten(sample_weight)}."
        )
    _check_length("sample_weight", len(weights), n_samples)
    if weights.dtype.kind == "f":
        with np.errstate(over="ignore"):  # infinite weights raise below
            weights = weights.astype(np.float64)
    for wrong, rule in ((~np.isfinite(weights), "finite"), (weights < 0, "non-negative")):
        if wrong.any():
            row = wrong.argmax()
            raise ValueError(
                f"sample_weight must be {rule}, but is {weights[row]} in row {row}. To leave a row out, set its "
                f"weight to 0."
            )
    if weights.dtype.kind == "f":
        return weights
    # The sum of Python integers cannot overflow but takes 0.1 s for ten million weights: only if the bound requires it.
    if len(weights) and weights.max().item() * len(weights) > _LARGEST_COUNT:
        check_total(sum(weights.tolist()), n_samples)
    return weights.astype(np.int64)


def zero_weight_rows(sample_weight: Any) -> NDArray[np.bool_] | None:
    """Return a mask (n_samples,) of the rows with weight 0, or None if there are no such rows.

    The weights need not be validated yet; invalid weights give None and are rejected by :func:`row_weights`.
    """
    if sample_weight is None or isinstance(sample_weight, Real):
        return None
    try:
        weights = np.asarray(plain(sample_weight))
        weights = weights.astype(np.float64) if weights.dtype.kind == "O" else weights
    except (TypeError, ValueError, OverflowError):
        return None
    if weights.dtype.kind not in "biuf":  # rejected later by row_weights
        return None
    is_zero = weights == 0
    return is_zero if is_zero.ndim == 1 and is_zero.any() else None


def present_rows(
    columns: Table, y: Any, sample_weight: Any, classes: NDArray[Any] | None = None
) -> tuple[Table, NDArray[np.intp], NDArray[Any], NDArray[Any] | None, NDArray[np.intp]]:
    """Return columns, class codes, classes, weights and row numbers of the rows with non-zero weight.

    ``classes`` (n_classes,) are the known classes; by default the classes of the rows with non-zero weight.
    """
    n_samples = columns.n_samples
    weights = read_weights(sample_weight, n_samples)
    rows = None if weights is None or weights.all() else weights > 0
    if classes is None:
        codes, classes = read_classes(y, n_samples, rows)
    else:
        codes = encode_labels(y, n_samples, classes, rows)
    if weights is None or rows is None:
        return columns, codes, classes, weights, np.arange(n_samples)
    return columns.take(rows), codes, classes, weights[rows], np.flatnonzero(rows)


def _refuse_mixed_labels(labels: NDArray[np.object_], ignored: NDArray[np.bool_] | None) -> None:
    """Raise TypeError if class labels mix booleans and numbers, which scikit-learn would not compare."""
    is_boolean = np.fromiter((isinstance(label, (bool, np.bool_)) for label in labels), np.bool_, len(labels))
    rows = np.arange(len(labels)) if ignored is None else np.flatnonzero(~ignored)
    if is_boolean[rows].any() and not is_boolean[rows].all():
        boolean, number = rows[is_boolean[rows].argmax()], rows[is_boolean[rows].argmin()]
        raise TypeError(
            f"y mixes booleans and numbers: {labels[boolean]} in row {boolean}, {labels[number]} in row {number}. "
            f"Classes must be all booleans or all numbers: cast them to bool or to int."
        )


def _check_length(name: str, length: int, n_samples: int) -> None:
    """Raise ValueError unless there is one entry per row."""
    if length != n_samples:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples}, {name} has "
            f"{length}. Pass one entry per row."
        )


def check_total(total: float, n_samples: int) -> None:
    """Raise ValueError if the sum of all weights is zero, too large or too small; integers have their own limit."""
    if total == 0:
        raise ValueError("sample_weight must be above zero in at least one row, but is zero in every row.")
    if isinstance(total, float) and not 1 / LARGEST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"sample_weight adds up to {total} over {n_samples} rows, but floating weights must add up to at least "
            f"{1 / LARGEST_TOTAL} and at most {LARGEST_TOTAL}. Multiply them by a common factor."
        )
    if isinstance(total, int) and total > _LARGEST_COUNT:
        raise ValueError(
            f"sample_weight adds up to {total} over {n_samples} rows, but integer weights may add up to "
            f"{_LARGEST_COUNT} at most. Divide them by a common factor, or pass them as floating numbers."
        )
