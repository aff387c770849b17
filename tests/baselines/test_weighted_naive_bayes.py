"""Weighted naive Bayes against plain loops: scores, losses on grids and by differences, and recursive trees."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import tanlearn
from tanlearn import EncodedData, MaximumLikelihood, NaiveBayesClassifier
from tanlearn.baselines import WeightedNaiveBayesClassifier
from tanlearn.baselines.feature_weights import tree_depths

OBJECTIVES = ("conditional-likelihood", "squared-error")
WEIGHTINGS = (*OBJECTIVES, "trees")


def data_of(seed, n=80, weight=None, missing=0.0, n_features=3):
    """Return rows in which feature 1 is a noisy copy of feature 0, and the last feature is noise."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 3, n), rng.integers(0, 3, (n, n_features))
    X[:, 0] = np.where(rng.random(n) < 0.6, y, X[:, 0])
    X[:, 1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, 1])
    X[rng.random(X.shape) < missing] = -1
    weight = {None: None, "integers": rng.integers(0, 4, n), "real": rng.uniform(0.1, 2, n)}[weight]
    return EncodedData.from_codes(X, y, n_states=[3] * n_features, n_classes=3, sample_weight=weight)


def posteriors(data, weights, alpha=1.0):
    """Posterior of each row, from counts of the rows; missing values (255) contribute nothing."""
    X, w = data.codes.T.astype(int), data.weights
    of_class = np.array([w[data.y == c].sum() for c in range(3)]) + alpha
    scores = np.tile(np.log(of_class / of_class.sum()), (len(X), 1))
    for i, exponent in enumerate(weights):
        for c in range(3):
            counts = np.array([w[(data.y == c) & (X[:, i] == v)].sum() for v in range(3)]) + alpha
            log_p = np.append(np.log(counts / counts.sum()), 0.0)
            scores[:, c] += exponent * log_p[np.minimum(X[:, i], 3)]
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def loss(data, weights, objective):
    """Mean loss of the training rows."""
    p, total = posteriors(data, weights), 0.0
    for n, c in enumerate(data.y):
        if objective == "squared-error":
            total += data.weights[n] * sum(((k == c) - p[n, k]) ** 2 for k in range(3)) / 2
        else:
            total -= data.weights[n] * math.log(p[n, c])
    return total / data.weights.sum()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, "integers", "real"])
def test_weights_minimize_the_loss(objective, missing, weight):
    data = data_of(1, weight=weight, missing=missing)
    model = WeightedNaiveBayesClassifier(weighting=objective).fit_encoded(data)
    found = loss(data, model.feature_weights_, objective)
    assert model.history_[-1].loss == pytest.approx(found, rel=1e-9)
    assert model.history_[0].loss == pytest.approx(loss(data, [1.0] * 3, objective), rel=1e-9)
    assert [entry.step for entry in model.history_] == list(range(model.n_iter_ + 1))
    assert model.converged_
    assert found < model.history_[0].loss
    grid = itertools.product(np.linspace(0, 1, 6), repeat=3)
    assert found <= min(loss(data, weights, objective) for weights in grid) + 1e-6
    for i, step in itertools.product(range(3), (-1e-3, 1e-3)):  # no small step within the bounds is better
        other = model.feature_weights_.copy()
        other[i] = np.clip(other[i] + step, 0, 1)
        assert loss(data, other, objective) >= found - 1e-7


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_are_bounded(objective):
    y = np.arange(200) % 2
    X = np.column_stack([y, np.random.default_rng(0).integers(0, 2, 200)])
    X[:20, 0] = 1 - X[:20, 0]
    for most in (0.5, 1.0, 3.0):
        model = WeightedNaiveBayesClassifier(weighting=objective, max_weight=most).fit(X, y)
        assert (model.feature_weights_ >= 0).all()
        assert (model.feature_weights_ <= most).all()
    assert model.feature_weights_[0] > 0.9


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_posteriors_equal_those_from_raw_rows(weighting, missing):
    data = data_of(2, missing=missing, weight="integers")
    model = WeightedNaiveBayesClassifier(weighting=weighting, random_state=0).fit_encoded(data)
    scores = model.model_.log_joint(data.codes, n_jobs=2)
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(p, posteriors(data, model.feature_weights_), atol=1e-10)
    np.testing.assert_allclose(model.model_.contributions(data.codes).sum(axis=1), scores, atol=1e-10)


def test_weights_of_one_are_naive_bayes_and_weights_of_zero_the_prior():
    data = data_of(3, missing=0.2)
    naive = NaiveBayesClassifier().fit_encoded(data)
    model = WeightedNaiveBayesClassifier().fit_encoded(data).model_
    ones, zeros = (type(model)(model.tables, np.full(3, float(w))) for w in (1, 0))
    np.testing.assert_allclose(ones.log_joint(data.codes), naive.model_.log_joint(data.codes), atol=1e-12)
    np.testing.assert_allclose(zeros.log_joint(data.codes), np.tile(naive.tables_.log_prior, (80, 1)), atol=1e-12)


def entropy(weights):
    """Entropy in nats of a distribution that is proportional to these weights."""
    total = sum(weights)
    return -sum(w / total * math.log(w / total) for w in weights if w > 0)


def slow_depths(rows, depth, found):
    """Least depths of the tests of a tree over rows (values, class, weight), by recursion."""
    n_features = len(rows[0][0])
    splits = []
    for i in range(n_features):
        branches = {}
        for row in rows:
            branches.setdefault(row[0][i], []).append(row)
        sizes = [sum(r[2] for r in own) for own in branches.values()]
        if sum(size >= 2 for size in sizes) < 2:
            continue

        def of_class(own):
            return entropy([sum(r[2] for r in own if r[1] == c) for c in range(3)])

        parts = zip(sizes, branches.values(), strict=True)
        gain = of_class(rows) - sum(size / sum(sizes) * of_class(own) for size, own in parts)
        if gain > 1e-9:
            splits.append((i, gain, gain / entropy(sizes), branches))
    if not splits:
        return
    mean = sum(gain for _, gain, _, _ in splits) / len(splits)
    allowed = [split for split in splits if split[1] >= mean - 1e-9]
    best = max(ratio for _, _, ratio, _ in allowed)
    i, _, _, branches = next(split for split in allowed if split[2] >= best - 1e-9)
    found[i] = min(found[i], depth)
    for own in branches.values():
        slow_depths(own, depth + 1, found)


@pytest.mark.parametrize("weight", [None, "integers", "real"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_depths_equal_those_of_a_recursive_tree(seed, missing, weight):
    data = data_of(seed, 120, weight, missing, n_features=5)
    data = data.take(data.weights > 0)
    expected = [math.inf] * 5
    slow_depths(list(zip(data.codes.T.tolist(), data.y.tolist(), data.weights.tolist(), strict=True)), 1, expected)
    found = tree_depths(data)
    assert found.tolist() == expected
    assert min(expected) == 1
    assert max(expected) > 1


def test_blocks_of_nodes_change_nothing(monkeypatch):
    data = data_of(0, 200, n_features=5)
    whole = tree_depths(data)
    monkeypatch.setattr("tanlearn.baselines.feature_weights._COUNTS", 40)
    np.testing.assert_array_equal(tree_depths(data), whole)


def test_tree_weights_are_means_over_trees_of_drawn_rows():
    data = data_of(0, n_features=4)
    model = WeightedNaiveBayesClassifier(weighting="trees", n_trees=3, subsample=0.7, random_state=5).fit_encoded(data)
    rng, expected = np.random.default_rng(5), np.zeros(4)
    for _ in range(3):
        expected += 1 / np.sqrt(tree_depths(data.take(rng.choice(80, 56)))) / 3
    np.testing.assert_allclose(model.feature_weights_, expected)
    assert not hasattr(model, "history_")


def test_features_without_a_test_have_no_weight():
    X = np.column_stack([np.zeros(50, int), np.arange(50) % 2])
    model = WeightedNaiveBayesClassifier(weighting="trees").fit(X, X[:, 1])
    assert model.feature_weights_.tolist() == [0.0, 1.0]
    constant = WeightedNaiveBayesClassifier(weighting="trees").fit(X[:, :1], X[:, 1])
    assert constant.feature_weights_.tolist() == [0.0]
    np.testing.assert_allclose(constant.predict_proba(X[:2, :1]), 0.5)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_order_of_columns_and_threads_change_nothing(weighting):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    X = pd.DataFrame({name: y ^ (rng.random(150) < 0.2) for name in "dcb"})
    X["a"] = X["d"]
    first = WeightedNaiveBayesClassifier(weighting=weighting, random_state=0).fit(X, y)
    other = WeightedNaiveBayesClassifier(weighting=weighting, random_state=0, n_jobs=2).fit(X[list("abcd")], y)
    np.testing.assert_allclose(other.predict_proba(X[list("abcd")]), first.predict_proba(X), atol=1e-5)
    if weighting == "trees":
        np.testing.assert_array_equal(other.feature_weights_[::-1], first.feature_weights_[[0, 1, 2, 3]])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_explanations_files_and_priors(weighting, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 200)
    X = pd.DataFrame({"size": rng.normal(size=200) + 2 * (y == "yes"), "town": np.where(y == "no", "a", "b")})
    X.loc[:20, "town"] = "a"
    X.loc[150:, "town"] = None
    model = WeightedNaiveBayesClassifier(weighting=weighting, random_state=0).fit(X, y)
    contributions = model.explain(X)
    log_p = model.predict_log_proba(X)
    np.testing.assert_allclose(np.diff(contributions.sum(axis=1)), np.diff(log_p), atol=1e-10)
    assert (contributions[150:, 1] == 0).all()
    against = model.explain(X, against="no")
    np.testing.assert_allclose(against.sum(axis=1)[:, 1], log_p[:, 1] - log_p[:, 0], atol=1e-10)
    assert model.explain_frame(X[:2])["feature"].tolist() == ["size", "town", "(classes)"] * 2
    model.save(tmp_path / "model")
    again = tanlearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.feature_weights_, model.feature_weights_)
    empty = pd.DataFrame({"size": [np.nan], "town": [None]})
    np.testing.assert_allclose(model.with_class_prior([0.2, 0.8]).predict_proba(empty), [[0.2, 0.8]])
    assert not hasattr(model, "score_samples")
    with pytest.raises(AttributeError, match="predict_joint_log_proba") as error:
        _ = model.predict_joint_log_proba
    assert "no joint distribution of the features" in str(error.value.__cause__)
    damaged = {**model.model_.to_state(), "weights": np.array([1.0, -1.0])}
    with pytest.raises(ValueError, match="weights must be nonnegative finite numbers"):
        type(model.model_).from_state(damaged, model.model_.numbers_of_values(), 2)


def test_zero_probabilities_are_refused():
    with pytest.raises(ValueError, match="smoothing must keep all probabilities above zero"):
        WeightedNaiveBayesClassifier(smoothing=MaximumLikelihood(alpha=0)).fit_encoded(data_of(0))


def test_history_is_that_of_the_parameters():
    model = WeightedNaiveBayesClassifier().fit_encoded(data_of(0))
    (entries,) = model.learning_history().values()
    assert [entry.score for entry in entries] == [-entry.loss for entry in entries]
    assert WeightedNaiveBayesClassifier(weighting="trees").fit_encoded(data_of(0)).learning_history() == {}
