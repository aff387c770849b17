"""Warnings during cells. Each kind of warning is issued once for all cells, and names the data set and the fold."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tanlearn._warnings import subject_of_warnings
from tanlearn.comparison.results import CellResult

__all__ = ["about_cell", "each_warning_once"]


class _Caught(NamedTuple):
    """Warning that can be sorted by data set (-1 for none), repeat and fold."""

    dataset: int
    repeat: int
    fold: int
    words: str  # message without data set and fold, up to the first number or name
    message: warnings.WarningMessage


def about_cell(cell: CellResult) -> contextlib.AbstractContextManager[None]:
    """Prefix warnings of the library with the data set and the fold of a cell."""
    return subject_of_warnings(f"{cell.dataset} (repeat {cell.repeat}, fold {cell.fold}): ")


@contextlib.contextmanager
def each_warning_once(datasets: Sequence[str]) -> Iterator[None]:
    """Collect warnings within this context, and issue one of each kind at the end, even after an error.

    All learners read the same data and would otherwise repeat the same warnings in all folds. Of each kind, the first
    warning in the order of data sets, repeats and folds is issued, regardless of the order in which threads warn. The
    message also lists the other data sets with such a warning.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        kinds: dict[tuple[object, ...], list[_Caught]] = {}
        for one in caught:
            own = _read(one, datasets)
            kinds.setdefault((one.filename, one.lineno, one.category, own.words), []).append(own)
        for found in kinds.values():
            first = min(found, key=lambda own: own[:3])
            others = [datasets[k] for k in sorted({own.dataset for own in found} - {first.dataset})]
            _issue(first.message, f" Also in {', '.join(others)}." if others else "")


def _read(one: warnings.WarningMessage, datasets: Sequence[str]) -> _Caught:
    """Return a warning with its data set and fold."""
    text, place = str(one.message), (-1, 0, 0)
    for number, name in enumerate(datasets):
        if found := re.match(rf"{re.escape(name)} \(repeat (\d+), fold (\d+)\): ", text):
            text, place = text[found.end() :], (number, int(found[1]), int(found[2]))
            break
    return _Caught(*place, re.split(r"[\d'\"]", text, maxsplit=1)[0], one)


def _issue(one: warnings.WarningMessage, more: str) -> None:
    """Issue a warning again, with additional text."""
    message = f"{one.message}{more}" if more else one.message
    warnings.warn_explicit(message, one.category, one.filename, one.lineno)
