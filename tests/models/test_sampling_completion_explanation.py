"""Evidence, drawing, completion and explanation, against the enumeration of all that could be."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elimination as naive_elimination
from oracles import networks as naive
from scipy.stats import chisquare

from tanlearn import Structure
from tanlearn.models.completion import most_probable_completion
from tanlearn.models.explanation import explain, log_odds
from tanlearn.models.log_joint import log_evidence, log_joint
from tanlearn.models.sampling import sample
from tanlearn.models.tables import Tables
from tanlearn.structures.table_layout import TableLayout

N_CLASSES = 3
N_STATES = [2, 3, 1, 4, 2]
MISSING = 255
#: Feature indices are in no topological order.
NONE = [-1, -1, -1, -1, -1]
TREE = [3, 0, 3, -1, 1]
TWO = [[1, 3], [3, -1], [0, 4], [-1, -1], [0, 1]]
THREE = [[1, 3, 4], [3, -1, -1], [0, 4, 1], [-1, -1, -1], [1, 3, -1]]
CYCLE = [1, 0, -1, -1, -1]
STRUCTURES = [pytest.param(NONE, id="naive Bayes"), pytest.param(TREE, id="tree"), pytest.param(TWO, id="two parents")]
STRUCTURES += [pytest.param(THREE, id="three parents")]


def model(parent, *, n_states=N_STATES, zeros=0.0, seed=0, allow_cycles=False):
    """Return random tables, of which a share of the entries is zero."""
    rng = np.random.default_rng(seed)
    structure = Structure(parent, allow_cycles=allow_cycles)
    layout = TableLayout.of_parents(structure.parents, np.array(n_states), N_CLASSES)
    cells = [rng.dirichlet(np.ones(N_CLASSES))]
    for i, k in enumerate(n_states):
        weight = rng.gamma(1.0, size=(k, (layout.offset[i + 1] - layout.offset[i]) // k)) + 1e-3
        keep = rng.random(weight.shape) >= zeros
        keep[rng.integers(0, k, weight.shape[1]), np.arange(weight.shape[1])] = True
        weight *= keep
        cells.append((weight / weight.sum(axis=0)).ravel())
    with np.errstate(divide="ignore"):
        return Tables(layout, np.log(np.concatenate(cells))), structure


def gappy(missing, n=12, seed=0):
    """Return random samples (-1 is missing) and their codes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, len(N_STATES)))
    X[rng.random(X.shape) < missing] = -1
    return X, encode(X)


def encode(X):
    """Return the codes of samples that may miss features (-1)."""
    return np.where(np.asarray(X) < 0, MISSING, X).T.astype(np.uint8).copy()


def oracle_arguments(tables, structure):
    """Return what the oracles take of a model."""
    return tables.cells, structure.parents.tolist(), tables.layout.n_states.tolist(), N_CLASSES


@st.composite
def models(draw):
    """Draw tables of a structure of at most none to four parents a feature, in a random order."""
    most, n = draw(st.integers(0, 4)), len(N_STATES)
    order = draw(st.permutations(range(n)))
    parents = np.full((n, 4), -1)
    for place, i in enumerate(order):
        if place:
            chosen = draw(st.lists(st.sampled_from(order[:place]), max_size=most, unique=True))
            parents[i, : len(chosen)] = chosen
    return model(parents, zeros=draw(st.sampled_from([0.0, 0.3])), seed=draw(st.integers(0, 10**6)))


def test_evidence_is_the_sum_over_classes():
    scores = np.array([[np.log(0.1), np.log(0.3)], [-3000.0, -np.inf], [-np.inf, -np.inf], [-2000.0, -2000.0]])
    np.testing.assert_allclose(log_evidence(scores), [np.log(0.4), -3000.0, -np.inf, np.log(2) - 2000], rtol=1e-14)


@pytest.mark.parametrize("parent", STRUCTURES)
def test_evidence_over_all_samples_is_one(parent):
    tables, structure = model(parent, zeros=0.3)
    everything = encode(list(itertools.product(*map(range, N_STATES))))
    assert np.exp(log_evidence(log_joint(tables, structure, everything))).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("parent", STRUCTURES)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_samples_are_as_frequent_as_they_are_probable(parent, zeros):
    tables, structure = model(parent, zeros=zeros)
    n_samples = 40_000
    codes, y = sample(tables, structure, n_samples, np.random.default_rng(1))
    assert codes.shape == (5, n_samples)
    assert codes.dtype == np.uint8
    everything = np.array(list(itertools.product(*map(range, N_STATES))))
    cells, parents, n_states, _ = oracle_arguments(tables, structure)
    expected = np.exp(naive.log_joint(everything, cells, range(5), parents, n_states, N_CLASSES, range(5))).ravel()
    cell = np.ravel_multi_index((*codes.astype(int), y), (*N_STATES, N_CLASSES))
    observed = np.bincount(cell, minlength=expected.size)
    assert observed[expected == 0].sum() == 0
    rare = expected * n_samples < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum()) * n_samples
    assert observed.size > 40
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 0.001


def test_samples_of_a_class_follow_its_tables():
    tables, structure = model(TREE)
    y = np.repeat([2, 0], [30_000, 10])
    codes, classes = sample(tables, structure, len(y), np.random.default_rng(2), y=y)
    np.testing.assert_array_equal(classes, y)
    expected = tables.probabilities(3)[:, 2] * 30_000  # the root
    assert chisquare(np.bincount(codes[3, :30_000], minlength=4), expected).pvalue > 0.001


@pytest.mark.parametrize("n_states", [1, 2, 5, 255, 256, 300])
def test_features_of_any_number_of_values_are_drawn(n_states):
    tables, structure = model([-1], n_states=[n_states], zeros=0.2)
    codes, y = sample(tables, structure, 60_000, np.random.default_rng(3))
    assert codes.dtype == (np.uint8 if n_states <= 255 else np.uint16)
    expected = (tables.probabilities(0) * np.bincount(y)).sum(axis=1)
    observed = np.bincount(codes[0], minlength=n_states)
    assert observed[expected == 0].sum() == 0
    possible = expected > 0
    assert n_states == 1 or chisquare(observed[possible], expected[possible]).pvalue > 0.001


def test_the_same_generator_draws_the_same_samples():
    tables, structure = model(TWO)
    first, second, other = (sample(tables, structure, 50, np.random.default_rng(seed)) for seed in (0, 0, 1))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (first[0] != other[0]).any()
    assert sample(tables, structure, 0, np.random.default_rng(0))[0].shape == (5, 0)


def test_what_has_no_order_cannot_be_drawn_or_completed():
    tables, structure = model(CYCLE, allow_cycles=True)
    with pytest.raises(ValueError, match=r"cannot be drawn from a structure with a cycle.*Use a structure without"):
        sample(tables, structure, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match="cannot be completed by a structure with a cycle"):
        most_probable_completion(tables, structure, encode([[0, -1, 0, 0, 0]]))
    with pytest.raises(ValueError, match=r"row 1 lacks feature 1 .* in a structure with a cycle"):
        explain(tables, structure, encode([[0, 1, 0, 0, 0], [0, -1, 0, 0, 0]]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"each of the 3 rows, got shape \(2,\)"),
        ([0.0, 1.0, 2.0], "got shape .* of dtype float64"),
        ([0, 3, 1], "class codes in y must be from 0 to 2, got 3 in row 1"),
        ([0, 1, -1], "class codes in y must be from 0 to 2, got -1 in row 2"),
    ],
)
def test_classes_that_are_none_are_refused(y, message):
    tables, structure = model(TREE)
    with pytest.raises(ValueError, match=message):
        sample(tables, structure, 3, np.random.default_rng(0), y=y)
    with pytest.raises(ValueError, match=message):
        most_probable_completion(tables, structure, encode([[-1] * 5] * 3), y)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(models(), st.floats(0.0, 1.0), st.integers(0, 10**6), st.sampled_from([None, 0, 2]))
def test_no_completion_is_more_probable(net, missing, seed, y):
    tables, structure = net
    X, codes = gappy(missing, seed=seed)
    given_classes = None if y is None else np.full(len(X), y)
    completed, classes = most_probable_completion(tables, structure, codes, given_classes)
    scores = log_joint(tables, structure, completed)  # fails if anything were still missing
    for n, row in enumerate(X):
        _, _, best = naive_elimination.most_probable(row, *oracle_arguments(tables, structure), y)
        assert scores[n, classes[n]] == pytest.approx(best, rel=1e-12)
        np.testing.assert_array_equal(completed[row >= 0, n], row[row >= 0])
    assert y is None or (classes == y).all()


def test_complete_rows_come_back_with_their_best_class():
    tables, structure = model(CYCLE, allow_cycles=True)
    _, codes = gappy(0.0)
    completed, classes = most_probable_completion(tables, structure, codes)
    np.testing.assert_array_equal(completed, codes)
    assert completed is not codes
    np.testing.assert_array_equal(classes, log_joint(tables, structure, codes).argmax(axis=1))


@pytest.mark.parametrize("parent", [TREE, TWO])
def test_blocks_and_threads_do_not_change_completions(parent):
    tables, structure = model(parent)
    _, codes = gappy(0.4, n=300)
    before = codes.copy()
    completed, classes = most_probable_completion(tables, structure, codes, n_jobs=2)
    np.testing.assert_array_equal(codes, before)
    for rows in (slice(0, 1), slice(150, 300)):
        part = most_probable_completion(tables, structure, np.ascontiguousarray(codes[:, rows]))
        np.testing.assert_array_equal(part[0], completed[:, rows])
        np.testing.assert_array_equal(part[1], classes[rows])


def test_the_best_completion_need_not_have_the_best_class():
    """Of class 0 half the samples look the same; those of class 1 are more, and no two alike."""
    structure = Structure([-1])
    layout = TableLayout.of_parents(structure.parents, np.array([4]), 2)
    table = np.array([[0.5, 0.25], [0.5, 0.25], [1e-9, 0.25], [1e-9, 0.25]])
    tables = Tables(layout, np.log(np.concatenate([[0.4, 0.6], table.ravel()])))
    nothing = np.array([[MISSING]], np.uint8)
    assert log_joint(tables, structure, nothing).argmax(axis=1).tolist() == [1]
    assert [a.tolist() for a in most_probable_completion(tables, structure, nothing)] == [[[0]], [0]]


def test_thousands_of_missing_features_do_not_underflow():
    """Under two missing roots the best values of 2,000 features have a probability of about 0.5 ** 2000."""
    n = 2002
    parents = np.tile([0, 1], (n, 1))
    parents[:2] = -1
    rng = np.random.default_rng(4)
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.full(n, 2), 2)
    p = rng.uniform(0.4, 0.6, layout.n_cells)
    for i in range(n):
        table = p[layout.offset[i] : layout.offset[i + 1]].reshape(2, -1)
        table[1] = 1 - table[0]
    tables = Tables(layout, np.log(p))
    completed, _ = most_probable_completion(tables, structure, np.full((n, 1), MISSING, np.uint8), [1])
    best = {
        roots: tables[0][roots[0], 1] + tables[1][roots[1], 1] + sum(tables[i][:, *roots, 1].max() for i in range(2, n))
        for roots in itertools.product((0, 1), (0, 1))
    }
    roots = max(best, key=best.get)
    assert best[roots] < -1000
    assert completed[:2, 0].tolist() == list(roots)
    assert completed[2:, 0].tolist() == [tables[i][:, *roots, 1].argmax() for i in range(2, n)]


def test_two_parents_that_tie_everything_together_are_refused():
    """A grid of 25 x 25 features: the last row of it would be a factor of 25 features."""
    number = np.arange(625).reshape(25, 25)
    above, before = np.full((2, 25, 25), -1)
    above[1:], before[:, 1:] = number[:-1], number[:, :-1]
    tables, structure = model(np.stack([above.ravel(), before.ravel()], axis=1), n_states=[2] * 625)
    codes = np.zeros((625, 2), np.uint8)
    codes[:-1, 1] = MISSING
    with pytest.raises(ValueError, match=r"row 1 lacks 624 features that depend on each other .* Impute"):
        most_probable_completion(tables, structure, codes)
    with pytest.raises(ValueError, match=r"operations, but row 1 lacks 624 features"):
        explain(tables, structure, codes)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(models(), st.floats(0.0, 1.0), st.integers(0, 10**6))
def test_contributions_add_up_to_the_log_joint(net, missing, seed):
    tables, structure = net
    X, codes = gappy(missing, seed=seed)
    contributions = explain(tables, structure, codes)
    assert contributions.shape == (len(X), 6, N_CLASSES)
    np.testing.assert_allclose(contributions.sum(axis=1), log_joint(tables, structure, codes), rtol=1e-12, atol=1e-12)
    assert (contributions[:, :5][X < 0] == 0).all()
    scores = log_joint(tables, structure, codes)
    possible = np.isfinite(scores).all(axis=1)
    odds, scores = log_odds(contributions[possible], 2, 0), scores[possible]
    np.testing.assert_allclose(odds.sum(axis=1), scores[:, 2] - scores[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("parent", STRUCTURES)
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
def test_contributions_are_log_probabilities_given_what_came_before(parent, missing):
    tables, structure = model(parent)
    X, codes = gappy(missing)
    contributions = explain(tables, structure, codes)
    for row, found in zip(X, contributions, strict=True):
        expected = naive_elimination.contributions(row, structure.order, *oracle_arguments(tables, structure))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_contributions_of_complete_rows_are_entries_of_the_tables():
    """Those of a scorer with a cycle, too."""
    tables, structure = model(CYCLE, allow_cycles=True, zeros=0.3)
    X, codes = gappy(0.0)
    for row, found in zip(X, explain(tables, structure, codes), strict=True):
        entries = [tables[0][row[0], row[1]], tables[1][row[1], row[0]], *(tables[i][row[i]] for i in (2, 3, 4))]
        np.testing.assert_array_equal(found, [*entries, tables.log_prior])


def test_what_follows_something_impossible_is_not_nan():
    """Feature 3 is impossible in class 0; then feature 1, whose parent is missing, has no probability there."""
    tables, structure = model(TREE)
    tables[3][0] = [-np.inf, np.log(0.5), np.log(0.5)]
    codes = encode([[-1, 1, 0, 0, 1]])
    contributions = explain(tables, structure, codes)[0]
    assert contributions[3, 0] == -np.inf
    assert contributions[1, 0] == 0
    assert np.isfinite(contributions[1, 1:]).all()
    assert not np.isnan(contributions).any()
    assert np.isneginf(log_joint(tables, structure, codes)[0, 0])


def test_blocks_and_threads_do_not_change_explanations(monkeypatch):
    tables, structure = model(TWO)
    _, codes = gappy(0.4, n=60)
    whole = explain(tables, structure, codes)
    monkeypatch.setattr("tanlearn.models.explanation._PREFIXES", 7)
    np.testing.assert_array_equal(explain(tables, structure, codes, n_jobs=2), whole)


def test_log_odds_add_up():
    tables, structure = model(TREE)
    _, codes = gappy(0.3)
    scores = log_joint(tables, structure, codes)
    odds = log_odds(explain(tables, structure, codes), 2, 0)
    assert odds.shape == (12, 6)
    np.testing.assert_allclose(odds.sum(axis=1), scores[:, 2] - scores[:, 0], rtol=1e-12, atol=1e-12)


def test_log_odds_of_impossible_values():
    contributions = np.array([[[-np.inf, -1.0], [-1.0, -np.inf], [-np.inf, -np.inf], [-1.0, -3.0]]])
    assert log_odds(contributions, 0, 1).tolist() == [[-np.inf, np.inf, 0.0, 2.0]]
