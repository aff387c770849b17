"""``tanlearn outliers``: score how unusual each row of a table is, and name its most unusual value."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from tanlearn.cli.joint_models import TrainOption, check_train, fit_rows
from tanlearn.cli.messages import note, plain_errors
from tanlearn.cli.outputs import TableOutputOption, output_format, write_table
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.cli.tables import DropOption, JobsOption, named_columns
from tanlearn.sources.file_formats import OUTPUTS

__all__ = ["outliers"]


@with_reading_options
def outliers(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"Table to score: {', '.join(OUTPUTS)}, or - for a pipe.")
    ],
    train: TrainOption = None,
    output: TableOutputOption = "-",
    keep: Annotated[
        list[str],
        typer.Option("--keep", help="Columns to copy from TABLE, such as an id; comma-separated or repeated."),
    ] = [],  # noqa: B006 - Typer makes a new list
    drop: DropOption = [],  # noqa: B006
    contamination: Annotated[
        float, typer.Option(help="Fraction of the training rows that are outliers, above 0 and at most 0.5.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the model.")] = 0,
    jobs: JobsOption = -1,
    *,
    reading: Reading,
) -> None:
    """Score how unusual each row is, and find its most unusual value. No classes are needed.

    The output has these columns: outlier (true or false); score, the log density minus the threshold, negative for
    outliers; column, the column with the least probable value; and surprise, minus the log probability of this value
    given the others. The model also uses the columns of --keep. To exclude an id from the model, name it in --drop,
    too.
    """
    with plain_errors():
        check_exists(table)
        check_train(train, table)
        format_name = output_format(output, table, *([] if train is None else [train]))
        from tanlearn import TANDensity

        density = TANDensity(contamination=contamination, random_state=seed, n_jobs=jobs)
        with reading.open(table) as file:
            kept = named_columns(keep, file)
            X, _ = fit_rows(density, file, train, drop, kept, reading)
            copied = kept if file.is_text else []
            found = _scores(density, X)
            twice = [name for name in kept if name in found.columns]
            if twice:
                raise ValueError(f"{twice[0]!r} is already a column of the output. Leave it out of --keep.")
            if kept:
                copy = file.read(kept, string_columns=copied)
                found = copy.assign(**{name: found[name].to_numpy() for name in found.columns})
            write_table([found], output, format_name, has_index=file.has_index, copied=copied)
        place = "" if output == "-" else f": {output}"
        note(f"{int(found['outlier'].sum()):,} of {len(found):,} rows are outliers{place}.")


def _scores(density: Any, X: Any) -> Any:
    """Return one row of results per row of ``X``, as a data frame with the index of ``X``."""
    import pandas as pd

    scores, surprises = density.decision_function(X), density.surprises(X)
    most = surprises.argmax(axis=1)
    names = np.array([str(name) for name in X.columns], dtype=object)
    largest = surprises[np.arange(len(most)), most]
    found = {
        "outlier": scores < 0,
        "score": scores,
        "column": np.where(largest > 0, names[most], None),  # None for rows without a value
        "surprise": largest,
    }
    return pd.DataFrame(found, index=X.index)
