"""Contexts of families, against an oracle that counts them one by one."""

import numpy as np
import pytest
from oracles import context_tries as oracle

from tanlearn.kernels.back_off import find
from tanlearn.kernels.context_tries import (
    Contexts,
    Parts,
    add_context_scores,
    grow_contexts,
    list_context,
    refine_context,
    smooth_contexts,
)


def draw(seed, dtype=np.uint8):
    """Return a small table with gaps, classes, weights and the parents of one feature."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(5, 60)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    n_states = rng.integers(1, 5, d)
    codes = (rng.random((d, n)) * n_states[:, np.newaxis]).astype(dtype)
    codes[rng.random((d, n)) < rng.choice([0, 0.1])] = np.iinfo(dtype).max
    y = rng.integers(0, n_classes, n)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else rng.random(n) + 0.1
    child = int(rng.integers(d))
    parents = rng.permutation([j for j in range(d) if j != child])[: rng.integers(0, d)]
    return codes, n_states, y, n_classes, weights, child, parents.astype(np.intp)


def grow(codes, n_states, y, n_classes, weights, child, parents, least, m):
    """Return the contexts of a family, and what was written of them."""
    rows = np.flatnonzero(codes[child] < n_states[child])
    samples = np.zeros((len(parents) + 1, len(rows)), np.int32)
    samples[0] = rows
    most, room = 1 + len(parents) * (len(rows) // least), (len(parents) + 1) * len(rows)
    parts = Parts(samples, *np.zeros((4, most), np.intp))
    parts.end[0] = len(rows)
    starts = [np.zeros(most + 1, np.intp) for _ in range(4)]
    own = Contexts(
        starts[0],
        np.zeros(most, np.uint16),
        starts[1],
        np.zeros(room + n_classes, np.uint16),
        starts[2],
        np.zeros(room + n_states[child], np.uint16),
        starts[3],
    )
    seen = np.zeros(n_classes, np.bool_), np.zeros(n_states[child], np.bool_)
    count = np.zeros(n_states.max(), np.intp)
    n = grow_contexts(codes, n_states, y, child, parents, least, parts, *seen, count, own)
    assert not any(flags.any() for flags in seen)
    cells, ratio = np.zeros((2, own.cell_start[n]))
    unseen = np.zeros(own.class_start[n])
    scratch = np.zeros(n_classes, np.intp), np.zeros(n_states[child], np.intp), np.zeros(n_classes)
    smooth_contexts(codes[child], y, weights, m, n, parts, own, *scratch, cells, ratio, unseen)
    return n, parts, own, cells, ratio, unseen


@pytest.mark.parametrize("seed", range(60))
def test_gains_are_those_of_the_oracle(seed):
    codes, n_states, y, n_classes, weights, child, parents = draw(seed, [np.uint8, np.uint16][seed % 2])
    least, m = 1 + seed % 4, [0.5, 1.0, 3.0][seed % 3]
    n, _, own, _, ratio, unseen = grow(codes, n_states, y, n_classes, weights, child, parents, least, m)
    n_levels = len(parents) + 1
    rows = codes.T.tolist()
    others = (np.random.default_rng(seed).random(codes.shape) * n_states[:, np.newaxis]).astype(codes.dtype)
    asked = np.concatenate([codes, others], axis=1)
    scores = np.zeros((n_levels, asked.shape[1], n_classes))
    rng = np.random.default_rng(seed)
    n_more = seed % 2  # parents that another family may have
    weight = rng.normal(size=(1, n_levels + n_more))
    slot = np.append(rng.permutation(n_levels), np.zeros(n_more, np.intp))[np.newaxis]
    table = np.append(parents, np.full(n_more, -1))[np.newaxis]
    families = np.array([0]), np.array([child]), table
    logs = np.log(ratio), np.log(unseen)
    add_context_scores(asked, n_states, *families, own, *logs, weight, slot, scores)
    for r, row in enumerate(asked.T.tolist()):
        expected = np.zeros((n_levels, n_classes))
        found = oracle.gains(rows, y, weights, n_states, n_classes, child, parents.tolist(), m, least, row)
        for level, own_gains in enumerate(found):
            expected[slot[0, level]] += weight[0, level] * np.array(own_gains)
        np.testing.assert_allclose(scores[:, r], expected, rtol=1e-9, atol=1e-9)
    assert own.children[n] == n
    assert (np.diff(own.children[: n + 1]) >= 0).all()


def test_probabilities_of_a_context_sum_to_one_over_seen_and_unseen_values():
    codes = np.array([[0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], np.uint8)
    y, weights = np.array([0, 0, 1, 1, 1, 1]), np.ones(6)
    n_states = np.array([4, 2])
    n, _, own, cells, _, unseen = grow(codes, n_states, y, 2, weights, 0, np.array([1]), 2, 1.0)
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
