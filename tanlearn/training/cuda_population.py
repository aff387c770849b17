"""CUDA population: several trainings on the same rows, whose arrays stay on the device between epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._backends import CUDA
from tanlearn.kernels._cuda import BLOCK, WARP, cupy, row_packing, to_device
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.kernels.train import Parameters
from tanlearn.training.engines import DECAY_STEPS, Engine
from tanlearn.training.losses import CompiledLoss
from tanlearn.training.noise_streams import NoiseStream
from tanlearn.training.optimizers import Adam
from tanlearn.training.tan_state import Plan, State

__all__ = ["CudaEngine", "CudaPopulation"]

#: Mean length of a row of a CPT with one parent from which a block processes a CPT instead of a warp. Letter has 237,
#: usps 34.
_LONG_ROW = 128


class CudaPopulation:
    """Trainings on the same complete rows that run in lockstep on CUDA.

    There is one state, one built-in loss and one run index per training. All states have one type. ``weights`` has
    shape (n_samples,), float32, with mean 1.
    """

    def __init__(
        self,
        states: Sequence[State],
        data: EncodedData,
        weights: FloatArray,
        losses: Sequence[CompiledLoss],
        batch_size: int,
    ) -> None:
        self.states = list(states)  # initial values; updated by finish_epoch and pull
        self.adams = [Adam(np.empty(0)) for _ in states]
        self.structure_adams = [Adam(np.empty(0)) for _ in states]
        n_tables = [len(state.phi) for state in states]
        #: The CPTs of run r have the indices first[r] to first[r + 1] - 1.
        self._first = np.append(0, np.cumsum(n_tables)).tolist()
        self.problem = _make_problem(self.states, data, weights, losses, batch_size)
        self._offset = self.problem.offset.get()
        self.parameters = _make_parameters(self.states)
        self._steps = _make_steps(self.problem, self.states[0].cells.dtype, self.adams[0])
        self._scratch = _make_scratch(self.problem, self.states)
        # Host arrays that are sent to the device every epoch.
        self._order = np.zeros(self._steps.order.shape, np.int32)
        self._uniform = np.zeros(self._steps.uniform.shape, np.float32)
        self._streams = np.zeros(self._steps.streams.shape, np.uint64)
        # The default stream cannot be captured in a graph. A blocking stream would wait for it and for the other
        # threads that use it.
        self._stream = cupy().cuda.Stream(non_blocking=True)
        self._n_epochs = 0
        self._graph: Any = None

    def start_epoch(
        self, plans: Sequence[Plan | None], rates: Sequence[tuple[float, float]], temperatures: Sequence[float]
    ) -> None:
        """Launch one epoch of all runs and return without waiting for it.

        All arguments hold one entry per run. A plan of None leaves its run unchanged. ``rates`` are the learning rates
        of the CPTs and of the structure logits. ``temperatures`` are those of the softmax in the structure gradient.
        """
        steps, n_steps = self._steps, self.problem.n_steps
        sizes, structure_sizes = np.zeros((2, *steps.step_sizes.shape))
        is_streamed = np.zeros(len(plans), np.int32)
        for run, plan in enumerate(plans):
            if plan is not None:
                self._order[run] = plan.order
                is_streamed[run] = isinstance(plan.noise, NoiseStream)
                if is_streamed[run]:
                    self._streams[run] = plan.noise
                else:
                    self._uniform[:, self._first[run] : self._first[run + 1]] = plan.noise
                sizes[run] = self.adams[run].advance(n_steps, rates[run][0])
                structure_sizes[run] = self.structure_adams[run].advance(n_steps, rates[run][1])
        cupy().cuda.get_current_stream().synchronize()  # earlier transfers are complete
        self._is_active = np.array([plan is not None for plan in plans], np.int32)
        with self._stream:
            try:
                steps.order.set(self._order)
                if (self._is_active > is_streamed).any():
                    steps.uniform.set(self._uniform)
                steps.streams.set(self._streams)
                steps.is_streamed.set(is_streamed)
                steps.step_sizes.set(sizes.astype(steps.step_sizes.dtype))
                steps.structure_step_sizes.set(structure_sizes)
                steps.temperature.set(np.array(temperatures, np.float64))
                steps.is_active.set(self._is_active)
                self._scratch.total.fill(0)
                self._scratch.is_finite.fill(1)
                self._launch()
            except BaseException:  # also interrupts: memory that CUDA still writes to must not be reused
                self._stream.synchronize()
                raise

    def _launch(self) -> None:
        """Launch an epoch.

        From the second epoch on, blocks of steps are launched as a CUDA graph, because single launches take as long as
        the steps themselves.
        """
        self._n_epochs += 1
        if self._n_epochs == 1:
            cuda_train.train_epoch(self.problem, self.parameters, self._steps, self._scratch)
            return
        epoch = cuda_train.Epoch(self.problem, self.parameters, self._steps, self._scratch)
        if self._n_epochs == 2:
            self._stream.begin_capture()
            try:
                epoch.run_block()
            finally:
                self._graph = self._stream.end_capture()
        epoch.begin()
        for _ in range(epoch.n_blocks):
            self._graph.launch(self._stream)
        epoch.end()

    def finish_epoch(self) -> list[float]:
        """Wait for the epoch, copy the structure logits to the states, and return the mean loss of each run.

        The loss is nan if a parameter is no longer finite, and for runs without a plan.
        """
        self._stream.synchronize()
        phi = self.parameters.phi.get()
        for run, state in enumerate(self.states):
            state.phi[:] = phi[self._first[run] : self._first[run + 1]]
        is_sound = self._scratch.is_finite.get().astype(bool) & self._is_active.astype(bool)
        return np.where(is_sound, self._scratch.total.get() / self.problem.n_steps, np.nan).tolist()

    def pull(self, run: int) -> None:
        """Copy the CPTs of run number ``run`` from the device to its state."""
        state = self.states[run]
        n_classes = state.layout.n_classes
        begin, end = self._offset[self._first[run]], self._offset[self._first[run + 1]]
        state.theta[:n_classes] = self.parameters.theta[run * n_classes : (run + 1) * n_classes].get()
        state.theta[n_classes:] = self.parameters.theta[int(begin) : int(end)].get()


class CudaEngine(Engine):
    """Engine of one run of a CUDA population, with random numbers drawn on the GPU.

    If the population has a single run, :meth:`epoch` trains it.
    """

    noise_device, backend = "cuda", CUDA

    def __init__(self, population: CudaPopulation, run: int, data: EncodedData) -> None:
        super().__init__(population.states[run], data)
        self.population, self.run, self.parameters = population, run, population.parameters
        self.adam, self.structure_adam = population.adams[run], population.structure_adams[run]

    def pull(self) -> State:
        """Copy the CPTs of the last epoch from the device to the state, and return it."""
        self.population.pull(self.run)
        return self.state

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        self.population.start_epoch([plan], [rates], [temperature])
        return self.population.finish_epoch()[self.run] * len(plan.order)


def _make_problem(
    states: Sequence[State],
    data: EncodedData,
    weights: FloatArray,
    losses: Sequence[CompiledLoss],
    batch_size: int,
) -> cuda_train.Problem:
    """Return the constants of the training on the device; the CPTs of all runs are numbered consecutively."""
    real, d, n_runs = states[0].cells.dtype, data.n_features, len(states)
    sizes = [np.diff(state.layout.offset) for state in states]
    groups = [state.candidates.group for state in states]
    first = np.append(0, np.cumsum([len(n) for n in sizes]))
    ends = [group[1:] + start for group, start in zip(groups, first, strict=False)]
    longest = np.concatenate([np.maximum.reduceat(n, group[:-1]) for n, group in zip(sizes, groups, strict=True)])
    forms = [state.fixed_point for state in states]
    size = int(min(batch_size, data.n_samples))
    _, chunk = row_packing(data.n_classes, real)
    n_steps = data.n_samples // size
    return cuda_train.Problem(
        n_features=d,
        n_tables=int(first[-1]),
        most_tables=max(len(n) for n in sizes),
        n_steps=n_steps,
        block_steps=-(-n_steps // -(-n_steps // cuda_train.STEPS_PER_BLOCK)),
        batch_size=size,
        batch_stride=-(-size // chunk) * chunk,
        n_samples=data.n_samples,
        team=BLOCK if data.n_classes * np.mean(data.n_states) >= _LONG_ROW else WARP,
        codes=_there(data.codes),
        y=_there(data.y, np.int32),
        weight=_there(weights, np.float32),
        n_states=_there(data.n_states, np.int32),
        group=_there(np.append(0, np.concatenate(ends)), np.int32),
        tables=_there(np.concatenate([_tables(run, state) for run, state in enumerate(states)]), np.int32),
        parents=_there(np.concatenate([state.layout.parents for state in states]), np.int32),
        # The priors of all runs come first, so that the CPTs are contiguous.
        offset=_there(n_runs * data.n_classes + np.append(0, np.cumsum(np.concatenate(sizes))), np.int64),
        prior=_there(np.arange(n_runs) * data.n_classes, np.int64),
        arborescence=_there([state.candidates.arborescence for state in states], np.int32),
        loss=_there([loss.kind for loss in losses], np.int32),
        loss_parameters=_there([loss.kernel_parameters() for loss in losses], real),
        rounding=_there([(0, 0) if form is None else (form.step, 2**form.n_bits - 1) for form in forms], real),
        has_size_penalty=_there([state.size_penalty.size > 0 for state in states], np.int32),
        size_penalty=_there(
            np.concatenate([state.size_penalty if state.size_penalty.size else 0 * state.phi for state in states])
        ),
        drawn_offset=_there(np.append(0, np.cumsum(longest)), np.int64),
    )


def _tables(run: int, state: State) -> AnyArray:
    """Return (feature over all runs, run, feature, row length) of each CPT of a run, shape (n_tables, 4)."""
    child, _, n_states, offset = state.layout.arrays()
    group = run * state.candidates.n_features + child
    return np.stack([group, np.full_like(child, run), child, np.diff(offset) // n_states[child]], axis=1)


def _make_parameters(states: Sequence[State]) -> Parameters:
    """Return the parameters of all states on the device, with zero Adam moments."""
    n_classes = states[0].layout.n_classes
    priors = [state.theta[:n_classes] for state in states]
    theta = np.concatenate([*priors, *(state.theta[n_classes:] for state in states)])
    phi = np.concatenate([state.phi for state in states])
    return Parameters(
        theta=_there(theta),
        direction=_there(np.zeros_like(theta)),
        v=_there(np.zeros_like(theta)),
        n_undrawn=_there(np.zeros(len(phi), np.int32)),
        pending=_there(np.zeros(len(phi), theta.dtype)),
        phi=_there(phi),
        phi_m=_there(np.zeros_like(phi)),
        phi_v=_there(np.zeros_like(phi)),
    )


def _make_steps(problem: cuda_train.Problem, real: Any, adam: Adam) -> cuda_train.Steps:
    """Return the arrays that the host fills before every epoch."""
    n_runs, n_steps = len(problem.loss), problem.n_steps
    empty = cupy().empty
    return cuda_train.Steps(
        order=empty((n_runs, n_steps, problem.batch_size), np.int32),
        uniform=empty((n_steps, problem.n_tables), np.float32),
        streams=empty((n_runs, 6), np.uint64),
        is_streamed=empty(n_runs, np.int32),
        step_sizes=empty((n_runs, n_steps), real),
        structure_step_sizes=empty((n_runs, n_steps), np.float64),
        temperature=empty(n_runs, np.float64),
        is_active=empty(n_runs, np.int32),
        decay=_there((adam.beta1 / np.sqrt(adam.beta2)) ** np.arange(DECAY_STEPS), real),
        n_decay=DECAY_STEPS,
        beta1=adam.beta1,
        beta2=adam.beta2,
        epsilon=adam.epsilon,
    )


def _make_scratch(problem: cuda_train.Problem, states: Sequence[State]) -> cuda_train.Scratch:
    """Allocate the working memory of the steps on the device."""
    n_runs, d, size, n_tables = len(states), problem.n_features, problem.batch_size, problem.n_tables
    n_classes, real = states[0].layout.n_classes, states[0].cells.dtype
    nodes = 2 * d + 1 if any(state.candidates.arborescence for state in states) else 0
    empty, zeros = cupy().empty, cupy().zeros
    return cuda_train.Scratch(
        position=zeros(1, np.int32),
        codes=zeros((n_runs, problem.block_steps, d, problem.batch_stride), problem.codes.dtype),
        noise=empty(n_tables, np.float32),
        perturbed=empty(n_tables, np.float64),
        d_choice=empty(n_tables, np.float64),
        top=empty(n_runs * d, np.float64),
        selected=empty(n_runs * d, np.int32),
        listed=empty(n_tables, np.int32),
        n_found=zeros(n_runs, np.int32),
        n_listed=empty(n_runs, np.int32),
        begin=empty(n_runs * d, np.int64),
        start=empty((n_runs * d, size), np.int32),
        d_scores=zeros((n_runs, problem.batch_stride, n_classes), real),
        losses=empty((n_runs, size), np.float64),
        d_tables=empty(int(problem.drawn_offset[-1:].get()[0]), real),
        total=empty(n_runs, np.float64),
        edges=empty((n_runs, nodes, nodes), np.float64),
        ends=empty((n_runs, 2, nodes, nodes), np.int32),
        work=empty((n_runs, 6, nodes), np.int32),
        is_finite=empty(n_runs, np.int32),
    )


def _there(array: Any, dtype: Any = None) -> Any:
    """Return a copy on the CUDA device."""
    return to_device(np.asarray(array, dtype))[0]
