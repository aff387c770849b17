"""Selective KDB: what it leaves out, and that its losses are those of the networks it judges."""

import numpy as np
import pytest

from tanlearn import EncodedData, TableEncoder, load
from tanlearn.baselines import KDependence, SelectiveKDependenceClassifier
from tanlearn.counts.rounded_information import Information
from tanlearn.models.leave_one_out import LeaveOneOut

RNG = np.random.default_rng(0)
CODES = TableEncoder(discrete_features=True)


def table(n=400, noise=3, seed=0):
    """Return rows of which the first three tell the class together, and the others nothing."""
    X = np.random.default_rng(seed).integers(0, 2, (n, 3 + noise))
    return X, X[:, 0] ^ X[:, 1] ^ X[:, 2]


@pytest.mark.parametrize("loss", ["log-loss", "error"])
def test_the_best_network_of_all_is_taken(loss):
    X, y = table()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = -1
    data = EncodedData.from_codes(X, y, n_states=[2] * 6, n_classes=2)
    model = SelectiveKDependenceClassifier(max_k=3, loss=loss, m=1.0).fit_encoded(data)
    order = np.argsort(-Information.of_rows(data).of_class, kind="stable")
    largest = KDependence(k=3).learn(data, RNG)
    losses = LeaveOneOut(data, largest.parents, 4).prefixes(order, np.ones(4))[:, :, int(loss == "error")]
    np.testing.assert_array_equal(model.losses_, losses)
    assert model.losses_[len(model.selected_), model.k_] == losses.min()
    assert model.selected_.tolist() == order[: len(model.selected_)].tolist()
    expected = KDependence(k=model.k_).learn(data, RNG).parents
    for i in range(data.n_features):
        given = expected[i][expected[i] >= 0].tolist() if i in model.selected_ else []
        assert model.structure_.parents[i][model.structure_.parents[i] >= 0].tolist() == given


def test_what_is_left_out_says_nothing_of_the_class():
    X, y = table()
    model = SelectiveKDependenceClassifier(encoder=CODES, max_k=4).fit(X, y)
    left_out = sorted({*range(6)} - set(model.selected_.tolist()))
    assert left_out
    assert model.score(X, y) == 1
    for i in left_out:
        p = model.tables_.probabilities(i)
        np.testing.assert_allclose(p[:, 0], p[:, 1], rtol=1e-12)
        np.testing.assert_allclose(p[:, 0], np.bincount(X[:, i]) / 400, atol=0.1)
        turned = X.copy()
        turned[:, i] = 1 - turned[:, i]
        np.testing.assert_allclose(model.predict_proba(turned), model.predict_proba(X), rtol=1e-9)


def test_where_nothing_helps_nothing_is_taken():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 4, (150, 4)), (rng.random(150) < 0.1).astype(int)
    model = SelectiveKDependenceClassifier(encoder=CODES, m=1.0).fit(X, y)
    assert model.selected_.size == 0
    assert model.structure_.n_edges == 0
    np.testing.assert_allclose(model.predict_proba(X), np.tile((np.bincount(y) + 1) / 152, (150, 1)), rtol=1e-9)


def test_threads_and_files_change_nothing(tmp_path):
    X, y = table(seed=3)
    one, two = (SelectiveKDependenceClassifier(n_jobs=n, sparse=True).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert np.array_equal(one.losses_, two.losses_)
    one.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(X), one.predict_proba(X))


@pytest.mark.parametrize(
    "parameters", [{"max_k": -1}, {"loss": "margin"}, {"m": -1.0}, {"sparse": "no"}, {"device": "cuda"}]
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of SelectiveKDependenceClassifier must be"):
        SelectiveKDependenceClassifier(**parameters).fit([[0], [1]], [0, 1])
