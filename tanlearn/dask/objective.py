"""Mean loss of partitioned rows. The workers receive parameters, and return sums of losses and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tanlearn._typing import FloatArray
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.losses import Loss
from tanlearn.training.objectives import Objective
from tanlearn.training.parametrizations import Normalized

__all__ = ["EncodedPart", "PartitionedObjective"]


class EncodedPart(Weighed):
    """Encoded rows of a partition, and their loss. The objective is built anew if they move to another worker."""

    def __init__(self, data: EncodedData, layout: TableLayout, loss: Loss) -> None:
        self._data, self._layout, self._loss = data, layout, loss
        self._objective: Objective | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_objective": None}

    def __call__(self, rho: FloatArray) -> _Sum:
        """Return the weighted sum of the losses of the rows, and its gradient, at the log-parameters ``rho``."""
        if self._objective is None:
            self._objective = Objective(self._layout, self._data, self._loss)
        value, gradient = self._objective(rho)
        weight = float(self._data.weights.sum())
        return _Sum(weight * value, weight * gradient, weight)


@dataclass
class _Sum(Weighed):
    """Sums of losses, gradients and weights over rows."""

    value: float
    gradient: FloatArray
    weight: float

    def merge(self, other: _Sum) -> Self:
        """Add the sums of other rows in place."""
        self.value += other.value
        self.gradient += other.gradient
        self.weight += other.weight
        return self


class PartitionedObjective:
    """Weighted mean loss of partitioned rows, with the interface of :class:`~tanlearn.training.objectives.Objective`.

    Sums are computed in the order of the partitions, regardless of the workers that hold them.
    """

    def __init__(self, parts: list[Any], layout: TableLayout) -> None:
        import dask

        self._parts = dask.persist(*parts)  # EncodedPart objects, kept on the workers that computed them
        self._parametrization = Normalized(layout)

    def __call__(self, rho: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient (n_cells,) at ``rho`` (n_cells,), float64."""
        sent = delayed(rho, traverse=False)
        total = compute(merged([delayed(_evaluate)(part, sent) for part in self._parts]))
        return total.value / total.weight, total.gradient / total.weight

    def theta(self, rho: FloatArray) -> FloatArray:
        """Return the log probabilities (n_cells,) for finite unnormalized log-parameters ``rho`` (n_cells,)."""
        return self._parametrization.forward(rho)


def _evaluate(part: EncodedPart, rho: FloatArray) -> _Sum:
    """Compute the sums for a partition, on the worker that holds the partition."""
    return part(rho)
