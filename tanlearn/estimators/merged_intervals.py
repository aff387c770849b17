"""Coarser encoders: adjacent intervals of continuous columns merged to fewer ones of about equal weight."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.cut_points import CutPointDiscretizer
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.structures.value_groups import group_values

__all__ = ["coarse_encoder", "merge_intervals", "typical_values"]


def merge_intervals(
    encoder: TableEncoder | None, data: EncodedData, weights: list[FloatArray], most: int
) -> list[IntArray]:
    """Return the coarse value of each value, (n_states,) per feature.

    Continuous columns, or ordered features of data without an encoder, get at most ``most`` intervals of about equal
    weight, and keep a category for missing values. Categories, and columns of a discretizer without cut points, keep
    their values. ``weights`` are those of the rows with each value, (n_states,) per feature.
    """
    coarse: list[IntArray] = [np.arange(n) for n in data.n_states.tolist()]
    for i in np.flatnonzero(_is_merged(encoder, data)).tolist():
        has_category = data.has_missing_category is not None and bool(data.has_missing_category[i])
        n_intervals = len(coarse[i]) - int(has_category)
        coarse[i][:n_intervals] = group_values(weights[i][:n_intervals], most, is_ordered=True)
        coarse[i][n_intervals:] = coarse[i][n_intervals - 1] + 1
    return coarse


def typical_values(encoder: TableEncoder, coarse: list[IntArray], weights: list[FloatArray]) -> list[FloatArray | None]:
    """Return the mean of the training values in each coarse interval of continuous columns, NaN without values."""
    found: list[FloatArray | None] = []
    for i, typical in enumerate(encoder.typical_values_):
        if typical is None:
            found.append(None)
            continue
        n, is_known = len(typical), ~np.isnan(typical)
        known = np.where(is_known, weights[i][:n], 0.0)
        total = np.bincount(coarse[i][:n], known)
        sums = np.bincount(coarse[i][:n], known * np.where(is_known, typical, 0.0))
        found.append(np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0))
    return found


def coarse_encoder(encoder: TableEncoder, coarse: list[IntArray], typical: list[FloatArray | None]) -> TableEncoder:
    """Return the encoder of coarse values, with the mean of the training values in each of their intervals."""
    discretizer = encoder.discretizer_
    if isinstance(discretizer, CutPointDiscretizer):
        columns = np.flatnonzero(~encoder.is_discrete_).tolist()
        cut_points = [
            cuts[np.diff(coarse[i][: len(cuts) + 1]) > 0]
            for i, cuts in zip(columns, discretizer.cut_points_, strict=True)
        ]
        discretizer = clone(discretizer).restore(cut_points)
    of_columns = encoder.value_ranges_, encoder.has_missing_category_
    result = clone(encoder).restore(encoder.categories_, list(typical), discretizer, *of_columns)
    if (names := getattr(encoder, "feature_names_in_", None)) is not None:
        result.feature_names_in_ = names
    return result


def _is_merged(encoder: TableEncoder | None, data: EncodedData) -> AnyArray:
    """Return a mask of the features whose values are merged, (n_features,)."""
    none = np.zeros(data.n_features, np.bool_)
    if encoder is None:
        return none if data.is_ordered is None else data.is_ordered
    return ~encoder.is_discrete_ if isinstance(encoder.discretizer_, CutPointDiscretizer) else none
