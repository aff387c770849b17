"""Conversion of Arrow arrays to columns without creating a Python object per row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn.sources.columns import from_array, from_objects, temporal_error
from tanlearn.sources.table import Column, Table

__all__ = ["read_array", "read_record_batch"]

# Types are compared by name, because older pyarrow releases do not define the view types.
_STRING_TYPES = frozenset(
    ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary")
)


def read_record_batch(
    batch: Any, string_columns: Collection[Any] = (), ignored: NDArray[np.bool_] | None = None
) -> Table:
    """Convert a non-empty record batch to a ``Table``, column by column.

    ``string_columns`` names columns whose dictionaries the reader created from plain strings, so that they declare no
    categories. ``ignored`` (n_samples,) is True for rows whose values are not used.
    """
    named = zip(batch.schema.names, batch.columns, strict=True)
    return Table(
        [
            read_array(array, f"X column {name!r}", is_declared=name not in string_columns, ignored=ignored)
            for name, array in named
        ]
    )


def read_array(array: Any, label: str, *, is_declared: bool = True, ignored: NDArray[np.bool_] | None = None) -> Column:
    """Convert an Arrow array to a column: numbers without nulls without a copy, strings by dictionary encoding.

    A dictionary declares categories, because pandas and polars write their ``category`` and ``Enum`` types that way.
    Pass ``is_declared=False`` if a reader has dictionary-encoded plain strings. ``label`` is the column's name in
    messages; ``ignored`` (n_samples,) is True for rows whose values are not used.
    """
    import pyarrow as pa

    types, dtype = pa.types, array.type
    if isinstance(array, pa.ExtensionArray):
        return read_array(array.storage, label, is_declared=is_declared, ignored=ignored)
    if types.is_dictionary(dtype):
        return _from_dictionary(array, label, is_declared)
    if _is_string(dtype):
        return _from_dictionary(array.dictionary_encode(), label, is_declared=False)
    if types.is_floating(dtype):
        return from_array(array.to_numpy(zero_copy_only=False), label, ignored=ignored)
    if types.is_integer(dtype) or types.is_boolean(dtype):
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        plain = array if missing is None else array.fill_null(0 if types.is_integer(dtype) else False)
        return Column(plain.to_numpy(zero_copy_only=False), missing, None, label)
    if types.is_decimal(dtype):  # Arrow's cast rounds differently from Python's float()
        return from_objects(array.to_numpy(zero_copy_only=False), label, ignored)
    if types.is_null(dtype):
        return Column(np.full(len(array), None), np.ones(len(array), np.bool_), None, label)
    if types.is_temporal(dtype):
        raise temporal_error(label, dtype)
    raise TypeError(
        f"{label} has the Arrow type {dtype}, but only strings, numbers and booleans can be read. Cast the column to "
        f"string if it is categorical, to float64 if it is continuous, or leave it out."
    )


def _is_string(dtype: Any) -> bool:
    """Return whether an Arrow type stores strings or bytes."""
    return str(dtype).partition("[")[0] in _STRING_TYPES


def _from_dictionary(array: Any, label: str, is_declared: bool) -> Column:
    """Convert a dictionary array to a column; dictionaries with duplicate or null values are normalized first."""
    from pyarrow import types

    if not is_declared and len(array.dictionary) > len(array):  # the dictionary covers a whole row group
        array = array.dictionary_decode().dictionary_encode()
    codes, dictionary = _filled(array.indices), array.dictionary
    if types.is_nested(dictionary.type):
        raise TypeError(f"{label} has nested categories ({dictionary.type}). Leave the column out.")
    if dictionary.null_count or len(dictionary.unique()) < len(dictionary):
        encoded = dictionary.dictionary_encode()
        codes = np.append(_filled(encoded.indices), -1)[codes]  # index -1 selects the appended -1
        dictionary = encoded.dictionary
    if any(is_such(dictionary.type) for is_such in (_is_string, types.is_integer, types.is_floating, types.is_boolean)):
        categories = dictionary.to_numpy(zero_copy_only=False)
    else:
        categories = np.empty(len(dictionary), object)
        categories[:] = dictionary.to_pylist()
    if categories.dtype.kind == "f" and np.isnan(categories).any():  # NaN means missing
        kept = ~np.isnan(categories)
        codes = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)[codes]
        categories = categories[kept]
    return Column(codes, codes < 0, categories, label, is_declared, is_ordered=is_declared and bool(array.type.ordered))


def _filled(indices: Any) -> Any:
    """Return dictionary indices as an integer array, with -1 for null."""
    import pyarrow as pa

    plain = indices.cast(pa.int32()).fill_null(-1) if indices.null_count else indices
    return plain.to_numpy(zero_copy_only=False)
