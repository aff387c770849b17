"""The notation of numbers, dates and missing values in a text table."""

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.data.written_values import DATE_ORDERS

__all__ = ["Notation"]

_MARKS = (",", ".", "'", " ")


class Notation(NamedTuple):
    """Format of the values in a delimited text file."""

    decimal: str = "."  # decimal mark: "." or ","
    thousands: str = ""  # thousands separator: "", ",", ".", "'" or " "
    symbols: tuple[str, ...] = ()  # symbols and units around numbers
    dates: str = ""  # order of dates that are not in ISO 8601 format: "day-first", "month-first" or "year-first"
    missing: tuple[str, ...] = ()  # strings for a missing value, besides the empty field, NA and similar

    def check(self) -> Notation:
        """Return the notation itself; raise ValueError if a field is invalid or a mark is ambiguous."""
        if self.decimal not in (".", ","):
            raise ValueError(f"the decimal mark must be . or , and not {self.decimal!r}.")
        if self.thousands and (self.thousands not in _MARKS or self.thousands == self.decimal):
            raise ValueError(
                f"the thousands separator must be one of , . ' and a space, and not the decimal mark "
                f"{self.decimal!r}; got {self.thousands!r}."
            )
        if self.dates and self.dates not in DATE_ORDERS:
            raise ValueError(f"dates must be one of {', '.join(DATE_ORDERS)}; got {self.dates!r}.")
        if not all(isinstance(text, str) for text in (*self.symbols, *self.missing)):
            raise ValueError("symbols and missing values must be strings.")
        return self

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._asdict().items()}

    @classmethod
    def from_state(cls, state: Any) -> Notation:
        """Return the notation stored by :meth:`to_state`, validated."""
        if type(state) is not dict or set(state) != set(cls._fields):
            raise ValueError(f"a notation must have the fields {', '.join(cls._fields)}.")
        for name in cls._fields:
            if type(state[name]) is not (list if name in ("symbols", "missing") else str):
                raise ValueError(f"{name} of a notation has another type.")
        fields = dict(state, symbols=tuple(state["symbols"]), missing=tuple(state["missing"]))
        return cls(**fields).check()
