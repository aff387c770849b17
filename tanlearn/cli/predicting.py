"""``tanlearn predict``: predict the class of each row of a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tanlearn.cli.messages import note, plain_errors
from tanlearn.cli.models import ModelArgument, ModelFile
from tanlearn.cli.outputs import TableOutputOption, output_format, write_table
from tanlearn.cli.progress import progress_bar
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.cli.tables import JobsOption, named_columns
from tanlearn.sources.file_formats import OUTPUTS

if TYPE_CHECKING:
    from tanlearn.encoding.row_checks import RowCheck


__all__ = ["predict"]

#: Number of rows that are read and predicted together.
_CHUNK_ROWS = 100_000


@with_reading_options
def predict(
    model: ModelArgument,
    new: Annotated[
        str, typer.Argument(metavar="NEW", help=f"Table to classify: {', '.join(OUTPUTS)}, or - for a pipe.")
    ],
    output: TableOutputOption = "-",
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class, in columns p_<class>.")
    ] = False,
    keep: Annotated[
        list[str],
        typer.Option("--keep", help="Columns to copy from NEW unchanged, such as an id; comma-separated or repeated."),
    ] = [],  # noqa: B006 - Typer makes a new list
    fill_missing: Annotated[
        bool, typer.Option("--fill-missing", help="Treat columns that are absent from NEW as missing in every row.")
    ] = False,
    jobs: JobsOption = -1,
    *,
    reading: Reading,
) -> None:
    """Predict the class of each row. Columns are matched by name and may be in any order."""
    with plain_errors():
        format_name = output_format(output, model, new)
        check_exists(new)
        file = ModelFile(model)
        file.classifier.set_params(n_jobs=jobs)
        with reading.as_fitted(file.notation).open(new) as table:
            kept = named_columns(keep, table)
            columns = file.columns_of(table, kept, fill_missing=fill_missing)
            copied = kept if table.is_text else []
            strings = [name for name in file.string_columns if name in columns]
            parts, n_done = [], 0
            checked: RowCheck | None = None
            impossible: dict[int, None] = {}
            with progress_bar(f"predicting {table.name}") as draw:
                frames = table.batches(_CHUNK_ROWS, columns, string_columns=strings)
                # Copied columns are read separately, as text, because the classifier needs their values as numbers.
                copies = table.batches(_CHUNK_ROWS, kept, string_columns=copied) if kept else repeat(None)
                for frame, copy in zip(frames, copies, strict=False):
                    rows = file.prepare(frame, table.name, n_done + 1).reindex(columns=file.names)
                    with _collected(impossible, n_done + 1):
                        found = file.classifier.check_rows(rows)
                        parts.append(_predictions(file.classifier, rows, frame[[]] if copy is None else copy, proba))
                    checked = found if checked is None else checked + found
                    n_done += len(frame)
                    draw(None)
        if impossible:
            from tanlearn.estimators.impossible_rows import named_rows

            have = "has" if len(impossible) == 1 else "have"
            note(
                f"note: {len(impossible):,} of {n_done:,} rows {have} probability zero in every class "
                f"({named_rows([*impossible])}). They get the class probabilities without any feature."
            )
        for message in [] if checked is None else checked.messages():
            note(message)
        write_table(parts, output, format_name, has_index=table.has_index, copied=copied)
        if output != "-":
            note(f"{n_done:,} rows: {output}.")


@contextmanager
def _collected(impossible: dict[int, None], first_row: int) -> Iterator[None]:
    """Collect the numbers of rows with probability zero, instead of printing a warning per chunk."""
    from tanlearn.estimators.impossible_rows import ImpossibleRowsWarning

    shown = warnings.showwarning

    def show(message: Any, *details: Any, **more: Any) -> None:
        if isinstance(message, ImpossibleRowsWarning):
            impossible.update(dict.fromkeys((message.rows + first_row).tolist()))
        else:
            shown(message, *details, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _predictions(classifier: Any, rows: Any, kept: Any, proba: bool) -> Any:
    """Return a frame with the copied columns, followed by the predictions."""
    with warnings.catch_warnings():
        # check_rows reports this once for all rows.
        warnings.filterwarnings("ignore", "no value in .* was seen in fit", UserWarning)
        warnings.filterwarnings("ignore", "no number in .* is in the range of fit", UserWarning)
        found = {"prediction": classifier.predict(rows)}
        if proba:
            names = [f"p_{label}" for label in classifier.classes_.tolist()]
            found |= dict(zip(names, classifier.predict_proba(rows).T, strict=True))
    twice = [name for name in kept.columns if name in found]
    if twice:
        raise ValueError(f"{twice[0]!r} is already a column of the output. Leave it out of --keep.")
    return kept.assign(**found)
