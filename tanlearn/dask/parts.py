"""Partitions with their classes and weights, opened by the task that reads their rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.sources.batches import Batches, open_batches

__all__ = ["Part"]


class Part(NamedTuple):
    """Partition of rows, classes and weights.

    An opened partition is never the result of a task. Dask computes only the sizes of frames and arrays, and would
    assume 56 bytes for an opened partition. Idle workers might then fetch it needlessly.
    """

    number: int  # number of the partition, from 0
    X: Any  # rows, or a list of tuples (X, y) or (X, y, sample_weight); a task until it is on a worker
    y: Any  # classes of the rows, or the name of their column, or None
    sample_weight: Any  # weights of the rows, or the name of their column, or None

    def open(self) -> Batches:
        """Return the batches. Raises ValueError under the conditions of :meth:`tuples`."""
        return open_batches(self.tuples(), part=self.number)

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return tuples of rows, classes and weights.

        Raises ValueError if ``y`` or ``sample_weight`` names an absent column, or differs from ``X`` in length or
        index.
        """
        X, y, sample_weight = self.X, self.y, self.sample_weight
        if isinstance(y, str) or isinstance(sample_weight, str):
            for name in (y, sample_weight):
                if isinstance(name, str) and name not in X.columns:
                    there = ", ".join(map(repr, X.columns))
                    raise ValueError(
                        f"in partition {self.number}: there is no column {name!r}. The columns are: {there}."
                    )
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
                    f"in partition {self.number}: {name} has {len(other):,} row(s), but X has {len(X):,}. Both need "
                    f"the same partitions. Select both from one DataFrame, or repartition (rechunk) one like the other."
                )
            if hasattr(other, "iloc") and hasattr(X, "iloc") and not X.index.equals(other.index):
                raise ValueError(
                    f"in partition {self.number}: X and {name} must have the same index, but their indexes differ. "
                    f"Select both from one DataFrame, or call reset_index on both."
                )
        return [given]


def _in_hand(values: Any) -> Any:
    """Return values as an object with a length. Partitions of Bags may be iterators, which are converted to lists."""
    return values if values is None or hasattr(values, "__len__") else list(values)
