"""Model averaging against the sum over all networks with and without each edge from the class."""

import itertools
import math

import numpy as np
import pytest

import tanlearn
from tanlearn import BayesNetClassifier, EncodedData, NaiveBayesClassifier, Structure
from tanlearn.baselines import ModelAveraging

RNG = np.random.default_rng(0)


def data_of(seed, n=25, weight=None):
    """Return rows in which some features depend on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.stack([rng.integers(0, 2, n), (y + (rng.random(n) < 0.3)) % 3, rng.integers(0, 3, n)], axis=1)
    weight = None if weight is None else rng.integers(0, 3, n)
    return EncodedData.from_codes(X, y, n_states=[2, 3, 3], n_classes=3, sample_weight=weight)


def dirichlet(counts, alpha):
    """Probability of a sequence of values with these counts, one factor per value in turn."""
    p, seen = 1.0, [0] * len(counts)
    for value, count in enumerate(counts):
        for _ in range(count):
            p *= (seen[value] + alpha) / (sum(seen) + alpha * len(counts))
            seen[value] += 1
    return p


def family(rows, weight, child, given, n_states, alpha):
    """Marginal likelihood of a feature's values given other columns, and the smoothed frequencies."""
    evidence, theta = 1.0, {}
    for context in itertools.product(*(range(n_states[j]) for j in given)):
        equal = [all(row[j] == v for j, v in zip(given, context, strict=True)) for row in rows]
        counts = [
            sum(w for row, w, e in zip(rows, weight, equal, strict=True) if e and row[child] == v)
            for v in range(n_states[child])
        ]
        evidence *= dirichlet(counts, alpha)
        theta[context] = [(c + alpha) / (sum(counts) + alpha * len(counts)) for c in counts]
    return evidence, theta


def averaged_joint(data, parents, prior, alpha, rows):
    """P(class, row) averaged over all subsets of edges from the class, weighted by prior times evidence."""
    observed = np.column_stack([data.codes.T, data.y]).astype(int).tolist()
    weight, sizes = data.weights.tolist(), [*data.n_states.tolist(), data.n_classes]
    last = len(sizes) - 1
    _, of_class = family(observed, weight, last, [], sizes, alpha)
    total, joint = 0.0, np.zeros((len(rows), data.n_classes))
    for included in itertools.product([False, True], repeat=last):
        p, thetas = 1.0, []
        for i, edge in enumerate(included):
            given = [*parents[i], *([last] if edge else [])]
            evidence, theta = family(observed, weight, i, given, sizes, alpha)
            p *= evidence * (prior if edge else 1 - prior)
            thetas.append((given, theta))
        total += p
        for n, row in enumerate(rows):
            for c in range(data.n_classes):
                full = [*row, c]
                factors = [theta[tuple(full[j] for j in given)][full[i]] for i, (given, theta) in enumerate(thetas)]
                joint[n, c] += p * of_class[()][c] * math.prod(factors)
    return joint / total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("prior", "alpha"), [(0.5, 1.0), (0.1, 0.5)])
@pytest.mark.parametrize("weight", [None, "integers"])
def test_joint_equals_the_average_over_all_networks(seed, prior, alpha, weight):
    data = data_of(seed, weight=weight)
    model = NaiveBayesClassifier(parameters=ModelAveraging(prior=prior, alpha=alpha)).fit_encoded(data)
    rows = data.codes.T[:8].astype(int).tolist()
    expected = averaged_joint(data, [[], [], []], prior, alpha, rows)
    np.testing.assert_allclose(np.exp(model.model_.log_joint(data.codes[:, :8])), expected, rtol=1e-9)


def test_augmenting_parents_are_given():
    data = data_of(0)
    structure = Structure([-1, 0, 1])
    model = BayesNetClassifier(structure=structure, parameters=ModelAveraging(prior=0.3)).fit_encoded(data)
    rows = data.codes.T[:8].astype(int).tolist()
    expected = averaged_joint(data, [[], [0], [1]], 0.3, 1.0, rows)
    np.testing.assert_allclose(np.exp(model.model_.log_joint(data.codes[:, :8])), expected, rtol=1e-9)


def test_edge_probabilities_are_those_of_single_edges():
    data = data_of(1)
    learner = ModelAveraging(prior=0.2)
    learner.fit(Structure.naive_bayes(3), data, RNG)
    observed = np.column_stack([data.codes.T, data.y]).astype(int).tolist()
    for i in range(3):
        with_class, without = (
            family(observed, [1] * len(observed), i, given, [2, 3, 3, 3], 1.0)[0] for given in ([3], [])
        )
        expected = 0.2 * with_class / (0.2 * with_class + 0.8 * without)
        assert learner.edge_probabilities_[i] == pytest.approx(expected, rel=1e-9)
    assert learner.edge_probabilities_[1] > 0.99 > learner.edge_probabilities_[0]


def test_large_evidence_does_not_overflow():
    x = np.random.default_rng(0).integers(0, 2, (5000, 2))
    learner = ModelAveraging()
    tables = learner.fit(Structure.naive_bayes(2), EncodedData.from_codes(x, x[:, 0]), RNG)
    assert learner.edge_probabilities_[0] == 1.0
    assert 0 < learner.edge_probabilities_[1] < 0.5
    np.testing.assert_allclose(tables.probabilities(1).sum(axis=0), 1.0, atol=1e-12)


def test_batches_and_files(tmp_path):
    X = np.random.default_rng(5).integers(0, 3, (120, 4))
    y = X[:, 0] > 0
    make = lambda: NaiveBayesClassifier(parameters=ModelAveraging())  # noqa: E731
    whole = make().fit(X, y)
    batches = make().fit_batches([(X[:50], y[:50]), (X[50:], y[50:])])
    np.testing.assert_array_equal(whole.tables_.cells, batches.tables_.cells)
    whole.save(tmp_path / "model")
    np.testing.assert_array_equal(tanlearn.load(tmp_path / "model").predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("parameters", [{"prior": 0}, {"prior": 1}, {"alpha": 0}])
def test_invalid_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match="must be a float in the range"):
        ModelAveraging(**parameters).fit(Structure.naive_bayes(3), data_of(0), RNG)
