"""Gradient TAN with device="cuda": the models of device="cpu", one by one and many at once."""

import copy
import gc
import sys
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from support import host_cuda
from support.gradient_tans import LOSSES, problem

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    Candidates,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    EncodedData,
    FixedPoint,
    GradientTraining,
    Hybrid,
    NaiveBayesClassifier,
    StochasticGradient,
    TANClassifier,
    TANSearchCV,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.kernels import cpu
from tanlearn.kernels._cuda import cupy
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.search.runs import Part, Run, run_population
from tanlearn.training.cuda_population import CudaPopulation
from tanlearn.training.cuda_training import train_together
from tanlearn.training.engines import UnfusedEngine
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.tan_state import State, plan_epoch
from tanlearn.training.training import Training, train

SMALL = {"n_epochs": 6, "training": GradientTraining(batch_size=40, learning_rate=0.02), "random_state": 0}
SMALL |= {"loss": Hybrid(), "calibrate": False}


class OwnLoss:
    """The conditional likelihood, as a user would write it."""

    def __repr__(self):
        return "OwnLoss()"

    def value_and_gradient(self, scores, y):
        shifted = scores - scores.max(axis=1, keepdims=True)
        p = np.exp(shifted)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        value = -np.log(p[rows, y])
        p[rows, y] -= 1
        return value, p


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in (3, 4, 2, 5)], axis=1), y


def assert_close(model, expected, atol=1e-4):
    """The same structure, and tables to a hundredth of a step of the rate."""
    assert model.structure_ == expected.structure_
    assert type(model.tables_) is type(expected.tables_)
    np.testing.assert_allclose(model.tables_.cells, expected.tables_.cells, atol=atol)
    losses = [[report.loss for report in one.history_] for one in (model, expected)]
    np.testing.assert_allclose(*losses, rtol=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"candidates": "order-free", "loss": Hybrid(trade_off=10)},
        {"candidates": "unconstrained", "loss": ConditionalNLL()},
        {"bits": (3, 1)},
        {"bits": 3},
        {"size_weight": 0.01, "training__init": "uniform"},
        {"training__validation_fraction": 0.25, "training__patience": 3},
        {"training__batch_size": np.int64(30), "n_epochs": np.int64(4)},  # as from a grid
        {"calibrate": True},
        {"loss": None, "calibrate": True},  # what held-out rows choose
        {"loss": OwnLoss()},
        {"loss": OwnLoss(), "bits": 3, "candidates": "order-free"},
    ],
    ids=repr,
)
def test_models_are_those_of_the_cpu(backend, parameters):
    X, y = table()
    model, weight = TANClassifier(**SMALL).set_params(**parameters), np.linspace(0.5, 2, len(y))
    expected = clone(model).fit(X, y, sample_weight=weight)
    model.set_params(device="cuda").fit(X, y, sample_weight=weight)
    assert_close(model, expected)
    assert model.score(X, y) == expected.score(X, y)


def test_double_precision_moves_undrawn_tables_without_their_epsilon(backend):
    """The fused steps leave Adam's epsilon out of tables that are not drawn; a loss of one's own is exact there."""
    X, y = table()
    parameters = SMALL | {"training": GradientTraining(batch_size=40, learning_rate=0.02, dtype="float64")}
    expected = TANClassifier(**parameters | {"loss": ConditionalNLL()}).fit(X, y)
    assert_close(TANClassifier(**parameters | {"loss": ConditionalNLL()}, device="cuda").fit(X, y), expected, atol=1e-4)
    assert_close(TANClassifier(**parameters | {"loss": OwnLoss()}, device="cuda").fit(X, y), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["subset", "order-free"])
@pytest.mark.parametrize("options", [{}, {"fixed_point": FixedPoint(3, 1)}, {"size_weight": 0.01}], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unfused_engines_agree(backend, kind, options, dtype):
    """In double precision to rounding; Gumbel noise is drawn in single precision, by other logarithms."""
    data, sets = problem(kind, weighted=True)
    states = [State(data, sets, "uniform", dtype, np.random.default_rng(0), **options)]
    states.append(copy.deepcopy(states[0]))
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    engines = [
        UnfusedEngine(state, replace(data, device=device), weights, LOSSES[4])
        for device, state in zip(("cpu", "cuda"), states, strict=True)
    ]
    rng = np.random.default_rng(1)
    for _ in range(3):
        plan = plan_epoch(data.n_samples, 50, sets.n_tables, rng)
        expected, found = (engine.epoch(plan, (0.01, 0.01), 1.0) for engine in engines)
        np.testing.assert_allclose(found, expected, rtol=100 * np.finfo(dtype).eps)
    engines[1].pull()
    atol = {"float32": 1e-4, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(states[1].theta, states[0].theta, atol=atol)
    np.testing.assert_allclose(states[1].phi, states[0].phi, atol=1e-6)


def test_fixed_structures_train_there_too(backend):
    X, y = table()
    learner = StochasticGradient(n_epochs=5, learning_rate=0.02)
    expected = NaiveBayesClassifier(parameters=learner, random_state=0).fit(X, y)
    model = NaiveBayesClassifier(parameters=learner, random_state=0, device="cuda").fit(X, y)
    np.testing.assert_allclose(model.tables_.cells, expected.tables_.cells, atol=1e-4)


def test_missing_values_and_other_mistakes_are_errors(backend):
    X, y = table()
    gaps = X.astype(float)
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"device='cuda' \(unlike 'cpu'.*complete rows only.*first of X column 1"):
        TANClassifier(**SMALL, device="cuda").fit(gaps, y)
    with pytest.raises(FloatingPointError, match="diverged in epoch 1"):
        TANClassifier(**SMALL, device="cuda").set_params(training__learning_rate=1e9).fit(X, y)


class LateLoss(OwnLoss):
    """Right but for the last gradient of an epoch of four steps."""

    n_calls = 0

    def value_and_gradient(self, scores, y):
        value, d_scores = super().value_and_gradient(scores, y)
        LateLoss.n_calls += 1
        return value, d_scores * (np.nan if LateLoss.n_calls % 5 == 0 else 1)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_tables_that_are_no_longer_finite_are_an_error_after_the_last_step_too(backend, device):
    LateLoss.n_calls = 0
    X, y = table()
    with pytest.raises(FloatingPointError, match="diverged in epoch 1"):
        TANClassifier(**SMALL | {"n_epochs": 1, "loss": LateLoss()}, device=device).fit(X, y)


@pytest.mark.parametrize("loss", [Hybrid(), OwnLoss()], ids=["fused", "unfused"])
def test_an_interrupted_training_goes_on_to_the_same_model(backend, tmp_path, loss):
    X, y = table()
    whole = TANClassifier(**SMALL | {"loss": loss}, device="cuda").fit(X, y)

    def interrupt(report):
        if report.epoch == 3:
            raise KeyboardInterrupt

    broken = TANClassifier(**SMALL | {"loss": loss}, device="cuda")
    broken.set_params(training__checkpoint=str(tmp_path / "training"))
    with pytest.raises(KeyboardInterrupt):
        broken.set_params(training__callback=interrupt).fit(X, y)
    resumed = broken.set_params(training__callback=None).fit(X, y)
    np.testing.assert_array_equal(resumed.tables_.cells, whole.tables_.cells)
    assert resumed.structure_ == whole.structure_
    assert [report.loss for report in resumed.history_] == [report.loss for report in whole.history_]
    again = broken.fit(X, y)  # it is over: nothing is trained
    np.testing.assert_array_equal(again.tables_.cells, whole.tables_.cells)
    assert again.structure_probabilities_ == whole.structure_probabilities_


def test_a_warm_start_goes_on_there(backend):
    X, y = table()
    model = TANClassifier(**SMALL, warm_start=True, device="cuda").fit(X, y)
    first = model.history_[-1].loss
    assert model.fit(X, y).history_[0].loss < first + 0.1
    twin = TANClassifier(**SMALL, warm_start=True).fit(X, y).fit(X, y)
    assert_close(model, twin, atol=1e-3)


def make_part(gap=False):
    X, y = table()
    complete = EncodedData.from_codes(X, y)
    X[3, 1] = -1 if gap else X[3, 1]
    return Part(EncodedData.from_codes(X, y), complete.codes, y)


RUNS = [
    Run(0, 0, {"random_state": 0}),
    Run(1, 0, {"random_state": 1, "training__learning_rate": 0.05, "loss": Hybrid(trade_off=50, gamma=2)}),
    Run(
        2,
        0,
        {"random_state": 2, "candidates": Candidates("order-free", n_candidates=2), "class_prior": [0.2, 0.3, 0.5]},
    ),
    Run(3, 0, {"random_state": 3, "training__learning_rate": 1e9, "loss": Hybrid(trade_off=1e5)}),  # diverges
    Run(4, 0, {"random_state": 4, "bits": 3}),
    Run(5, 0, {"random_state": 5, "n_epochs": 3, "training__batch_size": 20}),
    Run(6, 0, {"random_state": 6, "training__patience": 2}),  # without validation rows
    Run(7, 0, {"random_state": 7, "training__validation_fraction": 0.2, "training__patience": 2}),
    Run(8, 0, {"random_state": 8, "loss": OwnLoss()}),
    Run(10, 0, {"random_state": 10, "training__dtype": "float64"}),
    Run(11, 0, {"random_state": 11, "device": "cpu"}),
    Run(12, 1, {"random_state": 12}),  # on rows with gaps, which the CPU sums out
    Run(14, 0, {"random_state": 14, "class_prior": [1e-9, 0.5, 0.5 - 1e-9], "bits": (2, 1)}),  # not to be said so
    Run(13, 0, {"random_state": 13, "class_prior": [0.5, 0.5]}),
    Run(9, 0, {"random_state": 9, "training__callback": lambda report: 0 / (2 - report.epoch)}),
]


@pytest.mark.parametrize("most", [256, 3])
def test_a_population_is_that_of_the_cpu(backend, monkeypatch, most):
    """Run by run, failures included, whether all go together or three at a time."""
    monkeypatch.setattr("tanlearn.search.runs.MOST_TOGETHER", most)
    estimator = TANClassifier(**{name: value for name, value in SMALL.items() if name != "random_state"})
    runs = [run for run in RUNS if run.setting not in (11, 12)]
    expected = sorted(run_population(estimator, [make_part()], runs, n_jobs=1), key=lambda result: result.setting)
    estimator.set_params(device="cuda")
    found = sorted(run_population(estimator, [make_part(), make_part(gap=True)], RUNS), key=lambda one: one.setting)
    assert "complete rows only" in found.pop(12).failure
    assert not found.pop(11).failure
    for one, other in zip(found, expected, strict=True):
        assert (one.setting, one.failure, one.n_parameters) == (other.setting, other.failure, other.n_parameters)
        np.testing.assert_equal(one.score, other.score)
    assert [result.setting for result in found if result.failure] == [3, 6, 9, 13, 14]


def test_a_population_takes_its_steps_together(backend, monkeypatch):
    """The launches of an epoch serve all runs."""
    sizes = []

    class Counted(cuda_train.Epoch):
        def __init__(self, problem, parameters, steps, scratch):
            sizes.append(len(problem.loss))
            super().__init__(problem, parameters, steps, scratch)

    monkeypatch.setattr(cuda_train, "Epoch", Counted)
    runs = [Run(seed, 0, {"random_state": seed}) for seed in range(5)]
    estimator = TANClassifier(
        loss=Hybrid(), n_epochs=3, calibrate=False, training=GradientTraining(batch_size=40), device="cuda"
    )
    assert len(list(run_population(estimator, [make_part()], runs))) == 5
    assert sizes == [5]


def test_an_interrupt_waits_for_the_device(backend, monkeypatch):
    """Memory that it still writes to must not be freed."""
    waits, finish = [], CudaPopulation.finish_epoch
    monkeypatch.setattr(CudaPopulation, "finish_epoch", lambda self: waits.append(1) or finish(self))
    plan, plans = Training.plan, []

    def interrupted(self):
        plans.append(1)
        if len(plans) == 4:  # two to begin with, and one more of the first
            raise KeyboardInterrupt
        return plan(self)

    monkeypatch.setattr(Training, "plan", interrupted)
    runs = [Run(seed, 0, {"random_state": seed}) for seed in range(2)]
    with pytest.raises(KeyboardInterrupt):
        list(run_population(TANClassifier(loss=Hybrid(), n_epochs=3, device="cuda"), [make_part()], runs))
    assert len(waits) == 1


def test_failures_keep_no_memory(backend, monkeypatch):
    """A population is gone when its results are out, though a run of it has failed."""
    made, alive = [], []
    init = CudaPopulation.__init__

    def remember(self, *arguments):
        made.append(weakref.ref(self))
        init(self, *arguments)

    monkeypatch.setattr(CudaPopulation, "__init__", remember)
    monkeypatch.setattr("tanlearn.search.runs.MOST_TOGETHER", 2)
    pool = SimpleNamespace(free_all_blocks=lambda: alive.append(sum(ref() is not None for ref in made)))
    monkeypatch.setattr(sys.modules["cupy"], "get_default_memory_pool", lambda: pool, raising=False)
    gc.collect()
    gc.disable()
    try:
        list(run_population(TANClassifier(**SMALL | {"device": "cuda", "random_state": None}), [make_part()], RUNS[:6]))
    finally:
        gc.enable()
    assert alive == [0, 0, 0]


def test_populations_follow_each_other(backend, monkeypatch):
    """Of two batch sizes and a loss of one's own, none is there while another is made."""
    made, alive = [], []
    kinds = {CudaPopulation: CudaPopulation.__init__, UnfusedEngine: UnfusedEngine.__init__}

    def remember(self, *arguments):
        alive.append(sum(ref() is not None for ref in made))
        made.append(weakref.ref(self))
        kinds[type(self)](self, *arguments)

    for kind in kinds:
        monkeypatch.setattr(kind, "__init__", remember)
    runs = [Run(0, 0, {}), Run(1, 0, {"training__batch_size": 20}), Run(2, 0, {"loss": OwnLoss()}), Run(3, 0, {})]
    gc.collect()
    gc.disable()
    try:
        estimator = TANClassifier(loss=Hybrid(), n_epochs=3, calibrate=False, device="cuda", random_state=0)
        results = list(run_population(estimator, [make_part()], runs))
    finally:
        gc.enable()
    assert not any(result.failure for result in results)
    assert alive == [0, 0, 0]


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_interrupt_of_launches_waits_for_the_device(backend, monkeypatch, epoch):
    """And ends the recording of a graph."""
    if backend == "cuda":
        pytest.skip("CuPy's streams cannot be watched")
    log, calls = [], []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == epoch:
            raise KeyboardInterrupt

    monkeypatch.setattr(cuda_train.Epoch, "run_block", interrupted)
    stream = type(cupy().cuda.Stream())
    for name in ("end_capture", "synchronize"):
        method = getattr(stream, name)
        monkeypatch.setattr(stream, name, lambda self, name=name, method=method: log.append(name) or method(self))
    with pytest.raises(KeyboardInterrupt):
        TANClassifier(loss=Hybrid(), n_epochs=3, calibrate=False, device="cuda", random_state=0).fit(*table())
    assert log[-1] == "synchronize"
    assert log.count("end_capture") == epoch - 1


#: What only the CPU should do: counting, scores, steps.
CPU_KERNELS = {
    "tanlearn.kernels.counts": ["count_classes", "count_families", "count_pairs"],
    "tanlearn.kernels.bits": ["count_packed_pairs"],
    "tanlearn.kernels.scores": ["log_joint", "log_joint_adjoint", "choice_gradient"],
    "tanlearn.kernels.upward": ["log_joint_upward"],
    "tanlearn.kernels.aode": ["log_sum_joint"],
    "tanlearn.kernels.mathematics": ["normalize_adjoint"],
    "tanlearn.kernels.train": ["train_epoch"],
    "tanlearn.kernels.cpu": [name for name in vars(cpu) if not name.startswith("_") and name != "normalize"],
}


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        NaiveBayesClassifier(parameters=StochasticGradient(n_epochs=2)),
        BayesNetClassifier(structure=ChowLiu(), parameters=ConjugateGradient(max_iter=3)),
        BayesNetClassifier(structure=KDependence(k=2), parameters=LBFGS(max_iter=3)),
        BayesNetClassifier(structure=ChowLiu(), parameters=CrossTuned(cv=2)),
        AODEClassifier(),
        TANClassifier(n_epochs=2, random_state=0),
        TANClassifier(n_epochs=2, random_state=0, training=GradientTraining(validation_fraction=0.2)),
        TANClassifier(n_epochs=2, random_state=0, bits=3),
        TANClassifier(n_epochs=2, random_state=0, loss=OwnLoss()),
        TANSearchCV(
            TANClassifier(n_epochs=2), {"training__learning_rate": [0.01, 0.1]}, n_iter=2, cv=2, random_state=0
        ),
    ],
    ids=repr,
)
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_nothing_is_counted_trained_or_predicted_on_the_cpu(backend, monkeypatch, model, device):
    """Or on another device than the named one."""
    if backend == "cuda" and device != "cuda":
        pytest.skip("there may be one device only")
    used = devices_of_arrays(monkeypatch)
    for name, functions in CPU_KERNELS.items():
        for function in functions:
            monkeypatch.setattr(f"{name}.{function}", lambda *arguments: pytest.fail("on the CPU"))
    X, y = table(90)
    names = [name for name in model.get_params() if name.split("__")[-1] == "device"]
    model = clone(model).set_params(**dict.fromkeys(names, device))
    model.fit(X, y)
    gaps = X.astype(float)
    gaps[::3, 1] = np.nan
    model.predict(X)
    model.predict_proba(X)
    if "k=2" not in repr(model):  # two parents: gaps are summed out on the CPU only
        model.predict(gaps)
    if hasattr(model, "with_bits"):
        model.with_bits(3, X, y).predict(X)
    if hasattr(model, "partial_fit") and not hasattr(model, "history_") and getattr(model, "parameters", 1) is None:
        clone(model).partial_fit(X, y, classes=[0, 1, 2]).predict(X)
    if backend == "host":
        assert used == {1 if device == "cuda:1" else 0}
        assert host_cuda.Device.current() == 0


def devices_of_arrays(monkeypatch):
    """Return the set of devices on which the host's emulation allocates arrays from now on."""
    used = set()

    def counted(make):
        def allocate(*arguments, **options):
            used.add(host_cuda.Device.current())
            return make(*arguments, **options)

        return allocate

    for name in ("asarray", "empty", "full", "zeros"):
        monkeypatch.setattr(host_cuda.MODULE, name, counted(getattr(host_cuda.MODULE, name)))
    return used


def test_members_of_a_population_stop_when_they_would_alone(backend):
    """A callback's word, patience, and fewer epochs."""
    part = make_part()
    data = EncodedData(**{**vars(part.data), "device": "cuda"})
    stops = [None, lambda report: report.epoch == 2, None]
    epochs = [5, 5, 3]

    def make(run):
        settings = TrainingSettings(n_epochs=epochs[run], batch_size=40)
        sets = TANClassifier(random_state=0).fit_encoded(part.data).candidates_
        return data, sets, Hybrid(), settings, np.random.default_rng(run)

    together = train_together([Training(*make(run), callback=stops[run]) for run in range(3)])
    assert [len(outcome.history) for outcome in together] == [5, 2, 3]
    for run, outcome in enumerate(together):
        alone = train(*make(run), callback=stops[run])
        np.testing.assert_array_equal(outcome.tables.cells, alone.tables.cells)
        np.testing.assert_array_equal(outcome.parameters[0], alone.parameters[0])


def test_searches_run_there(backend, capsys):
    """And say how far they are."""
    X, y = table(120)
    search = {"n_iter": 3, "cv": 2, "random_state": 0, "verbose": 1}
    grid = {"training__learning_rate": [0.01, 0.03], "loss": [Hybrid(trade_off=1), Hybrid(trade_off=20)]}
    results = []
    for device in ("cpu", "cuda"):
        estimator = TANClassifier(n_epochs=3, training=GradientTraining(batch_size=20), device=device)
        results.append(TANSearchCV(estimator, grid, **search).fit(X, y))
    assert results[0].best_params_ == results[1].best_params_
    lines = capsys.readouterr().out.splitlines()
    told = [
        f"epoch {epoch}/3 of 3 simultaneous trainings, {0 if epoch == 3 else 3} of them still running"
        for epoch in (1, 2, 3)
    ]
    assert [line for line in lines if line.startswith("epoch")] == 2 * told  # one population a fold
    np.testing.assert_allclose(*(found.cv_results_["mean_test_score"] for found in results), atol=1e-12)
    np.testing.assert_array_equal(results[0].predict(X), results[1].predict(X))


def test_nothing_is_trained_elsewhere_in_silence(monkeypatch):
    """Without CuPy, populations and searches are errors too, not results of the CPU."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    estimator = TANClassifier(n_epochs=2, device="cuda")
    with pytest.raises(ImportError, match=r"tanlearn\[cuda12\]"):
        list(run_population(estimator, [make_part()], RUNS[:1]))
    with pytest.raises(ImportError, match=r"tanlearn\[cuda12\]"):
        TANSearchCV(estimator, {"training__learning_rate": [0.1]}, n_iter=1).fit(*table())


def test_the_emulation_is_strict():
    """What a device would take amiss in silence is an error on the host."""
    text = """extern "C" __global__ void f(long long n, const float* x, float* y, int k) {
        y[0] = x[0] + k;
        ((float*)x)[k] = 9;
    }"""
    kernel = host_cuda.RawModule(code=text).get_function("f")
    x, y = host_cuda.MODULE.zeros(3, np.float32), host_cuda.MODULE.zeros(3, np.float32)
    n, k = np.int64(1), np.int32(1)
    with pytest.raises(AssertionError, match="argument 1 of f, <f4 was written to"):
        kernel((1,), (32,), (n, x, y, k))
    for arguments, message in [
        ((n, x, y), "takes 4 arguments, got 3"),
        ((n, x.array, y, k), "argument 1 of f, <f4: <class 'numpy.ndarray'>"),
        ((n, x, host_cuda.MODULE.zeros(3, np.float64), k), "argument 2 of f, >f4: float64"),
        ((n, x[::2], y, k), "argument 1"),
        ((n, x, y, np.int64(1)), "argument 3 of f, i4: int64"),
        ((n, x, y, 1), "argument 3 of f, i4: <class 'int'>"),
    ]:
        with pytest.raises(AssertionError, match=message):
            kernel((1,), (32,), arguments)
