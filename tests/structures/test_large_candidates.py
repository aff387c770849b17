"""Candidate CPTs that are too large for the rows are left out, with a warning."""

import re
import warnings

import numpy as np
import pytest

from tanlearn import CandidateSets, KTreeClassifier, TANClassifier
from tanlearn.structures import large_candidates
from tanlearn.structures.large_candidates import leave_out_large

N_STATES = np.array([30, 20, 4, 3])
LISTS = [[], [0], [0, 1], [1, 2]]


def few_rows(n_rows=60, n_values=30):
    """Return two columns in which each value occurs twice, and a column that predicts the class."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    many = np.array([[f"{letter}{i % n_values}" for letter in "ab"] for i in range(n_rows)])
    few = np.where(rng.random(n_rows) < 0.9, y, 1 - y).astype(str)
    return np.column_stack([many[:, 0], rng.permutation(many[:, 1]), few]), y


@pytest.fixture
def small_limit(monkeypatch):
    """Leave out CPTs of more than 1,000 entries with two classes."""
    monkeypatch.setattr(large_candidates, "MOST_ENTRIES", 1_000)
    monkeypatch.setattr(large_candidates, "MOST_PER_ROW", 10)


@pytest.mark.parametrize(("n_parents", "n_samples"), [(1, 50), (2, 50), (2, 100), (2, 200), (2, 1000)])
def test_candidates_above_both_limits_are_left_out(n_parents, n_samples, small_limit):
    sets = CandidateSets.from_lists(LISTS, n_parents=n_parents)
    limit = max(1_000, 10 * n_samples)
    expected = []
    for i in range(4):
        own = sets.parents[sets.group[i] : sets.group[i + 1]].tolist()
        sizes = [2 * N_STATES[i] * int(np.prod([N_STATES[j] for j in row if j >= 0])) for row in own]
        expected.append([row for row, size in zip(own, sizes, strict=True) if size <= limit or max(row) < 0])
    found = leave_out_large(sets, N_STATES, 2, n_samples)
    assert [found.parents[a:b].tolist() for a, b in zip(found.group, found.group[1:], strict=False)] == expected
    assert found.members.shape == (found.n_tables, 2)  # pairs still follow their single parents


def test_the_same_object_is_returned_if_all_candidates_are_small_enough():
    sets = CandidateSets.from_lists(LISTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert leave_out_large(sets, N_STATES, 2, 50, "column {}".format) is sets


def test_the_warning_names_the_largest_candidate_and_the_remedy(small_limit):
    sets = CandidateSets.from_lists(LISTS)
    message = (
        "1 of 5 candidate CPTs were left out, because most of their entries would be empty. The largest, of column 1 "
        "given column 0 (20 x 30 x 2 values and classes), has 1,200 entries for 50 rows."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        leave_out_large(sets, N_STATES, 2, 50, "column {}".format)


@pytest.mark.parametrize("estimator", [TANClassifier, KTreeClassifier])
def test_gradient_classifiers_connect_no_two_columns_of_many_values(estimator, small_limit):
    X, y = few_rows()
    model = estimator(n_epochs=2, random_state=0, candidates="order-free")
    with pytest.warns(UserWarning, match="candidate CPTs were left out") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    edges = {(i, j) for i, row in enumerate(model.candidates_.parents[:, 0]) for j in [row] if j >= 0}
    assert edges
    assert not {(0, 1), (1, 0)} & {
        (int(child), int(j))
        for child, row in zip(model.candidates_.child, model.candidates_.parents, strict=True)
        for j in row
        if j >= 0
    }
    assert model.score(X, y) > 0.7


def test_explicit_candidates_are_kept(small_limit):
    X, y = few_rows()
    model = TANClassifier(n_epochs=1, random_state=0, candidates=[[], [0], [0]]).fit(X, y)
    assert model.candidates_.n_tables == 5


def test_required_parents_are_kept(small_limit):
    sets = CandidateSets.from_lists(LISTS, n_parents=2).requiring([[], [0], [1], []])
    found = leave_out_large(sets, N_STATES, 2, 50)
    own = [found.parents[a:b].tolist() for a, b in zip(found.group, found.group[1:], strict=False)]
    assert own[1] == [[-1, -1], [0, -1]]  # 1,200 entries
    assert own[2] == [[-1, -1], [0, -1], [1, -1]]  # without the pair, which has 4,800 entries
    assert found.selectable[found.group[2] : found.group[3]].tolist() == [False, False, True]
    assert len(found.selectable) == found.n_tables


def test_pairs_with_very_many_entries_per_row_are_left_out():
    """The CPTs of the two pairs have 4 x 30 x 20 x 2 = 4,800 and 3 x 20 x 4 x 2 = 480 entries."""
    sets = CandidateSets.from_lists(LISTS, n_parents=2)
    sizes = sets.layout(N_STATES, 2).sizes()
    is_pair = (sets.parents >= 0).all(axis=1)
    largest = int(sizes[is_pair].max())
    assert leave_out_large(sets, N_STATES, 2, -(-largest // 1_000)) is sets
    found = leave_out_large(sets, N_STATES, 2, largest // 1_000 - 1)
    assert sets.n_tables - found.n_tables == np.count_nonzero(is_pair & (sizes == largest))
    single = CandidateSets.from_lists(LISTS)
    assert leave_out_large(single, N_STATES, 2, 1) is single
