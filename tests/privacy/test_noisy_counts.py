"""Changes of counts by one row, against all neighboring tables, and counts after noise."""

import itertools

import numpy as np
import pytest

from tanlearn import EncodedData, PairCounts, Structure
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.privacy.noisy_counts import add_noise, n_changed_counts
from tanlearn.structures.table_layout import TableLayout

N_STATES, N_CLASSES = [2, 3, 1], 2
MISSING = 255


def empty_pairs():
    return PairCounts(N_STATES, N_CLASSES)


def empty_families(parents):
    layout = TableLayout.of_parents(np.array(parents, np.intp), np.array(N_STATES, np.intp), N_CLASSES)
    return FamilyCounts(layout)


KINDS = {
    "pairs": empty_pairs,
    "naive Bayes": lambda: empty_families([[-1, -1]] * 3),
    "tree": lambda: empty_families([[-1, -1], [0, -1], [1, -1]]),
    "two parents": lambda: empty_families([[-1, -1], [0, -1], [0, 1]]),
}


def counted(empty, rows):
    """Return the counts of rows of codes; the class is the last code."""
    if not rows:
        return empty()
    table = np.array(rows)
    codes = np.ascontiguousarray(table[:, :-1].T.astype(np.uint8))
    return empty().update(EncodedData(codes, np.array(N_STATES, np.intp), table[:, -1].astype(np.intp), N_CLASSES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_changes_as_many_counts_as_stated_at_most(kind):
    values = [[*range(n), MISSING] for n in N_STATES]
    rows = list(itertools.product(*values, range(N_CLASSES)))
    tables = [[], [rows[0]], [rows[5], rows[-2]]]
    sums, squares = [], []
    for table in tables:
        before = counted(KINDS[kind], table)
        for row in rows:  # each neighbor with one more row; with one row less, signs are reversed
            after = counted(KINDS[kind], [*table, row])
            changes = np.concatenate([after.arrays()[name] - old for name, old in before.arrays().items()])
            sums.append(abs(changes).sum())
            squares.append((changes**2).sum())
    assert max(sums) == max(squares) == n_changed_counts(before)


def test_numbers_of_changed_counts_are_those_of_classes_families_and_pairs():
    expected = {"pairs": 1 + 3 + 3, "naive Bayes": 1 + 3, "tree": 1 + 3, "two parents": 1 + 3}
    assert {kind: n_changed_counts(empty()) for kind, empty in KINDS.items()} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_count_gets_its_own_noise(kind):
    before = counted(KINDS[kind], [(0, 2, 0, 0)] * 9 + [(1, MISSING, 0, 1)] * 4)
    draws = itertools.cycle([3, -2, 0, 5, -20])
    after = add_noise(before, lambda: next(draws))
    assert type(after) is type(before)
    assert after.dtype == np.int64
    draws = itertools.cycle([3, -2, 0, 5, -20])
    for name, old in before.arrays().items():
        expected = np.maximum([count + next(draws) for count in old.tolist()], 0)
        if name == "cells":
            expected[:N_CLASSES] = np.maximum(expected[:N_CLASSES], 1)
        np.testing.assert_array_equal(after.arrays()[name], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_counts_without_noise_are_copies(kind):
    before = counted(KINDS[kind], [(0, 2, 0, 0), (1, MISSING, 0, 1)])
    after = add_noise(before, lambda: 0)
    assert after == before
    after.arrays()["cells"][:] = 7
    assert before.class_counts.tolist() == [1, 1]


def test_large_noise_is_limited_after_it_was_added():
    before = counted(empty_pairs, [(0, 2, 0, 0)])
    assert add_noise(before, lambda: 10**30).class_counts.tolist() == [2**50] * 2
    lowest = add_noise(before, lambda: -(10**30))
    assert lowest.class_counts.tolist() == [1, 1]
    assert lowest.pairs.tolist() == [0] * len(lowest.pairs)


def test_structures_of_families_stay():
    assert Structure(add_noise(KINDS["tree"](), lambda: 1).parents) == Structure(KINDS["tree"]().parents)
