"""Lazy predictions on Dask collections, one output block per input block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.dask.partitions import collection_kind
from tanlearn.dask.tree import delayed

__all__ = ["apply_lazily"]


def apply_lazily(model: Any, method: str, X: Any) -> Any:
    """Return the lazy result of a prediction method for each block of a Dask collection.

    For a DataFrame, the result is a Series of classes, or a DataFrame with one column per class, with the index of X.
    For an Array, it is an Array of shape (n_samples,) or (n_samples, n_classes). For a Bag of rows, it is a Bag of
    classes or of lists of numbers. The model is sent to each worker once.
    """
    sent, classes = delayed(model, traverse=False), model.classes_
    if collection_kind(X) == "frame":
        return X.map_partitions(_of_frame, sent, method, meta=_as_pandas(_blank(classes, method), classes, None))
    if collection_kind(X) == "array":
        import dask.array as da

        values = X.rechunk({1: -1})
        blank = _blank(classes, method)
        if blank.ndim == 1:
            return da.map_blocks(_of_array, values, sent, method, drop_axis=1, dtype=blank.dtype, meta=blank)
        chunks = values.chunks[0], (len(classes),)
        return da.map_blocks(_of_array, values, sent, method, chunks=chunks, dtype=blank.dtype, meta=blank)
    return X.map_partitions(_of_bag, sent, method)


def _blank(classes: AnyArray, method: str) -> AnyArray:
    """Return an empty array, as a prediction method would for a block without rows."""
    return np.empty(0, classes.dtype) if method == "predict" else np.empty((0, len(classes)))


def _of_array(block: Any, model: Any, method: str) -> AnyArray:
    """Predict the rows of a block."""
    found: AnyArray = getattr(model, method)(block) if len(block) else _blank(model.classes_, method)
    return found


def _of_frame(frame: Any, model: Any, method: str) -> Any:
    """Predict the rows of a partition of a DataFrame."""
    return _as_pandas(_of_array(frame, model, method), model.classes_, frame.index)


def _of_bag(rows: Any, model: Any, method: str) -> list[Any]:
    """Predict the rows of a partition of a Bag."""
    found: list[Any] = _of_array(list(rows), model, method).tolist()
    return found


def _as_pandas(values: AnyArray, classes: AnyArray, index: Any) -> Any:
    """Return predictions as a Series or DataFrame with a dtype that does not depend on the rows."""
    import pandas as pd

    if values.ndim == 1:
        return pd.Series(values, index=index, dtype=pd.Series(classes).dtype)
    return pd.DataFrame(values, index=index, columns=classes)
