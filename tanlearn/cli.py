"""The command ``tanlearn``.

Typer and Rich come with an extra, so only functions import them. Annotations are not postponed in this file: Typer
could not resolve those of functions inside a function.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import numpy as np

from tanlearn import __version__
from tanlearn.baselines import LEARNERS, Learner, find_learner
from tanlearn.comparison import (
    HEADERS,
    Progress,
    Result,
    as_csv,
    as_json,
    as_markdown,
    best,
    cells,
    compare,
    summary,
)
from tanlearn.data.datasets import Dataset, load_dataset

if TYPE_CHECKING:
    import typer

__all__ = ["DEFAULT_LEARNERS", "Output", "build_app", "main"]

#: From the simplest classic to the main job.
DEFAULT_LEARNERS = ("NB ML", "TAN-CMI ML", "TAN-CMI CG-CL", "TAN Subset HYB", "TAN Order-free HYB")


class Output(StrEnum):
    """What ``--output`` may be.

    Examples
    --------
    >>> from tanlearn.cli import Output
    >>> [str(kind) for kind in Output]
    ['table', 'json', 'csv', 'markdown']
    """

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def main() -> None:
    """Run the command line.

    Raises
    ------
    SystemExit
        Always: with 0, with 1 if no learner succeeded or the extra ``cli`` is not installed, with 2 if what the user
        asks for cannot be had.
    """
    try:
        app = build_app()
    except ModuleNotFoundError as error:
        sys.exit(f'tanlearn: the command line needs {error.name}. Install it with: pip install "tanlearn[cli]"')
    app()


def build_app() -> "typer.Typer":
    """Return the Typer application.

    Returns
    -------
    typer.Typer

    Raises
    ------
    ModuleNotFoundError
        If Typer or Rich is not installed.
    """
    import rich  # noqa: F401 - wanted later, but a lack of it has to show now
    import typer

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    def print_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"tanlearn {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Bayesian-network classifiers learnt by likelihood, margin and gradient."""

    @app.command("compare")
    def compare_command(
        data: Annotated[str, typer.Option(help="digits, openml:NAME, or a file .npz, .csv or .parquet.")] = "digits",
        target: Annotated[str | None, typer.Option(help="Column with the classes, for .csv and .parquet.")] = None,
        learners: Annotated[
            list[str], typer.Option(help="Names, comma-separated or in repeated options, or all; see --list.")
        ] = list(DEFAULT_LEARNERS),  # noqa: B006 - Typer makes a new list
        folds: Annotated[
            int | None, typer.Option(min=2, help="Cross-validate; without it, a third of the rows is held out.")
        ] = None,
        epochs: Annotated[
            int | None, typer.Option(min=1, help="Train HYB so long, with a fixed loss; without it, rows choose both.")
        ] = None,
        seed: Annotated[int, typer.Option(min=0, help="Of splits and learners.")] = 0,
        jobs: Annotated[int | None, typer.Option(help="Threads; -1 for all.")] = None,
        output: Annotated[Output, typer.Option(help="What goes to the standard output.")] = Output.TABLE,
        list_learners: Annotated[bool, typer.Option("--list", help="List the learners and stop.")] = False,
    ) -> None:
        """Train learners side by side: test error, log loss, size, and time."""
        if list_learners:
            _print_learners()
            return
        try:
            entries = _find_learners(learners)
            dataset = load_dataset(data, target=target)
            with _progress_bars(len(entries)) as progress:
                results = compare(
                    dataset,
                    entries,
                    n_folds=folds,
                    random_state=seed,
                    n_epochs=epochs,
                    n_jobs=jobs,
                    progress=progress,
                )
        except (ImportError, OSError, ValueError) as error:
            typer.echo(f"tanlearn: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None
        if output is Output.TABLE:
            _print_table(dataset, results)
        else:
            typer.echo({Output.JSON: as_json, Output.CSV: as_csv, Output.MARKDOWN: as_markdown}[output](results))
        if not best(results):
            raise typer.Exit(1)

    return app


def _find_learners(options: Sequence[str]) -> list[Learner]:
    """Return the learners that the options name, each once."""
    names = [name for option in options for name in map(str.strip, option.split(",")) if name]
    if "all" in map(str.lower, names):
        return list(LEARNERS.values())
    return list(dict.fromkeys(map(find_learner, names)))


@contextmanager
def _progress_bars(n_learners: int) -> Iterator[Progress]:
    """Yield what draws a bar for each learner on the standard error, or, where that is no terminal, a line."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    tasks: dict[str, TaskID] = {}

    def draw(learner: str, share: float | None) -> None:
        if share is None:
            # A bar without a total pulses: on a new machine Numba compiles for seconds now.
            title = f"[{len(tasks) + 1}/{n_learners}] {learner}"
            tasks[learner] = bars.add_task(title, total=None)
            if not console.is_terminal:
                console.print(f"{title} ...", markup=False, highlight=False)
        else:
            bars.update(tasks[learner], total=1.0, completed=share)

    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield draw


def _print_table(dataset: Dataset, results: Sequence[Result]) -> None:
    """Print the results for people: the lowest error highlighted, and why learners failed on the standard error."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    n_samples = results[0].n_train + results[0].n_test
    n_features, n_classes = len(dataset.feature_names), len(np.unique(dataset.y))
    title = f"{dataset.name}: {n_samples:,} rows, {n_features:,} features, {n_classes:,} classes"
    table = Table(title=Text(title), title_style="bold", title_justify="left", box=box.SIMPLE, pad_edge=False)
    for j, header in enumerate(HEADERS):  # as Text, because "[s]" would be markup
        table.add_column(Text(header), justify="right" if j else "left", no_wrap=True)
    winners = best(results)
    for result in results:
        style = "bold green" if result in winners else "red" if result.failure is not None else None
        table.add_row(*map(Text, cells(result)), style=style)
    console = Console()
    console.print(table)
    console.print(Text(summary(results)), soft_wrap=True)
    for result in results:
        if result.failure is not None:
            Console(stderr=True).print(Text(f"{result.learner} failed: {result.failure}"), soft_wrap=True)


def _print_learners() -> None:
    """Print the registry."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("learner", "what it does", "described by", box=box.SIMPLE)
    for learner in LEARNERS.values():
        table.add_row(learner.name, learner.description, learner.citation)
    Console().print(table)
