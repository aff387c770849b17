"""Columns of an exported classifier: their cut points or categories, and the code of a missing value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS
from tanlearn.encoding.table_encoder import TableEncoder

__all__ = ["MISSING", "RawColumn", "raw_columns"]

#: Code of a missing value that is not a category, in exported classifiers.
MISSING = -1


@dataclass(frozen=True)
class RawColumn:
    """Encoding of a column of raw values, as in :class:`~tanlearn.TableEncoder`."""

    name: str
    cut_points: list[float] | None  # increasing; the code is the number of cut points below the value
    categories: list[Any] | None  # strings, booleans or numbers; the code is the index of the equal category
    missing: int  # code of a missing value: MISSING, or the code of the category for missing values
    refuses_unseen: bool  # whether an unseen category is an error; otherwise it has the code MISSING

    @property
    def can_be_missing(self) -> bool:
        """True if a value can have the code MISSING."""
        return self.missing == MISSING or (self.categories is not None and not self.refuses_unseen)


def raw_columns(encoder: TableEncoder, names: list[str]) -> list[RawColumn]:
    """Return the encoding of each column of a fitted encoder.

    Raises ValueError for an encoder or discretizer of a user's class, and for categories that are neither strings,
    booleans nor numbers.
    """
    if type(encoder) is not TableEncoder or type(encoder.discretizer_) not in (*CUT_POINT_DISCRETIZERS, type(None)):
        kind = type(encoder if type(encoder) is not TableEncoder else encoder.discretizer_).__name__
        raise ValueError(
            f"only columns encoded by cut points or categories can be exported, but this model uses {kind}. Fit it "
            f"again with encoder=TableEncoder() and the default discretizer."
        )
    cuts = iter(encoder.discretizer_.cut_points_ if encoder.discretizer_ is not None else [])
    columns = []
    for i, (name, known) in enumerate(zip(names, encoder.categories_, strict=True)):
        missing = int(encoder.n_states_[i]) - 1 if encoder.has_missing_category_[i] else MISSING
        cut_points = next(cuts).tolist() if known is None else None
        categories = None if known is None else known.tolist()
        for value in categories or ():
            if not isinstance(value, str | bool | int | float) or (isinstance(value, str) and "\0" in value):
                raise ValueError(
                    f"exported categories must be booleans, numbers, or strings without null characters, but column "
                    f"{name!r} has the category {value!r}. Convert the column before fit."
                )
        columns.append(RawColumn(name, cut_points, categories, missing, encoder.handle_unknown == "error"))
    return columns
