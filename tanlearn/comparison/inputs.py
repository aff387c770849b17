"""Conversion of the data sets and learners of a comparison: names, files, arrays, frames and estimators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from tanlearn._typing import AnyArray
from tanlearn.baselines import Learner, find_learner
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.files.fingerprints import content_digest
from tanlearn.sources.datasets import Dataset, load_dataset
from tanlearn.sources.frames import lazy_error, native_frame

__all__ = ["data_digest", "learner_digest", "named_datasets", "named_learners", "settings_of"]

#: Parameters of a learner that do not change its models.
_IRRELEVANT = ("n_jobs", "verbose")
#: Number of hexadecimal digits of digests.
_DIGITS = 16


def named_datasets(datasets: Any) -> list[Dataset]:
    """Return data sets with distinct names. The keys of a dict are names."""
    if isinstance(datasets, dict):
        found = [replace(_dataset(one, str(name)), name=str(name)) for name, one in datasets.items()]
    elif isinstance(datasets, list):
        found = [_dataset(one, f"data {number}") for number, one in enumerate(datasets, start=1)]
    else:
        found = [_dataset(datasets, "data")]
    if not found:
        raise ValueError("a comparison needs at least one data set, got none. Pass, for example, datasets='iris'.")
    _check_distinct("data sets", (dataset.name for dataset in found))
    return found


def _dataset(source: Any, name: str) -> Dataset:
    """Return one data set. ``name`` is used only for arrays and frames."""
    if isinstance(source, Dataset):
        return source
    if isinstance(source, (str, Path)):
        return load_dataset(source)
    if not isinstance(source, tuple) or len(source) != 2:
        raise TypeError(
            f"a data set must be a name, the path of a file, (X, y), (frame, 'target'), (path, 'target') or a "
            f"Dataset, got {type(source).__name__}. Pass a list for several data sets, or a dict to name them."
        )
    X, y = source
    if isinstance(X, (str, Path)):
        return load_dataset(X, target=y)
    if (error := lazy_error(X)) is not None:
        raise error
    X = native_frame(X)
    if isinstance(y, str):
        if y not in (names := list(getattr(X, "columns", ()))):
            near = difflib.get_close_matches(y, map(str, names), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{name}: there is no column {y!r}.{hint} The columns are: {', '.join(map(str, names))}.")
        target = X[y]
        X = X.drop(columns=y) if hasattr(X, "iloc") else X.drop(y)
        y = target
    if not hasattr(X, "iloc") and not isinstance(X, np.ndarray):
        X = X.to_pandas() if hasattr(X, "to_pandas") else _as_array(X)
    if X.ndim != 2:
        raise ValueError(f"{name}: X must have shape (n_samples, n_features), got {X.shape}.")
    columns = getattr(X, "columns", range(X.shape[1]))
    return Dataset(name, X, np.asarray(y), [str(column) for column in columns])


def _as_array(rows: Any) -> AnyArray:
    """Return nested lists as an array, without NumPy's conversion of numbers to strings in mixed lists."""
    found = np.asarray(rows)
    return np.array(rows, dtype=object) if found.dtype.kind in "US" else found


def data_digest(dataset: Dataset) -> str:
    """Return a hexadecimal digest of all values, classes, column names and predefined splits."""
    X = dataset.X
    columns = [X.iloc[:, j].to_numpy() for j in range(X.shape[1])] if hasattr(X, "iloc") else [X]
    columns = [column if column.dtype.kind in "biufUSM" else column.astype(str) for column in columns]
    names, folds = list(dataset.feature_names), [list(fold) for fold in dataset.folds or ()]
    y = dataset.y if dataset.y.dtype.kind in "biufUS" else dataset.y.astype(str)
    return content_digest("data set", [names, dataset.discrete_features, columns, y, folds])[:_DIGITS]


def named_learners(learners: Any) -> list[Learner]:
    """Return learners with distinct names. The keys of a dict are names."""
    if isinstance(learners, dict):
        found = [replace(_entry(learner, str(name)), name=str(name)) for name, learner in learners.items()]
    else:
        several = [learners] if isinstance(learners, (str, Learner)) or hasattr(learners, "fit") else list(learners)
        found = [_entry(learner, type(learner).__name__) for learner in several]
    if not found:
        raise ValueError("a comparison needs at least one learner, got none. Pass, for example, TANClassifier().")
    _check_distinct("learners", (learner.name for learner in found))
    return found


def _entry(learner: Any, name: str) -> Learner:
    """Return one learner. ``name`` is used only for estimators."""
    if isinstance(learner, str):
        return find_learner(learner)
    if isinstance(learner, Learner):
        return learner
    if isinstance(learner, type):
        raise TypeError(f"a learner must be an object, got the class {learner.__name__}. Pass {learner.__name__}().")
    if hasattr(learner, "learn") and not hasattr(learner, "predict"):
        raise TypeError(
            f"a learner must be a classifier, got the structure learner {name}. Pass "
            f"BayesNetClassifier(structure={type(learner).__name__}())."
        )
    absent = [method for method in ("fit", "predict", "get_params", "set_params") if not hasattr(learner, method)]
    if absent:
        raise TypeError(
            f"a learner must be a name, a Learner or an unfitted classifier with scikit-learn's interface, but "
            f"{name} has no {' and no '.join(absent)}."
        )
    return Learner(name, "estimator of the user", "", _Copies(learner))


@dataclass(frozen=True)
class _Copies:
    """Factory of unfitted copies of an estimator.

    In a copy, the seed replaces a ``random_state`` of None, and the values of the comparison replace an ``n_jobs`` or
    ``encoder`` of None.
    """

    estimator: Any

    def __call__(
        self, random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
    ) -> Any:
        """Return an unfitted copy."""
        made = clone(self.estimator)
        own = made.get_params(deep=False)
        given = {name: random_state for name in made.get_params() if name.rpartition("__")[2] == "random_state"}
        given |= {name: value for name, value in (("n_jobs", n_jobs), ("encoder", encoder)) if name in own}
        return made.set_params(**{name: value for name, value in given.items() if made.get_params()[name] is None})


def settings_of(learner: Learner, n_epochs: int | None) -> str:
    """Return the non-default settings of a learner in one line, or an empty string if the learner cannot be created."""
    try:
        made: Any = learner.make(random_state=None, n_epochs=n_epochs)
    except Exception:  # the cells report it
        return ""
    return " ".join((made.__repr__(N_CHAR_MAX=10**6) if isinstance(made, BaseEstimator) else repr(made)).split())


def learner_digest(learner: Learner, n_epochs: int | None) -> str:
    """Return a digest of all settings of a learner that affect its models. Raise ValueError if this is impossible."""
    try:
        made = learner.make(random_state=None, n_epochs=n_epochs)
    except Exception as error:  # the cells report it
        return content_digest("learner", [learner.name, type(error).__name__])[:_DIGITS]
    settings = {k: v for k, v in made.get_params(deep=False).items() if k not in _IRRELEVANT}
    try:
        return content_digest("learner", [type(made), settings])[:_DIGITS]
    except ValueError as error:
        raise ValueError(
            f"with path, a digest is computed from the settings of each learner, which is impossible for "
            f"{learner.name!r} ({error.__cause__}). Define its functions at the top level of a module, or leave out "
            f"path."
        ) from error


def _check_distinct(what: str, names: Iterable[str]) -> None:
    """Raise ValueError if a name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two {what} have the name {name!r}. Pass a dict to give them different names.")
        seen.add(name)
