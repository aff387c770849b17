"""Notes and one-line errors on stderr, and exit codes."""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from tanlearn.encoding.column_warnings import ColumnKindWarning

__all__ = ["INTERRUPTED", "for_shells", "listed", "nearest", "note", "plain_errors", "quoted"]

#: Exit codes, as in shells: invalid input or options, and Ctrl-C.
_REFUSED, INTERRUPTED = 2, 130

#: Minimum length of the text before the first number or name in a warning that identifies the kind of the warning.
_SHORTEST_SUBJECT = 12

#: Advice for Python in warnings, and the corresponding advice for the command line.
_ADVICE = {
    r"Drop such a column if it is noise; cast it to str, or name it in discrete_features of TableEncoder.*": (
        "--drop leaves such a column out."
    ),
    r"Leave it out of X if it contains the class.*": "--drop leaves it out.",
    r"missing='null'": "--null-missing",
    r"max_bytes(?=[,=])": "--max-bytes",
    r"(?<=[:,] )X column (?=')": "",
    r"GreedySearch\(score='margin'\)": "the learner 'TAN-MM ML'",
    r"Pass a dict to give them different names\.": "Rename one of the files.",
    r"Set retry_failed=True to run them again\.": "Set --retry-failed to run them again.",
}


def note(text: str) -> None:
    """Print one line on stderr."""
    typer.echo(f"tanlearn: {' '.join(text.split())}", err=True)


@contextmanager
def plain_errors(unfinished: Callable[[], str] = lambda: "nothing was written") -> Iterator[None]:
    """Print errors as one line with an exit code, and warnings as notes."""
    printed: set[tuple[Any, str]] = set()

    def show(message: Warning | str, category: Any, *_: Any, **__: Any) -> None:
        kind = category, _subject(str(message))
        if kind not in printed:  # in other folds, the warning is repeated with other numbers and names
            printed.add(kind)
            note(f"note: {for_shells(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("always", "deprecated in", FutureWarning)  # only of this library, not of pandas
        warnings.simplefilter("ignore", ColumnKindWarning)  # replaced by notes that name the options
        warnings.showwarning = show
        try:
            yield
        except (BrokenPipeError, typer.Exit):  # broken pipes are handled by main()
            raise
        except KeyboardInterrupt:
            note(f"interrupted, {unfinished()}.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("TANLEARN_TRACEBACK"):
                raise
            note(for_shells(_reason(error)))
            raise typer.Exit(_REFUSED) from None


def for_shells(message: str) -> str:
    """Replace advice for Python with advice for the command line."""
    for in_python, in_shells in _ADVICE.items():
        message = re.sub(in_python, in_shells, message)
    return message


def _subject(message: str) -> str:
    """Return the words of a warning before its first number or name, which identify the kind of the warning."""
    words = re.split(r"[\d'\"]", message, maxsplit=1)[0]
    return words if len(words) >= _SHORTEST_SUBJECT else re.sub(r"\d+", "0", message)


def _reason(error: BaseException) -> str:
    """Return the message of an error, without the error number of the operating system."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, (ImportError, MemoryError, OSError, TypeError, ValueError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error}. Set TANLEARN_TRACEBACK=1 to see the traceback."


def nearest(name: str, known: Any) -> str:
    """Return a question that suggests the most similar known name, or an empty string."""
    from difflib import get_close_matches

    by_key = {other.casefold(): other for other in known}
    found = get_close_matches(name.casefold(), by_key, n=1)
    return f" Did you mean {by_key[found[0]]!r}?" if found else ""


def listed(names: Sequence[str], most: int = 30, *, are_quoted: bool = False) -> str:
    """Return the first names as a comma-separated list, with the number of remaining names."""
    most = most + 1 if len(names) == most + 1 else most  # "and 1 more" is as long as a name
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name if are_quoted else quoted(name) for name in names[:most]) + rest


def quoted(name: str) -> str:
    """Return a name as it appears in a list: in quotes if it contains a comma."""
    return repr(name) if "," in name else name
