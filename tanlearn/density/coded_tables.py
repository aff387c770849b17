"""Encoding of rows without classes, for estimators that are fitted without ``y``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tanlearn.density.latent_classes import CodedRows
from tanlearn.encoding.weights import WeightSums, warn_of_weights
from tanlearn.estimators.estimator_input import new_encoder
from tanlearn.sources.columns import read_columns
from tanlearn.sources.frames import native_frame
from tanlearn.sources.table import Table
from tanlearn.sources.validation import read_weights, zero_weight_rows

__all__ = ["encode_table"]


def encode_table(estimator: Any, X: Any, sample_weight: Any = None) -> tuple[CodedRows, Table]:
    """Validate and encode the arguments of ``fit``, and set ``encoder_`` and the column names.

    Rows of weight 0 are dropped first. Raises ValueError for an encoder with cut points or missing values that depend
    on classes.
    """
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    validate_data(estimator, native_frame(X), skip_check_array=True)
    weights = read_weights(sample_weight, columns.n_samples)
    if weights is not None and not weights.all():
        columns, weights = columns.take(weights > 0), weights[weights > 0]
    if weights is not None:
        warn_of_weights(WeightSums().update(weights, len(weights)))
    encoder = new_encoder(estimator)
    if getattr(encoder.discretizer, "uses_classes", False):
        raise ValueError(
            f"cut points must not depend on classes, because {type(estimator).__name__} is fitted without classes, "
            f"got encoder={estimator.encoder!r}. Pass TableEncoder(discretizer=QuantileDiscretizer(max_bins=12))."
        )
    if encoder.handle_missing not in (None, "marginalize"):
        raise ValueError(
            f"encoder must not have handle_missing={encoder.handle_missing!r}, which makes missing values a "
            f"category, because {type(estimator).__name__} treats them as unknown values. Leave handle_missing out."
        )
    names = getattr(estimator, "feature_names_in_", None)
    codes = encoder.fit_columns(columns, np.zeros(columns.n_samples, np.intp), weights, names=names)
    estimator.encoder_ = encoder
    return CodedRows(codes, encoder.n_states_, ~encoder.is_discrete_, names, weights), columns
