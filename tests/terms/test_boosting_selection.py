"""Number of boosted terms: held-out loss curves, predictions of rows without their classes, and few rows."""

import math

import numpy as np
import pytest
from oracles import boosting as oracle

from tanlearn import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.models.log_joint import log_posterior
from tanlearn.terms import boosting_selection as module
from tanlearn.terms.boosting import Booster, BoostingSettings
from tanlearn.terms.boosting_selection import learn_boosted_terms

SETTINGS = BoostingSettings(2, 0.2, 1.0)
SEED = 3


def draw(n=150, n_classes=2, *, noise=0.15, seed=0, weights=None):
    """Return rows of three features with 5, 3 and 2 values, whose class depends on the first two, or on none."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [5, 3, 2], (n, 3))
    y = ((codes[:, 0] > 2) + codes[:, 1]) % n_classes
    y = np.where(rng.random(n) < noise, rng.integers(0, n_classes, n), y)
    return encoded(codes, y, n_classes, weights)


def encoded(codes, y, n_classes, weights=None):
    options = {"n_classes": n_classes, "is_ordered": np.array([True, False, False]), "sample_weight": weights}
    return EncodedData.from_codes(codes, y, n_states=[5, 3, 2], **options)


def with_classes(data, y):
    return encoded(data.codes.T.astype(int), y, data.n_classes, data.sample_weight)


def learn(data, most_terms=60, settings=SETTINGS, **options):
    return learn_boosted_terms(data, settings, most_terms, np.random.default_rng(SEED), **options)


def boosters(data, masks):
    """Return boosters of the rows outside of each mask, and of all rows, with the seed of the search."""
    seed = int(np.random.default_rng(SEED).integers(2**32))
    return [Booster(data.take(rows), SETTINGS, np.random.default_rng(seed)) for rows in (*(~m for m in masks), ...)]


def masks_of(data, n_folds):
    return validation_masks(data.y, data.n_classes, n_folds, np.random.default_rng(0))


def log_p_without(data, masks, n_terms):
    """Return the log posterior of each row by the model of the other folds with so many terms."""
    found = np.full((data.n_samples, data.n_classes), np.nan)
    for mask, booster in zip(masks, boosters(data, masks)[:-1], strict=True):
        booster.grow(n_terms)
        found[mask] = log_posterior(booster.model().log_joint(data.codes[:, mask]))
    return found


def mean_loss(log_p, data):
    rows = [r for r in range(data.n_samples) if not np.isnan(log_p[r, 0])]
    total = sum(data.weights[r] for r in rows)
    return -sum(data.weights[r] * log_p[r, data.y[r]] for r in rows) / total


@pytest.fixture
def few_folds(monkeypatch):
    """Use three folds, and evaluate after every fifth term."""
    monkeypatch.setattr(module, "FEW_ROWS", 100)
    monkeypatch.setattr(module, "STEP", 5)
    monkeypatch.setattr(module, "PATIENCE", 15)


def last_improvement(found):
    """Return the number of terms whose held-out loss is the last one that is lower by more than 1e-5 nats."""
    chosen, least = 0, math.inf
    for number, loss in zip(found.n_terms.tolist(), found.log_losses.tolist(), strict=True):
        if loss < least - 1e-5:
            chosen, least = number, loss
    return chosen


@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize(("n_rows", "n_folds"), [(150, 3), (100, 5), (101, 3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_number_of_terms_has_the_least_held_out_loss(n_rows, n_folds, n_classes):
    weights = np.random.default_rng(1).choice([1.0, 2.0], n_rows)
    data = draw(n_rows, n_classes, weights=weights)
    needed = np.array([3, 99, 50])
    found = learn(data, 300, needed=needed)
    masks = masks_of(data, n_folds)
    assert found.n_terms[0] == 0
    assert (np.diff(found.n_terms) == 5).all()
    losses = [mean_loss(log_p_without(data, masks, int(n)), data) for n in found.n_terms]
    np.testing.assert_allclose(found.log_losses, losses, rtol=1e-9)
    chosen = last_improvement(found)
    assert chosen > 0
    assert min(losses) > losses[found.n_terms.tolist().index(chosen)] - 2e-5
    assert len(found.model.features) == chosen
    whole = boosters(data, masks)[-1]
    whole.grow(chosen)
    np.testing.assert_array_equal(found.model.log_joint(data.codes), whole.model().log_joint(data.codes))
    np.testing.assert_allclose(found.held_out, log_p_without(data, masks, chosen)[needed], rtol=1e-9)
    # The search ended after the patience, and not before.
    assert found.n_terms[-1] - 5 < chosen + max(15, 0.2 * chosen) <= found.n_terms[-1]


def test_the_patience_grows_with_the_number_of_terms(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 10)
    monkeypatch.setattr(module, "RELATIVE_PATIENCE", 1.0)
    found = learn(draw(), 500)
    chosen = len(found.model.features)
    assert chosen >= 20
    assert found.n_terms[-1] == 2 * chosen


@pytest.mark.parametrize(("most_terms", "expected"), [(1, [0, 1]), (7, [0, 7]), (23, [0, 10, 20, 23])])
def test_the_maximum_number_of_terms_is_kept(most_terms, expected):
    found = learn(draw(400, noise=0.05), most_terms)
    assert found.n_terms.tolist() == expected
    assert len(found.model.features) == most_terms


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_gives_no_terms(seed, n_classes):
    data = draw(200, n_classes, noise=1.0, seed=seed)
    found = learn(data, needed=np.arange(20))
    assert len(found.model.features) == 0
    assert found.held_out is None
    np.testing.assert_array_equal(found.model.log_joint(data.codes), np.tile(found.model.log_prior, (200, 1)))


@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_terms_are_used_if_they_are_better_by_two_standard_errors(scale):
    decisions = set()
    for seed in range(8):
        weights = np.random.default_rng(seed).choice([1.0, 3.0], 60) * scale
        data = draw(60, noise=0.3 + 0.1 * (seed % 4), seed=seed, weights=weights)
        found = learn(data, 40)
        masks = masks_of(data, 5)
        best = last_improvement(found)
        before, after = log_p_without(data, masks, 0), log_p_without(data, masks, best)
        gains = [after[r, c] - before[r, c] for r, c in enumerate(data.y)]
        own = weights if scale == 1 else weights / weights.mean()  # weights with a mean below 1 are not counts
        mean = sum(own * gains) / sum(own)
        error = math.sqrt(sum(own * (np.array(gains) - mean) ** 2)) / sum(own)
        assert len(found.model.features) == (best if mean > 2 * error else 0)
        decisions.add((best > 0, mean > 2 * error))
    assert decisions >= {(True, True), (True, False)}


@pytest.fixture
def fixed_masks(monkeypatch):
    """Hold out the same rows whatever the classes: those with the same remainder by 3."""
    masks = [np.arange(150) % 3 == k for k in range(3)]
    monkeypatch.setattr(module, "validation_masks", lambda *_: masks)
    monkeypatch.setattr(module, "LEAST_ERRORS_OF_ANY", -np.inf)
    return masks


@pytest.mark.usefixtures("fixed_masks")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_predictions_do_not_depend_on_the_classes_of_their_rows(n_classes):
    """Other classes in one fold change the predictions of rows of all folds but this one."""
    data = draw(n_classes=n_classes, noise=0.0)
    first = learn(data, 10, needed=np.arange(150))
    for k in range(3):
        own = np.arange(150) % 3 == k
        changed = with_classes(data, np.where(own & (np.arange(150) % 2 == 0), (data.y + 1) % n_classes, data.y))
        second = learn(changed, 10, needed=np.arange(150))
        assert len(second.model.features) == 10
        np.testing.assert_array_equal(second.held_out[own], first.held_out[own])
        assert (second.held_out[~own] != first.held_out[~own]).any(axis=1).mean() > 0.9


@pytest.mark.usefixtures("fixed_masks")
def test_held_out_predictions_do_not_depend_on_values_of_other_held_out_rows():
    data = draw(noise=0.0)
    codes = data.codes.T.astype(int)
    codes[0] = (codes[0] + 1) % [5, 3, 2]
    first = learn(data, 10, needed=np.arange(150))
    second = learn(encoded(codes, data.y, 2), 10, needed=np.arange(150))
    np.testing.assert_array_equal(second.held_out[3::3], first.held_out[3::3])
    assert (second.held_out[1::3] != first.held_out[1::3]).any()


@pytest.fixture
def one_fold(monkeypatch):
    """Hold out 40 rows of data sets of more than 120."""
    monkeypatch.setattr(module, "MOST_ROWS_OF_FOLDS", 120)
    monkeypatch.setattr(module, "MOST_HELD_OUT", 40)


@pytest.mark.usefixtures("one_fold")
def test_many_rows_have_one_fold_with_the_needed_rows():
    data = draw(noise=0.05)
    needed = np.array([140, 2, 30, 77])
    (mask,) = module._masks(data, needed)
    assert mask.sum() == 40
    assert mask[needed].all()
    found = learn(data, 10, needed=needed)
    log_p = log_p_without(data, [mask], 10)
    assert found.n_terms.tolist() == [0, 10]
    np.testing.assert_allclose(found.log_losses[1], mean_loss(log_p, data), rtol=1e-9)
    np.testing.assert_allclose(found.held_out, log_p[needed], rtol=1e-9)
    assert len(module._masks(draw(120), needed)) == 5


@pytest.mark.usefixtures("one_fold")
def test_needed_rows_of_one_fold_are_predicted_without_their_classes():
    data, needed = draw(noise=0.0), np.arange(5)
    first = learn(data, 10, needed=needed)
    y = data.y.copy()
    y[needed] = 1 - y[needed]
    second = learn(with_classes(data, y), 10, needed=needed)
    np.testing.assert_array_equal(second.held_out, first.held_out)


@pytest.mark.parametrize("fold", [False, True])
def test_rows_of_weight_zero_are_absent(monkeypatch, fold):
    if fold:
        monkeypatch.setattr(module, "MOST_ROWS_OF_FOLDS", 60)
        monkeypatch.setattr(module, "MOST_HELD_OUT", 40)
    weights = np.arange(150) % 3 / 2
    data = draw(weights=weights)
    needed = np.array([0, 5, 60])
    one, two = learn(data, needed=needed), learn(data.take(weights > 0), needed=needed)
    np.testing.assert_array_equal(one.log_losses, two.log_losses)
    np.testing.assert_array_equal(one.held_out, two.held_out)
    np.testing.assert_array_equal(one.model.log_joint(data.codes), two.model.log_joint(data.codes))
    np.testing.assert_array_equal(one.model.weights, two.model.weights)


def test_results_do_not_depend_on_the_number_of_threads():
    data = draw(n_classes=3)
    found = [learn(data, needed=np.arange(9), n_jobs=n_jobs) for n_jobs in (None, 1, 2, 5)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.log_losses, found[0].log_losses)
        np.testing.assert_array_equal(other.held_out, found[0].held_out)
        np.testing.assert_array_equal(other.model.values, found[0].model.values)


def test_the_seed_determines_the_terms():
    data = draw(n_classes=3)
    found = [learn_boosted_terms(data, SETTINGS, 30, np.random.default_rng(seed)).log_losses for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0][0] == found[2][0]  # without terms
    assert (found[0][1:] != found[2][1:]).all()


@pytest.mark.parametrize("y", [[0], [0, 0], [0, 1], [1, 0, 0], [0] * 20 + [1]], ids=len)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_and_rare_classes_have_no_folds_or_few(y, n_classes):
    """With one row of a class, the training rows of a fold have a single class if there are two classes."""
    y = np.array(y)
    data = encoded(np.zeros((len(y), 3), int) + y[:, np.newaxis], y, n_classes)
    found = learn(data, needed=np.arange(1))
    assert found.n_terms.tolist() == []
    assert found.log_losses.tolist() == []
    assert found.held_out is None
    assert len(found.model.features) == 50
    assert np.isfinite(found.model.log_joint(data.codes)).all()
    assert len(learn(data, 20).model.features) == 20


def test_a_class_without_rows_in_the_training_part_of_a_fold_has_a_small_probability():
    """Class 2 has a single row, which is predicted by a model of the other two classes."""
    data = draw(60, noise=0.0)
    data = encoded(data.codes.T.astype(int), np.where(np.arange(60) == 7, 2, data.y), 3)
    found = learn(data, 20, needed=np.array([7]))
    assert len(found.model.features) == 20
    assert np.isfinite(found.held_out).all()
    assert found.held_out[0, 2] < np.log(0.05)


def test_probabilities_of_held_out_rows_are_normalized():
    found = learn(draw(n_classes=3, noise=0.05), needed=np.arange(150))
    np.testing.assert_allclose([sum(math.exp(v) for v in row) for row in found.held_out], 1)
    assert oracle.probabilities(found.held_out[0].tolist()) == pytest.approx(np.exp(found.held_out[0]))
