"""Contexts of families, against an oracle that counts them one by one."""

import numpy as np
import pytest
from oracles import context_tries as oracle

from tanlearn.kernels.back_off import find
from tanlearn.kernels.context_tries import (
    Contexts,
    Parts,
    add_context_scores,
    count_contexts,
    grow_contexts,
    list_cells,
    list_context,
    next_context,
    refine_context,
    smooth_contexts,
)


def draw(seed, dtype=np.uint8):
    """Return a small table with gaps, classes, weights, and families of as many parents as they like."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(5, 60)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    n_states = rng.integers(1, 5, d)
    codes = (rng.random((d, n)) * n_states[:, np.newaxis]).astype(dtype)
    codes[rng.random((d, n)) < rng.choice([0, 0.1])] = np.iinfo(dtype).max
    y = rng.integers(0, n_classes, n)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else rng.random(n) + 0.1
    child = rng.permutation(d)[: rng.integers(1, d + 1)]
    parents = np.full((len(child), d - 1 + seed % 2), -1)  # of one table with those that have more
    for own, i in zip(parents, child, strict=True):
        chosen = rng.permutation([j for j in range(d) if j != i])[: rng.integers(0, d)]
        own[: len(chosen)] = chosen
    return codes, n_states, y, n_classes, weights, child, parents


def grow(codes, n_states, y, n_classes, weights, child, parents, least, m):
    """Return the contexts of families, and what was written of them; numbers that nobody writes are wrong ones."""
    n_rows, depth = codes.shape[1], parents.shape[1]
    most = len(child) * (1 + depth * (n_rows // least))
    room, most_values = len(child) * (depth + 1) * n_rows, n_states.max()
    samples = np.full((depth + 1, len(child) * n_rows), 10**6, np.int32)
    parts = Parts(samples, *np.full((4, most), 10**6))
    starts = [np.full(most + 1, 10**6) for _ in range(4)]
    own = Contexts(
        starts[0],
        np.zeros(most, np.uint16),
        starts[1],
        np.zeros(room + len(child) * n_classes, np.uint16),
        starts[2],
        np.zeros(room + len(child) * most_values, np.uint16),
        starts[3],
    )
    seen = np.zeros(n_classes, np.bool_), np.zeros(most_values, np.bool_)
    count, root = np.zeros(most_values, np.intp), np.full(len(child), -1)
    n = grow_contexts(codes, n_states, y, child, parents, least, parts, *seen, count, own, root)
    assert not any(flags.any() for flags in seen)
    own = own._replace(branch=own.branch[:n])
    cells, ratio = np.full((2, own.cell_start[n]), np.nan)
    unseen = np.full(own.class_start[n], np.nan)
    class_place, value_place = np.zeros(n_classes, np.intp), np.zeros(most_values, np.intp)
    count_contexts(codes, y, weights, child, root, parts, own, class_place, value_place, cells)
    smooth_contexts(m, parts.origin, own, class_place, np.zeros(n_classes), cells, ratio, unseen)
    return n, root, own, cells, ratio, unseen


@pytest.mark.parametrize("seed", range(60))
def test_gains_of_families_are_those_of_the_oracle(seed):
    codes, n_states, y, n_classes, weights, child, parents = draw(seed, [np.uint8, np.uint16][seed % 2])
    least, m = 1 + seed % 4, [0.5, 1.0, 3.0][seed % 3]
    n, root, own, _, ratio, unseen = grow(codes, n_states, y, n_classes, weights, child, parents, least, m)
    rows = codes.T.tolist()
    rng = np.random.default_rng(seed)
    others = (rng.random(codes.shape) * n_states[:, np.newaxis]).astype(codes.dtype)
    asked = np.concatenate([codes, others], axis=1)
    shape = len(child), parents.shape[1] + 1
    weight, slot = rng.normal(size=shape), rng.permutation(shape[0] * shape[1]).reshape(shape)
    scores = np.zeros((slot.size, asked.shape[1], n_classes))
    logs = np.log(ratio), np.log(unseen)
    add_context_scores(asked, n_states, root, child, parents, own, *logs, weight, slot, scores)
    for r, row in enumerate(asked.T.tolist()):
        expected = np.zeros((slot.size, n_classes))
        for f, (i, table) in enumerate(zip(child.tolist(), parents.tolist(), strict=True)):
            known = [j for j in table if j >= 0]
            found = oracle.gains(rows, y, weights, n_states, n_classes, i, known, m, least, row)
            for level, of_level in enumerate(found):
                expected[slot[f, level]] += weight[f, level] * np.array(of_level)
        np.testing.assert_allclose(scores[:, r], expected, rtol=1e-9, atol=1e-9)
    assert own.children[n] == n
    assert (np.diff(own.children[: n + 1]) >= 0).all()
    assert root[0] == 0
    assert not own.branch[root].any()


def test_the_last_context_of_a_family_is_not_split_into_the_next_family():
    codes = np.array([[0, 0, 1, 1], [0, 0, 0, 1]], np.uint8)
    rows = codes, np.array([2, 2]), np.zeros(4, np.intp), 1, np.ones(4)
    n, root, own, *_ = grow(*rows, np.array([0, 1]), np.array([[1], [0]]), 2, 1.0)
    assert n == 5  # all rows, three of them; all rows, and both halves
    assert root.tolist() == [0, 2]
    assert own.branch[:n].tolist() == [0, 0, 0, 0, 1]
    assert own.children[: n + 1].tolist() == [1, 2, 3, 5, 5, 5]  # that of context 1 holds the next root


def test_probabilities_of_a_context_sum_to_one_over_seen_and_unseen_values():
    codes = np.array([[0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], np.uint8)
    y, weights = np.array([0, 0, 1, 1, 1, 1]), np.ones(6)
    n_states = np.array([4, 2])
    family = np.array([0]), np.array([[1]])
    n, _, own, cells, _, unseen = grow(codes, n_states, y, 2, weights, *family, 2, 1.0)
    assert n == 3  # all rows, those with 0 and those with 1
    root = cells[: own.cell_start[1]].reshape(4, 2)
    np.testing.assert_allclose(root.sum(axis=0), 1)
    context = own.children[0]  # rows 0 to 3: classes 0 and 1, values 0, 1, 2
    own_cells = cells[own.cell_start[context] : own.cell_start[context + 1]].reshape(3, 2)
    rest = root[3] * unseen[own.class_start[context] : own.class_start[context + 1]]
    np.testing.assert_allclose(own_cells.sum(axis=0) + rest, 1)


def test_refine_context_keeps_the_order_of_samples_and_leaves_small_parts_out():
    samples = np.zeros((2, 6), np.int32)
    samples[0] = [5, 1, 3, 0, 2, 4]
    parts = Parts(samples, *np.zeros((4, 4), np.intp))
    parts.end[0] = 6
    branch = np.zeros(4, np.uint16)
    values = np.array([2, 0, 1, 0, 2, 9], np.uint8)  # sample 5 misses it
    assert refine_context(values, 3, 2, 0, 1, parts, np.zeros(3, np.intp), branch) == 3
    assert branch[1:3].tolist() == [0, 2]
    assert [samples[1, parts.begin[g] : parts.end[g]].tolist() for g in (1, 2)] == [[1, 3], [0, 4]]
    assert parts.origin[1:3].tolist() == [0, 0]
    assert parts.level[1:3].tolist() == [1, 1]


def test_list_context_lists_all_of_the_first_and_what_is_seen_of_others():
    samples = np.array([[0, 1, 2], [1, 2, 0]], np.int32)
    parts = Parts(samples, np.array([0, 1]), np.array([0, 0]), np.array([0, 0]), np.array([3, 2]))
    own = Contexts(*(np.zeros(size, np.intp) for size in (3, 2, 3, 9, 3, 9, 3)))
    x, y = np.array([0, 3, 1], np.uint8), np.array([0, 2, 2])
    for g in (0, 1):
        list_context(x, y, g, parts, np.zeros(3, np.bool_), np.zeros(4, np.bool_), own)
    assert own.classes[:4].tolist() == [0, 1, 2, 2]
    assert own.values[:6].tolist() == [0, 1, 2, 3, 1, 3]
    assert own.cell_start.tolist() == [0, 12, 14]


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
    codes, n_states, y, n_classes, weights, child, parents = draw(seed, [np.uint8, np.uint16][seed % 2])
    n, root, own, *_ = grow(codes, n_states, y, n_classes, weights, child, parents, 2, 1.0)
    depth, most = parents.shape[1] + 1, int(n_states.max())
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
