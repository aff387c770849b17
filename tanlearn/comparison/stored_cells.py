"""Finished cells of a comparison, with methods for files, data frames and means."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.comparison.means import MeanResult, mean_result
from tanlearn.comparison.results import RESULTS, CellResult, check_agreement, find_measure, read_results, to_csv
from tanlearn.files.regular_files import write_file

__all__ = ["StoredCells"]


class StoredCells:
    """Base class of comparisons: finished cells, sorted by data set, learner, repeat and fold."""

    def __init__(self, cells: Iterable[CellResult]) -> None:
        self.cells = tuple(cells)
        self.datasets = list(dict.fromkeys(cell.dataset for cell in self.cells))
        self.learners = list(dict.fromkeys(cell.learner for cell in self.cells))
        self._by_key = {cell.key: cell for cell in self.cells}
        self._of: dict[str, list[CellResult]] = {name: [] for name in self.datasets}
        for cell in self.cells:
            self._of[cell.dataset].append(cell)

    def __repr__(self) -> str:
        numbers = (("data set", self.datasets), ("learner", self.learners), ("cell", self.cells))
        parts = [f"{len(found)} {noun}{'' if len(found) == 1 else 's'}" for noun, found in numbers]
        parts += [f"{len(self.failures)} failed"] if self.failures else []
        return f"Comparison({', '.join(parts)})"

    @property
    def failures(self) -> list[CellResult]:
        """Cells whose learner has failed."""
        return [cell for cell in self.cells if cell.failure is not None]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per cell, whose columns are the fields of :class:`CellResult`.

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
        from tanlearn.sources.table_files import require_pandas

        return require_pandas("to_frame").DataFrame([asdict(cell) for cell in self.cells])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cells to a CSV file for spreadsheets and pandas.

        To continue the comparison, pass this path to ``compare``.

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
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that was written by :meth:`save`, ``compare`` or ``tanlearn compare --output``.

        Parameters
        ----------
        path : str or Path
            File to read. If a killed process left an incomplete last line, the line is ignored.

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

    def merge(self, other: StoredCells) -> Self:
        """Return a comparison with the cells of two comparisons that have no cell in common.

        Parameters
        ----------
        other : Comparison
            Comparison whose cells are appended.

        Returns
        -------
        Comparison

        Raises
        ------
        ValueError
            If both contain the same cell, or if data, folds, seeds or settings with the same name differ.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare("iris", "NB ML").merge(compare("iris", "TAN-CMI ML"))
        Comparison(1 data set, 2 learners, 10 cells)
        >>> compare("iris", "NB ML").merge(compare("iris", "TAN-CMI ML", n_folds=3))
        Traceback (most recent call last):
        ...
        ValueError: the number of folds of 'iris' differs: 5 in this comparison, but 3 in the other one. ...
        """
        check_agreement(self.cells, other.cells, "this comparison", "the other one")
        for cell in other.cells:
            if cell.key in self._by_key:
                raise ValueError(
                    f"results can be merged only if they have different cells, but both have the cell {cell.label}. "
                    f"Leave it out of one of them."
                )
        return type(self)([*self.cells, *other.cells])

    def means(self) -> list[MeanResult]:
        """Average the cells of each learner on each data set.

        Returns
        -------
        list of MeanResult
            One result per data set and learner.
        """
        found = []
        for dataset in self.datasets:
            for learner in self.learners:
                cells = [cell for cell in self._of[dataset] if cell.learner == learner]
                if cells:
                    found.append(mean_result(cells))
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
            Means, or NaN if the learner has failed or is not finished in a split that another learner has finished.

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

    def errors(self, learners: Sequence[str] | None = None, measure: str = "error") -> dict[str, dict[str, float]]:
        """Return the mean error of each learner on each data set, in the format that displays of comparisons accept.

        Parameters
        ----------
        learners : sequence of str, optional
            Names of the learners. By default, all learners are used.
        measure : str, default="error"
            Field of :class:`CellResult`. AUC is negated, so that smaller values are better.

        Returns
        -------
        dict of str to dict of str to float
            Means by learner and data set, for the data sets on which all of these learners are complete.

        Raises
        ------
        ValueError
            If there is no such learner or measure, or no data set on which all these learners are complete.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare(["iris", "wine"], "NB ML", n_folds=3).errors()["NB ML"].keys()
        dict_keys(['iris', 'wine'])
        """
        names = self.learners if learners is None else list(learners)
        which = find_measure(measure)
        values = which.better(self.mean(which.name))[:, [self._number(name) for name in names]]
        complete = np.flatnonzero(~np.isnan(values).any(axis=1)).tolist()
        if not complete:
            raise ValueError(
                f"at least one data set must have complete results of all learners ({', '.join(names)}). Leave out "
                f"learners that have failed, for example with errors(['NB ML', ...])."
            )
        return {name: {self.datasets[i]: float(values[i, j]) for i in complete} for j, name in enumerate(names)}

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
            Values of the measure, with NaN for cells that are not finished, have failed, or do not have the measure.

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
        splits = sorted({(cell.repeat, cell.fold) for cell in self._of.get(dataset, [])})
        if not splits:
            raise ValueError(f"there is no data set {dataset!r}. The data sets are: {', '.join(self.datasets)}.")
        found = np.full((len(self.learners), len(splits)), np.nan)
        for i, learner in enumerate(self.learners):
            for j, split in enumerate(splits):
                cell = self._by_key.get((dataset, learner, *split))
                value = None if cell is None else getattr(cell, which.name)
                found[i, j] = np.nan if value is None else value
        return found

    def _number(self, learner: str) -> int:
        """Return the position of a learner, or raise ValueError."""
        if learner not in self.learners:
            near = difflib.get_close_matches(learner, self.learners, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no learner {learner!r}.{hint} The learners are: {', '.join(self.learners)}.")
        return self.learners.index(learner)
