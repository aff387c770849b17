"""Groups of values, from coarse to fine, and normal scores, against exact fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import term_nets as naive

from tanlearn.structures.value_groups import group_scores, group_values, nested_groups, normal_scores

COUNTS = st.lists(st.integers(0, 20), min_size=1, max_size=60)
SIZES = st.sampled_from([2, 4, 8, 16, 32])


def as_floats(counts):
    return np.array(counts, np.float64)


@given(COUNTS, SIZES, st.booleans())
def test_groups_equal_those_of_fractions(counts, size, is_ordered):
    found = group_values(as_floats(counts), size, is_ordered=is_ordered)
    assert found.tolist() == naive.groups(counts, size, is_ordered)


@given(COUNTS, SIZES, st.booleans())
def test_every_group_has_a_value(counts, size, is_ordered):
    found = group_values(as_floats(counts), size, is_ordered=is_ordered)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    assert found.max() < size
    if is_ordered:
        assert (np.diff(found) >= 0).all()


@given(COUNTS, SIZES)
def test_groups_are_unions_of_finer_groups(counts, size):
    coarse, fine = (group_values(as_floats(counts), n, is_ordered=True) for n in (size, 2 * size))
    for group in range(fine.max() + 1):
        assert len(set(coarse[fine == group].tolist())) == 1


@given(COUNTS, SIZES)
def test_weights_of_ordered_groups_are_about_equal(counts, size):
    """A group lies between its bounds of the ranks, except for half of its first and half of its last value."""
    found = group_values(as_floats(counts), size, is_ordered=True)
    if len(counts) > size and sum(counts):
        for group in range(found.max() + 1):
            own = np.array(counts)[found == group]
            assert own.sum() <= sum(counts) / size + (own[0] + own[-1]) / 2 + 1e-9


def test_equal_weights_give_equal_groups():
    assert group_values(np.full(64, 3.0), 8, is_ordered=True).tolist() == np.repeat(np.arange(8), 8).tolist()


@given(COUNTS, st.integers(1, 1000))
def test_the_scale_of_weights_does_not_matter(counts, factor):
    for is_ordered in (True, False):
        one, two = (group_values(as_floats(counts) * k, 8, is_ordered=is_ordered) for k in (1, factor))
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(normal_scores(as_floats(counts) * factor), normal_scores(as_floats(counts)), atol=1e-9)


def test_rarest_values_share_the_last_group_and_ties_go_to_the_lower_code():
    found = group_values(np.array([1.0, 5.0, 2.0, 5.0, 2.0, 0.0]), 4, is_ordered=False)
    assert found.tolist() == [3, 0, 1, 2, 3, 3]


def test_values_without_rows_are_divided_evenly():
    assert group_values(np.zeros(8), 4, is_ordered=True).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert group_values(np.zeros(5), 3, is_ordered=False).tolist() == [0, 1, 2, 2, 2]
    assert normal_scores(np.zeros(4)).tolist() == [0.0] * 4


@given(COUNTS, st.lists(SIZES, min_size=1, max_size=4, unique=True).map(sorted), st.booleans())
def test_divisions_differ_and_have_several_groups(counts, sizes, is_ordered):
    found = nested_groups(as_floats(counts), sizes, is_ordered=is_ordered)
    assert [division.tolist() for division in found] == naive.divisions(counts, sizes, is_ordered)


@given(COUNTS.filter(sum))
def test_scores_are_standardized_normal_quantiles(counts):
    weights, z = as_floats(counts), normal_scores(as_floats(counts))
    np.testing.assert_allclose(z, naive.normal_scores(counts), rtol=1e-9, atol=1e-9)
    assert (np.diff(z) >= 0).all()
    mean, variance = (float((weights * z**power).sum() / weights.sum()) for power in (1, 2))
    assert mean == pytest.approx(0, abs=1e-9)
    assert variance == pytest.approx(float(np.count_nonzero(weights) > 1), abs=1e-9)


@given(COUNTS, SIZES)
def test_scores_of_groups_are_means(counts, size):
    weights = as_floats(counts)
    division = group_values(weights, size, is_ordered=True)
    expected = naive.group_scores(counts, division.tolist())
    np.testing.assert_allclose(group_scores(weights, division), expected, rtol=1e-9, atol=1e-9)


def test_scores_of_extremes_are_bounded():
    """Of a million rows, the smallest value has a rank of 5e-7, whose quantile would be -4.9."""
    weights = np.array([1.0, 1e6, 1e6, 1.0])
    z = normal_scores(weights)
    assert z[-1] == pytest.approx(-z[0], rel=1e-9)
    assert z[-1] / z[2] == pytest.approx(3.0902323 / 0.6744898, rel=1e-5)
