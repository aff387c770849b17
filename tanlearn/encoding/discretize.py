"""Discretization of columns by any discretizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.encoding.cut_points import OtherFeatures
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.sources.table import Table

__all__ = ["CUT_POINT_DISCRETIZERS", "discretize", "fit_discretizer"]


#: Discretizers that are fully described by their cut points. Subclasses may encode differently.
CUT_POINT_DISCRETIZERS = MDLPDiscretizer, QuantileDiscretizer


def fit_discretizer(
    discretizer: Any,
    columns: Table,
    chosen: list[int],
    y: IntArray,
    sample_weight: AnyArray | None,
    others: Callable[[], OtherFeatures | None] = lambda: None,
) -> None:
    """Fit any discretizer to the chosen columns in this order.

    For discretizers that use other features, ``others`` returns their codes.
    """
    if type(discretizer) in CUT_POINT_DISCRETIZERS and discretizer.uses_other_features:
        discretizer.fit_columns(columns, chosen, y, sample_weight, others)
    elif type(discretizer) in CUT_POINT_DISCRETIZERS:
        discretizer.fit_columns(columns, chosen, y, sample_weight)
    else:
        discretizer.fit(_side_by_side(columns, chosen), y, sample_weight)


def discretize(discretizer: Any, columns: Table) -> Codes:
    """Return the codes of the columns of any fitted discretizer. Shape: (n_features, n_samples)."""
    codes: Codes
    if type(discretizer) in CUT_POINT_DISCRETIZERS:
        codes = discretizer.transform_columns(columns)
    else:  # np.asarray undoes set_output, which may turn the codes into a frame
        codes = np.asarray(discretizer.transform(_side_by_side(columns, range(len(columns)), were_numbers=True))).T
    return codes


def _side_by_side(columns: Table, chosen: Iterable[int], *, were_numbers: bool = False) -> AnyArray:
    """Stack numeric columns into a matrix, in Fortran order."""
    return np.stack([columns[i].numbers(were_numbers=were_numbers) for i in chosen]).T
