"""Output files, which are checked before the work begins and written atomically."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from tanlearn._typing import AnyArray
from tanlearn.files.regular_files import Kind, special_kind, write_file
from tanlearn.sources.file_formats import FORMATS, OUTPUTS, joined_by_or
from tanlearn.sources.table_files import require_pyarrow

__all__ = ["TableOutputOption", "check_output", "describe_classes", "file_size", "output_format", "write_table"]

TableOutputOption: TypeAlias = Annotated[
    str, typer.Option("--output", "-o", help=f"A {joined_by_or([*OUTPUTS])} file, or - for standard output.")
]

_FILE = Kind("table", "Name another file", "Write it again")


def check_output(output: str, *inputs: str | None) -> None:
    """Raise an error for an output that cannot be written, or that is also an input."""
    path = Path(output)
    if path.is_dir():
        raise ValueError(f"the output must be a file, but {output} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"{output}: the folder {path.parent} does not exist. Create it first, or correct the path.")
    found = special_kind(path)
    if found is not None:
        raise ValueError(
            f"the output must be a regular file, but {output} is {found}. Name another output (for predict, - is "
            f"standard output)."
        )
    if path.exists() and any(os.path.samestat(path.stat(), found) for found in map(_status, inputs) if found):
        raise ValueError(f"the output must not be an input, but {output} is both. Name another output.")


def file_size(path: str) -> str:
    """Return the size of a file in kB or MB."""
    n_bytes = Path(path).stat().st_size
    return f"{n_bytes / 1000:,.1f} kB" if n_bytes < 1_000_000 else f"{n_bytes / 1_000_000:,.1f} MB"


def describe_classes(classes: AnyArray) -> str:
    """Return the number of classes and the first ten labels."""
    names = [str(label) for label in classes.tolist()]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{len(names):,} class{'' if len(names) == 1 else 'es'} ({', '.join(names[:10])}{more})"


def _status(source: str | None) -> os.stat_result | None:
    """Return the status of an input file, or None if it does not exist."""
    try:
        return None if source is None else os.fstat(0) if source == "-" else os.stat(source)
    except (OSError, ValueError):
        return None


def output_format(output: str, *inputs: str) -> str:
    """Check the output, and return the name of the format of the output table."""
    if output == "-":
        if sys.stdout is None:
            raise ValueError("standard output is closed. Name a file with --output.")
        return "csv"
    check_output(output, *inputs)
    name = OUTPUTS.get(Path(output).suffix.lower())
    if name is None:
        raise ValueError(f"--output must be - (standard output) or end in {joined_by_or([*OUTPUTS])}, got {output!r}.")
    if FORMATS[name].separator is None:
        require_pyarrow(output)
    return name


def write_table(parts: Sequence[Any], output: str, name: str, *, has_index: bool, copied: Sequence[str] = ()) -> None:
    """Concatenate frames, and write them as a table in the named format.

    In binary formats, number-like strings in the columns ``copied`` are converted to numbers.
    """
    import pandas as pd

    frame = pd.concat(parts, ignore_index=not has_index)
    separator = FORMATS[name].separator
    if separator is not None:
        content = frame.to_csv(sep=separator, index=has_index, lineterminator="\n").encode()
    else:
        frame = frame.assign(**{name: _typed(frame[name]) for name in copied})
        buffer = io.BytesIO()
        _WRITERS[name](frame, buffer, has_index)
        content = buffer.getvalue()
    if output == "-":
        stream = typer.get_binary_stream("stdout")
        stream.write(content)
        stream.flush()
    else:
        write_file(output, content, _FILE)


#: Function for each binary format that writes a frame, with or without its index.
_WRITERS: dict[str, Callable[[Any, io.BytesIO, bool], Any]] = {
    "parquet": lambda frame, buffer, has_index: frame.to_parquet(buffer),
    "feather": lambda frame, buffer, has_index: (frame.reset_index() if has_index else frame).to_feather(buffer),
}


def _typed(strings: Any) -> Any:
    """Convert a column of strings to numbers if all of them are numbers without leading zeros."""
    import pandas as pd

    numbers = pd.to_numeric(strings, errors="coerce")
    is_code = strings.str.fullmatch(r"0\d+").fillna(False).astype(bool)
    return strings if (numbers.isna() & strings.notna()).any() or is_code.any() else numbers
