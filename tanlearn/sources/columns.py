"""Conversion of user data to columns, one column at a time.

``numpy.asarray`` of a whole frame with one string column would create a Python object for every number.
"""

from __future__ import annotations

import datetime
import sys
from collections import defaultdict
from decimal import Decimal
from itertools import count
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from tanlearn._threads import in_blocks
from tanlearn.sources.frames import lazy_error, native_frame, record_error
from tanlearn.sources.table import ArrayTable, Column, Table, shorten

__all__ = ["MISSING_TYPES", "from_array", "from_objects", "plain", "read_columns", "temporal_error"]

# None, numpy.ma.masked, pandas.NA and pandas.NaT; compared by name so that pandas need not be imported.
MISSING_TYPES = frozenset({"MaskedConstant", "NAType", "NaTType", "NoneType"})
# Values per block: 256 kB of doubles, which fit a second-level cache.
_VALUES_PER_BLOCK = 2**15
_DATES = {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
# Remedies for values that NumPy has no numeric type for, by argument.
_REMEDIES = {"y": "Cast the classes to str.", "sample_weight": "Pass floating numbers."}


def read_columns(X: Any, *, n_jobs: int | None = None, ignored: NDArray[np.bool_] | None = None) -> Table:
    """Convert a table to columns, one by one.

    NaN, None, ``pandas.NA``, ``pandas.NaT``, polars null and masked entries mean missing. Columns of Python objects,
    and columns of lists, become numeric if all their values are numbers. Decimals become floats. Numeric arrays are not
    copied, whatever their memory order.

    ``n_jobs`` is the number of threads that scan an array of floats. ``ignored`` masks rows of weight 0, shape
    (n_samples,). They are kept, but they are not checked and do not determine types, and some of their values become
    missing.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        return _from_numbers(X, None, n_jobs, ignored)
    for module, reader in (("pandas", _from_pandas), ("polars", _from_polars)):
        if module in sys.modules and isinstance(X, sys.modules[module].DataFrame):
            names = list(X.columns)
            _check_frame(X.shape, names)
            labels = [f"X column {name!r}" for name in names]
            if module == "pandas" and _is_one_array(X):
                return _from_numbers(X.to_numpy(), labels, n_jobs, ignored)
            series = (X.iloc[:, j] if module == "pandas" else X.to_series(j) for j in range(len(names)))
            return Table([reader(values, label, ignored) for values, label in zip(series, labels, strict=True)])
    if (error := lazy_error(X) or record_error(X)) is not None:
        raise error
    native = native_frame(X)
    if native is not X:
        return read_columns(native, n_jobs=n_jobs, ignored=ignored)
    # NumPy would convert numbers in a list with strings to strings, and integers in a list with floats to floats.
    masked = isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biu"  # object arrays take a hundred times as long
    table = np.ma.getdata(X) if masked else plain(X) if hasattr(X, "dtype") else _from_list(X)
    table = check_array(table, dtype=None, ensure_all_finite=False, input_name="X")
    if table.dtype.kind in "biuf" and not masked:
        return _from_numbers(table, None, n_jobs, ignored)
    columns = np.ascontiguousarray(table.T)
    # Hashing Python strings is faster than sorting NumPy strings. Columns are contiguous after the transposition.
    dtype = object if table.dtype.kind == "U" else table.dtype
    masks = np.ma.getmaskarray(X).T if masked else [None] * len(columns)
    return Table(
        [
            from_array(values.astype(dtype, copy=False), f"X column {j}", masks[j], ignored)
            for j, values in enumerate(columns)
        ]
    )


def _is_one_array(frame: Any) -> bool:
    """Return whether a pandas DataFrame is backed by a single numeric array."""
    dtypes = set(frame.dtypes)
    if len(dtypes) > 1 or not isinstance(dtype := dtypes.pop(), np.dtype) or dtype.kind not in "biuf":
        return False
    first, last = (frame.iloc[:, j].to_numpy() for j in (0, -1))
    return first.base is not None and first.base is last.base


def _from_numbers(
    values: NDArray[Any], labels: list[str] | None, n_jobs: int | None, ignored: NDArray[np.bool_] | None
) -> Table:
    """Convert a numeric matrix; floats are scanned for NaN and infinity in blocks of rows."""
    if values.dtype.kind != "f":
        return ArrayTable(values, None, labels)
    values = _doubles(values)
    n_samples, n_features = values.shape
    found = np.zeros((2, n_features), np.bool_)

    # A column-major array is scanned column by column, a row-major one in blocks of rows.
    by_column = values.strides[0] < values.strides[1]

    def scan(first: int, last: int) -> None:
        block, here = (values[:, first:last], found[:, first:last]) if by_column else (values[first:last], found)
        if not np.isfinite(block).all():
            for present, is_such in zip(here, (np.isinf, np.isnan), strict=True):
                present[is_such(block).any(axis=0)] = True  # safe across threads: only True is ever written

    n_lines, length = (n_features, n_samples) if by_column else (n_samples, n_features)
    in_blocks(scan, n_lines, max(1, _VALUES_PER_BLOCK // length), n_jobs if values.size > 2 * _VALUES_PER_BLOCK else 1)
    has_infinity, has_nan = found
    table = ArrayTable(values, has_nan, labels)
    if has_infinity.any():
        if _fits(ignored, n_samples):
            return _from_numbers(_without(values, ignored, np.nan), labels, n_jobs, None)
        j = int(has_infinity.argmax())
        raise _infinite(values[:, j], table.labels[j])
    return table


def _doubles(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats of at most 64 bits."""
    if values.dtype.itemsize <= 8:
        return values
    with np.errstate(over="ignore"):  # long doubles beyond the float64 range become infinite
        return values.astype(np.float64)


def _check_frame(shape: tuple[int, int], names: list[Any]) -> None:
    """Raise ValueError for an empty frame, as scikit-learn does for an empty array, and for duplicate column names."""
    for size, axis in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {axis} (shape={shape}) while a minimum of 1 is required.")
    seen: dict[Any, int] = {}
    for j, name in enumerate(names):
        if name in seen:
            raise ValueError(
                f"X has duplicate column names: columns {seen[name]} and {j} are both called {name!r}. Rename "
                f"one of them, or pass the table as an array."
            )
        seen[name] = j


def _from_pandas(series: Any, label: str, ignored: NDArray[np.bool_] | None) -> Column:
    """Convert a pandas Series to a column."""
    dtype = series.dtype
    if hasattr(series, "cat") and hasattr(dtype, "categories"):
        codes, categories = series.cat.codes.to_numpy(), dtype.categories
        if categories.dtype.kind in "mM":  # NumPy would convert nanoseconds to integers
            categories = categories.astype(object)
        known = _category_values(categories.to_numpy())
        return Column(codes, codes < 0, known, label, is_ordered=bool(dtype.ordered))
    if dtype.kind in "mM":
        raise temporal_error(label, dtype)
    if isinstance(dtype, np.dtype):
        return from_array(series.to_numpy(), label, ignored=ignored)
    if dtype.type is str and getattr(dtype, "storage", None) != "python":  # pandas before 3 compares these up to a NUL
        return _from_dictionary(series.factorize(), label)
    if dtype.kind not in "biuf":
        return from_objects(series.to_numpy(dtype=object), label, ignored)
    # A nullable, Arrow or sparse dtype: without an explicit dtype, to_numpy would return Python objects.
    if dtype.kind == "f":
        return _from_floats(series.to_numpy(np.float64, na_value=np.nan), label, ignored)
    missing = series.isna().to_numpy()
    plain, filler = {"b": (np.bool_, False), "i": (np.int64, 0), "u": (np.uint64, 0)}[dtype.kind]
    return Column(series.to_numpy(plain, na_value=filler), missing, None, label)


def _from_polars(series: Any, label: str, ignored: NDArray[np.bool_] | None) -> Column:
    """Convert a polars Series to a column."""
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Enum:
        codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return Column(codes, codes < 0, _category_values(dtype.categories.to_numpy()), label)
    if dtype.is_float():
        return from_array(series.fill_null(np.nan).to_numpy(), label, ignored=ignored)
    if (dtype.is_integer() and not _is_wide(dtype)) or dtype == pl.Boolean:
        missing = series.is_null().to_numpy()
        return Column(series.fill_null(strategy="zero").to_numpy(), missing, None, label)
    if dtype in (pl.Categorical, pl.String):
        # The physical categories of a Categorical are shared between columns, so they may not occur in this one.
        strings = series.unique().drop_nulls().cast(pl.String)
        numbers = series.cast(pl.String).cast(pl.Enum(strings)).to_physical().cast(pl.Int64).fill_null(-1)
        return _from_dictionary((numbers.to_numpy(), strings.to_numpy()), label)
    if dtype.is_temporal():
        raise temporal_error(label, dtype)
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return from_objects(values, label, ignored)


def _number_strings(values: NDArray[np.object_]) -> tuple[NDArray[np.intp], list[str]] | None:
    """Return the codes of strings in order of first occurrence (-1 if missing), and the distinct strings.

    Returns None for other values. Python's hashes are used, because pandas before 3 truncates strings at NUL, and
    pandas 3 equates a surrogate with its printed form.
    """
    if not isinstance(next((value for value in values if not _is_missing(value)), None), str):
        return None
    number: defaultdict[Any, int] = defaultdict(count().__next__)
    try:
        numbers = np.fromiter(map(number.__getitem__, values.tolist()), np.intp, len(values))
    except Exception:  # a value that is unhashable or whose hash raises
        return None
    is_string = np.array([isinstance(value, str) for value in number])
    if not all(string or _is_missing(value) for value, string in zip(number, is_string, strict=True)):
        return None
    if not is_string.all():
        numbers = np.where(is_string, np.cumsum(is_string) - 1, -1)[numbers]
    return numbers, [value for value in number if isinstance(value, str)]


def _from_dictionary(encoded: tuple[NDArray[Any], Any], label: str) -> Column:
    """Build a column of undeclared categories from codes (-1 if missing) and the strings that they index."""
    numbers, strings = encoded
    return Column(numbers, numbers < 0, np.array(strings, dtype=object), label, is_declared=False)


def from_array(
    values: NDArray[Any],
    label: str,
    missing: NDArray[np.bool_] | None = None,
    ignored: NDArray[np.bool_] | None = None,
) -> Column:
    """Convert a one-dimensional array to a column.

    ``label`` is the column's name in messages. ``missing`` masks missing values of booleans, integers and strings,
    shape (n_samples,). ``ignored`` masks rows whose values are not used.
    """
    kind = values.dtype.kind
    if kind in "biuUS":
        return Column(values, missing, None, label)
    if kind == "f":
        return _from_floats(values, label, ignored)
    if kind in "OT":
        return from_objects(values.astype(object), label, ignored)
    if kind in "mM":
        raise temporal_error(label, values.dtype)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {label} has dtype {values.dtype}.")
    raise TypeError(
        f"{label} has dtype {values.dtype}, but only strings and numbers can be read. Cast it to str if it names "
        f"something, to float if it measures something, or leave it out."
    )


def _from_list(X: Any) -> NDArray[np.object_]:
    """Return the values of a list or another sequence as an object array. Raise if its rows differ in length."""
    if isinstance(X, list | tuple):
        X = list(map(plain, X))
    try:
        table = np.asarray(X, dtype=object)
    except ValueError as error:  # arrays of several dimensions
        raise ValueError("X has rows that differ in shape. Every row needs one value per column.") from error
    if table.ndim == 1:
        lengths = list(map(_length, table))
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise ValueError(
                    f"X has rows that differ in length: {lengths[0]} value(s) in row 0, {length} in row {row}. Every "
                    f"row needs one value per column; use None for a missing value."
                )
    return table


def _length(row: Any) -> int:
    """Return the number of values in a row; a scalar counts as one value."""
    is_value = isinstance(row, str | bytes) or not hasattr(row, "__len__") or getattr(row, "ndim", 1) == 0
    return 1 if is_value else len(row)


def plain(values: Any) -> Any:
    """Return user data in a form that scikit-learn and NumPy handle correctly, mostly unchanged.

    Masked arrays become ordinary arrays, because scikit-learn ignores masks: masked values become NaN in float arrays,
    and None in object arrays otherwise. polars' 128-bit integers become a list, because NumPy has no such type.
    """
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return np.ma.getdata(values)
        if values.dtype.kind == "f":  # faster than objects
            return values.filled(np.nan)
        objects = np.ma.getdata(values).astype(object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    return values.to_list() if _is_wide(getattr(values, "dtype", None)) else values


def _is_wide(dtype: Any) -> bool:
    """Return whether a dtype is one of polars' 128-bit integers."""
    return str(dtype) in ("Int128", "UInt128")


def _from_floats(values: NDArray[Any], label: str, ignored: NDArray[np.bool_] | None = None) -> Column:
    """Convert floats to a column: NaN means missing, and infinity raises ValueError."""
    values = _doubles(values)
    if np.isinf(values).any() and _fits(ignored, len(values)):
        values = _without(values, ignored, np.nan)
    if np.isinf(values).any():
        raise _infinite(values, label)
    return Column(values, np.isnan(values), None, label)


def _fits(ignored: NDArray[np.bool_] | None, n_samples: int) -> bool:
    """Return whether a mask ignores any rows; masks of a wrong length are rejected later, with the weights."""
    return ignored is not None and len(ignored) == n_samples and bool(ignored.any())


def _without(values: NDArray[Any], ignored: Any, missing: Any) -> NDArray[Any]:
    """Return a copy in which the values of ignored rows are missing."""
    values = values.copy()
    values[ignored] = missing
    return values


def _infinite(values: NDArray[Any], label: str) -> ValueError:
    """Return the error for a column that contains infinity."""
    row = np.isinf(values).argmax()
    return ValueError(
        f"{label} contains infinity: {values[row]} in row {row}. Replace it with a finite number, or with "
        f"NaN if the value is unknown."
    )


def from_objects(values: NDArray[np.object_], label: str, ignored: NDArray[np.bool_] | None = None) -> Column:
    """Convert Python objects to a column: all strings, all bytes or all numbers.

    ``label`` is the column's name in messages. ``ignored`` (n_samples,) masks rows whose values are not used.
    """
    if _fits(ignored, len(values)):
        values = _without(values, ignored, None)
    found = _number_strings(values)
    if found is not None:
        return _from_dictionary(found, label)
    types = set(map(type, values))
    if Decimal in types and label != "y":  # from databases and polars; class labels are not converted
        values = _without_decimals(values)
        types = set(map(type, values))
    if types == {float} and values[0] == values[0]:  # shortcut: an eighth of the time
        return _from_floats(values.astype(np.float64), label)
    may_miss = not types <= {bool, bytes, int}
    missing = np.fromiter(map(_is_missing, values), np.bool_, len(values)) if may_miss else np.zeros_like(values, bool)
    if type(np.ma.masked) in types:
        values = np.where(missing, np.array(None), values)  # numpy.ma.masked is unhashable
    present = values[~missing]
    types = set(map(type, present))
    if all(issubclass(t, str) for t in types) or all(issubclass(t, bytes) for t in types):
        return Column(values, missing, None, label)
    # numpy.bool_ is not registered as Real, and numpy.timedelta64 is.
    if np.timedelta64 in types or not all(issubclass(t, (Real, np.bool_)) for t in types):
        raise _mixed(values, missing, label)
    numbers = np.array(present.tolist())
    if numbers.dtype.kind == "f" and present.size and not any(issubclass(t, (float, np.floating)) for t in types):
        # NumPy would convert a mix of signed and unsigned 64-bit integers to floats.
        integers = list(map(int, present))
        numbers = np.array(integers, np.int64 if max(integers) < 2**63 else np.uint64 if min(integers) >= 0 else object)
    if numbers.dtype.kind == "O":
        raise _unfit(values, missing, label)
    filled = np.zeros(len(values), numbers.dtype)
    filled[missing] = np.nan if numbers.dtype.kind == "f" else 0
    filled[~missing] = numbers
    if numbers.dtype.kind == "f":
        return _from_floats(filled, label)
    return Column(filled, missing, None, label)


def _without_decimals(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return Python objects with decimals converted to floats."""
    floats = [float(value) if type(value) is Decimal and not value.is_snan() else value for value in values]
    found = np.empty(len(values), dtype=object)
    found[:] = floats
    return found


def _is_missing(value: Any) -> bool:
    """Return whether a Python object represents a missing value."""
    return type(value).__name__ in MISSING_TYPES or (isinstance(value, Real) and value != value)


def _category_values(categories: NDArray[Any]) -> NDArray[Any]:
    """Return declared categories as numbers or as Python objects."""
    return categories if categories.dtype.kind in "biuf" else categories.astype(object)


def _mixed(values: NDArray[np.object_], missing: NDArray[np.bool_], label: str) -> TypeError:
    """Return the error for a column with several kinds of objects, or with an unsupported kind."""
    examples: dict[str, str] = {}
    for row in np.flatnonzero(~missing):
        examples.setdefault(type(values[row]).__name__, f"{shorten(values[row])} in row {row}")
    found = " and ".join(f"{name} ({example})" for name, example in examples.items())
    if label == "y":
        remedy = _REMEDIES[label]
        if set(examples) == {"Interval"}:  # scikit-learn's own classifiers and metrics refuse these, too
            remedy = "Name the intervals, pandas.cut(..., labels=[...]), or cast them to strings, y.astype(str)."
        return TypeError(
            f"y holds {found}, which cannot be compared: classes must be all strings or all numbers. {remedy}"
        )
    kinds = {type(value) for value in values[~missing].tolist()}
    if kinds <= _DATES or {kind.__name__ for kind in kinds} <= {"Period"}:
        return temporal_error(label, " and ".join(sorted(examples)), f", such as {next(iter(examples.values()))}")
    remedy = "Cast the column to str if it is categorical, or to float if it is continuous."
    if str in kinds and all(kind is str or issubclass(kind, Real) for kind in kinds):
        remedy = (
            "Cast the column to str if it is categorical. If it is continuous, replace the strings by numbers or "
            "missing values, for example with pandas.to_numeric(column, errors='coerce')."
        )
    elif kinds & {list, tuple, dict, set, np.ndarray}:
        remedy = "Make one column of each element, or leave the column out."
    # scikit-learn's estimator checks look for "argument must be ... string ... number".
    return TypeError(
        f"{label} holds {found}, which cannot be compared: the argument must be all strings or all numbers in "
        f"every column. {remedy}"
    )


def _unfit(values: NDArray[np.object_], missing: NDArray[np.bool_], label: str) -> ValueError:
    """Return the error for numbers that NumPy can only store as Python objects."""
    rows = np.flatnonzero(~missing)
    largest = max(rows, key=lambda row: values[row])
    row = next((row for row in rows if np.array(values[row]).dtype.kind == "O"), largest)
    remedy = _REMEDIES.get(label, "Cast the column to float if it is a quantity, or to str if it is a name.")
    return ValueError(
        f"{label} holds {shorten(values[row])} in row {row}, which fits neither 64-bit integers nor floating-point "
        f"numbers. {remedy}"
    )


def temporal_error(label: str, dtype: Any, example: str = "") -> TypeError:
    """Return the error for a column of dates or durations, with an example."""
    return TypeError(
        f"{label} holds dates or durations ({dtype}{example}), which are neither categories nor numbers. Replace the "
        f"column by numbers such as the year, the hour or the days since a fixed date."
    )
