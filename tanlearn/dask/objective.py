"""The loss of rows in partitions, for optimisers in this process: parameters go out, sums of gradients come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tanlearn._typing import FloatArray
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.tables import TableLayout
from tanlearn.training.losses import Loss
from tanlearn.training.objectives import Objective
from tanlearn.training.parametrizations import Normalized

__all__ = ["EncodedPart", "PartitionedObjective"]


class EncodedPart(Weighed):
    """Encoded rows of a partition, and their loss; what that needs beside the rows is made anew on another worker."""

    def __init__(self, data: EncodedData, layout: TableLayout, loss: Loss) -> None:
        # data: The rows. layout: One table a feature. loss: Of a row.
        self._data, self._layout, self._loss = data, layout, loss
        self._objective: Objective | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_objective": None}

    def __call__(self, rho: FloatArray) -> _Sum:
        """Return the summed loss of the rows, and its gradient."""
        if self._objective is None:
            self._objective = Objective(self._layout, self._data, self._loss)
        value, gradient = self._objective(rho)
        weight = float(self._data.weights.sum())
        return _Sum(weight * value, weight * gradient, weight)


@dataclass
class _Sum(Weighed):
    """Loss and gradient of some rows, and their weight."""

    value: float
    gradient: FloatArray
    weight: float

    def merge(self, other: _Sum) -> Self:
        """Add those of other rows."""
        self.value += other.value
        self.gradient += other.gradient
        self.weight += other.weight
        return self


class PartitionedObjective:
    """What :class:`~tanlearn.training.objectives.Objective` is of rows at hand: their weighted mean loss.

    Sums are those of the same partitions in the same order, whatever worker holds which.
    """

    def __init__(self, parts: list[Any], layout: TableLayout) -> None:
        import dask

        # Of :class:`EncodedPart`; from here on they are kept where they are computed
        self._parts = dask.persist(*parts)
        self._parametrization = Normalized(layout)

    def __call__(self, rho: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient at ``rho`` of shape (n_cells,), float64."""
        sent = delayed(rho, traverse=False)
        total = compute(merged([delayed(_evaluate)(part, sent) for part in self._parts]))
        return total.value / total.weight, total.gradient / total.weight

    def theta(self, rho: FloatArray) -> FloatArray:
        """Return the log-probabilities at ``rho``.

        Shapes: rho: (n_cells,); result: (n_cells,).
        """
        return self._parametrization.forward(rho)


def _evaluate(part: EncodedPart, rho: FloatArray) -> _Sum:
    """Call a part, where it is."""
    return part(rho)
