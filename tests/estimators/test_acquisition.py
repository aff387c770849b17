"""Errors over the number of observed features equal those of observing one feature after the other by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import ChowLiu

ORDERS = ["adaptive", "fixed", "random"]
COSTS = {"proline": 4.0, "ash": 0.5}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = X.iloc[:, [0, 2, 6, 10, 12]], y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    X_test = X[1::4].copy()
    X_test.iloc[::5, 2] = np.nan
    return BayesNetClassifier(structure=ChowLiu()).fit(X[::2], y[::2]), X_test, y[1::4]


@pytest.fixture(scope="module")
def curve(wine):
    return wine[0].acquisition_curve(*wine[1:], costs=COSTS)


def by_hand(wine, choose):
    """Return errors, log losses and costs of observing one feature after the other; ``choose`` names one per row."""
    model, X, y = wine
    shown, seen = X.mask(X.notna()), np.zeros(X.shape, bool)
    results, total = [], 0.0
    for k in range(X.shape[1] + 1):
        p = model.predict_proba(shown)
        results.append((np.mean(model.classes_[p.argmax(axis=1)] != y), log_loss(y, p, labels=model.classes_), total))
        if k == X.shape[1]:
            break
        for row, name in enumerate(choose(shown, seen)):
            i = X.columns.get_loc(name)
            assert not seen[row, i]
            shown.iloc[row, i], seen[row, i] = X.iloc[row, i], True
            total += COSTS.get(name, 1.0) / len(X)
    return np.array(results).T


def check(curve, order, wanted):
    """Compare one order of a curve with errors, log losses and costs."""
    np.testing.assert_allclose(curve.errors[order], wanted[0], atol=1e-12)
    np.testing.assert_allclose(curve.log_losses[order], wanted[1], rtol=1e-9)
    np.testing.assert_allclose(curve.costs[order], wanted[2], rtol=1e-12)


def test_the_adaptive_order_observes_the_next_feature_of_each_row(wine, curve):
    observed = []

    def choose(shown, seen):
        observed.append(wine[0].next_feature(shown, costs=COSTS, unanswered=seen & shown.isna().to_numpy()))
        return observed[-1]

    check(curve, "adaptive", by_hand(wine, choose))
    assert curve.features.tolist() == np.array(observed).T.tolist()
    assert len({*map(tuple, curve.features)}) > 3


def test_the_fixed_order_has_the_largest_mean_gain(wine, curve):
    model, X, _ = wine

    def choose(shown, seen):
        gains = model.feature_gains(shown, costs=COSTS, unanswered=seen & shown.isna().to_numpy())
        means = np.where(seen[0], -1, np.nan_to_num(gains)).mean(axis=0)
        return [X.columns[means.argmax()]] * len(X)

    check(curve, "fixed", by_hand(wine, choose))
    orders = []
    by_hand(wine, lambda shown, seen: orders.append(choose(shown, seen)) or orders[-1])
    assert curve.fixed_order == [names[0] for names in orders]


def test_all_orders_begin_and_end_with_the_same_rows(wine, curve):
    model, X, y = wine
    assert [*curve.errors] == [*curve.log_losses] == [*curve.costs] == ORDERS
    nothing = X.mask(X.notna())
    for order in ORDERS:
        ends = curve.errors[order][[0, -1]], curve.log_losses[order][[0, -1]], curve.costs[order][[0, -1]]
        wanted = (
            (1 - model.score(nothing, y), 1 - model.score(X, y)),
            tuple(log_loss(y, model.predict_proba(rows), labels=model.classes_) for rows in (nothing, X)),
        )
        np.testing.assert_allclose(ends, [*wanted, (0, 7.5)], rtol=1e-9)
        assert curve.error_of_all == pytest.approx(curve.errors[order][-1])
        assert curve.log_loss_of_all == pytest.approx(curve.log_losses[order][-1])


def test_random_orders_are_those_of_the_seed(wine, curve):
    again = wine[0].acquisition_curve(*wine[1:], costs=COSTS, random_state=0)
    other = wine[0].acquisition_curve(*wine[1:], costs=COSTS, random_state=1)
    assert again.errors["random"].tolist() == curve.errors["random"].tolist() != other.errors["random"].tolist()
    assert (curve.errors["adaptive"][1:4] < curve.errors["random"][1:4]).all()


def test_fewer_features_are_the_first_ones(wine, curve):
    short = wine[0].acquisition_curve(*wine[1:], costs=COSTS, n_features=2, n_random=0)
    assert [*short.errors] == ["adaptive", "fixed"]
    for order in short.errors:
        np.testing.assert_array_equal(short.errors[order], curve.errors[order][:3])
    assert short.features.tolist() == curve.features[:, :2].tolist()
    assert short.error_of_all == curve.error_of_all


def test_rows_stop_once_they_are_sure(curve):
    p = curve.probabilities
    stopped = curve.stop(0.9)
    last = [next((k for k in range(6) if p[k, n].max() >= 0.9), 5) for n in range(p.shape[1])]
    wrong = [p[k, n].argmax() != curve.y[n] for n, k in enumerate(last)]
    sure = [any(p[k, n].max() >= 0.9 for k in range(6)) for n in range(p.shape[1])]
    assert stopped == {"error": np.mean(wrong), "n_features": np.mean(last), "sure": np.mean(sure)}
    assert 0 < stopped["n_features"] < 5
    for wrong_value in (0, 1.5, np.nan):
        with pytest.raises(ValueError, match="confidence must be a probability above 0"):
            curve.stop(wrong_value)


def test_frames_have_a_line_per_order_and_number(curve):
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["order", "n_features", "cost", "error", "log_loss"]
    assert frame["order"].tolist() == [order for order in ORDERS for _ in range(6)]
    assert frame["n_features"].tolist() == [0, 1, 2, 3, 4, 5] * 3
    assert frame["error"].tolist() == np.concatenate([*curve.errors.values()]).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer from 1 to 5, got 0"),
        ({"n_features": 6}, "n_features must be an integer from 1 to 5, got 6"),
        ({"n_features": 1.5}, "got 1.5"),
        ({"n_random": -1}, "n_random must be an integer of at least 0, got -1"),
        ({"gain": "bits"}, "gain must be"),
        ({"costs": {"alcool": 1}}, "Did you mean 'alcohol'"),
    ],
)
def test_invalid_arguments_are_refused(wine, options, message):
    with pytest.raises(ValueError, match=message):
        wine[0].acquisition_curve(*wine[1:], **options)


def test_unknown_classes_are_refused(wine):
    model, X, _ = wine
    with pytest.raises(ValueError, match="Chianti"):
        model.acquisition_curve(X, ["Chianti"] * len(X))


def test_missing_values_of_columns_with_a_category_for_them_are_observed_as_this_category(wine):
    _, X, y = wine
    X = X.drop(columns="ash")
    encoder = TableEncoder(handle_missing="category")
    model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [False, True, False, False]
    curve = model.acquisition_curve(X, y, n_random=1)
    for order in ORDERS:
        np.testing.assert_allclose(curve.errors[order][-1], 1 - model.score(X, y), atol=1e-12)
        loss = log_loss(y, model.predict_proba(X), labels=model.classes_)
        assert curve.log_losses[order][-1] == pytest.approx(loss, rel=1e-9)


@pytest.mark.data
@pytest.mark.parametrize("learner", ["naive", "tree", "gradient"])
def test_eight_answers_on_soybean_diseases_suffice_for_most_rows(learner):
    path = Path(__file__).parents[3] / "shared" / "data" / "raw" / "soybean-large.npz"
    if not path.exists():
        pytest.skip("needs soybean-large")
    file = np.load(path)
    columns = {
        name: pd.Series(file[f"categories_{j}"][file["X"][:, j]], dtype=object)
        for j, name in enumerate(file["feature_names"].tolist())
    }
    X, y = pd.DataFrame(columns).mask(file["missing"]), file["classes"][file["y"]]
    X, X_test, y, y_test = train_test_split(X, y, test_size=137, random_state=0, stratify=y)
    model = {
        "naive": NaiveBayesClassifier(),
        "tree": BayesNetClassifier(structure=ChowLiu()),
        "gradient": TANClassifier(random_state=0),
    }[learner].fit(X, y)
    errors = model.acquisition_curve(X_test, y_test, n_features=8, n_random=3).errors
    assert errors["adaptive"][8] < 0.15
    assert errors["adaptive"][8] < errors["fixed"][8] < 0.26
    assert errors["random"][8] > 0.3
