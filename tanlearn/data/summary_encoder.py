"""The encoder that follows from summaries of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.column_kinds import find_all_categories, named_columns
from tanlearn.data.column_summaries import ColumnSummary
from tanlearn.data.cuts import CutDiscretizer
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.lost_columns import LARGEST_SHARE
from tanlearn.data.table import Table
from tanlearn.data.table_encoder import CUT_DISCRETIZERS, TableEncoder

__all__ = ["fit_to_summaries"]


def fit_to_summaries(
    encoder: TableEncoder, columns: list[ColumnSummary], n_classes: int, names: AnyArray | None
) -> tuple[TableEncoder, list[str]]:
    """Fit a clone of an encoder to columns that are counted already.

    Cuts rest on weights of values and classes, so every column is discretised by itself, as weighted rows of its
    distinct values.

    Shapes: names: (n_features,).
    """
    fitted: TableEncoder = clone(encoder)
    fitted._validate_params()
    if names is not None:
        fitted.feature_names_in_ = names
    categories = _find_categories(columns, fitted.discrete_features, names)
    continuous = [column for column, known in zip(columns, categories, strict=True) if known is None]
    if not continuous:
        return fitted.restore(categories, [None] * len(columns), None), []
    discretizer = clone(MDLPDiscretizer(n_jobs=fitted.n_jobs) if fitted.discretizer is None else fitted.discretizer)
    if not isinstance(discretizer, CutDiscretizer):
        raise TypeError(
            f"{type(discretizer).__name__} is no CutDiscretizer, and rows that are read in parts can only be "
            f"discretised by cuts. Take MDLPDiscretizer, QuantileDiscretizer, or a subclass of theirs."
        )
    found = in_threads(lambda column: _cut(column, discretizer, n_classes), continuous, fitted.n_jobs)
    discretizer.restore([cuts for cuts, _, _ in found])
    lost = [column.place for column, (_, _, is_lost) in zip(continuous, found, strict=True) if is_lost]
    means = iter(found)
    typical = [next(means)[1] if known is None else None for known in categories]
    ranges = [column.value_range if known is None else None for column, known in zip(columns, categories, strict=True)]
    return fitted.restore(categories, typical, discretizer, ranges), lost


def _find_categories(columns: list[ColumnSummary], option: Any, names: AnyArray | None) -> list[AnyArray | None]:
    """Return the categories of the columns that are categorical, as the option says."""
    options: list[Any] = [option] * len(columns)
    if not isinstance(option, str):
        options = named_columns(option, len(columns), names).tolist()
    found: list[AnyArray | None] = []
    for column, own in zip(columns, options, strict=True):
        if own is True and column.blocks:
            raise ValueError(
                f"{column.place} has so many distinct values that quantiles of it are kept, and no categories. It "
                f"looks like an identifier or a continuous column: drop it, discretise it, or summarise it with "
                f"exact=True."
            )
        found += [None] if column.blocks else find_all_categories(own, Table([column.as_column()]), None)
    return found


def _cut(column: ColumnSummary, discretizer: Any, n_classes: int) -> tuple[FloatArray, FloatArray, bool]:
    """Return the cuts of a column, the means of its values between them, and whether it has none though they differ."""
    rows, y, weights = column.as_rows(n_classes)
    own = clone(discretizer)
    if type(own) in CUT_DISCRETIZERS:
        own.fit_columns(Table([rows]), [0], y, weights)
    else:  # as the encoder does
        own.fit(rows.numbers()[:, np.newaxis], y, weights)
    cuts: FloatArray = own.cut_points_[0]
    present = ~np.asarray(rows.missing)
    values, weights = rows.values[present].astype(np.float64), weights[present]
    states = np.searchsorted(cuts, values)
    total = np.bincount(states, weights, len(cuts) + 1)
    # Shares first, so that no sum overflows.
    mean = np.bincount(states, values * (weights / total[states]), len(cuts) + 1)
    of_value = np.bincount(np.unique(values, return_inverse=True)[1], weights)
    is_lost = len(cuts) == 0 and len(values) > 0 and of_value.max() < LARGEST_SHARE * total[0]
    return cuts, np.where(total > 0, mean, np.nan), bool(is_lost)
