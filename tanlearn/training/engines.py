"""Two engines that train an epoch of gradient TAN: the fused one, and its unfused twin, which is the oracle of it.

(Those of the device are in ``device_population.py`` and ``device_engine.py``.)

One step (differentiable TAN, section 3): draw a structure, score the batch with its tables only, and send the gradient
back to the cells of the drawn tables and, straight through the softmax, to the logits of all candidates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar, TypeGuard

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.files.archive import fields
from tanlearn.files.values import check_array
from tanlearn.kernels import scores as score_kernels
from tanlearn.kernels import train, trees
from tanlearn.kernels._lanes import LANES, padded
from tanlearn.network.elimination import Eliminator
from tanlearn.training.losses import CompiledLoss, Loss, evaluate, is_built_in
from tanlearn.training.optimizers import Adam
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.state import Plan, State

__all__ = ["Engine", "FusedEngine", "UnfusedEngine", "is_fusible"]

#: Two threads share a step if the batch reads so many table rows, three from half as many more on, and so on; below,
#: handing over costs more than it saves (letter reads 11,000 rows a step, satimage 14,000, usps 230,000).
SHARED_ROWS = 100_000
#: After so many steps without a draw nothing is left of a direction: 0.9^400 = 5e-19.
DECAY_STEPS = 400


def is_fusible(loss: Loss, dtype: str) -> TypeGuard[CompiledLoss]:
    """Return whether the fused engine can train: a built-in loss, in float32.

    Parameters
    ----------
    loss : Loss
        Built-in or the user's own.
    dtype : {"float32", "float64"}
        Type of parameters and scores.

    Returns
    -------
    bool

    Examples
    --------
    >>> from tanlearn import Hybrid
    >>> from tanlearn.training.engines import is_fusible
    >>> is_fusible(Hybrid(), "float32"), is_fusible(Hybrid(), "float64")
    (True, False)
    """
    return is_built_in(loss) and dtype == "float32"


class Engine(ABC):
    """What trains an epoch: one state on one table of rows.

    Parameters
    ----------
    state : State
        Changed in place.
    data : EncodedData
        Rows.
    """

    #: Where the noise of its plans is drawn.
    noise_device: ClassVar[str] = "cpu"
    adam: Adam
    structure_adam: Adam

    def __init__(self, state: State, data: EncodedData) -> None:
        self.state, self.data = state, data

    def epoch(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        """Train one epoch.

        Parameters
        ----------
        plan : Plan
            Batches and noise.
        rates : tuple of (float, float)
            Learning rates of tables and structure logits.
        temperature : float
            Of the softmax that the structure gradient goes through.

        Returns
        -------
        float
            Mean loss of the drawn structures; nan if a parameter is no longer finite.
        """
        mean_loss = self._total_loss(plan, rates, temperature) / len(plan[0])
        return mean_loss if np.isfinite(self.state.theta).all() else np.nan

    def pull(self) -> State:
        """Return the state with the tables of the last epoch; its structure logits always are.

        Returns
        -------
        State
            The one that was handed in.
        """
        return self.state

    def get_state(self) -> dict[str, AnyArray]:
        """Return a copy of what an epoch leaves to the next one.

        Returns
        -------
        dict of str to ndarray
        """
        n_steps = np.array([self.adam.t, self.structure_adam.t], np.int64)
        return {"n_steps": n_steps, **{name: array.copy() for name, array in self._arrays().items()}}

    def set_state(self, state: Any) -> None:
        """Go on where an engine of the same problem was.

        Parameters
        ----------
        state : dict of str to ndarray
            What its :meth:`get_state` returned.

        Raises
        ------
        ValueError
            If that is of another problem.
        """
        own = {"n_steps": np.zeros(2, np.int64), **self._arrays()}
        arrays = dict(zip(own, fields(state, *own), strict=True))
        for name, found in arrays.items():
            check_array(name, found, own[name].dtype, own[name].shape)
            if found.dtype.kind == "i" and (found < 0).any():
                raise ValueError(f"{name} counts steps, and cannot be negative.")
        self.adam.t, self.structure_adam.t = arrays.pop("n_steps").tolist()
        self._set_arrays(arrays)

    def _set_arrays(self, arrays: dict[str, AnyArray]) -> None:
        """Take what arrays like those of :meth:`_arrays` hold."""
        for name, array in self._arrays().items():
            array[:] = arrays[name]

    @abstractmethod
    def _arrays(self) -> dict[str, AnyArray]:
        """Return the arrays, by name, that an epoch leaves to the next one."""

    @abstractmethod
    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        """Train one epoch, and return the sum of the batches' mean losses."""


class UnfusedEngine(Engine):
    """One kernel an equation; any loss, any type, and rows with missing features.

    Of incomplete rows the scores, and the gradient of the drawn tables, are those with missing features summed out
    under the drawn structure. Between candidates they decide only where both families are observed.

    Parameters
    ----------
    state : State
        Changed in place.
    data : EncodedData
        Rows; what they miss is summed out.
    weights : ndarray of shape (n_samples,), float32
        Weights of mean one.
    loss : Loss
        Any loss.
    """

    def __init__(self, state: State, data: EncodedData, weights: FloatArray, loss: Loss) -> None:
        super().__init__(state, data)
        self.weights, self.loss = weights, loss
        self.parametrization = Normalized(state.layout, state.cells.dtype)
        self.rho = state.theta.copy()
        self.adam = Adam(self.rho)
        self.structure_adam = Adam(state.phi)
        self._is_incomplete = data.is_incomplete
        self._gaps = _Gaps(state, data.codes)

    def _arrays(self) -> dict[str, AnyArray]:
        moments = {"m": self.adam.m, "v": self.adam.v, "phi_m": self.structure_adam.m, "phi_v": self.structure_adam.v}
        return {"theta": self.state.cells, "rho": self.rho, "phi": self.state.phi, **moments}

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        order, uniform = plan
        state, data = self.state, self.data
        noise = np.empty_like(uniform)
        trees.gumbel(uniform.ravel(), noise.ravel())
        arrays = state.layout.arrays()
        missing = missing_code(data.codes.dtype)
        scores = np.empty((order.shape[1], data.n_classes), self.rho.dtype)
        d_cells = np.zeros_like(self.rho)
        d_choice = np.empty_like(state.phi)
        d_phi = np.empty_like(state.phi)
        total = 0.0
        for batch, batch_noise in zip(order, noise, strict=True):
            perturbed = state.perturb(batch_noise)
            selected = state.draw(perturbed)
            batch = batch[np.argsort(self._is_incomplete[batch], kind="stable")]
            n_complete = len(batch) - np.count_nonzero(self._is_incomplete[batch])
            codes, rows = np.take(data.codes, batch[:n_complete], axis=1), np.empty(n_complete, np.intp)
            cells = state.scoring_cells()
            score_kernels.log_joint(codes, 0, cells, *arrays, selected, missing, rows, scores[:n_complete])
            incomplete = batch[n_complete:]
            if incomplete.size:
                scores[n_complete:] = self._gaps.log_joint(incomplete, cells)
            losses, d_scores = evaluate(self.loss, scores, data.y[batch])
            share = self.weights[batch] / np.float32(len(batch))
            total += float((losses * share).sum(dtype=np.float64))
            d_scores = np.ascontiguousarray(d_scores * share[:, np.newaxis], dtype=self.rho.dtype)
            d_complete, d_incomplete = d_scores[:n_complete], d_scores[n_complete:]
            d_cells[:] = 0.0
            score_kernels.log_joint_adjoint(codes, 0, d_complete, *arrays, selected, missing, rows, d_cells)
            if incomplete.size:
                self._gaps.add_gradient(incomplete, d_incomplete, d_cells)
            self.parametrization.pull_back(state.theta, d_cells, out=d_cells, tables=selected)
            self.adam.step(self.rho, d_cells, rates[0])
            if state.candidates.has_choice:
                score_kernels.choice_gradient(codes, 0, d_complete, cells, *arrays, missing, rows, d_choice)
                if incomplete.size:
                    codes = np.take(data.codes, incomplete, axis=1)
                    rows, drawn_rows = np.empty((2, len(incomplete)), np.intp)
                    score_kernels.add_choice_gradient(
                        codes, 0, d_incomplete, cells, *arrays, selected, missing, rows, drawn_rows, d_choice
                    )
                trees.structure_gradient(perturbed, state.candidates.group, temperature, d_choice, d_phi)
                if state.price.size:
                    trees.price_gradient(perturbed, batch_noise, state.candidates.group, state.price, d_phi)
                self.structure_adam.step(state.phi, d_phi, rates[1])
            self.parametrization.forward(self.rho, out=state.theta)
        return total


class _Gaps:
    """What incomplete rows add to a step: scores and gradients under the drawn structure."""

    def __init__(self, state: State, codes: Codes) -> None:
        self._state, self._codes = state, codes
        self._selected = np.full(state.candidates.n_features, -1)

    def log_joint(self, samples: IntArray, cells: FloatArray) -> FloatArray:
        """Return the scores of some rows; the other methods are of the structure and cells of this call."""
        state = self._state
        if not np.array_equal(self._selected, state.selected):  # planning the elimination costs a fraction of a step
            self._selected = state.selected.copy()
            structure = state.candidates.structure(self._selected)
            layout = state.layout.select(self._selected)
            self._eliminator = Eliminator(structure, layout, is_normalized=state.fixed_point is None)
        self._cells = state.layout.select_cells(cells, self._selected).astype(np.float64)
        return self._eliminator.log_joint(self._codes, samples, self._cells)

    def add_gradient(self, samples: IntArray, d_scores: FloatArray, d_cells: FloatArray) -> None:
        """Add the gradient for the cells of the drawn tables."""
        d_scores = d_scores.astype(np.float64)
        gradient = self._eliminator.log_joint_adjoint(self._codes, samples, self._cells, d_scores)
        self._state.layout.add_cells(d_cells, self._selected, gradient)


class FusedEngine(Engine):
    """Compiled steps, without the GIL.

    Parameters
    ----------
    state : State
        Changed in place; float32.
    data : EncodedData
        Complete rows.
    weights : ndarray of shape (n_samples,), float32
        Weights of mean one.
    loss : CompiledLoss
        A built-in loss.
    batch_size : int
        Rows a step.
    n_threads : int, default=1
        Threads that share the tables of a step, if there are enough of them; the result is the same.
    """

    def __init__(
        self,
        state: State,
        data: EncodedData,
        weights: FloatArray,
        loss: CompiledLoss,
        batch_size: int,
        n_threads: int = 1,
    ) -> None:
        super().__init__(state, data)
        real = np.float32
        size = min(batch_size, data.n_samples)
        lanes = padded(data.n_classes)
        n_tables = len(state.phi)
        form = state.fixed_point
        self.adam = Adam(np.empty(0, real))
        self.structure_adam = Adam(state.phi)
        ratio = self.adam.beta1 / np.sqrt(self.adam.beta2)
        self._decay = (ratio ** np.arange(DECAY_STEPS)).astype(real)
        # What is done to the tables of a feature: their rows are read, their cells are moved.
        table_costs = size + np.diff(state.layout.offset) / lanes
        costs = np.add.reduceat(table_costs, state.candidates.group[:-1]).cumsum()
        self.n_threads = n_threads = max(1, min(n_threads, 2 * n_tables * size // SHARED_ROWS))
        shares = np.searchsorted(costs, costs[-1] * np.arange(n_threads + 1) / n_threads)
        self._bounds = [0, *shares[1:-1].tolist(), data.n_features]
        self.problem = train.Problem(
            data.codes,
            data.y,
            weights,
            *state.layout.arrays(),
            state.candidates.group,
            state.table_parent,
            state.candidates.arborescence,
            loss.kind,
            np.array(loss.kernel_parameters(), real),
            np.zeros(2, real) if form is None else np.array([form.step, 2**form.n_bits - 1], real),
            state.price,
        )
        self.parameters = train.Parameters(
            state.cells,
            np.zeros_like(state.cells),
            np.zeros_like(state.cells),
            np.zeros(n_tables, np.intp),
            np.zeros(n_tables, real),
            state.phi,
            self.structure_adam.m,
            self.structure_adam.v,
        )
        longest = int(max(data.n_classes, np.diff(state.layout.offset).max())) + LANES
        self._scratch = train.Scratch(
            np.empty((data.n_features, size), data.codes.dtype),
            np.zeros((size, lanes), real),
            np.zeros((size, lanes), real),
            np.empty(n_tables, real),
            np.empty(n_tables),
            state.selected,
            np.zeros(n_tables),
            np.empty(n_tables),
            *state.edges,
            state.work,
            np.empty((n_threads, size), np.int32),
            np.zeros((n_threads, longest), real),
            np.zeros((n_threads, longest), real),
        )

    def _arrays(self) -> dict[str, AnyArray]:
        return self.parameters._asdict()

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        order, uniform = plan
        real = np.float32
        adam = self.adam
        steps = train.Steps(
            order,
            uniform,
            adam.advance(len(order), rates[0]).astype(real),
            self.structure_adam.advance(len(order), rates[1]),
            self._decay,
            real(adam.beta1),
            real(adam.beta2),
            real(adam.epsilon),
            temperature,
        )
        if self.n_threads == 1:
            return float(train.train_epoch(self.problem, self.parameters, steps, self._scratch))
        with ThreadPoolExecutor(self.n_threads - 1) as helpers:
            return self._shared_epoch(steps, helpers)

    def _shared_epoch(self, steps: train.Steps, helpers: Executor) -> float:
        """Do as ``train_epoch`` does, and share every step's tables between threads."""
        arrays = (self.problem, self.parameters, steps, self._scratch)
        bounds = self._bounds
        total = 0.0
        for s in range(len(steps.order)):
            total += train.begin_step(s, *arrays)
            parts = [
                helpers.submit(train.step_tables, s, bounds[part], bounds[part + 1], part, *arrays)
                for part in range(1, len(bounds) - 1)
            ]
            train.step_tables(s, bounds[0], bounds[1], 0, *arrays)
            for part in parts:
                part.result()
            train.finish_step(s, *arrays)
        train.settle(*arrays[:2], self._scratch)
        return total
