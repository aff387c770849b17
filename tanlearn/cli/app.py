"""The Typer application with all commands."""

from typing import Annotated

import typer

from tanlearn import __version__
from tanlearn.cli.asking import ask
from tanlearn.cli.comparing import compare
from tanlearn.cli.counting import counts, merge
from tanlearn.cli.exporting import export_js, export_onnx, export_sql
from tanlearn.cli.fitting import fit
from tanlearn.cli.imputing import impute
from tanlearn.cli.inspecting import describe, explain, export_c
from tanlearn.cli.outliers import outliers
from tanlearn.cli.predicting import predict
from tanlearn.cli.private_counting import private_counts
from tanlearn.cli.reporting import report
from tanlearn.cli.warming import warmup

__all__ = ["build_app"]


def build_app() -> typer.Typer:
    """Return the Typer application."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(options)
    for command in (
        fit,
        predict,
        explain,
        ask,
        describe,
        export_c,
        export_sql,
        export_js,
        export_onnx,
        compare,
        report,
        counts,
        private_counts,
        merge,
        outliers,
        impute,
        warmup,
    ):
        app.command()(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tanlearn {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian network classifiers: fit a model to a table, predict, explain, compare."""
