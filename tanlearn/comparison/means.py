"""Means of the results of a learner over the cells of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn.comparison.results import CellResult

__all__ = ["MeanResult", "mean_result"]


@dataclass(frozen=True)
class MeanResult:
    """Means of the results of a learner over the finished cells of a data set, or the reason for its failure.

    Parameters
    ----------
    dataset, learner : str
        Names of the data set and the learner.
    n_folds : int
        Number of finished cells.
    n_train, n_test : int
        Numbers of training and test rows in the first cell.
    test_error : float or None
        Percentage of misclassified test rows, or None if the learner has failed in a cell.
    test_error_std : float or None
        Standard deviation of the error over the cells (ddof = 1), or None for a single cell.
    log_loss : float or None
        Mean negative log-probability of the true class of the test rows, in nats.
    n_parameters : int or None
        Number of free parameters.
    fit_seconds : float or None
        Wall-clock time of ``fit`` from raw values, including encoding.
    predict_microseconds : float or None
        Wall-clock time of ``predict`` per test row, including encoding.
    failure : str or None
        Reason for the first failure.

    Examples
    --------
    >>> from tanlearn.comparison import compare
    >>> (bayes,) = compare("iris", "NB ML", n_folds=3).means()
    >>> bayes.n_folds, bayes.n_train, bayes.n_test, round(bayes.test_error, 1), round(bayes.test_error_std, 1)
    (3, 100, 50, 4.7, 3.1)
    """

    dataset: str
    learner: str
    n_folds: int
    n_train: int
    n_test: int
    test_error: float | None = None
    test_error_std: float | None = None
    log_loss: float | None = None
    n_parameters: int | None = None
    fit_seconds: float | None = None
    predict_microseconds: float | None = None
    failure: str | None = None


def mean_result(cells: Sequence[CellResult]) -> MeanResult:
    """Average the cells of one learner on one data set."""
    first = cells[0]
    shared: Any = {
        "dataset": first.dataset,
        "learner": first.learner,
        "n_folds": len(cells),
        "n_train": first.n_train,
        "n_test": first.n_test,
    }
    failed = [cell.failure for cell in cells if cell.failure is not None]
    if failed:
        return MeanResult(**shared, failure=failed[0])

    def average(values: Iterable[float | None]) -> float | None:
        given = list(values)
        return None if None in given else float(np.mean(given))  # type: ignore[arg-type]

    errors = [cell.error for cell in cells if cell.error is not None]
    n_parameters = average(cell.n_parameters for cell in cells)
    return MeanResult(
        **shared,
        test_error=average(errors),
        test_error_std=float(np.std(errors, ddof=1)) if len(cells) > 1 else None,
        log_loss=average(cell.log_loss for cell in cells),
        n_parameters=None if n_parameters is None else round(n_parameters),
        fit_seconds=average(cell.fit_seconds for cell in cells),
        predict_microseconds=average(cell.predict_microseconds for cell in cells),
    )
