"""Fitting of an encoder to column summaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.column_kinds import find_all_categories, named_columns
from tanlearn.data.column_summaries import ColumnSummary
from tanlearn.data.column_warnings import LARGEST_SHARE
from tanlearn.data.cuts import CutDiscretizer
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.table import Table
from tanlearn.data.table_encoder import CUT_DISCRETIZERS, TableEncoder

__all__ = ["fit_to_summaries"]


def fit_to_summaries(
    encoder: TableEncoder, columns: list[ColumnSummary], n_classes: int, names: AnyArray | None
) -> tuple[TableEncoder, list[str]]:
    """Fit a clone of an encoder to column summaries; also return the columns reduced to a single interval.

    Cut points depend only on the weights of values and classes, so each column is discretized separately, as weighted
    rows of its distinct values. ``columns`` must not be empty, ``n_classes`` is at least 2, and ``names`` are the
    column names.
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
            f"{type(discretizer).__name__} is not a CutDiscretizer, but data read in parts can only be discretized by "
            f"cut points. Use MDLPDiscretizer, QuantileDiscretizer, or a subclass of one of them."
        )
    found = in_threads(lambda column: _cut(column, discretizer, n_classes), continuous, fitted.n_jobs)
    discretizer.restore([cuts for cuts, _, _ in found])
    lost = [column.place for column, (_, _, is_lost) in zip(continuous, found, strict=True) if is_lost]
    means = iter(found)
    typical = [next(means)[1] if known is None else None for known in categories]
    ranges = [column.value_range if known is None else None for column, known in zip(columns, categories, strict=True)]
    return fitted.restore(categories, typical, discretizer, ranges), lost


def _find_categories(columns: list[ColumnSummary], option: Any, names: AnyArray | None) -> list[AnyArray | None]:
    """Return the categories of the categorical columns and None for the others, according to ``discrete_features``."""
    options: list[Any] = [option] * len(columns)
    if not isinstance(option, str):
        options = named_columns(option, len(columns), names).tolist()
    found: list[AnyArray | None] = []
    for column, own in zip(columns, options, strict=True):
        if own is True and column.blocks:
            raise ValueError(
                f"{column.place} has so many distinct values that only quantiles are kept, and no categories. It "
                f"looks like an identifier or a continuous column: drop it, discretize it, or summarize it with "
                f"exact=True."
            )
        found += [None] if column.blocks else find_all_categories(own, Table([column.as_column()]), None)
    return found


def _cut(column: ColumnSummary, discretizer: Any, n_classes: int) -> tuple[FloatArray, FloatArray, bool]:
    """Return a column's cut points, the mean of each interval, and whether different values share a single interval."""
    rows, y, weights = column.as_rows(n_classes)
    own = clone(discretizer)
    if type(own) in CUT_DISCRETIZERS:
        own.fit_columns(Table([rows]), [0], y, weights)
    else:  # a custom discretizer, called as the encoder does
        own.fit(rows.numbers()[:, np.newaxis], y, weights)
    cuts: FloatArray = own.cut_points_[0]
    present = ~np.asarray(rows.missing)
    values, weights = rows.values[present].astype(np.float64), weights[present]
    states = np.searchsorted(cuts, values)
    total = np.bincount(states, weights, len(cuts) + 1)
    # Weights are normalized first, so that no sum overflows.
    mean = np.bincount(states, values * (weights / total[states]), len(cuts) + 1)
    of_value = np.bincount(np.unique(values, return_inverse=True)[1], weights)
    is_lost = len(cuts) == 0 and len(values) > 0 and of_value.max() < LARGEST_SHARE * total[0]
    return cuts, np.where(total > 0, mean, np.nan), bool(is_lost)
