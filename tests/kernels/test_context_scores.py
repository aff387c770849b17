"""Scores of samples that descend through tries, against oracles that smooth context by context from rows."""

import numpy as np
import pytest
from oracles import back_off as naive
from oracles import context_tries as oracle
from support.seen_contexts import N_CLASSES, N_STATES, columns_of, random_rows, trie_of
from support.tries import draw_rows, grow

from tanlearn.kernels.context_scores import (
    add_gains,
    add_gains_by_level,
    add_gains_by_pair,
    add_log_probabilities,
    add_sums,
    find,
    follow_parent,
    has_one_slot,
    list_cells,
    mark_values,
    next_context,
    sum_gains,
)
from tanlearn.kernels.context_smoothing import divide_by_above

M = np.array([0.5, 2.0, 1.0, 3.0])


@pytest.mark.parametrize("seed", range(60))
def test_gains_of_families_are_those_of_the_oracle(seed):
    codes, n_states, y, n_classes, weights, child, parents = draw_rows(seed, [np.uint8, np.uint16][seed % 2])
    least, m = 1 + seed % 4, [0.5, 1.0, 3.0][seed % 3]
    grown = grow(codes, n_states, y, n_classes, weights, child, parents, least)
    p, unseen = grown.smooth(np.full(parents.shape[1] + 1, m), n_states[child])
    gain = np.full(len(p), np.nan)
    divide_by_above(p, grown.above, gain)
    rng = np.random.default_rng(seed)
    others = (rng.random(codes.shape) * n_states[:, np.newaxis]).astype(codes.dtype)
    asked = np.concatenate([codes, others], axis=1)
    shape = len(child), parents.shape[1] + 1
    weight, slot = rng.normal(size=shape), rng.permutation(shape[0] * shape[1]).reshape(shape)
    scores = np.zeros((slot.size, asked.shape[1], n_classes))
    trie = grown.trie._replace(entry_class=np.empty(0, np.uint16))  # of a full trie, those of its contexts
    gains = np.log(gain), np.log(unseen)
    scratch = np.full(n_classes, np.nan)
    add_gains(asked, n_states, grown.root, child, parents, trie, *gains, weight, slot, scratch, scores)
    rows = codes.T.tolist(), y, weights, n_states, n_classes
    for r, row in enumerate(asked.T.tolist()):
        expected = np.zeros((slot.size, n_classes))
        for f, (i, table) in enumerate(zip(child.tolist(), parents.tolist(), strict=True)):
            found = oracle.gains(*rows, i, [j for j in table if j >= 0], m, least, row)
            for level, of_level in enumerate(found):
                expected[slot[f, level]] += weight[f, level] * np.array(of_level)
        np.testing.assert_allclose(scores[:, r], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_asked", [3, None], ids=["few samples", "many samples"])
@pytest.mark.parametrize("has_one_slot", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_gains_by_level_and_by_pair_are_equal_to_those_of_single_samples(seed, has_one_slot, n_asked):
    dtype = [np.uint8, np.uint16][seed % 2]
    codes, n_states, y, n_classes, weights, child, parents = draw_rows(seed, dtype)
    if seed >= 10:  # values on both sides of the bits of a set
        n_states = n_states + np.random.default_rng(seed).choice([0, 59, 60, 61, 90], len(n_states))
        is_missing = codes == np.iinfo(dtype).max
        codes = np.where(is_missing, codes, n_states[:, np.newaxis] - 1 - codes).astype(dtype)
    grown = grow(codes, n_states, y, n_classes, weights, child, parents, 1 + seed % 4)
    rng, shape = np.random.default_rng(seed), (len(child), parents.shape[1] + 1)
    gain, unseen = (rng.normal(size=size).astype(np.float32) for size in (len(grown.counts), len(grown.trie.classes)))
    others = (rng.random(codes.shape) * n_states[:, np.newaxis]).astype(dtype)
    asked = np.concatenate([codes, others, codes], axis=1)
    asked = np.ascontiguousarray(asked[:, rng.permutation(asked.shape[1])[:n_asked]])
    weight, slot = rng.normal(size=shape), rng.integers(0, 3, shape)
    if has_one_slot:
        slot = np.repeat(slot[:, :1], shape[1], axis=1)
    expected, found = np.zeros((2, 3, asked.shape[1], n_classes))
    tries = grown.root, child, parents, grown.trie
    add_gains(asked, n_states, *tries, gain, unseen, weight, slot, np.full(n_classes, np.nan), expected)
    sets, own = np.empty((len(grown.trie.branch), 2), np.uint64), grown.trie
    mark_values(own.children, own.branch, own.value_start, own.values, grown.root, sets)
    n = asked.shape[1]
    scratch = *np.empty((2, n), np.intp), np.full((n, n_classes), np.nan)
    with np.errstate(over="ignore"):  # plain Python warns of the product of the population count
        add_gains_by_level(asked, n_states, *tries, sets, gain, unseen, weight, slot, *scratch, found)
    np.testing.assert_array_equal(found, expected)
    if has_one_slot:
        n_pairs = np.diff(own.value_start[np.append(grown.root, len(own.branch))]).max()
        scratch, by_pair = (*scratch[:2], np.full((n_pairs + 1, n_classes), np.nan)), np.zeros(found.shape)
        with np.errstate(over="ignore"):
            add_gains_by_pair(asked, n_states, *tries, sets, gain, unseen, weight, slot, *scratch, by_pair)
        np.testing.assert_array_equal(by_pair, expected)


@pytest.mark.parametrize("n_values", [2, 65])
def test_samples_descend_by_hand(n_values):
    codes, n_states, y = np.array([[0, 1, 1], [0, 0, 1]], np.uint8), np.array([2, n_values]), np.array([0, 1, 0])
    root, trie, *_ = grow(codes, n_states, y, 2, np.ones(3), np.array([0]), np.array([[1]]))
    sets, active, node = np.empty((3, 2), np.uint64), np.array([0, 2, 3, -1]), np.zeros(4, np.intp)
    mark_values(trie.children, trie.branch, trie.value_start, trie.values, root, sets)
    with np.errstate(over="ignore"):  # plain Python warns of the product of the population count
        m = follow_parent(np.array([1, 1, 0, 9], np.uint8), n_values, trie, sets, 3, active, 3, node)
    assert active[:m].tolist() == [0, 2]  # sample 1 was not active, and sample 3 has no context
    assert node.tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize("slot", [[3], [3, 3, 3], [0, 3, 3], [3, 3, 0]])
def test_a_family_has_one_slot_if_all_its_levels_have_it(slot):
    assert has_one_slot(np.array(slot)) == (0 not in slot)


def test_gains_on_the_way_to_a_pair_are_added_up_by_hand():
    codes, n_states, y = np.array([[0, 1, 1], [0, 0, 1]], np.uint8), np.array([2, 2]), np.array([0, 1, 0])
    child, parents = np.array([0]), np.array([[1]])
    root, trie, *_ = grow(codes, n_states, y, 2, np.ones(3), child, parents)
    assert trie.values.tolist() == [0, 1, 0, 1, 1]  # of all samples, of the first two, and of the last one
    gain, weight, sums = np.arange(1.0, 10.0), np.array([1.0, 10.0]), np.full((6, 2), np.nan)
    sum_gains(0, 3, trie, gain, weight, sums)
    assert sums[:5].tolist() == [[1, 2], [3, 4], [51, 62], [73, 84], [93, 4]]  # the last sample has class 0 alone
    sets, scores = np.empty((3, 2), np.uint64), np.full((4, 2), 0.5)
    mark_values(trie.children, trie.branch, trie.value_start, trie.values, root, sets)
    asked, node = np.array([[0, 1, 0, 9], [0, 1, 1, 1]], np.uint8), np.array([1, 2, 2, 0])
    unseen = np.array([0.0, 0.0, 0.0, 0.0, -0.25])
    with np.errstate(over="ignore"):  # plain Python warns of the product of the population count
        add_sums(asked, 0, 2, child, root, parents, trie, sets, unseen, weight[np.newaxis], node, sums, scores)
    assert scores.tolist() == [[51.5, 62.5], [93.5, 4.5], [-1.0, 2.5], [0.5, 0.5]]


@pytest.mark.parametrize("parents", [[], [2], [2, 0, 1]])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_log_probabilities_are_smoothed_frequencies_of_the_longest_context(parents, missing):
    X, codes, y = random_rows(0, 30, missing)
    y %= 2  # a class without rows
    _, columns, n_values = columns_of(codes, y, 3, parents)
    grown = trie_of(columns, n_values)
    log_p, log_unseen = map(np.log, grown.smooth(M[: len(parents) + 1], N_STATES[[3]]))
    top = np.tile(log_unseen[:N_CLASSES] - np.log(N_STATES[3]), (N_STATES[3], 1))
    for (_, context, value, of_class), e in grown.entries().items():
        if context == ():
            top[value, of_class] = log_p[e]
    seen, seen_codes, _ = random_rows(1, 50, missing)
    found = np.full((46, N_CLASSES), 7.0)
    family = 3, np.array(parents, np.intp), top, grown.trie, log_p, log_unseen
    add_log_probabilities(seen_codes, 4, *family, np.empty(N_CLASSES), found)
    for sample, scores in zip(seen[4:].tolist(), found, strict=True):
        values = [sample[j] for j in parents]
        known = values.index(-1) if -1 in values else len(values)
        for c in range(N_CLASSES):
            rows = X.tolist(), y.tolist(), [1] * 30, 3, parents[:known], values[:known]
            expected = 0.0 if sample[3] == -1 else np.log(naive.probability(*rows, sample[3], c, N_STATES, M))
            assert scores[c] - 7 == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("value", "place"), [(0, 2), (3, 2), (4, 3), (7, 4), (8, 5)])
def test_find_finds_the_first_that_is_not_below(value, place):
    assert find(np.array([9, 9, 3, 5, 7, 0]), 2, 5, value) == place


@pytest.mark.parametrize(("stop", "node", "value", "found"), [(9, 0, 0, 1), (9, 0, 3, 3), (9, 0, 2, -1), (9, 0, 5, -1)])
def test_next_context_finds_values_among_those_that_a_context_is_split_into(stop, node, value, found):
    children, branch = np.array([1, 4, 4, 4, 4]), np.array([0, 0, 1, 3])
    assert next_context(children, branch, node, value, stop) == found
    assert next_context(children, branch, node, value, 1) == -1  # the next family begins there


@pytest.mark.parametrize("seed", range(30))
def test_list_cells_lists_every_context_that_a_row_is_in(seed):
    codes, n_states, y, n_classes, weights, child, parents = draw_rows(seed, [np.uint8, np.uint16][seed % 2])
    root, own, *_ = grow(codes, n_states, y, n_classes, weights, child, parents, 2)
    n, depth, most = len(own.branch), parents.shape[1] + 1, int(n_states.max())
    keys, amounts = np.full(codes.shape[1] * depth, -1), np.full(codes.shape[1] * depth, np.nan)
    stop = np.append(root[1:], n)
    for f, i in enumerate(child):
        family = parents[f], root[f], stop[f], own.children, own.branch
        m = list_cells(codes, n_states[i], y, weights, i, *family, most, n_classes, keys, amounts)
        expected = []
        for r in range(codes.shape[1]):
            if codes[i, r] >= n_states[i]:
                continue
            node, level = root[f], 0
            while node is not None:
                expected.append(((node, codes[i, r], y[r]), weights[r]))
                j = parents[f, level] if level < depth - 1 else -1
                among = range(own.children[node], min(own.children[node + 1], stop[f])) if j >= 0 else ()
                node = next((g for g in among if own.branch[g] == codes[j, r]), None)
                level += 1
        found = [
            (np.unravel_index(key, (n, most, n_classes)), amount)
            for key, amount in zip(keys[:m], amounts[:m], strict=True)
        ]
        assert [(tuple(map(int, cell)), amount) for cell, amount in found] == [
            (tuple(map(int, cell)), amount) for cell, amount in expected
        ]
