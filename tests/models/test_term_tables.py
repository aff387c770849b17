"""CPTs that are sums of columns, against explicit sums and enumeration of all rows."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import term_nets as naive
from support.term_networks import as_codes, as_plain, random_network

from tanlearn._memory import TableMemoryError
from tanlearn.models import term_tables
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.completion import most_probable_completion
from tanlearn.models.log_joint import log_joint, log_posterior
from tanlearn.models.term_tables import log_sum_of_groups, normalize_trees

N_STATES = [3, 2, 4, 3]
FOREST = [[-1], [0], [1], [-1]]
STAR = [[1], [-1], [1], [1]]
TWO = [[-1, -1], [0, -1], [0, 1], [2, 1]]
THREE = [[-1, -1, -1], [-1, -1, -1], [0, 1, -1], [2, 0, 1]]
ALL = [FOREST, STAR, TWO, THREE]
NAMES = ["forest", "star", "two parents", "three parents"]
EVERYTHING = [list(x) for x in itertools.product(*map(range, N_STATES))]
#: One row for each pattern of missing values, and the complete row.
PATTERNS = [
    [-1 if is_missing else x for x, is_missing in zip([2, 1, 3, 0], hidden, strict=True)]
    for hidden in itertools.product([False, True], repeat=4)
]
every_network = pytest.mark.parametrize("parents", ALL, ids=NAMES)


@every_network
def test_scores_are_sums_of_cells(parents):
    tables, structure, plain = random_network(parents, N_STATES, 3)
    expected = [naive.log_joint(x, tables.log_prior, plain) for x in EVERYTHING]
    codes = as_codes(EVERYTHING)
    np.testing.assert_allclose(log_joint(tables, structure, codes), expected, rtol=1e-12, atol=1e-12)
    scores = np.empty((50, 3))
    tables.scorer(255)(codes, 11, scores)
    np.testing.assert_allclose(scores, expected[11:61], rtol=1e-12, atol=1e-12)
    total = tables.log_prior + sum(tables.of_rows(i, codes) for i in range(4))
    np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-12)


@every_network
def test_missing_values_of_a_column_contribute_nothing(parents):
    tables, _, plain = random_network(parents, N_STATES, 2)
    codes = as_codes(PATTERNS)
    scores = np.empty((16, 2))
    tables.scorer(255)(codes, 0, scores)
    expected = [naive.log_joint(x, tables.log_prior, plain) for x in PATTERNS]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    for i in range(4):
        own = [column for column in plain if column[0][0] == i]
        expected = [naive.log_joint(x, [0.0, 0.0], own) for x in PATTERNS]
        np.testing.assert_allclose(tables.of_rows(i, codes), expected, rtol=1e-12, atol=1e-12)
        family = [i, *(j for j in parents[i] if j >= 0)]
        np.testing.assert_array_equal(tables.of_values(i, codes[family]), tables.of_rows(i, codes))


@every_network
def test_cpts_are_sums_of_columns(parents):
    tables, structure, plain = random_network(parents, N_STATES, 2)
    for i in range(4):
        given_ = structure.parents[i][structure.parents[i] >= 0].tolist()
        table = tables[i]
        assert table.shape == (N_STATES[i], *(N_STATES[j] for j in given_), 2)
        own = [column for column in plain if column[0][0] == i]
        for values in itertools.product(*(range(N_STATES[j]) for j in [i, *given_])):
            row = [-1] * 4
            for j, value in zip([i, *given_], values, strict=True):
                row[j] = value
            np.testing.assert_allclose(table[values], naive.log_joint(row, [0.0, 0.0], own), rtol=1e-12, atol=1e-12)
    expected = np.concatenate([tables.log_prior, *(tables[i].ravel() for i in range(4))])
    np.testing.assert_array_equal(tables.cells, expected)
    assert len(tables.cells) == tables.layout.n_cells
    for wrong in (-1, 4):
        with pytest.raises(IndexError, match="feature must be from 0 to 3, got"):
            tables[wrong]


def test_conditional_distributions_and_descriptions_are_those_of_the_columns():
    tables, _, plain = random_network(TWO, N_STATES, 2)
    codes, y = as_codes(EVERYTHING), np.arange(len(EVERYTHING)) % 2
    for i in range(4):
        table, column = tables.conditional(i, codes, y)
        found = table[codes[i], column]
        np.testing.assert_array_equal(found, tables.of_rows(i, codes)[np.arange(len(y)), y])
        described = tables.describe(i)["columns"]
        own = [one for one in plain if one[0][0] == i]
        assert [one["features"] for one in described] == [list(features) for features, _, _ in own]
        assert [one["groups"] for one in described] == [groups for _, groups, _ in own]
        cells = [np.reshape(cells, (-1, 2)).tolist() for _, _, cells in own]
        assert [one["cells"] for one in described] == cells


# ------------------------------------------------------------------------------------------------- missing values


@every_network
@pytest.mark.parametrize("is_dense", [True, False])
@pytest.mark.parametrize("is_normalized", [True, False])
def test_missing_values_are_marginalized_exactly(parents, is_dense, is_normalized, monkeypatch):
    if not is_dense:
        monkeypatch.setattr(term_tables, "_MOST_DENSE", 0)
    tables, structure, plain = random_network(parents, N_STATES, 2)
    if is_normalized:
        if structure.parents[:, 1:].max() >= 0:
            pytest.skip("only CPTs of trees can be normalized")
        tables = normalize_trees(tables, structure)
        plain = as_plain(tables)
    found = log_joint(tables, structure, as_codes(PATTERNS), is_exact=True)
    expected = [naive.marginal_log_joint(x, tables.log_prior, plain, N_STATES) for x in PATTERNS]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert tables.is_exact(structure, as_codes(PATTERNS)).all()
    np.testing.assert_array_equal(log_joint(tables, structure, as_codes(PATTERNS), is_exact=True, n_jobs=2), found)


@every_network
def test_completions_are_the_most_probable_ones(parents):
    tables, structure, plain = random_network(parents, N_STATES, 2)
    found, y = most_probable_completion(tables, structure, as_codes(PATTERNS), None)
    for row, completed, label in zip(PATTERNS, found.T.tolist(), y.tolist(), strict=True):
        choices = [range(n) if v < 0 else [v] for v, n in zip(row, N_STATES, strict=True)]
        scores = {x: naive.log_joint(x, tables.log_prior, plain) for x in itertools.product(*choices)}
        best = max(max(one) for one in scores.values())
        assert scores[tuple(completed)][label] == pytest.approx(best, rel=1e-12)


# -------------------------------------------------------------------------------------------------- normalization


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([FOREST, STAR, [[-1]] * 4]), st.sampled_from([0.1, 1.0, 30.0]))
def test_normalized_trees_have_the_same_distribution(seed, parents, spread):
    """The joint distribution of rows and classes changes by a factor only: posteriors of all rows are the same."""
    tables, structure, plain = random_network(parents, N_STATES, 3, seed=seed, spread=spread)
    found = normalize_trees(tables, structure)
    assert found.is_normalized
    assert float(np.exp(found.log_prior).sum()) == pytest.approx(1, rel=1e-12)
    for i in range(4):
        np.testing.assert_allclose(np.exp(found[i]).sum(axis=0), 1, rtol=1e-9)
    log_z, _ = naive.distribution(tables.log_prior, plain, N_STATES)
    before = [naive.log_joint(x, tables.log_prior, plain) for x in EVERYTHING]
    after = [naive.log_joint(x, found.log_prior, as_plain(found)) for x in EVERYTHING]
    np.testing.assert_allclose(np.array(before) - log_z, after, rtol=1e-9, atol=1e-9)
    rows = as_codes(PATTERNS)
    one, two = (log_posterior(log_joint(each, structure, rows)) for each in (tables, found))
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_normalization_leaves_its_argument_alone():
    tables, structure, _ = random_network(STAR, N_STATES, 2)
    before = [values.copy() for values in (*tables.values, tables.log_prior)]
    normalize_trees(tables, structure)
    for one, two in zip(before, (*tables.values, tables.log_prior), strict=True):
        np.testing.assert_array_equal(one, two)


def test_sums_of_groups_far_below_the_largest_value_are_exact():
    """exp(-2000) is 0: each group is summed relative to its own maximum."""
    log_values = np.array([[0.0, -3.0], [-2000.0, 5.0], [-2001.0, -900.0], [1.0, -900.0]])
    found = log_sum_of_groups(log_values, np.array([0, 1, 1, 0]), 2)
    expected = [[naive.log_sum([0.0, 1.0]), -3.0], [naive.log_sum([-2000.0, -2001.0]), 5.0]]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_trees_of_extreme_parameters_are_normalized():
    tables, structure, _ = random_network(FOREST, N_STATES, 2)
    for values in tables.values:
        values *= 1000
    found = normalize_trees(tables, structure)
    for i in range(4):
        np.testing.assert_allclose(np.exp(found[i]).sum(axis=0), 1, rtol=1e-9)
    posteriors = [log_posterior(log_joint(each, structure, as_codes(EVERYTHING))) for each in (tables, found)]
    np.testing.assert_allclose(*posteriors, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- bounds


@every_network
@pytest.mark.parametrize("seed", range(3))
def test_least_log_probabilities_are_lower_bounds(parents, seed):
    tables, structure, _ = random_network(parents, N_STATES, 2, seed=seed)
    all_tables = [tables]
    if structure.parents[:, 1:].max() < 0:
        all_tables.append(normalize_trees(tables, structure))
    for each in all_tables:
        least = each.least_log_probabilities()
        for i in range(4):
            table = each[i].reshape(N_STATES[i], -1, 2)
            smallest = (table - np.logaddexp.reduce(table, axis=0)).min(axis=(0, 1))
            assert (least[i] <= smallest + 1e-12).all()
            assert (least[i] >= smallest - 30).all()


def test_least_log_probabilities_of_single_columns_are_attained():
    tables, structure, _ = random_network([[-1]] * 4, N_STATES, 2)
    found = normalize_trees(tables, structure)
    expected = [found[i].min(axis=0) for i in range(4)]
    np.testing.assert_allclose(found.least_log_probabilities(), expected, rtol=1e-12)


# ----------------------------------------------------------------------------------------------------------- files


def state_of(parents=TWO, *, seed=0):
    tables, structure, _ = random_network(parents, N_STATES, 3, seed=seed)
    return BayesNet(structure, tables).to_state(), tables, structure


def restored(state):
    return BayesNet.from_state(state, np.array(N_STATES, np.intp), 3)


@every_network
def test_states_restore_the_same_model(parents):
    state, tables, structure = state_of(parents)
    network = restored(state)
    assert not network.tables.is_normalized
    codes = as_codes(EVERYTHING)
    np.testing.assert_array_equal(
        log_joint(network.tables, network.structure, codes), log_joint(tables, structure, codes)
    )
    assert as_plain(network.tables) == as_plain(tables)
    again = network.to_state()
    assert set(again) == set(state) == {"structure", "cells", "terms", "normalized"}
    for name in ("features", "groups", "cells"):
        np.testing.assert_array_equal(again["terms"][name], state["terms"][name])


def test_states_of_normalized_models_are_normalized():
    tables, structure, _ = random_network(STAR, N_STATES, 3)
    state = BayesNet(structure, normalize_trees(tables, structure)).to_state()
    assert "normalized" not in state
    assert restored(state).tables.is_normalized


def changed(array, place, value):
    """Return a copy of an array with another entry."""
    copy = array.copy()
    copy[place] = value
    return copy


FIRST_OF_TWO = 4  # the first column of an edge in the states of TWO
DAMAGE = {
    "no dictionary": lambda terms: [1, 2],
    "no terms": lambda terms: {},
    "a field too many": lambda terms: {**terms, "more": 1},
    "no groups": lambda terms: {name: terms[name] for name in ("features", "cells")},
    **{
        f"{name} as {kind}": lambda terms, name=name, other=other: {**terms, name: other(terms[name])}
        for name in ("features", "groups", "cells")
        for kind, other in {
            "a list": lambda one: one.tolist(),
            "None": lambda one: None,
            "a number": lambda one: 3,
            "text": lambda one: "abc",
            "a scalar array": lambda one: np.array(3),
            "floats": lambda one: one.astype(np.float32),
            "bytes": lambda one: one.astype(np.int8),
            "one axis too many": lambda one: one[np.newaxis],
            "one entry too few": lambda one: one[:-1],
            "nothing": lambda one: one[:0],
        }.items()
    },
    "flat features": lambda terms: {**terms, "features": terms["features"].ravel()},
    "features without columns": lambda terms: {**terms, "features": terms["features"][:, :0]},
    **{
        f"feature {value} at {place}": lambda terms, place=place, value=value: {
            **terms,
            "features": changed(terms["features"], place, value),
        }
        for place, value in [
            ((0, 0), 4),
            ((0, 0), 2**62),
            ((0, 0), -1),
            ((0, 0), -2),
            ((0, 1), 0),  # a feature as its own parent
            ((0, 1), 3),  # no parent of feature 0
            ((3, 0), 0),  # feature 3 is left without an own column
            ((FIRST_OF_TWO, 0), 0),
            ((FIRST_OF_TWO, 1), 1),
            ((FIRST_OF_TWO, 1), 2),
            ((FIRST_OF_TWO, 1), -2),
            ((FIRST_OF_TWO, 1), 99),
        ]
    },
    **{
        f"group {value} at {place}": lambda terms, place=place, value=value: {
            **terms,
            "groups": changed(terms["groups"], place, value),
        }
        for place, value in [(0, -1), (0, 3), (0, 2), (2, 7), (0, 2**40), (0, 2**62), (-1, -5), (-1, 3)]
    },
    "groups of one negative number": lambda terms: {**terms, "groups": np.full_like(terms["groups"], -1)},
    "cells with nan": lambda terms: {**terms, "cells": changed(terms["cells"], 5, np.nan)},
    "cells with inf": lambda terms: {**terms, "cells": changed(terms["cells"], 5, np.inf)},
    "cells with -inf": lambda terms: {**terms, "cells": changed(terms["cells"], 5, -np.inf)},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_terms_are_refused(damage):
    state, _, _ = state_of()
    with pytest.raises(ValueError, match=r"\w+ \w+ \w+"):
        restored({**state, "terms": damage(state["terms"])})


@pytest.mark.parametrize(
    "change",
    [
        {"cells": np.zeros(2)},
        {"cells": np.array([0.0, np.nan, 0.0])},
        {"cells": np.array([0.0, np.inf, 0.0])},
        {"cells": [0.0, 0.0, 0.0]},
        {"cells": None},
        {"structure": None},
        {"structure": "abc"},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_networks_of_terms_are_refused(change):
    state, _, _ = state_of()
    with pytest.raises(ValueError, match=r"\w+ \w+ \w+"):
        restored({**state, **change})


def test_states_of_other_structures_are_refused():
    (state, _, _), (other, _, _) = state_of(TWO), state_of(STAR)
    with pytest.raises(ValueError, match="a feature and some of its parents"):
        restored({**state, "terms": other["terms"]})


# ----------------------------------------------------------------------------------------- priors, pickles and sizes


def test_other_priors_change_the_prior_only():
    tables, structure, _ = random_network(TWO, N_STATES, 2)
    prior = np.log([0.9, 0.1])
    other = tables.with_log_prior(prior)
    codes = as_codes(EVERYTHING)
    difference = log_joint(other, structure, codes) - log_joint(tables, structure, codes)
    np.testing.assert_allclose(difference, np.tile(prior - tables.log_prior, (len(EVERYTHING), 1)), atol=1e-12)
    assert other.is_normalized is tables.is_normalized
    np.testing.assert_array_equal(other.log_prior, prior)
    np.testing.assert_array_equal(other.cells[2:], tables.cells[2:])


def test_pickles_are_small_and_equal():
    tables, structure, _ = random_network(STAR, N_STATES, 2)
    size = len(pickle.dumps(tables))
    expected = log_joint(tables, structure, as_codes(PATTERNS))
    assert "cells" in vars(tables)
    assert len(pickle.dumps(tables)) <= size + 200
    again = pickle.loads(pickle.dumps(tables))
    assert "cells" not in vars(again)
    np.testing.assert_array_equal(log_joint(again, structure, as_codes(PATTERNS)), expected)


def test_sizes_are_those_of_the_columns():
    tables, _, plain = random_network(TWO, N_STATES, 2)
    n_cells = 2 + sum(np.size(cells) for _, _, cells in plain)
    assert (tables.n_cells, tables.n_parameters, tables.is_dense) == (n_cells, n_cells - 1, False)
    assert repr(tables) == f"TermTables(n_features=4, n_classes=2, n_parameters={n_cells - 1})"
    with pytest.raises(ValueError, match=r"device='cuda' has no kernels .* Use device='cpu'"):
        tables.check_device("cuda")


def test_cpts_that_exceed_memory_still_score_rows(monkeypatch):
    """The CPT of the last feature has 200 x 200 x 200 x 2 entries, and its columns at most 200 + 9 + 9 cells."""
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", "0.01")
    tables, structure, plain = random_network([[-1, -1], [0, -1], [0, 1]], [200, 200, 200], 2)
    X = np.random.default_rng(0).integers(0, 200, (30, 3)).tolist()
    expected = [naive.log_joint(x, tables.log_prior, plain) for x in X]
    np.testing.assert_allclose(log_joint(tables, structure, as_codes(X)), expected, rtol=1e-12, atol=1e-12)
    for dense in (lambda: tables.cells, lambda: tables[2]):
        with pytest.raises(TableMemoryError, match="200 x 200 x 200 x 2 values and classes"):
            dense()
    assert tables[1].shape == (200, 200, 2)
