"""Multinets against one tree per class from enumeration, and against sums over missing values."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import networks as naive

import tanlearn
from tanlearn import BayesNetClassifier, EncodedData, MaximumLikelihood
from tanlearn.baselines import ChowLiu, GreedySearch, MultinetClassifier


def data_of(seed, n=90, weight=None):
    """Return rows in which each class has its own dependences."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 3, n), rng.integers(0, 3, (n, 4))
    for c, (i, j) in enumerate([(0, 1), (1, 2), (3, 0)]):
        copied = (y == c) & (rng.random(n) < 0.8)
        X[copied, i] = X[copied, j]
    weight = None if weight is None else rng.integers(0, 4, n)
    return EncodedData.from_codes(X, y, n_states=[3] * 4, n_classes=3, sample_weight=weight)


def rows_of(data, c):
    """Feature rows of a class, each repeated by its weight."""
    return np.repeat(data.codes.T.astype(int), data.weights * (data.y == c), axis=0)


def log_cpt(rows, i, given):
    """Smoothed log P(value | parent's value) of a feature, by value and the parent's value."""
    table = np.ones((3, 3 if given >= 0 else 1))
    for row in rows:
        table[row[i], row[given] if given >= 0 else 0] += 1
    return np.log(table / table.sum(axis=0))


def expected_joint(data, structures, X):
    """Log joint of complete rows."""
    counts = np.array([data.weights[data.y == c].sum() for c in range(3)]) + 1.0
    scores = np.tile(np.log(counts / counts.sum()), (len(X), 1))
    for c, parent in enumerate(structures):
        for i, given in enumerate(parent):
            table = log_cpt(rows_of(data, c), i, given)
            scores[:, c] += table[X[:, i], X[:, given] if given >= 0 else 0]
    return scores


def likelihood(rows, parent):
    """Maximised log-likelihood of the rows of a class."""
    total = 0.0
    for i, j in enumerate(parent):
        keys = rows[:, j] if j >= 0 else np.zeros(len(rows), int)
        for key in np.unique(keys):
            counts = np.bincount(rows[keys == key, i])
            counts = counts[counts > 0]
            total += (counts * np.log(counts / counts.sum())).sum()
    return total


@pytest.mark.parametrize("weight", [None, "integers"])
@pytest.mark.parametrize("seed", range(3))
def test_each_class_has_its_likeliest_tree_and_its_own_tables(seed, weight):
    data = data_of(seed, weight=weight)
    model = MultinetClassifier().fit_encoded(data)
    structures = [structure.parent.tolist() for structure in model.structures_]
    for c, parent in enumerate(structures):
        rows = rows_of(data, c)
        best = max(likelihood(rows, other) for other in naive.all_forests(4))
        assert likelihood(rows, parent) == pytest.approx(best)
    X = data.codes.T.astype(int)
    np.testing.assert_allclose(model.model_.log_joint(data.codes), expected_joint(data, structures, X), atol=1e-10)
    every = np.array(list(itertools.product(range(3), repeat=4)))
    joint = model.model_.log_joint(np.ascontiguousarray(every.T.astype(np.uint8)))
    np.testing.assert_allclose(joint, expected_joint(data, structures, every), atol=1e-10)
    assert np.logaddexp.reduce(joint, axis=None) == pytest.approx(0.0, abs=1e-10)


def test_missing_values_are_marginalized_in_each_class():
    data = data_of(0)
    model = MultinetClassifier().fit_encoded(data)
    structures = [structure.parent.tolist() for structure in model.structures_]
    codes = data.codes[:, :10].copy()
    codes[0], codes[2, ::2] = 255, 255
    for n, row in enumerate(codes.T.astype(int)):
        values = [range(3) if v == 255 else [v] for v in row]
        joint = expected_joint(data, structures, np.array(list(itertools.product(*values))))
        found = model.model_.log_joint(np.ascontiguousarray(codes[:, [n]]))[0]
        np.testing.assert_allclose(found, np.logaddexp.reduce(joint, axis=0), atol=1e-10)


def test_learners_of_structure_and_parameters_are_those_of_each_class():
    data = data_of(1)
    model = MultinetClassifier(structure=ChowLiu(penalty=1e6), parameters=MaximumLikelihood(alpha=3)).fit_encoded(data)
    assert [structure.n_edges for structure in model.structures_] == [0, 0, 0]
    for c, network in enumerate(model.model_.networks):
        counts = np.bincount(rows_of(data, c)[:, 0], minlength=3) + 3.0
        np.testing.assert_allclose(network.tables.probabilities(0)[:, 0], counts / counts.sum())
    assert MultinetClassifier(structure=GreedySearch()).fit_encoded(data).structures_[0].n_edges == 0
    with pytest.raises(ValueError, match="must be an object, not a string"):
        MultinetClassifier(structure="chow-liu").fit_encoded(data)


def test_trees_of_classes_are_learned_where_a_common_tree_is_not_enough():
    """Class 0 pairs features 0, 1 and 2, 3; class 1 pairs 0, 2 and 1, 3; class 2 pairs 0, 3 and 1, 2."""
    rng = np.random.default_rng(0)
    y, X = rng.integers(0, 3, 900), rng.integers(0, 2, (900, 4))
    for c, (j, (k, m)) in enumerate([(1, (2, 3)), (2, (1, 3)), (3, (1, 2))]):
        own = y == c
        X[own, j], X[own, m] = X[own, 0], X[own, k]
    multinet, tree = MultinetClassifier().fit(X, y), BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    assert multinet.score_samples(X).mean() > tree.score_samples(X).mean() + 0.2


def test_order_of_columns_changes_nothing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (150, 4)), columns=list("dcba"))
    X["a"] = X["d"]
    y = rng.integers(0, 2, 150)
    first = MultinetClassifier().fit(X, y)
    other = MultinetClassifier(n_jobs=2).fit(X[list("abcd")], y)
    np.testing.assert_allclose(other.predict_proba(X[list("abcd")]), first.predict_proba(X), atol=1e-12)


def test_files_priors_and_new_values(tmp_path):
    data = np.random.default_rng(0).choice(["a", "b", "c"], (120, 3)).astype(object)
    y = np.where(data[:, 0] == data[:, 1], "same", "other")
    data[:10, 2] = None
    model = MultinetClassifier(class_prior=[0.3, 0.7]).fit(data, y)
    assert model.score(data, y) > 0.95
    model.save(tmp_path / "model")
    again = tanlearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_joint_log_proba(data), model.predict_joint_log_proba(data))
    assert again.structures_ == model.structures_
    empty = np.full((1, 3), None, object)
    np.testing.assert_allclose(model.predict_proba(empty), [[0.3, 0.7]], atol=1e-12)
    unseen = np.array([["a", "a", "new"], ["a", "a", None]], object)
    rare, missing = model.score_samples(unseen)
    assert rare < missing
    assert rare <= min(model.score_samples(np.array([["a", "a", v]], object))[0] for v in "abc")
    damaged = {**model.model_.to_state(), "parents": np.zeros((2, 3, 2), np.int64)}
    with pytest.raises(ValueError, match="parent"):
        type(model.model_).from_state(damaged, model.model_.numbers_of_values(), 2)


def test_class_without_rows_is_uniform():
    data = EncodedData.from_codes([[0, 1], [1, 0], [1, 1]], [0, 0, 2], n_classes=3)
    with pytest.warns(UserWarning, match="negligible"):
        model = MultinetClassifier().fit_encoded(data)
    np.testing.assert_allclose(np.exp(model.model_.networks[1].log_joint(data.codes)), 0.25)
