"""Counts of a forest add up to the same in any partition of the rows."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import context_tries as oracle
from support.forests import learn, make

from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.forest_counts import ForestCounts

N = 240
DATA = make(N, gaps=0.05)
FIRST = np.arange(N) < 150


@cache
def first_forest():
    """Return the forest of the first rows."""
    return learn(DATA.take(FIRST), weights=None, min_samples=3)


def count(*parts, data=DATA):
    """Return the counts of parts of the rows, one after the other."""
    counts = ForestCounts(first_forest())
    for part in parts:
        counts.update(data.take(part))
    return counts


def assert_same_bits(one, two):
    """Compare all that two forests predict with."""
    for a, b in zip(one.members, two.members, strict=True):
        for name in ("root", "gain", "unseen"):
            np.testing.assert_array_equal(getattr(a.tables, name), getattr(b.tables, name), err_msg=name)
        for own, other in zip(a.tables.trie, b.tables.trie, strict=True):
            np.testing.assert_array_equal(own, other)
            assert own.dtype == other.dtype
    np.testing.assert_array_equal(one.log_prior, two.log_prior)


@pytest.mark.parametrize("weights", [None, "whole"])
def test_the_first_rows_make_the_forest_that_they_were_asked_for(weights):
    sample_weight = None if weights is None else np.arange(N) % 4 + 1
    data = make(N, gaps=0.05, weights=sample_weight)
    forest = learn(data, weights=None, min_samples=3)
    counts = ForestCounts(forest)
    assert counts.update(data) is counts
    assert_same_bits(counts.smooth(1.0), forest)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 7, 64]), st.integers(0, 99), st.booleans())
def test_any_partition_in_any_order_and_by_anyone(n_parts, seed, is_merged):
    rng = np.random.default_rng(seed)
    part_of = rng.integers(0, n_parts, N) * rng.integers(0, 2)  # of all rows in the first, the others are empty
    parts = [part_of == part for part in rng.permutation(n_parts)]
    if is_merged:
        counts = ForestCounts(first_forest())
        for part in parts:
            other = counts.empty().update(DATA.take(part), n_jobs=2)
            before = deepcopy(other)
            counts.merge(other)
            assert other == before
    else:
        counts = count(*parts)
    assert counts == count(np.ones(N, bool))
    assert_same_bits(counts.smooth(2.0, n_jobs=2), count(np.ones(N, bool)).smooth(2.0))


@pytest.mark.parametrize("seed", range(3))
def test_counted_forests_are_those_of_the_oracle(seed):
    data = make(N, d=4, seed=seed, gaps=0.05, weights=np.random.default_rng(seed).random(N) + 0.1)
    forest = learn(data.take(FIRST), weights=None, min_samples=3, seed=seed)
    found = ForestCounts(forest).update(data.take(FIRST)).update(data.take(~FIRST)).smooth(0.5)
    member = found.members[0]
    tables, codes = member.tables, member.cuts.encode(data.codes)
    rows = codes.T.tolist(), data.y, data.weights, tables.n_states, 3
    scores = np.zeros((1, N, 3))
    tables.add_scores(codes, np.ones((4, tables.n_levels)), np.zeros((4, tables.n_levels), np.intp), scores)
    for r in range(0, N, 5):
        expected = np.zeros(3)
        for child, parents in enumerate(tables.parents.tolist()):
            known = [j for j in parents if j >= 0]
            gains = oracle.gains(*rows, child, known, 0.5, 3, rows[0][r], n_first=150)
            expected += np.sum(gains or [[0.0]], axis=0)
        np.testing.assert_allclose(scores[0, r], expected, rtol=1e-5, atol=1e-5)


def test_subtracting_what_was_added_leaves_what_was_there():
    counts = count(FIRST, ~FIRST).subtract(count(~FIRST))
    assert counts == count(FIRST)
    nothing = counts.subtract(count(FIRST))
    assert nothing == ForestCounts(first_forest())
    proba = nothing.smooth(1.0).noiseless_proba(DATA.codes)  # of nothing, all classes are as likely
    np.testing.assert_allclose(proba, 1 / 3, rtol=1e-6)


def test_of_real_weights_rounding_leaves_nothing():
    data = make(N, gaps=0.05, weights=np.random.default_rng(0).random(N) + 0.1)
    few, part_of = np.arange(N) < 20, np.arange(N) % 3
    parts = [~few & (part_of == part) for part in range(3)]  # sums that are rounded differently
    whole, rest, expected = count(few, *parts, data=data), count(~few, data=data), count(few, data=data)
    left = np.concatenate([one.merge(two, -1).counts for one, two in zip(whole.members, rest.members, strict=True)])
    assert left.min() < 0  # a residue of either sign, and more cells than there are
    assert (np.abs(left) < 1e-12).sum() > (left < 0).sum()
    counts = whole.subtract(rest)
    assert counts.class_counts.dtype == np.float64
    for one, two in zip(counts.members, expected.members, strict=True):
        np.testing.assert_array_equal(one.keys, two.keys)
        np.testing.assert_allclose(one.counts, two.counts)


def test_rows_that_were_never_added_cannot_be_taken_away():
    counts = count(FIRST)
    with pytest.raises(ValueError, match="subtract would leave negative counts"):
        counts.subtract(count(~FIRST))
    assert counts == count(FIRST)


def test_rows_of_no_weight_are_no_rows():
    data = make(N, gaps=0.05, weights=np.where(FIRST, 1, 0))
    counts = ForestCounts(first_forest()).update(data)
    assert counts == count(FIRST)


def test_other_contexts_are_refused_and_change_nothing():
    counts = count(FIRST)
    for forest in (
        learn(DATA, weights=None, min_samples=3),
        replace(first_forest(), members=first_forest().members[:2]),
    ):
        with pytest.raises(ValueError, match=r"here and .* there\. .* create all other counts with empty\(\)"):
            counts.merge(ForestCounts(forest))
        assert counts != ForestCounts(forest)
        assert counts.empty() != ForestCounts(forest)  # no rows in other contexts
    assert counts == count(FIRST)


@pytest.mark.parametrize("n_levels", [1, 2, 3, 4])
def test_first_levels_are_the_tables_of_fewer_parents(n_levels):
    parents = [np.array(own, np.intp) for own in ([1, 2, 3], [0, 4], [], [2], [3, 0, 1])]
    rows = DATA.codes, DATA.n_states, DATA.y, DATA.weights, 3
    how = {"smoothing": 1.0, "min_samples": 2}
    found = ContextTables.grow(*rows, parents, **how).first_levels(n_levels)
    expected = ContextTables.grow(*rows, [own[: n_levels - 1] for own in parents], **how)
    for name in ("parents", "root", "gain", "unseen"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name, own, other in zip(found.trie._fields, found.trie, expected.trie, strict=True):
        np.testing.assert_array_equal(own, other, err_msg=name)


def test_an_average_keeps_only_the_levels_that_it_uses():
    forest = learn(make(60, n_classes=2), weights=None)
    used = forest.weights.shape[2]
    assert used < 4  # of so few rows, no more than two parents
    assert {member.tables.n_levels for member in forest.members} == {used}
    assert (forest.weights == 1).all()


def test_counts_of_a_context_are_also_counts_of_the_context_above():
    """Otherwise a file could hold counts from which no probability follows."""
    counts = count(np.ones(N, bool))
    state = deepcopy(counts.state())
    assert ForestCounts.from_state(state, counts.n_states, counts.n_classes) == counts
    own, first = counts.members[1], len(counts.members[0].keys)
    most = int(own.tables.n_states.max())
    context, pair = np.divmod(own.keys, most * counts.n_classes)
    children = own.tables.trie.children
    used = set()  # positions of counts of the same value and class one context above others
    for g, other in zip(context.tolist(), pair.tolist(), strict=True):
        if g not in own.tables.root:
            above = max(c for c in range(g) if children[c] <= g)
            used.add(int(np.flatnonzero((context == above) & (pair == other))[0]))
    assert len(used) > 50
    for k in range(len(own.keys)):
        sizes = state["n_cells"] - (np.arange(len(counts.members)) == 1)
        lists = {name: np.delete(state[name], first + k) for name in ("keys", "counts")}
        forged = {**state, **lists, "n_cells": sizes}
        if k in used:
            with pytest.raises(ValueError, match=r"one fewer parent, but key \d+ of network 1 is not\. Count"):
                ForestCounts.from_state(forged, counts.n_states, counts.n_classes)
        else:
            ForestCounts.from_state(forged, counts.n_states, counts.n_classes)
