"""Rows of a table file, read as a whole or in batches, with the same columns in both cases.

Column kinds depend on the whole file: a column with strings in one batch is a string column, and a column of dates
becomes days only if all its values are dates. Rows without a class are left out before kinds are determined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn._warnings import warn
from tanlearn.sources.table import LARGEST_EXACT
from tanlearn.sources.table_files import TableFile, open_table, require_pandas

__all__ = [
    "FileSource",
    "MixedColumnsError",
    "dates_as_days",
    "read_classified",
    "read_features",
    "read_table",
    "warn_of_rows_without_class",
    "with_class",
]


_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_MIXED = "text and other values are mixed in"
_ROUNDED = "large integers would be rounded because values are missing in"


class MixedColumnsError(ValueError):
    """Error for columns that must be read as text, with the reason. The file can be read again as text."""

    def __init__(self, file: str, names: Collection[str], reason: str = _MIXED) -> None:
        self.names = sorted(names)
        super().__init__(f"{file}: {reason} {', '.join(map(repr, self.names))}")


class FileSource:
    """Iterable over the rows of a file as frames of features, class and other columns.

    Each iteration reads the file again.
    """

    def __init__(
        self,
        table: TableFile,
        columns: Sequence[str],
        target: str,
        n_rows: int,
        *,
        others: Sequence[str] = (),
        string_columns: Collection[str] = (),
        prepare: Callable[[Any, Any], Any] | None = None,
        kinds: dict[str, str] | None = None,
    ) -> None:
        self.table = table
        self.columns, self.target, self.others = list(columns), target, list(others)
        self.n_samples = 0  # rows with a class; 0 before the first complete iteration
        self.n_without_class = 0  # rows without a class, which are left out
        self.dates: list[str] = []  # columns of dates, converted to days
        self.string_columns = set(string_columns)  # always read as strings
        self._n_rows = n_rows
        # Converts the features of a batch, with the number of its first row (from 1) or of each row, to the kinds of a
        # fitted encoder. By default, kinds are determined from the file.
        self._prepare = prepare
        self._kinds = kinds  # kinds of the columns in the files read before, if this is one of several files

    def __iter__(self) -> Iterator[Any]:
        wanted = [*self.columns, self.target, *self.others]
        kinds = {} if self._kinds is None else self._kinds
        mixed: set[str] = set()
        large: set[str] = set()  # columns with integers that would be rounded if values are missing ...
        incomplete: set[str] = set()  # ... and columns with missing values
        dropped: list[int] = []
        n_samples = n_without = 0
        for frame in self.table.batches(
            self._n_rows, wanted, string_columns=self.string_columns, target=self.target, dropped=dropped
        ):
            found = {self.target: _kind(frame[self.target].dropna())}
            if self._prepare is not None:  # before rows are left out, because it reports row numbers
                first = frame.index.to_numpy() + 1 if self.table.is_text else n_samples + n_without + 1
                prepared = self._prepare(frame[self.columns], first)
                frame = prepared.assign(**{name: frame[name] for name in (self.target, *self.others)})
            frame, n_missing = with_class(frame, self.target, self.table.name)
            if self._prepare is None:
                frame, dates = dates_as_days(frame, [name for name in self.columns if name not in self.string_columns])
                found |= {name: "date" if name in dates else _kind(frame[name].dropna()) for name in self.columns}
                if self.table.is_text and not self.n_samples:  # later passes read the same values
                    large.update(name for name in self.columns if _has_large_integers(frame[name]))
                    incomplete.update(name for name in self.columns if frame[name].hasnans)
            for name, kind in found.items():
                if kind is not None and kinds.setdefault(name, kind) != kind:
                    mixed.add(name)
            n_samples, n_without = n_samples + len(frame), n_without + n_missing
            if not mixed:
                yield frame
        if mixed:  # all mixed columns are reported together, so that the file is read again only once
            is_new = mixed - self.string_columns
            self.string_columns |= mixed
            if is_new:
                raise MixedColumnsError(self.table.name, mixed)
            raise ValueError(f"{self.table.name}: {min(mixed)!r} holds values of several types. Convert them.")
        if rounded := (large & incomplete) - self.string_columns:  # numbers of different digits would become equal
            self.string_columns |= rounded
            raise MixedColumnsError(self.table.name, rounded, _ROUNDED)
        self.n_samples, self.n_without_class = n_samples, n_without + len(dropped)
        self.dates = [name for name in self.columns if kinds.get(name) == "date"]


def read_classified(table: TableFile, columns: Sequence[str], target: str) -> tuple[Any, AnyArray, int, list[str]]:
    """Read a file into memory: features, classes, the number of rows without a class, and the names of date columns.

    Rows without a class are left out of the features and the classes (n_samples,).
    """
    dropped: list[int] = []
    frame = _read_exactly(table, columns, target, dropped)
    frame, n_missing = with_class(frame, target, table.name)
    X, dates = dates_as_days(frame.drop(columns=target))
    return X, frame[target].to_numpy(), n_missing + len(dropped), dates


def read_features(table: TableFile, columns: Sequence[str]) -> tuple[Any, list[str]]:
    """Read columns of a file into memory, with dates as days. Return the frame and the names of date columns."""
    return dates_as_days(_read_exactly(table, columns))


def read_table(
    path: str | Path, *, target: str | None = None, columns: Sequence[str] | None = None, **options: Any
) -> Any:
    r"""Read a table in a file as ``fit_batches`` and the command line read it.

    Spaces around fields are ignored, digits with leading zeros are strings, and dates are days since 1970. For Parquet
    and Feather files, only the command line does the same: ``fit_batches`` reads their values unchanged.

    Parameters
    ----------
    path : str or Path
        A delimited text, Parquet or Feather file.
    target : str, optional
        The column with the classes. Rows without a class are left out, with a warning, before the kinds of columns are
        determined.
    columns : list of str, optional
        The columns to read besides the target; by default all.
    **options : object
        Notation and layout of the text, as for :func:`tanlearn.open_table`.

    Returns
    -------
    pandas.DataFrame of shape (n_samples, n_columns)

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is malformed, or a named column is absent.
    TypeError
        If ``columns``, ``missing`` or ``symbols`` is a string instead of a list.
    ImportError
        If reading it needs a package that is not installed.

    Examples
    --------
    >>> import warnings
    >>> from pathlib import Path
    >>> import tanlearn
    >>> text = "zip, since ,buys\n08010,2024-05-01, yes\n01020,2023-05-02,no\nTotal,,\n"
    >>> _ = Path("shop.csv").write_text(text)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     frame = tanlearn.read_table("shop.csv", target="buys")
    >>> frame.to_dict("list")
    {'zip': ['08010', '01020'], 'since': [19844.0, 19479.0], 'buys': ['yes', 'no']}
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}. Put it in brackets.")
    table = open_table(path, **options)
    for name in [*([] if target is None else [target]), *(columns or ())]:
        if name not in table.columns:
            known = ", ".join(map(str, table.columns))
            raise ValueError(f"{table.name}: there is no column {name!r}. The columns are: {known}.")
    if target is None:
        return read_features(table, table.columns if columns is None else columns)[0]
    features = [name for name in (table.columns if columns is None else columns) if name != target]
    X, y, n_missing, _ = read_classified(table, features, target)
    warn_of_rows_without_class(table.name, target, n_missing, len(y))
    order = [name for name in table.columns if name == target or name in features]
    return X.assign(**{target: y})[order]


def warn_of_rows_without_class(name: str, target: str, n_missing: int, n_samples: int) -> None:
    """Warn about rows of a file that are left out because they have no class."""
    if n_missing:
        has, are = ("has", "is") if n_missing == 1 else ("have", "are")
        warn(f"{name}: {n_missing:,} of {n_missing + n_samples:,} rows {has} no {target!r} and {are} left out.")


def with_class(frame: Any, target: str, name: str) -> tuple[Any, int]:
    """Return the rows with a class, converted to a label dtype, and the number of rows without a class."""
    missing = frame[target].isna()
    n_missing = int(missing.sum())
    if n_missing:
        frame = frame[~missing]
    dtype = frame[target].dtype
    y = frame[target].to_numpy(getattr(dtype, "numpy_dtype", None) if dtype.kind in "biuf" else None)
    if y.dtype.kind == "f":
        wrong = y[~np.isfinite(y) | (y != np.floor(y))]
        if len(wrong):
            is_finite = np.isfinite(wrong[0])
            remedy = "Round it, or discretize it" if is_finite else "Replace it with a class, or leave out its rows"
            raise ValueError(
                f"{name}: the target {target!r} holds {wrong[0]}, but class labels must be strings, integers or "
                f"booleans. {remedy}."
            )
        if (np.abs(y) < LARGEST_EXACT).all():  # integers that became floats because values were missing
            y = y.astype(np.int64)
    elif y.dtype.kind == "O" and any(isinstance(label, bytes) for label in frame[target].unique()):
        raise ValueError(f"{name}: the target {target!r} holds bytes. Decode them to strings.")
    return frame.assign(**{target: y}), n_missing


def dates_as_days(frame: Any, columns: Collection[str] | None = None) -> tuple[Any, list[str]]:
    """Convert date columns to fractional days since 1970-01-01. Return the frame and the names of these columns.

    Date columns have a dtype of dates or durations, or contain only strings in ISO 8601 format such as 2026-11-22 or
    2026-11-22T17:30:00Z. A time without a zone counts as UTC. ``columns`` limits the conversion to some columns.
    """
    days = {name: _days(frame[name]) for name in frame.columns if columns is None or name in columns}
    found = {name: values for name, values in days.items() if values is not None}
    return (frame.assign(**found) if found else frame), list(found)


def _days(series: Any) -> AnyArray | None:
    """Return a date column as days, or None if it is not a date column."""
    pd = require_pandas("a table")
    if getattr(series.dtype, "kind", "O") == "m":
        return (series / pd.Timedelta(days=1)).to_numpy(float)
    if getattr(series.dtype, "kind", "O") != "M":
        present = series.dropna()
        if not len(present):
            return None
        kind = pd.api.types.infer_dtype(present, skipna=False) if present.dtype.kind in "OU" else ""
        is_written = kind == "string" and present.iloc[:1].str.fullmatch(_DATE).all()  # most columns end here
        if kind not in ("date", "datetime") and not (is_written and present.str.fullmatch(_DATE).all()):
            return None
    moments = pd.to_datetime(series, utc=True, errors="coerce", format="ISO8601")
    if moments.isna().sum() > series.isna().sum():  # an invalid date such as 30 February
        return None
    return ((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(float)


def _has_large_integers(series: Any) -> bool:
    """Return whether a column contains 64-bit integers that pandas rounds to floats because values are missing."""
    if series.dtype.kind not in "iuf" or not len(values := series.dropna()):
        return False
    low, high = float(values.min()), float(values.max())
    is_large = max(-low, high) >= LARGEST_EXACT and max(-low, high) < 2.0**64
    return is_large and bool((values % 1 == 0).all())


def _read_exactly(
    table: TableFile, columns: Sequence[str], target: str | None = None, dropped: list[int] | None = None
) -> Any:
    """Read columns and target; if integers were rounded, warn and read the file again with their columns as text."""
    wanted = [*columns, *([] if target is None else [target])]
    frame = table.read(wanted, target=target, dropped=dropped)
    rounded = [name for name in columns if frame[name].hasnans and _has_large_integers(frame[name])]
    if not rounded or not table.is_text:
        return frame
    warn(f"{MixedColumnsError(table.name, rounded, _ROUNDED)}, so all values are read as text.")
    return table.read(wanted, target=target, string_columns=rounded)


def _kind(present: Any) -> str | None:
    """Return the kind of the values of a column: "number", "bool" or "text", or None without values."""
    if not len(present):
        return None
    if present.dtype.kind in "iuf":
        return "number"
    is_bool = present.dtype.kind == "b" or all(type(value) is bool for value in present.unique().tolist())
    return "bool" if is_bool else "text"
