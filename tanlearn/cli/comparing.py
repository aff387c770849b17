"""``tanlearn compare``: one row of results per learner, printed as soon as the learner is done."""

from enum import StrEnum
from typing import Annotated

import numpy as np
import typer

from tanlearn._threads import number_of_threads
from tanlearn.cli.learners import find_learners
from tanlearn.cli.messages import INTERRUPTED, plain_errors
from tanlearn.cli.reading import Reading, with_reading_options
from tanlearn.cli.tables import DropOption, check_jobs, check_source, read_dataset
from tanlearn.sources.file_formats import ARRAYS, OUTPUTS, joined_by_or

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
            help=f"digits (default), openml:NAME, a {joined_by_or([ARRAYS, *OUTPUTS])} file, or - for a pipe.",
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
            min=1,
            help="Epochs of HYB learners and k-trees, with a fixed loss; by default, the loss is chosen on held-out "
            "rows.",
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
        find_learners(learners, 0)  # report errors before a large table is read
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
