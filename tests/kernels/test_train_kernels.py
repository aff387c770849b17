"""The pieces of the fused engine, and a tiny whole epoch; tests/training/test_engines.py compares trajectories."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn import CandidateSets, EncodedData, FixedPoint, Hybrid
from tanlearn.kernels import losses, train
from tanlearn.kernels._lanes import padded
from tanlearn.kernels.scores import Families
from tanlearn.kernels.sweep import SWEEP_SCRATCH
from tanlearn.kernels.trees import Graph
from tanlearn.training.engines import FusedEngine
from tanlearn.training.missing_value_scratch import allocate_missing_values
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.tan_state import State, plan_epoch

REAL = np.float32


def make(
    codes,
    y,
    child,
    parent,
    n_states,
    *,
    arborescence=False,
    loss=losses.JOINT_NLL,
    batch_size=4,
    cells=None,
    rounding=None,
    size_penalty=None,
):
    """Return problem, parameters and scratch of a small training on one thread."""
    n, d, n_tables, n_classes, lanes = len(y), len(codes), len(child), 2, padded(2)
    parents = np.stack([parent, np.full(n_tables, -1)], axis=1)
    offset = np.array(naive.offsets(child, parents, n_states, n_classes))
    theta = np.zeros(offset[-1] + lanes, REAL)
    theta[: offset[-1]] = np.log(0.5) if cells is None else cells
    problem = train.Problem(
        codes=np.asarray(codes, np.uint8),
        y=np.asarray(y),
        weight=np.ones(n, REAL),
        families=Families(np.asarray(child), parents, np.asarray(n_states), offset),
        group=np.searchsorted(child, np.arange(d + 1)),
        table_parent=parents[:, 0].copy(),
        loss=loss,
        loss_parameters=np.array([10, 1, 10], REAL),
        rounding=None if rounding is None else np.array(rounding, REAL),
        size_penalty=None if size_penalty is None else np.array(size_penalty, float),
    )
    parameters = train.Parameters(
        theta=theta,
        direction=np.zeros_like(theta),
        v=np.zeros_like(theta),
        n_undrawn=np.zeros(n_tables, np.intp),
        pending=np.zeros(n_tables, REAL),
        phi=np.zeros(n_tables),
        phi_m=np.zeros(n_tables),
        phi_v=np.zeros(n_tables),
    )
    nodes = 2 * d + 1
    scratch = train.Scratch(
        batch_codes=np.empty((d, batch_size), np.uint8),
        scores=np.zeros((batch_size, lanes), REAL),
        d_scores=np.zeros((batch_size, lanes), REAL),
        noise=np.empty(n_tables, REAL),
        perturbed=np.empty(n_tables),
        selected=np.empty(d, np.intp),
        d_choice=np.zeros(n_tables),
        d_phi=np.empty(n_tables),
        graph=Graph(np.empty((nodes, nodes)), *np.empty((2, nodes, nodes), np.int32), np.empty((6, nodes), np.int32))
        if arborescence
        else None,
        start=np.empty((1, batch_size), np.int32),
        d_table=np.zeros((1, offset[-1] + lanes), REAL),
        buffer=np.zeros((1, offset[-1] + lanes + SWEEP_SCRATCH), REAL),
    )
    return problem, parameters, scratch


def missing_values_of(problem, batch_size):
    """Return the work arrays for missing values, on one thread."""
    families = problem.families
    return allocate_missing_values(
        problem.codes, families.n_states, 2, families.offset[-1], (1, batch_size), is_normalized=True
    )


def make_steps(order, uniform, rate=0.1, structure_rate=0.1, temperature=1.0):
    n_steps = len(order)
    decay = (0.9 / np.sqrt(0.999)) ** np.arange(20)
    return train.Steps(
        order=np.asarray(order),
        uniform=uniform,
        step_sizes=np.full(n_steps, rate, REAL),
        structure_step_sizes=np.full(n_steps, structure_rate),
        decay=decay.astype(REAL),
        beta1=REAL(0.9),
        beta2=REAL(0.999),
        epsilon=REAL(1e-7),
        temperature=temperature,
    )


@pytest.mark.parametrize("arborescence", [False, True])
@pytest.mark.parametrize("choice", [False, True])
def test_an_epoch_lowers_the_loss_and_keeps_tables_normalised(arborescence, choice):
    """Two features, each the class itself; with a choice, each may have the other as its parent (or only 1 has 0)."""
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    if not choice:
        child, parent = np.array([0, 1]), [-1, 0]
    elif arborescence:
        child, parent = np.array([0, 0, 1, 1]), [-1, 1, -1, 0]
    else:
        child, parent = np.array([0, 1, 1]), [-1, -1, 0]
    problem, parameters, scratch = make(
        np.stack([y, y]), y, child, parent, [2, 2], arborescence=arborescence and choice, loss=losses.HYBRID
    )
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(3):
        order = rng.permutation(8).reshape(2, 4)
        steps = make_steps(order, rng.random((2, len(child)), dtype=REAL))
        totals.append(train.train_epoch(problem, parameters, steps, scratch, None))
    assert totals[0] > totals[1] > totals[2]
    assert parameters.phi.any() == choice
    np.testing.assert_allclose(np.exp(parameters.theta[:2]).sum(), 1, rtol=1e-6)
    for first, last in zip(problem.families.offset[:-1], problem.families.offset[1:], strict=True):
        np.testing.assert_allclose(np.exp(parameters.theta[first:last]).reshape(2, -1).sum(axis=0), 1, rtol=1e-6)


def hopeless_problem():
    """Feature 1 has three tables: the second is chosen by far, the third was drawn 2 steps ago, the first never."""
    y = np.array([0, 1, 1, 0])
    cells = np.log(np.array([0.5, 0.5, *[0.3, 0.6, 0.7, 0.4] * 4]))
    problem, parameters, scratch = make(np.stack([y, 1 - y]), y, [0, 1, 1, 1], [-1] * 4, [2, 2], cells=cells)
    parameters.direction[:-16] = 0.1
    parameters.v[:-16] = 0.1
    parameters.n_undrawn[:] = [0, 30, 5, 2]
    return problem, parameters, scratch


def test_what_an_undrawn_table_moves_is_pending_until_it_is_looked_at():
    problem, parameters, scratch = hopeless_problem()
    before = parameters.theta.copy()
    steps = make_steps([[0, 1, 2, 3]], np.full((1, 4), 0.5, REAL), structure_rate=0.0)
    parameters.phi[:] = [0, -50, 50, -50]
    arguments = problem, parameters, steps, scratch
    train.begin_step(0, *arguments, None)
    train.step_tables(0, 0, 2, 0, *arguments, None)
    assert parameters.n_undrawn.tolist() == [0, 31, 0, 3]
    assert parameters.pending.tolist() == [0, 0, 0, steps.step_sizes[0] * steps.decay[3]]  # 31 steps: nothing is left
    first, last = problem.families.offset[3:5]
    assert np.array_equal(parameters.theta[first:last], before[first:last])
    assert scratch.d_choice[1] == scratch.d_choice[3] == 0
    assert scratch.d_choice[2] != 0
    moving = parameters.direction, parameters.theta, parameters.pending, scratch.buffer[0]
    train.apply_pending(3, 2, problem.families.offset, *moving)
    assert not parameters.pending.any()
    moved = before[first:last].astype(float) - 0.1 * float(steps.step_sizes[0] * steps.decay[3])
    expected = naive.normalize(moved.reshape(2, 2))
    np.testing.assert_allclose(parameters.theta[first:last].reshape(2, 2), expected, atol=1e-6)


def test_a_table_in_the_race_catches_up_before_its_gradient_is_taken():
    problem, parameters, scratch = hopeless_problem()
    parameters.pending[3] = 0.5
    parameters.direction[problem.families.offset[3] :] = np.arange(4 + 16)
    parameters.phi[:] = [0, 0, 3, 0]
    steps = make_steps([[0, 1, 2, 3]], np.full((1, 4), 0.5, REAL), structure_rate=0.0)
    train.begin_step(0, problem, parameters, steps, scratch, None)
    train.step_tables(0, 0, 2, 0, problem, parameters, steps, scratch, None)
    table = parameters.theta[problem.families.offset[3] : problem.families.offset[4]].reshape(2, 2)
    x = scratch.batch_codes[1]
    expected = sum(scratch.d_scores[k, c] * table[x[k], c] for k in range(4) for c in range(2))
    assert scratch.d_choice[3] == pytest.approx(expected, rel=1e-5)
    assert parameters.pending[3] == steps.step_sizes[0] * steps.decay[3]


def test_scores_and_choices_are_of_rounded_tables():
    """To multiples of a half: where log 0.3 = -1.2 becomes -1, log 0.6 and log 0.7 -0.5, and log 0.4 -1."""
    y = np.array([0, 1, 1, 0])
    cells = np.log(np.array([0.3, 0.7, *[0.3, 0.6, 0.7, 0.4] * 3]))
    problem, parameters, scratch = make(
        np.stack([y, 1 - y]), y, [0, 1, 1], [-1] * 3, [2, 2], cells=cells, rounding=(0.5, 15)
    )
    steps = make_steps([[0, 1, 2, 3]], np.full((1, 3), 0.5, REAL), structure_rate=0.0)
    train.begin_step(0, problem, parameters, steps, scratch, None)
    prior, table = np.array([-1, -0.5]), np.array([[-1, -0.5], [-0.5, -1]])
    np.testing.assert_array_equal(scratch.scores[:, :2], prior + table[y] + table[1 - y])
    train.step_tables(0, 0, 2, 0, problem, parameters, steps, scratch, None)
    expected = (scratch.d_scores[:, :2] * table[1 - y]).sum()
    np.testing.assert_allclose(scratch.d_choice[1:], expected, rtol=1e-6)


def test_a_priced_table_is_chosen_less():
    problem, parameters, scratch = make([[0, 0]], [0, 1], [0, 0], [-1] * 2, [2], batch_size=2, size_penalty=[0.0, 5.0])
    steps = make_steps([[0, 1]], np.full((1, 2), 0.5, REAL))
    scratch.noise[:], scratch.perturbed[:] = 0.0, np.log(0.5)
    train.finish_step(0, problem, parameters, steps, scratch)
    np.testing.assert_allclose(np.sign(parameters.phi), [1, -1])
    np.testing.assert_allclose(scratch.d_phi, [-1.25, 1.25])  # 0.5 * (0 - 2.5), 0.5 * (5 - 2.5)


def test_settling_and_the_step_of_the_logits():
    problem, parameters, scratch = hopeless_problem()
    parameters.pending[:] = 0.1
    train.apply_all_pending(problem, parameters, scratch)
    assert not parameters.pending.any()
    steps = make_steps([[0, 1, 2, 3]], np.full((1, 4), 0.5, REAL))
    scratch.perturbed[:] = 0.0
    scratch.d_choice[:] = [0, 3, 0, -3]
    train.finish_step(0, problem, parameters, steps, scratch)
    np.testing.assert_allclose(np.sign(parameters.phi), [0, -1, 0, 1], atol=1e-7)


@pytest.mark.parametrize("fixed_point", [None, FixedPoint(3, 2)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("n_classes", [3, 17])
def test_an_epoch_stays_inside_its_arrays(n_classes, missing, fixed_point):
    """As plain Python, a register read or written beyond the end of an array is an error."""
    rng = np.random.default_rng(0)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 3))
    X = np.stack([y % 2, y % 3, np.zeros_like(y)], axis=1)
    X[rng.random(X.shape) < missing] = -1
    data = EncodedData.from_codes(X, y, n_states=[2, 3, 1])
    sets = CandidateSets.from_lists([[1, 2], [0], [0, 1]])
    state = State(data, sets, "uniform", "float32", rng, fixed_point)
    engine = FusedEngine(state, data, np.ones(len(y), REAL), Hybrid(trade_off=3), 4)
    engine.epoch(plan_epoch(len(y), 4, sets.n_tables, rng), (0.1, 0.1), 1.0)
    assert not state.cells[state.layout.n_cells :].any()
    np.testing.assert_allclose(Normalized(state.layout, REAL).forward(state.theta), state.theta, atol=1e-5)


def test_incomplete_samples_choose_where_both_families_are_observed():
    """Feature 1 is drawn without a parent; what speaks for feature 0 is the difference of the entries of one sample."""
    missing = 255
    codes = np.array([[0, 1, missing, 1], [1, 0, 1, missing]])
    cells = np.log(np.array([0.5, 0.5, *[0.3, 0.6, 0.7, 0.4] * 2, *[0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6]]))
    problem, parameters, scratch = make(codes, [0, 1, 1, 0], [0, 1, 1], [-1, -1, 0], [2, 2], cells=cells)
    missing_values = missing_values_of(problem, 4)
    parameters.phi[:] = [0, 3, 0]
    steps = make_steps([[2, 0, 3, 1]], np.full((1, 3), 0.5, REAL), structure_rate=0.0)
    train.begin_step(0, problem, parameters, steps, scratch, missing_values)
    assert missing_values.batch.tolist() == [0, 1, 2, 3]
    assert missing_values.n_complete[0] == 2
    assert scratch.selected.tolist() == [0, 1]
    tables = cells[6:10].reshape(2, 2), cells[10:].reshape(2, 2, 2)
    own = cells[2:6].reshape(2, 2)
    scores = np.stack([own[0] + tables[0][1], own[1] + tables[0][0], tables[0][1], own[1]])
    np.testing.assert_allclose(scratch.scores[:, :2], np.log(0.5) + scores, rtol=1e-6)
    train.step_tables(0, 0, 2, 0, problem, parameters, steps, scratch, missing_values)
    d = scratch.d_scores[:, :2].astype(float)
    expected = [d[0] @ tables[0][1] + d[1] @ tables[0][0], d[0] @ tables[1][1, 0] + d[1] @ tables[1][0, 1]]
    np.testing.assert_allclose(scratch.d_choice[1:], expected, rtol=1e-5)


def test_an_incomplete_sample_speaks_for_a_candidate_by_the_difference_of_entries():
    """Feature 2 is missing, which neither of the tables of feature 1 needs."""
    codes = np.array([[0, 1], [1, 0], [255, 0]])
    rng = np.random.default_rng(0)
    cells = np.log(rng.dirichlet([1, 1], 11).ravel())
    problem, parameters, scratch = make(
        codes, [0, 1], [0, 1, 1, 2], [-1, -1, 0, -1], [2, 2, 2], batch_size=2, cells=cells
    )
    missing_values = missing_values_of(problem, 2)
    parameters.phi[:] = [0, 3, 0, 0]
    steps = make_steps([[0, 1]], np.full((1, 4), 0.5, REAL), structure_rate=0.0)
    train.begin_step(0, problem, parameters, steps, scratch, missing_values)
    plain, given = cells[6:10].reshape(2, 2), cells[10:18].reshape(2, 2, 2)
    train.step_tables(0, 0, 3, 0, problem, parameters, steps, scratch, missing_values)
    d = scratch.d_scores[:, :2].astype(float)  # the complete sample 1 comes first
    expected = [d[0] @ plain[0], d[0] @ given[0, 1] + d[1] @ (given[1, 0] - plain[1])]
    np.testing.assert_allclose(scratch.d_choice[1:3], expected, rtol=1e-5)
