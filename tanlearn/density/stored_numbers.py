"""Training values of intervals, for random draws, and copies of data with imputed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.stored_values import check_array
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.completed_rows import completed_rows
from tanlearn.sources.frames import native_frame
from tanlearn.sources.table import Table

__all__ = ["IntervalNumbers", "completed_table"]

#: Maximum number of training values that are kept per interval. If an interval has more, evenly spaced ones of its
#: sorted values are kept.
_MOST_NUMBERS = 256


@dataclass(frozen=True, eq=False)
class IntervalNumbers:
    """Training values of numeric columns, sorted and grouped by interval (at most 256 per interval)."""

    numbers: dict[int, FloatArray]  # sorted values of each numeric column, interval by interval
    start: dict[int, IntArray]  # (n_intervals + 1,) position of the first value of each interval

    @classmethod
    def of(cls, columns: Table, codes: Codes, encoder: TableEncoder) -> IntervalNumbers:
        """Collect the numeric values of training rows."""
        numbers, start = {}, {}
        for i in np.flatnonzero(~encoder.is_discrete_).tolist():
            known = codes[i] != missing_code(codes.dtype)
            values, own = columns[i].numbers()[known].astype(np.float64), codes[i][known]
            order = np.argsort(values, kind="stable")
            parts = [values[order][own[order] == k] for k in range(encoder.n_states_[i])]
            parts = [part[np.linspace(0, len(part) - 1, min(len(part), _MOST_NUMBERS)).astype(int)] for part in parts]
            numbers[i] = np.concatenate(parts)
            start[i] = np.append(0, np.cumsum([len(part) for part in parts])).astype(np.intp)
        return cls(numbers, start)

    def to_state(self) -> dict[str, Any]:
        """Return the arrays for a model file."""
        return {
            "numbers": np.concatenate([np.empty(0), *self.numbers.values()]),
            "n_numbers": np.concatenate([np.empty(0, np.int64), *map(np.diff, self.start.values())]).astype(np.int64),
        }

    @classmethod
    def from_state(cls, numbers: Any, n_numbers: Any, n_intervals: dict[int, int]) -> IntervalNumbers:
        """Restore the values from arrays of a model file. Raise ValueError if they do not match the intervals."""
        check_array("n_numbers", n_numbers, np.int64, (sum(n_intervals.values()),))
        if not ((n_numbers >= 0) & (n_numbers <= _MOST_NUMBERS)).all():
            raise ValueError(f"n_numbers must contain integers from 0 to {_MOST_NUMBERS}.")
        check_array("numbers", numbers, np.float64, (int(n_numbers.sum()),))
        own_numbers, start = {}, {}
        first = last = 0
        for i, n in n_intervals.items():
            start[i] = np.append(0, np.cumsum(n_numbers[first : first + n])).astype(np.intp)
            own_numbers[i] = numbers[last : last + start[i][-1]]
            first, last = first + n, last + int(start[i][-1])
        return cls(own_numbers, start)

    def draw(self, feature: int, codes: AnyArray, rng: np.random.Generator) -> AnyArray:
        """Return a random training value from each interval in ``codes``; NaN if the column has no values."""
        start, numbers = self.start[feature], self.numbers[feature]
        first, n_numbers = start[codes], np.diff(start)[codes]
        uniform = rng.random(len(codes))
        if not numbers.size:
            return np.full(len(codes), np.nan)
        return numbers[np.minimum(first + (uniform * n_numbers).astype(np.intp), first + np.maximum(n_numbers - 1, 0))]


def completed_table(X: Any, absent: AnyArray, values: AnyArray) -> Any:
    """Return a copy of ``X`` with ``values`` at the positions where ``absent`` is true.

    Frames stay frames, and arrays of numbers become arrays of floats. Shapes: values, absent: (n_samples, n_features).
    """
    native = native_frame(X)
    table = None if hasattr(native, "columns") else np.asarray(native)
    if table is None or table.dtype.kind not in "biuf":
        return completed_rows(native, values)
    filled: AnyArray = table.astype(table.dtype if table.dtype.kind == "f" else np.float64)
    filled[absent] = values[absent].astype(np.float64)
    return filled
