"""Tables that back off: the objective beside one by hand, what a ridge does, and what held-out rows choose."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from tanlearn import BackOffRidge, BayesNetClassifier, ConditionalNLL, EncodedData, Margin, Structure
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.parameters.back_off_ridge import RIDGES
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.training.objectives import Objective
from tanlearn.training.training import error_rate

CHAIN = Structure([[-1, -1], [0, -1], [0, 1]])


def rows(n=60, seed=0, missing=0.0):
    """Return rows whose class two features tell together, and a third a little."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 3))
    y = (X[:, 1] == X[:, 2]).astype(int)
    X[:, 0] = np.where(rng.random(n) < 0.3, y, X[:, 0])
    codes = np.where(rng.random(X.shape) < missing, -1, X)
    return EncodedData.from_codes(codes, y, n_states=[3] * 3, n_classes=2)


def learner(**more):
    return BackOffRidge(**{"ridge": 0.5, "loss": ConditionalNLL(), "max_iter": 500, "calibrate": False} | more)


def objective_by_hand(numbers, data, ridge):
    """Return the sum of the rows' losses and of the squares, without anything of tanlearn."""
    x, y = data.codes.astype(int), data.y
    prior, a, b, b0, c, c0, c1, c01 = np.split(numbers, np.cumsum([2, 6, 6, 18, 6, 18, 18]))
    a, b, c = (one.reshape(3, 2) for one in (a, b, c))
    b0, c0, c1, c01 = b0.reshape(3, 3, 2), c0.reshape(3, 3, 2), c1.reshape(3, 3, 2), c01.reshape(3, 3, 3, 2)
    tables = (
        log_softmax(a, axis=0)[x[0]]
        + log_softmax(b[:, np.newaxis] + b0, axis=0)[x[1], x[0]]
        + log_softmax(c[:, np.newaxis, np.newaxis] + c0[:, :, np.newaxis] + c1[:, np.newaxis] + c01, axis=0)[
            x[2], x[0], x[1]
        ]
    )
    scores = log_softmax(log_softmax(prior) + tables, axis=1)
    squares = sum((one**2).sum() for one in (b0, c0, c1)) + 10 * (c01**2).sum()
    return -scores[np.arange(len(y)), y].sum() + ridge / 2 * squares


def test_the_optimum_is_that_of_an_objective_by_hand():
    data = rows()
    found = learner(tol=1e-8)  # rounding ends a search with 1e-9 above its tolerance on some CPUs
    tables = found.fit(CHAIN, data, None)
    start = np.zeros(2 + 6 + 6 + 18 + 6 + 18 + 18 + 54)
    best = minimize(
        objective_by_hand, start, args=(data, 0.5), method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 10**6}
    )
    assert found.history_[-1].loss * data.n_samples == pytest.approx(best.fun, rel=1e-4)
    scores = log_softmax(log_joint(tables, CHAIN, data.codes), axis=1)
    squares = best.fun - objective_by_hand(best.x, data, 0.0)
    assert -scores[np.arange(60), data.y].sum() == pytest.approx(best.fun - squares, rel=2e-2)
    assert found.converged_


def test_it_starts_at_naive_bayes_and_a_heavy_ridge_stays_without_parents():
    data = rows(missing=0.1)
    start = learner().start(CHAIN, data, None)
    plain = MaximumLikelihood().fit(Structure.naive_bayes(3), data, np.random.default_rng(0))
    complete = data.codes[:, ~data.is_incomplete]
    naive = log_joint(plain, Structure.naive_bayes(3), complete)
    assert log_joint(start, CHAIN, complete) == pytest.approx(naive)
    heavy = learner(ridge=1e9).fit(CHAIN, data, None)
    assert heavy[2] == pytest.approx(np.broadcast_to(heavy[2][:, :1, :1], heavy[2].shape), abs=1e-5)
    light = learner(ridge=0.01).fit(CHAIN, data, None)
    assert np.abs(light[2] - light[2][:, :1, :1]).max() > 0.5
    assert error_rate(CHAIN, light, data) < error_rate(CHAIN, heavy, data)


def test_terms_of_unobserved_parent_values_do_not_change_the_result():
    data = rows(12)
    found = learner(max_iter=15)
    start = found.start(CHAIN, data, None)
    tables = found.improve(start, data)
    every = learner(max_iter=15)
    counts = start.layout.count(data.codes, data.y, data.weights)
    source = SimpleNamespace(
        n_samples=data.n_samples, sample=data, objective=lambda layout, loss: Objective(layout, data, loss)
    )
    of_objective = every.from_objective(CHAIN, start.layout, counts, source)
    np.testing.assert_allclose(tables.cells, of_objective.cells, atol=1e-6)
    # A start with other terms needs all terms.
    moved = Tables(start.layout, start.cells + np.random.default_rng(0).normal(size=start.layout.n_cells))
    before, after = found.improve(moved, data, n_iter=0), found.improve(moved, data)
    assert found.history_[-1].loss < found.history_[0].loss
    assert not np.allclose(before.cells, after.cells)


def test_counts_and_rows_start_alike():
    data = rows()
    found = learner()
    start = found.start(CHAIN, data, None)
    counts = start.layout.count(data.codes, data.y, data.weights)
    assert found._start_of_counts(start.layout, counts).cells == pytest.approx(start.cells)


def test_held_out_rows_choose_loss_and_ridge():
    data = rows(200)
    chosen = BackOffRidge()
    tables = chosen.fit(CHAIN, data, None)
    assert chosen.ridge_ in RIDGES
    assert isinstance(chosen.loss_, (ConditionalNLL, Margin))
    assert chosen.calibration_.temperature > 0
    again = BackOffRidge(loss=chosen.loss_, ridge=chosen.ridge_, max_iter=max(chosen.n_iter_, 1), calibrate=False)
    assert again.fit(CHAIN, data, None).cells == pytest.approx(tables.cells, rel=1e-6)
    assert error_rate(CHAIN, tables, data) < 0.05
    named = BackOffRidge(loss=Margin(), ridge=0.1)
    named.fit(CHAIN, data, None)
    assert (named.loss_, named.ridge_) == (named.loss, 0.1)


def test_pairs_of_parents_that_few_rows_have_do_not_overfit():
    """Where classes follow parents one by one, tables by cells err more than tables that back off."""
    rng = np.random.default_rng(0)
    p, q = rng.integers(0, 8, (2, 1500))
    y = rng.integers(0, 2, 1500)
    x = np.where(rng.random(1500) < 0.5, (p * y + q * (1 - y)) % 8, rng.integers(0, 8, 1500))
    data = EncodedData.from_codes(np.stack([p, q, x], axis=1), y, n_states=[8] * 3)
    train, test = data.take(np.arange(500)), data.take(np.arange(500, 1500))
    by_cells = MaximumLikelihood().fit(CHAIN, train, rng)
    backed_off = BackOffRidge(loss=ConditionalNLL()).fit(CHAIN, train, rng)
    assert error_rate(CHAIN, backed_off, test) < error_rate(CHAIN, by_cells, test) - 0.05


def test_a_classifier_takes_it_with_gaps_and_keeps_it(tmp_path):
    from tanlearn import load

    data = rows(200, missing=0.1)
    X = np.where(data.codes.T == 255, np.nan, data.codes.T)
    model = BayesNetClassifier(structure=CHAIN, parameters=BackOffRidge(max_iter=20)).fit(X, data.y)
    assert model.score(X, data.y) > 0.8
    assert np.isfinite(model.predict_log_proba(X)).all()
    model.save(tmp_path / "model.tanlearn")
    assert load(tmp_path / "model.tanlearn").predict_proba(X).tolist() == model.predict_proba(X).tolist()


def test_a_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge"):
        BackOffRidge(ridge=-1.0).fit(CHAIN, rows(), None)
