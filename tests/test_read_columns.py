"""Reading columns: masks, lists, numbers of several types, and reasons that name the row."""

import fractions

import numpy as np
import pytest
from broken_tables import CONTAINERS, fit, judge, sound, trained

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn._validation import read_columns


class NoLooks:
    """What cannot be printed."""

    def __repr__(self):
        raise RuntimeError("no looks")


@pytest.mark.parametrize("container", ["float array", "object array"])
def test_what_is_masked_is_missing(container):
    columns, y = sound(0)
    X = CONTAINERS[container](columns)
    mask = np.zeros(X.shape, np.bool_)
    mask[[1, 5, 5], [0, 0, 1]] = True
    masked, gappy = np.ma.array(X, mask=mask), np.where(mask, None, X)
    np.testing.assert_array_equal(fit("tree", masked, y), fit("tree", gappy, y))
    model = trained("tree", container, 0)
    np.testing.assert_array_equal(judge(model, masked), judge(model, gappy))
    for arguments, reason in (
        ((np.ma.array(y, mask=mask[:, 0]),), "y is missing in row 1 "),
        ((y, np.ma.array(y, mask=mask[:, 0])), "sample_weight is nan in row 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            fit("tree", X, *arguments)


def test_columns_of_a_list_are_read_one_by_one():
    """Numbers beside floating ones stay integers, as in a frame, and NumPy's own bools are bools."""
    columns, y = sound(0)
    rows = list(zip(columns["size"], columns["rooms"], map(np.bool_, columns["owner"]), strict=True))
    encoder = TableEncoder().fit(rows, y)
    assert encoder.is_discrete_.tolist() == [False, True, True]
    assert encoder.categories_[1].tolist() == sorted(set(columns["rooms"]))
    assert encoder.categories_[2].tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2**63], "u"),
        ([2**64 - 1, True], "u"),
        ([np.uint64(1), 2], "i"),
        ([2**63, 0.5], "f"),
        ([np.True_, 0.5], "f"),
    ],
)
def test_python_numbers_become_the_type_that_holds_all_of_them(values, kind):
    (column,) = read_columns([[value] for value in values])
    assert column.values.dtype.kind == kind
    assert column.values.tolist() == values


@pytest.mark.parametrize("values", [[2**63, -1], [10**30, 0.5], [10**5000, 1], [fractions.Fraction(1, 3), 1]])
def test_numbers_of_no_type_are_refused(values):
    with pytest.raises(ValueError, match=r"X column 0 holds .* in row 0, so it is a column neither of 64-bit integers"):
        read_columns([[value] for value in values])
    with pytest.raises(TypeError, match=r"X column 0 holds .*int.* and str \('a' in row 2\)|Fraction"):
        read_columns([*([value] for value in values), ["a"]])


def test_reasons_name_the_row():
    with pytest.raises(ValueError, match=r"rows that differ in length: 2 value\(s\) in row 0, 1 in row 1\. Every row"):
        read_columns([[1, 2], [1], [1, 2]])
    with pytest.raises(TypeError, match=r"column 0 holds NoLooks \(<NoLooks instance at .*> in row 1\) and int"):
        read_columns([[None], [NoLooks()], [1]])
    with pytest.raises(ValueError, match="classes must be a list of all classes that will ever come, got 3"):
        NaiveBayesClassifier().partial_fit([[1], [2]], [0, 1], 3)
