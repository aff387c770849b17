"""The command ``tanlearn``.

The command reads tables and models from files and pipes, writes models and predictions, and prints summaries. If an
error occurs, it prints one line on stderr and sets the exit code. All modules of this package except this one import
Typer and Rich, which are installed by the extra ``cli``.
"""

import csv
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        try:
            import rich  # noqa: F401 - needed later, checked now
            import typer  # noqa: F401
        except ModuleNotFoundError as error:
            sys.exit(f'tanlearn: the command line needs {error.name}. Install it with: pip install "tanlearn[cli]"')
        from tanlearn.cli.app import build_app

        csv.field_size_limit(2**31 - 1)  # a field may contain a whole document
        build_app()()
    except KeyboardInterrupt:  # before a command has started
        sys.stderr.write("tanlearn: interrupted, nothing was written.\n")
        sys.exit(130)
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Typer and Rich exit with code 1. Without this, Python would report an error when it closes the broken stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
