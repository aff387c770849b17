"""Tries of contexts and the counts of their entries, against dictionaries."""

import numpy as np
import pytest
from support.tries import draw_rows, grow

from tanlearn.kernels import context_trie as kernels


def counted(codes, n_states, y, n_classes, weights, child, parents, least, is_full):
    """Return the weight of each family, values of the parents, value and class."""
    found = {}
    for f, (i, own) in enumerate(zip(child.tolist(), parents.tolist(), strict=True)):
        own = [j for j in own if j >= 0]
        present = [r for r in range(len(y)) if codes[i, r] < n_states[i]]
        contexts = {(): present}
        for level in range(len(own) + 1):
            below = {}
            for context, rows in contexts.items():
                values, classes = sorted({*codes[i, rows].tolist()}), sorted({*y[rows].tolist()})
                if is_full:
                    values = range(n_states[i]) if context == () else values
                    classes = range(n_classes) if context == () else classes
                    found |= {(f, context, v, c): 0 for v in values for c in classes}
                for r in rows:
                    key = f, context, int(codes[i, r]), int(y[r])
                    found[key] = found.get(key, 0) + weights[r]
                    if level < len(own) and codes[own[level], r] < n_states[own[level]]:
                        below.setdefault((*context, int(codes[own[level], r])), []).append(r)
            contexts = {context: rows for context, rows in below.items() if len(rows) >= least}
    return found


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("is_full", [False, True])
def test_entries_are_those_of_dictionaries(seed, is_full):
    rows = draw_rows(seed, [np.uint8, np.uint16][seed % 2])
    grown, least = grow(*rows, 1 + seed % 4, is_full), 1 + seed % 4
    expected, found = counted(*rows, least, is_full), grown.entries()
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(grown.counts, [expected[key] for key in found], rtol=1e-12)
    for (f, context, value, c), e in found.items():
        assert grown.trie.classes[grown.run[e]] == c
        above = found[f, context[:-1], value, c] if context else -1 - f
        assert grown.above[e] == above


@pytest.mark.parametrize("seed", range(20))
def test_contexts_stand_level_by_level_with_all_that_they_have_seen_in_order(seed):
    codes, n_states, y, n_classes, weights, child, parents = draw_rows(seed)
    root, trie, _, _, run, level = grow(codes, n_states, y, n_classes, weights, child, parents)
    n = len(trie.branch)
    assert trie.children[n] == n
    assert (np.diff(trie.children) >= 0).all()
    assert root[0] == 0
    assert not trie.branch[root].any()
    for f, (first, last) in enumerate(zip(root, [*root[1:], n], strict=True)):
        assert (np.diff(level[first:last]) >= 0).all()
        values, classes = slice(*trie.value_start[first : first + 2]), slice(*trie.class_start[first : first + 2])
        assert trie.values[values].tolist() == [*range(n_states[child[f]])]
        assert trie.classes[classes].tolist() == [*range(n_classes)]
    for start, codes in ((trie.class_start, trie.classes), (trie.value_start, trie.values)):
        for g in range(n):
            own = codes[start[g] : start[g + 1]].tolist()
            assert own == sorted(set(own))
    if len(run):
        assert {*run.tolist()} <= {*range(len(trie.classes))}


def test_a_family_of_one_parent_by_hand():
    codes, n_states, y = np.array([[0, 1, 1], [0, 0, 1]], np.uint8), np.array([2, 2]), np.array([0, 1, 0])
    child, parents, root = np.array([0]), np.array([[1]]), np.array([9])
    samples = kernels.Samples(np.full((2, 3), 9, np.int32), np.full((2, 3), 9, np.uint32), *np.full((3, 3), 9))
    starts, lists = np.full((4, 6), 9), np.full((4, 6), 9)
    trie = kernels.ContextTrie(*(own for pair in zip(starts, lists, strict=True) for own in pair))
    trie = trie._replace(branch=trie.branch[:3])
    scratch = np.zeros(2, np.bool_), np.full(2, 9), np.full(2, 9), np.full(3, 9, np.uint16)
    assert kernels.grow_contexts(codes, n_states, y, 2, child, parents, 1, samples, *scratch, trie, root) == 3
    assert trie.children[:4].tolist() == [1, 3, 3, 3]
    assert trie.branch.tolist() == [0, 0, 1]
    assert trie.class_start[:4].tolist() == trie.value_start[:4].tolist() == [0, 2, 4, 5]
    assert trie.classes[:5].tolist() == [0, 1, 0, 1, 0]
    assert trie.values[:5].tolist() == [0, 1, 0, 1, 1]
    counts, cells = np.full(6, 9), np.zeros((2, 2), int)
    weights = np.array([1, 2, 4])
    assert kernels.count_entries(weights, samples, False, trie, cells, counts) == 6
    assert trie.entry_start.tolist() == [0, 1, 3, 4, 5, 6]
    assert trie.entry_class.tolist() == [0, 0, 1, 0, 1, 0]
    assert counts.tolist() == [1, 4, 2, 1, 2, 4]
    above, run = np.full((2, 6), 9)
    kernels.link_entries(root, trie, np.full((2, 2), 9), np.full(2, 9), above, run)
    assert above.tolist() == [-1, -1, -1, 0, 2, 1]
    assert run.tolist() == [0, 0, 1, 2, 3, 4]


def test_the_last_context_of_a_family_is_not_split_into_the_next_family():
    codes = np.array([[0, 0, 1, 1], [0, 0, 0, 1]], np.uint8)
    rows = codes, np.array([2, 2]), np.zeros(4, np.intp), 1, np.ones(4)
    root, trie, *_ = grow(*rows, np.array([0, 1]), np.array([[1], [0]]), 2)
    assert root.tolist() == [0, 2]
    assert trie.branch.tolist() == [0, 0, 0, 0, 1]  # all rows, three of them; all rows, and both halves
    assert trie.children.tolist() == [1, 2, 3, 5, 5, 5]  # that of context 1 holds the next root


@pytest.mark.parametrize("n_values", [4, 300])  # all are scanned, or those of the samples are sorted
def test_parts_keep_the_order_of_samples_and_small_parts_are_left_out(n_values):
    codes, is_found = np.array([2, 0, 1, 0, 2, 999], np.uint16), np.zeros(300, np.bool_)
    samples, cells = np.array([5, 1, 3, 0, 2, 4], np.int32), np.array([10, 11, 12, 13, 14, 15], np.uint32)
    parts, cells_of_parts = np.full(6, -1, np.int32), np.full(6, 99, np.uint32)
    found, end = np.full(300, 999), np.full(300, 999)
    scratch = is_found, found, end, np.empty(8, np.uint16)
    assert kernels.split_samples(codes, n_values, 2, samples, cells, *scratch, parts, cells_of_parts) == 2
    assert found[:2].tolist() == [0, 2]
    assert end[[0, 2]].tolist() == [2, 4]
    assert parts.tolist() == [1, 3, 0, 4, -1, -1]
    assert cells_of_parts.tolist() == [11, 12, 13, 15, 99, 99]
    assert not is_found.any()


@pytest.mark.parametrize("n_values", [4, 300])
@pytest.mark.parametrize("shift", [0, 16])
def test_distinct_values_of_cells_are_listed_in_order(n_values, shift):
    cells = np.array([2, 0, 3, 0, 2], np.uint32) << shift | 1 << (16 - shift)
    is_found, found = np.zeros(300, np.bool_), np.full(300, 999)
    assert kernels.list_distinct(cells, shift, n_values, is_found, found) == 3
    assert found[:3].tolist() == [0, 2, 3]
    assert kernels.list_distinct(cells[1:2], shift, n_values, is_found, found) == 1
    assert kernels.list_distinct(cells[:0], shift, n_values, is_found, found) == 0
    assert not is_found.any()


def test_distinct_values_below_a_limit_are_listed_in_order():
    is_found, found = np.zeros(300, np.bool_), np.full(300, 999)
    assert kernels.list_values(np.array([9, 2, 299, 300, 2, 9], np.uint16), 300, is_found, found) == 3
    assert found[:3].tolist() == [2, 9, 299]
    assert not is_found.any()


@pytest.mark.parametrize("last", [1, 2])
def test_distinct_values_of_many_cells_are_listed_in_order(last):
    cells = np.array([0] * 15 + [1] * 20 + [last] * 3, np.uint32)  # more than eight per value
    is_found, found = np.zeros(3, np.bool_), np.full(3, 999)
    assert kernels.list_distinct(cells, 0, 3, is_found, found) == last + 1
    assert found[: last + 1].tolist() == [*range(last + 1)]
    assert kernels.list_distinct(cells[:30], 0, 2, is_found, found) == 2
    assert not is_found.any()


def test_without_rows_there_is_the_empty_context():
    nothing = np.empty(0, np.intp)
    rows = np.empty((2, 0), np.uint8), np.array([3, 2]), nothing, 2, np.empty(0)
    for is_full in (False, True):
        root, trie, counts, above, _, _ = grow(*rows, np.array([0]), np.array([[1]]), 1, is_full)
        assert root.tolist() == [0]
        assert trie.children.tolist() == [1, 1]
        assert counts.tolist() == [0.0] * 6 * is_full
        assert above.tolist() == [-1] * 6 * is_full


@pytest.mark.parametrize("n", [0, 1, 2, 5, 41, 200])
def test_values_are_sorted_in_place(n):
    values = np.random.default_rng(n).integers(0, 60, n).astype(np.uint16)
    expected = sorted(values.tolist())
    kernels.sort_values(values)
    assert values.tolist() == expected
