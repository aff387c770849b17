"""``tanlearn private-counts``: counts of a table, with noise that protects its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tanlearn.cli.counting import count_like
from tanlearn.cli.messages import note, plain_errors
from tanlearn.cli.outputs import check_output, describe_classes, file_size
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.sources.file_formats import OUTPUTS

if TYPE_CHECKING:
    from tanlearn import TableCounts


__all__ = ["private_counts"]

#: Maximum number of rows in memory. Results do not depend on this number.
_CHUNK_ROWS = 200_000
#: Keys of the JSON file that declares columns.
_KEYS = ("classes", "columns", "categorical")


@with_reading_options
def private_counts(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"A table: {', '.join(OUTPUTS)}, or - for a pipe.")],
    output: Annotated[str, typer.Option("--output", "-o", help="File to write, such as shop.counts.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the classes.")],
    declared: Annotated[
        str,
        typer.Option("--declared", help="JSON file with the classes, categories and cut points, as described above."),
    ],
    epsilon: Annotated[float, typer.Option(help="Maximum privacy loss; 0.1 protects more than 1.")],
    delta: Annotated[
        float, typer.Option(help="Probability with which the loss may exceed epsilon, such as 1e-6.")
    ] = 0.0,
    single: Annotated[
        bool,
        typer.Option(
            "--single",
            help="Count single values, not pairs. The noise is smaller, and the counts suffice for naive Bayes.",
        ),
    ] = False,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Maximum number of rows in memory.")] = _CHUNK_ROWS,
    *,
    reading: Reading,
) -> None:
    """Count values in each class, and add noise that protects each single row (differential privacy).

    tanlearn fit accepts the counts instead of a table. Categories and cut points that were read from the rows would
    reveal values, so a JSON file declares them. Strings and booleans are categories. Numbers are cut points, except
    in the columns listed as categorical:

    \b
    {"classes": ["no", "yes"],
     "columns": {"age": [30, 50], "town": ["Graz", "Linz"], "rooms": [1, 2, 3]},
     "categorical": ["rooms"]}

    Run the command only once per table, because privacy losses of several runs add up.
    """  # noqa: D301 - Click keeps the lines after a backspace character
    with plain_errors():
        check_output(output, table, declared)
        check_exists(table)
        from tanlearn import PrivacyBudget

        budget = PrivacyBudget(epsilon, delta)
        template = _read_declared(declared, target, pairs=not single)
        with reading.open(table) as file:
            _, counts = count_like(file, target, template, declared, chunk_rows)
        released = budget.release(counts)
        released.save(output)
        noise = released.noise[0]
        typer.echo(
            f"{len(counts.encoder.n_states_):,} columns, {describe_classes(counts.classes)}; {noise.mechanism} noise "
            f"of standard deviation {noise.standard_deviation:.3g} in every count"
        )
        typer.echo(f"{released.counts.describe()} in {output} ({file_size(output)})")
        note(
            f"{output} may be published: its privacy loss is epsilon {noise.epsilon:g}, delta {noise.delta:g}. "
            f"Another run with these rows adds to the loss. Do not publish warnings of this command, because they "
            f"contain exact numbers."
        )


def _read_declared(path: str, target: str, *, pairs: bool) -> TableCounts:
    """Read classes, categories and cut points from a JSON file, and return empty counts with them."""
    from tanlearn import TableCounts, TableEncoder

    check_exists(path)
    try:
        content: Any = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} must be a JSON file: {error}.") from None
    wrong = "" if isinstance(content, dict) else type(content).__name__
    if isinstance(content, dict):
        unknown, absent = sorted(set(content) - set(_KEYS)), [key for key in _KEYS[:2] if key not in content]
        wrong = f"an unknown key {unknown[0]!r}" if unknown else f"no {absent[0]!r}" if absent else ""
    if wrong:
        raise ValueError(
            f"{path} must contain an object with the keys 'classes' and 'columns', and optionally 'categorical', "
            f"but has {wrong}."
        )
    columns, categorical = content["columns"], content.get("categorical", [])
    if not isinstance(columns, dict) or not isinstance(categorical, list) or set(categorical) - set(columns):
        raise ValueError(
            f"{path}: 'columns' must have a list of values for each column, and 'categorical' must be a list of some "
            f"of these columns."
        )
    if target in columns:
        raise ValueError(
            f"{path}: 'columns' must not contain {target!r}, the column of the classes. Remove it from 'columns'."
        )
    classes = content["classes"]
    if not isinstance(classes, list) or not 1 < len({str(label) for label in classes}) == len(classes):
        raise ValueError(f"{path}: 'classes' must be a list of at least two different values, got {classes!r}.")
    if {type(label) for label in classes} in ({str}, {int}, {bool}):
        classes = sorted(classes)
    encoder = TableEncoder(discrete_features=categorical or "auto").declare(columns)
    return TableCounts.of_encoder(encoder, classes, pairs=pairs)
