"""Splits of data sets into training and test rows, and the cells (learner, data set, fold) of a comparison."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import sklearn

from tanlearn._typing import AnyArray, IntArray
from tanlearn._version import __version__
from tanlearn._warnings import warn
from tanlearn.baselines import Learner
from tanlearn.comparison.inputs import data_digest, learner_digest, settings_of
from tanlearn.comparison.results import CellResult
from tanlearn.encoding.splits import stratified_splits
from tanlearn.sources.datasets import Dataset
from tanlearn.sources.validation import read_classes

__all__ = ["DEFAULT_FOLDS", "SplitData", "check_folds", "plan", "split_data"]

Split: TypeAlias = tuple[IntArray, IntArray]
#: Number of folds of a data set without predefined splits.
DEFAULT_FOLDS = 5


@dataclass(frozen=True, eq=False)
class SplitData:
    """Data set with its splits, shared by all cells of the data set."""

    dataset: Dataset
    splits: Sequence[Sequence[Split]] = field(repr=False)  # for each repeat, the training and test rows of each fold
    classes: AnyArray  # (n_classes,) sorted


def split_data(datasets: Sequence[Dataset], n_folds: int | None, n_repeats: int, random_state: int) -> list[SplitData]:
    """Draw the splits of all repeats. Data sets with predefined splits keep these splits, and have a single repeat."""
    if n_repeats < 1:
        raise ValueError(
            f"n_repeats must be an integer of at least 1, got {n_repeats!r}. Pass 1 for a single cross-validation."
        )
    if n_folds is not None and n_folds < 1:
        raise ValueError(f"n_folds must be at least 1 (1 holds out a third of the rows), got {n_folds!r}.")
    if all(dataset.folds is not None for dataset in datasets) and (n_folds is not None or n_repeats > 1):
        name = "n_repeats" if n_folds is None else "n_folds"
        raise ValueError(
            f"{name} must not be set, because {datasets[0].name} has a predefined split into training and test rows. "
            f"Leave {name} out."
        )
    return [_split(dataset, n_folds, n_repeats, random_state) for dataset in datasets]


def _split(dataset: Dataset, n_folds: int | None, n_repeats: int, random_state: int) -> SplitData:
    """Draw the splits of one data set."""
    n = {None: DEFAULT_FOLDS, 1: None}.get(n_folds, n_folds)
    try:
        codes, classes = read_classes(dataset.y, dataset.X.shape[0])
        if dataset.folds is None:
            check_folds(dataset.y, n)
    except ValueError as error:
        raise ValueError(f"data set {dataset.name!r}: {error}") from error
    if dataset.folds is not None:
        return SplitData(dataset, [list(dataset.folds)], classes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)  # check_folds names the class
        return SplitData(
            dataset, [stratified_splits(codes, n, random_state + repeat) for repeat in range(n_repeats)], classes
        )


def check_folds(y: AnyArray, n_folds: int | None) -> None:
    """Raise ValueError if all classes have too few rows for the folds, and warn if only some have too few.

    If ``n_folds`` is None, a third of the rows is held out, which requires at least two rows per class.
    """
    codes, classes = read_classes(y, len(y))
    sizes = np.bincount(codes)
    names, least, most = classes.tolist(), int(sizes.argmin()), int(sizes.max())
    rare = f"the least populated class, {names[least]!r}, has {sizes[least]} row(s)"
    if n_folds is None:
        if sizes[least] < 2:
            raise ValueError(
                f"every class needs at least two rows, but {rare}. Remove the class, collect more rows, or use folds."
            )
    elif most < n_folds:
        raise ValueError(
            f"at least one class must have {n_folds} rows or more for {n_folds} folds. Use at most {most} folds."
        )
    elif sizes[least] < n_folds:
        warn(
            f"{rare}, so some of the {n_folds} folds have no test row of this class. Use fewer folds or more rows.",
            UserWarning,
        )


def plan(
    tables: Sequence[SplitData],
    learners: Sequence[Learner],
    random_state: int,
    n_epochs: int | None,
    *,
    is_stored: bool,
) -> list[CellResult]:
    """Return all cells, without measures, in the order of data sets, learners, repeats and folds.

    If results are stored, every learner must have settings from which a digest can be computed.
    """
    versions = f"tanlearn {__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}"
    identities: list[dict[str, Any]] = []
    for learner in learners:
        identity = {"learner": learner.name, "settings": settings_of(learner, n_epochs), "versions": versions}
        try:
            identity["learner_id"] = learner_digest(learner, n_epochs)
        except ValueError:
            if is_stored:
                raise
            identity["learner_id"] = ""
        identities.append(identity)
    return [
        CellResult(
            dataset=table.dataset.name,
            data_id=data_id,
            repeat=repeat,
            fold=fold,
            n_train=len(train),
            n_test=len(test),
            n_folds=len(splits),
            seed=random_state + repeat - 1,
            **identity,
        )
        for table, data_id in zip(tables, [data_digest(table.dataset) for table in tables], strict=True)
        for identity in identities
        for repeat, splits in enumerate(table.splits, start=1)
        for fold, (train, test) in enumerate(splits, start=1)
    ]
