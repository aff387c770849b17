"""What samples are worth once a family is exchanged, and which of them no family can flip."""

import numpy as np
import pytest
from oracles import networks as naive
from oracles import wrapper as naive_wrapper

from tanlearn.kernels import structure_scores as kernels

MISSING = 255
N_STATES = np.array([2, 3, 2])
CHILD, PARENTS = np.full(4, 1), np.array([[-1, -1], [0, -1], [2, -1], [0, 2]])
KINDS = {
    "accuracy": kernels.ACCURACY,
    "margin": kernels.MARGIN,
    "conditional-likelihood": kernels.LIKELIHOOD,
}


def random_problem(seed=0, n=9, n_classes=3):
    """Four families of feature 1 in whole numbers, so that classes are often equal; and what each adds to a sample."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    y, weight = rng.integers(0, n_classes, n), rng.uniform(0.5, 2, n)
    offset = np.array(naive.offsets(CHILD, PARENTS, N_STATES, n_classes))
    cells = rng.integers(-3, 1, offset[-1]).astype(float)
    base = rng.integers(-4, 1, (n, n_classes)).astype(float)
    cells[:n_classes] = 0.0
    added = [naive.log_joint(X, cells, CHILD, PARENTS, N_STATES, n_classes, [t]) for t in range(4)]
    return X, y, weight, base, cells, offset, added


@pytest.mark.parametrize("score", KINDS)
@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_swap_family_is_the_worth_of_the_samples_with_each_family(score, gamma):
    X, y, weight, base, cells, offset, added = random_problem()
    codes, selected = np.ascontiguousarray(X.T.astype(np.uint8)), np.array([3, 0, 2])
    value, rows = np.empty(3), np.empty(len(y), np.intp)
    kernels.swap_family(
        codes, base, y, weight, cells, CHILD, PARENTS, N_STATES, offset, selected, MISSING, KINDS[score], gamma, rows,
        value,
    )  # fmt: skip
    for t, result in zip(selected, value, strict=True):
        scores = (base + added[t]).tolist()
        expected = [naive_wrapper.worth(s, label, score, gamma) for s, label in zip(scores, y, strict=True)]
        assert result == pytest.approx(np.dot(weight, expected), rel=1e-12)


@pytest.mark.parametrize("score", KINDS)
def test_classify_is_the_worth_of_the_samples(score):
    _, y, weight, base, *_ = random_problem(1)
    total = kernels.classify(base, np.zeros(3), y, weight, KINDS[score], 1.5)
    expected = [naive_wrapper.worth(s, label, score, 1.5) for s, label in zip(base.tolist(), y, strict=True)]
    assert total == pytest.approx(np.dot(weight, expected), rel=1e-12)


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_worth_of_a_sample_is_that_of_the_sums(n_classes):
    """Whole numbers from -2 to 0: of 40 samples with several classes, many have two best ones."""
    rng = np.random.default_rng(n_classes)
    for row, values in rng.integers(-2, 1, (40, 2, n_classes)).astype(float):
        label = int(rng.integers(n_classes))
        both = (row + values).tolist()
        assert kernels.is_first_best(row, values, label) == naive_wrapper.worth(both, label, "accuracy", 0)
        assert kernels.lead(row, values, label) == naive_wrapper.worth(both, label, "margin", np.inf)
        log_posterior = naive_wrapper.worth(both, label, "conditional-likelihood", 0)
        assert kernels.log_posterior(row, values, label) == pytest.approx(log_posterior, abs=1e-15)
        for score, kind in KINDS.items():
            expected = naive_wrapper.worth(both, label, score, 0.5)
            assert kernels.worth(row, values, label, kind, 0.5) == pytest.approx(expected, abs=1e-15)


def test_log_posterior_of_joints_far_below_what_exp_can_hold():
    for row in ([-9000.0, -9001.0], [-9000.0, -9001.0, -9036.9, -9037.1, -np.inf]):
        log_posterior = kernels.log_posterior(np.array(row), np.zeros(len(row)), 0)
        assert log_posterior == pytest.approx(-np.log1p(np.exp(-1)), rel=1e-12)


def find_bounds(X, y, cells, offset, n_classes):
    """Return the bounds of every value of feature 1 and class."""
    counts = naive.count_cells(X, y, np.ones(len(y), int), CHILD, PARENTS, N_STATES, n_classes)
    low, high = np.full((2, N_STATES[1], n_classes), np.nan)
    kernels.bound_leads(cells, counts, offset, n_classes, low, high)
    return low, high


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_bounds_are_those_of_the_samples_with_the_value_and_the_class(n_classes):
    X, y, _, _, cells, offset, added = random_problem(2, n_classes=n_classes)
    low, high = find_bounds(X, y, cells, offset, n_classes)
    of_sample = naive_wrapper.bounds(np.array(added).tolist(), y)
    for v in range(N_STATES[1]):
        for c in range(n_classes):
            same = (X[:, 1] == v) & (y == c)
            assert low[v, c] == min(np.array(of_sample[0])[same], default=np.inf)
            assert high[v, c] == max(np.array(of_sample[1])[same], default=-np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_decided_samples_are_right_with_every_family_or_wrong_with_every_family(seed):
    X, y, weight, base, cells, offset, added = random_problem(seed, n=30)
    base *= 2
    low, high = find_bounds(X, y, cells, offset, 3)
    undecided = np.zeros(len(y), np.bool_)
    right = kernels.find_undecided(
        X[:, 1].astype(np.uint8), base, np.zeros(3), y, weight, low, high, 0.0, 0.0, undecided
    )
    outcomes = np.array([(base + a).argmax(axis=1) == y for a in added])
    always, never = outcomes.all(axis=0), ~outcomes.any(axis=0)
    assert (undecided | always | never).all()
    assert right == pytest.approx(weight[always & ~undecided].sum(), rel=1e-12)
    assert 0 < undecided.sum() < len(y)


def test_a_sample_is_undecided_from_the_bounds_on():
    """Lead 1 of class 0: wrong only if it is lowered by more, undecided at 0 because equals go by the number."""
    base, y = np.array([[1.0, 0.0]]), np.zeros(1, np.intp)
    for low, high, undecided in [(-1.0, 0.0, True), (-0.5, 0.0, False), (-9.0, -1.0, True), (-9.0, -1.5, False)]:
        found = np.array([not undecided])
        bound = np.full((1, 2), low), np.full((1, 2), high)
        right = kernels.find_undecided(np.zeros(1, np.uint8), base, np.zeros(2), y, np.ones(1), *bound, 0.0, 0.0, found)
        assert found[0] == undecided
        assert right == (low == -0.5)
