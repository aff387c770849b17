"""Counts of seen contexts: exact, and they add up."""

import numpy as np
import pytest
from support.seen_contexts import N_STATES, STRUCTURE, count, table

from tanlearn import EncodedData, Structure
from tanlearn.counts.context_counts import ContextCounts


@pytest.mark.parametrize("weights", [None, "integer", "real"])
def test_entries_are_what_rows_show(weights):
    data = table(weights=weights)
    state = count(data)
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    for i, (values, counts) in enumerate(state.families):
        parents = STRUCTURE.parents[i][STRUCTURE.parents[i] >= 0]
        expected = {}
        for row, c, w in zip(X, data.y, data.weights, strict=True):
            if row[i] == -1 or w == 0:
                continue
            gaps = np.flatnonzero(row[parents] == -1)
            known = gaps[0] if gaps.size else len(parents)
            given = [row[j] if place < known else N_STATES[j] for place, j in enumerate(parents)]
            key = (*given, row[i], c)
            expected[key] = expected.get(key, 0) + w
        assert list(map(tuple, values.T.tolist())) == sorted(expected)
        np.testing.assert_allclose(counts, [expected[key] for key in sorted(expected)], rtol=1e-12)
        assert counts.dtype == (np.float64 if weights == "real" else np.int64)
    np.testing.assert_allclose(state.class_counts, np.bincount(data.y, data.weights, 3))


@pytest.mark.parametrize("weights", [None, "integer"])
def test_parts_add_up_to_the_last_bit_in_any_order_and_number_of_threads(weights):
    data = table(weights=weights)
    whole = count(data, n_jobs=2)
    rng = np.random.default_rng(1)
    parts = [count(data.take(rows)) for rows in np.array_split(rng.permutation(200), 5)]
    merged = count(data.take(np.arange(0)))
    for part in parts:
        merged.merge(part)
    assert merged == whole
    for part in parts[:3]:
        merged.subtract(part)
    assert merged == parts[3].merge(parts[4])
    assert merged != whole


def test_real_weights_add_up_to_rounding_and_nothing_is_left_of_what_was_taken_away():
    data = table(weights="real")
    whole, one, two = (count(data.take(rows)) for rows in (np.arange(200), np.arange(80), np.arange(80, 200)))
    for (values, counts), (expected, left) in zip(whole.subtract(two).families, one.families, strict=True):
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_allclose(counts, left, rtol=1e-9)


def test_what_is_no_part_is_refused_and_nothing_changes():
    data = table()
    state, other = count(data.take(np.arange(100))), count(data.take(np.arange(90, 200)))
    before = count(data.take(np.arange(100)))
    with pytest.raises(ValueError, match="would leave negative counts"):
        state.subtract(other)
    with pytest.raises(ValueError, match=r"parents has shape \(4, 3\) here and \(4, 2\) there"):
        state.subtract(ContextCounts(Structure([-1, 0, 0, 0]).parents, data.n_states, 3))
    assert state == before


def test_hundreds_of_values_and_many_parents_take_memory_by_rows():
    rng = np.random.default_rng(0)
    n_states = [65535, 40000, 300, 300, 300, 300]
    X = np.stack([rng.integers(0, k, 50) for k in n_states], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, 2, 50), n_states=n_states, n_classes=2)
    structure = Structure([[-1] * 5, [0, -1, -1, -1, -1], *[[-1] * 5] * 3, [0, 1, 2, 3, 4]])
    state = ContextCounts(structure.parents, data.n_states, 2).update(data)
    values, _ = state.families[5]
    assert sorted(values.T.tolist()) == sorted([*row[:5], row[5], c] for row, c in zip(X.tolist(), data.y, strict=True))
    grown = state.grow(5)
    assert len(grown.trie.branch) <= 1 + 5 * 50
    assert len(grown.counts) <= 6 * 50
    assert sum(array.nbytes for array in (*grown.trie, grown.counts)) < 20_000


def test_more_classes_than_codes_are_refused():
    def counts(n_classes):
        data = EncodedData.from_codes([[0], [1]], [0, n_classes - 1], n_classes=n_classes)
        return ContextCounts(np.array([[-1]]), data.n_states, n_classes).update(data)

    values, _ = counts(65_535).families[0]
    assert values.tolist() == [[0, 1], [0, 65_534]]
    with pytest.raises(ValueError, match="at most 65,535 classes, got 65,537"):
        counts(65_537)
