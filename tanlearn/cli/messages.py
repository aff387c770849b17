"""What is told beside the results, on the standard error: notes, errors in one line, and the exit codes."""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from tanlearn.data.column_notes import ColumnKindWarning

__all__ = ["INTERRUPTED", "listed", "nearest", "note", "plain_errors", "quoted"]

#: Exit codes, as shells have them: what cannot be had, and Ctrl-C.
_REFUSED, INTERRUPTED = 2, 130

#: Letters from which the words before the first number or name tell the kinds of warnings apart.
_SHORTEST_SUBJECT = 12

#: What is advised about columns in words for programs.
_IN_PYTHON = re.compile(r"Drop it if it is noise; cast it to str, or name it in discrete_features of TableEncoder.*")


def note(text: str) -> None:
    """Print one line on the standard error."""
    typer.echo(f"tanlearn: {' '.join(text.split())}", err=True)


@contextmanager
def plain_errors(unfinished: Callable[[], str] = lambda: "nothing was written") -> Iterator[None]:
    """Turn errors of the user into one line and an exit code, and warnings into notes."""
    told: set[tuple[Any, str]] = set()

    def show(message: Warning | str, category: Any, *_: Any, **__: Any) -> None:
        kind = category, _subject(str(message))
        if kind not in told:  # folds repeat it with other numbers and names
            told.add(kind)
            note(f"note: {_IN_PYTHON.sub('--drop leaves such a column out.', str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", ColumnKindWarning)  # notes on tables name the options instead
        warnings.showwarning = show
        try:
            yield
        except (BrokenPipeError, typer.Exit):  # if nobody reads the output, main() ends it
            raise
        except KeyboardInterrupt:
            note(f"interrupted, {unfinished()}.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("TANLEARN_TRACEBACK"):
                raise
            note(_reason(error))
            raise typer.Exit(_REFUSED) from None


def _subject(message: str) -> str:
    """Return what the warnings of one kind have in common: the words before the first number or name."""
    words = re.split(r"[\d'\"]", message, maxsplit=1)[0]
    return words if len(words) >= _SHORTEST_SUBJECT else re.sub(r"\d+", "0", message)


def _reason(error: BaseException) -> str:
    """Return the text of an error, without the number of the operating system."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, (ImportError, MemoryError, OSError, TypeError, ValueError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error}. With TANLEARN_TRACEBACK=1 set, it shows where it comes from."


def nearest(name: str, known: Any) -> str:
    """Return a question for the name that is meant, or nothing."""
    from difflib import get_close_matches

    by_key = {other.casefold(): other for other in known}
    found = get_close_matches(name.casefold(), by_key, n=1)
    return f" Did you mean {by_key[found[0]]!r}?" if found else ""


def listed(names: Sequence[str], most: int = 30, *, are_quoted: bool = False) -> str:
    """Return some names, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name if are_quoted else quoted(name) for name in names[:most]) + rest


def quoted(name: str) -> str:
    """Return a name as it stands in a list: in quotes if it holds a comma, and would look like two."""
    return repr(name) if "," in name else name
