"""Selection and joining of features against searches that count raw rows."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import tanlearn
from tanlearn import EncodedData, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import SemiNaiveBayesClassifier
from tanlearn.encoding.splits import validation_masks

DIRECTIONS = ("forward", "backward")


def data_of(seed, n=60, weight=None):
    """Return rows whose class depends on two features together, and one that is a copy."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, 4)
    X = np.stack([rng.integers(0, k, n) for k in sizes], axis=1)
    X[:, 3] = np.where(rng.random(n) < 0.8, X[:, 0] % sizes[3], X[:, 3])
    y = np.where(rng.random(n) < 0.7, (X[:, 0] + X[:, 1]) % 3, rng.integers(0, 3, n))
    weight = {None: None, "integers": rng.integers(0, 4, n), "real": rng.uniform(0.1, 2, n)}[weight]
    return EncodedData.from_codes(X, y, n_states=sizes, n_classes=3, sample_weight=weight)


def log(p):
    """Natural logarithm in multiples of 2**-32, whose sums are exact."""
    return round(math.log(p) * 2**32) / 2**32


def log_joint(groups, row, rows, y, weight, n_states, alpha):
    """Log joint of a row in each class, from the rows that are counted."""
    scores = []
    for c in range(3):
        of_class = sum(w for label, w in zip(y, weight, strict=True) if label == c)
        score = log((of_class + alpha) / (sum(weight) + 3 * alpha))
        for group in groups:
            equal = [
                all(other[i] == row[i] for i in group) and label == c for other, label in zip(rows, y, strict=True)
            ]
            n_values = math.prod(n_states[i] for i in group)
            score += log((sum(itertools.compress(weight, equal)) + alpha) / (of_class + alpha * n_values))
        scores.append(score)
    return scores


def accuracy(groups, data, folds, alpha=1.0):
    """Weighted accuracy over folds; equal best classes count as the first."""
    X, right = data.codes.T.astype(int).tolist(), 0.0
    everything = list(range(len(X)))
    for fold in folds or [everything]:
        counted = [n for n in everything if folds is None or n not in fold]
        rest = [[a[n] for n in counted] for a in (X, data.y.tolist(), data.weights.tolist())]
        for n in fold:
            scores = log_joint(groups, X[n], *rest, data.n_states.tolist(), alpha)
            right += data.weights[n] * (scores.index(max(scores)) == data.y[n])
    return right / sum(data.weights[n] for fold in folds or [everything] for n in fold)


def additions(groups, n_features):
    """Groups with one more feature."""
    unused = [i for i in range(n_features) if all(i not in g for g in groups)]
    alone = [[*groups, (i,)] for i in unused]
    return alone + [[(*g, i) if g == own else g for g in groups] for i in unused for own in groups]


def removals_and_joins(groups, n_features):
    """Groups without a feature, or with two of them joined."""
    used = sorted(i for g in groups for i in g)
    without = [[tuple(j for j in g if j != i) for g in groups if g != (i,)] for i in used]
    return without + [[a + b if g == a else g for g in groups if g != b] for a, b in itertools.combinations(groups, 2)]


def slow_search(direction, data, folds, max_values=math.inf):
    """Return the groups and their accuracy."""
    groups, proposals = ([], additions) if direction == "forward" else ([(i,) for i in range(4)], removals_and_joins)
    value, n_evaluations = accuracy(groups, data, folds), 0
    while True:
        changes = proposals(groups, 4)
        changes = [c for c in changes if all(len(g) < 2 or math.prod(data.n_states[list(g)]) <= max_values for g in c)]
        values = [accuracy(change, data, folds) for change in changes]
        n_evaluations += len(changes)
        if value >= 1 - 1e-12 or not values or max(values) < value - 1e-12:
            return groups, value, n_evaluations
        best = next(k for k, v in enumerate(values) if v >= max(values) - 1e-12)
        groups, value = changes[best], values[best]


def folds_of(data, validation, seed=0):
    """The rows that a search with this seed holds out; None for the training rows."""
    if validation is None:
        return None
    masks = validation_masks(data.y, data.n_classes, validation, np.random.default_rng(seed))
    return [np.flatnonzero(rows).tolist() for rows in masks]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("validation", [None, 0.3, 3])
@pytest.mark.parametrize("seed", range(4))
def test_groups_equal_those_from_raw_rows(direction, validation, seed):
    data = data_of(seed)
    model = SemiNaiveBayesClassifier(direction=direction, validation=validation, random_state=0).fit_encoded(data)
    groups, value, n_evaluations = slow_search(direction, data, folds_of(data, validation))
    assert model.groups_ == groups
    assert model.score_ == pytest.approx(value, rel=1e-12)
    if model.history_:
        assert model.history_[-1].score == model.score_
        assert model.history_[-1].n_evaluations <= n_evaluations
    assert model.n_evaluations_ == n_evaluations


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("weight", ["integers", "real"])
def test_weights_count_rows(direction, weight):
    data = data_of(7, weight=weight)
    model = SemiNaiveBayesClassifier(direction=direction, validation=None).fit_encoded(data)
    groups, value, _ = slow_search(direction, data.take(data.weights > 0), None)
    assert model.groups_ == groups
    assert model.score_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_posterior_is_that_of_products_smoothed_as_a_whole(alpha):
    data = data_of(0)
    model = SemiNaiveBayesClassifier(direction="backward", validation=None, alpha=alpha).fit_encoded(data)
    assert max(map(len, model.groups_)) >= 2
    X = data.codes.T.astype(int).tolist()
    rest = X, data.y.tolist(), data.weights.tolist(), data.n_states.tolist(), alpha
    expected = np.array([log_joint(model.groups_, row, *rest) for row in X])
    expected -= np.logaddexp.reduce(expected, axis=1, keepdims=True)
    scores = model.model_.log_joint(data.codes)
    np.testing.assert_allclose(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True), expected, atol=1e-10)
    every = np.array(list(itertools.product(*map(range, data.n_states)))).T.astype(np.uint8)
    assert np.logaddexp.reduce(model.model_.log_joint(every), axis=None) == pytest.approx(0.0, abs=1e-9)


def test_missing_values_are_marginalized_over_the_joint_values():
    data = data_of(0)
    model = SemiNaiveBayesClassifier(direction="backward", validation=None).fit_encoded(data)
    i = next(group[0] for group in model.groups_ if len(group) > 1)
    rows = np.repeat(data.codes[:, :5], data.n_states[i], axis=1)
    rows[i] = np.tile(np.arange(data.n_states[i]), 5)
    filled = model.model_.log_joint(rows).reshape(5, data.n_states[i], 3)
    missing = data.codes[:, :5].copy()
    missing[i] = 255
    np.testing.assert_allclose(model.model_.log_joint(missing), np.logaddexp.reduce(filled, axis=1), atol=1e-10)


def test_unused_features_do_not_change_the_posterior():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 5))
    y = X[:, 2] > 0
    model = SemiNaiveBayesClassifier(random_state=0).fit(X, y)
    assert model.groups_ == [(2,)]
    changed = X.copy()
    changed[:, [0, 1, 3, 4]] = rng.integers(0, 3, (300, 4))
    np.testing.assert_allclose(model.predict_proba(changed), model.predict_proba(X), atol=1e-12)
    assert not np.allclose(model.score_samples(changed), model.score_samples(X), atol=0.1)


def test_large_products_are_no_candidates():
    data = data_of(2)
    for limit in (1, 3, 4, 6):
        model = SemiNaiveBayesClassifier(direction="backward", validation=None, max_values=limit).fit_encoded(data)
        assert model.groups_ == slow_search("backward", data, None, limit)[0]
        assert all(len(g) == 1 or math.prod(data.n_states[list(g)]) <= limit for g in model.groups_)


def test_history_is_the_path_to_the_groups():
    data = data_of(1)
    model = SemiNaiveBayesClassifier(direction="backward", validation=None).fit_encoded(data)
    parents = dict.fromkeys(range(4), ())
    for change in model.history_:
        parents[change.child] = change.parents
    assert model.history_
    assert {i: parents[i] for g in model.groups_ for i in g} == {
        i: g[:k] for g in model.groups_ for k, i in enumerate(g)
    }
    assert [change.score for change in model.history_] == sorted(change.score for change in model.history_)
    assert all(change.seconds >= 0 for change in model.history_)


def test_changes_of_equal_accuracy_are_made_but_none_after_all_rows_are_right():
    rng = np.random.default_rng(0)
    X = np.stack([*rng.integers(0, 2, (2, 400)), np.zeros(400, int)], axis=1)
    y = X[:, 0] & X[:, 1] & (rng.random(400) < 0.7)  # always 0 is best for each feature alone
    assert sorted(i for g in SemiNaiveBayesClassifier(random_state=0).fit(X, y).groups_ for i in g) == [0, 1, 2]
    assert SemiNaiveBayesClassifier(random_state=0, min_gain=1e-6).fit(X, y).groups_ == []
    assert SemiNaiveBayesClassifier(random_state=0).fit(X, X[:, 1]).groups_ == [(1,)]


def test_min_gain_stops_the_search():
    data = data_of(1)
    many = SemiNaiveBayesClassifier(validation=None).fit_encoded(data)
    few = SemiNaiveBayesClassifier(validation=None, min_gain=0.1).fit_encoded(data)
    assert len(few.groups_) < len(many.groups_) or few.score_ < many.score_
    assert SemiNaiveBayesClassifier(validation=None, min_gain=1).fit_encoded(data).groups_ == []


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_threads_and_order_of_columns_change_nothing(direction):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (150, 5)), columns=list("edcba"))
    X["a"] = X["e"]  # equal candidates
    y = (X["e"] + X["c"]) % 3
    first = SemiNaiveBayesClassifier(direction=direction, random_state=0).fit(X, y)
    others = SemiNaiveBayesClassifier(direction=direction, random_state=0, n_jobs=2).fit(X[list("abcde")], y)
    names = [[tuple(m.feature_names_in_[list(g)]) for g in m.groups_] for m in (first, others)]
    assert names[0] == names[1]
    np.testing.assert_allclose(others.predict_proba(X[list("abcde")]), first.predict_proba(X), atol=1e-12)


def test_cut_points_are_fitted_without_the_held_out_rows():
    """The cut points of noise are chosen with all rows, so that accuracy on them would be too good."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = SemiNaiveBayesClassifier(encoder=TableEncoder(), random_state=0)
    with pytest.warns(UserWarning, match="discretization left"):
        assert model.fit(X, y).score_ < 0.6


def test_saved_models_predict_the_same(tmp_path):
    X = np.random.default_rng(0).integers(0, 3, (200, 4))
    y = (X[:, 0] + X[:, 1]) % 3
    model = SemiNaiveBayesClassifier(direction="backward", random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(tanlearn.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))
    assert model.score(X, y) > 0.95 > NaiveBayesClassifier().fit(X, y).score(X, y)


def test_missing_values_are_refused_in_training():
    X = np.array([["a", None], ["b", "c"]] * 5, object)
    with pytest.raises(ValueError, match="A search of joined features"):
        SemiNaiveBayesClassifier().fit(X, [0, 1] * 5)
