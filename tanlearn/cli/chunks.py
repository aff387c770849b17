"""Learning from a file that is larger than memory, by learners that count.

The file is read twice. The first time finds the classes, which columns are categorical, and their categories, by the
rules for whole tables; only cuts of continuous columns come from the first chunk. So a table of categories makes, to
the last bit, the model of all its rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tanlearn.baselines import LEARNERS
from tanlearn.cli.messages import note
from tanlearn.cli.tables import check_classes, labelled, note_dates, note_numbers_as_texts
from tanlearn.data.column_kinds import MAX_NUMERIC_CATEGORIES
from tanlearn.data.table_files import TableFile, dates_as_days

__all__ = ["check_counts", "learn_by_chunks"]


@dataclass
class _Column:
    """What a reading of the whole file has found of a column."""

    kind: str | None = None
    values: set[Any] = field(default_factory=set)
    is_quantity: bool = False

    def add(self, present: Any, kind: str) -> None:
        """Add the values of a chunk."""
        self.kind = kind
        if kind == "text":
            self.values.update(present.unique())
        elif not self.is_quantity:
            found = present.unique()  # of their type: as floats, large integers would fall together
            self.values.update(found.tolist())
            is_fraction = found.dtype.kind == "f" and not (np.isfinite(found) & (found == np.floor(found))).all()
            self.is_quantity = len(self.values) > MAX_NUMERIC_CATEGORIES or is_fraction

    def categories(self) -> list[Any] | None:
        """Return the values of a categorical column, sorted."""
        if self.kind in ("text", None):
            return sorted(self.values)
        if self.kind == "date" or self.is_quantity:
            return None
        return sorted(map(bool if self.kind == "bool" else int, self.values))


@dataclass
class _Plan:
    """What the first reading has found."""

    columns: dict[str, _Column]
    texts: set[str]
    classes: list[Any]
    n_samples: int

    def prepare(self, frame: Any) -> Any:
        """Return a chunk with declared categories, and dates as days."""
        import pandas as pd

        dates = [name for name, column in self.columns.items() if column.kind == "date"]
        frame, _ = dates_as_days(frame, dates)
        declared = {name: column.categories() for name, column in self.columns.items()}
        return frame.assign(
            **{
                name: pd.Categorical(frame[name], categories=known)
                for name, known in declared.items()
                if known is not None
            }
        )


def check_counts(estimator: Any, name: str) -> None:
    """Refuse a learner that needs all rows at once.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    name : str
        What messages call it.

    Raises
    ------
    ValueError
        If it does.
    """
    if not _counts(estimator):
        able = [known.name for known in LEARNERS.values() if _counts(known.make())]
        raise ValueError(
            f"{name} needs all rows at once, so it cannot learn by chunks. Those that can: {', '.join(able)}. "
            f"--chunk-rows 0 reads the whole table."
        )


def _counts(estimator: Any) -> bool:
    """Return whether counts of pairs are all that an estimator learns from."""
    return hasattr(estimator, "partial_fit") and estimator.get_params(deep=True).get("structure__k", 1) < 2


def learn_by_chunks(
    table: TableFile,
    target: str,
    names: Sequence[str],
    estimator: Any,
    n_rows: int,
    draw: Callable[[float | None], None],
) -> int:
    """Learn from a file chunk by chunk.

    Parameters
    ----------
    table : TableFile
        The file.
    target : str
        The column with the classes.
    names : sequence of str
        The other columns to learn from.
    estimator : estimator
        One with ``partial_fit``; its encoder is told what is categorical.
    n_rows : int
        Rows a chunk.
    draw : callable
        Of the share that is done.

    Returns
    -------
    int
        Number of rows that were learnt.

    Raises
    ------
    ValueError
        If the table or a parameter breaks a rule.
    """
    from pandas import Series

    plan = _scan(table, target, list(names), n_rows)
    note_dates([name for name, column in plan.columns.items() if column.kind == "date"])
    for name, column in plan.columns.items():
        if column.kind == "text":
            note_numbers_as_texts(Series(column.categories(), name=name))
    if estimator.encoder.discrete_features == "auto":
        discrete = [column.categories() is not None for column in plan.columns.values()]
        estimator.set_params(encoder__discrete_features=np.array(discrete))
    n_done = 0
    for frame in table.chunks(n_rows, [*names, target], texts=plan.texts):
        X, y, _ = labelled(frame, target, table.name)
        if len(y):
            estimator.partial_fit(plan.prepare(X), y, classes=plan.classes)
        n_done += len(y)
        draw(n_done / plan.n_samples)
    return n_done


def _scan(table: TableFile, target: str, names: list[str], n_rows: int) -> _Plan:
    """Read the file once for what has to be known from the start."""
    texts: set[str] = set()
    while True:
        plan = _Plan({name: _Column() for name in names}, texts, [], 0)
        mixed, classes, n_missing = set(), set(), 0
        label_kinds = set()
        for frame in table.chunks(n_rows, [*names, target], texts=texts):
            X, y, n_without = labelled(frame, target, table.name)
            n_missing += n_without
            plan.n_samples += len(y)
            label_kinds.add(_kind(frame[target].dropna()))
            classes.update(np.unique(y).tolist())
            X, dates = dates_as_days(X, [name for name in names if name not in texts])
            for name, column in plan.columns.items():
                present = X[name].dropna()
                kind = "date" if name in dates else _kind(present)
                if kind is not None and column.kind not in (None, kind):
                    mixed.add(name)
                elif kind is not None:
                    column.add(present, kind)
        if len(label_kinds - {None}) > 1:
            mixed.add(target)
        if not mixed:
            plan.classes = sorted(classes)
            check_classes(plan.classes, n_missing, plan.n_samples, target, table.name)
            return plan
        if mixed <= texts:  # of types that a file declares
            raise ValueError(f"{table.name}: {min(mixed)!r} holds values of several kinds.")
        note(f"text and numbers stand in {', '.join(sorted(mixed))}: all of it counts as text.")
        texts = texts | mixed


def _kind(present: Any) -> str | None:
    """Return of what kind the values of a column are, or None if there are none."""
    if not len(present):
        return None
    if present.dtype.kind in "iuf":
        return "number"
    is_bool = present.dtype.kind == "b" or all(type(value) is bool for value in present.unique().tolist())
    return "bool" if is_bool else "text"
