"""Terms: where they start, what they add up to, and the finished tables."""

import itertools

import numpy as np
import pytest

from tanlearn import CandidateSets, EncodedData, FixedPoint, IntegerTables, Structure
from tanlearn.models.log_joint import log_joint, log_posterior
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.term_state import BACK_OFF, TermState

N_STATES, N_CLASSES = [3, 2, 4], 2
LISTS = [[1, 2], [0, 2], [0, 1]]


def problem(gaps=False, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    X = np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in N_STATES], axis=1)
    if gaps:
        X[rng.random(X.shape) < 0.2] = -1
    return EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=N_CLASSES)


def make(gaps=False, fixed_point=None):
    data = problem(gaps)
    return data, TermState(data, CandidateSets.from_lists(LISTS, n_parents=2), fixed_point)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_every_choice_starts_as_a_distribution(gaps):
    """Sums of terms are normalised logarithms, of pairs too, before anything is learnt."""
    _, state = make(gaps)
    for t in range(state.layout.n_tables):
        np.testing.assert_allclose(np.exp(state._total(t, state.layout.shape(t))).sum(axis=0), 1, rtol=1e-5)


def test_single_parents_start_at_frequencies_smoothed_towards_those_without():
    data, state = make()
    t = int(state.candidates.group[2] + 2)
    assert state.candidates.parents[t].tolist() == [1, -1]
    found = np.exp(state._total(t, state.layout.shape(t)))
    for z, c, x in itertools.product(range(2), range(N_CLASSES), range(4)):
        of_class = data.y == c
        plain = (np.sum(data.codes[2, of_class] == x) + 1) / (of_class.sum() + 4)
        given = of_class & (data.codes[1] == z)
        expected = (np.sum(data.codes[2, given] == x) + BACK_OFF * plain) / (given.sum() + BACK_OFF)
        assert found[x, z, c] == pytest.approx(expected, rel=1e-5)


def test_pairs_back_off_to_the_product_of_their_members():
    """A pair of values that no row has starts at p(x | p, y) p(x | q, y) / p(x | y), normalised."""
    data = EncodedData.from_codes([[0, 0, 0], [1, 1, 1], [0, 1, 0]] * 5, [0, 1, 0] * 5)
    state = TermState(data, CandidateSets.from_lists([[], [], [0, 1]], n_parents=2))
    alone, first, second, both = (np.exp(state._total(t, state.layout.shape(t))) for t in range(2, 6))
    expected = first[:, 1] * second[:, 0] / alone
    np.testing.assert_allclose(both[:, 1, 0], expected / expected.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_finished_tables_say_of_classes_what_terms_say(gaps):
    """Rows of tables are moved in all classes alike, and the posterior of complete rows stays."""
    _, state = make(gaps)
    state.theta[:] += np.random.default_rng(1).normal(size=state.theta.shape)
    state.phi[:] = np.random.default_rng(2).normal(size=state.phi.shape)
    structure, tables = state.most_probable()
    assert not tables.is_normalized
    plain = [state.theta[:N_CLASSES].astype(float)]
    plain += [state._total(t, tables.layout.shape(i)).ravel() for i, t in enumerate(state.selected)]
    codes = problem().codes
    layout = TableLayout.of_parents(structure.parents, np.array(N_STATES), N_CLASSES)
    expected = layout.log_joint(codes, np.concatenate(plain))
    found = log_joint(tables, structure, codes)
    np.testing.assert_allclose(log_posterior(found), log_posterior(expected), atol=1e-6)


def test_classes_together_take_values_as_often_as_rows_do():
    data, state = make()
    state.theta[N_CLASSES:] += np.random.default_rng(1).normal(size=len(state.theta) - N_CLASSES)
    state.phi[state.candidates.group[:-1]] = 9.0  # no parents
    _, tables = state.most_probable()
    classes = np.bincount(data.y, minlength=N_CLASSES) + np.exp(tables.log_prior)
    for i, k in enumerate(N_STATES):
        counts = np.bincount(data.codes[i], minlength=k)
        back_off = (counts + 1) / (counts + 1).sum()
        expected = (counts + 5 * back_off) / (len(data.y) + 5)
        np.testing.assert_allclose(np.exp(tables[i]) @ (classes / classes.sum()), expected, rtol=1e-5)


def test_rounded_tables_are_zero_at_the_largest():
    _, state = make(fixed_point=FixedPoint(3, 1))
    structure, tables = state.most_probable()
    assert isinstance(tables, IntegerTables)
    for i in range(len(tables)):
        assert not tables[i].max(axis=-1).any()
        expected = FixedPoint(3, 1).round(
            state._total(int(state.selected[i]), tables.layout.shape(i))
            - state._total(int(state.selected[i]), tables.layout.shape(i)).max(axis=-1, keepdims=True)
        )
        np.testing.assert_array_equal(tables[i], expected)
    assert structure.is_acyclic


def test_weights_count_relative_to_their_mean():
    data = problem()
    doubled = EncodedData.from_codes(data.codes.T, data.y, n_states=N_STATES, sample_weight=np.full(len(data.y), 2.0))
    sets = CandidateSets.from_lists(LISTS, n_parents=2)
    np.testing.assert_allclose(TermState(data, sets).theta, TermState(doubled, sets).theta, atol=1e-6)


def test_a_structure_without_choice_has_its_own_terms_only():
    data = problem()
    state = TermState(data, CandidateSets.of_structure(Structure.naive_bayes(3)))
    assert state.probabilities() == [{(): 1.0}] * 3
