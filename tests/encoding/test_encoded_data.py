"""Encoded tables that users bring themselves."""

from dataclasses import replace

import numpy as np
import pytest

from tanlearn import EncodedData
from tanlearn.encoding.encoded_data import joined


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codes": [[]], "y": [0]}, "at least one row and one column"),
        ({"codes": np.empty((0, 3), int), "y": []}, "at least one row and one column"),
        ({"codes": [0, 1], "y": [0, 1]}, r"shape \(n_samples, n_features\)"),
        ({"codes": [[0.5]], "y": [0]}, "codes must be integers, got dtype float64. Encode raw values"),
        ({"codes": [[0, -2]], "y": [0]}, r"codes\[:, 1\] holds -2..-2: .* only -1 \(missing\) may be below"),
        ({"codes": [[0], [70_000]], "y": [0, 1]}, r"codes\[:, 0\] holds 0..70000: at most 65535 states"),
        ({"codes": np.array([[2**63]], np.uint64), "y": [0]}, r"codes\[:, 0\] holds 92233720.*: at most 65535"),
        ({"codes": [[3]], "y": [0], "n_states": [3]}, "codes must be below the feature's n_states, 3"),
        ({"codes": [[0]], "y": [0], "n_states": [2.9]}, "n_states must contain integers, got dtype float64"),
        ({"codes": [[0, 0]], "y": [0], "n_states": [1, 0]}, r"from 1 to 65535, but n_states\[1\] is 0"),
        ({"codes": [[0]], "y": [0], "n_states": [65_536]}, r"from 1 to 65535, but n_states\[0\] is 65536"),
        ({"codes": [[0]], "y": [0], "n_states": [2**63]}, r"n_states\[0\] is 9223372036854775808"),
        ({"codes": [[3]], "y": [0], "n_states": [4, 4]}, r"one entry per feature \(1\), got shape \(2,\)"),
        ({"codes": [[0]], "y": [0, 1]}, r"one class per row \(1\), got shape \(2,\)"),
        ({"codes": [[0]], "y": [-1]}, "class codes from 0 .* contains -1 to -1"),
        ({"codes": [[0]], "y": [2**63]}, "class codes from 0 .* contains 9223372036854775808"),
        ({"codes": [[0]], "y": ["a"]}, "class codes from 0, got dtype <U1. Number the classes"),
        ({"codes": [[0]], "y": [0.5]}, "class codes from 0, got dtype float64"),
        ({"codes": [[0]], "y": [2], "n_classes": 2}, r"class 2, but n_classes is 2, so classes must be from 0 to 1"),
        ({"codes": [[0]], "y": [0], "n_classes": 2.5}, r"n_classes must be an integer, got 2\.5"),
        ({"codes": [[0]], "y": [0], "sample_weight": [-1]}, "sample_weight must be non-negative, but is -1 in row 0"),
        ({"codes": [[0]], "y": [0], "sample_weight": [np.nan]}, "sample_weight must be finite, but is nan in row 0"),
        ({"codes": [[0]], "y": [0], "sample_weight": [1, 1]}, "X has 1, sample_weight has 2"),
        ({"codes": [[0], [0]], "y": [0, 1], "sample_weight": [0, 0]}, "but is zero in every row"),
        (
            {"codes": [[0]], "y": [0], "is_ordered": [0]},
            r"one boolean per feature \(1\), got shape \(1,\) of dtype int",
        ),
        ({"codes": [[0]], "y": [0], "is_ordered": [True] * 2}, r"per feature \(1\), got shape \(2,\) of dtype bool"),
        ({"codes": [[0]] * 50, "y": [0] * 50, "sample_weight": [2**62] * 50}, f"adds up to {50 * 2**62} over 50 rows"),
    ],
)
def test_bad_tables_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        EncodedData.from_codes(**arguments)


def test_codes_are_feature_major_and_as_small_as_possible():
    data = EncodedData.from_codes([[0, 300], [1, -1]], [0, 1])
    assert data.codes.dtype == np.uint16
    assert data.codes.tolist() == [[0, 1], [300, 65535]]
    assert data.codes.flags.c_contiguous
    assert EncodedData.from_codes([[254]], [0]).codes.dtype == np.uint8
    assert data.has_missing
    assert data.n_states.tolist() == [2, 301]


def test_take_keeps_states_and_weights():
    data = EncodedData.from_codes([[0], [1], [2]], [0, 1, 1], sample_weight=[1, 2, 3])
    part = data.take([2, 0])
    assert part.codes.tolist() == [[2, 0]]
    assert part.weights.tolist() == [3, 1]
    assert part.n_states.tolist() == [3]


def test_order_stays_with_features():
    data = EncodedData.from_codes([[0, 1, 2], [1, 0, 3]], [0, 1], is_ordered=[True, False, True])
    assert data.take([1]).is_ordered.tolist() == [True, False, True]
    assert data.take_features([1, 2]).is_ordered.tolist() == [False, True]
    assert EncodedData.from_codes([[0, 1]], [0], is_ordered=True).is_ordered.tolist() == [True, True]
    unknown = EncodedData.from_codes([[0, 1]], [0])
    assert unknown.is_ordered is None
    assert unknown.take_features([0]).is_ordered is None


def test_light_rows_weigh_one_on_average_and_others_what_they_did():
    def scaled(weights):
        return EncodedData.from_codes([[0]] * 3, [0, 1, 1], sample_weight=weights).in_whole_rows().weights.tolist()

    assert scaled(None) == [1, 1, 1]
    assert scaled([0.0, 0.125, 0.375]) == [0.0, 0.5, 1.5]
    assert scaled([0.0, 0.5, 1.5]) == [0.0, 0.5, 1.5]
    assert scaled([2.0, 0.5, 8.0]) == [2.0, 0.5, 8.0]


def test_parts_are_joined_row_by_row():
    data = EncodedData.from_codes([[0, 1], [1, 0], [2, 2]], [0, 1, 1], sample_weight=[1, 2, 3])
    data = replace(data, row_numbers=np.array([4, 6, 8]), base_weight=np.array([1, 1, 3]))
    plain = replace(data.take([0]), sample_weight=None, base_weight=None)
    both = joined([data.take([2, 0]), plain])
    assert both.codes.T.tolist() == [[2, 2], [0, 1], [0, 1]]
    assert (both.y.tolist(), both.weights.tolist(), both.base_weights.tolist()) == ([1, 0, 0], [3, 1, 1], [3, 1, 1])
    assert both.row_numbers is None  # numbers of rows of different parts


def test_features_are_ordered_by_name():
    data = EncodedData.from_codes([[0, 1, 0]], [0])
    assert data.by_name.tolist() == [0, 1, 2]
    assert replace(data, names=("b", 10, "a")).by_name.tolist() == [1, 2, 0]


def test_missing_place_is_named():
    data = EncodedData.from_codes([[0, 1], [1, 0], [1, -1]], [0, 1, 1])
    with pytest.raises(
        ValueError, match=r"CG learns from complete rows only, but 1 values .* first of feature 1 in row 2\."
    ):
        data.require_complete("CG")
