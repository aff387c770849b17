"""Losses of networks of terms: calibrated scores of margin losses, and losses that are refused."""

import numpy as np
import pandas as pd
import pytest

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    ConditionalNLL,
    HingeMargin,
    Hybrid,
    JointNLL,
    Knowledge,
    Margin,
    SoftHybrid,
    TermNetClassifier,
    load,
    save,
)
from tanlearn.displays import ContributionDisplay
from tanlearn.terms.losses import fit_temperature


def rows(n_samples=600, seed=0):
    """Return rows whose class depends on one column, and on the product of two others."""
    X = np.random.default_rng(seed).normal(size=(n_samples, 4))
    score = X[:, 0] + 2 * X[:, 1] * X[:, 2]
    y = score + np.random.default_rng(seed + 1).logistic(0, 0.5, n_samples) > 0
    return X, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def by_margin():
    return TermNetClassifier(loss=Margin()).fit(*rows())


def test_conditional_likelihood_is_the_default():
    X, y = rows(200)
    one, two = (TermNetClassifier(loss=loss).fit(X, y) for loss in (None, ConditionalNLL()))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert repr(one.loss_) == repr(two.loss_) == "ConditionalNLL()"


def test_probabilities_of_a_margin_loss_are_calibrated(by_margin):
    """Without a temperature, log odds of 50 nats would be certain, and each error would cost as much."""
    X, y = rows(2000, seed=10)
    assert by_margin.loss_.scale == 0.02
    p = by_margin.predict_proba(X)
    assert (by_margin.predict(X) == y).mean() > 0.8
    edges = {frozenset((i, int(j))) for i, j in enumerate(by_margin.structure_.parent) if j >= 0}
    assert frozenset((1, 2)) in edges
    for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        bin_ = (p[:, 1] >= low) & (p[:, 1] <= high)
        assert (y[bin_] == "yes").mean() == pytest.approx(p[bin_, 1].mean(), abs=0.1)
    likelihood = TermNetClassifier().fit(*rows()).cv_results_["mean_log_loss"].min()
    assert by_margin.cv_results_["mean_log_loss"].min() < 1.1 * likelihood


def test_the_scale_of_a_margin_only_changes_the_units_of_its_scores():
    """Ridges and softened maximum in units of the margin make models equal; the temperature removes the units."""
    X, y = rows(200)
    one, two = (TermNetClassifier(loss=Margin(scale=s, eta=10 * s)).fit(X, y) for s in (0.0625, 1.0))
    assert one.ridges_ == two.ridges_
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_has_the_least_log_loss(weighted):
    """A search over a grid, with one more row of equally distributed classes."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 3, (200, 3))
    y = np.array([rng.choice(3, p=np.exp(s / 4) / np.exp(s / 4).sum()) for s in scores])
    weights = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)

    def loss(temperature):
        total = 0.0
        for row, label, w in zip(scores / temperature, y, weights, strict=True):
            normalizer = np.log(np.exp(row).sum())
            total += w * (normalizer - row[label] + (normalizer - row.mean()) / weights.sum())
        return total

    found = fit_temperature(scores, y, weights)
    assert 2 < found < 8
    grid = found * np.exp(np.linspace(-1, 1, 41))
    assert loss(found) <= min(map(loss, grid)) + 1e-6


def test_temperature_of_rows_without_errors_is_positive():
    y = np.arange(50) % 2
    assert 0.001 < fit_temperature(np.where(y[:, np.newaxis] == [0, 1], 1.0, 0.0), y, np.ones(50)) < 0.5


def test_models_of_margin_losses_have_no_standard_errors_and_are_saved(by_margin, tmp_path):
    X, _ = rows()
    assert by_margin.standard_errors_ == []
    display = ContributionDisplay.from_estimator(by_margin, X, "x0", target="yes")
    assert display.standard_errors is None
    save(by_margin, tmp_path / "model.tanlearn")
    again = load(tmp_path / "model.tanlearn")
    np.testing.assert_array_equal(again.predict_proba(X), by_margin.predict_proba(X))
    assert again.standard_errors_ == []
    assert repr(again.loss) == repr(by_margin.loss)


def test_a_margin_loss_in_an_ensemble(tmp_path):
    X, y = rows(200)
    parts = {"forest": BayesForestClassifier(n_estimators=5), "network": TermNetClassifier(loss=Margin())}
    model = BayesEnsembleClassifier(**parts, random_state=0).fit(X, y)
    save(model, tmp_path / "model.tanlearn")
    np.testing.assert_array_equal(load(tmp_path / "model.tanlearn").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("X", "y"),
    [([[0.0], [1.0], [2.0]], [0, 1, 1]), (np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3 // 2)],
    ids=["no folds", "noise"],
)
def test_without_a_temperature_the_loss_is_conditional_likelihood(X, y):
    one, two = TermNetClassifier(loss=Margin()).fit(X, y), TermNetClassifier().fit(X, y)
    assert isinstance(one.loss_, ConditionalNLL)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


class Custom:
    def value_and_gradient(self, scores, y):
        return scores[:, 0], np.zeros_like(scores)


class Overriding(Margin):
    def value_and_gradient(self, scores, y):
        return scores[:, 0], np.zeros_like(scores)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (HingeMargin(gamma=4), ValueError, r"loss=HingeMargin\(gamma=4\).*has a kink.*Use Margin\(scale=0.25\)"),
        (HingeMargin(gamma=0), ValueError, r"has a kink.*Use Margin\(\)"),
        (Hybrid(gamma=2), ValueError, r"has a kink.*Use SoftHybrid\(trade_off=10, gamma=2, eta=10\)"),
        (Custom(), ValueError, r"may not be convex. Use ConditionalNLL\(\), Margin\(\) or SoftHybrid\(\)"),
        (Overriding(), ValueError, "custom losses may not be convex"),
        (Margin, TypeError, r"got the class Margin. Pass Margin\(\) instead"),
        ("margin", TypeError, r"got the string 'margin'. Pass a loss of tanlearn"),
        (Margin(scale=-1), ValueError, "'scale' parameter"),
    ],
)
def test_other_losses_are_refused(loss, error, message):
    with pytest.raises(error, match=message):
        TermNetClassifier(loss=loss).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


@pytest.mark.parametrize("loss", [SoftHybrid(), JointNLL()], ids=str)
def test_the_joint_likelihood_needs_at_most_one_parent(loss):
    with pytest.raises(ValueError, match=r"max_parents must be 0 or 1, got 2\. Set max_parents=1"):
        TermNetClassifier(loss=loss, max_parents=2).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


@pytest.fixture(scope="module")
def by_hybrid():
    return TermNetClassifier(loss=SoftHybrid(trade_off=2), random_state=0).fit(*rows())


def test_a_hybrid_loss_finds_interactions_and_normalized_cpts(by_hybrid):
    X, y = rows(2000, seed=5)
    assert by_hybrid.loss_.trade_off == 2
    p = by_hybrid.predict_proba(X)
    assert (by_hybrid.predict(X) == y).mean() > 0.8
    assert -np.log(p[np.arange(2000), (y == "yes").astype(int)]).mean() < 0.45
    edges = {frozenset((i, int(j))) for i, j in enumerate(by_hybrid.structure_.parent) if j >= 0}
    assert frozenset((1, 2)) in edges
    tables = by_hybrid.tables_
    assert tables.is_normalized
    for i in range(4):
        np.testing.assert_allclose(np.exp(tables[i]).sum(axis=0), 1, rtol=1e-9)
    assert len(by_hybrid.sample(20)[0]) == 20


def test_models_of_hybrid_losses_have_no_standard_errors_and_are_saved(by_hybrid, tmp_path):
    X, _ = rows()
    assert by_hybrid.standard_errors_ == []
    save(by_hybrid, tmp_path / "model.tanlearn")
    again = load(tmp_path / "model.tanlearn")
    np.testing.assert_array_equal(again.predict_proba(X), by_hybrid.predict_proba(X))
    assert repr(again.loss) == repr(again.loss_) == repr(by_hybrid.loss)


def test_a_hybrid_loss_predicts_incomplete_rows_better():
    """Only the joint likelihood is trained for the dependence of columns that are noisy copies of each other."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(1500, 2))
    X = np.repeat(hidden, 4, axis=1) + rng.normal(0, 0.3, (1500, 8))
    y = (hidden[:, 0] - hidden[:, 1] + rng.logistic(0, 0.3, 1500) > 0).astype(int)
    X[500:][rng.random((1000, 8)) < 0.6] = np.nan
    losses = []
    for loss in (SoftHybrid(trade_off=1), None):
        p = TermNetClassifier(loss=loss).fit(X[:500], y[:500]).predict_proba(X[500:])
        losses.append(-np.log(p[np.arange(1000), y[500:]]).mean())
    assert losses[0] < 0.98 * losses[1]


@pytest.mark.parametrize("loss", [SoftHybrid(), JointNLL()], ids=str)
def test_without_an_effect_a_hybrid_loss_is_conditional_likelihood(loss):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3 // 2
    one, two = TermNetClassifier(loss=loss).fit(X, y), TermNetClassifier().fit(X, y)
    assert isinstance(one.loss_, ConditionalNLL)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_hybrid_loss_with_required_edges_and_monotone_columns():
    X, y = rows(300)
    names = [f"x{i}" for i in range(4)]
    frame = pd.DataFrame(X, columns=names)
    model = TermNetClassifier(
        loss=SoftHybrid(trade_off=2), knowledge=Knowledge(required=[("x3", "x1")]), increasing=["x0"]
    ).fit(frame, y)
    assert ("x3", "x1") in model.to_networkx().edges
    grid = frame.iloc[[0] * 50].assign(x0=np.linspace(-3, 3, 50))
    assert np.diff(model.predict_proba(grid)[:, 1]).min() >= 0
