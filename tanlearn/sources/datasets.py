"""Data sets for comparing learners: those bundled with scikit-learn, files, and OpenML.

Loaders read and check raw values. :class:`~tanlearn.TableEncoder` encodes them inside ``fit``, so that cut points are
fitted to training rows only.
"""

from __future__ import annotations

import difflib
import itertools
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.sources.file_formats import ARRAYS, OUTPUTS, joined_by_or, named_format
from tanlearn.sources.file_source import read_table
from tanlearn.sources.table_files import open_table, require_pandas

__all__ = ["BUNDLED", "Dataset", "load_dataset", "load_digits", "load_npz", "load_openml", "load_table"]

#: Data sets bundled with scikit-learn, by name.
BUNDLED = ("digits", "iris", "wine", "breast_cancer")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Raw data with class labels and, optionally, predefined splits.

    Parameters
    ----------
    name : str
        Name for titles.
    X : ndarray or pandas DataFrame of shape (n_samples, n_features)
        Raw values; NaN and None mean missing.
    y : ndarray of shape (n_samples,)
        Class labels.
    feature_names : sequence of str
        Names of the columns.
    discrete_features : "auto", bool or ndarray of shape (n_features,), default="auto"
        Categorical columns, as in :class:`~tanlearn.TableEncoder`.
    folds : list of (train, test) or None, default=None
        Row numbers of the predefined splits; ``None`` if there are none.

    Raises
    ------
    ValueError
        If the numbers of rows and labels differ, the numbers of columns and names differ, or a split has an empty part
        or a row number out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.sources.datasets import Dataset
    >>> data = Dataset("parity", np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0]), ["a", "b"])
    >>> data
    Dataset(name='parity', feature_names=['a', 'b'], discrete_features='auto', folds=None)
    >>> X, y = data.take(np.array([1, 3]))
    >>> y
    array([1, 0])
    """

    name: str
    X: Any = field(repr=False)
    y: AnyArray = field(repr=False)
    feature_names: Sequence[str]
    discrete_features: Any = "auto"
    folds: Sequence[tuple[IntArray, IntArray]] | None = None

    def __post_init__(self) -> None:
        n_samples = len(self.y)
        if self.X.shape[0] != n_samples:
            raise ValueError(f"{self.name}: X has {self.X.shape[0]} rows, but y has {n_samples}.")
        if self.X.shape[1] != len(self.feature_names):
            raise ValueError(
                f"{self.name}: X has {self.X.shape[1]} columns, but there are {len(self.feature_names)} feature names."
            )
        for k, parts in enumerate(self.folds or (), start=1):
            for part, rows in zip(("training", "test"), parts, strict=True):
                if len(rows) == 0 or rows.min() < 0 or rows.max() >= n_samples:
                    raise ValueError(
                        f"{self.name}: the {part} rows of split {k} must be one or more numbers from 0 to "
                        f"{n_samples - 1}."
                    )

    def take(self, rows: IntArray) -> tuple[Any, AnyArray]:
        """Return some of the rows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows,)
            Row numbers.

        Returns
        -------
        X : ndarray or pandas DataFrame of shape (n_rows, n_features)
            Raw values.
        y : ndarray of shape (n_rows,)
            Class labels.
        """
        return (self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]), self.y[rows]


def load_dataset(source: str | Path = "digits", *, target: str | None = None) -> Dataset:
    """Load a data set by name or from a file.

    Parameters
    ----------
    source : str or Path, default="digits"
        "digits", "iris", "wine", "breast_cancer", "openml:NAME", or a file that ends in .npz, .csv, .tsv, .parquet or
        .feather, or in another extension of these tables that :func:`tanlearn.open_table` reads.
    target : str, optional
        Name of the column with the class labels. Required for tables, optional for OpenML.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the kind of source is unknown, or the file is malformed.
    ImportError
        If reading the source needs a package that is not installed.

    Examples
    --------
    >>> from tanlearn.sources.datasets import load_dataset
    >>> load_dataset("digits").X.shape
    (1797, 64)
    >>> load_dataset("weather.xls")
    Traceback (most recent call last):
    ...
    ValueError: data must be 'digits', 'iris', ... or a file .npz, .csv, .tsv, ... or .feather, got 'weather.xls'.
    """
    name = str(source)
    if name.startswith("openml:"):
        return load_openml(name.removeprefix("openml:"), target=target)
    if named_format(Path(source)) is not None:
        return load_table(source, target=target)
    if name not in BUNDLED and Path(source).suffix.lower() != ARRAYS:
        known = f"{', '.join(map(repr, BUNDLED))}, 'openml:NAME', or a file {joined_by_or([ARRAYS, *OUTPUTS])}"
        near = difflib.get_close_matches(name.casefold(), BUNDLED, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"data must be {known}, got {name!r}.{hint}")
    if target is not None:
        raise ValueError(
            f"target ({target!r}) cannot be set for {name}, which contains its own classes. Leave out target."
        )
    if name in BUNDLED:
        return load_digits() if name == "digits" else _load_bundled(name)
    return load_npz(source)


def load_digits() -> Dataset:
    """Load the handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels, 10 classes.

    All pixels (0 to 16) are declared continuous, even those near the edge, which have few distinct values.
    """
    from sklearn.datasets import load_digits as load_bundled

    bunch = load_bundled()
    return Dataset("digits", bunch.data, bunch.target, list(bunch.feature_names), discrete_features=False)


def _load_bundled(name: str) -> Dataset:
    """Load iris, wine or breast_cancer; their columns are measurements, and therefore continuous."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    return Dataset(name, bunch.data, bunch.target_names[bunch.target], list(bunch.feature_names), False)


def load_npz(path: str | Path) -> Dataset:
    """Load an archive of NumPy arrays in one of two layouts; arrays of Python objects are rejected.

    *One table*: ``X`` and ``y``, and optionally ``classes`` (names that ``y`` indexes), ``feature_names``,
    ``is_categorical`` (mask of columns), ``missing`` (mask of values), ``train_idx`` and ``test_idx`` (a split).
    Missing values become NaN, or None among strings.

    *Folds*: ``x_tr_fold<k>``, ``t_tr_fold<k>``, ``x_te_fold<k>`` and ``t_te_fold<k>`` from k = 1, discretized for each
    fold separately; all columns are categorical. The rows of all parts are concatenated.
    """
    path = _existing(path)
    arrays = _read_arrays(path)
    if "X" in arrays:
        return _from_one_table(path, arrays)
    if "x_tr_fold1" in arrays:
        return _from_folds(path, arrays)
    raise ValueError(
        f"{path} must contain the arrays X and y, or the arrays of folds (x_tr_fold1 and so on), but contains "
        f"{', '.join(arrays)}."
    )


def load_table(path: str | Path, *, target: str | None) -> Dataset:
    """Load a delimited text, Parquet or Feather file; ``target`` names the column with the class labels."""
    path = _existing(path)
    require_pandas(path.name)
    if target is None:
        known = ", ".join(map(str, open_table(path).columns))
        raise ValueError(f"{path}: target must name the column with the classes. The columns are: {known}.")
    frame = read_table(path, target=target)
    return _from_frame(path.stem, frame.drop(columns=target), frame[target], "auto")


def load_openml(name: str, *, target: str | None = None) -> Dataset:
    """Fetch the oldest active version of a data set from openml.org; scikit-learn caches it on disk.

    Columns that OpenML declares nominal are categorical. ``target`` defaults to the target that OpenML declares.
    """
    from sklearn.datasets import fetch_openml

    require_pandas(f"openml:{name}")
    try:
        bunch = fetch_openml(name, target_column=target or "default-target", as_frame=True, parser="pandas")
    except OSError as error:
        raise ConnectionError(
            f"openml:{name} cannot be fetched: {error}. Check your connection, or download the table yourself and pass "
            f"it as a .csv file."
        ) from error
    if bunch.target is None or bunch.target.ndim != 1:
        columns = ", ".join(map(str, bunch.frame.columns))
        raise ValueError(f"openml:{name} does not declare exactly one target column. Set target to one of: {columns}.")
    # The dtype kind of a pandas category is "O", as for strings.
    nominal = np.array([dtype.kind not in "iuf" for dtype in bunch.data.dtypes])
    return _from_frame(name, bunch.data, bunch.target, nominal)


def _existing(path: str | Path) -> Path:
    """Return the path of a file, or raise FileNotFoundError."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


def _from_frame(name: str, X: Any, target: Any, discrete_features: Any) -> Dataset:
    """Return a data set from a frame after checking that every row has a class label."""
    missing = target.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{name}: the target {target.name!r} is missing in row {missing.argmax()} ({missing.sum()} of "
            f"{len(missing)} rows). Drop the rows without a class."
        )
    return Dataset(name, X, target.to_numpy(), [str(column) for column in X.columns], discrete_features)


def _read_arrays(path: Path) -> dict[str, AnyArray]:
    """Return all arrays of an .npz archive."""
    try:
        # NumPy would try to unpickle other files, and leave them open.
        if not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not an archive of NumPy arrays as written by numpy.savez.") from error
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Python objects are never unpickled: save strings with dtype=str, and "
            f"missing values as a mask called missing."
        ) from error


def _require(path: Path, arrays: Mapping[str, AnyArray], names: Sequence[str]) -> list[AnyArray]:
    """Return the arrays with the given names, or raise ValueError."""
    absent = [name for name in names if name not in arrays]
    if absent:
        raise ValueError(f"{path} must also contain {', '.join(absent)}. It contains only {', '.join(arrays)}.")
    return [arrays[name] for name in names]


def _from_one_table(path: Path, arrays: Mapping[str, AnyArray]) -> Dataset:
    """Build the data set from the one-table layout."""
    X, y = _require(path, arrays, ["X", "y"])
    if X.ndim != 2:
        raise ValueError(f"{path}: X must have shape (n_samples, n_features), got {X.shape}.")
    if "classes" in arrays:
        classes = arrays["classes"]
        if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= len(classes):
            raise ValueError(f"{path}: y must hold indices into classes (0..{len(classes) - 1}).")
        y = classes[y]
    names = arrays.get("feature_names", np.arange(X.shape[1])).astype(str).tolist()
    folds = None
    if "train_idx" in arrays or "test_idx" in arrays:
        train, test = _require(path, arrays, ["train_idx", "test_idx"])
        folds = [(train.astype(np.intp), test.astype(np.intp))]
    discrete_features = arrays.get("is_categorical", "auto")
    if "missing" in arrays:
        missing = arrays["missing"]
        if missing.shape != X.shape or missing.dtype != np.bool_:
            raise ValueError(f"{path}: missing must be a bool mask of shape {X.shape}, got {missing.shape}.")
        filler, dtype = (np.nan, np.float64) if X.dtype.kind in "biuf" else (None, object)
        X = X.astype(dtype)
        X[missing] = filler
    return Dataset(path.stem, X, y, names, discrete_features, folds)


def _from_folds(path: Path, arrays: Mapping[str, AnyArray]) -> Dataset:
    """Build the data set from the layout of folds."""
    n_folds = sum(name.startswith("x_tr_fold") for name in arrays)
    names = [f"{part}_fold{k}" for k in range(1, n_folds + 1) for part in ("x_tr", "x_te", "t_tr", "t_te")]
    parts = _require(path, arrays, names)
    tables, labels = parts[0::4] + parts[1::4], parts[2::4] + parts[3::4]
    shapes = [(len(y), *tables[0].shape[1:]) for y in labels]
    wrong = [name for name, x, shape in zip(names[0::4] + names[1::4], tables, shapes, strict=True) if x.shape != shape]
    if tables[0].ndim != 2 or wrong:
        raise ValueError(
            f"{path}: x_tr_fold<k> and x_te_fold<k> must be two-dimensional, with one row per entry of t_tr_fold<k> or "
            f"t_te_fold<k>, and as many columns as x_tr_fold1. Wrong shape: {', '.join(wrong or names[:1])}."
        )
    ends = np.cumsum([0, *map(len, tables)])
    rows = [np.arange(first, last) for first, last in itertools.pairwise(ends)]
    folds = list(zip(rows[:n_folds], rows[n_folds:], strict=True))
    X, y = np.concatenate(tables), np.concatenate(labels)
    return Dataset(path.stem, X, y, [str(j) for j in range(X.shape[1])], True, folds)
