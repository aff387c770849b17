"""``tanlearn compare``: a row for every learner as soon as it is done."""

from enum import StrEnum
from typing import Annotated

import numpy as np
import typer

from tanlearn._threads import number_of_threads
from tanlearn.cli.learners import find_learners
from tanlearn.cli.messages import INTERRUPTED, plain_errors
from tanlearn.cli.reading import Reading, with_reading_options
from tanlearn.cli.tables import DropOption, check_jobs, check_source, read_dataset

__all__ = ["compare"]


class Output(StrEnum):
    """What ``--output`` may be."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


@with_reading_options
def compare(
    source: Annotated[str | None, typer.Argument(metavar="[DATA]", help="As --data.", show_default=False)] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="digits (the default), openml:NAME, a file .npz, .csv, .tsv, .parquet or .feather, or - for a pipe.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes.")] = None,
    learners: Annotated[
        list[str],
        typer.Option(
            help="Names, comma-separated or in repeated options, or all; see --list. By default five, of large tables "
            "those that are quick.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
    drop: DropOption = [],  # noqa: B006
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate; without it, a third of the rows is held out.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Train HYB so long, with a fixed loss; without it, rows choose both.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Begin no learner and no fold after so long.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of splits and learners.")] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            help="Threads; -1 for all. Folds run side by side, so fits take longer than alone.", callback=check_jobs
        ),
    ] = -1,
    output: Annotated[Output, typer.Option(help="What goes to the standard output.")] = Output.TABLE,
    list_learners: Annotated[bool, typer.Option("--list", help="List the learners and stop.")] = False,
    *,
    reading: Reading,
) -> None:
    """Train learners side by side, cheap ones first: test error, log loss, size, and time."""
    with plain_errors():
        if source is None or data is None:
            check_source(source or data or "digits")
        # Imported here so that --help and a wrong path answer without the learners.
        from tanlearn.cli.comparison_rows import ResultRows, note_left_out, note_not_done, print_end, print_learners
        from tanlearn.comparison import best
        from tanlearn.comparison import compare as run

        if list_learners:
            print_learners()
            return
        find_learners(learners, 0)  # what is wrong with them is wrong now, and not after a large table is read
        if source is not None and data is not None:
            raise ValueError(f"the table is {source} or --data {data}, but not both. Leave one of them out.")
        dataset = read_dataset(source or data or "digits", target, drop, reading)
        n_numbers = int(np.prod(dataset.X.shape))
        entries = find_learners(learners, n_numbers)
        if not learners:
            note_left_out(entries, n_numbers)
        n_folds = folds if dataset.folds is None else len(dataset.folds)
        rows = ResultRows(dataset, entries, n_folds or 1, is_printed=output is Output.TABLE)
        is_interrupted = False
        try:
            run(
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
        print_end(rows.results, output, number_of_threads(jobs), n_folds or 1)
        reason = "interrupted" if is_interrupted else f"{time_limit or 0:g} s are over"
        note_not_done(entries, rows.results, reason)
        if is_interrupted:
            raise typer.Exit(INTERRUPTED)
        if not best(rows.results):
            raise typer.Exit(1)
