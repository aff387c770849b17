"""The partitions of Dask's collections, as rows that learners of counts read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score

from tanlearn.dask.encoded import EncodedPartitions
from tanlearn.dask.parts import Part
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.data.batches import located
from tanlearn.data.columns import shorten
from tanlearn.data.same_columns import SameColumns
from tanlearn.data.summaries import TableSummary
from tanlearn.data.validation import check_total, read_labels, row_weights
from tanlearn.estimators.row_sources import BatchSource, RowEncoder

__all__ = ["Partitions", "collection_kind"]


def collection_kind(values: Any) -> str | None:
    """Return what kind of collection something is."""
    if not hasattr(values, "__dask_graph__"):
        return None
    kinds = {"array": "rechunk", "frame": "divisions", "bag": "starmap"}
    # Of its type: a Delayed has every attribute that it is asked for.
    return next((kind for kind, method in kinds.items() if hasattr(type(values), method)), None)


class Partitions:
    """Rows, classes and weights, partition by partition."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, columns: Any = None) -> None:
        self.names: tuple[str, ...] | None = None  # Names of the columns, once they are summarised
        self._n_samples: tuple[int, ...] = ()
        if y is None and sample_weight is not None and collection_kind(X) == "bag":
            raise TypeError(
                "sample_weight needs a y: a Bag without holds tuples, (X, y, sample_weight) where they weigh."
            )
        named = [name for name in (y, sample_weight) if isinstance(name, str)]
        if named or columns is not None:
            X = _select(X, named, columns)
        rows = _partitions("X", X)
        others = [_beside(name, given, X, len(rows)) for name, given in (("y", y), ("sample_weight", sample_weight))]
        self._parts = [Part(k, *given) for k, given in enumerate(zip(rows, *others, strict=True))]

    def summarize(self, exact: bool) -> TableSummary:
        """Return what there is of values and classes: summaries of partitions, merged."""
        found = compute(merged([delayed(_summarize)(part, exact) for part in self._parts]))
        if found.n_rows == 0:
            raise ValueError("no partition has any rows, but learning needs some.")
        if found.summary.n_samples == 0:
            check_total(0, found.n_rows)
        self.names, self._n_samples = found.names, found.n_samples
        summary: TableSummary = found.summary
        return summary

    def encoded(self, encoder: RowEncoder) -> EncodedPartitions:
        """Return the encoded rows."""
        filled = [(part, n) for part, n in zip(self._parts, self._n_samples, strict=True) if n]
        return EncodedPartitions([part for part, _ in filled], [n for _, n in filled], encoder)

    def score(self, model: Any) -> float:
        """Return the share of the weight whose class a model predicts."""
        sent = delayed(model, traverse=False)
        found = compute(merged([delayed(_score)(part, sent) for part in self._parts]))
        if not found.weight > 0:
            raise ValueError("the rows to score by have no weight, or there are none. Pass some that have.")
        return float(found.correct / found.weight)


@dataclass
class _Found(Weighed):
    """What is known of some partitions that lie side by side."""

    summary: TableSummary
    same: SameColumns
    names: tuple[str, ...] | None
    n_samples: tuple[int, ...]
    n_rows: int

    def merge(self, other: _Found) -> Self:
        """Add what is known of the partitions behind them."""
        self.same.merge(other.same)
        self.summary.merge(other.summary)
        self.names = other.names if self.names is None else self.names
        self.n_samples += other.n_samples
        self.n_rows += other.n_rows
        return self


@dataclass
class _Correct:
    """How much of some rows is predicted."""

    correct: float
    weight: float

    def merge(self, other: _Correct) -> Self:
        """Add those of other rows."""
        self.correct += other.correct
        self.weight += other.weight
        return self


def _score(part: Part, model: Any) -> _Correct:
    """Predict a partition, and compare."""
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
    """Read a partition."""
    batches = part.open()
    summary = BatchSource(batches).summarize(exact)
    return _Found(summary, batches.same, batches.names, (summary.n_samples,), batches.n_samples or 0)


def _select(X: Any, named: list[str], columns: Any) -> Any:
    """Return some columns of a DataFrame: features, and those with classes and weights."""
    if collection_kind(X) != "frame":
        raise TypeError(f"y, sample_weight and columns can name columns of a DataFrame only, got {_told(X)}.")
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}. Put it in brackets.")
    known = Counter(X.columns)
    features = [name for name in known if name not in named] if columns is None else list(columns)
    chosen = [*named, *features]
    for name in chosen:
        if known[name] != 1:
            found = "several columns are" if known[name] else "no column is"
            raise ValueError(f"{found} called {name!r}. There are: {', '.join(map(repr, X.columns))}.")
    if len(set(chosen)) < len(chosen):
        name = Counter(chosen).most_common(1)[0][0]
        raise ValueError(f"{name!r} is named twice among y, sample_weight and columns. Name it once.")
    # All of a DataFrame is taken as it is: of a partition that lacks a column, pandas would not say which it is.
    return X if columns is None else X[[*features, *named]]


def _partitions(name: str, collection: Any) -> list[Any]:
    """Return a task for each partition."""
    kind = collection_kind(collection)
    if kind is None:
        raise TypeError(
            f"{name} must be a DataFrame, Series, Array or Bag of Dask, as X is, got {_told(collection)}. Make it one, "
            f"as with dask.array.from_array(values, chunks=X.chunks[0])."
        )
    if kind == "array" and collection.ndim == 2:
        collection = collection.rechunk({1: -1})  # rows in one piece
    tasks = list(np.ravel(collection.to_delayed()))
    # Optimised, a task reads several Parquet files at once where few of their columns are asked for: as of y, not of X.
    if kind == "frame" and len(tasks) != collection.npartitions:
        tasks = collection.simplify().to_delayed(optimize_graph=False)
    return tasks


def _beside(name: str, given: Any, X: Any, n_partitions: int) -> list[Any]:
    """Return for each partition a task, or what stands for it, after checking that it belongs to X."""
    if given is None or isinstance(given, str):
        if name == "y" and given is None and collection_kind(X) != "bag":
            raise TypeError(f"y must be a collection like X, or the name of its column, got None beside {_told(X)}.")
        return [given] * n_partitions
    own, theirs = (one.chunks[0] if collection_kind(one) == "array" else (np.nan,) for one in (X, given))
    if own != theirs and not np.isnan([*own, *theirs]).any():
        if sum(own) != sum(theirs):
            raise ValueError(f"{name} has {sum(theirs):,} row(s) where X has {sum(own):,}. Both need the same rows.")
        given = given.rechunk({0: own})
    tasks = _partitions(name, given)
    if len(tasks) != n_partitions:
        raise ValueError(
            f"{name} has {len(tasks)} partition(s) where X has {n_partitions}. Both need the same: make them of one "
            f"DataFrame, or repartition (rechunk) one like the other."
        )
    return tasks


def _told(value: Any) -> str:
    """Return what messages say of a value."""
    if collection_kind(value) is not None:
        return {"array": "an Array", "frame": f"a {type(value).__name__}", "bag": "a Bag"}[str(collection_kind(value))]
    return f"{shorten(value)} of type {type(value).__name__}"
