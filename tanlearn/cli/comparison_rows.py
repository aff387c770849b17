"""Output of ``tanlearn compare`` during and after a comparison, and the list of learners."""

import csv
import io
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanlearn.baselines import LEARNERS, Learner
from tanlearn.cli.learners import DEFAULT_LEARNERS
from tanlearn.cli.messages import for_shells, note
from tanlearn.cli.progress import progress_bar
from tanlearn.comparison import CellResult, Comparison, MeanResult, Progress
from tanlearn.comparison.protocol import DEFAULT_FOLDS
from tanlearn.comparison.report_formats import markdown_table
from tanlearn.sources.datasets import Dataset

__all__ = ["HEADERS", "ResultRows", "note_left_out", "note_not_done", "print_end", "print_learners"]

HEADERS = ("learner", "test error [%]", "log loss", "parameters", "fit [s]", "predict [us/row]")


class ResultRows:
    """Growing table of results, with a progress bar for the current learner."""

    def __init__(
        self,
        datasets: Sequence[Dataset],
        entries: Sequence[Learner],
        n_folds: int | None,
        n_repeats: int,
        *,
        is_printed: bool,
    ) -> None:
        self.datasets, self.entries, self.is_printed = datasets, entries, is_printed
        self.n_cells = {
            dataset.name: len(dataset.folds) if dataset.folds is not None else n_repeats * (n_folds or DEFAULT_FOLDS)
            for dataset in datasets
        }
        self.cells: list[CellResult] = []
        self.results: list[MeanResult] = []
        self.console = Console()
        self.bar = ExitStack()
        self.draw: Any = None
        self.current: tuple[str, str] | None = None
        names = [max((len(entry.name) for entry in entries), default=0)]
        if len(datasets) > 1:
            names = [max(len(dataset.name) for dataset in datasets), *names]
        self.headers = ["data set", *HEADERS][-len(names) - len(HEADERS[1:]) :]
        self.widths = [*map(max, names, map(len, self.headers)), *map(len, HEADERS[1:])]
        self.n_begun = 0
        self.started: set[tuple[str, str]] = set()  # data sets and learners that have run in this process

    @property
    def n_planned(self) -> int:
        """Number of cells: folds of all learners, on all data sets and in all repeats."""
        return sum(self.n_cells.values()) * len(self.entries)

    @property
    def is_complete(self) -> bool:
        """True if all learners have a result on all data sets."""
        return len(self.results) == len(self.datasets) * len(self.entries)

    def progress(self, state: Progress) -> None:
        """Update the progress bar of a learner. For the first learner, also print the table header."""
        if self.current != (state.dataset, state.learner):
            self.close()
            self.current = state.dataset, state.learner
            self._print_head()
            self.n_begun += 1
            label = f"{state.dataset}, {state.learner}" if len(self.datasets) > 1 else state.learner
            number = self._number(state)
            title = f"[{number}/{len(self.datasets) * len(self.entries)}] {label}"
            is_new = self.current not in self.started
            self.started.add(self.current)
            self.draw = self.bar.enter_context(progress_bar(title, self.n_cells[state.dataset], line=is_new))
        self.draw(state.share)

    def add(self, cell: CellResult) -> None:
        """Store a finished cell. After the last cell of a learner, replace the progress bar with a row of results."""
        self.cells.append(cell)
        key = cell.dataset, cell.learner
        own = sorted((c for c in self.cells if (c.dataset, c.learner) == key), key=lambda c: c.key)
        if len(own) < self.n_cells[cell.dataset]:
            return
        self.close()
        (result,) = Comparison(own).means()
        self.results.append(result)
        if self.is_printed:
            self._print_head()
            rivals = [other for other in self.results if other.dataset == result.dataset]
            style = "green" if result in lowest(rivals) else "red" if result.failure is not None else ""
            self._print(self._line([*key[: len(self.headers) - len(HEADERS)], *cells(result)]), style)
        if result.failure is not None:
            label = ", ".join(key) if len(self.datasets) > 1 else cell.learner
            Console(stderr=True).print(Text(f"{label} failed: {for_shells(result.failure)}"), soft_wrap=True)

    def close(self) -> None:
        """Remove the progress bar."""
        self.bar.close()
        self.draw = self.current = None

    def _number(self, state: Progress) -> int:
        """Return the number of a learner on a data set, counted from 1."""
        datasets, names = [one.name for one in self.datasets], [entry.name for entry in self.entries]
        return datasets.index(state.dataset) * len(names) + names.index(state.learner) + 1

    def _print_head(self) -> None:
        """Print the sizes of the data sets and the headers, once."""
        if not self.is_printed or self.n_begun:
            return
        self.n_begun += 1
        for dataset in self.datasets:
            n_samples, n_features = dataset.X.shape
            n_classes = len(np.unique(dataset.y))
            title = f"{dataset.name}: {n_samples:,} rows, {n_features:,} features, {n_classes:,} classes"
            self._print(title, "bold")
        self._print("", "")
        self._print(self._line(self.headers), "bold")
        self._print("-" * len(self._line(self.headers)), "")

    def _line(self, fields: Sequence[str]) -> str:
        n_names = len(self.headers) - len(HEADERS) + 1
        names, others = fields[:n_names], fields[n_names:]
        left = map(str.ljust, names, self.widths[:n_names])
        return "  ".join([*left, *map(str.rjust, others, self.widths[n_names:])])

    def _print(self, text: str, style: str) -> None:
        self.console.print(Text(text), style=style, soft_wrap=True)
        self.console.file.flush()


def lowest(results: Sequence[MeanResult]) -> list[MeanResult]:
    """Return the results with the lowest test error. Several may be equal. If all learners failed, return no result."""
    least = min((result.test_error for result in results if result.test_error is not None), default=None)
    return [result for result in results if result.test_error is not None and result.test_error == least]


def summary(results: Sequence[MeanResult]) -> str:
    """Return one line with the best learner on a data set, its error, and the kind of measurement."""
    winners = lowest(results)
    if not winners:
        return "No learner succeeded."
    names, first = " and ".join(winner.learner for winner in winners), winners[0]
    names = f"Lowest error: {names}," if len(results) > 1 else f"Error of {names}:"
    error = float(first.test_error or 0.0)
    if first.n_folds > 1:
        return (
            f"{names} {error:.2f} % of the test rows wrong, mean of {first.n_folds} folds (standard "
            f"deviation {first.test_error_std:.2f})."
        )
    standard_error = np.sqrt(error * (100.0 - error) / first.n_test)
    return (
        f"{names} {error:.2f} % of {first.n_test:,} held-out rows wrong (standard error "
        f"{standard_error:.2f}), trained on {first.n_train:,}."
    )


def cells(result: MeanResult) -> tuple[str, ...]:
    """Return one row of a printed table, with the columns of ``HEADERS``. The error of a failed learner is "failed"."""
    if result.failure is not None:
        return result.learner, "failed", "", "", "", ""
    spread = "" if result.test_error_std is None else f" ± {result.test_error_std:.2f}"
    return (
        result.learner,
        f"{result.test_error:.2f}{spread}",
        f"{result.log_loss:.3f}",
        f"{result.n_parameters:,}",
        f"{result.fit_seconds:.2f}",
        f"{result.predict_microseconds:.1f}",
    )


def as_json(results: Sequence[MeanResult]) -> str:
    """Return the results as a JSON list of objects, with null for unavailable measures."""
    return json.dumps([asdict(result) for result in results], indent=2)


def as_csv(results: Sequence[MeanResult]) -> str:
    """Return the results as comma-separated values with a header line. Unavailable measures are empty."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, [field.name for field in fields(MeanResult)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(result) for result in results)
    return lines.getvalue().rstrip("\n")


def as_markdown(results: Sequence[MeanResult], best: dict[str, list[str]]) -> str:
    """Return the results as a Markdown table, followed by the reasons of failures.

    Errors that are not significantly worse than the lowest error are in bold.
    """
    are_several = len({result.dataset for result in results}) > 1
    rows = []
    for result in results:
        name, error, *others = cells(result)
        error = f"**{error}**" if result.learner in best.get(result.dataset, ()) else error
        rows.append([*[result.dataset] * are_several, name, error, *others])
    table = markdown_table([*["data set"] * are_several, *HEADERS], rows, 1 + are_several)
    failures = [f"{result.learner} failed: {result.failure}" for result in results if result.failure is not None]
    return "\n\n".join([table, *failures])


def print_end(rows: ResultRows, printed: str, n_threads: int) -> None:
    """Print a summary of the results, or all results in another format."""
    best = Comparison(rows.cells).best()
    if printed == "markdown":
        typer.echo(as_markdown(rows.results, best))
    elif printed != "table":
        typer.echo({"json": as_json, "csv": as_csv}[printed](rows.results))
    elif rows.results:
        console = Console()
        console.print()
        for dataset in rows.datasets:
            own = [result for result in rows.results if result.dataset == dataset.name]
            label = f"{dataset.name}: " if len(rows.datasets) > 1 else ""
            if own:
                n_complete = sum(result.failure is None for result in own)
                rivals = _rivals(best[dataset.name]) if n_complete > 1 else ""
                console.print(Text(f"{label}{summary(own)}{rivals}"), soft_wrap=True)
        n_beside = min(n_threads, max(rows.n_cells.values()))
        if n_beside > 1 and rows.started:
            text = f"Times were measured with {n_beside} folds in parallel. For comparable times, use --jobs 1."
            console.print(Text(text), soft_wrap=True)


def _rivals(best: Sequence[str]) -> str:
    """Return a sentence that lists the learners that are not significantly worse than the first learner."""
    test = "(t-test of Nadeau and Bengio after Holm's correction, 5 %)"
    if len(best) > 1:
        return f" Not significantly worse: {', '.join(best[1:])} {test}."
    return f" All others are significantly worse {test}." if best else ""


def note_left_out(entries: Sequence[Learner], n_numbers: int) -> None:
    """Print which default learners are left out because of the table size."""
    left_out = [name for name in DEFAULT_LEARNERS if LEARNERS[name] not in entries]
    if left_out:
        note(
            f"left out, because they are slow for {n_numbers:,} values: {', '.join(left_out)}. To include them, use "
            f"--learners."
        )


def note_not_done(rows: ResultRows, reason: str) -> None:
    """Print the learners without results."""
    done = {(result.dataset, result.learner) for result in rows.results}
    left = [(dataset.name, entry.name) for dataset in rows.datasets for entry in rows.entries]
    labels = [", ".join(key) if len(rows.datasets) > 1 else key[1] for key in left if key not in done]
    if labels:
        note(f"{reason}; not done: {('; ' if len(rows.datasets) > 1 else ', ').join(labels)}.")


def print_learners() -> None:
    """Print all learners."""
    table = Table("learner", "description", "reference", box=box.SIMPLE)
    for learner in LEARNERS.values():
        table.add_row(learner.name, learner.description, learner.citation)
    Console().print(table)
