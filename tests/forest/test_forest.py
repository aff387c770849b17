"""The whole forest: grown, weighed or averaged, and asked."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax
from support.forests import DRAWS, Gains, fit_forest, learn, learn_forest, make, with_true_classes

from tanlearn import EncodedData
from tanlearn.forest import learning
from tanlearn.forest.forest import Forest, softmax
from tanlearn.forest.forest_weights import FittedWeights
from tanlearn.forest.learning import ForestSettings, estimate_label_noise
from tanlearn.forest.out_of_fold import OutOfFold


@pytest.mark.parametrize("weights", ["auto", "shared", None])
def test_forest_is_the_same_on_any_number_of_threads_and_of_one_seed(weights):
    data = make(150, gaps=0.05)
    first, second = learn(data, weights=weights), learn(data, n_jobs=3, weights=weights)
    other = learn(data, seed=1, weights=weights)
    scores = first.log_joint(data.codes)
    np.testing.assert_array_equal(scores, second.log_joint(data.codes, n_jobs=2))
    assert (scores != other.log_joint(data.codes)).any()
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)
    assert (scores.argmax(axis=1) == data.y).mean() > 0.6


def test_average_is_the_mean_of_probabilities_and_weighted_scores_are_added():
    data = make(100)
    forest = learn(data, weights=None)
    logs = []
    for member, weight in zip(forest.members, forest.weights, strict=True):
        scores = np.tile(forest.log_prior, (1, 100, 1))
        member.add_scores(data.codes, weight, np.zeros(weight.shape, np.intp), scores)
        logs.append(scores[0])
    mean = np.exp(log_softmax(logs, axis=2)).mean(axis=0)
    np.testing.assert_allclose(forest.noiseless_proba(data.codes), mean)
    expected = np.log((1 - forest.label_noise) * mean + forest.label_noise / 3)
    np.testing.assert_allclose(forest.log_joint(data.codes), expected)
    shift = np.array([0.0, 1.0, -np.inf])
    added = replace(forest, is_average=False, shift=shift)
    total = np.exp(log_softmax(np.sum(logs, axis=0) - 2 * forest.log_prior, axis=1))
    expected = np.log((1 - forest.label_noise) * total + forest.label_noise / 3) + shift
    np.testing.assert_allclose(added.log_joint(data.codes), expected)


def test_softmax_of_large_scores_is_finite():
    np.testing.assert_allclose(softmax(np.array([[1e4, 0.0, 1e4], [-1e4, -1e4, 0.0]])), [[0.5, 0, 0.5], [0, 0, 1]])


def weighed_by(monkeypatch, found, **settings):
    """Return a forest of weights that are given, and what they were asked with."""
    asked = []

    def fit_all_weights(*arguments, **_):
        asked.append(arguments)
        return found

    monkeypatch.setattr(learning, "fit_all_weights", fit_all_weights)
    return learn(make(90, weights=np.arange(1.0, 91)), **settings), asked


@pytest.mark.parametrize(("weights", "ridge"), [("auto", None), ("shared", 0.25)])
def test_the_forest_is_weighed_as_views_of_it_say(monkeypatch, weights, ridge):
    rows, own_p = np.arange(60), np.append(np.full(55, 0.95), np.full(5, 1e-6))
    data = make(90, weights=np.arange(1.0, 91))
    p = with_true_classes(own_p, data.y[rows])
    found = FittedWeights(np.random.default_rng(0).normal(size=(3, 5, 3)), 0.3, rows, p)
    forest, asked = weighed_by(monkeypatch, found, weights=weights, ridge=ridge)
    sums = np.bincount(data.y, data.weights) + 1
    np.testing.assert_allclose(forest.log_frequency, np.log(sums / sums.sum()))
    np.testing.assert_allclose(forest.log_prior, 0.3 * np.log(sums / sums.sum()))
    np.testing.assert_array_equal(forest.weights, found.weights)
    doubt = estimate_label_noise(own_p, data.weights[:60], 3)
    assert (forest.label_noise, forest.is_average, forest.shift.tolist()) == (doubt, False, [0.0] * 3)
    ((views, *how, _),) = asked
    assert how == [weights, ridge]
    assert (views.outer.n_members, len(views.inner)) == (3, 3)
    scores = np.tile(forest.log_prior, (1, 90, 1))
    for member, weight in zip(forest.members, found.weights, strict=True):
        member.add_scores(data.codes, weight, np.zeros((5, 3), np.intp), scores)
    total = np.exp(log_softmax(scores[0], axis=1))
    np.testing.assert_allclose(forest.log_joint(data.codes), np.log((1 - doubt) * total + doubt / 3))


def test_twins_are_grown_by_the_seeds_of_the_members(monkeypatch):
    forest, asked = weighed_by(monkeypatch, FittedWeights(np.ones((3, 5, 3)), 1.0, np.arange(9), np.ones((9, 3))))
    ((views, *_),) = asked
    families = [[set(own) for own in member.tables.parents.tolist()] for member in forest.members]
    assert len({str(own) for own in families}) == 3
    for members in views.outer.members:  # all candidates are parents, whatever the rows
        assert [[set(own) for own in twin.tables.parents.tolist()] for twin in members] == families


@pytest.mark.parametrize("weights", ["auto", None])
def test_gaps_of_any_row_are_a_value_in_all_twins(monkeypatch, weights):
    data, grown = make(60), []
    codes = data.codes.copy()
    codes[1, 7] = codes[4, 8] = 255
    grow_network = learning.grow_network

    def grow(part, is_ordered, has_missing, *how, **more):
        grown.append((part.n_samples, has_missing.tolist()))
        return grow_network(part, is_ordered, has_missing, *how, **more)

    monkeypatch.setattr(learning, "grow_network", grow)
    forest = learn(replace(data, codes=codes), n_members=2, weights=weights)
    assert len(grown) == 2 * (1 + (6 if weights else 3))
    assert min(n for n, _ in grown) < 60
    assert {tuple(gaps) for _, gaps in grown} == {(False, True, False, False, True)}
    assert np.isfinite(forest.log_joint(codes)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("level", range(3))
def test_an_average_takes_the_levels_that_left_out_rows_are_best_off_with(monkeypatch, weighted, level):
    rng, is_light = np.random.default_rng(level), np.arange(90) % 2 == 0
    data = make(90, weights=np.where(is_light, 0.01, 1.0) if weighted else None)
    right, gains = np.eye(3)[data.y], 0.3 * rng.normal(size=(3, 5, 3, 90, 3))
    # Up to a level, gains are right; light rows, and there are as many, want no level at all, and that by far.
    gains[:, 0, : level + 1] += np.where(is_light & weighted, -9.0, 1.0)[:, np.newaxis] * right
    gains[:, 0, level + 1 :] -= right
    outer, asked = Gains(data, gains, np.zeros((90, 3))), []

    def grow_out_of_fold(*_, **how):
        asked.append(how)
        return OutOfFold(outer, [], np.arange(90) % 3, rng.permutation(90))

    monkeypatch.setattr(learning, "grow_out_of_fold", grow_out_of_fold)
    monkeypatch.setattr(learning, "_with_importances", lambda forest, *_: forest)  # needs twins
    forest = learn(data, weights=None)
    assert [how["is_nested"] for how in asked] == [False]
    np.testing.assert_array_equal(forest.weights, np.ones((3, 5, level + 1)))
    assert {member.tables.n_levels for member in forest.members} <= set(range(1, level + 2))
    own = outer.level_probabilities(np.arange(90))[level, np.arange(90), data.y]
    assert forest.label_noise == estimate_label_noise(own, data.weights, 3)
    assert forest.is_average
    assert forest.log_prior is forest.log_frequency


@pytest.mark.parametrize("best", ["class frequencies", "weighted", "average", "doubted", "close"])
def test_the_model_of_the_least_out_of_fold_log_loss_is_selected(monkeypatch, best):
    rng, data = np.random.default_rng(0), make(90, weights=np.arange(1.0, 91))
    rows = rng.permutation(90)[:70]
    gains = {"average": 1.0, "close": 0.1}.get(best, 0.0) * np.eye(3)[data.y] + rng.normal(size=(3, 5, 3, 90, 3))
    prior = rng.dirichlet(np.full(3, 50.0), 90) + (1.0 if best == "class frequencies" else 0.0) * np.eye(3)[data.y]
    outer = Gains(data, gains, np.log(prior / prior.sum(axis=1, keepdims=True)))
    own_p = np.full(70, 0.9 if best in ("weighted", "doubted") else 0.2)
    if best == "doubted":  # the log loss of the weighted networks is the least only because some rows are doubtful
        own_p[:3] = 1e-40
    if best == "close":  # the average is better by less than 2 standard errors
        p = outer.level_probabilities(rows)[:, np.arange(70), data.y[rows]]
        level = np.average(-np.log(p), axis=1, weights=data.weights[rows]).argmin()
        own_p = np.minimum(p[level] * np.exp(0.5 * np.resize([-1.0, 1.0], 70) - 0.05), 0.99)
    found = FittedWeights(rng.normal(size=(3, 5, 3)), 0.3, rows, with_true_classes(own_p, data.y[rows]))
    monkeypatch.setattr(learning, "fit_all_weights", lambda *_, **how: found)
    monkeypatch.setattr(learning, "grow_out_of_fold", lambda *_, **how: OutOfFold(outer, [], np.arange(90) % 3, rows))
    priors = []
    monkeypatch.setattr(learning, "_with_importances", lambda forest, _, of_prior: priors.append(of_prior) or forest)
    told, settings = [], ForestSettings(n_members=3, draws=DRAWS, n_folds=3)
    forest = learn_forest(data, np.arange(5) != 2, settings, np.random.default_rng(0), report=told.append)
    is_weighted = best in ("weighted", "doubted", "close")
    doubt = estimate_label_noise(own_p, data.weights[rows], 3)
    loss = np.average(-np.log((1 - doubt) * own_p + doubt / 3), weights=data.weights[rows])
    assert f" {loss:.4f} (weighted)" in told[-2]
    if best == "close":
        by_weights, by_average = (
            float(own.split()[0]) for own in told[-2].split("(class frequencies), ")[1].split(", ")
        )
        assert 0.02 < by_weights - by_average < 0.2
    assert told[-2].split(":")[0] == ("weighted" if is_weighted else best)
    assert told[-1] == f"label noise {forest.label_noise:.2g}"
    assert priors == [0.3 if is_weighted else 1.0]
    if best == "class frequencies":
        assert not forest.weights.any()
        assert (forest.label_noise, forest.is_average) == (0.0, False)
        frequencies = np.tile(np.exp(forest.log_frequency), (90, 1))
        np.testing.assert_allclose(np.exp(forest.log_joint(data.codes)), frequencies)
    elif best == "average":
        p = outer.level_probabilities(rows)[:, np.arange(70), data.y[rows]]
        losses = np.average(-np.log(p), axis=1, weights=data.weights[rows])
        assert forest.weights.shape == (3, 5, 1 + losses.argmin())
        assert (forest.weights == 1).all()
        assert forest.is_average
        assert forest.label_noise == estimate_label_noise(p[losses.argmin()], data.weights[rows], 3)
        assert forest.log_prior is forest.log_frequency
    else:
        np.testing.assert_array_equal(forest.weights, found.weights)
        assert not forest.is_average
        assert forest.label_noise == estimate_label_noise(own_p, data.weights[rows], 3)
        assert best == "close" or (forest.label_noise > 0.03) == (best == "doubted")


@pytest.mark.parametrize(("standard_errors", "is_average"), [(1.95, False), (2.05, True)])
@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_the_average_is_selected_if_its_gain_exceeds_two_standard_errors(
    monkeypatch, mean, standard_errors, is_average
):
    rng, data = np.random.default_rng(0), make(90, weights=np.arange(1.0, 91))
    rows = rng.permutation(90)[:70]
    outer = Gains(data, np.eye(3)[data.y] + rng.normal(size=(3, 5, 3, 90, 3)), np.full((90, 3), np.log(1 / 3)))
    p, weights = outer.level_probabilities(rows)[:, np.arange(70), data.y[rows]], data.weights[rows]
    average = p[np.average(-np.log(p), axis=1, weights=weights).argmin()]
    gain = (rng.normal(size=70) + 1.0) * weights  # of the average over the weighted networks, in nats
    gain -= np.average(gain, weights=weights)
    gain *= mean * np.sqrt(70) / standard_errors / np.sqrt(np.average(gain**2, weights=weights))
    p = with_true_classes(average * np.exp(-(mean + gain)), data.y[rows])
    monkeypatch.setattr(learning, "fit_all_weights", lambda *_, **how: FittedWeights(np.ones((3, 5, 3)), 1.0, rows, p))
    monkeypatch.setattr(learning, "grow_out_of_fold", lambda *_, **how: OutOfFold(outer, [], np.arange(90) % 3, rows))
    monkeypatch.setattr(learning, "_with_importances", lambda forest, *_: forest)  # needs networks
    monkeypatch.setattr(learning, "estimate_label_noise", lambda *_: 0.0)  # it would change the gains
    assert learn(data).is_average == is_average


@pytest.mark.parametrize("weights", ["auto", None])
def test_out_of_fold_predictions_are_those_of_networks_grown_without_the_rows(monkeypatch, weights):
    data, kept, grow_out_of_fold = make(90), [], learning.grow_out_of_fold
    monkeypatch.setattr(
        learning, "grow_out_of_fold", lambda *own, **how: kept.append(grow_out_of_fold(*own, **how)) or kept[0]
    )
    settings = ForestSettings(n_members=3, draws=DRAWS, n_folds=3, weights=weights)
    found = fit_forest(data, np.arange(5) != 2, settings, np.random.default_rng(0))
    outer, noise = kept[0].outer, found.forest.label_noise
    assert sorted(found.rows.tolist()) == list(range(90))
    p = (np.exp(found.log_p) - noise / 3) / (1 - noise)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    if weights is None:
        level = int((found.forest.weights[0, 0] > 0).sum()) - 1
        np.testing.assert_allclose(p, outer.level_probabilities(found.rows)[level])
    else:  # weights of single parts are close to those of all rows, and predictions of rows in training are not
        own = np.arange(90), data.y[found.rows]
        in_training = np.exp(log_softmax(found.forest.log_joint(data.codes), axis=1))[found.rows][own]
        assert np.log(p[own]).mean() < np.log(in_training).mean()
        totals = outer.total_scores(found.rows, found.forest.weights)
        assert np.corrcoef((totals - totals.mean(axis=1, keepdims=True)).ravel(), found.log_p.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("weights", ["auto", None])
def test_importances_are_of_the_model_that_is_returned(monkeypatch, weights):
    """Without missing values in training, a feature that is left out is a missing value in prediction."""
    data, kept, grow_out_of_fold = make(90, weights=np.arange(1.0, 91)), [], learning.grow_out_of_fold
    p = with_true_classes(np.full(90, 0.999), data.y)
    found = FittedWeights(np.random.default_rng(0).uniform(0.1, 1.0, (3, 5, 3)), 0.3, np.arange(90), p)
    monkeypatch.setattr(learning, "fit_all_weights", lambda *_, **how: found)
    monkeypatch.setattr(
        learning, "grow_out_of_fold", lambda *own, **how: kept.append(grow_out_of_fold(*own, **how)) or kept[0]
    )
    forest = learn(data, weights=weights)
    assert forest.is_average == (weights is None)
    of_all_levels = np.zeros((3, 5, 3))
    of_all_levels[:, :, : forest.weights.shape[2]] = forest.weights
    of_prior, rise = 1.0 if weights is None else 0.3, np.zeros(5)
    for f, members in enumerate(kept[0].outer.members):
        seen, own = np.flatnonzero(kept[0].fold != f), np.flatnonzero(kept[0].fold == f)
        sums = np.bincount(data.y[seen], data.weights[seen]) + 1.0
        prior = of_prior * np.log(sums / sums.sum())
        out_of_fold = replace(forest, members=members, weights=of_all_levels, log_prior=prior)
        for i in range(5):
            codes = data.codes[:, own].copy()
            codes[i] = 255
            loss, without = (
                -(data.weights[own] * out_of_fold.log_joint(codes)[np.arange(len(own)), data.y[own]]).sum()
                for codes in (data.codes[:, own], codes)
            )
            rise[i] += without - loss
    np.testing.assert_allclose(forest.importances, rise / data.weights.sum(), rtol=1e-9, atol=1e-12)
    assert np.abs(forest.importances).max() > 0.05


def noise(seed, n):
    """Return rows whose classes no feature knows of."""
    rng = np.random.default_rng(seed)
    return EncodedData.from_codes(rng.integers(0, 30, (n, 40)), rng.integers(0, 2, n), n_states=[30] * 40, n_classes=2)


@pytest.mark.parametrize(("weights", "bound"), [("auto", 0.75), ("shared", 0.75), (None, 0.8)])
def test_of_noise_next_to_nothing_is_learnt(weights, bound):
    losses = []
    for seed in range(3):
        train, new = noise(seed, 100), noise(100 + seed, 1000)
        settings = ForestSettings(n_members=8, weights=weights)
        forest = learn_forest(train, np.ones(40, bool), settings, np.random.default_rng(50 + seed))
        losses.append(-forest.log_joint(new.codes)[np.arange(1000), new.y].mean())
    assert max(losses) < bound


def test_columns_of_many_values_take_no_table_of_their_square():
    data = EncodedData.from_codes([[0, 0], [59_999, 1], [5, 1], [6, 0]], [0, 1, 1, 0], n_states=[60_000, 2])
    forest = learn(data, n_folds=2)
    assert np.isfinite(forest.log_joint(data.codes)).all()


@pytest.mark.parametrize("n_folds", [2, 6])
def test_forest_of_one_feature_and_of_few_rows(n_folds):
    data = make(6, 1, 2)
    forest = learn(data, n_folds=n_folds)
    assert isinstance(forest, Forest)
    assert np.isfinite(forest.log_joint(data.codes)).all()


def test_settings_reach_the_members():
    data = make(100)
    forest = learn(data, n_members=2, draws=replace(DRAWS, max_parents=1, n_cuts=(2, 2)))
    assert [member.tables.n_levels for member in forest.members] == [2, 2]
    assert forest.members[0].cuts.n_states.max() == 12  # feature 2 has no order
    assert np.delete(forest.members[0].cuts.n_states, 2).max() <= 3
    sizes = [sum(len(m.tables.gain) for m in learn(data, min_samples=least).members) for least in (2, 20)]
    assert sizes[1] < sizes[0]
    smooth = learn(data, smoothing=1e6, weights=None)
    assert np.ptp(smooth.log_joint(data.codes), axis=0).max() < 0.1


def test_a_forest_of_the_same_rows_keeps_its_networks_and_seeds():
    data, is_ordered = make(120), np.arange(5) != 2
    settings = ForestSettings(n_members=2, draws=DRAWS, n_folds=3)
    first = learning.grow_forest(data, is_ordered, settings, np.random.default_rng(0))
    more = replace(settings, n_members=4)
    grown = learning.grow_forest(data, is_ordered, more, np.random.default_rng(1), before=first)
    assert len(grown.members) == len(set(grown.seeds)) == 4
    assert grown.seeds[:2] == first.seeds
    assert all(own is kept for own, kept in zip(grown.members, first.members, strict=False))
    other = make(120, seed=1)
    anew = learning.grow_forest(other, is_ordered, more, np.random.default_rng(1), before=first)
    assert not set(anew.seeds) & set(first.seeds)
    assert not any(own is kept for own in anew.members for kept in first.members)
