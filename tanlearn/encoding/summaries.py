"""Mergeable summary of data that are larger than memory, and an encoder that is fitted to the summary."""

from __future__ import annotations

import io
import json
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.column_kinds import check_missing_categories, find_all_categories, have_order, named_columns
from tanlearn.encoding.column_summaries import ColumnSummary, Limits, from_state, summarize, to_state
from tanlearn.encoding.column_warnings import LARGEST_SHARE, warn_of_constant_columns, warn_of_string_summaries
from tanlearn.encoding.cut_points import CutPointDiscretizer
from tanlearn.encoding.discretize import fit_discretizer
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.missing_values import depend_on_class
from tanlearn.encoding.stored_values import DAMAGE, read_arrays, read_format
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.encoding.value_counts import sum_by_key
from tanlearn.sources.table import Column, Table, shorten
from tanlearn.sources.validation import LARGEST_TOTAL, check_classes, check_total, read_classes, row_weights

__all__ = ["TableSummary"]

_FORMAT = 1
#: Relative difference of sums of real weights below which it is a rounding error, not the weight of a missing value.
_ROUNDING = 1e-9
_LARGEST_INTEGER = int(np.iinfo(np.int64).max)
# Below this number of values (about 5 ms of work), threads do not pay off.
_FEWEST_FOR_THREADS = 2**17


class TableSummary:
    """Mergeable counts of the values of each column by class.

    Summaries of parts of the data can be merged, in any order, to the summary of all data. An encoder that is fitted to
    a summary has the same categories and cut points as after :meth:`TableEncoder.fit_columns` on all rows. They are
    equal bit for bit if weights are integers or absent, and otherwise up to rounding of sums of weights.

    All categories are kept. Numbers are exact up to ``8 * n_points`` distinct values (65,536 by default, more than a
    feature can have categories). Beyond that, a column is compressed to points that represent adjacent values. Every
    65,536 values, or every larger batch, are compressed to a block of ``n_points`` points, and two blocks of the same
    level are merged to one block of the next level. The rank of a number is the weight of all values up to it. As a
    fraction of the total weight, the error of a rank is less than ``(1 + log2(n_blocks)) / n_points``, and usually less
    than half of that. :meth:`rank_error` returns the tracked bound.

    A pair of a value and a class takes 20 bytes. A column of real numbers with two classes therefore takes up to 1.3 MB
    as long as it is exact, and 0.3 MB per level afterwards.
    """

    def __init__(self, *, n_points: int = 8192, exact: bool = False) -> None:
        if not isinstance(n_points, (int, np.integer)) or n_points < 2:
            raise ValueError(f"n_points must be an integer of at least 2, got {n_points!r}.")
        self._limits = Limits(int(n_points), bool(exact))
        self._n_samples = 0
        # The class labels are also summarized as a column, with a single class.
        self._classes = summarize(Column(np.empty(0), None, None, "y"), np.empty(0, np.intp), np.empty(0, np.int64), 1)
        self._label_type = np.dtype(object)
        self._columns: list[ColumnSummary] | None = None

    @property
    def classes_(self) -> AnyArray:
        """Class labels (n_classes,) in sorted order."""
        if self._classes.names is None:
            return self._classes.counts.values
        return self._classes.names.astype(self._label_type)

    @property
    def class_counts(self) -> AnyArray:
        """Weight (n_classes,) of every class, as int64, or as float64 after a batch with real weights."""
        return self._classes.counts.weights

    @property
    def n_samples(self) -> int:
        """Number of rows with non-zero weight."""
        return self._n_samples

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns in messages. The tuple is empty before the first batch."""
        return tuple(column.label for column in self._columns or ())

    def __repr__(self) -> str:
        return (
            f"TableSummary(n_samples={self.n_samples}, n_columns={len(self.labels)}, n_classes={len(self.classes_)}, "
            f"weight={self.class_counts.sum()}, dtype={self.class_counts.dtype})"
        )

    def update(self, columns: Table, y: Any, sample_weight: Any = None, *, n_jobs: int | None = None) -> Self:
        """Add a batch of rows in place. After an error, the summary is unchanged.

        ``columns`` may have no rows. ``n_jobs`` is the number of threads. The result does not depend on it.
        """
        n_samples = columns.n_samples
        is_weighted = sample_weight is not None and n_samples > 0
        weights = row_weights(sample_weight, n_samples) if is_weighted else None
        rows = None if weights is None or weights.all() else weights > 0
        codes, classes = read_classes(y, n_samples, rows, is_part=True)
        if weights is None:
            weights = np.ones(n_samples, np.int64)
        if rows is not None:
            columns, weights = columns.take(rows), weights[rows]
        part = type(self)(n_points=self._limits.n_points, exact=self._limits.exact)
        part._n_samples = len(weights)
        part._classes = _count_classes(classes, codes, weights)
        part._label_type = classes.dtype
        n_classes, codes = max(len(classes), 1), codes.astype(np.int32)  # converted once for all columns
        n_jobs = n_jobs if len(codes) * len(columns) > _FEWEST_FOR_THREADS else 1
        part._columns = in_threads(lambda column: summarize(column, codes, weights, n_classes), columns, n_jobs)
        return self.merge(part, n_jobs=n_jobs)

    def merge(self, other: TableSummary, *, n_jobs: int | None = None) -> Self:
        """Add the counts of another summary in place. After an error, nothing is changed. ``other`` is not modified."""
        if other._limits != self._limits:
            raise ValueError(
                f"a summary with {self._limits} cannot be merged with a summary with {other._limits}. Create both "
                f"with the same n_points and exact."
            )
        own, added = self._columns, other._columns
        if added is None:
            return self
        if own is not None:
            _check_labels(self.labels, other.labels)
        _check_total(self.class_counts, other.class_counts)
        classes = self._classes.merge(other._classes, Limits(1, exact=True), 1)
        n_classes = max(len(classes.counts.values), 1)
        mine, theirs = (_positions_of(part, classes) for part in (self._classes, other._classes))

        def merge(i: int) -> ColumnSummary:
            more = _renumber(added[i], theirs, n_classes)
            if own is None:
                return more.within(self._limits, n_classes)
            return _renumber(own[i], mine, n_classes).merge(more, self._limits, n_classes)

        columns = in_threads(merge, range(len(added)), n_jobs)
        if other._n_samples:
            first = not self._n_samples
            self._label_type = other._label_type if first else np.result_type(self._label_type, other._label_type)
        self._n_samples += other._n_samples
        self._classes, self._columns = classes, columns
        return self

    def rank_error(self, i: int) -> float:
        """Return the bound on the rank error of numbers in column ``i``, as a fraction of its weight, or 0 if exact."""
        if self._columns is None or not 0 <= i < len(self._columns):
            raise IndexError(f"there is no column {i}. Columns are numbered from 0 to {len(self.labels) - 1}.")
        return self._columns[i].rank_error

    def fit_encoder(self, encoder: TableEncoder, names: AnyArray | None = None) -> TableEncoder:
        """Return a clone of an encoder, fitted to all rows.

        ``names`` (n_features,) are the column names. The discretizer must be a ``CutPointDiscretizer``. In compressed
        columns, cut points lie between points, and typical values are means of points. Issues the same warnings as
        :meth:`TableEncoder.fit`, with fractions of the weight instead of fractions of the rows.
        """
        columns = self._columns_to_fit()
        warn_of_string_summaries(columns, encoder.discrete_features)
        fitted, constant = _fit_encoder(encoder, columns, self, names)
        warn_of_constant_columns(constant, fitted.discretizer_, self.n_samples, float(self.class_counts.sum()))
        return fitted

    def have_order(self, encoder: TableEncoder) -> AnyArray:
        """Return a mask of the columns whose codes are ordered. Shape: (n_features,)."""
        columns = Table([column.as_column() for column in self._columns or ()])
        return have_order(encoder, columns)

    def to_bytes(self) -> bytes:
        """Serialize the summary to bytes, without pickle."""
        columns = [self._classes, *(self._columns or ())]
        arrays: dict[str, AnyArray] = {}
        states = [to_state(column, f"{number}", arrays) for number, column in enumerate(columns)]
        state = {
            **self._limits._asdict(),
            "n_samples": self._n_samples,
            "label_type": self._label_type.str,
            "has_columns": self._columns is not None,
            "columns": states,
        }
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(state).encode("ascii"), np.uint8)
        named: dict[str, Any] = {"state": text, **arrays}
        np.savez(buffer, tanlearn_summary=_FORMAT, **named)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Deserialize and validate the output of :meth:`to_bytes`."""
        try:
            arrays = read_arrays(data)
            version = read_format(arrays["tanlearn_summary"])
            summary = cls._from_arrays(arrays) if version <= _FORMAT else None
        except (*DAMAGE, AttributeError, LookupError) as error:
            raise ValueError(f"these {len(data)} bytes are not a valid TableSummary: {error}") from error
        if summary is None:
            raise ValueError(
                f"the TableSummary has format {version}, but this version reads formats up to {_FORMAT}: "
                "upgrade tanlearn."
            )
        return summary

    @classmethod
    def _from_arrays(cls, arrays: dict[str, AnyArray]) -> Self:
        """Validate deserialized arrays, and build a summary from them."""
        state = json.loads(arrays["state"].tobytes())
        summary = cls(n_points=state["n_points"], exact=state["exact"])
        own, *others = state["columns"]
        classes = from_state(own, "0", arrays, 1)
        n_classes = len(classes.counts.values)
        columns = [from_state(other, f"{i}", arrays, n_classes) for i, other in enumerate(others, 1)]
        summary._label_type = np.dtype(state["label_type"])
        n_samples, total = state["n_samples"], classes.total
        if classes.blocks or type(n_samples) is not int or n_samples < 0 or bool(n_samples) != bool(n_classes):
            raise ValueError("its classes are invalid")
        if classes.names is not None and summary._label_type.kind not in "OUS":
            raise ValueError("its classes are of another type")
        n_bytes = sum(array.nbytes for array in arrays.values())
        if classes.names is not None and summary._label_type.itemsize * len(classes.names) > 2**20 + 64 * n_bytes:
            raise ValueError("its classes claim more bytes than the data has")
        if any(column.total > total * (1 + 1e-9) for column in columns):
            raise ValueError("a column weighs more than all classes")
        summary._n_samples, summary._classes = n_samples, classes
        summary._columns = columns if state["has_columns"] else None
        return summary

    def _columns_to_fit(self) -> list[ColumnSummary]:
        """Return the columns. Raise ValueError if an encoder cannot be fitted to them."""
        if self._columns is None or not self.n_samples:
            raise ValueError(
                "the summary has no rows with non-zero weight, but an encoder needs at least one. Add rows."
            )
        check_classes(self.classes_, self.class_counts, self.n_samples)
        check_total(float(self.class_counts.sum()), self.n_samples)
        return self._columns


def _count_classes(classes: AnyArray, codes: IntArray, weights: AnyArray) -> ColumnSummary:
    """Summarize the class labels as a column with a single class."""
    _, sums = sum_by_key(codes, weights, len(classes))
    return summarize(Column(classes, None, None, "y"), np.zeros(len(classes), np.intp), sums, 1)


def _positions_of(part: ColumnSummary, whole: ColumnSummary) -> IntArray:
    """Return the position of each class of a part among all classes."""
    if whole.names is None or part.names is None:
        values = part.counts.values.astype(whole.counts.values.dtype)
        return np.searchsorted(whole.counts.values, values)
    number = {name: i for i, name in enumerate(whole.names.tolist())}
    return np.array([number[name] for name in part.names.tolist()], np.intp)


def _renumber(column: ColumnSummary, classes: IntArray, n_classes: int) -> ColumnSummary:
    """Renumber the classes of a column, unless the numbers stay the same."""
    if np.array_equal(classes, np.arange(len(classes))):
        return column
    return column.renumber(classes, n_classes)


def _check_labels(own: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Raise ValueError if two parts have different columns."""
    if own == other:
        return
    differ = next((i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), min(len(own), len(other)))
    found = [repr(labels[differ]) if differ < len(labels) else "nothing" for labels in (own, other)]
    raise ValueError(
        f"all parts must have the same columns in the same order: {len(own)} columns before, {len(other)} now, and "
        f"column {differ} was {found[0]} and is {found[1]}. Name, order or drop the columns as in the first part."
    )


def _check_total(own: AnyArray, other: AnyArray) -> None:
    """Raise ValueError if the total weight exceeds the largest count."""
    are_integers = own.dtype.kind == other.dtype.kind == "i"
    total: float = sum(sum(counts.tolist()) for counts in (own, other))
    largest = _LARGEST_INTEGER if are_integers else LARGEST_TOTAL
    if total > largest:
        remedy = ", or pass them as floating numbers" if are_integers else ""
        raise ValueError(
            f"the weights of all parts add up to {total}, but may add up to {shorten(largest)} at most. Divide them by "
            f"a common factor{remedy}."
        )


def _fit_encoder(
    encoder: TableEncoder, columns: list[ColumnSummary], summary: TableSummary, names: AnyArray | None
) -> tuple[TableEncoder, list[str]]:
    """Fit a clone of an encoder to column summaries. Also return the columns that have a single interval.

    Cut points depend only on the weights of values and classes, so each column is discretized separately, as weighted
    rows of its distinct values. ``columns`` are the columns of the summary, with at least two classes, and ``names``
    are the column names.
    """
    n_classes, labels = len(summary.class_counts), summary.labels
    fitted: TableEncoder = clone(encoder)
    fitted._validate_params()
    if names is not None:
        fitted.feature_names_in_ = names
    categories = _find_categories(columns, fitted.discrete_features, names)
    continuous = [column for column, known in zip(columns, categories, strict=True) if known is None]
    with_missing = np.zeros(len(columns), np.bool_)
    if fitted.handle_missing in ("category", "auto"):
        with_missing = np.array([_gets_category(fitted.handle_missing, column, summary) for column in columns])
    if not continuous:
        fitted.restore(categories, [None] * len(columns), None, has_missing_category=with_missing)
        check_missing_categories(fitted, labels)
        return fitted, []
    discretizer = clone(MDLPDiscretizer(n_jobs=fitted.n_jobs) if fitted.discretizer is None else fitted.discretizer)
    if not isinstance(discretizer, CutPointDiscretizer):
        raise TypeError(
            f"{type(discretizer).__name__} is not a CutPointDiscretizer, but data read in batches can only be "
            f"discretized by cut points. Use MDLPDiscretizer, QuantileDiscretizer, or a subclass of one of them."
        )
    found = in_threads(lambda column: _discretize(column, discretizer, n_classes), continuous, fitted.n_jobs)
    discretizer.restore([cuts for cuts, _, _ in found])
    constant = [column.label for column, (_, _, is_constant) in zip(continuous, found, strict=True) if is_constant]
    means = iter(found)
    typical = [next(means)[1] if known is None else None for known in categories]
    ranges = [column.value_range if known is None else None for column, known in zip(columns, categories, strict=True)]
    fitted.restore(categories, typical, discretizer, ranges, with_missing)
    check_missing_categories(fitted, labels)
    return fitted, constant


def _gets_category(handle_missing: str, column: ColumnSummary, summary: TableSummary) -> bool:
    """Return whether a column has a category for missing values, as in ``with_missing_category``.

    Sums of real weights are compared with a tolerance for rounding errors.
    """
    totals = summary.class_counts
    counts = column.pooled(len(totals))
    missing = totals.copy()
    np.subtract.at(missing, counts.classes, counts.weights)
    if totals.dtype.kind != "i":
        missing[missing < _ROUNDING * totals] = 0
    if not missing.any() or not len(counts.weights):
        return False
    scale = max(1.0, summary.n_samples / totals.sum())
    return handle_missing == "category" or depend_on_class(scale * missing, scale * totals)


def _find_categories(columns: list[ColumnSummary], option: Any, names: AnyArray | None) -> list[AnyArray | None]:
    """Return the categories of each column, or None for a column that is numeric, given ``discrete_features``."""
    options: list[Any] = [option] * len(columns)
    if not isinstance(option, str):
        options = named_columns(option, len(columns), names).tolist()
    found: list[AnyArray | None] = []
    for column, own in zip(columns, options, strict=True):
        if own is True and column.blocks:
            raise ValueError(
                f"{column.label} has so many distinct values that only quantiles are stored, not categories. It looks "
                f"like an identifier or a continuous column. Drop it, discretize it, or summarize it with exact=True."
            )
        found += [None] if column.blocks else find_all_categories(own, Table([column.as_column()]), None)
    return found


def _discretize(column: ColumnSummary, discretizer: Any, n_classes: int) -> tuple[FloatArray, FloatArray, bool]:
    """Return the cut points of a column, the mean of each interval, and whether different values share one interval."""
    rows, y, weights = column.as_rows(n_classes)
    own = clone(discretizer)
    fit_discretizer(own, Table([rows]), [0], y, weights)
    cuts: FloatArray = own.cut_points_[0]
    values, weights = rows.values[rows.present].astype(np.float64), weights[rows.present]
    states = np.searchsorted(cuts, values)
    total = np.bincount(states, weights, len(cuts) + 1)
    # Weights are normalized first, so that sums do not overflow.
    mean = np.bincount(states, values * (weights / total[states]), len(cuts) + 1)
    of_value = np.bincount(np.unique(values, return_inverse=True)[1], weights)
    is_constant = len(cuts) == 0 and len(values) > 0 and of_value.max() < LARGEST_SHARE * total[0]
    return cuts, np.where(total > 0, mean, np.nan), bool(is_constant)
