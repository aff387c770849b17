"""What is written: in whole or not at all, and refused before the work begins if it cannot be written."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from tanlearn.files.archive import Kind, write_file

__all__ = ["check_folder", "table_ending", "write_table"]

_ENDINGS = (".csv", ".tsv", ".parquet", ".feather")
_FILE = Kind("table", "Name another file", "Write it again")


def check_folder(output: str) -> None:
    """Refuse a file in a folder that is not there.

    Parameters
    ----------
    output : str
        Where something is to be written.

    Raises
    ------
    ValueError
        If it cannot be.
    """
    path = Path(output)
    if path.is_dir():
        raise ValueError(f"{output} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"{output}: there is no folder {path.parent}. Make it first, or correct the path.")


def table_ending(output: str) -> str:
    """Return the ending of the table to write.

    Parameters
    ----------
    output : str
        A path, or - for the standard output, which gets .csv.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If nothing is written with this ending, or there is no such folder.
    ImportError
        If writing it needs a package that is not installed.
    """
    if output == "-":
        return ".csv"
    ending = Path(output).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(f"--output must be - or end in {', '.join(_ENDINGS)}; got {output!r}.")
    if ending in (".parquet", ".feather"):
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError(f'{output} needs pyarrow. Install it with: pip install "tanlearn[frames]"') from error
    check_folder(output)
    return ending


def write_table(parts: Sequence[Any], output: str, ending: str, *, has_index: bool) -> None:
    """Write a table, now that all of it is there.

    Parameters
    ----------
    parts : sequence of DataFrame
        Its rows.
    output : str
        A path, or - for the standard output.
    ending : str
        Of the path.
    has_index : bool
        Whether rows have names of their own.
    """
    import pandas as pd

    frame = pd.concat(parts, ignore_index=not has_index)
    if ending in (".csv", ".tsv"):
        separator = "\t" if ending == ".tsv" else ","
        content = frame.to_csv(sep=separator, index=has_index, lineterminator="\n").encode()
    else:
        buffer = io.BytesIO()
        if ending == ".parquet":
            frame.to_parquet(buffer)
        else:
            (frame.reset_index() if has_index else frame).to_feather(buffer)
        content = buffer.getvalue()
    if output == "-":
        stream = typer.get_binary_stream("stdout")
        stream.write(content)
        stream.flush()
    else:
        write_file(output, content, _FILE)
