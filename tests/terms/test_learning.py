"""Learning of networks of terms from encoded rows: structure, ridges and the number of parents."""

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import as_plain, random_rows

from tanlearn import EncodedData
from tanlearn.models.log_joint import log_joint, log_posterior
from tanlearn.terms import learning, selection
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.learning import learn_terms
from tanlearn.terms.selection import NO_EFFECT, START, divide
from tanlearn.training.losses import ConditionalNLL

LARGEST_NUMBER = {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 3}


def interactions(n_samples, seed=0, weights=None):
    """Return rows of five features whose class depends on three pairs with one feature in common."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n_samples, 5))
    high = np.where(X >= 2, 1, -1)
    score = high[:, 0] * (high[:, 1] + high[:, 2] + high[:, 3])
    y = (score + rng.normal(0, 0.5, n_samples) > 0).astype(int)
    weight = None if weights is None else weights(rng, n_samples)
    return EncodedData.from_codes(X, y, n_states=[4] * 5, sample_weight=weight, is_ordered=True)


def assert_equal(one, two, *, exact=True, data=None):
    """Compare two outcomes: everything, or the choices and the posteriors as far as iterations magnify rounding."""
    assert (one.chosen.n_parents, one.chosen.n_triples) == (two.chosen.n_parents, two.chosen.n_triples)
    assert one.chosen.ridges == two.chosen.ridges
    np.testing.assert_array_equal(one.network.structure.parents, two.network.structure.parents)
    if exact:
        assert one.trials == two.trials
        for a, b in zip(one.network.tables.values, two.network.tables.values, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(one.network.tables.log_prior, two.network.tables.log_prior)
    else:
        scores = [log_joint(each.network.tables, each.network.structure, data.codes) for each in (one, two)]
        np.testing.assert_allclose(*(np.exp(log_posterior(one)) for one in scores), rtol=0, atol=0.02)


def test_threads_change_nothing():
    data = interactions(150)
    assert_equal(learn_terms(data, 2, n_jobs=1), learn_terms(data, 2, n_jobs=2))


def test_edges_of_interactions_are_found():
    found = learn_terms(interactions(600), 1)
    parents = found.network.structure.parents
    edges = {frozenset((i, j)) for i, row in enumerate(parents.tolist()) for j in row if j >= 0}
    assert {frozenset((0, i)) for i in (1, 2, 3)} <= edges
    assert found.chosen.n_parents == 1
    assert [trial.n_parents for trial in found.trials] == [0, 1]
    assert found.trials[1].log_loss < 0.6 * found.trials[0].log_loss
    assert found.trials[1].error < 0.1
    assert found.trials[0].error > 0.3


@pytest.mark.parametrize("max_parents", range(6))
def test_no_more_parents_than_allowed(max_parents):
    found = learn_terms(interactions(120, seed=1), max_parents)
    structure, tables = found.network.structure, found.network.tables
    assert structure.is_acyclic
    assert found.chosen.n_parents <= max_parents
    assert (structure.parents >= 0).sum(axis=1).max() <= (
        max_parents if found.chosen.n_triples else found.chosen.n_parents
    )
    tried = [trial.n_parents for trial in found.trials if not trial.n_triples]
    assert tried == [0, 1, 2, 3][: len(tried)]
    assert tried[-1] <= LARGEST_NUMBER[max_parents]
    triples = [trial.n_triples for trial in found.trials if trial.n_triples]
    assert triples in ([[]] if max_parents < 2 else [[5], [5, 15]])
    if found.chosen not in found.trials:
        assert (found.chosen.n_parents, found.chosen.n_triples, found.chosen.ridges) == (0, 0, NO_EFFECT)
    is_tree = (structure.parents[:, 1:] < 0).all()
    assert tables.is_normalized == is_tree
    if is_tree:
        for i in range(5):
            np.testing.assert_allclose(np.exp(tables[i]).sum(axis=0), 1, rtol=1e-9)
    losses = [one.loss for one in found.history]
    assert losses[-1] < losses[0]


def test_more_parents_and_triples_are_tried_while_the_loss_falls(monkeypatch):
    """The chosen network is the last one that is better by more standard errors than asked.

    Five parents are not tried, because a feature has four others.
    """
    data = interactions(120, seed=1)
    monkeypatch.setattr(selection, "LEAST_ERRORS_OF_ANY", -1e9)
    monkeypatch.setattr(selection, "LEAST_ERRORS", -1e9)
    monkeypatch.setattr(selection, "LEAST_ERRORS_OF_MORE", -1e9)
    always = learn_terms(data, 5)
    numbers = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 5), (3, 15)]
    assert [(trial.n_parents, trial.n_triples) for trial in always.trials] == numbers
    assert always.chosen is always.trials[-1]
    monkeypatch.setattr(selection, "LEAST_ERRORS", 1e9)
    never = learn_terms(data, 5)
    assert [(trial.n_parents, trial.n_triples) for trial in never.trials] == [(0, 0), (1, 0), (0, 5)]
    assert (never.chosen.n_parents, never.chosen.n_triples, never.chosen.ridges) == (0, 0, NO_EFFECT)
    assert never.network.structure.n_edges == 0
    assert never.trials[:2] == always.trials[:2]
    monkeypatch.setattr(selection, "LEAST_ERRORS", -1e9)
    monkeypatch.setattr(selection, "LEAST_ERRORS_OF_MORE", 1e9)
    of_one = learn_terms(data, 5)
    assert [(trial.n_parents, trial.n_triples) for trial in of_one.trials] == [(0, 0), (1, 0), (2, 0), (1, 5), (1, 15)]


def test_a_parity_of_three_features_is_found_by_a_triple():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (800, 5))
    y = X[:, 0] ^ X[:, 1] ^ X[:, 3] ^ (rng.random(800) < 0.02)
    data = EncodedData.from_codes(X, y)
    found = learn_terms(data, 2)
    assert found.chosen.n_triples > 0
    assert found.chosen.error < 0.05
    assert min(trial.error for trial in found.trials if not trial.n_triples) > 0.35
    p = np.exp(log_posterior(log_joint(found.network.tables, found.network.structure, data.codes)))
    assert (p.argmax(axis=1) != y).mean() < 0.05
    assert {0, 1, 3} in [set(column.features) for column in found.network.tables.columns]


@pytest.mark.parametrize("n_samples", [12, 200])
def test_noise_gives_the_class_frequencies(n_samples):
    """Their held-out loss is the mean over folds; the final model has no effect of any feature."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 4, (n_samples, 6)), rng.permutation(np.arange(n_samples) % 3 // 2)
    data = EncodedData.from_codes(X, y, is_ordered=True)
    found = learn_terms(data, 2)
    assert found.chosen.ridges == NO_EFFECT
    p = np.exp(log_posterior(log_joint(found.network.tables, found.network.structure, data.codes)))
    np.testing.assert_allclose(p[:, 1], y.mean(), atol=0.01)
    losses = []
    for fold in selection.divide(data):
        counts = [1 + sum(label == c for label in fold.rest.y) for c in range(2)]
        losses += [-np.log(counts[label] / sum(counts)) for label in fold.held_out.y]
    assert found.chosen.log_loss == pytest.approx(np.mean(losses))
    assert found.chosen.error == pytest.approx(y.mean())
    assert min(errors.min() for errors in found.standard_errors) > 0.02  # no effect, but no certainty either


def test_weights_equal_repeated_rows_in_the_same_folds(monkeypatch):
    """Copies of a row fall into different folds if these are drawn, so that only equal folds give equal models."""
    data = interactions(150, weights=lambda rng, n: rng.integers(1, 4, n))
    repeated = data.take(np.repeat(np.arange(150), data.weights))
    repeated = EncodedData(repeated.codes, repeated.n_states, repeated.y, 2, is_ordered=repeated.is_ordered)
    fold = np.arange(150) % 3
    found = []
    for each, folds in ((data, fold), (repeated, np.repeat(fold, data.weights))):
        masks = [folds == k for k in range(3)]
        monkeypatch.setattr(selection, "validation_masks", lambda *_, masks=masks: masks)
        found.append(learn_terms(each, 1))
    assert_equal(*found, exact=False, data=data)
    for one, two in zip(found[0].trials, found[1].trials, strict=True):
        assert one.log_loss == pytest.approx(two.log_loss, rel=1e-3)
        assert one.error == pytest.approx(two.error, abs=1e-9)


def test_rows_of_weight_zero_do_not_count():
    data = interactions(120)
    X, y = data.codes.T.astype(int), data.y
    noise = np.random.default_rng(1).integers(0, 4, (60, 5))
    more = EncodedData.from_codes(
        np.vstack([X, noise]), np.append(y, 1 - y[:60]), sample_weight=np.repeat([1, 0], [120, 60]), is_ordered=True
    )
    assert_equal(learn_terms(data, 1), learn_terms(more, 1))


def test_a_sample_of_the_rows_selects_the_ridges_of_large_data(monkeypatch):
    monkeypatch.setattr(learning, "MOST_ROWS", 60)
    sizes = []

    def divide(sample, directions):
        sizes.append(sample.n_samples)
        return selection.divide(sample, directions)

    monkeypatch.setattr(learning, "divide", divide)
    found = learn_terms(interactions(300), 1)
    assert sizes == [60]
    assert found.network.tables.log_prior.shape == (2,)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0, 1]], [0]),
        ([[0, 1]], [1]),
        ([[0, 1], [1, 0]], [0, 1]),
        ([[0, 1], [1, 0], [1, 1]], [0, 1, 0]),
        ([[0, 0]] * 6, [0] * 5 + [1]),
        ([[0, 0]] * 6, [0] * 3 + [1] * 3),
        ([[-1, -1]] * 6, [0, 1] * 3),
        ([[0, -1], [1, -1]] * 4, [0, 1, 1, 1] * 2),
        ([[0, 1]] * 9, list(range(9))),
        ([[0], [1], [2], [1]] * 3, [0, 1, 0, 2] * 3),
    ],
    ids=[
        "one row",
        "one row of the second class",
        "two rows",
        "three rows",
        "one row of a class",
        "constant features",
        "nothing but missing values",
        "a feature without values",
        "a class per row",
        "one feature",
    ],
)
@pytest.mark.parametrize("is_ordered", [False, True])
@pytest.mark.parametrize("max_parents", [1, 2])
def test_difficult_rows_give_finite_models(X, y, is_ordered, max_parents):
    n_classes = max(2, max(y) + 1)
    data = EncodedData.from_codes(X, y, n_classes=n_classes, is_ordered=is_ordered)
    found = learn_terms(data, max_parents)
    tables, structure = found.network.tables, found.network.structure
    assert all(np.isfinite(values).all() for values in (*tables.values, tables.log_prior))
    p = np.exp(log_posterior(log_joint(tables, structure, data.codes)))
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    if not found.trials:
        assert (found.chosen.n_parents, found.chosen.ridges) == (0, START)
        assert structure.n_edges == 0


def test_models_of_incomplete_rows_are_normalized_and_moderate():
    _, _, _, data = random_rows(150, 3, missing=0.4, seed=3, features=[1, 3, 4, 0])
    found = learn_terms(data, 1)
    tables = found.network.tables
    assert max(np.abs(values).max() for values in tables.values) < 100
    n_states = data.n_states.tolist()
    log_z, joint = naive.distribution(tables.log_prior, as_plain(tables), n_states)
    assert log_z == pytest.approx(0, abs=1e-9)
    for i, n in enumerate(n_states):
        seen = data.codes[i] < n
        counts = np.bincount(data.codes[i][seen], minlength=n) / seen.sum()
        own = joint.sum(axis=tuple(a for a in range(5) if a != i))
        np.testing.assert_allclose(own, counts, atol=0.1)


@pytest.mark.parametrize("most_rows", [300, 200])
def test_held_out_predictions_are_those_of_networks_trained_without_the_rows(monkeypatch, most_rows):
    """Also of rows in any order, and if the selection uses a sample of the rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 3))
    y = (X.sum(axis=1) + rng.normal(0, 1, 300)) // 4
    data = EncodedData.from_codes(X, y.clip(0, 2).astype(int), n_states=[4] * 3, is_ordered=True)
    needed = rng.permutation(300)[:90]
    monkeypatch.setattr(learning, "MOST_ROWS", most_rows)
    found = learn_terms(data, 0, needed=needed)
    rows = learning.sample_rows(300, needed)
    assert len(rows) == most_rows
    assert (np.diff(rows) > 0).all()
    assert np.isin(needed, rows).all()
    expected = np.empty((most_rows, data.n_classes))
    for fold in divide(data.take(rows)):
        fit = TermFit(
            TermBasis(Resolutions(fold.rest), TermStructure.empty(data.n_features)), fold.rest, ConditionalNLL()
        )
        parameters = fit.minimize(fit.start, found.chosen.ridges, max_iter=500).x
        expected[fold.mask] = log_posterior(fit.scores(parameters, fold.held_out))
    own = expected[[np.flatnonzero(rows == r)[0] for r in needed.tolist()]]
    assert found.held_out.shape == (90, data.n_classes)
    np.testing.assert_allclose(np.exp(found.held_out), np.exp(own), atol=0.02)
    assert np.abs(np.exp(own[1:]) - np.exp(own[:-1])).max() > 0.1  # rows in another order would differ


def test_no_held_out_predictions_if_class_frequencies_are_best():
    rng = np.random.default_rng(0)
    noise = EncodedData.from_codes(rng.integers(0, 3, (200, 4)), rng.integers(0, 2, 200))
    assert learn_terms(noise, 1, needed=np.arange(20)).held_out is None


def test_ridges_of_many_rows_are_searched_on_one_fold(monkeypatch):
    data, searched = interactions(600), []
    all_folds = learn_terms(data, 1)
    monkeypatch.setattr(selection, "MOST_ROWS_OF_ALL_FOLDS", 500)
    climb = selection.HeldOutSearch.climb

    def spy(search, *arguments):
        searched.append(len(search._parts))
        return climb(search, *arguments)

    monkeypatch.setattr(selection.HeldOutSearch, "climb", spy)
    one_fold = learn_terms(data, 1)
    assert searched == [1, 1]
    for found in (one_fold, all_folds):
        assert {1, 2, 3} <= {i for i, row in enumerate(found.network.structure.parents.tolist()) if 0 in row}
    assert one_fold.trials[1].log_loss < 1.1 * all_folds.trials[1].log_loss
