"""Results of ``tanlearn compare`` while they come in and at the end, and the list of learners."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanlearn.baselines import LEARNERS, Learner
from tanlearn.cli.learners import DEFAULT_LEARNERS
from tanlearn.cli.messages import note
from tanlearn.cli.progress import progress_bar
from tanlearn.comparison import HEADERS, Result, as_csv, as_json, as_markdown, best, cells, summary
from tanlearn.sources.datasets import Dataset

__all__ = ["ResultRows", "note_left_out", "note_not_done", "print_end", "print_learners"]


class ResultRows:
    """Growing table of results, with a progress bar for the current learner."""

    def __init__(self, dataset: Dataset, entries: Sequence[Learner], n_folds: int, *, is_printed: bool) -> None:
        self.dataset, self.entries, self.n_folds, self.is_printed = dataset, entries, n_folds, is_printed
        self.results: list[Result] = []
        self.console = Console()
        self.bar = ExitStack()
        self.draw: Any = None
        self.widths = [max(len(entry.name) for entry in entries) if entries else 0, *map(len, HEADERS[1:])]
        self.n_begun = 0

    def progress(self, learner: str, share: float | None) -> None:
        """Update the progress bar of a learner; the first learner also prints the table header."""
        if share is None:
            if not self.n_begun and self.is_printed:
                self._print_head()
            self.n_begun += 1
            title = f"[{self.n_begun}/{len(self.entries)}] {learner}"
            self.draw = self.bar.enter_context(progress_bar(title, self.n_folds, line=True))
        if self.draw is not None:
            self.draw(share)

    def add(self, result: Result) -> None:
        """Replace the progress bar by a row of results; the lowest error so far is highlighted."""
        self.close()
        self.results.append(result)
        if self.is_printed:
            style = "bold green" if result in best(self.results) else "red" if result.failure is not None else ""
            self._print(self._line(cells(result)), style)
        if result.failure is not None:
            Console(stderr=True).print(Text(f"{result.learner} failed: {result.failure}"), soft_wrap=True)

    def close(self) -> None:
        """Remove the progress bar."""
        self.bar.close()
        self.draw = None

    def _print_head(self) -> None:
        n_samples, n_features = self.dataset.X.shape
        n_classes = len(np.unique(self.dataset.y))
        title = f"{self.dataset.name}: {n_samples:,} rows, {n_features:,} features, {n_classes:,} classes"
        self._print(title, "bold")
        self._print("", "")
        self._print(self._line(HEADERS), "bold")
        self._print("-" * len(self._line(HEADERS)), "")

    def _line(self, fields: Sequence[str]) -> str:
        first, *others = fields
        return "  ".join([first.ljust(self.widths[0]), *map(str.rjust, others, self.widths[1:])])

    def _print(self, text: str, style: str) -> None:
        self.console.print(Text(text), style=style, soft_wrap=True)
        self.console.file.flush()


def print_end(results: Sequence[Result], output: str, n_threads: int, n_folds: int) -> None:
    """Print a summary of the results, or all results in another output format."""
    if output != "table":
        typer.echo({"json": as_json, "csv": as_csv, "markdown": as_markdown}[output](results))
    elif results:
        console = Console()
        console.print()
        console.print(Text(summary(results)), soft_wrap=True)
        if min(n_threads, n_folds) > 1:
            text = f"Times are for {min(n_threads, n_folds)} folds in parallel; --jobs 1 runs them one by one."
            console.print(Text(text), soft_wrap=True)


def note_left_out(entries: Sequence[Learner], n_numbers: int) -> None:
    """Print the default learners that are left out because of the table size."""
    left_out = [name for name in DEFAULT_LEARNERS if LEARNERS[name] not in entries]
    if left_out:
        note(f"left out, because {n_numbers:,} numbers take long: {', '.join(left_out)}. --learners includes them.")


def note_not_done(entries: Sequence[Learner], results: Sequence[Result], reason: str) -> None:
    """Print the learners without results."""
    done = {result.learner for result in results}
    not_done = [entry.name for entry in entries if entry.name not in done]
    if not_done:
        note(f"{reason}; not done: {', '.join(not_done)}.")


def print_learners() -> None:
    """Print all learners."""
    table = Table("learner", "description", "reference", box=box.SIMPLE)
    for learner in LEARNERS.values():
        table.add_row(learner.name, learner.description, learner.citation)
    Console().print(table)
