"""Results of the cells of a comparison, and the file to which they are appended."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tanlearn._typing import FloatArray
from tanlearn.files.regular_files import Kind, append_to_file, explain_failure, read_file

__all__ = [
    "MEASURES",
    "CellResult",
    "Measure",
    "ResultFile",
    "check_agreement",
    "find_measure",
    "read_results",
    "to_csv",
]

RESULTS = Kind("results file", "Name a file that tanlearn compare has written", "Name another file")


@dataclass(frozen=True)
class Measure:
    """Measure by which learners are compared."""

    name: str  # field of CellResult
    title: str  # heading in tables, with the unit
    digits: int  # decimal digits in tables
    rope: float = 0.0  # largest difference that counts as equal
    is_score: bool = False  # whether larger is better

    @property
    def label(self) -> str:
        """Title without the unit."""
        return self.title.partition(" [")[0]

    def better(self, values: FloatArray) -> FloatArray:
        """Return the values, negated if larger values are better, so that smaller values are better."""
        return -values if self.is_score else values


#: Measures by name. The first one is the default.
MEASURES = {
    measure.name: measure
    for measure in (
        Measure("error", "test error [%]", 2, 1.0),
        Measure("log_loss", "log loss", 3, 0.01),
        Measure("brier", "Brier score", 3, 0.01),
        Measure("auc", "AUC", 3, 0.01, is_score=True),
        Measure("fit_seconds", "fit [s]", 2),
        Measure("predict_seconds", "predict of all test rows [s]", 4),
        Measure("n_parameters", "parameters", 0),
    )
}


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """Result of one cell: a learner, trained and tested on one fold of one repeat of a data set.

    A measure is None if the learner does not have this measure, or has failed.

    Parameters
    ----------
    dataset, learner : str
        Names of the data set and the learner.
    repeat, fold : int
        Number of the repeat and of the fold, from 1.
    error : float or None
        Percentage of misclassified test rows.
    log_loss : float or None
        Mean negative log-probability of the true class, in nats. Probabilities below 2.2e-308 count as 2.2e-308.
    brier : float or None
        Mean squared error of the probabilities, summed over the classes, from 0 to 2.
    auc : float or None
        Area under the ROC curve of each class against all other classes, averaged over the classes in the test rows.
    fit_seconds : float or None
        Wall-clock time of ``fit`` from raw values, including encoding.
    predict_seconds : float or None
        Wall-clock time of ``predict`` for all test rows, including encoding, in the fastest of up to three calls.
    n_parameters : int or None
        Number of free parameters.
    n_edges : int or None
        Number of augmenting arcs of the structure.
    n_evaluations : int or None
        Number of structures or families that the structure search has scored. If structure and parameters are trained
        jointly, the number of passes over the training rows.
    n_iterations : int or None
        Number of epochs, or number of iterations of the parameter learner.
    score : float or None
        Final score of the structure search or of the joint training.
    failure : str or None
        Reason for the failure, if the learner has failed.
    n_train, n_test : int
        Numbers of training and test rows.
    n_folds : int
        Number of folds in the repeat, or 1 for a single split.
    seed : int
        Seed of the splits and the learner.
    data_id, learner_id : str
        Digests of the values of the data set, and of the settings of the learner. Cells with the same data set or
        learner must have the same digest.
    settings : str
        Settings of the learner that differ from the defaults.
    versions : str
        Versions of the packages.

    Examples
    --------
    >>> from tanlearn.comparison import compare
    >>> cell = compare("iris", "NB ML", n_folds=3).cells[0]
    >>> cell.dataset, cell.learner, cell.repeat, cell.fold, cell.n_train, cell.n_test, cell.failure
    ('iris', 'NB ML', 1, 1, 100, 50, None)
    """

    dataset: str
    learner: str
    repeat: int
    fold: int
    error: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    auc: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    n_parameters: int | None = None
    n_edges: int | None = None
    n_evaluations: int | None = None
    n_iterations: int | None = None
    score: float | None = None
    failure: str | None = None
    n_train: int
    n_test: int
    n_folds: int
    seed: int
    data_id: str
    learner_id: str
    settings: str
    versions: str

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Data set, learner, repeat and fold, which together identify the cell within a comparison."""
        return self.dataset, self.learner, self.repeat, self.fold

    @property
    def predict_microseconds(self) -> float | None:
        """Time of ``predict`` per test row, in microseconds."""
        return None if self.predict_seconds is None else 1e6 * self.predict_seconds / self.n_test

    @property
    def label(self) -> str:
        """Name of the cell in messages."""
        return f"{self.dataset}, {self.learner}, repeat {self.repeat}, fold {self.fold}"


_COLUMNS = [field.name for field in fields(CellResult)]
_TYPES = {field.name: str(field.type) for field in fields(CellResult)}


def to_csv(cells: Iterable[CellResult], *, with_header: bool = True) -> str:
    """Return cells as comma-separated values, one line each, with empty fields for None."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, _COLUMNS, lineterminator="\n")
    if with_header:
        writer.writeheader()
    for cell in cells:  # with line breaks within fields, an unfinished line could not be recognized
        writer.writerow({k: " ".join(v.split()) if isinstance(v, str) else v for k, v in asdict(cell).items()})
    return lines.getvalue()


def read_results(path: str | os.PathLike[str]) -> list[CellResult]:
    """Read the cells of a file. If a killed process left an incomplete last line, the line is ignored."""
    content = read_file(path, RESULTS)
    whole, newline, _ = content.rpartition(b"\n")
    return _parse(path, (whole + newline).decode("utf-8-sig", "replace"))


def _parse(path: str | os.PathLike[str], text: str) -> list[CellResult]:
    """Parse comma-separated values with a header line, and return the cells."""
    try:
        header, *rows = csv.reader(io.StringIO(text, newline="")) if text.strip() else ([],)
    except csv.Error:  # a binary file
        header, rows = ["\0"], []
    if header != _COLUMNS:
        raise ValueError(f"{path} must be a results file, but {_header_problem(header)}")
    cells = [_cell(path, line, row) for line, row in enumerate(rows, start=2) if row]
    seen: dict[tuple[str, str, int, int], int] = {}
    latest: dict[tuple[str, str, int, int], CellResult] = {}
    for line, cell in enumerate(cells, start=2):
        if cell.key in latest and latest[cell.key].failure is None:
            raise ValueError(
                f"{path} contains the same cell in lines {seen[cell.key]} and {line}: {cell.label}. Remove one of "
                f"these lines."
            )
        seen[cell.key], latest[cell.key] = line, cell  # after a failure, the cell may have been run again
    check_agreement(cells[:1], cells, str(path), str(path))
    return list(latest.values())


def _header_problem(header: list[str]) -> str:
    """Describe what is wrong with the header of a results file, with a remedy."""
    missing = [name for name in _COLUMNS if name not in header]
    other = "Name a file that tanlearn compare --output or compare(path=...) has written."
    if not header:
        return f"it is empty. {other}"
    text = "".join(header).replace("\t", "")
    if not text.isprintable() or "\ufffd" in text:
        return f"it is not text. {other}"
    if ";".join(header).split(";") == _COLUMNS:
        return "its fields are separated by semicolons, as some spreadsheets do. Save it with commas."
    if len(missing) > len(_COLUMNS) // 2:
        names = ", ".join(header[:5]) + (f" and {len(header) - 5} more" if len(header) > 5 else "")
        return f"its columns are {names}. {other}"
    if missing:
        return f"it lacks the column(s) {', '.join(missing)}. It may come from another version of tanlearn. {other}"
    return (
        f"its columns have another order, or there are additional columns. Restore the columns {', '.join(_COLUMNS)}."
    )


def _cell(path: str | os.PathLike[str], line: int, row: list[str]) -> CellResult:
    """Parse a line of the file, and return its cell."""
    if len(row) != len(_COLUMNS):
        raise ValueError(
            f"{path}, line {line}: there must be {len(_COLUMNS)} fields, got {len(row)}. Remove the line; the next "
            f"run measures its cell again."
        )
    found: dict[str, Any] = {}
    for name, text in zip(_COLUMNS, row, strict=True):
        kind = _TYPES[name]
        try:
            if not text and "None" in kind:
                found[name] = None
            else:
                found[name] = int(text) if "int" in kind else float(text) if "float" in kind else text
        except ValueError:
            raise ValueError(
                f"{path}, line {line}: {name} must be a number, got {text!r}. Remove the line; the next run measures "
                f"its cell again."
            ) from None
    return CellResult(**found)


def check_agreement(known: Iterable[CellResult], new: Iterable[CellResult], where: str, here: str) -> None:
    """Raise ValueError if cells with equal names have different data, folds, seeds or settings.

    In the message, ``where`` and ``here`` describe the origins of the known and the new cells.
    """
    first: dict[tuple[str, Any], tuple[CellResult, str]] = {}
    for source, cells in ((where, known), (here, new)):
        for cell in cells:
            for kind, name in (("data set", cell.dataset), ("learner", cell.learner), ("repeat", cell.repeat)):
                other, origin = first.setdefault((kind, name), (cell, source))
                problem = None if other is cell else _difference(kind, other, cell)
                if problem is not None:
                    what, one, two, remedy = problem
                    raise ValueError(f"{what} differs: {one} in {origin}, but {two} in {source}. {remedy}")


def _difference(kind: str, one: CellResult, two: CellResult) -> tuple[str, str, str, str] | None:
    """Return the first difference between two cells with the same name: its description, both values, and a remedy."""
    apart = "or keep the results in separate files."
    if kind == "data set" and one.data_id != two.data_id:
        first, second = (f"{cell.n_train + cell.n_test:,} rows (digest {cell.data_id})" for cell in (one, two))
        return f"the data set {one.dataset!r}", first, second, f"Give one of them another name, {apart}"
    if kind == "data set" and one.n_folds != two.n_folds:
        what = f"the number of folds of {one.dataset!r}"
        return what, str(one.n_folds), str(two.n_folds), f"Use the same number of folds, {apart}"
    if kind == "learner" and (not one.learner_id or one.learner_id != two.learner_id):
        what = f"the learner {one.learner!r}"
        return what, one.settings, two.settings, f"Use the same settings or another name, {apart}"
    if kind == "repeat" and one.seed != two.seed:
        return f"the seed of repeat {one.repeat}", str(one.seed), str(two.seed), f"Use the same seed, {apart}"
    return None


class ResultFile:
    """File of finished cells, to which each cell is appended.

    If the process or the machine was stopped while it wrote a line, only that line is lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        append_to_file(path, b"", RESULTS)  # raises ValueError if it is not a regular file
        header = to_csv([]).encode()
        content = read_file(path, RESULTS)
        whole, newline, unfinished = content.rpartition(b"\n")
        if not newline and header.startswith(content):  # new, or interrupted during the header
            self._truncate(0)
            append_to_file(path, header, RESULTS)
            self.cells: list[CellResult] = []
            return
        self.cells = _parse(path, (whole + newline).decode("utf-8-sig", "replace"))
        if unfinished:
            self._truncate(len(whole) + 1)

    @classmethod
    @contextlib.contextmanager
    def opened(cls, path: str | os.PathLike[str]) -> Iterator[ResultFile]:
        """Open a file for one comparison at a time. Raise ValueError if another process is writing to it."""
        append_to_file(path, b"", RESULTS)
        with open(path, "ab") as lock:
            _lock(lock, path)
            yield cls(path)

    def append(self, cell: CellResult) -> None:
        """Append a finished cell and flush it to the disk."""
        append_to_file(self.path, to_csv([cell], with_header=False).encode(), RESULTS)

    def _truncate(self, length: int) -> None:
        with explain_failure(self.path, RESULTS):
            os.truncate(self.path, length)


def _lock(file: Any, path: str | os.PathLike[str]) -> None:
    """Lock an open file until it is closed or the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{path} is used by another comparison. Wait until it ends, or pass another path.") from None


def find_measure(name: str) -> Measure:
    """Return a measure by its name, or raise ValueError."""
    if name not in MEASURES:
        near = difflib.get_close_matches(name.lower().replace("-", "_"), MEASURES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no measure {name!r}.{hint} The measures are: {', '.join(MEASURES)}.")
    return MEASURES[name]
