"""Conversion of a column summary to JSON values and arrays, and back with validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.encoding.column_summaries import ColumnSummary
from tanlearn.encoding.value_counts import Block, ValueCounts
from tanlearn.sources.table import shorten

__all__ = ["from_state", "to_state"]

_KINDS = ("nothing", "numbers", "strings", "bytes", "declared")


def to_state(column: ColumnSummary, name: str, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    """Return the JSON part of a summary, and add its arrays to ``arrays`` in place, with keys prefixed by ``name``.

    Raises ``TypeError`` if a declared category is neither a string nor bytes nor a number.
    """
    for part, counts in enumerate([column.counts, *(block.counts for block in column.blocks)]):
        if counts.values.dtype.kind in "OUS":  # empty
            counts = counts._replace(values=np.empty(0))
        arrays |= {f"{name}_{part}_{field}": values for field, values in counts._asdict().items()}
    if column.n_rows is not None:
        arrays[f"{name}_rows"] = column.n_rows
    is_text = column.kind == "nothing" and column.counts.values.dtype.kind in "OUS"
    names = None
    if column.names is not None:
        names = [column.names.dtype.str, [_to_json(value, column.label) for value in column.names.tolist()]]
    return {
        "place": column.label,
        "kind": column.kind,
        "is_text": is_text,
        "names": names,
        "is_ordered": column.is_ordered,
        "blocks": [[block.level, block.under, block.over] for block in column.blocks],
        **({} if column.bounds is None else {"bounds": list(column.bounds)}),
    }


def from_state(state: dict[str, Any], name: str, arrays: dict[str, AnyArray], n_classes: int) -> ColumnSummary:
    """Rebuild a summary from the output of :func:`to_state`; raise ValueError for inconsistent content."""
    label, kind, is_ordered = state["place"], state["kind"], state["is_ordered"]
    names = None if state["names"] is None else _read_names(*state["names"])
    if not isinstance(label, str) or kind not in _KINDS or not isinstance(is_ordered, bool):
        raise ValueError("a column has no name or no kind")
    if (names is None) != (kind in ("nothing", "numbers")) or (state["blocks"] and kind != "numbers"):
        raise ValueError(f"{label} holds {kind}, but has fields of another kind")
    parts = [
        ValueCounts(*(arrays[f"{name}_{part}_{field}"] for field in ValueCounts._fields))
        for part in range(1 + len(state["blocks"]))
    ]
    for counts in parts:
        _check_counts(counts, label, n_classes)
    own, *others = parts
    if names is not None:
        values, is_known = own.values, kind == "declared" or sorted(set(names.tolist())) == names.tolist()
        if not is_known or values.dtype.kind != "i" or (len(values) and not 0 <= values[0] <= values[-1] < len(names)):
            raise ValueError(f"{label} has categories that do not match its counts")
    if (kind == "nothing" and len(own.values)) or (kind == "numbers" and not sum(len(c.values) for c in parts)):
        raise ValueError(f"{label} holds {kind}, but counts {len(own.values)} pairs")
    if state["is_text"]:
        own = own._replace(values=np.empty(0, object))
    blocks: list[Block] = []
    for (level, under, over), counts in zip(state["blocks"], others, strict=True):
        is_later = type(level) is int and level > (blocks[-1].level if blocks else -1)
        if not is_later or not (0 <= under < np.inf and 0 <= over < np.inf) or not len(counts.values):
            raise ValueError(f"{label} has a block without a level or a bound")
        blocks.append(Block(level, counts, under, over))
    n_rows = arrays.get(f"{name}_rows")  # absent in files of earlier versions
    if n_rows is not None and (names is None or n_rows.dtype != np.int64 or n_rows.shape != names.shape):
        raise ValueError(f"{label} has row counts of an invalid type or shape")
    if n_rows is not None and len(n_rows) and not n_rows.min() > 0:
        raise ValueError(f"{label} has strings without rows")
    bounds = _read_bounds(state.get("bounds"), label)
    return ColumnSummary(label, kind, own, names, is_ordered, n_rows, tuple(blocks), bounds)


def _read_bounds(bounds: Any, label: str) -> tuple[float, float] | None:
    """Validate the smallest and largest value of a column, which earlier versions did not store."""
    if bounds is None:
        return None
    if (
        type(bounds) is not list
        or list(map(type, bounds)) != [float, float]
        or not -np.inf < bounds[0] <= bounds[1] < np.inf
    ):
        raise ValueError(f"{label} has bounds that are not two increasing numbers")
    return bounds[0], bounds[1]


def _to_json(value: Any, label: str) -> Any:
    """Return a category as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, str | int | float):
        return value
    raise TypeError(
        f"{label} declares the category {shorten(value)} of type {type(value).__name__}, but only strings, bytes and "
        f"numbers can be stored. Cast the column to str."
    )


def _read_names(dtype: str, values: list[Any]) -> AnyArray:
    """Return stored names as an array of a dtype, validated."""
    known = [value["bytes"].encode("latin-1") if isinstance(value, dict) else value for value in values]
    if not all(isinstance(value, str | bytes | int | float) for value in known) or np.dtype(dtype).kind not in "Obiuf":
        raise ValueError("a category is neither a string nor a number")
    return np.array(known, dtype=dtype)


def _check_counts(counts: ValueCounts, label: str, n_classes: int) -> None:
    """Raise ValueError unless the arrays are increasing pairs of value and class with positive weights."""
    values, classes, weights = counts
    if not values.ndim == 1 or not values.shape == classes.shape == weights.shape:
        raise ValueError(f"{label} has counts of inconsistent shapes")
    if values.dtype.kind not in "biuf" or classes.dtype != np.int32 or weights.dtype not in (np.int64, np.float64):
        raise ValueError(f"{label} has counts of invalid types")
    same, less = values[1:] == values[:-1], values[1:] > values[:-1]
    if not (less | (same & (classes[1:] > classes[:-1]))).all() or not np.isfinite(values).all():
        raise ValueError(f"{label} has values that do not increase")
    if len(classes) and not 0 <= classes.min() <= classes.max() < n_classes:
        raise ValueError(f"{label} has a class that does not exist")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"{label} has weights that are not positive and finite")
