"""Partitions of Dask collections as a source of rows for learners based on counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score

from tanlearn.dask.encoded import EncodedPartitions
from tanlearn.dask.parts import Part
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.encoding.summaries import TableSummary
from tanlearn.estimators.row_sources import BatchSource, RowEncoder
from tanlearn.sources.batches import located
from tanlearn.sources.source_schema import SourceSchema
from tanlearn.sources.table import shorten
from tanlearn.sources.validation import check_total, read_labels, row_weights

__all__ = ["Partitions", "collection_kind"]


def collection_kind(values: Any) -> str | None:
    """Return the kind of a Dask collection, "array", "frame" or "bag", or None for other objects."""
    if not hasattr(values, "__dask_graph__"):
        return None
    kinds = {"array": "rechunk", "frame": "divisions", "bag": "starmap"}
    # The type is inspected, because an object of type Delayed returns a value for any attribute.
    return next((kind for kind, method in kinds.items() if hasattr(type(values), method)), None)


class Partitions:
    """Source that reads rows, classes and weights partition by partition.

    If ``y`` is given, the items of a Bag are rows (lists of equal length). Otherwise, each item is a batch, that is, a
    tuple (X, y) or (X, y, sample_weight). ``y`` and ``sample_weight`` have the same partitions as ``X``, or are names
    of columns of ``X``. ``columns`` lists the features of a DataFrame. By default, these are all columns except ``y``
    and ``sample_weight``. Raises ImportError if Dask is not installed, TypeError for unsupported types, and ValueError
    for unknown columns or partitions that do not match.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, columns: Any = None) -> None:
        self.names: tuple[str, ...] | None = None  # column names, set by summarize()
        self._n_samples: tuple[int, ...] = ()
        if y is None and sample_weight is not None and collection_kind(X) == "bag":
            raise TypeError(
                "sample_weight needs y. Pass y, or leave both out and use a Bag of tuples (X, y, sample_weight)."
            )
        named = [name for name in (y, sample_weight) if isinstance(name, str)]
        if named or columns is not None:
            X = _select(X, named, columns)
        rows = _partitions("X", X)
        others = [_beside(name, given, X, len(rows)) for name, given in (("y", y), ("sample_weight", sample_weight))]
        self._parts = [Part(k, *given) for k, given in enumerate(zip(rows, *others, strict=True))]

    def summarize(self, exact: bool) -> TableSummary:
        """Return the merged summaries of all partitions.

        If a partition is invalid or its columns differ, raises ValueError or TypeError with the number of the
        partition.
        """
        found = compute(merged([delayed(_summarize)(part, exact) for part in self._parts]))
        if found.n_rows == 0:
            raise ValueError("all partitions are empty, but fit needs rows. Pass a collection with rows.")
        if found.summary.n_samples == 0:
            check_total(0, found.n_rows)
        self.names, self._n_samples = found.names, found.n_samples
        summary: TableSummary = found.summary
        return summary

    def encoded(self, encoder: RowEncoder) -> EncodedPartitions:
        """Return the encoded rows of all partitions that contain rows of nonzero weight."""
        filled = [(part, n) for part, n in zip(self._parts, self._n_samples, strict=True) if n]
        return EncodedPartitions([part for part, _ in filled], [n for _, n in filled], encoder)

    def score(self, model: Any) -> float:
        """Return the weighted accuracy of a model. Raises ValueError if no row has positive weight."""
        sent = delayed(model, traverse=False)
        found = compute(merged([delayed(_score)(part, sent) for part in self._parts]))
        if not found.weight > 0:
            raise ValueError("score needs rows of positive weight. Pass rows with positive weights.")
        return float(found.correct / found.weight)


@dataclass
class _Found(Weighed):
    """Summary of some consecutive partitions."""

    summary: TableSummary
    schema: SourceSchema
    names: tuple[str, ...] | None
    n_samples: tuple[int, ...]
    n_rows: int

    def merge(self, other: _Found) -> Self:
        """Add the summary of the following partitions in place."""
        self.schema.merge(other.schema)
        self.summary.merge(other.summary)
        self.names = other.names if self.names is None else self.names
        self.n_samples += other.n_samples
        self.n_rows += other.n_rows
        return self


@dataclass
class _Correct:
    """Weight of the correctly predicted rows, and of all rows."""

    correct: float
    weight: float

    def merge(self, other: _Correct) -> Self:
        """Add the weights of other rows in place."""
        self.correct += other.correct
        self.weight += other.weight
        return self


def _score(part: Part, model: Any) -> _Correct:
    """Predict the classes of the rows of a partition, and compare them with the true classes."""
    total = _Correct(0.0, 0.0)
    for X, y, *weights in part.tuples():
        if len(X):
            with located(f"partition {part.number}"):
                labels = read_labels(y, len(X))
                weight = row_weights(weights[0] if weights else 1, len(X))
                if weight.any():
                    found = accuracy_score(labels, model.predict(X), normalize=False, sample_weight=weight)
                    total = total.merge(_Correct(float(found), float(weight.sum())))
    return total


def _summarize(part: Part, exact: bool) -> _Found:
    """Read and summarize a partition."""
    batches = part.open()
    summary = BatchSource(batches).summarize(exact)
    return _Found(summary, batches.schema, batches.names, (summary.n_samples,), batches.n_samples or 0)


def _select(X: Any, named: list[str], columns: Any) -> Any:
    """Return the columns of a DataFrame that contain features, classes or weights."""
    if collection_kind(X) != "frame":
        raise TypeError(
            f"y, sample_weight and columns can be column names only if X is a DataFrame, got {_described(X)}."
        )
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}. Pass a list.")
    known = Counter(X.columns)
    features = [name for name in known if name not in named] if columns is None else list(columns)
    chosen = [*named, *features]
    for name in chosen:
        if known[name] != 1:
            found = "several columns are" if known[name] else "no column is"
            raise ValueError(f"{found} called {name!r}. The columns are: {', '.join(map(repr, X.columns))}.")
    if len(set(chosen)) < len(chosen):
        name = Counter(chosen).most_common(1)[0][0]
        raise ValueError(f"{name!r} occurs twice among y, sample_weight and columns. Use each column once.")
    # Without ``columns``, nothing is selected here. If a partition lacked a column, the error of pandas would not name
    # the partition.
    return X if columns is None else X[[*features, *named]]


def _partitions(name: str, collection: Any) -> list[Any]:
    """Return one task per partition."""
    kind = collection_kind(collection)
    if kind is None:
        raise TypeError(
            f"{name} must be a Dask collection like X, got {_described(collection)}. Convert it, for example with "
            f"dask.array.from_array(values, chunks=X.chunks[0])."
        )
    if kind == "array" and collection.ndim == 2:
        collection = collection.rechunk({1: -1})  # all columns in one chunk
    tasks = list(np.ravel(collection.to_delayed()))
    # If few columns are used, as for y but not for X, an optimized task may read several Parquet files at once.
    if kind == "frame" and len(tasks) != collection.npartitions:
        tasks = collection.simplify().to_delayed(optimize_graph=False)
    return tasks


def _beside(name: str, given: Any, X: Any, n_partitions: int) -> list[Any]:
    """Check that classes or weights match X, and return one task per partition. Return a name or None unchanged."""
    if given is None or isinstance(given, str):
        if name == "y" and given is None and collection_kind(X) != "bag":
            raise TypeError(f"y must be a collection like X, or a column name, but is None, and X is {_described(X)}.")
        return [given] * n_partitions
    own, theirs = (one.chunks[0] if collection_kind(one) == "array" else (np.nan,) for one in (X, given))
    if own != theirs and not np.isnan([*own, *theirs]).any():
        if sum(own) != sum(theirs):
            raise ValueError(
                f"X has {sum(own):,} rows, but {name} has {sum(theirs):,}. Pass {name} for the same rows as X."
            )
        given = given.rechunk({0: own})
    tasks = _partitions(name, given)
    if len(tasks) != n_partitions:
        raise ValueError(
            f"{name} has {len(tasks)} partition(s), but X has {n_partitions}. Both need the same partitions. Select "
            f"both from one DataFrame, or use repartition (for arrays, rechunk)."
        )
    return tasks


def _described(value: Any) -> str:
    """Return a description of a value for messages."""
    if collection_kind(value) is not None:
        return {"array": "an Array", "frame": f"a {type(value).__name__}", "bag": "a Bag"}[str(collection_kind(value))]
    return f"{shorten(value)} of type {type(value).__name__}"
