"""The command ``tanlearn``.

In: what the user types, tables and models in files. Out: models and predictions in files or pipes, and what is told of
them; where something is wrong, one line and an exit code. Typer and Rich, which come with an extra, are imported by
everything here but this file.
"""

import csv
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        try:
            import rich  # noqa: F401 - wanted later, but a lack of it has to show now
            import typer  # noqa: F401
        except ModuleNotFoundError as error:
            sys.exit(f'tanlearn: the command line needs {error.name}. Install it with: pip install "tanlearn[cli]"')
        from tanlearn.cli.app import build_app

        csv.field_size_limit(2**31 - 1)  # whole documents may stand in a field
        build_app()()
    except KeyboardInterrupt:  # before a command has begun
        sys.stderr.write("tanlearn: interrupted, nothing was written.\n")
        sys.exit(130)
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Typer and Rich make it 1. Python would complain when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
