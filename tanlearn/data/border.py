"""From a user's table, classes and weights to what learners learn from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.data.categories import warn_of_new_categories
from tanlearn.data.class_weights import own_weights, weigh_classes
from tanlearn.data.column_kinds import find_all_categories, have_order
from tanlearn.data.column_names import check_names
from tanlearn.data.column_notes import warn_of_string_columns
from tanlearn.data.columns import read_columns
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.novelty import Novelty, find_novelty
from tanlearn.data.other_frames import frame_of
from tanlearn.data.raw_numbers import raw_numbers
from tanlearn.data.row_checks import RowCheck
from tanlearn.data.splits import hold_out
from tanlearn.data.table import Table
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.data.validation import present_rows, zero_weight_rows
from tanlearn.data.weight_scale import WeightSums, warn_of_weights

__all__ = [
    "check_rows",
    "encode_chunk",
    "encode_new_rows",
    "encode_rows",
    "encode_training",
    "forget",
    "generator",
    "new_encoder",
]


def encode_training(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, validation_fraction: float | None = None
) -> tuple[EncodedData, EncodedData | None]:
    """Check what an estimator's ``fit`` was given, and encode it.

    Sets ``encoder_``, ``classes_``, ``n_features_in_`` and, if the table has names, ``feature_names_in_`` on the
    estimator. Rows of weight 0 are dropped before anything is learnt from them, exactly as if they were absent.

    Shapes: y: (n_samples,); sample_weight: (n_samples,).
    """
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    validate_data(estimator, frame_of(X), y, skip_check_array=True)
    columns, codes, classes, weights, numbers = present_rows(columns, y, sample_weight)
    multiplied = weigh_classes(estimator.class_weight, codes, classes, weights)
    if weights is not None:
        warn_of_weights(WeightSums().update(weights, len(weights)), weights, codes)
    warn_of_string_columns(columns, new_encoder(estimator).discrete_features)
    estimator.classes_ = classes
    held_out = None
    if validation_fraction is None:
        table = _fit_encoder(estimator, columns, codes, weights)
    else:
        held_out = hold_out(codes, len(classes), validation_fraction, generator(estimator.random_state))
        rest = ~held_out
        rest_weights = None if weights is None else weights[rest]
        _fit_encoder(estimator, columns.take(rest), codes[rest], rest_weights)
        table = estimator.encoder_.encode_columns(columns, handle_unknown="missing")
    data = _encoded(estimator, table, columns, codes, weights, multiplied, numbers)
    return (data, None) if held_out is None else (data.take(~held_out), data.take(held_out))


def encode_chunk(estimator: Any, X: Any, y: Any, classes: AnyArray, sample_weight: Any = None) -> EncodedData:
    """Check a chunk of rows that an estimator's ``partial_fit`` was given, and encode it as the first one decided.

    Shapes: y: (n_samples,); classes: (n_classes,); sample_weight: (n_samples,).
    """
    is_first = not hasattr(estimator, "encoder_")
    columns = read_columns(X, n_jobs=estimator.n_jobs, ignored=zero_weight_rows(sample_weight))
    if is_first:
        validate_data(estimator, frame_of(X), y, skip_check_array=True)
    else:
        check_names(estimator, X)
    columns, codes, _, weights, numbers = present_rows(columns, y, sample_weight, classes)
    multiplied = weigh_classes(estimator.class_weight, codes, classes, weights)
    if is_first:
        if (codes == codes[0]).all():
            _refuse_supervised_cut_points(estimator, columns, classes.tolist()[codes[0]])
        if weights is not None:
            warn_of_weights(WeightSums().update(weights, len(weights)), weights, codes)
        estimator.classes_ = classes
        warn_of_string_columns(columns, new_encoder(estimator).discrete_features)
        table = _fit_encoder(estimator, columns, codes, weights)
    else:
        table = estimator.encoder_.encode_columns(columns)
        warn_of_new_categories(columns, estimator.encoder_.categories_, table)
        estimator.encoder_ = estimator.encoder_.with_ranges_of(columns)
    data = _encoded(estimator, table, columns, codes, weights, multiplied, numbers)
    return replace(data, device=estimator.device)


def _refuse_supervised_cut_points(estimator: Any, columns: Table, label: Any) -> None:
    """Raise if a column of a chunk of one class needs cut points that are chosen by the classes."""
    encoder = new_encoder(estimator)
    encoder._validate_params()
    if not (encoder.discretizer is None or isinstance(encoder.discretizer, MDLPDiscretizer)):
        return
    names = getattr(estimator, "feature_names_in_", None)
    categories = find_all_categories(encoder.discrete_features, columns, names, estimator.n_jobs)
    found = [columns[i].place for i, known in enumerate(categories) if known is None]
    if found:
        shown = ", ".join(found[:3]) + (f" and {len(found) - 3:,} more" if len(found) > 3 else "")
        raise ValueError(
            f"the first chunk has {columns.n_samples:,} row(s) of one class only, {label!r}, but the cut points of "
            f"numeric columns are chosen by the classes: {shown}. Begin with a larger chunk of several classes; "
            f"discretize without classes, encoder=TableEncoder(discretizer=QuantileDiscretizer()), also with a larger "
            f"chunk; declare the columns categorical, TableEncoder(discrete_features=...); or count earlier rows "
            f"first, from_counts(TableCounts.of_source(...))."
        )


def new_encoder(estimator: Any) -> TableEncoder:
    """Return an unfitted encoder for an estimator: the user's, or one with its defaults."""
    encoder: TableEncoder = (
        TableEncoder(n_jobs=estimator.n_jobs) if estimator.encoder is None else clone(estimator.encoder)
    )
    if encoder.discretizer is None and hasattr(estimator, "_default_discretizer"):
        encoder.discretizer = estimator._default_discretizer()
    return encoder


def _fit_encoder(estimator: Any, columns: Table, y: IntArray, weights: AnyArray | None) -> Codes:
    """Set an estimator's ``encoder_``, fitted to columns that are read already, and return their codes."""
    estimator.encoder_ = new_encoder(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    codes: Codes = estimator.encoder_.fit_columns(columns, y, weights, names=names)
    return codes


def _encoded(
    estimator: Any,
    table: Codes,
    columns: Table,
    y: IntArray,
    base_weights: AnyArray | None,
    weights: AnyArray | None,
    numbers: IntArray,
) -> EncodedData:
    """Return encoded rows with their weights before and after class weights multiplied them."""
    encoder = estimator.encoder_
    rows = table, encoder.n_states_, y, len(estimator.classes_), weights, columns.places, numbers
    return EncodedData(
        *rows,
        names=getattr(estimator, "feature_names_in_", None),
        is_ordered=have_order(encoder.discrete_features, columns, encoder.categories_),
        base_weight=own_weights(base_weights, weights),
        raw=raw_numbers(columns, np.flatnonzero(~encoder.is_discrete_), encoder.discretizer_),
    )


def check_rows(estimator: Any, X: Any) -> RowCheck:
    """Count missing, unseen and out-of-range values in rows for an estimator."""
    columns = _read_rows(estimator, X)
    checked: RowCheck = estimator.encoder_.check_columns(columns)
    return checked


def forget(estimator: Any) -> None:
    """Delete what an earlier fit left, so that one that fails leaves no mixture of two models."""
    for learnt in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, learnt)
    for name in ("_was_loaded", "_notation"):
        vars(estimator).pop(name, None)


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator of what scikit-learn calls a random state; an int gives the same one each time."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def encode_rows(estimator: Any, X: Any) -> Codes:
    """Check what an estimator's ``predict`` was given, and encode it with the estimator's ``encoder_``.

    Shapes: result: (n_features, n_samples).
    """
    columns = _read_rows(estimator, X)  # raises if there is no encoder
    codes: Codes = estimator.encoder_.encode_columns(columns)
    return codes


def encode_new_rows(estimator: Any, X: Any) -> tuple[Codes, Novelty]:
    """Encode rows as :func:`encode_rows` does, and find the values that training did not contain.

    Shapes: result codes: (n_features, n_samples).
    """
    columns = _read_rows(estimator, X)
    codes = estimator.encoder_.encode_columns(columns)
    return codes, find_novelty(estimator.encoder_, columns, codes)


def _read_rows(estimator: Any, X: Any) -> Table:
    """Return the columns of a table, after comparing them with those of the training table."""
    check_is_fitted(estimator)
    columns = read_columns(X, n_jobs=estimator.n_jobs)
    # Names are all that is left to compare; of a single row that takes a third of the time of its prediction.
    is_nameless = type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_")
    if not is_nameless or len(columns) != estimator.n_features_in_:
        check_names(estimator, X)
    return columns
