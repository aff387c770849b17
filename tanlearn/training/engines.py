"""Engines that train one epoch of gradient TAN: a fused engine, and an unfused reference implementation.

The unfused engine also trains on CUDA. The fused engine of several trainings on CUDA is in ``cuda_population.py``.

In each step (differentiable TAN, section 3), a structure is drawn, and the batch is scored with the CPTs of only this
structure. The gradient is passed to the entries of the drawn CPTs and, straight through the softmax, to the logits of
all candidates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.kernels import train
from tanlearn.kernels._backends import CPU, Backend, backend_of
from tanlearn.kernels._cuda import on_device
from tanlearn.kernels._lanes import padded
from tanlearn.kernels.scores import add_choice_gradient
from tanlearn.kernels.sweep import SWEEP_SCRATCH
from tanlearn.models.elimination import Eliminator
from tanlearn.training.losses import CompiledLoss, Loss, evaluate, is_built_in
from tanlearn.training.missing_value_scratch import allocate_missing_values
from tanlearn.training.optimizers import Adam
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.tan_state import Plan, State

__all__ = ["Engine", "FusedEngine", "UnfusedEngine", "is_fusible"]

#: Number of CPT rows per step from which a second thread is used. Each additional thread requires half as many rows
#: more. With fewer rows, synchronization takes more time than threads save. A step reads 11,000 rows on letter, 14,000
#: on satimage, and 230,000 on usps.
SHARED_ROWS = 100_000
#: Number of steps without a draw after which an Adam direction has decayed to zero: 0.9^400 = 5e-19.
DECAY_STEPS = 400


def is_fusible(loss: Loss, dtype: str) -> TypeGuard[CompiledLoss]:
    """Return whether the fused engine supports a loss and dtype. It supports only built-in losses in float32.

    If rows have missing values, each candidate must also have at most one augmenting parent.
    """
    return is_built_in(loss) and dtype == "float32"


class Engine(ABC):
    """Base class of engines, which train one state on one data set, epoch by epoch."""

    #: Device on which the noise of the plans is drawn.
    noise_device: ClassVar[str] = "cpu"
    backend: Backend = CPU
    adam: Adam
    structure_adam: Adam
    parameters: Any  # NamedTuple of the arrays from which the next epoch starts, without the step counts

    def __init__(self, state: State, data: EncodedData) -> None:
        self.state, self.data = state, data  # the state is updated in place

    def epoch(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        """Train one epoch, and return the mean loss of the drawn structures, or nan if a parameter is no longer finite.

        ``rates`` are the learning rates of the CPTs and of the structure logits. ``temperature`` is the temperature of
        the softmax in the structure gradient.
        """
        with on_device(self.data.device):
            mean_loss = self._total_loss(plan, rates, temperature) / len(plan.order)
        return mean_loss if self._is_finite() else np.nan

    def _is_finite(self) -> bool:
        """Return whether all parameters are still finite."""
        return bool(np.isfinite(self.state.theta).all())

    def pull(self) -> State:
        """Return the state with the CPTs of the last epoch. Its structure logits are always current."""
        return self.state

    def get_state(self) -> dict[str, AnyArray]:
        """Return a dictionary with copies of the parameters, Adam moments and step counts."""
        n_steps = np.array([self.adam.t, self.structure_adam.t], np.int64)
        arrays = self.parameters._asdict()
        return {"n_steps": n_steps, **{name: self.backend.get(array).copy() for name, array in arrays.items()}}

    def set_state(self, state: Any) -> None:
        """Restore a state from :meth:`get_state`. Raise ValueError if it belongs to another problem."""
        own = {"n_steps": np.zeros(2, np.int64), **self.parameters._asdict()}
        arrays = dict(zip(own, fields(state, *own), strict=True))
        for name, found in arrays.items():
            check_array(name, found, own[name].dtype, own[name].shape)
            if found.dtype.kind == "i" and (found < 0).any():
                raise ValueError(f"{name} must contain step counts of at least 0.")
        self.adam.t, self.structure_adam.t = arrays.pop("n_steps").tolist()
        for name, found in arrays.items():
            self.backend.assign(own[name], found)
        self.state.phi[:] = arrays["phi"]

    @abstractmethod
    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        """Train one epoch, and return the sum of the mean losses of its batches."""


class _Parameters(NamedTuple):
    """Parameters and Adam moments of the unfused engine."""

    theta: Any
    rho: Any
    phi: Any
    m: Any
    v: Any
    phi_m: Any
    phi_v: Any


class UnfusedEngine(Engine):
    """Reference implementation with one kernel per equation, on the device of the data.

    The engine supports any loss, which is evaluated on the host in each step, and any float type. On the CPU, it also
    supports missing values and several augmenting parents. Missing features are marginalized in the drawn structure,
    both in the scores and in the gradient of the drawn CPTs. An incomplete row contributes to the choice between two
    candidates only if both families are observed.
    """

    def __init__(self, state: State, data: EncodedData, weights: FloatArray, loss: Loss) -> None:
        super().__init__(state, data)
        self.weights, self.loss = weights, loss  # weights: (n_samples,), mean 1
        self.backend = backend_of(data.device)
        with on_device(data.device):
            self._allocate(state, data)

    def _allocate(self, state: State, data: EncodedData) -> None:
        """Copy the parameters and the candidates to the device, and allocate its scratch arrays."""
        backend = self.backend
        theta, rho, phi = backend.put(state.cells, state.theta.copy(), state.phi)
        self.adam, self.structure_adam = adams = Adam(rho, device=data.device), Adam(phi, device=data.device)
        (m, v), (phi_m, phi_v) = ((adam.m, adam.v) for adam in adams)
        self.parameters = _Parameters(theta=theta, rho=rho, phi=phi, m=m, v=v, phi_m=phi_m, phi_v=phi_v)
        self._parametrization = Normalized(state.layout, state.cells.dtype, backend)
        self._is_incomplete = data.is_incomplete
        self._incomplete_rows = _IncompleteRows(state, data.codes)
        self._families = backend.put(*state.layout.arrays())
        candidates = state.candidates.group, state.table_parent, state.size_penalty
        self._group, self._table_parent, self._size_penalty = backend.put(*candidates)
        self._graph = backend.put(*state.graph)
        (self._selected,) = backend.put(state.selected)
        n_tables = len(state.phi)
        self._noise = backend.empty(n_tables, np.float32)
        self._perturbed, self._d_choice, self._d_phi = (backend.empty(n_tables, np.float64) for _ in range(3))
        self._rounded, self._d_cells = (backend.empty(state.layout.n_cells, state.cells.dtype) for _ in range(2))

    def pull(self) -> State:
        """Copy the CPTs of the last epoch to the state, from CUDA if needed, and return it."""
        self.state.cells[:] = self.backend.get(self.parameters.theta)
        return self.state

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        state, data, parameters, d_cells = self.state, self.data, self.parameters, self._d_cells
        put, get, kernels = self.backend.put, self.backend.get, self.backend.kernels
        families, missing = self._families, missing_code(data.codes.dtype)
        n_rows, real = plan.order.shape[1], state.cells.dtype
        scores, all_rows = self.backend.empty((n_rows, data.n_classes), real), self.backend.empty(n_rows, np.intp)
        total = 0.0
        for batch, uniform in zip(plan.order, *put(plan.noise), strict=True):
            self._draw(uniform)
            batch = batch[np.argsort(self._is_incomplete[batch], kind="stable")]
            n_complete = len(batch) - np.count_nonzero(self._is_incomplete[batch])
            complete, incomplete, rows = batch[:n_complete], batch[n_complete:], all_rows[:n_complete]
            (codes,), cells = put(np.take(data.codes, complete, axis=1)), self._scoring_cells()
            kernels.log_joint(codes, 0, cells, *families, self._selected, missing, rows, scores[:n_complete])
            if incomplete.size:
                scores[n_complete:] = self._incomplete_rows.log_joint(incomplete, cells)
            losses, d_scores = evaluate(self.loss, get(scores), data.y[batch])
            share = self.weights[batch] / np.float32(len(batch))
            total += float((losses * share).sum(dtype=np.float64))
            (d_scores,) = put(np.ascontiguousarray(d_scores * share[:, np.newaxis], dtype=real))
            d_complete, d_incomplete = d_scores[:n_complete], d_scores[n_complete:]
            d_cells.fill(0)
            kernels.log_joint_adjoint(codes, 0, d_complete, *families, self._selected, missing, rows, d_cells)
            if incomplete.size:
                self._incomplete_rows.add_gradient(incomplete, d_incomplete, d_cells)
            self._parametrization.pull_back(parameters.theta, d_cells, out=d_cells, tables=state.selected)
            self.adam.step(parameters.rho, d_cells, rates[0])
            if state.candidates.has_choice:
                kernels.choice_gradient(codes, 0, d_complete, cells, *families, missing, rows, self._d_choice)
                if incomplete.size:
                    self._incomplete_rows.add_choice_gradient(incomplete, d_incomplete, cells, self._d_choice)
                self._step_structure(rates[1], temperature)
            self._parametrization.forward(parameters.rho, out=parameters.theta)
        state.phi[:] = get(parameters.phi)
        self.pull()  # epoch() checks that the CPTs are finite
        return total

    def _draw(self, uniform: Any) -> None:
        """Draw a structure with Gumbel noise that is computed from the uniform numbers."""
        kernels = self.backend.kernels
        kernels.gumbel(uniform, self._noise)
        kernels.perturb(self.parameters.phi, self._noise, self._group, self._perturbed)
        if self.state.candidates.arborescence:
            kernels.draw_arborescence(self._perturbed, self._group, self._table_parent, *self._graph, self._selected)
        else:
            kernels.draw_independent(self._perturbed, self._group, self._selected)
        self.state.selected[:] = self.backend.get(self._selected)

    def _scoring_cells(self) -> Any:
        """Return the log-probabilities with which rows are scored: theta, rounded if there is a fixed-point format."""
        form, theta = self.state.fixed_point, self.parameters.theta
        if form is None:
            return theta
        if self.backend is CPU:  # the CPU kernel supports float32 only
            return self.state.scoring_cells()
        self.backend.kernels.round_cells(theta, self._rounded.size, form.step, 2**form.n_bits - 1, self._rounded)
        return self._rounded

    def _step_structure(self, rate: float, temperature: float) -> None:
        """Take one Adam step of the structure logits."""
        kernels, parameters, d_phi = self.backend.kernels, self.parameters, self._d_phi
        kernels.structure_gradient(self._perturbed, self._group, temperature, self._d_choice, d_phi)
        if self.state.size_penalty.size:
            kernels.size_penalty_gradient(self._perturbed, self._noise, self._group, self._size_penalty, d_phi)
        self.structure_adam.step(parameters.phi, d_phi, rate)


class _IncompleteRows:
    """Scores and gradients of incomplete rows for the drawn structure."""

    def __init__(self, state: State, codes: Codes) -> None:
        self._state, self._codes = state, codes
        self._selected = np.full(state.candidates.n_features, -1)

    def log_joint(self, samples: IntArray, cells: FloatArray) -> FloatArray:
        """Return the scores of the given rows. The other methods reuse the structure and cells of this call."""
        state = self._state
        if not np.array_equal(self._selected, state.selected):  # planning takes a fraction of a step
            self._selected = state.selected.copy()
            structure = state.candidates.structure(self._selected)
            layout = state.layout.select(self._selected)
            self._eliminator = Eliminator(structure, layout, is_normalized=state.fixed_point is None)
        self._cells = state.layout.select_cells(cells, self._selected).astype(np.float64)
        return self._eliminator.log_joint(self._codes, samples, self._cells)

    def add_gradient(self, samples: IntArray, d_scores: FloatArray, d_cells: FloatArray) -> None:
        """Add the gradient with respect to the entries of the drawn CPTs, in place."""
        d_scores = d_scores.astype(np.float64)
        gradient = self._eliminator.log_joint_adjoint(self._codes, samples, self._cells, d_scores)
        self._state.layout.add_cells(d_cells, self._selected, gradient)

    def add_choice_gradient(
        self, samples: IntArray, d_scores: FloatArray, cells: FloatArray, d_choice: FloatArray
    ) -> None:
        """Add the gradient with respect to the choice of CPTs, in place."""
        codes = np.take(self._codes, samples, axis=1)
        rows, drawn_rows = np.empty((2, len(samples)), np.intp)
        families, missing = self._state.layout.arrays(), missing_code(codes.dtype)
        add_choice_gradient(codes, 0, d_scores, cells, *families, self._selected, missing, rows, drawn_rows, d_choice)


class FusedEngine(Engine):
    """Compiled steps that release the GIL.

    The result does not depend on ``n_threads``. A step uses several threads only if it is large enough. If values are
    missing, each candidate must have at most one augmenting parent. ``weights`` has shape (n_samples,), float32, with
    mean 1.
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
        n_cells = np.diff(state.layout.offset)
        # Cost of the CPTs of a feature, whose rows are read for the batch and whose entries are updated.
        table_costs = size + n_cells / lanes
        costs = np.add.reduceat(table_costs, state.candidates.group[:-1]).cumsum()
        self.n_threads = n_threads = max(1, min(n_threads, 2 * n_tables * size // SHARED_ROWS))
        shares = np.searchsorted(costs, costs[-1] * np.arange(n_threads + 1) / n_threads)
        self._bounds = [0, *shares[1:-1].tolist(), data.n_features]
        self.problem = train.Problem(
            codes=data.codes,
            y=data.y,
            weight=weights,
            families=state.layout.arrays(),
            group=state.candidates.group,
            table_parent=state.table_parent,
            loss=loss.kind,
            loss_parameters=np.array(loss.kernel_parameters(), real),
            rounding=None if form is None else np.array([form.step, 2**form.n_bits - 1], real),
            size_penalty=state.size_penalty if state.size_penalty.size else None,
        )
        self.parameters = train.Parameters(
            theta=state.cells,
            direction=np.zeros_like(state.cells),
            v=np.zeros_like(state.cells),
            n_undrawn=np.zeros(n_tables, np.intp),
            pending=np.zeros(n_tables, real),
            phi=state.phi,
            phi_m=self.structure_adam.m,
            phi_v=self.structure_adam.v,
        )
        longest = int(max(data.n_classes, n_cells.max())) + lanes
        self._scratch = train.Scratch(
            batch_codes=np.empty((data.n_features, size), data.codes.dtype),
            scores=np.zeros((size, lanes), real),
            d_scores=np.zeros((size, lanes), real),
            noise=np.empty(n_tables, real),
            perturbed=np.empty(n_tables),
            selected=state.selected,
            d_choice=np.zeros(n_tables),
            d_phi=np.empty(n_tables),
            graph=state.graph if state.candidates.arborescence else None,
            start=np.empty((n_threads, size), np.int32),
            d_table=np.zeros((n_threads, longest), real),
            buffer=np.zeros((n_threads, longest + SWEEP_SCRATCH), real),
        )
        self._missing_values = allocate_missing_values(
            data.codes,
            data.n_states,
            data.n_classes,
            data.n_classes + int(np.maximum.reduceat(n_cells, state.candidates.group[:-1]).sum()),
            (n_threads, size),
            is_normalized=form is None,
        )

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        n_steps, real, adam = len(plan.order), np.float32, self.adam
        steps = train.Steps(
            order=plan.order,
            uniform=plan.noise,
            step_sizes=adam.advance(n_steps, rates[0]).astype(real),
            structure_step_sizes=self.structure_adam.advance(n_steps, rates[1]),
            decay=self._decay,
            beta1=real(adam.beta1),
            beta2=real(adam.beta2),
            epsilon=real(adam.epsilon),
            temperature=temperature,
        )
        if self.n_threads == 1:
            return float(train.train_epoch(self.problem, self.parameters, steps, self._scratch, self._missing_values))
        with ThreadPoolExecutor(self.n_threads - 1) as helpers:
            return self._shared_epoch(steps, helpers)

    def _shared_epoch(self, steps: train.Steps, helpers: Executor) -> float:
        """Train one epoch like the kernel ``train_epoch``, but divide the CPTs of each step between threads."""
        arrays = (self.problem, self.parameters, steps, self._scratch)
        missing_values = self._missing_values
        bounds = self._bounds
        total = 0.0
        for s in range(len(steps.order)):
            total += train.begin_step(s, *arrays, missing_values)
            parts = [
                helpers.submit(train.step_tables, s, bounds[part], bounds[part + 1], part, *arrays, missing_values)
                for part in range(1, len(bounds) - 1)
            ]
            train.step_tables(s, bounds[0], bounds[1], 0, *arrays, missing_values)
            for part in parts:
                part.result()
            train.finish_step(s, *arrays)
        train.apply_all_pending(*arrays[:2], self._scratch)
        return total
