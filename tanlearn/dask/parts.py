"""A partition with its classes and weights: opened by the task that reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.data.batches import Batches, open_batches

__all__ = ["Part"]


class Part(NamedTuple):
    """A partition of rows, classes and weights.

    What it is opened to is no task's result: Dask knows how large frames and arrays are, and takes any other object for
    one of 56 bytes, which idle workers may fetch for nothing.
    """

    number: int  # Which partition it is
    X: Any  # Rows, or a list of tuples (X, y) or (X, y, sample_weight); a task, before it is a worker's
    y: Any  # y, sample_weight: Classes and weights of the rows, or the names of their columns
    sample_weight: Any

    def open(self) -> Batches:
        """Return its batches."""
        return open_batches(self.tuples(), part=self.number)

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return rows, classes and weights as tuples, after checking that they are of the same rows."""
        X, y, sample_weight = self.X, self.y, self.sample_weight
        if isinstance(y, str) or isinstance(sample_weight, str):
            for name in (y, sample_weight):
                if isinstance(name, str) and name not in X.columns:
                    there = ", ".join(map(repr, X.columns))
                    raise ValueError(f"in partition {self.number}: no column is called {name!r}. There are: {there}.")
            chosen = {name: X[name] for name in (y, sample_weight) if isinstance(name, str)}
            X, y, sample_weight = (
                X.drop(columns=list(chosen)),
                chosen.get(y, y),
                chosen.get(sample_weight, sample_weight),
            )
        X, y, sample_weight = map(_in_hand, (X, y, sample_weight))
        if y is None:
            return list(X)
        given = (X, y) if sample_weight is None else (X, y, sample_weight)
        for name, other in zip(("y", "sample_weight"), given[1:], strict=False):
            if len(other) != len(X):
                raise ValueError(
                    f"in partition {self.number}: {name} has {len(other):,} row(s) where X has {len(X):,}. Both need "
                    f"the same partitions: make them of one DataFrame, or repartition (rechunk) one like the other."
                )
            if hasattr(other, "iloc") and hasattr(X, "iloc") and not X.index.equals(other.index):
                raise ValueError(
                    f"in partition {self.number}: X and {name} have other indexes, so their rows are not the same. "
                    f"Make both of one DataFrame, or reset_index of both."
                )
        return [given]


def _in_hand(values: Any) -> Any:
    """Return what can be asked for its length: partitions of Bags may be iterators."""
    return values if values is None or hasattr(values, "__len__") else list(values)
