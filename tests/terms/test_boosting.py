"""Boosted terms against exhaustive greedy search, Newton steps and finite differences."""

import numpy as np
import pytest
from oracles import boosting as oracle
from support.boosted_terms import as_plain

from tanlearn import EncodedData
from tanlearn.terms import boosting as module
from tanlearn.terms.boosting import Booster, BoostingSettings

N_STATES = [5, 4, 1, 4, 2]
IS_ORDERED = [True, True, True, False, False]
RIDGE = 0.7


@pytest.fixture
def without_chance(monkeypatch):
    """Fit terms to all rows and features."""
    monkeypatch.setattr(module, "ROWS_PER_TERM", 1.0)
    monkeypatch.setattr(module, "FEATURES_PER_TERM", 1.0)


def draw(n_classes=2, n=60, *, missing=0.0, seed=0, **options):
    """Return rows as lists with None for missing values, classes, weights, and the encoded data.

    The class depends on a number at a threshold, and on two groups of categories.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, 5))
    y = (2 * (X[:, 0] > 2) + X[:, 3] % 2 + X[:, 4]) % n_classes
    y = np.where(rng.random(n) < 0.2, rng.integers(0, n_classes, n), y)
    X = np.where(rng.random(X.shape) < missing, -1, X)
    weights = rng.choice([0.5, 1.0, 3.0], n)
    options = {"is_ordered": np.array(IS_ORDERED), **options}
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=n_classes, sample_weight=weights, **options)
    return as_rows(data), y.tolist(), weights.tolist(), data


def as_rows(data):
    """Return the codes as lists of rows, with None for missing values."""
    return [
        [int(code) if code < n else None for code, n in zip(row, data.n_states, strict=True)] for row in data.codes.T
    ]


def booster(data, n_splits=3, learning_rate=0.3, ridge=RIDGE, seed=0):
    return Booster(data, BoostingSettings(n_splits, learning_rate, ridge), np.random.default_rng(seed))


def scores_of(model, X):
    """Return the scores [row][class] of a model by loops."""
    plain = as_plain(model)
    return [oracle.row_scores(plain, row, model.log_prior.tolist()) for row in X]


def sides_of(term):
    """Return each split of a term as its feature and the set of the values on side 0."""
    return [
        (i, set(np.flatnonzero(side == 0).tolist())) for i, side in zip(term.features.tolist(), term.sides, strict=True)
    ]


def divisions_of(X, rows, is_ordered=IS_ORDERED, n_states=N_STATES):
    """Return the divisions of each feature that a term may use: thresholds, or those of sorted categories."""
    return [
        oracle.thresholds(
            list(range(n)) if is_ordered[i] or n == 2 else oracle.values_by_residual(X, rows, i, n, RIDGE)
        )
        for i, n in enumerate(n_states)
    ]


def assert_values_are_newton_steps(term, X, rows, learning_rate, n_classes):
    """Compare the cells of a term with the sums of their rows, and their weights with the sums of variances."""
    cells = {}
    for r, row in enumerate(X):
        values = [row[i] for i in term.features.tolist()]
        if None not in values:
            cell = sum(int(side[v]) << s for s, (side, v) in enumerate(zip(term.sides, values, strict=True)))
            cells.setdefault(cell, []).append(r)
    for cell in range(1 << len(term.features)):
        members = cells.get(cell, [])
        assert term.weights[cell] == pytest.approx(sum(sum(rows[r][1]) for r in members))
        expected = [0.0] * n_classes
        if members:
            expected = oracle.newton_values([rows[r] for r in members], RIDGE, learning_rate, n_classes)
        np.testing.assert_allclose(term.values[cell], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n_splits", [1, 3])
def test_terms_are_those_of_exhaustive_greedy_search(n_classes, missing, n_splits):
    X, y, weights, data = draw(n_classes, missing=missing)
    model = booster(data, n_splits)
    model.grow(4)
    np.testing.assert_allclose(model.model().log_prior, oracle.start(y, weights, n_classes))
    for t, term in enumerate(model.model().terms()):
        rows = oracle.residuals(scores_of(model.model(t), X), y, weights)
        splits, _ = oracle.greedy_splits(X, rows, divisions_of(X, rows), n_splits, RIDGE)
        assert sides_of(term) == [(feature, side) for feature, side, _ in splits]
        assert 0 < len(splits) <= n_splits
        assert_values_are_newton_steps(term, X, rows, 0.3, n_classes)


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("seed", range(4))
def test_no_division_of_categories_is_better_than_those_of_sorted_ones(seed):
    """This holds for two classes and without a ridge; Fisher 1958."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 7, (80, 1))
    y = (rng.random(80) < rng.random(7)[codes[:, 0]]).astype(int)
    weights = rng.choice([1.0, 2.0, 5.0], 80)
    data = EncodedData.from_codes(codes, y, n_states=[7], n_classes=2, sample_weight=weights)
    model = booster(data, 1, ridge=1e-9)
    model.grow(1)
    X = codes.tolist()
    rows = oracle.residuals([oracle.start(y, weights, 2)] * 80, y.tolist(), weights.tolist())
    ((_, side),) = sides_of(model.model().terms()[0])
    cells = dict.fromkeys(range(80), ())
    gains = [oracle.gain_of_division(X, rows, cells, 0, own, 1e-9) for own in oracle.subsets(list(range(7)))]
    assert len(gains) == 63
    assert oracle.gain_of_division(X, rows, cells, 0, side, 1e-9) == pytest.approx(max(gains), rel=1e-9)


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("learning_rate", [0.05, 0.3])
def test_the_training_loss_never_rises(n_classes, learning_rate):
    X, y, weights, data = draw(n_classes, missing=0.1)
    model = booster(data, learning_rate=learning_rate)
    model.grow(25)
    losses = [oracle.log_loss(scores_of(model.model(t), X), y, weights) for t in range(26)]
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < (0.9 if learning_rate == 0.05 else 0.6) * losses[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_residuals_are_derivatives_of_the_log_loss(n_classes):
    X, y, weights, data = draw(n_classes)
    model = booster(data)
    model.grow(3)
    scores = np.array(scores_of(model.model(), X))
    outputs = [np.array([-0.5, 0.5])] if n_classes == 2 else list(np.eye(n_classes))
    found, step = model._residuals(np.arange(60)), 1e-4
    assert found.shape == (60, 2 * len(outputs))
    for r in range(60):
        for c, direction in enumerate(outputs):
            low, middle, high = (
                oracle.log_loss([scores[r] + k * step * direction], y[r : r + 1], weights[r : r + 1])
                for k in (-1, 0, 1)
            )
            assert found[r, c] == pytest.approx((low - high) / (2 * step), abs=1e-6)
            assert found[r, len(outputs) + c] == pytest.approx((low - 2 * middle + high) / step**2, abs=1e-6)


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize(("n_classes", "learning_rate"), [(2, 0.1), (2, 1.0), (3, 0.1), (3, 0.3)])
def test_steps_are_limited_so_that_rare_classes_are_not_overshot(n_classes, learning_rate):
    """Half of the rows of a cell are of a rare class. The Newton step is 20 or more, and the way to go is 7."""
    codes = np.array([0, 0, 1])
    y, weights = np.array([0, 1, 0]), np.array([5e5, 5e5, 1e9])
    data = EncodedData.from_codes(codes[:, np.newaxis], y, n_classes=n_classes, sample_weight=weights)
    model = booster(data, learning_rate=learning_rate)
    model.grow(40)
    losses = [oracle.log_loss(scores_of(model.model(t), [[0], [1]])[:1] * 2, [0, 1], [1, 1]) for t in range(41)]
    assert max(losses) == losses[0]
    assert losses[-1] == pytest.approx(2 * np.log(2), rel=0.01)


def test_variances_are_positive_for_rows_that_are_predicted_with_certainty():
    _, _, _, data = draw(3)
    model = booster(data)
    model._scores[np.arange(60), data.y] += 1000.0
    found = model._residuals(np.arange(60))
    np.testing.assert_array_equal(found[:, :3], 0)
    assert (found[:, 3:] > 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_scores_in_training_are_those_of_the_model(n_classes, missing):
    _, _, _, data = draw(n_classes, missing=missing)
    model = booster(data)
    for size in (1, 4, 5):
        model.grow(size)
        np.testing.assert_allclose(model._scores, model.model().log_joint(data.codes), atol=1e-12)
    assert model.n_terms == 10
    first, rest = model.model(4), model.model(first=4)
    both = first.log_joint(data.codes) + rest.log_joint(data.codes) - rest.log_prior
    np.testing.assert_allclose(both, model.model().log_joint(data.codes), atol=1e-12)


def drawn_classes(monkeypatch):
    """Record the classes that splits are selected with."""
    seen = []
    original = Booster._draw_classes

    def spy(self, rows):
        seen.append(original(self, rows).tolist())
        return np.array(seen[-1])

    monkeypatch.setattr(Booster, "_draw_classes", spy)
    return seen


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("most", [2, 8])
def test_splits_of_many_classes_are_selected_with_some_of_them(monkeypatch, most):
    monkeypatch.setattr(module, "MOST_CLASSES_OF_SPLITS", most)
    X, y, weights, data = draw(12, n=90)
    seen = drawn_classes(monkeypatch)
    model = booster(data)
    model.grow(3)
    drawn = set()
    for t, term in enumerate(model.model().terms()):
        classes = seen[t]
        assert classes == sorted(set(classes))
        assert len(classes) == most
        drawn.add(tuple(classes))
        rows = oracle.residuals(scores_of(model.model(t), X), y, weights)
        of_classes = [([g[c] for c in classes], [h[c] for c in classes]) for g, h in rows]
        splits, _ = oracle.greedy_splits(X, of_classes, divisions_of(X, of_classes), 3, RIDGE)
        assert sides_of(term) == [(feature, side) for feature, side, _ in splits]
        assert_values_are_newton_steps(term, X, rows, 0.3, 12)
    assert len(drawn) > 1


def test_classes_with_large_residuals_are_drawn_more_often(monkeypatch):
    monkeypatch.setattr(module, "MOST_CLASSES_OF_SPLITS", 1)
    model = booster(draw(3)[3])
    rows = np.hstack([np.ones((60, 3)) * [0.0, 1.0, 2.0], np.ones((60, 3)) * [0.1, 0.2, 0.3]])
    drawn = [tuple(model._draw_classes(rows).tolist()) for _ in range(500)]
    assert drawn.count((1,)) == pytest.approx(100, abs=40)  # 1 of 5, because squares are 0, 1 and 4
    assert drawn.count((1,)) + drawn.count((2,)) == 500


def test_eight_classes_are_all_used():
    assert booster(draw(8)[3])._draw_classes(np.ones((60, 16))) is None


@pytest.mark.usefixtures("without_chance")
def test_splits_of_many_rows_are_selected_with_some_of_them(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS_OF_SPLITS", 12)
    X, y, weights, data = draw()
    model = booster(data)
    model.grow(3)
    is_other = []
    for t, term in enumerate(model.model().terms()):
        rows = oracle.residuals(scores_of(model.model(t), X), y, weights)
        splits, _ = oracle.greedy_splits(X, rows, divisions_of(X, rows), 3, RIDGE)
        some, of_some = X[::5], rows[::5]  # 60 rows, every fifth of which is at most 12
        used, _ = oracle.greedy_splits(some, of_some, divisions_of(some, of_some), 3, RIDGE)
        assert sides_of(term) == [(feature, side) for feature, side, _ in used]
        is_other.append(sides_of(term) != [(feature, side) for feature, side, _ in splits])
        assert_values_are_newton_steps(term, X, rows, 0.3, 2)  # of all rows
    assert any(is_other)


def test_terms_are_fitted_to_some_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2000, 1))
    y = np.where(rng.random(2000) < 0.1, 0, (codes[:, 0] > 0).astype(int))
    model = booster(EncodedData.from_codes(codes, y, is_ordered=True), 1)
    model.grow(1)
    (term,) = model.model().terms()
    assert sides_of(term) == [(0, {0})]
    rows = oracle.residuals([model.model().log_prior.tolist()] * 2000, y.tolist(), [1] * 2000)
    for cell in (0, 1):
        members = np.flatnonzero((codes[:, 0] > 0) == cell)
        whole = oracle.newton_values([rows[r] for r in members], RIDGE, 0.3, 2)
        assert term.weights[cell] == pytest.approx(0.7 * sum(rows[r][1][0] for r in members), rel=0.1)
        assert term.values[cell].tolist() != pytest.approx(whole, rel=1e-4)  # of 70 % of the rows
        np.testing.assert_allclose(term.values[cell], whole, rtol=0.1)


@pytest.mark.usefixtures("without_chance")
def test_values_of_many_rows_are_fitted_to_some_of_them(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS_OF_VALUES", 30)
    model = booster(draw()[3])
    drawn = [len(model._draw_rows()[0]) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(30, abs=2)


def test_values_are_sorted_by_the_rows_that_a_term_is_not_fitted_to(monkeypatch):
    """The class depends on the category in opposite ways in the drawn rows and in the others."""
    monkeypatch.setattr(module, "FEATURES_PER_TERM", 1.0)
    is_drawn = np.arange(120) % 3 > 0
    monkeypatch.setattr(Booster, "_draw_rows", lambda self: (np.flatnonzero(is_drawn), np.flatnonzero(~is_drawn)))
    codes = np.arange(120) // 3 % 4
    y = np.where(is_drawn, codes == 1, codes > 1).astype(int)
    model = booster(EncodedData.from_codes(codes[:, np.newaxis], y, n_states=[4]), 1)
    model.grow(1)
    ((_, side),) = sides_of(model.model().terms()[0])
    assert side in ({0, 1}, {0}, {0, 1, 2})  # the others sort 0 = 1 < 2 = 3; {1} against the rest is no beginning


def test_at_most_so_many_features_are_drawn(monkeypatch):
    monkeypatch.setattr(module, "MOST_FEATURES", 4)
    codes = np.random.default_rng(0).integers(0, 2, (30, 12))
    model = booster(EncodedData.from_codes(codes, codes[:, 0], n_states=[2] * 12))
    assert {len(model._draw_features()) for _ in range(20)} == {4}


def test_terms_without_a_drawn_row_are_fitted_to_all_rows(monkeypatch):
    _, _, _, data = draw()
    monkeypatch.setattr(module, "FEATURES_PER_TERM", 1.0)
    found = []
    for fraction in (0.0, 1.0):
        monkeypatch.setattr(module, "ROWS_PER_TERM", fraction)
        model = booster(data)
        model.grow(2)
        found.append(model.model().log_joint(data.codes))
    np.testing.assert_array_equal(*found)


def test_half_of_the_features_are_drawn_but_at_least_three():
    rng = np.random.default_rng(0)
    for d, expected in ((1, 1), (3, 3), (5, 3), (6, 3), (7, 4), (12, 6)):
        data = EncodedData.from_codes(rng.integers(0, 2, (30, d)), rng.integers(0, 2, 30), n_states=[2] * d)
        model = booster(data)
        drawn = [model._draw_features() for _ in range(60)]
        for own in drawn:
            assert own.tolist() == sorted(set(own.tolist()))
            assert len(own) == expected
        assert set(np.concatenate(drawn).tolist()) == set(range(d))


def test_features_with_one_value_are_never_drawn():
    _, _, _, data = draw()
    model = booster(data)
    assert 2 not in {i for _ in range(50) for i in model._draw_features().tolist()}


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_divisible_features_terms_correct_the_class_frequencies(n_classes):
    y = np.arange(30) // 12 % n_classes
    counts = np.bincount(y)
    for codes, n_states in ((np.zeros((30, 2), int), [1, 1]), (np.full((30, 2), -1), [3, 2])):
        data = EncodedData.from_codes(codes, y, n_states=n_states, n_classes=n_classes)
        model = booster(data)
        model.grow(30)
        assert [len(term.features) for term in model.model().terms()] == [0] * 30
        p = oracle.probabilities(model.model().log_joint(data.codes)[0])
        start = (counts + 1) / (30 + n_classes)
        assert np.abs(p - counts / 30).sum() < 0.01 < np.abs(p - start).sum()


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_rows_of_a_single_class_can_be_fitted(n_classes):
    codes = np.arange(5)[:, np.newaxis]
    data = EncodedData.from_codes(codes, np.zeros(5, int), n_classes=n_classes)
    model = booster(data)
    model.grow(5)
    scores = model.model().log_joint(data.codes)
    assert scores.shape == (5, n_classes)
    assert (scores.argmax(axis=1) == 0).all()


def test_missing_categories_of_ordered_features_come_first_or_last(monkeypatch):
    """The last code means missing; it is most frequent in class 1, as the large codes are."""
    monkeypatch.setattr(module, "ROWS_PER_TERM", 1.0)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (200, 1))
    y = np.where(rng.random(200) < 0.2, 0, np.isin(codes[:, 0], [0, 1, 5]).astype(int))
    masks = {"is_ordered": np.array([True]), "has_missing_category": np.array([True])}
    data = EncodedData.from_codes(codes, y, n_states=[6], n_classes=2, **masks)
    X, rows = codes.tolist(), oracle.residuals([oracle.start(y, [1] * 200, 2)] * 200, y.tolist(), [1] * 200)
    expected = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 0, 1, 2, 3, 4]):
        ((_, side, _),), _ = oracle.greedy_splits(X, rows, [oracle.thresholds(order)], 1, RIDGE)
        expected.append(side)
    assert expected == [{0, 1}, {5, 0, 1}]
    found = []
    for seed in range(12):
        model = booster(data, 1, seed=seed)
        model.grow(1)
        found.append(sides_of(model.model().terms()[0])[0][1])
    assert all(side in expected for side in found)
    assert all(side in found for side in expected)


def test_categories_for_missing_values_are_categories_like_others(monkeypatch):
    """Categories are sorted by residuals, the one for missing values as well; no order is drawn."""
    monkeypatch.setattr(module, "ROWS_PER_TERM", 1.0)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (80, 1))
    y = np.isin(codes[:, 0], [1, 3]).astype(int)
    data = EncodedData.from_codes(codes, y, n_states=[4], has_missing_category=True)
    for seed in range(5):
        model = booster(data, 1, seed=seed)
        model.grow(1)
        assert sides_of(model.model().terms()[0]) == [(0, {0, 2})]


@pytest.mark.usefixtures("without_chance")
def test_light_weights_have_the_effect_of_weights_with_a_mean_of_one():
    _, _, weights, data = draw(3)
    codes = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    mask = {"n_states": N_STATES, "is_ordered": np.array(IS_ORDERED)}
    found = []
    for scale in (1.0, 1e-6):
        own = np.array(weights) / np.mean(weights) * scale
        light = EncodedData.from_codes(codes, data.y, sample_weight=own, **mask)
        model = booster(light)
        model.grow(5)
        found.append(model.model().log_joint(data.codes))
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.usefixtures("without_chance")
def test_a_weight_of_two_equals_two_rows():
    _, y, _, data = draw()
    codes, weights = data.codes.astype(int).T, np.arange(60) % 3 + 1
    rows = np.repeat(np.arange(60), weights)
    mask = {"n_states": N_STATES, "is_ordered": np.array(IS_ORDERED)}
    once = booster(EncodedData.from_codes(codes, np.array(y), sample_weight=weights, **mask))
    repeated = booster(EncodedData.from_codes(codes[rows], np.array(y)[rows], **mask))
    for model in (once, repeated):
        model.grow(5)
    np.testing.assert_allclose(once.model().log_joint(data.codes), repeated.model().log_joint(data.codes), rtol=1e-9)


def test_the_same_seed_gives_the_same_terms():
    _, _, _, data = draw(3, missing=0.1)
    found = []
    for seed in (0, 0, 1):
        model = booster(data, seed=seed)
        model.grow(6)
        found.append(model.model().log_joint(data.codes))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
