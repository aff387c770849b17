"""Gain of each edge relative to a network without edges, and the candidate parents that gains select."""

import numpy as np
import pytest
from oracles import term_nets as naive

from tanlearn import Candidates, EncodedData, TANClassifier
from tanlearn.terms import held_out_gains as module
from tanlearn.terms import learning
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.held_out_gains import held_out_gains
from tanlearn.terms.search import log_softmax
from tanlearn.terms.selection import START, divide
from tanlearn.training.losses import ConditionalNLL


def rows(n_samples=300, seed=0):
    """Return rows whose class depends on features 0 and 3 together; feature 1 is a noisy copy of feature 2."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_samples, 4))
    X[:, 1] = np.where(rng.random(n_samples) < 0.95, X[:, 2], X[:, 1])
    y = (X[:, 0] ^ X[:, 3]) ^ (rng.random(n_samples) < 0.2)
    return X, y


def encoded(X, y, **options):
    return EncodedData.from_codes(X, y, n_states=[2] * 4, n_classes=2, **options)


def test_gains_are_those_of_probabilities_of_networks_trained_without_the_rows():
    X, y = rows(90)
    data = encoded(X, y)
    probabilities = np.empty((90, 2))
    for fold in divide(data):
        network = TermStructure.empty(4)
        fit = TermFit(TermBasis(Resolutions(fold.rest), network), fold.rest, ConditionalNLL())
        x = fit.minimize(fit.start, START, max_iter=1000, tol=1e-9).x
        probabilities[fold.mask] = np.exp(log_softmax(fit.scores(x, fold.held_out)))
    features = [naive.Feature(naive.value_weights(X.tolist(), [1] * 90, [2] * 4, i), False) for i in range(4)]
    found = held_out_gains(data)
    for i in range(4):
        assert found[i, i] == 0
        for j in range(i):
            groups, smooth = naive.edge_gain(X.tolist(), y.tolist(), [1] * 90, features, probabilities.tolist(), i, j)
            assert found[i, j] == found[j, i] == pytest.approx(max(groups, smooth), rel=0.02, abs=0.05)


def test_interactions_gain_and_dependences_without_the_class_do_not():
    gains = held_out_gains(encoded(*rows()))
    assert np.unravel_index(gains.argmax(), gains.shape) == (0, 3)
    assert gains[0, 3] > 20
    assert gains[1, 2] < 5


@pytest.mark.parametrize(("kind", "parents"), [("gain", {0: 3, 3: 0}), ("information", {1: 2, 2: 1})])
def test_candidates_of_gradient_tan(kind, parents):
    """Information prefers the copy, and gain the interaction, for the features that are in one of them."""
    model = TANClassifier(candidates=Candidates(kind, n_candidates=1), n_epochs=1, calibrate=False, random_state=0)
    model.fit_encoded(encoded(*rows()))
    for child, parent in parents.items():
        first, last = model.candidates_.group[child : child + 2]
        assert model.candidates_.parents[first:last, 0].tolist() == [-1, parent]


def test_threads_and_rows_of_weight_zero_change_nothing():
    X, y = rows(90)
    more = encoded(np.vstack([X, X[:20]]), np.append(y, 1 - y[:20]), sample_weight=np.repeat([1, 0], [90, 20]))
    expected = held_out_gains(encoded(X, y), n_jobs=1)
    np.testing.assert_array_equal(held_out_gains(more, n_jobs=2), expected)


def test_without_folds_the_probabilities_are_the_class_frequencies():
    X, y = np.array([[0, 0, 0, 0], [1, 1, 0, 1], [0, 1, 1, 0]]), np.array([0, 0, 1])
    assert not divide(encoded(X, y))
    assert np.isfinite(held_out_gains(encoded(X, y))).all()


def test_large_data_are_sampled(monkeypatch):
    monkeypatch.setattr(learning, "MOST_ROWS", 200)
    sizes = []
    monkeypatch.setattr(module, "divide", lambda data: sizes.append(data.n_samples) or divide(data))
    gains = held_out_gains(encoded(*rows(600)))
    assert sizes == [200]
    assert np.unravel_index(gains.argmax(), gains.shape) == (0, 3)
