"""Several trainings on the same rows on CUDA (a population), whose arrays stay on the device between epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._backends import CUDA
from tanlearn.kernels._cuda import BLOCK, WARP, cupy, on_device, on_own_device, row_packing, to_device
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.kernels.train import Parameters
from tanlearn.training.engines import DECAY_STEPS, Engine
from tanlearn.training.losses import CompiledLoss
from tanlearn.training.noise_streams import NoiseStream
from tanlearn.training.optimizers import Adam
from tanlearn.training.tan_state import Plan, State

__all__ = ["CudaEngine", "CudaPopulation", "MemoryNeed", "memory_need"]

#: Mean length of the rows of CPTs with one parent above which a block, instead of a warp, processes a CPT. The mean
#: length is 237 for letter, and 34 for usps.
_LONG_ROW = 128
#: Estimated memory that CUDA needs for the kernels of a population, and for its graph of up to 321 launches. The
#: estimate is generous, because the memory has not been measured. Local memory is allocated for all threads that a
#: device supports, which is 303,000 threads on a B200.
_RESERVED_BYTES, _MOST_THREADS = 2**26, 303_104
#: Kernels index the entries of a CPT by 32-bit integers.
_MOST_CELLS = 2**31 - 1


class MemoryNeed(NamedTuple):
    """CUDA memory of a population in bytes."""

    shared: int  # memory for rows, kernels and graphs, which is needed once
    per_run: int


def memory_need(state: State, data: EncodedData, batch_size: int) -> MemoryNeed:
    """Compute the CUDA memory of a population with runs like ``state``, before anything is allocated.

    The memory for arrays is computed exactly, because this module allocates them. The memory for kernels and graphs is
    estimated.
    """
    real, code, (d, n), n_classes = state.cells.dtype.itemsize, data.codes.itemsize, data.codes.shape, data.n_classes
    size = int(min(batch_size, n))
    n_steps, stride = n // size, _batch_stride(size, n_classes, state.cells.dtype)
    block_steps, n_tables, n_cells = _block_steps(n_steps), len(state.phi), len(state.theta)
    nodes = 2 * d + 1 if state.candidates.arborescence else 0
    longest = int(np.maximum.reduceat(np.diff(state.layout.offset), state.candidates.group[:-1]).sum())
    n_local = 4 * -(-n_classes // WARP) * real * _MOST_THREADS if n_classes > 4 * WARP else 0
    rows = n * d * code + 8 * n + 4 * d + 4 + 2 * 8 + real * DECAY_STEPS + 4
    of_run = 8 + 3 * 4 + 5 * real + (48 + 4 + 8 + 4) + 4 * 2 + 8 + 4  # arrays with a few numbers per run
    of_features = (4 + 8) + (8 + 4 + 8)  # group, drawn_offset; top, selected, begin
    of_tables = (16 + 8 + 8 + 8) + (4 + real + 24) + 4 * block_steps + (4 + 8 + 8 + 4)
    of_steps = 4 * size + real + 8
    scratch = code * block_steps * d * stride + 4 * d * size + real * stride * n_classes + 8 * size + real * longest
    trees = (8 * n_tables if nodes else 0) + 24 * nodes
    per_run = 3 * real * n_cells + of_run + of_features * d + of_tables * n_tables + of_steps * n_steps
    return MemoryNeed(rows + _RESERVED_BYTES + n_local, per_run + scratch + trees)


def _batch_stride(batch_size: int, n_classes: int, real: Any) -> int:
    """Return the size of a batch, rounded up to whole chunks of rows."""
    _, chunk = row_packing(n_classes, real)
    return -(-batch_size // chunk) * chunk


def _block_steps(n_steps: int) -> int:
    """Return the number of steps of a block, so that all blocks of an epoch are about equally long."""
    return -(-n_steps // -(-n_steps // cuda_train.STEPS_PER_BLOCK))


class CudaPopulation:
    """Trainings on the same complete rows that run in lockstep on CUDA.

    Each training has a state, a built-in loss and a run index. All states have the same dtype. ``weights`` (n_samples,)
    are float32 and have mean 1.
    """

    def __init__(
        self,
        states: Sequence[State],
        data: EncodedData,
        weights: FloatArray,
        losses: Sequence[CompiledLoss],
        batch_size: int,
    ) -> None:
        self.states = list(states)  # initial values, updated by finish_epoch and pull
        self.device = data.device
        self.adams = [Adam(np.empty(0)) for _ in states]
        self.structure_adams = [Adam(np.empty(0)) for _ in states]
        n_tables = [len(state.phi) for state in states]
        #: The CPTs of run r have the indices first[r] to first[r + 1] - 1.
        self._first = np.append(0, np.cumsum(n_tables)).tolist()
        with on_device(data.device):
            self._allocate(data, weights, losses, batch_size)
        # Host arrays that are sent to the device in every epoch. Noise is sent only if the device cannot draw it.
        self._order = np.zeros(self._steps.order.shape, np.int32)
        self._uniform: FloatArray | None = None
        self._streams = np.zeros(self._steps.streams.shape, np.uint64)
        self._graph: Any = None  # graph of a block of steps
        self.n_epochs = 0  # number of epochs that have begun to change parameters
        self._is_active = np.zeros(len(states), np.int32)

    def _allocate(
        self, data: EncodedData, weights: FloatArray, losses: Sequence[CompiledLoss], batch_size: int
    ) -> None:
        """Copy the rows and the parameters to the current device, and allocate its scratch arrays."""
        self.problem = _make_problem(self.states, data, weights, losses, batch_size)
        self._offset = self.problem.offset.get()
        self.parameters = _make_parameters(self.states)
        self._steps = _make_steps(self.problem, self.states[0].cells.dtype, self.adams[0])
        self._scratch = _make_scratch(self.problem, self.states)
        # The default stream cannot be captured in a graph. A blocking stream would wait for the default stream, and for
        # other threads that use it.
        self._stream = cupy().cuda.Stream(non_blocking=True)

    @on_own_device
    def get_state(self, run: int) -> dict[str, AnyArray]:
        """Return a dictionary with copies of the parameters and Adam moments of a run."""
        arrays = self.parameters._asdict()
        return {
            name: np.concatenate([array[rows].get() for rows in self._rows(name, run)])
            for name, array in arrays.items()
        }

    @on_own_device
    def set_state(self, run: int, state: dict[str, AnyArray], n_epochs: int) -> None:
        """Restore the state of a run after ``n_epochs`` epochs, as returned by :meth:`get_state`."""
        for name, values in state.items():
            first = 0
            for rows in self._rows(name, run):
                last = first + rows.stop - rows.start
                getattr(self.parameters, name)[rows].set(np.ascontiguousarray(values[first:last]))
                first = last
        self.states[run].phi[:] = state["phi"]
        self.adams[run].t = self.structure_adams[run].t = n_epochs * self.problem.n_steps

    def _rows(self, name: str, run: int) -> list[slice]:
        """Return the positions of a run in an array of the parameters."""
        first, last, n_classes = self._first[run], self._first[run + 1], self.states[run].layout.n_classes
        if name in ("theta", "direction", "v"):  # these arrays begin with the priors of all runs
            cells = slice(int(self._offset[first]), int(self._offset[last]))
            return [slice(run * n_classes, (run + 1) * n_classes), cells]
        return [slice(first, last)]

    @on_own_device
    def start_epoch(
        self, plans: Sequence[Plan | None], rates: Sequence[tuple[float, float]], temperatures: Sequence[float]
    ) -> None:
        """Launch one epoch of all runs, and return before it is finished.

        All arguments have one entry per run. If the plan of a run is None, the run stays unchanged. ``rates`` are the
        learning rates of the CPTs and of the structure logits. ``temperatures`` are the temperatures of the softmax in
        the structure gradient.
        """
        n_steps = self.problem.n_steps
        sizes, structure_sizes = np.zeros((2, len(plans), n_steps))
        is_streamed = np.zeros(len(plans), np.int32)
        is_active = np.array([plan is not None for plan in plans], np.int32)
        if any(plan is not None and not isinstance(plan.noise, NoiseStream) for plan in plans):
            self._allocate_noise()
        if self._graph is None:
            self._record()
        for run, plan in enumerate(plans):
            if plan is not None:
                self._order[run] = plan.order
                if isinstance(plan.noise, NoiseStream):
                    self._streams[run], is_streamed[run] = plan.noise, 1
                elif self._uniform is not None:
                    self._uniform[:, self._first[run] : self._first[run + 1]] = plan.noise
                sizes[run] = self.adams[run].advance(n_steps, rates[run][0])
                structure_sizes[run] = self.structure_adams[run].advance(n_steps, rates[run][1])
        cupy().cuda.get_current_stream().synchronize()  # earlier transfers are complete
        self._is_active, steps = is_active, self._steps
        with self._stream:
            try:
                steps.order.set(self._order)
                if self._uniform is not None and (is_active > is_streamed).any():
                    steps.uniform.set(self._uniform)
                steps.streams.set(self._streams)
                steps.is_streamed.set(is_streamed)
                steps.step_sizes.set(sizes.astype(steps.step_sizes.dtype))
                steps.structure_step_sizes.set(structure_sizes)
                steps.temperature.set(np.array(temperatures, np.float64))
                steps.is_active.set(is_active)
                self._scratch.total.fill(0)
                self._scratch.is_finite.fill(1)
                self.n_epochs += 1
                self._launch()
            except BaseException:  # also wait after an interrupt: memory that CUDA still writes to must not be reused
                self._stream.synchronize()
                raise

    def _allocate_noise(self) -> None:
        """Allocate the noise before the first epoch whose noise is drawn on the host."""
        if self._uniform is None:
            shape = self.problem.n_steps, self.problem.n_tables
            uniform = cupy().empty(shape, np.float32)
            self._steps = self._steps._replace(uniform=uniform, uniform_steps=self.problem.n_steps)
            self._uniform, self._graph = np.zeros(shape, np.float32), None

    def _record(self) -> None:
        """Execute a block of steps without active runs, and record it as a graph.

        Graphs are used because separate launches take as long as the steps themselves. In this method, CUDA allocates
        all memory for kernels and graphs, before an epoch changes parameters.
        """
        epoch = cuda_train.Epoch(self.problem, self.parameters, self._steps, self._scratch)
        cupy().cuda.get_current_stream().synchronize()
        with self._stream:
            try:
                self._steps.is_active.set(np.zeros(len(self.states), np.int32))
                epoch.run_block()
                epoch.end()
                self._stream.begin_capture()
                try:
                    epoch.run_block()
                finally:
                    graph = self._stream.end_capture()
                graph.launch(self._stream)
                self._scratch.position.fill(0)  # return to the first step
            finally:
                self._stream.synchronize()
        self._epoch, self._graph = epoch, graph

    def _launch(self) -> None:
        """Launch an epoch as a sequence of graphs, one per block of steps."""
        for _ in range(self._epoch.n_blocks):
            self._graph.launch(self._stream)
        self._epoch.end()

    @on_own_device
    def finish_epoch(self) -> list[float]:
        """Wait for the epoch, copy the structure logits to the states, and return the mean loss of each run.

        The loss is nan for runs without a plan, and for runs whose parameters are no longer finite.
        """
        self._stream.synchronize()
        phi = self.parameters.phi.get()
        for run, state in enumerate(self.states):
            state.phi[:] = phi[self._first[run] : self._first[run + 1]]
        is_sound = self._scratch.is_finite.get().astype(bool) & self._is_active.astype(bool)
        return np.where(is_sound, self._scratch.total.get() / self.problem.n_steps, np.nan).tolist()

    @on_own_device
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
    """Return the constants of the training on the device. The CPTs of all runs are numbered consecutively."""
    real, d, n_runs = states[0].cells.dtype, data.n_features, len(states)
    sizes = [np.diff(state.layout.offset) for state in states]
    groups = [state.candidates.group for state in states]
    first = np.append(0, np.cumsum([len(n) for n in sizes]))
    ends = [group[1:] + start for group, start in zip(groups, first, strict=False)]
    longest = np.concatenate([np.maximum.reduceat(n, group[:-1]) for n, group in zip(sizes, groups, strict=True)])
    if longest.max() > _MOST_CELLS:
        raise ValueError(
            f"on device={data.device!r}, a CPT must have at most {_MOST_CELLS:,} parameters, but one of feature "
            f"{int(longest.argmax()) % d} has {int(longest.max()):,}. Use fewer values per column or fewer parents, or "
            f"device='cpu'."
        )
    forms = [state.fixed_point for state in states]
    size = int(min(batch_size, data.n_samples))
    n_steps = data.n_samples // size
    return cuda_train.Problem(
        n_features=d,
        n_tables=int(first[-1]),
        most_tables=max(len(n) for n in sizes),
        n_steps=n_steps,
        block_steps=_block_steps(n_steps),
        batch_size=size,
        batch_stride=_batch_stride(size, data.n_classes, real),
        n_samples=data.n_samples,
        team=BLOCK if data.n_classes * np.mean(data.n_states) >= _LONG_ROW else WARP,
        codes=_there(data.codes.T),
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
    """Return an array (n_tables, 4) with (feature over all runs, run, feature, row length) of each CPT of a run."""
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
        uniform=empty((problem.block_steps, problem.n_tables), np.float32),
        streams=empty((n_runs, 6), np.uint64),
        is_streamed=empty(n_runs, np.int32),
        step_sizes=empty((n_runs, n_steps), real),
        structure_step_sizes=empty((n_runs, n_steps), np.float64),
        temperature=empty(n_runs, np.float64),
        is_active=empty(n_runs, np.int32),
        decay=_there((adam.beta1 / np.sqrt(adam.beta2)) ** np.arange(DECAY_STEPS), real),
        n_decay=DECAY_STEPS,
        uniform_steps=problem.block_steps,
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
        edges=empty(n_tables if nodes else 0, np.float64),
        work=empty((n_runs, 6, nodes), np.int32),
        is_finite=empty(n_runs, np.int32),
    )


def _there(array: Any, dtype: Any = None) -> Any:
    """Return a copy on the CUDA device."""
    return to_device(np.asarray(array, dtype))[0]
