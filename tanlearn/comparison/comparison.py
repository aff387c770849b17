"""The results of a comparison: cells, means and tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.comparison.results import MEASURES, RESULTS, CellResult, Measure, check_agreement, read_results, to_csv
from tanlearn.files.regular_files import write_file

__all__ = ["Comparison", "MeanResult", "find_measure"]


@dataclass(frozen=True)
class MeanResult:
    """Means of a learner over the finished cells of a data set, or the reason of its failure.

    Parameters
    ----------
    dataset, learner : str
        Names of the data set and the learner.
    n_folds : int
        Number of finished cells.
    n_train, n_test : int
        Numbers of training and test rows of the first cell.
    test_error : float or None
        Misclassified test rows in percent; None if the learner has failed in a cell.
    test_error_std : float or None
        Standard deviation of the error over the cells (ddof = 1); None for a single cell.
    log_loss : float or None
        Mean negative log-probability of the true class of test rows.
    n_parameters : int or None
        Number of free parameters.
    fit_seconds : float or None
        Wall-clock time of ``fit`` from raw values, including encoding.
    predict_microseconds : float or None
        Wall-clock time of ``predict`` per test row, including encoding.
    failure : str or None
        Reason of the first failure.

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


class Comparison:
    """Results of learners on the same splits of data sets.

    :func:`compare` returns it, and :meth:`load` reads it from a file.

    Parameters
    ----------
    cells : iterable of CellResult
        Finished cells, one for each data set, learner, repeat and fold.

    Attributes
    ----------
    cells : tuple of CellResult
        The cells.
    datasets, learners : list of str
        Names in the order of the cells.

    Examples
    --------
    >>> from tanlearn.comparison import Comparison, compare
    >>> comparison = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3)
    >>> comparison.save("results.csv")
    >>> Comparison.load("results.csv")
    Comparison(2 data sets, 2 learners, 12 cells)
    >>> comparison.failures
    []
    """

    def __init__(self, cells: Iterable[CellResult]) -> None:
        self.cells = tuple(cells)
        self.datasets = list(dict.fromkeys(cell.dataset for cell in self.cells))
        self.learners = list(dict.fromkeys(cell.learner for cell in self.cells))
        self._by_key = {cell.key: cell for cell in self.cells}

    def __repr__(self) -> str:
        failures = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"Comparison({len(self.datasets)} data sets, {len(self.learners)} learners, {len(self.cells)} cells"
            f"{failures})"
        )

    @property
    def failures(self) -> list[CellResult]:
        """Cells whose learner has failed."""
        return [cell for cell in self.cells if cell.failure is not None]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per cell and the fields of :class:`CellResult` as columns.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> frame = compare("iris", ["NB ML", "TAN-CMI ML"], n_folds=3).to_frame()
        >>> frame.groupby("learner")["error"].mean().round(1).to_dict()
        {'NB ML': 4.7, 'TAN-CMI ML': 4.7}
        """
        from dataclasses import asdict

        from tanlearn.sources.table_files import require_pandas

        return require_pandas("to_frame").DataFrame([asdict(cell) for cell in self.cells])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cells to a CSV file, which spreadsheets and pandas read.

        ``compare`` with this path continues the comparison.

        Parameters
        ----------
        path : str or Path
            File to write or replace.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_file(path, to_csv(self.cells).encode(), RESULTS)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read a file that :meth:`save`, :func:`compare` or ``tanlearn compare --output`` has written.

        Parameters
        ----------
        path : str or Path
            File to read. A last line without its end, as a killed process leaves it, is ignored.

        Returns
        -------
        Comparison

        Raises
        ------
        ValueError
            If the file is not a results file, or contains a cell twice.
        OSError
            If the file cannot be read.
        """
        return cls(read_results(path))

    def merge(self, other: Comparison) -> Comparison:
        """Return the cells of two comparisons: of other data sets, learners or repeats.

        Parameters
        ----------
        other : Comparison
            Its cells come last.

        Returns
        -------
        Comparison

        Raises
        ------
        ValueError
            If both contain the same cell, or data, folds, seeds or settings differ under the same name.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare("iris", "NB ML").merge(compare("iris", "TAN-CMI ML"))
        Comparison(1 data sets, 2 learners, 10 cells)
        >>> compare("iris", "NB ML").merge(compare("iris", "TAN-CMI ML", n_folds=3))
        Traceback (most recent call last):
        ...
        ValueError: results cannot be merged: the number of folds of 'iris' differs. This comparison has 5; ...
        """
        check_agreement(self.cells, other.cells, "This comparison", "the other")
        for cell in other.cells:
            if cell.key in self._by_key:
                raise ValueError(f"results cannot be merged: both have the cell {cell.label}. Leave one of them out.")
        return Comparison([*self.cells, *other.cells])

    def means(self) -> list[MeanResult]:
        """Average the cells of each learner on each data set.

        Returns
        -------
        list of MeanResult
            By data set and learner.
        """
        found = []
        for dataset in self.datasets:
            for learner in self.learners:
                cells = [cell for cell in self.cells if (cell.dataset, cell.learner) == (dataset, learner)]
                if cells:
                    found.append(_mean_result(cells))
        return found

    def mean(self, measure: str = "error") -> FloatArray:
        """Average a measure over the splits of each data set.

        Parameters
        ----------
        measure : str, default="error"
            Field of :class:`CellResult`: error, log_loss, brier, auc, fit_seconds, predict_seconds or n_parameters.

        Returns
        -------
        ndarray of shape (n_datasets, n_learners)
            NaN for a learner that has failed, or is not finished, in a split that another learner has finished.

        Raises
        ------
        ValueError
            If there is no such measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare("iris", ["NB ML", "TAN-CMI ML"], n_folds=3).mean("auc").round(3)
        array([[0.982, 0.986]])
        """
        which = find_measure(measure)
        found = np.full((len(self.datasets), len(self.learners)), np.nan)
        for i, dataset in enumerate(self.datasets):
            values = self.values(dataset, which.name)
            found[i] = values.mean(axis=1)
        return found

    def values(self, dataset: str, measure: str = "error") -> FloatArray:
        """Return a measure of all learners in each split of a data set.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        measure : str, default="error"
            Field of :class:`CellResult`.

        Returns
        -------
        ndarray of shape (n_learners, n_splits)
            NaN for cells that are not finished, have failed or have no such measure.

        Raises
        ------
        ValueError
            If there is no such data set or measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare("iris", "NB ML", n_folds=3).values("iris", "error").round(1)
        array([[2., 8., 4.]])
        """
        which = find_measure(measure)
        splits = sorted({(c.repeat, c.fold) for c in self.cells if c.dataset == dataset})
        if not splits:
            raise ValueError(f"there is no data set {dataset!r}. The data sets are: {', '.join(self.datasets)}.")
        found = np.full((len(self.learners), len(splits)), np.nan)
        for i, learner in enumerate(self.learners):
            for j, split in enumerate(splits):
                cell = self._by_key.get((dataset, learner, *split))
                value = None if cell is None else getattr(cell, which.name)
                found[i, j] = np.nan if value is None else value
        return found


def find_measure(name: str) -> Measure:
    """Return a measure by its name, or raise ValueError."""
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r}. The measures are: {', '.join(MEASURES)}.")
    return MEASURES[name]


def _mean_result(cells: Sequence[CellResult]) -> MeanResult:
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
        predict_microseconds=average(1e6 * (cell.predict_seconds or 0.0) / cell.n_test for cell in cells),
    )
