"""The fused engine against its unfused twin: the same draws, the same trajectory to rounding."""

import copy

import numpy as np
import pytest
from oracles import elimination as naive_elimination
from oracles import networks as naive
from sklearn.base import clone
from support.gradient_tans import LOSSES, N_STATES, problem

from tanlearn import (
    Candidates,
    CandidateSets,
    EncodedData,
    FixedPoint,
    GradientTraining,
    Hybrid,
    IntegerTables,
    JointNLL,
    Structure,
    TANClassifier,
)
from tanlearn.kernels import trees
from tanlearn.structures.candidate_kinds import make_candidates
from tanlearn.training.engines import FusedEngine, UnfusedEngine, is_fusible
from tanlearn.training.losses import CompiledLoss, SoftHybrid, evaluate
from tanlearn.training.objectives import Objective
from tanlearn.training.optimizers import Adam
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.tan_state import Plan, State, plan_epoch


def make_engine(kind, state, data, loss, n_threads=1):
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    if kind is FusedEngine:
        return FusedEngine(state, data, weights, loss, 50, n_threads)
    return UnfusedEngine(state, data, weights, loss)


def run(engine, n_epochs, seed=1, rates=(0.01, 0.01)):
    rng = np.random.default_rng(seed)
    n_tables, n_samples = engine.state.candidates.n_tables, engine.data.n_samples
    return [
        engine.epoch(plan_epoch(n_samples, 50, n_tables, rng), rates, 2.0 / (epoch + 1)) for epoch in range(n_epochs)
    ]


def compare(data, sets, loss, n_epochs=3, **options):
    """Both engines from one start; returns the states and the losses."""
    fused = State(data, sets, "uniform", "float32", np.random.default_rng(0), **options)
    unfused = copy.deepcopy(fused)
    engines = make_engine(FusedEngine, fused, data, loss), make_engine(UnfusedEngine, unfused, data, loss)
    losses = [run(engine, n_epochs) for engine in engines]
    assert [engine.adam.t for engine in engines] == [data.n_samples // 50 * n_epochs] * 2
    return fused, unfused, *losses


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("kind", ["all", "subset", "unconstrained", "order-free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_engines_agree(loss, kind, weighted):
    """The same draws, and after twelve steps of up to 0.01 the same parameters to a hundredth of one step.

    Not closer, because where a gradient is as small as Adam's epsilon, its rounding error moves the step.
    """
    data, sets = problem(kind, weighted)
    start = State(data, sets, "uniform", "float32", np.random.default_rng(0)).theta
    fused, unfused, losses, expected = compare(data, sets, loss)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert np.abs(fused.theta - start).max() > 0.05
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    # The soft hybrid loss takes an exponential and a logarithm per class more, in single precision: without fused
    # multiplications, logits differ by 1.3e-5 after twelve steps.
    np.testing.assert_allclose(fused.phi, unfused.phi, atol=1e-4 if isinstance(loss, SoftHybrid) else 1e-5)
    assert np.abs(fused.phi).max() > 0.05


@pytest.mark.parametrize("kind", ["all", "order-free"])
@pytest.mark.parametrize("bits", [(3, 5), (3, 1), (1, 0), (4, -2), None])
def test_engines_agree_on_rounded_and_priced_tables(kind, bits):
    """Rounding is the same to the last bit but where a cell lies on an edge; none of these does."""
    data, sets = problem(kind, weighted=True)
    options = {"fixed_point": None if bits is None else FixedPoint(*bits), "size_weight": 0.01}
    fused, unfused, losses, expected = compare(data, sets, Hybrid(trade_off=20, gamma=2), **options)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    np.testing.assert_allclose(fused.phi, unfused.phi, atol=1e-5)
    plain = compare(data, sets, Hybrid(trade_off=20, gamma=2))[0]
    assert np.abs(fused.phi - plain.phi).max() > 1e-3
    if bits is not None:
        assert np.abs(fused.theta - plain.theta).max() > 1e-3
        assert isinstance(fused.most_probable()[1], IntegerTables)


@pytest.mark.parametrize("parents", [[-1] * 5, [-1, 0, 1, 0, 2], [[-1, -1], [0, -1], [0, 1], [1, 2], [3, 0]]])
def test_engines_agree_on_fixed_structures(parents):
    data, sets = problem(Structure(parents))
    fused, unfused, losses, expected = compare(data, sets, Hybrid(trade_off=20, gamma=2))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    assert not fused.phi.any()


def test_fused_parameters_stay_normalised():
    data, sets = problem("order-free")
    state = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    run(make_engine(FusedEngine, state, data, Hybrid(trade_off=20)), 40, rates=(0.1, 0.01))
    normalised = Normalized(state.layout, "float32").forward(state.theta)
    np.testing.assert_allclose(state.theta, normalised, atol=2e-5)


def test_wide_tables_use_two_byte_codes():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 300, 200), rng.integers(0, 2, 200)], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, 2, 200), n_states=[300, 2])
    assert data.codes.dtype == np.uint16
    sets = CandidateSets.from_lists([[], [0]])
    fused, unfused, _, _ = compare(data, sets, Hybrid())
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)


def test_only_built_in_losses_in_single_precision_are_fused():
    class Doubled(Hybrid):
        def value_and_gradient(self, scores, y):
            loss, d_scores = super().value_and_gradient(scores, y)
            return 2 * loss, 2 * d_scores

    assert is_fusible(Hybrid(), "float32")
    assert not is_fusible(Hybrid(), "float64")
    assert not is_fusible(Doubled(), "float32")
    assert isinstance(Doubled(), CompiledLoss)


def test_tables_that_are_not_drawn_move_on_as_in_the_unfused_engine():
    """One candidate is drawn for 280 steps while the others move on, and are out of the race; then another is drawn."""
    data, sets = problem("all")
    fused = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    unfused = copy.deepcopy(fused)
    engines = make_engine(FusedEngine, fused, data, JointNLL()), make_engine(UnfusedEngine, unfused, data, JointNLL())
    favourite = np.zeros(sets.n_tables)
    favourite[sets.group[:-1]] = 100.0
    last = np.zeros(sets.n_tables)
    last[sets.group[1:] - 1] = 200.0
    parameters = engines[0].parameters
    for bias, n_epochs in ((0.0, 2), (favourite, 70), (last, 1)):
        before = fused.theta.copy()
        for state, engine in zip((fused, unfused), engines, strict=True):
            state.phi += bias
            run(engine, n_epochs, rates=(1e-3, 0.0))
        if n_epochs == 70:
            undrawn = np.repeat(parameters.n_undrawn > 210, np.diff(fused.layout.offset))
            assert (parameters.n_undrawn > 210).sum() == sets.n_tables - sets.n_features
            assert np.abs(fused.theta[3:][undrawn] - before[3:][undrawn]).max() > 1e-3
        np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    assert (parameters.n_undrawn[sets.group[1:] - 1] == 0).all()


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("kind", ["subset", "order-free"])
def test_threads_change_nothing(kind, missing, monkeypatch):
    data, _ = problem("all", n=400)
    table = np.tile(data.codes.T.astype(int), 20)
    table[np.random.default_rng(1).random(table.shape) < missing] = -1
    wide = EncodedData.from_codes(table, data.y)
    sets = make_candidates(Candidates(kind, n_candidates=30), 100, rng=np.random.default_rng(0))
    monkeypatch.setattr("tanlearn.training.engines.SHARED_ROWS", sets.n_tables * 50 // 4)
    thetas = []
    for n_threads in (1, 2, 3, 7):
        state = State(wide, sets, "uniform", "float32", np.random.default_rng(0))
        engine = make_engine(FusedEngine, state, wide, Hybrid(trade_off=20), n_threads)
        assert engine.n_threads == n_threads
        run(engine, 1)
        thetas.append(np.append(state.theta, state.phi))
    for theta in thetas[1:]:
        np.testing.assert_array_equal(theta, thetas[0])


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 16, 20, 33])
def test_engines_agree_on_rows_of_one_register_and_of_more(n_classes, missing):
    rng = np.random.default_rng(0)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 250))
    X = np.stack([(y * rng.integers(0, 2, len(y)) + rng.integers(0, k, len(y))) % k for k in (3, 2, 4)], axis=1)
    X[rng.random(X.shape) < missing] = -1
    data = EncodedData.from_codes(X, y, n_states=[3, 2, 4])
    sets = CandidateSets.from_lists([[], [0], [0, 1]])
    fused, unfused, losses, expected = compare(data, sets, Hybrid(trade_off=20, gamma=2))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)


def test_the_estimators_threads_reach_the_engine(monkeypatch):
    data, sets = problem("subset")
    asked = []

    class Spy(FusedEngine):
        def __init__(self, *arguments):
            asked.append(arguments[-1])
            super().__init__(*arguments)

    monkeypatch.setattr("tanlearn.training.training.FusedEngine", Spy)
    for n_jobs in (None, 3):
        TANClassifier(candidates=sets, loss=Hybrid(), n_epochs=1, calibrate=False, n_jobs=n_jobs).fit_encoded(data)
    assert asked == [1, 3]


def test_small_steps_are_not_shared():
    data, sets = problem("subset")
    state = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    assert make_engine(FusedEngine, state, data, Hybrid(), n_threads=4).n_threads == 1


@pytest.mark.parametrize("parents", [[-1, 0, 1, 2, 1], [[-1, -1], [0, -1], [0, 1], [2, 1], [3, 0]]])
def test_rows_that_miss_values_are_trained_as_the_objective_says(parents):
    """A step on all rows is one of Adam along the gradient of the marginalised loss."""
    structure = Structure(parents)
    data, sets = problem(structure, weighted=True)
    table = data.codes.T.astype(int)
    table[np.random.default_rng(5).random(table.shape) < 0.2] = -1
    data = EncodedData.from_codes(table, data.y, n_states=N_STATES, sample_weight=data.weights)
    state = State(data, sets, "uniform", "float64", np.random.default_rng(0))
    objective = Objective(state.layout, data, Hybrid(trade_off=20, gamma=2))
    rho = state.theta.copy()
    value, gradient = objective(rho)
    Adam(rho).step(rho, gradient, 0.01)
    engine = make_engine(UnfusedEngine, state, data, Hybrid(trade_off=20, gamma=2))
    plan = plan_epoch(data.n_samples, data.n_samples, sets.n_tables, np.random.default_rng(1))
    assert engine.epoch(plan, (0.01, 0.0), 1.0) == pytest.approx(value, rel=1e-6)  # weights are float32
    np.testing.assert_allclose(state.theta, objective.theta(rho), atol=1e-6)


def gappy_problem(kind, share):
    """Return rows that miss a share of their values, or of that of some features, and candidates."""
    data, sets = problem(kind, weighted=True)
    table = data.codes.T.astype(int)
    table[np.random.default_rng(5).random(table.shape) < np.broadcast_to(share, table.shape)] = -1
    return EncodedData.from_codes(table, data.y, n_states=N_STATES, sample_weight=data.weights), table, sets


@pytest.mark.parametrize("bits", [None, (2, 2)])
@pytest.mark.parametrize("kind", ["all", "order-free"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_step_on_rows_with_gaps_follows_what_every_row_says_by_itself(kind, share, bits):
    """Scores and expected counts by enumeration; candidates by the entries that would be exchanged."""
    data, table, sets = gappy_problem(kind, share)
    fixed_point = None if bits is None else FixedPoint(*bits)
    state = State(data, sets, "uniform", "float64", np.random.default_rng(0), fixed_point)
    cells = state.theta.copy() * 5  # far from the uniform distribution
    Normalized(state.layout, "float64").forward(cells, out=state.theta)
    engine = make_engine(UnfusedEngine, state, data, Hybrid(trade_off=5, gamma=2))
    rho, theta, phi = engine.parameters.rho.copy(), state.theta.copy(), state.phi.copy()
    engine.parameters.rho[:] = theta
    rho[:] = theta
    order, uniform = plan_epoch(data.n_samples, 40, sets.n_tables, np.random.default_rng(2))
    noise = np.empty_like(uniform[0])
    trees.gumbel(uniform[0], noise)
    perturbed = state.perturb(noise)
    selected = state.draw(perturbed).tolist()
    assert (sets.parents[selected, 0] >= 0).sum() > 1
    batch, cells = order[0], state.scoring_cells()
    offset, parents = state.layout.offset, sets.parents[selected]
    drawn = np.concatenate([cells[:3], *(cells[offset[t] : offset[t + 1]] for t in selected)])
    scores = np.array([naive_elimination.log_joint(table[n], drawn, parents, N_STATES, 3) for n in batch])
    losses, d_scores = evaluate(engine.loss, scores, data.y[batch])
    d_scores = d_scores * (engine.weights[batch] / 40)[:, np.newaxis]
    d_drawn, d_choice = np.zeros(len(drawn)), np.zeros(sets.n_tables)
    for n, d_row in zip(batch, d_scores, strict=True):
        d_drawn += naive_elimination.expected_counts(table[n], d_row, drawn, parents, N_STATES, 3)
        d_choice += naive.exchanges(table[n].tolist(), d_row, cells, sets.child, sets.parents, selected, N_STATES, 3)
    d_cells = np.zeros_like(theta)
    state.layout.add_cells(d_cells, selected, d_drawn)
    Normalized(state.layout).pull_back(theta, d_cells, out=d_cells, tables=np.array(selected))
    Adam(rho).step(rho, d_cells, 0.01)
    d_phi = np.empty_like(phi)
    trees.structure_gradient(perturbed, sets.group, 1.5, d_choice, d_phi)
    Adam(phi).step(phi, d_phi, 0.02)
    loss = engine.epoch(Plan(order[:1], uniform[:1]), (0.01, 0.02), 1.5)
    assert loss == pytest.approx((losses * engine.weights[batch]).sum() / 40, rel=1e-6)
    np.testing.assert_allclose(state.theta, Normalized(state.layout).forward(rho), atol=1e-6)
    np.testing.assert_allclose(state.phi, phi, atol=1e-6)
    assert np.abs(d_phi).max() > 1e-3


@pytest.mark.parametrize("bits", [None, (2, 2)])
@pytest.mark.parametrize("kind", ["all", "unconstrained", "order-free", "fixed"])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9, [0.3, 0, 0, 0, 0], [0, 0, 0.3, 0, 0]], ids=str)
def test_engines_agree_on_rows_with_gaps(kind, share, bits):
    """Batches of complete rows, of rows with gaps, and of both; at 0.9 nearly all of a row is missing."""
    data, _, sets = gappy_problem("all" if kind == "fixed" else kind, share)
    if kind == "fixed":
        sets = CandidateSets.of_structure(Structure([-1, *range(data.n_features - 1)]))
    elif kind == "unconstrained":
        sets = CandidateSets(sets.parents, sets.group, arborescence=True)
    fixed_point = None if bits is None else FixedPoint(*bits)
    fused, unfused, losses, expected = compare(data, sets, Hybrid(trade_off=5, gamma=2), fixed_point=fixed_point)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    np.testing.assert_allclose(fused.phi, unfused.phi, atol=1e-5)
    assert kind == "fixed" or np.abs(fused.phi).max() > 1e-2


def chain(n_samples, noise, rng):
    """Return features that copy the one before them, or not, by the class: naive Bayes cannot see them."""
    y = rng.integers(0, 2, n_samples)
    X = rng.integers(0, 2, (n_samples, 5))
    for i in range(1, 5):
        X[:, i] = np.where(rng.random(n_samples) < noise, X[:, i], X[:, i - 1] ^ y)
    return X, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", [JointNLL(), Hybrid()], ids=["likelihood", "hybrid"])
@pytest.mark.parametrize("noise", [0.1, 0.02])
def test_a_structure_is_found_where_every_row_misses_something(loss, noise, dtype):
    rng = np.random.default_rng(0)
    X, y = chain(1500, noise, rng)
    model = TANClassifier(
        candidates=Candidates("all", ordering=np.arange(5)),
        loss=loss,
        n_epochs=20,
        training=GradientTraining(dtype=dtype),
        random_state=0,
    )
    whole = clone(model).fit_encoded(EncodedData.from_codes(X.copy(), y))
    X[np.arange(1500), rng.integers(0, 5, 1500)] = -1
    X[rng.random(X.shape) < 0.1] = -1
    gaps = clone(model).fit_encoded(EncodedData.from_codes(X, y))
    assert whole.structure_.parent.tolist() == gaps.structure_.parent.tolist() == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize("missing", [0, 1], ids=["parent", "child"])
def test_rows_that_miss_a_nearly_certain_edge_do_not_speak_against_it(missing):
    rng = np.random.default_rng(0)
    X, y = chain(4000, 0.02, rng)
    X = X[:, :2]
    X[rng.random(4000) < 0.8, missing] = -1
    sets = CandidateSets.from_lists([[], [0]])
    model = TANClassifier(candidates=sets, loss=JointNLL(), n_epochs=20, random_state=0)
    assert model.fit_encoded(EncodedData.from_codes(X, y)).structure_probabilities_[1][0] > 0.8
