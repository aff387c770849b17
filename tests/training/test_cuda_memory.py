"""Memory of CUDA populations: counted before it is allocated, and groups that are halved where it runs out."""

import importlib
import weakref
from dataclasses import replace

import numpy as np
import pytest
from support import host_cuda

from tanlearn import CandidateSets, EncodedData, GradientTraining, Hybrid, JointNLL, TANClassifier
from tanlearn.kernels._cuda import is_out_of_memory, without_frames
from tanlearn.search.runs import Part, Run, run_population
from tanlearn.training import cuda_population
from tanlearn.training.cuda_population import CudaPopulation, memory_need
from tanlearn.training.cuda_training import train_together
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.tan_state import State
from tanlearn.training.training import Training, train

MODULE = importlib.import_module("tanlearn.training.training")
N_STATES = (3, 4, 2, 5)
TREES = CandidateSets.from_lists([[1, 2], [0, 2, 3], [0], [1]])


class CUDARuntimeError(RuntimeError):
    """An error with the name and the status of CuPy's."""

    def __init__(self, status):
        super().__init__(f"cudaError {status}")
        self.status = status


class Memory:
    """Memory of the device that the host emulates, of limited size."""

    def __init__(self, monkeypatch, limit=np.inf):
        self.limit, self.used, self.most = limit, 0, 0
        for name in ("asarray", "empty", "full", "zeros"):
            monkeypatch.setattr(host_cuda.MODULE, name, self._counted(getattr(host_cuda.MODULE, name)))

    def _counted(self, make):
        def allocate(*arguments, **options):
            array = make(*arguments, **options)
            self._add(array.nbytes)
            weakref.finalize(array, self._add, -array.nbytes)
            return array

        return allocate

    def _add(self, n_bytes):
        if n_bytes > 0 and self.used + n_bytes > self.limit:
            raise MemoryError(f"Out of memory allocating {n_bytes:,} bytes")
        self.used += n_bytes
        self.most = max(self.most, self.used)


def make_data(n=60, n_classes=3, seed=0, device="cuda"):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in N_STATES], axis=1)
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=n_classes)
    return replace(data, device=device)


def make_training(data, seed, callback=None, n_epochs=4):
    """Return the arguments of a training; the second measures on validation rows."""
    settings = TrainingSettings(n_epochs=n_epochs, batch_size=20)
    options = {"validation": make_data(30, seed=9) if seed == 1 else None, "callback": callback}
    return (data, TREES, [Hybrid(), JointNLL(), Hybrid(trade_off=3)][seed % 3], settings), options


def train_members(n, data=None):
    """Train together; return the outcomes, and the epochs of the calls of all callbacks."""
    data, calls = make_data() if data is None else data, [[] for _ in range(n)]
    trainings = []
    for seed in range(n):
        arguments, options = make_training(data, seed, lambda report, seed=seed: calls[seed].append(report.epoch))
        trainings.append(Training(*arguments, np.random.default_rng(seed), **options))
    return train_together(trainings), calls


def assert_equal_outcomes(found, expected):
    """To the last bit, with the histories but for their times."""
    for one, other in zip(found, expected, strict=True):
        assert not isinstance(one, Exception), one
        np.testing.assert_array_equal(one.tables.cells, other.tables.cells)
        np.testing.assert_array_equal(one.parameters[0], other.parameters[0])
        np.testing.assert_array_equal(one.parameters[1], other.parameters[1])
        for name in ("epoch", "loss", "validation_error", "learning_rate", "structure_entropy"):
            assert [getattr(r, name) for r in one.history] == [getattr(r, name) for r in other.history]


@pytest.mark.parametrize(
    ("n", "n_classes", "dtype", "options", "kind"),
    [
        (60, 3, "float32", {}, "trees"),
        (60, 71, "float64", {"size_weight": 0.1}, "trees"),
        (3000, 2, "float32", {}, "choice"),  # three blocks of steps
    ],
)
def test_memory_is_counted_as_it_is_allocated(backend, monkeypatch, n, n_classes, dtype, options, kind):
    if backend == "cuda":
        pytest.skip("CuPy's pool rounds sizes")
    memory = Memory(monkeypatch)
    data = make_data(n, n_classes)
    sets = TREES if kind == "trees" else CandidateSets.from_lists([[], [0], [0, 1], [0, 1, 2]])
    states = [State(data, sets, "uniform", dtype, np.random.default_rng(run), **options) for run in range(3)]
    need = memory_need(states[0], data, 20)
    population = CudaPopulation(states, data, np.ones(n, np.float32), [Hybrid()] * 3, 20)
    reserved = cuda_population._RESERVED_BYTES
    assert population.problem.block_steps == (3 if n == 60 else 50)
    assert memory.used == need.shared - reserved + 3 * need.per_run


def test_many_classes_reserve_local_memory():
    """Beyond 128 classes, the scores of a thread are in local memory, which is allocated for all threads."""
    needs = []
    for n_classes in (128, 129):
        data = make_data(200, n_classes, device="cpu")
        state = State(data, TREES, "uniform", "float32", np.random.default_rng(0))
        needs.append(memory_need(state, data, 20).shared)
    assert needs[1] - needs[0] == 4 * 5 * 4 * cuda_population._MOST_THREADS


def test_cpts_that_32_bits_cannot_index_are_refused(backend, monkeypatch):
    """The largest CPT has 4 values, 5 of its parent and 3 classes."""
    training = Training(*make_training(make_data(), 0)[0], np.random.default_rng(0))
    n_cells = int(np.diff(training.state.layout.offset).max())
    monkeypatch.setattr(cuda_population, "_MOST_CELLS", n_cells)
    train_members(1)
    monkeypatch.setattr(cuda_population, "_MOST_CELLS", n_cells - 1)
    outcomes, _ = train_members(2)
    for error in outcomes:
        assert isinstance(error, ValueError)
        assert f"at most {n_cells - 1} parameters, but one of feature 1 has {n_cells}" in str(error)


@pytest.mark.parametrize("n_fitting", [2, 1])
def test_groups_are_halved_until_they_fit(backend, monkeypatch, n_fitting):
    if backend == "cuda":
        pytest.skip("the memory of a device is not limited by tests")
    expected, _ = train_members(5)
    training = Training(*make_training(make_data(), 0)[0], np.random.default_rng(0))
    need = training.cuda_memory()
    rows = need.shared - cuda_population._RESERVED_BYTES
    memory = Memory(monkeypatch, rows + (n_fitting + 0.7) * need.per_run)
    found, calls = train_members(5)
    assert_equal_outcomes(found, expected)
    assert calls == [[1, 2, 3, 4]] * 5
    assert rows + n_fitting * need.per_run <= memory.most <= memory.limit
    memory.limit = rows + 0.5 * need.per_run
    found, calls = train_members(3)
    assert calls == [[], [], []]
    for error in found:
        assert isinstance(error, MemoryError)
        assert "this training needs about 64.0 MiB on device='cuda', more than the free memory" in str(error)
    with pytest.raises(MemoryError, match=r"Use fewer candidates per feature .*or use device='cpu'"):
        train(*make_training(make_data(), 0)[0], np.random.default_rng(0))


def interrupted_at(monkeypatch, owner, name, number, error):
    """Let call ``number`` of a function raise an error, once; return the list of all calls."""
    calls, function = [], getattr(owner, name)

    def call(*arguments, **options):
        calls.append(1)
        if len(calls) == number:
            raise error
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize("when", ["recording", "graph", "begin", "middle", "last"])
def test_epochs_are_repeated_exactly_if_memory_runs_out_in_a_launch(backend, monkeypatch, when):
    """In the launches without an active run, and in those of an epoch."""
    if backend == "cuda":
        pytest.skip("launches of a graph cannot fail one by one")
    expected, _ = train_members(3)
    with monkeypatch.context() as context:
        calls = interrupted_at(context, host_cuda.RawKernel, "__call__", 0, None)
        train_members(3)
    # One training records 3 blocks, of which the middle one is only captured, and runs one block in each of 4 epochs.
    n = len(calls)
    number = {"recording": 5, "graph": n // 7 + 8, "begin": 3 * n // 7 + 4, "middle": n // 2, "last": n}[when]
    calls = interrupted_at(monkeypatch, host_cuda.RawKernel, "__call__", number, CUDARuntimeError(2))
    found, epochs = train_members(3)
    assert len(calls) > n
    assert_equal_outcomes(found, expected)
    assert epochs == [[1, 2, 3, 4]] * 3


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        (MODULE, "error_rate", 1),
        (MODULE, "error_rate", 3),
        (MODULE, "error_rate", 4),
        (Training, "plan", 2),
        (Training, "plan", 8),
        (Training, "outcome", 2),
        (CudaPopulation, "finish_epoch", 3),
        (CudaPopulation, "start_epoch", 3),
    ],
)
def test_epochs_continue_exactly_if_memory_runs_out_elsewhere(backend, monkeypatch, owner, name, number):
    """On validation rows, on the host, and before an epoch."""
    expected, _ = train_members(3)
    calls = interrupted_at(monkeypatch, owner, name, number, MemoryError("no memory"))
    found, epochs = train_members(3)
    assert len(calls) >= number
    assert_equal_outcomes(found, expected)
    assert epochs == [[1, 2, 3, 4]] * 3


def test_epochs_are_trained_again_if_parameters_cannot_be_kept(backend, monkeypatch):
    """Validation rows and the copy to the host find no memory: members continue from different epochs."""
    expected, _ = train_members(3)
    interrupted_at(monkeypatch, MODULE, "error_rate", 2, MemoryError("no memory"))
    interrupted_at(monkeypatch, CudaPopulation, "get_state", 2, MemoryError("no memory"))
    found, epochs = train_members(3)
    assert_equal_outcomes(found, expected)
    assert epochs == [[1, 2, 3, 4]] * 3


def test_a_callback_without_memory_ends_its_training_only(backend):
    data = make_data()

    def fail(report):
        raise MemoryError("of the user")

    made = [make_training(data, seed, fail if seed == 0 else None) for seed in (0, 2)]
    trainings = [Training(*arguments, np.random.default_rng(0), **options) for arguments, options in made]
    failed, trained = train_together(trainings)
    assert str(failed) == "of the user"
    assert len(trained.history) == 4


def test_other_errors_of_the_device_are_raised(backend, monkeypatch):
    interrupted_at(monkeypatch, CudaPopulation, "finish_epoch", 2, CUDARuntimeError(700))
    with pytest.raises(CUDARuntimeError, match="700"):
        train_members(2)


def test_errors_of_memory_are_told_from_others():
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(CUDARuntimeError(2))
    assert not is_out_of_memory(CUDARuntimeError(700))
    other = RuntimeError()
    other.status = 2
    assert not is_out_of_memory(other)


def test_errors_without_frames_keep_no_arrays():
    def fail():
        array = np.zeros(3)
        alive.append(weakref.ref(array))
        try:
            raise KeyError(array.shape)
        except KeyError as error:
            raise ValueError("with a cause") from error

    alive = []
    try:
        fail()
    except ValueError as error:
        kept = without_frames(error)
    assert alive[0]() is None
    assert isinstance(kept.__cause__, KeyError)


def make_part():
    data = make_data(90, device="cpu")
    return Part(data.take(np.arange(60)), data.take(np.arange(60, 90)).codes, data.y[60:])


@pytest.mark.parametrize(("n_fitting", "sizes"), [(0, [1, 1, 1, 1, 1]), (2, [2, 2, 1]), (5, [5])])
def test_runs_are_chosen_by_the_memory_that_they_need(backend, monkeypatch, n_fitting, sizes):
    """The rows, kernels and graphs count once."""
    found = []

    def count(group, progress):
        found.append(len(group))
        return train_together(group, progress)

    part = make_part()
    estimator = TANClassifier(
        loss=Hybrid(), calibrate=False, n_epochs=2, training=GradientTraining(batch_size=20), device="cuda"
    )
    (training,) = TANClassifier(**estimator.get_params(deep=False) | {"random_state": 0}).begin_encoded(part.data)
    need = training.cuda_memory()
    free = (need.shared + (n_fitting + 0.5) * need.per_run) / 0.8
    monkeypatch.setattr("tanlearn.search.runs.train_together", count)
    monkeypatch.setattr("tanlearn.search.runs._free_bytes", lambda device: free)
    runs = [Run(seed, 0, {"random_state": seed}) for seed in range(5)]
    results = sorted(run_population(estimator, [part], runs), key=lambda result: result.setting)
    assert found == sizes
    assert not any(result.failure for result in results)
