"""Expected gains of features equal those by enumeration of all rows, values and plans."""

import numpy as np
import pytest
from oracles import networks as naive
from oracles import next_features as oracle
from support.small_networks import CASES, MISSING, N_CLASSES, N_STATES

from tanlearn.models import expected_gains as module
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.expected_gains import expected_gains, information_gain, utility_gain
from tanlearn.models.tables import Tables
from tanlearn.models.value_joints import log_joint_of_values, log_sum, value_starts
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

SAMPLES = [[-1, -1, -1, -1, -1], [1, -1, -1, -1, -1], [-1, 2, -1, -1, 0], [0, -1, 1, 1, -1], [-1, 0, 0, 1, 2]]
COMPLETE = [1, 2, 0, 1, 0]
UTILITY = [[1.0, 0.0, 0.7], [-2.0, 3.0, 0.5]]
PARENTS = [pytest.param(case.values[0], id=case.id) for case in CASES]


def network(parents, rng, *, has_zeros=False, is_normalized=True):
    """Return random cells, and the network of them."""
    parents = [list(row) for row in parents]
    start = naive.offsets(range(5), parents, N_STATES, N_CLASSES)
    cells = np.empty(start[-1])
    shapes = [(N_CLASSES, 1), *((N_STATES[i], -1) for i in range(5))]
    for (rows, columns), first, last in zip(shapes, [0, *start], start, strict=False):
        table = rng.exponential(size=last - first).reshape(rows, columns)
        if has_zeros and rows > 2:
            table[0, rng.integers(table.shape[1])] = 0.0
        if is_normalized:
            table /= table.sum(axis=0)
        with np.errstate(divide="ignore"):
            cells[first:last] = np.log(table).ravel()
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, N_STATES, N_CLASSES)
    joint = oracle.Joint(cells, parents, N_STATES.tolist(), N_CLASSES)
    return BayesNet(structure, Tables(layout, cells, is_normalized)), joint


def encoded(samples):
    """Return samples as codes."""
    codes = np.array(samples).T
    return np.where(codes < 0, MISSING, codes).astype(np.uint8)


def posterior(joint, sample):
    """Return the class probabilities of a sample."""
    p = joint.of(sample)
    return [x / sum(p) for x in p]


def gains(net, samples, priors, *, costs=(1.0,) * 5, **options):
    """Return the gains of all features without a value."""
    codes = encoded(samples)
    candidates = (codes == MISSING).T
    return expected_gains(
        net, codes, candidates, np.array(priors), options.pop("gain", information_gain), np.array(costs), **options
    )


def by_feature(wanted):
    """Return the gains of the oracle as a row, NaN for features with a value."""
    return [wanted.get(i, np.nan) for i in range(5)]


@pytest.mark.parametrize("parents", PARENTS)
@pytest.mark.parametrize(("has_zeros", "is_normalized"), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("is_dense", [True, False])
def test_joints_of_values_are_sums_over_all_rows(parents, has_zeros, is_normalized, is_dense, monkeypatch):
    if not is_dense:  # networks with several parents insert every value
        monkeypatch.setattr("tanlearn.models.value_joints._MOST_DENSE", 0)
    net, joint = network(parents, np.random.default_rng(0), has_zeros=has_zeros, is_normalized=is_normalized)
    samples = [*SAMPLES, COMPLETE]
    found = log_joint_of_values(net.tables, net.structure, encoded(samples), n_jobs=2)
    for sample, row in zip(samples, found, strict=True):
        wanted = [p for feature in oracle.value_joints(joint, sample) for p in feature]
        np.testing.assert_allclose(np.exp(row), wanted, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("parents", PARENTS)
def test_classes_that_are_impossible_have_no_joints(parents):
    net, _ = network(parents, np.random.default_rng(10))
    cells = net.tables.cells.copy()
    cells[N_CLASSES : N_CLASSES + 2 * N_CLASSES] = [np.log(0.5), 0.0, np.log(0.5), -np.inf]  # [value][class]
    net = BayesNet(net.structure, Tables(net.tables.layout, cells))
    joint = oracle.Joint(cells, [list(row) for row in parents], N_STATES.tolist(), N_CLASSES)
    sample = SAMPLES[1]
    assert joint.of(sample)[1] == 0.0 < joint.of(sample)[0]
    found = log_joint_of_values(net.tables, net.structure, encoded([sample]))[0]
    wanted = [p for feature in oracle.value_joints(joint, sample) for p in feature]
    np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-12)
    assert np.isneginf(found[:, 1]).all()


@pytest.mark.parametrize("parents", PARENTS)
@pytest.mark.parametrize("utility", [None, UTILITY], ids=["information", "utility"])
def test_gains_of_single_features_are_those_of_enumeration(parents, utility):
    net, joint = network(parents, np.random.default_rng(1))
    priors = [posterior(joint, sample) for sample in SAMPLES]
    costs = [1.0, 2.0, 0.5, 3.0, 1.5]
    gain = information_gain if utility is None else utility_gain(np.array(utility))
    found = gains(net, SAMPLES, priors, costs=costs, gain=gain)
    for sample, prior, row in zip(SAMPLES, priors, found, strict=True):
        free = [i for i in range(5) if sample[i] < 0]
        np.testing.assert_allclose(
            row, by_feature(oracle.gains(joint, sample, prior, free, 1, costs, utility)), atol=1e-11
        )


@pytest.mark.parametrize("parents", PARENTS)
@pytest.mark.parametrize("utility", [None, UTILITY], ids=["information", "utility"])
@pytest.mark.parametrize("costs", [(1.0,) * 5, (1.0, 8.0, 0.25, 3.0, 1.5)], ids=["equal costs", "costs"])
@pytest.mark.parametrize("depth", [2, 3])
def test_gains_of_plans_are_those_of_the_best_of_all_plans(parents, utility, costs, depth):
    net, joint = network(parents, np.random.default_rng(2))
    samples = SAMPLES[2:4] if depth == 2 else SAMPLES[3:]
    priors = [posterior(joint, sample) for sample in samples]
    gain = information_gain if utility is None else utility_gain(np.array(utility))
    found = gains(net, samples, priors, costs=costs, gain=gain, depth=depth)
    for sample, prior, row in zip(samples, priors, found, strict=True):
        free = [i for i in range(5) if sample[i] < 0]
        wanted = oracle.gains(joint, sample, prior, free, depth, costs, utility)
        np.testing.assert_allclose(row, by_feature(wanted), atol=1e-11)


@pytest.mark.parametrize("depth", [1, 2])
def test_calibrated_probabilities_are_the_ones_before_the_observation(depth):
    net, joint = network(CASES[1].values[0], np.random.default_rng(3))
    sample, prior = SAMPLES[2], [0.9, 0.1]
    assert abs(posterior(joint, sample)[0] - 0.9) > 0.05
    wanted = oracle.gains(joint, sample, prior, [0, 2, 3], depth, (1.0,) * 5)
    np.testing.assert_allclose(gains(net, [sample], [prior], depth=depth)[0], by_feature(wanted), atol=1e-11)


def test_classes_and_values_of_probability_zero_have_no_gain():
    net, joint = network(CASES[1].values[0], np.random.default_rng(4), has_zeros=True)
    sample = SAMPLES[1]
    found = gains(net, [sample], [[1.0, 0.0]])
    assert found[0, 1:].tolist() == [0.0] * 4
    prior = posterior(joint, sample)
    wanted = oracle.gains(joint, sample, prior, [1, 2, 3, 4], 2, (1.0,) * 5)
    np.testing.assert_allclose(gains(net, [sample], [prior], depth=2)[0], by_feature(wanted), atol=1e-11)


def test_a_plan_finds_two_features_that_matter_only_together():
    parents = [[-1, -1], [0, -1], [-1, -1], [-1, -1], [-1, -1]]
    structure, states = Structure(parents), np.array([2, 2, 2, 2, 2])
    layout = TableLayout.of_parents(structure.parents, states, 2)
    equal = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2, 0.9, 0.1)  # [x1][x0][class]: x1 is x0 xor class, mostly
    noise = np.array([[0.6, 0.5], [0.4, 0.5]])
    tables = [np.full(2, 0.5), np.full((2, 2), 0.5), equal, noise, np.full((2, 2), 0.5), np.full((2, 2), 0.5)]
    net = BayesNet(structure, Tables(layout, np.log(np.concatenate([table.ravel() for table in tables]))))
    alone = gains(net, [[-1] * 5], [[0.5, 0.5]])[0]
    together = gains(net, [[-1] * 5], [[0.5, 0.5]], depth=2)[0]
    assert alone.argmax() == 2
    assert alone[:2].tolist() == [0.0, 0.0]
    assert together.argmax() == 0
    assert together[0] == pytest.approx((1 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1)) / 2, abs=1e-12)


def test_plans_of_all_features_end_early_and_complete_rows_have_none():
    net, joint = network(CASES[1].values[0], np.random.default_rng(5))
    sample = SAMPLES[4]
    wanted = oracle.gains(joint, sample, posterior(joint, sample), [0], 1, (1.0,) * 5)
    for depth in (1, 2, 4):
        found = gains(net, [sample, COMPLETE], [posterior(joint, sample), posterior(joint, COMPLETE)], depth=depth)
        np.testing.assert_allclose(found[0], by_feature(wanted), atol=1e-11)
        assert np.isnan(found[1]).all()


def test_gains_do_not_depend_on_blocks_and_threads(monkeypatch):
    net, joint = network(CASES[1].values[0], np.random.default_rng(6))
    samples = [list(row) for row in np.random.default_rng(7).integers(-1, 2, (40, 5))]
    priors = [posterior(joint, sample) for sample in samples]
    wanted = gains(net, samples, priors), gains(net, samples[:3], priors[:3], depth=2)
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 1)
    monkeypatch.setattr("tanlearn.models.value_joints._BLOCK_NUMBERS", 1)
    found = gains(net, samples, priors, n_jobs=3), gains(net, samples[:3], priors[:3], depth=2, n_jobs=3)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_plans_over_the_limit_are_refused(monkeypatch):
    net, joint = network(CASES[1].values[0], np.random.default_rng(8))
    monkeypatch.setattr(module, "_MOST_ROWS", 12)
    samples = [COMPLETE, SAMPLES[0]]
    priors = [posterior(joint, sample) for sample in samples]
    assert np.isfinite(gains(net, [SAMPLES[1]], priors[:1], depth=2)[0, 1:]).all()  # 1 + 10 rows
    message = r"depth=2 needs up to 13 for row 1, .* have 12 values together\. Use a smaller"
    with pytest.raises(ValueError, match=message):
        gains(net, samples, priors, depth=2)


def test_sums_of_logarithms_are_exact_at_infinity_and_where_exponentials_underflow():
    values = np.array([[[-np.inf, -2000.0]], [[-np.inf, -2000.0]]])
    np.testing.assert_array_equal(log_sum(values, axis=0)[0], [-np.inf, -2000.0 + log_sum(np.zeros((2, 1)), axis=0)[0]])
    assert value_starts(np.array([2, 3])).tolist() == [0, 2, 5]


def test_values_that_cannot_be_inserted_within_the_limit_are_refused(monkeypatch):
    net, joint = network(CASES[5].values[0], np.random.default_rng(9))
    sample = SAMPLES[0]  # without values, nothing is marginalized
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "1")
    with pytest.raises(
        ValueError, match=r"the gain of feature 2 cannot be computed exactly, .* more than 1 operations"
    ):
        gains(net, [sample], [posterior(joint, sample)])
