"""``tanlearn export-sql``, ``export-js`` and ``export-onnx``: export a model to other runtimes."""

from enum import StrEnum
from typing import Annotated

import typer

import tanlearn
from tanlearn.cli.messages import plain_errors
from tanlearn.cli.models import ModelArgument, ModelFile
from tanlearn.cli.outputs import check_output
from tanlearn.files.regular_files import Kind, write_file

__all__ = ["export_js", "export_onnx", "export_sql"]

_SQL = Kind("SQL statement", "Name another file", "Export it again")
_GRAPH = Kind("ONNX model", "Name another file", "Export it again")
_MODULE = Kind("JavaScript module", "Name another file", "Export it again")


class DialectName(StrEnum):
    """Values of ``--dialect``."""

    SQLITE = "sqlite"
    DUCKDB = "duckdb"
    POSTGRESQL = "postgresql"


class Result(StrEnum):
    """Values of ``--result``."""

    PREDICTION = "prediction"
    PROBABILITY = "probability"
    LOG_PROBABILITY = "log_probability"
    LOG_JOINT = "log_joint"


OutputOption = Annotated[str, typer.Option("--output", "-o", help="File to write, or - for standard output.")]


def export_sql(
    model: ModelArgument,
    table: Annotated[str, typer.Option(help="Table or view in the database, with the columns of the model.")],
    dialect: Annotated[DialectName, typer.Option(help="Dialect of SQL.")],
    schema: Annotated[str | None, typer.Option(help="Schema of the table.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to return before the results, such as an id; repeatable.")
    ] = None,
    result: Annotated[
        list[Result] | None, typer.Option(help="Result to return; repeatable. By default, prediction and probability.")
    ] = None,
    null_missing: Annotated[
        bool,
        typer.Option(
            "--null-missing",
            help="Write shorter SQL, which returns NULL if a column is missing on which other columns depend.",
        ),
    ] = False,
    max_bytes: Annotated[
        int | None, typer.Option(help="Maximum number of bytes; by default 5,000,000, for DuckDB 1,000,000.")
    ] = None,
    output: OutputOption = "-",
) -> None:
    """Export a model as a SELECT statement for SQLite, DuckDB or PostgreSQL."""
    with plain_errors():
        if output != "-":
            check_output(output, model)
        file = ModelFile(model)
        statement = tanlearn.to_sql(
            file.classifier,
            table,
            dialect=str(dialect),
            schema=schema,
            columns=file.names,
            keep=keep or [],
            output=[str(one) for one in result or (Result.PREDICTION, Result.PROBABILITY)],
            missing="null" if null_missing else "marginalize",
            max_bytes=max_bytes,
        )
        write_text(f"{statement};\n", output, _SQL)


def export_js(
    model: ModelArgument,
    max_bytes: Annotated[int, typer.Option(help="Maximum size of the module in bytes.")] = 20_000_000,
    output: OutputOption = "-",
) -> None:
    """Export a model as a JavaScript module without dependencies."""
    with plain_errors():
        if output != "-":
            check_output(output, model)
        file = ModelFile(model)
        write_text(tanlearn.to_javascript(file.classifier, max_bytes=max_bytes), output, _MODULE)


def export_onnx(
    model: ModelArgument,
    output: Annotated[str, typer.Option("--output", "-o", help="File to write, such as shop.onnx.")],
    max_bytes: Annotated[int, typer.Option(help="Maximum size of the constants in bytes.")] = 200_000_000,
) -> None:
    """Export a model as an ONNX model."""
    with plain_errors():
        check_output(output, model)
        file = ModelFile(model)
        content = tanlearn.to_onnx(file.classifier, max_bytes=max_bytes).SerializeToString()
        write_file(output, content, _GRAPH)
        typer.echo(f"{output}: {len(content):,} bytes")


def write_text(text: str, output: str, kind: Kind) -> None:
    """Write a text to a file, or to standard output for ``-``."""
    if output == "-":
        stream = typer.get_binary_stream("stdout")
        stream.write(text.encode())
        stream.flush()
        return
    write_file(output, text.encode(), kind)
    typer.echo(f"{output}: {len(text.encode()):,} bytes")
