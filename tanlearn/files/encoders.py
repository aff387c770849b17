"""Storage of fitted encoders in files: categories, cut points, column names and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.encoding.column_kinds import LARGEST_N_STATES
from tanlearn.encoding.cut_points import CutPointDiscretizer
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.stored_values import fields
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.files.archive import ExplainedError
from tanlearn.files.values import Reader, Writer

__all__ = [
    "column_label",
    "describe_table",
    "encoder_columns",
    "encoder_difference",
    "restore_encoder",
    "restore_table",
]

_CALLED = {"categories": "categories", "cut_points": "cut points"}
_QUANTILES = "QuantileDiscretizer"


def describe_table(
    writer: Writer, encoder: TableEncoder, classes: AnyArray | None, names: AnyArray | None, owner: str
) -> dict[str, Any]:
    """Return a fitted encoder, classes and column names as JSON, in the format of :mod:`tanlearn.files.models`.

    ``writer`` stores the arrays. Messages refer to the containing object as ``owner``. Raises ExplainedError if the
    encoder is not a class of tanlearn, or contains values that a file cannot store.

    Shapes: classes: (n_classes,), or None for a model without classes; names: (n_features,) or None.
    """
    discretizer = encoder.discretizer_
    columns = [
        {name: writer.encode(found, "encoder_", f"{name}_") for name, found in column.items()}
        for column in encoder_columns(encoder)
    ]
    return {
        "classes": writer.encode(classes, owner, "classes_"),
        "feature_names": None if names is None else names.tolist(),
        "encoder": {
            "parameters": writer.parameters(encoder, f"{owner}.encoder_"),
            "discretizer": None if discretizer is None else writer.parameters(discretizer, "encoder_.discretizer_"),
            **({"discretizer_class": _QUANTILES} if type(discretizer) is QuantileDiscretizer else {}),
            "columns": columns,
            **_describe_ranges(writer, encoder),
        },
    }


def restore_table(
    reader: Reader, classes: Any, names: Any, encoder: Any, *, has_classes: bool = True
) -> tuple[TableEncoder, Any]:
    """Restore and validate the encoder (with column names) and the classes from a result of :func:`describe_table`.

    If ``has_classes`` is false, the classes must be None.

    Values of the wrong type, shape or range raise ValueError.
    """
    restored = _restore_encoder(reader, encoder)
    labels = reader.decode(classes)
    if has_classes:
        _check_classes(labels)
    elif labels is not None:
        raise ValueError("classes of a model without classes must be null.")
    n_features = restored.n_features_in_
    if names is not None:
        if type(names) is not list or set(map(type, names)) != {str} or not len(names) == len({*names}) == n_features:
            raise ValueError(f"feature_names must be a list of {n_features} different strings.")
        restored.feature_names_in_ = np.array(names, dtype=object)
    return restored, labels


def encoder_columns(encoder: TableEncoder) -> list[dict[str, Any]]:
    """Return the fitted attributes of each column: ``categories``, or ``cut_points`` and ``typical_values``.

    Columns with a category for missing values also have ``has_missing_category``, true. Raises ExplainedError if the
    encoder or its discretizer is not a class of tanlearn, or if a category is not a string, a number or a boolean.
    """
    discretizer = encoder.discretizer_
    for part, known in ((encoder, [TableEncoder]), (discretizer, CUT_POINT_DISCRETIZERS)):
        if part is not None and type(part) not in known:
            raise ExplainedError(
                f"encoder_ uses {type(part).__name__}, but files can store only {known[0].__name__}. Fit with "
                f"{known[0].__name__}, or pickle the model."
            )
    columns, cuts = [], iter([] if discretizer is None else discretizer.cut_points_)
    for i, (categories, typical) in enumerate(zip(encoder.categories_, encoder.typical_values_, strict=True)):
        if categories is None:
            columns.append({"cut_points": next(cuts), "typical_values": typical})
        else:
            columns.append({"categories": _check_categories(i, categories)})
        if encoder.has_missing_category_[i]:
            columns[-1]["has_missing_category"] = True
    return columns


def restore_encoder(
    encoder: TableEncoder,
    discretizer: CutPointDiscretizer | None,
    columns: list[dict[str, Any]],
    value_ranges: list[tuple[float, float] | None] | None = None,
) -> TableEncoder:
    """Set the fitted attributes of an unfitted encoder from a result of :func:`encoder_columns`. Return the encoder.

    ``discretizer`` is unfitted, or None if there are no continuous columns. ``value_ranges`` contains the training
    range of each continuous column, or None if it is unknown. Invalid values raise ValueError.
    """
    categories: list[AnyArray | None] = []
    typical_values: list[AnyArray | None] = []
    cut_points = []
    with_missing = np.array(["has_missing_category" in column for column in columns])
    for i, stored in enumerate(columns):
        column = dict(stored)
        if column.pop("has_missing_category", True) is not True:
            raise ValueError(f"has_missing_category of column {i} must be true or absent.")
        if column.keys() == {"categories"}:
            categories.append(_check_categories(i, column["categories"]))
            typical_values.append(None)
        else:
            categories.append(None)
            cuts, typical = fields(column, "cut_points", "typical_values")
            cut_points.append(_check_cut_points(i, cuts))
            typical_values.append(_check_typical(i, typical, len(cut_points[-1]) + 1))
    if discretizer is not None:
        discretizer.restore(cut_points)
    restored = encoder.restore(categories, typical_values, discretizer, value_ranges, with_missing)
    if restored.n_states_.max() > LARGEST_N_STATES:
        raise ValueError(f"column {int(restored.n_states_.argmax())} has more than {LARGEST_N_STATES} states.")
    return restored


def column_label(encoder: TableEncoder, i: int) -> str:
    """Return the name of a column in messages, such as "X column 'town'"."""
    names = getattr(encoder, "feature_names_in_", None)
    return f"X column {i}" if names is None else f"X column {names[i]!r}"


def encoder_difference(one: TableEncoder, two: TableEncoder) -> str | None:
    """Describe the first difference between two encoders that affects codes. Return None if there is no difference.

    Typical values of intervals do not affect codes and are not compared.
    """
    if one.n_features_in_ != two.n_features_in_:
        return f"there are {one.n_features_in_} columns here and {two.n_features_in_} there"
    are_named = [hasattr(encoder, "feature_names_in_") for encoder in (one, two)]
    if are_named[0] != are_named[1]:
        return "columns have names " + ("here, and none there" if are_named[0] else "there, and none here")
    if one.categories_ is two.categories_:  # both from the same fit
        return None
    for i, pair in enumerate(zip(encoder_columns(one), encoder_columns(two), strict=True)):
        here, there = column_label(one, i), column_label(two, i)
        if here != there:
            return f"column {i} is {here} here and {there} there"
        found = _differing(*pair)
        if found is not None:
            return f"{here} {found}"
    return None


def _differing(one: dict[str, Any], two: dict[str, Any]) -> str | None:
    """Describe the difference between two fitted columns, or return None."""
    has_category = ["has_missing_category" in column for column in (one, two)]
    if has_category[0] != has_category[1]:
        return "has a category for missing values " + ("here, and none there" if has_category[0] else "there only")
    (what, here), (other, there) = (next(iter(column.items())) for column in (one, two))
    if what != other:
        return f"has {_CALLED[what]} here and {_CALLED[other]} there"
    pair = here.tolist(), there.tolist()
    if pair[0] == pair[1]:
        return None
    if what == "cut_points":
        if len(here) != len(there):
            return f"has {len(here)} cut point(s) here and {len(there)} there"
        low, high = next(cuts for cuts in zip(*pair, strict=True) if cuts[0] != cuts[1])
        return f"has the cut point {low!r} here and {high!r} there"
    for values, others, side, other_side in ((*pair, "here", "there"), (*pair[::-1], "there", "here")):
        known = set(others)
        alone = [value for value in values if value not in known]
        if alone:
            return f"has the category {alone[0]!r} {side}, which is unknown {other_side}"
    return "has its categories in another order there"


def _check_categories(column: int, categories: Any) -> AnyArray:
    """Return the categories of a column. Raise ValueError unless they are distinct strings or numbers."""
    if not isinstance(categories, np.ndarray) or categories.ndim != 1 or categories.dtype.kind not in "biufO":
        raise ValueError(f"the categories of column {column} must be an array of numbers or objects.")
    values = categories.tolist()
    strange = [v for v in values if type(v) not in (bool, int, float, str, bytes) and not isinstance(v, np.generic)]
    if strange:
        raise ExplainedError(
            f"column {column} has the category {strange[0]!r}, but files can store only strings and numbers. Cast "
            f"the categories to str, and fit again."
        )
    if len(set(values)) < len(values) or any(v != v for v in values) or len(values) > LARGEST_N_STATES:
        raise ValueError(f"column {column} must have at most {LARGEST_N_STATES} categories, which must be distinct.")
    return categories


def _check_cut_points(column: int, cut_points: Any) -> AnyArray:
    """Return the cut points of a column. Raise ValueError unless they are finite and increasing."""
    is_vector = isinstance(cut_points, np.ndarray) and cut_points.dtype == np.float64 and cut_points.ndim == 1
    if not is_vector or len(cut_points) >= LARGEST_N_STATES:
        raise ValueError(f"column {column} must have at most {LARGEST_N_STATES - 1} cut points of type float64.")
    if not np.isfinite(cut_points).all() or not (cut_points[:-1] < cut_points[1:]).all():
        raise ValueError(f"the cut points of column {column} must be finite and increasing.")
    return cut_points


def _check_typical(column: int, values: Any, n_states: int) -> AnyArray:
    """Return the typical values of the intervals of a column. Raise ValueError unless they are finite or nan."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (n_states,):
        raise ValueError(f"the typical values of column {column} must be a float64 array of length {n_states}.")
    if np.isinf(values).any():
        raise ValueError(f"the typical values of column {column} must be finite or nan.")
    return values


def _check_classes(classes: Any) -> AnyArray:
    """Return the classes. Raise ValueError unless they are sorted and distinct."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes must be an array of two or more classes.")
    if not all(low < high for low, high in zip(classes[:-1].tolist(), classes[1:].tolist(), strict=True)):
        raise ValueError("classes must be sorted and distinct.")
    return classes


def _describe_ranges(writer: Writer, encoder: TableEncoder) -> dict[str, Any]:
    """Return a dictionary with the training ranges as ``value_ranges``, or an empty one if no range is known."""
    ranges = encoder.value_ranges_
    if all(own is None for own in ranges):
        return {}
    return {
        "value_ranges": writer.encode([None if own is None else [*own] for own in ranges], "encoder_", "value_ranges_")
    }


def _check_ranges(ranges: Any, columns: list[dict[str, Any]]) -> list[tuple[float, float] | None]:
    """Return the training ranges, with a pair or None for each column.

    Raises ValueError unless each range is a (low, high) pair of a continuous column.
    """
    if type(ranges) is not list or len(ranges) != len(columns):
        raise ValueError(f"value_ranges must be a list of {len(columns)} ranges or nulls.")
    for i, (own, column) in enumerate(zip(ranges, columns, strict=True)):
        if own is None:
            continue
        is_pair = type(own) is list and list(map(type, own)) == [float, float] and "categories" not in column
        if not is_pair or not (-np.inf < own[0] <= own[1] < np.inf or (own[0] != own[0] and own[1] != own[1])):
            raise ValueError(f"the range of column {i} must be two finite numbers in increasing order.")
    return [None if own is None else (own[0], own[1]) for own in ranges]


def _restore_encoder(reader: Reader, description: Any) -> TableEncoder:
    """Restore the fitted encoder from its JSON description."""
    kind, ranges = None, None
    if type(description) is dict:
        kind = description.pop("discretizer_class", "MDLPDiscretizer")
        ranges = description.pop("value_ranges", None)
    parameters, discretizer, columns = fields(description, "parameters", "discretizer", "columns")
    encoder: TableEncoder = reader.restore("TableEncoder", parameters)
    if kind not in ("MDLPDiscretizer", _QUANTILES):
        raise ValueError(f"discretizer_class must be {_QUANTILES!r} or absent, got {kind!r}.")
    unfitted = None if discretizer is None else reader.restore(kind, discretizer)
    if type(columns) is not list or not columns:
        raise ValueError("columns must be a nonempty list.")
    known = [{name: reader.decode(value) for name, value in column.items()} for column in columns]
    if (unfitted is None) is not all("categories" in column for column in known):
        raise ValueError("discretizer must be set if columns have cut points, and null otherwise.")
    return restore_encoder(
        encoder, unfitted, known, None if ranges is None else _check_ranges(reader.decode(ranges), known)
    )
