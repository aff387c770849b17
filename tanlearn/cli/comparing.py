"""``tanlearn compare``: one row of results per learner, printed as soon as the learner is done."""

from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from tanlearn import comparison
from tanlearn._threads import number_of_threads
from tanlearn.baselines import LEARNERS, Learner
from tanlearn.cli.learners import DEFAULT_LEARNERS, find_learners
from tanlearn.cli.messages import INTERRUPTED, note, plain_errors
from tanlearn.cli.progress import progress_bar
from tanlearn.cli.reading import Reading, with_reading_options
from tanlearn.cli.tables import DropOption, check_jobs, read_dataset
from tanlearn.comparison import HEADERS, Result, as_csv, as_json, as_markdown, best, cells, summary
from tanlearn.data.datasets import Dataset

__all__ = ["compare"]


class Output(StrEnum):
    """Values of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


@with_reading_options
def compare(
    source: Annotated[str | None, typer.Argument(metavar="[DATA]", help="Same as --data.", show_default=False)] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="digits (default), openml:NAME, a .npz, .csv, .tsv, .parquet or .feather file, or - for a pipe.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column of the classes.")] = None,
    learners: Annotated[
        list[str],
        typer.Option(
            help="Names from --list, comma-separated or repeated, or all. By default five learners, and only the fast "
            "ones of them for large tables.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
    drop: DropOption = [],  # noqa: B006
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Number of cross-validation folds; by default, a third of the rows is held out."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Epochs of HYB learners, with a fixed loss; by default, both are chosen on held-out rows."
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Start no learner and no fold after this time.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of splits and learners.")] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            help="Threads; -1 uses all processors. Folds run in parallel, which slows down each fit.",
            callback=check_jobs,
        ),
    ] = -1,
    output: Annotated[Output, typer.Option(help="Output format.")] = Output.TABLE,
    list_learners: Annotated[bool, typer.Option("--list", help="List the learners and exit.")] = False,
    *,
    reading: Reading,
) -> None:
    """Compare learners, fast ones first, by test error, log loss, size and time."""
    if list_learners:
        _print_learners()
        return
    with plain_errors():
        find_learners(learners, 0)  # report errors before a large table is read
        if source is not None and data is not None:
            raise ValueError(f"the table is {source} or --data {data}, but not both. Leave one of them out.")
        dataset = read_dataset(source or data or "digits", target, drop, reading)
        n_numbers = int(np.prod(dataset.X.shape))
        entries = find_learners(learners, n_numbers)
        if not learners:
            _note_left_out(entries, n_numbers)
        n_folds = folds if dataset.folds is None else len(dataset.folds)
        rows = _Rows(dataset, entries, n_folds or 1, is_printed=output is Output.TABLE)
        is_interrupted = False
        try:
            comparison.compare(
                dataset,
                entries,
                n_folds=folds,
                random_state=seed,
                n_epochs=epochs,
                n_jobs=jobs,
                progress=rows.progress,
                finished=rows.add,
                time_limit=time_limit,
            )
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            rows.close()
        _print_end(rows.results, output, number_of_threads(jobs), n_folds or 1)
        _note_not_done(entries, rows.results, "interrupted" if is_interrupted else f"{time_limit or 0:g} s are over")
        if is_interrupted:
            raise typer.Exit(INTERRUPTED)
        if not best(rows.results):
            raise typer.Exit(1)


class _Rows:
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

    def _line(self, texts: Sequence[str]) -> str:
        first, *others = texts
        return "  ".join([first.ljust(self.widths[0]), *map(str.rjust, others, self.widths[1:])])

    def _print(self, text: str, style: str) -> None:
        self.console.print(Text(text), style=style, soft_wrap=True)
        self.console.file.flush()


def _print_end(results: Sequence[Result], output: Output, n_threads: int, n_folds: int) -> None:
    """Print a summary of the results, or all results in another output format."""
    if output is not Output.TABLE:
        typer.echo({Output.JSON: as_json, Output.CSV: as_csv, Output.MARKDOWN: as_markdown}[output](results))
    elif results:
        console = Console()
        console.print()
        console.print(Text(summary(results)), soft_wrap=True)
        if min(n_threads, n_folds) > 1:
            text = f"Times are for {min(n_threads, n_folds)} folds in parallel; --jobs 1 runs them one by one."
            console.print(Text(text), soft_wrap=True)


def _note_left_out(entries: Sequence[Learner], n_numbers: int) -> None:
    """Print the default learners that are left out because of the table size."""
    left_out = [name for name in DEFAULT_LEARNERS if LEARNERS[name] not in entries]
    if left_out:
        note(f"left out, because {n_numbers:,} numbers take long: {', '.join(left_out)}. --learners includes them.")


def _note_not_done(entries: Sequence[Learner], results: Sequence[Result], reason: str) -> None:
    """Print the learners without results."""
    done = {result.learner for result in results}
    not_done = [entry.name for entry in entries if entry.name not in done]
    if not_done:
        note(f"{reason}; not done: {', '.join(not_done)}.")


def _print_learners() -> None:
    """Print all learners."""
    from rich import box
    from rich.table import Table

    table = Table("learner", "description", "reference", box=box.SIMPLE)
    for learner in LEARNERS.values():
        table.add_row(learner.name, learner.description, learner.citation)
    Console().print(table)
