"""Values of a row, given as arguments of a command or as answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn.cli.messages import listed, nearest, note

if TYPE_CHECKING:
    from tanlearn.cli.models import ModelFile

__all__ = ["check_column", "frame_of", "given_values", "note_unknown", "plain", "typed"]


def given_values(file: ModelFile, words: Sequence[str], allowed: str = "FILE:NUMBER, a JSON object,") -> dict[str, Any]:
    """Parse a JSON object, or words ``name=value``. In messages, ``allowed`` lists the other accepted forms."""
    pairs: list[tuple[str, Any]]
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            pairs = json.loads(words[0], object_pairs_hook=list)
        except ValueError as error:
            raise ValueError(f"the row is not a JSON object: {error}.") from error
    else:
        wrong = next((word for word in words if "=" not in word), None)
        if wrong is not None:
            raise ValueError(f"a row must be {allowed} or name=value, got {wrong!r}.")
        split = [tuple(map(str.strip, word.split("=", 1))) for word in words]
        pairs = [(name, typed(value, name in file.string_columns)) for name, value in split]
    given = dict(pairs)
    if len(given) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise ValueError(f"each column must be given once, but {twice!r} is given twice. Leave one of them out.")
    for name, value in given.items():
        check_column(file, name)
        if isinstance(value, (dict, list)):
            raise ValueError(f"{name!r} must be a string or a number, got {value!r}.")
    return given


def check_column(file: ModelFile, name: str) -> None:
    """Raise ValueError if a name is not a column of the model."""
    if name not in file.names:
        raise ValueError(
            f"the model has no column {name!r}.{nearest(name, file.names)} Its columns are: {listed(file.names)}."
        )


def frame_of(file: ModelFile, given: Mapping[str, Any]) -> Any:
    """Return a frame with one row of given values, in the columns of the model. All other values are missing."""
    import pandas as pd

    strings = {
        name: str(given[name]) if name in file.string_columns and given.get(name) is not None else None
        for name in given
    }
    values = {name: strings.get(name) if name in file.string_columns else given.get(name) for name in file.names}
    return pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in values.items()}).infer_objects()


def typed(text: str, is_text: bool) -> Any:
    """Convert a word to a number or boolean if it looks like one, unless the column contains text."""
    if is_text:
        return text or None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d{1,19}", text) and abs(int(text)) < 2**63:  # a float would be rounded
        return int(text)
    try:
        return float(text) if text else None
    except ValueError:
        return text


def note_unknown(file: ModelFile, frame: Any) -> None:
    """Print which values of a row did not occur in training."""
    for name, known in zip(file.names, file.classifier.encoder_.categories_, strict=True):
        value = plain(frame[name].iloc[0])
        if known is not None and value == value and value is not None and value not in known.tolist():
            values = listed([str(one) for one in known.tolist()], 10)
            note(
                f"{name!r} is {value!r}, which did not occur in training and counts as missing. Known values: {values}."
            )


def plain(value: Any) -> Any:
    """Convert a value to a JSON-compatible value."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():  # an integer, read as float because of missing values
        return int(value)
    if value is None or value != value:
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)
