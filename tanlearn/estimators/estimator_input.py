"""Validation and encoding of data, classes and weights that are passed to estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.encoding.column_kinds import find_all_categories, have_order
from tanlearn.encoding.column_warnings import (
    warn_of_new_categories,
    warn_of_new_missing_values,
    warn_of_numbers_outside,
)
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.leakage import warn_of_leaking_columns
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.novelty import Novelty, find_novelty
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.raw_numbers import raw_numbers
from tanlearn.encoding.splits import hold_out
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.encoding.weights import WeightSums, own_weights, warn_of_weights, weigh_classes
from tanlearn.sources.columns import read_columns
from tanlearn.sources.frames import check_names, native_frame, warn_of_row_order
from tanlearn.sources.table import Table
from tanlearn.sources.validation import present_rows, read_classes, read_weights, zero_weight_rows

__all__ = [
    "delete_fitted_attributes",
    "encode_batch",
    "encode_new_rows",
    "encode_partly_labeled",
    "encode_rows",
    "encode_training",
    "generator",
    "new_encoder",
    "read_rows",
]


def encode_training(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, validation_fraction: float | None = None
) -> tuple[EncodedData, EncodedData | None]:
    """Validate and encode the arguments of ``fit``. Return the training data, and the held-out data or None.

    Sets ``encoder_``, ``classes_``, ``n_features_in_`` and, for data with column names, ``feature_names_in_`` on the
    estimator. Rows of weight 0 are dropped first, as if they were absent. ``estimator.encoder`` is cloned. Weights are
    multiplied by ``estimator.class_weight``. If ``validation_fraction`` is set, a stratified fraction of the rows is
    held out at random, with ``estimator.random_state``. Categories and cut points do not depend on the held-out rows.
    """
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    validate_data(estimator, native_frame(X), y, skip_check_array=True)
    columns, codes, classes, weights, numbers = present_rows(columns, y, sample_weight)
    warn_of_row_order(X, y)
    multiplied = weigh_classes(estimator.class_weight, codes, classes, weights)
    if weights is not None:
        warn_of_weights(WeightSums().update(weights, len(weights)), weights, codes)
    estimator._n_rows = columns.n_samples
    estimator.classes_ = classes
    encoder = estimator.encoder_ = new_encoder(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    held_out = None
    if validation_fraction is None:
        table = encoder.fit_columns(columns, codes, weights, names=names)
    else:
        held_out = hold_out(codes, len(classes), validation_fraction, generator(estimator.random_state))
        rest = ~held_out
        rest_weights = None if weights is None else weights[rest]
        encoder.fit_columns(columns.take(rest), codes[rest], rest_weights, names=names)
        table = encoder.encode_columns(columns, handle_unknown="missing")
    if names is not None:  # columns of arrays are often selected on purpose, but have no names for a message
        warn_of_leaking_columns(columns, encoder.n_states_, classes, codes)
    data = _encoded(estimator, table, columns, codes, weights, multiplied, numbers)
    return (data, None) if held_out is None else (data.take(~held_out), data.take(held_out))


def encode_partly_labeled(
    estimator: Any, X: Any, y: AnyArray, is_unlabeled: AnyArray, sample_weight: Any = None
) -> tuple[EncodedData, EncodedData]:
    """Validate and encode labeled and unlabeled rows. Return the labeled rows, and the unlabeled rows with class 0.

    Categories and cut points are fitted to all rows, without classes. By default, numeric columns are discretized to
    five intervals with equally many rows. Sets the attributes of :func:`encode_training`. Raises ``ValueError`` for an
    encoder that depends on classes. Shapes: y and is_unlabeled: (n_samples,).
    """
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    validate_data(estimator, native_frame(X), y, skip_check_array=True)
    weights = read_weights(sample_weight, columns.n_samples)
    numbers = np.arange(columns.n_samples)
    if weights is not None and not weights.all():
        numbers = np.flatnonzero(weights)
        columns, weights = columns.take(weights > 0), weights[numbers]
        y, is_unlabeled = y[numbers], is_unlabeled[numbers]
    codes = np.zeros(len(y), np.intp)
    codes[~is_unlabeled], estimator.classes_ = read_classes(y[~is_unlabeled], int((~is_unlabeled).sum()))
    if weights is not None:
        warn_of_weights(WeightSums().update(weights, len(weights)))
    encoder = new_encoder(estimator)
    if estimator.encoder is None or estimator.encoder.discretizer is None:
        encoder.discretizer = QuantileDiscretizer(max_bins=5, n_jobs=estimator.n_jobs)
    if getattr(encoder.discretizer, "uses_classes", False) or encoder.handle_missing == "auto":
        raise ValueError(
            f"encoder={encoder!r} depends on classes, but {is_unlabeled.sum()} row(s) have none. Pass "
            f"TableEncoder(discretizer=QuantileDiscretizer(max_bins=5)), or leave encoder out."
        )
    estimator._n_rows = len(y)
    estimator.encoder_ = encoder
    table = encoder.fit_columns(columns, codes, weights, names=getattr(estimator, "feature_names_in_", None))
    data = _encoded(estimator, table, columns, codes, weights, weights, numbers)
    return data.take(~is_unlabeled), data.take(is_unlabeled)


def encode_batch(estimator: Any, X: Any, y: Any, classes: AnyArray, sample_weight: Any = None) -> EncodedData:
    """Validate and encode one batch of ``partial_fit``. The encoder is fitted to the first batch.

    ``classes`` (n_classes,) contains all classes in sorted order. Rows of weight 0 are dropped, and cut points do not
    depend on class weights. Raises ``ValueError`` if the first batch contains only one class, but a column needs
    supervised cut points. Warns if a later batch contains new categories.
    """
    is_first = not hasattr(estimator, "encoder_")
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    if is_first:
        validate_data(estimator, native_frame(X), y, skip_check_array=True)
    else:
        check_names(estimator, X)
    columns, codes, _, weights, numbers = present_rows(columns, y, sample_weight, classes)
    multiplied = weigh_classes(estimator.class_weight, codes, classes, weights)
    if is_first:
        encoder = new_encoder(estimator)
        if (codes == codes[0]).all():
            _refuse_supervised_cut_points(estimator, encoder, columns, classes.tolist()[codes[0]])
        if weights is not None:
            warn_of_weights(WeightSums().update(weights, len(weights)), weights, codes)
        estimator._n_rows = columns.n_samples
        estimator.classes_ = classes
        estimator.encoder_ = encoder
        table = encoder.fit_columns(columns, codes, weights, names=getattr(estimator, "feature_names_in_", None))
    else:
        if hasattr(estimator, "_n_rows"):
            estimator._n_rows += columns.n_samples
        vars(estimator).pop("metadata_", None)  # metadata of a file, which refers to fewer rows
        table = estimator.encoder_.encode_columns(columns)
        warn_of_new_categories(columns, estimator.encoder_.categories_, table)
        warn_of_new_missing_values(estimator.encoder_, columns)
        estimator.encoder_ = estimator.encoder_.with_ranges_of(columns)
    data = _encoded(estimator, table, columns, codes, weights, multiplied, numbers)
    return replace(data, device=estimator.device)


def _refuse_supervised_cut_points(estimator: Any, encoder: TableEncoder, columns: Table, label: Any) -> None:
    """Raise ValueError if a first batch of a single class has a column that needs supervised cut points."""
    encoder._validate_params()
    if not (encoder.discretizer is None or isinstance(encoder.discretizer, MDLPDiscretizer)):
        return
    names = getattr(estimator, "feature_names_in_", None)
    categories = find_all_categories(encoder.discrete_features, columns, names, estimator.n_jobs)
    found = [columns[i].label for i, known in enumerate(categories) if known is None]
    if found:
        shown = ", ".join(found[:3]) + (f" and {len(found) - 3:,} more" if len(found) > 3 else "")
        raise ValueError(
            f"the first batch must have several classes, because cut points of numeric columns depend on the classes "
            f"({shown}), but all of its {columns.n_samples:,} row(s) have the class {label!r}. Start with a larger "
            f"batch of several classes; discretize a larger batch without classes, "
            f"encoder=TableEncoder(discretizer=QuantileDiscretizer()); declare the columns categorical, "
            f"TableEncoder(discrete_features=...); or count earlier rows first, "
            f"from_counts(TableCounts.of_source(...))."
        )


def new_encoder(estimator: Any) -> TableEncoder:
    """Return an unfitted encoder: a clone of the user's encoder, or the default with the estimator's ``n_jobs``."""
    encoder: TableEncoder = (
        TableEncoder(n_jobs=estimator.n_jobs) if estimator.encoder is None else clone(estimator.encoder)
    )
    if encoder.discretizer is None:
        encoder.discretizer = estimator._default_discretizer()
    if encoder.handle_missing is None:
        encoder.handle_missing = estimator._default_handle_missing
    return encoder


def _encoded(
    estimator: Any,
    table: Codes,
    columns: Table,
    y: IntArray,
    base_weights: AnyArray | None,
    weights: AnyArray | None,
    numbers: IntArray,
) -> EncodedData:
    """Encode rows. Return them with their weights before and after multiplication by class weights."""
    encoder = estimator.encoder_
    rows = table, encoder.n_states_, y, len(estimator.classes_), weights, columns.labels, numbers
    return EncodedData(
        *rows,
        names=getattr(estimator, "feature_names_in_", None),
        is_ordered=have_order(encoder, columns),
        base_weight=own_weights(base_weights, weights),
        raw=raw_numbers(encoder, columns),
        has_missing_category=encoder.has_missing_category_,
    )


def delete_fitted_attributes(estimator: Any) -> None:
    """Delete the attributes of an earlier fit, so that a failed fit does not mix attributes of two models."""
    for attribute in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, attribute)
    for name in ("_was_loaded", "_notation", "_n_rows", "_prior_offset", "_is_monotone"):
        vars(estimator).pop(name, None)


def generator(random_state: Any) -> np.random.Generator:
    """Convert scikit-learn's ``random_state`` to a NumPy Generator. The same int gives the same Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def encode_rows(estimator: Any, X: Any) -> Codes:
    """Validate and encode the argument of ``predict``. Return codes (n_features, n_samples)."""
    columns = read_rows(estimator, X)  # raises NotFittedError without an encoder
    codes: Codes = estimator.encoder_.encode_columns(columns)
    warn_of_numbers_outside(columns, estimator.encoder_.value_ranges_)
    return codes


def encode_new_rows(estimator: Any, X: Any) -> tuple[Codes, Novelty]:
    """Encode rows as in :func:`encode_rows`, and find values that did not occur in training."""
    columns = read_rows(estimator, X)
    codes = estimator.encoder_.encode_columns(columns)
    return codes, find_novelty(estimator.encoder_, columns, codes)


def read_rows(estimator: Any, X: Any) -> Table:
    """Return the columns of X. Raise ValueError if their names or number differ from ``fit``."""
    check_is_fitted(estimator)
    columns = read_columns(X, n_jobs=estimator.n_jobs)
    # The names need not be compared in this case. A comparison takes a third of the time to predict a single row.
    is_nameless = type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_")
    if not is_nameless or len(columns) != estimator.n_features_in_:
        check_names(estimator, X)
    return columns
