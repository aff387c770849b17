"""The unfused engine of the device: one kernel an equation, and any loss, which the host evaluates at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels._cuda import cupy, to_device
from tanlearn.kernels.cuda import twins as gpu
from tanlearn.training.engines import Engine
from tanlearn.training.losses import Loss, evaluate
from tanlearn.training.optimizers import Adam
from tanlearn.training.state import Plan, State

__all__ = ["UnfusedDeviceEngine"]


class UnfusedDeviceEngine(Engine):
    """The twin of :class:`~tanlearn.training.engines.UnfusedEngine`, and on the device the oracle of the fused one.

    Scores of a batch come to the host and their gradient goes back: a step waits for both.

    Parameters
    ----------
    state : State
        Changed in place.
    data : EncodedData
        Complete rows.
    weights : ndarray of shape (n_samples,), float32
        Weights of mean one.
    loss : Loss
        Any loss.
    """

    def __init__(self, state: State, data: EncodedData, weights: FloatArray, loss: Loss) -> None:
        super().__init__(state, data)
        self.weights, self.loss = weights, loss
        self.adam, self.structure_adam = Adam(np.empty(0)), Adam(np.empty(0))
        self._families: Any = to_device(*state.layout.arrays())
        n_values, offset = state.layout.groups()
        self._groups: Any = to_device(np.arange(len(n_values)), n_values, offset)
        self._candidates = to_device(state.candidates.group, state.table_parent)
        self._graph: Any = [cupy().empty(shape, dtype) for shape, dtype in _graph_arrays(state)]
        self._price = to_device(state.price)[0]
        empty, real, n_tables = cupy().empty, state.theta.dtype, len(state.phi)
        self._cells, self._d_cells = (empty(state.layout.n_cells, real) for _ in range(2))
        self._noise, self._selected = empty(n_tables, np.float32), empty(data.n_features, np.int64)
        self._perturbed, self._d_choice, self._d_phi = (empty(n_tables, np.float64) for _ in range(3))
        zeros = np.zeros_like(state.theta), np.zeros_like(state.phi)
        self._live = dict(
            zip(
                ("theta", "rho", "phi", "m", "v", "phi_m", "phi_v"),
                to_device(state.theta, state.theta, state.phi, zeros[0], zeros[0], zeros[1], zeros[1]),
                strict=True,
            )
        )

    def pull(self) -> State:
        """Return the state with the tables of the last epoch, which come to the host.

        Returns
        -------
        State
            The one that was handed in.
        """
        self.state.theta[:] = self._live["theta"].get()
        return self.state

    def _arrays(self) -> dict[str, AnyArray]:
        return {name: array.get() for name, array in self._live.items()}

    def _set_arrays(self, arrays: dict[str, AnyArray]) -> None:
        for name, array in self._live.items():
            array.set(arrays[name])
        self.state.phi[:] = arrays["phi"]

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        order, uniform = plan
        state, data, live = self.state, self.data, self._live
        real, missing, has_choice = state.theta.dtype, missing_code(data.codes.dtype), state.candidates.has_choice
        group, table_parent = self._candidates
        families = *self._families, self._selected, missing, None
        scores = cupy().empty((order.shape[1], data.n_classes), real)
        steps = self.adam.advance(len(order), rates[0]), self.structure_adam.advance(len(order), rates[1])
        decay = self.adam.beta1, self.adam.beta2, self.adam.epsilon
        total = 0.0
        for batch, row, step, structure_step in zip(order, to_device(uniform)[0], *steps, strict=True):
            gpu.gumbel(row, self._noise)
            gpu.perturb(live["phi"], self._noise, group, self._perturbed)
            if state.candidates.arborescence:
                gpu.draw_arborescence(self._perturbed, group, table_parent, *(*self._graph, self._selected))
            else:
                gpu.draw_independent(self._perturbed, group, self._selected)
            codes, cells = to_device(np.take(data.codes, batch, axis=1))[0], self._scoring_cells()
            gpu.log_joint(codes, 0, cells, *(*families, scores))
            losses, d_scores = evaluate(self.loss, scores.get(), data.y[batch])
            share = self.weights[batch] / np.float32(len(batch))
            total += float((losses * share).sum(dtype=np.float64))
            (d_there,) = to_device((d_scores * share[:, np.newaxis]).astype(real))
            self._d_cells.fill(0)
            gpu.log_joint_adjoint(codes, 0, d_there, *(*families, self._d_cells))
            gpu.normalize_adjoint(live["theta"], self._d_cells, *(*self._groups, None, self._d_cells))
            if has_choice:
                gpu.choice_gradient(codes, 0, d_there, cells, *(*self._families, missing, None, self._d_choice))
                gpu.structure_gradient(self._perturbed, group, temperature, self._d_choice, self._d_phi)
                if state.price.size:
                    gpu.price_gradient(self._perturbed, self._noise, group, self._price, self._d_phi)
                gpu.adam_step(live["phi"], self._d_phi, structure_step, *decay, live["phi_m"], live["phi_v"])
            gpu.adam_step(live["rho"], self._d_cells, step, *decay, live["m"], live["v"])
            gpu.normalize(live["rho"], *(*self._groups[1:], None, live["theta"]))
        state.phi[:] = live["phi"].get()
        self.pull()  # for who looks whether all is finite
        return total

    def _scoring_cells(self) -> Any:
        """Return what rows are scored with: theta, or theta rounded."""
        form, theta = self.state.fixed_point, self._live["theta"]
        if form is None:
            return theta
        gpu.round_cells(theta, theta.size, form.step, 2**form.n_bits - 1, self._cells)
        return self._cells


def _graph_arrays(state: State) -> list[tuple[tuple[int, ...], Any]]:
    """Return shapes and types of what trees are drawn in."""
    nodes = len(state.edges[0])
    square = nodes, nodes
    return [(square, np.float64), (square, np.int32), (square, np.int32), ((6, nodes), np.int32)]
