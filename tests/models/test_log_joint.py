"""Prediction: blocks, threads, missing features, impossible samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elimination as naive_elimination
from oracles import networks as naive

from tanlearn import EncodedData, InexactMarginalizationWarning, MaximumLikelihood, Structure
from tanlearn.models.elimination import Eliminator
from tanlearn.models.log_joint import log_joint, log_posterior
from tanlearn.models.tables import Tables
from tanlearn.structures.table_layout import TableLayout

RNG = np.random.default_rng(0)


def model(parent, n=1500, n_states=(2, 3, 4), n_classes=3, allow_cycles=False, seed=0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, n_classes, n), n_states=n_states, n_classes=n_classes)
    structure = Structure(parent, allow_cycles=allow_cycles)
    return MaximumLikelihood(alpha=1).fit(structure, data, RNG), structure, data


def test_complete_rows_equal_oracle():
    tables, structure, data = model([-1, 0, 1])
    layout = tables.layout
    expected = naive.log_joint(
        data.codes.T[:20], tables.cells, layout.child, layout.parents, layout.n_states, 3, range(3)
    )
    np.testing.assert_allclose(log_joint(tables, structure, data.codes)[:20], expected, rtol=1e-13)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_blocks_and_threads_change_nothing(missing):
    tables, structure, data = model([-1, 0, 1])
    codes = np.where(RNG.random(data.codes.shape) < missing, 255, data.codes).astype(np.uint8)
    whole = log_joint(tables, structure, codes, n_jobs=1)
    np.testing.assert_array_equal(log_joint(tables, structure, codes, n_jobs=2), whole)
    for first, last in ((0, 1), (500, 777), (1499, 1500)):
        part = np.ascontiguousarray(codes[:, first:last])
        np.testing.assert_array_equal(log_joint(tables, structure, part), whole[first:last])


@pytest.mark.parametrize("parent", [[1, 2, -1], [[-1, -1], [0, -1], [0, 1]], [[-1, -1], [-1, -1], [1, 0]]])
def test_missing_features_are_summed_out(parent):
    tables, structure, _ = model(parent)
    samples = [[-1, 2, 3], [1, -1, 0], [-1, -1, 2], [0, 1, -1], [-1, -1, -1]]
    codes = np.where(np.array(samples) < 0, 255, samples).T.astype(np.uint8).copy()
    parents = structure.parents.tolist()
    expected = [naive_elimination.log_joint(sample, tables.cells, parents, [2, 3, 4], 3) for sample in samples]
    scores = log_joint(tables, structure, codes)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    np.testing.assert_allclose(scores[-1], tables.log_prior, rtol=1e-12)  # nothing known: the prior


def test_a_second_parent_that_is_the_first_feature_makes_no_forest():
    """Summed out, feature 2 leaves a factor of its parents, 1 and 0."""
    n_states, parents = [2, 3, 4, 2], [[-1, -1], [-1, -1], [1, 0], [2, -1]]
    tables, structure, _ = model(parents, n_states=n_states)
    expected = naive_elimination.log_joint([-1, -1, -1, 1], tables.cells, parents, n_states, 3)
    scores = log_joint(tables, structure, np.array([[255], [255], [255], [1]], np.uint8))
    np.testing.assert_allclose(scores, [expected], rtol=1e-12)


def test_forests_are_summed_out_without_elimination(monkeypatch):
    tables, structure, data = model([-1, 0, 1], n=20)
    codes = data.codes.copy()
    codes[1] = 255
    monkeypatch.setattr("tanlearn.models.tables.Eliminator", None)
    assert np.isfinite(log_joint(tables, structure, codes)).all()


@pytest.mark.parametrize("parents", [[-1, 0, 1], [[-1, -1], [0, -1], [0, 1]]])
def test_gradients_larger_than_the_memory_limit_are_added_up_in_one_part(parents, monkeypatch):
    tables, structure, data = model(parents, n=400)
    codes = np.where(RNG.random(data.codes.shape) < 0.3, 255, data.codes).astype(np.uint8)
    rows, d_scores = np.arange(400), RNG.normal(size=(400, 3))
    eliminator = Eliminator(structure, tables.layout)
    whole = eliminator.log_joint_adjoint(codes, rows, tables.cells, d_scores)
    monkeypatch.setattr("tanlearn.models.elimination._CAPACITY", 1)
    np.testing.assert_allclose(eliminator.log_joint_adjoint(codes, rows, tables.cells, d_scores), whole, atol=1e-11)


@st.composite
def parents_of_four(draw):
    """Draw parents of four features, two at most, in any order."""
    order, parents = draw(st.permutations(range(4))), np.full((4, 2), -1)
    for place, i in enumerate(order):
        chosen = draw(st.lists(st.sampled_from(order[:place]), max_size=2, unique=True)) if place else []
        parents[i, : len(chosen)] = chosen
    return parents


@settings(max_examples=60, deadline=None, derandomize=True)
@given(parents_of_four(), st.integers(0, 10**6), st.lists(st.integers(0, 15), min_size=8, max_size=8))
def test_scores_equal_enumeration_whatever_is_missing(parents, seed, missing):
    """Complete rows too, and rows by themselves."""
    n_states = [2, 3, 1, 4]
    tables, structure, data = model(parents, n=40, n_states=n_states, seed=seed)
    samples = np.where(np.array(missing)[:, np.newaxis] >> np.arange(4) & 1 == 1, -1, data.codes.T[:8].astype(int))
    codes = np.where(samples < 0, 255, samples).T.astype(np.uint8).copy()
    scores = log_joint(tables, structure, codes)
    expected = [naive_elimination.log_joint(row, tables.cells, parents.tolist(), n_states, 3) for row in samples]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(log_joint(tables, structure, codes[:, 3:4].copy()), scores[3:4])


@pytest.mark.parametrize("missing", [0.1, 0.6])
def test_upward_pass_equals_elimination(missing):
    """The fast kernel and its twin, on a tree too large to enumerate, with extreme tables and a hub."""
    rng = np.random.default_rng(1)
    parent = np.array([-1, *(rng.integers(0, i) for i in range(1, 40)), *[3] * 40])
    structure = Structure(parent)
    data = EncodedData.from_codes(rng.integers(0, 4, (300, 80)), rng.integers(0, 3, 300))
    tables = MaximumLikelihood(alpha=1e-60).fit(structure, data, RNG)
    codes = np.where(rng.random(data.codes.shape) < missing, 255, data.codes).astype(np.uint8)
    rows = np.arange(300)
    eliminator = Eliminator(structure, tables.layout)
    expected = eliminator.log_joint(codes, rows, tables.cells, n_jobs=2)
    np.testing.assert_allclose(log_joint(tables, structure, codes), expected, rtol=1e-12)
    np.testing.assert_array_equal(eliminator.log_joint(codes, rows[7:8], tables.cells), expected[7:8])


def test_scores_over_all_values_of_a_missing_feature_sum_to_its_score():
    tables, structure, _ = model([-1, 0, 1])
    values = np.array([[0, 0, 0], [0, 1, 2], [3, 3, 3]], np.uint8)
    known = log_joint(tables, structure, values)
    unknown = log_joint(tables, structure, np.array([[0], [255], [3]], np.uint8))
    np.testing.assert_allclose(np.logaddexp.reduce(known, axis=0), unknown[0], rtol=1e-12)


def test_a_cyclic_scorer_cannot_sum_out():
    tables, structure, data = model([1, 0, -1], allow_cycles=True)
    assert np.isfinite(log_joint(tables, structure, data.codes)).all()
    with pytest.raises(ValueError, match=r"row 1 lacks feature 0 .* in a structure with a cycle.*Impute"):
        log_joint(tables, structure, np.array([[0, 255], [0, 0], [0, 0]], np.uint8))


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("children", [(500, 400), (800, 400), (3, 2)])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("low", [0.1, 1e-40, 1e-320])
def test_values_that_trail_by_far_may_win_in_the_end(children, is_first, low, twice):
    """A missing hub: its children speak for one value, then for the other, by more than a double can tell apart."""
    n_for, n_against = children
    d = 1 + n_for + n_against
    hub = 0 if is_first else d - 1
    parents = np.full((d, 2), -1)
    parents[np.arange(d) != hub, 0] = hub
    if twice:  # a second parent makes the general way of it; it is observed, and tells nothing
        extra = 1 if is_first else 0
        parents[np.flatnonzero((np.arange(d) != hub) & (np.arange(d) != extra)), 1] = extra
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.full(d, 2), 2)
    agreeing = np.log([[1.0, low], [low, 1.0]])  # [child][hub]; not quite normalised, which is all the same here
    cells = [np.log([0.5, 0.5])]
    for i in range(d):
        shape = layout.shape(i)
        table = np.log(0.5) * np.ones(shape) if i == hub else np.empty(shape)
        if i != hub:
            table[:] = agreeing.reshape(2, 2, *[1] * (len(shape) - 2))
        cells.append(table.ravel())
    tables = Tables(layout, np.concatenate(cells))
    codes = np.zeros((d, 1), np.uint8)
    order = np.flatnonzero(np.arange(d) != hub)
    codes[order[n_for:]] = 1
    codes[hub] = 255
    expected = 2 * np.log(0.5) + np.logaddexp(n_against * np.log(low), n_for * np.log(low))
    np.testing.assert_allclose(log_joint(tables, structure, codes), [[expected, expected]], rtol=1e-10)
    found = Eliminator(structure, layout, is_normalized=False).log_joint(codes, np.array([0]), tables.cells)
    np.testing.assert_allclose(found, [[expected, expected]], rtol=1e-10)


def test_small_remainders_of_many_children_are_not_lost():
    """Two missing hubs, which five missing features depend on, each with 95 uniform children of ten values."""
    below = [[2 + k, -1] for k in range(5) for _ in range(95)]
    structure = Structure([[-1, -1], [-1, -1]] + [[0, 1]] * 5 + below)
    n_states = np.array([2] * 7 + [10] * len(below))
    layout = TableLayout.of_parents(structure.parents, n_states, 2)
    cells = [np.log([0.3, 0.7])]
    cells += [np.full(layout.offset[i + 1] - layout.offset[i], -np.log(k)) for i, k in enumerate(n_states)]
    codes = np.zeros((len(n_states), 1), np.uint8)
    codes[:7] = 255
    scores = log_joint(Tables(layout, np.concatenate(cells)), structure, codes)
    np.testing.assert_allclose(scores, [np.log([0.3, 0.7]) - 475 * np.log(10)], rtol=1e-12)


def grid(n_rows, n_columns):
    """Return a structure in which the feature above and the one before are the parents of each."""
    number = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    above, before = np.full((2, n_rows, n_columns), -1)
    above[1:], before[:, 1:] = number[:-1], number[:, :-1]
    return Structure(np.stack([above.ravel(), before.ravel()], axis=1))


def test_factors_of_more_than_three_features_are_summed_out():
    """All but the last feature are missing: of 3 x 3 by enumeration, of 9 x 9 what both its values add up to."""
    for width in (3, 9):
        structure, n_features = grid(width, width), width * width
        data = EncodedData.from_codes(RNG.integers(0, 2, (60, n_features)), np.arange(60) % 2)
        tables = MaximumLikelihood(alpha=1).fit(structure, data, RNG)
        codes = np.full((n_features, 2), 255, np.uint8)
        codes[-1] = 0, 1
        scores = log_joint(tables, structure, codes)
        np.testing.assert_allclose(np.logaddexp(*scores), tables.log_prior, rtol=1e-12)
        if width == 3:
            sample, parents = [-1] * 8 + [1], structure.parents.tolist()
            expected = naive_elimination.log_joint(sample, tables.cells, parents, [2] * 9, 2)
            np.testing.assert_allclose(scores[1], expected, rtol=1e-12)


def test_what_summing_out_costs_is_known_beforehand(monkeypatch):
    """Feature 2 has no child, so it costs nothing; feature 1 has 3 values, times 2 where its parent is missing too."""
    monkeypatch.setattr("tanlearn.models.elimination._BLOCK", 3)
    tables, structure, _ = model([-1, 0, 1])
    eliminator = Eliminator(structure, tables.layout)
    codes = np.array([[0, 0, 0], [0, 0, 255], [0, 255, 0], [255, 255, 0]], dtype=np.uint8).T
    # Three classes: 23 twentieths of a microsecond a value, rounded down.
    for samples, cost in ([0, 1], 0), ([2], 3), ([3], (3 * 2 + 2) * 23 // 20), ([0, 1, 2, 3], 3 + 9):
        assert eliminator.is_cheap(codes, np.array(samples), cost)
        assert not eliminator.is_cheap(codes, np.array(samples), cost - 1)
    whole = Eliminator(structure, tables.layout, is_normalized=False)
    assert whole.is_cheap(codes, np.array([1]), 4)
    assert not whole.is_cheap(codes, np.array([1]), 3)


@pytest.mark.parametrize("n_states", [1, 2])  # of one value many fit in the room, and are too many at once
def test_what_there_is_no_room_for_is_not_cheap(n_states):
    structure = grid(30, 30)
    states = [n_states] * 899 + [2]
    X = RNG.integers(0, states, (20, 900))
    data = EncodedData.from_codes(X, np.arange(20) % 2, n_states=states)
    eliminator = Eliminator(structure, TableLayout.of_parents(structure.parents, data.n_states, 2))
    codes = data.codes.copy()
    codes[:-1, 0] = 255
    codes[100, 1] = 255
    assert not eliminator.is_cheap(codes, np.array([0]), 2**1000)
    cost = n_states * 22 // 20 + 900 // 16
    assert eliminator.is_cheap(codes, np.array([1]), cost)
    assert not eliminator.is_cheap(codes, np.array([1]), cost - 1)


def test_rows_beyond_the_limit_of_operations_are_named():
    """A grid of 30 x 30 features: to marginalize all of them takes factors of 30 features."""
    structure = grid(30, 30)
    data = EncodedData.from_codes(RNG.integers(0, 2, (20, 900)), np.arange(20) % 2)
    tables = MaximumLikelihood(alpha=1).fit(structure, data, RNG)
    codes = data.codes.copy()
    codes[:-1, 3] = 255  # the last feature is observed, so that all above it are needed
    codes[100, 1] = 255
    codes[:-1, 7] = 255
    others = [n for n in range(20) if n not in (3, 7)]
    exact = log_joint(tables, structure, codes[:, others].copy(), is_exact=True)
    message = (
        r"at most 1,000,000,000 operations, .* row 3 lacks 899 features .* more\. The same holds for row 7\. Impute"
    )
    with pytest.raises(ValueError, match=message):
        log_joint(tables, structure, codes, is_exact=True)
    message = "the scores of rows 3, 7 are approximate, .* set a larger limit .* TANLEARN_MAX_ROW_OPERATIONS"
    with pytest.warns(InexactMarginalizationWarning, match=message):
        scores = log_joint(tables, structure, codes)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[others], exact)


@pytest.mark.parametrize("n_features", [1500, 20_000])
def test_thousands_of_features_stay_finite_and_normalised(n_features):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (20, n_features))
    data = EncodedData.from_codes(X, np.arange(20) % 2)
    structure = Structure.naive_bayes(n_features)
    tables = MaximumLikelihood(alpha=1).fit(structure, data, RNG)
    posterior = np.exp(log_posterior(log_joint(tables, structure, data.codes)))
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)


def test_posterior_of_extreme_scores():
    scores = np.array([[0, 0.0], [-1e5, -1e5 - 1], [-np.inf, -3], [-np.inf, -np.inf]])
    p = np.exp(log_posterior(scores))
    np.testing.assert_allclose(p, [[0.5, 0.5], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)], [0, 1], [0.5, 0.5]])
