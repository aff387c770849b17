"""Encoders that merge adjacent intervals of continuous columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.cut_points import CutPointDiscretizer
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.raw_numbers import RawNumbers
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.forest.ensemble import merged_values

__all__ = ["coarse_encoder", "merge_intervals", "typical_values"]


def merge_intervals(
    encoder: TableEncoder | None, data: EncodedData, most: int, *, n_jobs: int | None = None
) -> tuple[list[IntArray], EncodedData]:
    """Return, for each feature, the coarse value of each value (n_states,), and the data with coarse values.

    For continuous columns, or ordered features of data without an encoder, there are at most ``most`` intervals of
    about equal weight. The intervals are divided further at cut points that separate classes. A category for missing
    values is kept. For each fold of the data, separate cut points are computed. Values stay unchanged in categorical
    columns, and in columns whose discretizer has no cut points.
    """
    coarse: list[IntArray] = [np.arange(n) for n in data.n_states.tolist()]
    features = np.flatnonzero(_is_merged(encoder, data))
    if not len(features):
        return coarse, replace(data, raw=None)
    n_intervals = data.n_states.copy()
    if data.has_missing_category is not None:
        n_intervals -= data.has_missing_category
    numbers = tuple(np.where(data.codes[i] < n_intervals[i], data.codes[i], np.nan) for i in features.tolist())
    has_classes = len(np.unique(data.y)) > 1
    raw = RawNumbers(numbers, features, QuantileDiscretizer(max_bins=most, mdl_points=has_classes, n_jobs=n_jobs))
    discretizer = raw.fit(data.y, data.base_weights)
    for i, cut_points in zip(features.tolist(), discretizer.cut_points_, strict=True):
        n = int(n_intervals[i])
        coarse[i][:n] = np.searchsorted(cut_points, np.arange(n))
        coarse[i][n:] = len(cut_points) + 1
    values = merged_values(coarse)
    of_folds = replace(raw, quantiles=tuple(discretizer.quantiles_)) if has_classes else None
    return coarse, replace(data, codes=values.encode(data.codes), n_states=values.n_states, raw=of_folds)


def typical_values(encoder: TableEncoder, coarse: list[IntArray], weights: list[FloatArray]) -> list[FloatArray | None]:
    """Return the mean training value in each coarse interval of continuous columns, or NaN without values."""
    found: list[FloatArray | None] = []
    for i, typical in enumerate(encoder.typical_values_):
        if typical is None:
            found.append(None)
            continue
        n, is_known = len(typical), ~np.isnan(typical)
        known = np.where(is_known, weights[i][:n], 0.0)
        total = np.bincount(coarse[i][:n], known)
        # Weights are divided first, so that sums cannot overflow.
        parts = np.divide(known, total[coarse[i][:n]], out=np.zeros(n), where=known > 0)
        mean = np.bincount(coarse[i][:n], parts * np.where(is_known, typical, 0.0))
        found.append(np.where(total > 0, mean, np.nan))
    return found


def coarse_encoder(encoder: TableEncoder, coarse: list[IntArray], typical: list[FloatArray | None]) -> TableEncoder:
    """Return the encoder for coarse values, with the mean training value of each coarse interval."""
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
    """Return a mask (n_features,) of the features whose values are merged."""
    none = np.zeros(data.n_features, np.bool_)
    if encoder is None:
        return none if data.is_ordered is None else data.is_ordered
    return ~encoder.is_discrete_ if isinstance(encoder.discretizer_, CutPointDiscretizer) else none
