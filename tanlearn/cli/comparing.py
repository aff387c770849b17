"""``tanlearn compare``: one row of results per learner and table, printed when it is complete."""

from enum import StrEnum
from typing import Annotated

import numpy as np
import typer

from tanlearn.cli.learners import find_learners
from tanlearn.cli.messages import INTERRUPTED, note, plain_errors
from tanlearn.cli.reading import Reading, with_reading_options
from tanlearn.cli.tables import check_jobs, check_source, read_datasets
from tanlearn.sources.file_formats import ARRAYS, OUTPUTS, joined_by_or

__all__ = ["compare"]


class Printed(StrEnum):
    """Values of ``--print``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def _check_output(path: str | None) -> str | None:
    """Return the path of the results file. Names of formats, which earlier versions expected, are also accepted."""
    if path is not None and path not in list(Printed) and not path.endswith(".csv"):
        raise typer.BadParameter(
            f"the name must end in .csv, got {path}. To set the printed format, use --print, for example --print json."
        )
    return path


@with_reading_options
def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[DATA]...",
            help=f"Tables: {joined_by_or([*OUTPUTS, ARRAYS])} files, digits (default), iris, wine, breast_cancer, "
            "openml:NAME, or - for a pipe.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
    data: Annotated[str | None, typer.Option(help="A single table, instead of DATA.", show_default=False)] = None,
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            "-t",
            help="Column with the classes: one name for all tables, or one name per table, comma-separated or "
            "repeated. By default, the last column.",
        ),
    ] = [],  # noqa: B006
    learners: Annotated[
        list[str],
        typer.Option(
            help="Names from --list, comma-separated or repeated, or all. By default, six learners, or the fast "
            "ones among them for large tables.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    drop: Annotated[
        list[str],
        typer.Option(
            help="Columns to leave out, comma-separated or repeated: COLUMN for all tables that have it, TABLE:COLUMN "
            "for one table."
        ),
    ] = [],  # noqa: B006
    folds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of cross-validation folds; 1 holds out a third of the rows. By default, 5 for several tables, "
            "with --repeats or with --output; otherwise 1.",
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Number of repeats of the cross-validation, each with different folds.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Train HYB learners and k-trees for this number of epochs with a fixed loss. By default, the loss "
            "is selected on held-out rows.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.csv",
            help="Results file (.csv), to which the results of each learner on each fold are appended. After an "
            "interruption, repeat the command to continue. To print tables of the results, use tanlearn report.",
            callback=_check_output,
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Run a learner again on the folds where it failed according to the results file."
        ),
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time after which no further learner or fold is started.")
    ] = None,
    cell_time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Stop a learner that takes longer than this for one fold; it counts as failed."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of splits and learners.")] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            help="Threads; -1 uses all processors. Folds run in parallel, which slows down each fit.",
            callback=check_jobs,
        ),
    ] = -1,
    printed: Annotated[Printed, typer.Option("--print", help="Format of the printed results.")] = Printed.TABLE,
    list_learners: Annotated[bool, typer.Option("--list", help="List the learners and exit.")] = False,
    *,
    reading: Reading,
) -> None:
    """Compare learners, fast ones first, by test error, log loss, size and time."""
    with plain_errors():
        if sources and data is not None:
            raise ValueError(
                f"the data must be given once, got {', '.join(sources)} and --data {data}. Leave one of them out."
            )
        for source in sources or [data or "digits"]:
            check_source(source)
        # Imported here, so that --help and errors in paths need not wait for the import of the learners.
        from tanlearn.cli.comparison_rows import ResultRows, note_left_out, note_not_done, print_end, print_learners
        from tanlearn.comparison import compare as run

        if list_learners:
            print_learners()
            return
        find_learners(learners, 0)  # report errors before a large table is read
        if output is not None and output in list(Printed):
            note(f"--output {output} is deprecated and an error from version 0.4. Use --print {output}.")
            printed, output = Printed(output), None
        datasets = read_datasets(sources or [data or "digits"], target, drop, reading)
        n_numbers = max(int(np.prod(dataset.X.shape)) for dataset in datasets)
        entries = find_learners(learners, n_numbers)
        if not learners:
            note_left_out(entries, n_numbers)
        are_all_split = all(dataset.folds is not None for dataset in datasets)
        is_held_out = len(datasets) == 1 and output is None and repeats is None
        n_folds = folds or (1 if is_held_out and not are_all_split else None)
        rows = ResultRows(datasets, entries, n_folds, repeats or 1, is_printed=printed is Printed.TABLE)
        is_interrupted = False
        try:
            run(
                datasets,
                entries,
                n_folds=n_folds,
                n_repeats=repeats or 1,
                random_state=seed,
                n_epochs=epochs,
                path=output,
                retry_failed=retry_failed,
                n_jobs=jobs,
                progress=rows.progress,
                finished=rows.add,
                time_limit=time_limit,
                cell_time_limit=cell_time_limit,
            )
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            rows.close()
        from tanlearn._threads import number_of_threads

        print_end(rows, printed, number_of_threads(jobs))
        note_not_done(rows, "interrupted" if is_interrupted else f"time limit of {time_limit or 0:g} s reached")
        if output is not None:
            note(
                f"{len(rows.cells)} of {rows.n_planned} results of this comparison are in {output}. "
                f"{_advice(output, rows.is_complete)}"
            )
        if is_interrupted:
            raise typer.Exit(INTERRUPTED)
        if all(result.failure is not None for result in rows.results):
            raise typer.Exit(1)


def _advice(path: str, is_complete: bool) -> str:
    """Return the next step for the user of a results file."""
    return f"For tables and tests: tanlearn report {path}" if is_complete else "Repeat the command to continue."
