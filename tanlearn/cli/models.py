"""Reading of model files, and conversion of rows to the columns and types of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

import tanlearn
from tanlearn.cli.column_notes import reading_advice
from tanlearn.cli.messages import listed, note
from tanlearn.cli.reading import check_exists
from tanlearn.sources.file_source import dates_as_days
from tanlearn.sources.notation import Notation
from tanlearn.sources.string_formats import contains_strings, detect_number_or_date
from tanlearn.sources.table_files import TableFile

if TYPE_CHECKING:
    from tanlearn.encoding.table_encoder import TableEncoder


__all__ = ["ModelArgument", "ModelColumns", "ModelFile"]

ModelArgument: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by tanlearn fit.")]


class ModelColumns:
    """Names and types of the columns in a model, counts or summary file."""

    def __init__(self, path: str, names: Sequence[str], encoder: TableEncoder) -> None:
        self.path, self.names = path, list(names)  # the path is used in messages
        categories = encoder.categories_
        is_text = [known is not None and any(isinstance(one, str) for one in known.tolist()) for known in categories]
        self.string_columns = [name for name, text in zip(self.names, is_text, strict=True) if text]
        self.boolean_columns = [
            name
            for name, known in zip(self.names, categories, strict=True)
            if known is not None and all(isinstance(one, bool) for one in known.tolist())
        ]
        self.number_columns = [
            name for name in self.names if name not in self.string_columns and name not in self.boolean_columns
        ]

    def columns_of(self, table: TableFile, used: Sequence[str] = (), *, fill_missing: bool | None = None) -> list[str]:
        """Return the columns of the file that a table contains, and print notes about all other columns."""
        absent = [name for name in self.names if name not in table.columns]
        if absent and fill_missing and len(absent) < len(self.names):
            note(f"columns that {table.name} does not have, treated as missing in every row: {listed(absent)}.")
        elif absent:
            remedy = (
                ""
                if fill_missing is None or len(absent) == len(self.names)
                else " To treat them as missing in every row, use --fill-missing."
            )
            raise ValueError(
                f"{table.name} must have all {len(self.names)} columns of {self.path}, but {len(absent)} are "
                f"absent: {listed(absent)}. It has the columns {listed(table.columns)}.{remedy}"
            )
        extra = [name for name in table.columns if name not in self.names and name not in used]
        if extra:
            note(f"not used: {listed(extra)}.")
        return [name for name in self.names if name not in absent]

    def prepare(self, frame: Any, name: str, first_row: Any = 1) -> Any:
        """Convert rows to the types of the training table: dates to days since 1970, and text to numbers.

        ``first_row`` is the number of the first row, or an array (n_samples,) with the numbers of all rows.
        """
        import pandas as pd

        frame, _ = dates_as_days(frame, self.number_columns)
        for column in frame.columns:
            values = frame[column]
            if column not in self.string_columns and contains_strings(values):
                is_text = (pd.to_numeric(values, errors="coerce").isna() & values.notna()).to_numpy()
                if is_text.any():
                    row = int(is_text.argmax())
                    text = values.iloc[row]
                    number = first_row + row if np.ndim(first_row) == 0 else first_row[row]
                    known, hint = ("booleans" if column in self.boolean_columns else "numbers"), ""
                    if name != "the row":
                        found = detect_number_or_date(values.dropna().astype(str).unique().tolist())
                        advice = "" if found is None or column in self.boolean_columns else reading_advice(found)
                        hint = f" {advice}" if advice else f" If it is a missing value, add --missing {text!r}."
                    raise ValueError(
                        f"{name}: {column!r} must contain {known}, but row {number:,} contains the text {text!r}.{hint}"
                    )
                frame = frame.assign(**{column: pd.to_numeric(values)})
        return frame


class ModelFile(ModelColumns):
    """Fitted classifier in a file, with the names and types of its columns."""

    def __init__(self, path: str) -> None:
        check_exists(path)
        from tanlearn.files.description import feature_names

        self.classifier: Any = tanlearn.load(path)
        if not hasattr(self.classifier, "classes_"):
            raise ValueError(
                f"{path} contains a {type(self.classifier).__name__}, but this command needs a classifier. Load it in "
                f"Python with tanlearn.load."
            )
        self.notation: Notation | None = getattr(self.classifier, "_notation", None)
        super().__init__(path, feature_names(self.classifier), self.classifier.encoder_)
