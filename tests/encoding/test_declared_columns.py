"""Encoders of declared columns encode like fitted ones, and contradictory declarations are refused."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import QuantileDiscretizer, TableEncoder


def test_declared_columns_encode_like_fitted_ones():
    X = pd.DataFrame({"town": ["Wien", "Graz", None, "Graz"], "rooms": [3, 1, 2, 3], "late": [True, False, True, True]})
    fitted = TableEncoder(discrete_features=True).fit(X, [0, 1, 0, 1])
    encoder = TableEncoder(discrete_features=True)
    assert encoder.declare({"town": ["Graz", "Wien"], "rooms": [3, 2, 1], "late": [True, False]}) is encoder
    np.testing.assert_array_equal(encoder.encode(X), fitted.encode(X))
    assert encoder.feature_names_in_.tolist() == ["town", "rooms", "late"]
    assert (encoder.is_declared_, fitted.is_declared_) == (True, False)


def test_numbers_are_cut_points_unless_categories_are_chosen():
    columns = {"rooms": [1, 2, 3], "area": (50.5, 100), "town": np.array(["Graz", "Wien"]), "late": [False, True]}
    encoder = TableEncoder().declare(columns)
    assert encoder.is_discrete_.tolist() == [False, False, True, True]
    assert encoder.n_states_.tolist() == [4, 3, 2, 2]
    X = pd.DataFrame({"rooms": [1, 4], "area": [50.5, 50.6], "town": ["Wien", "Linz"], "late": [True, None]})
    assert encoder.encode(X).tolist() == [[0, 3], [0, 1], [1, 255], [1, 255]]
    chosen = TableEncoder(discrete_features=["rooms"]).declare(columns)
    assert chosen.is_discrete_.tolist() == [True, False, True, True]
    assert chosen.n_states_.tolist() == [3, 3, 2, 2]


def test_lists_declare_columns_without_names():
    encoder = TableEncoder().declare({"a": [1], "b": ["x"]}).declare([[0.5], ["no", "yes"]])
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.encode([[0.7, "yes"], [None, "maybe"]]).tolist() == [[1, 255], [1, 255]]


def test_nothing_of_rows_is_kept():
    encoder = TableEncoder().declare({"age": [30, 50], "sex": ["f", "m"]})
    assert encoder.value_ranges_ == [None, None]
    assert np.isnan(encoder.typical_values_[0]).all()
    assert encoder.typical_values_[1] is None
    assert encoder.inverse_transform([[0, 1]]).tolist() == [[None, "m"]]


def test_missing_values_get_a_category_in_every_column_if_requested():
    encoder = TableEncoder(handle_missing="category").declare({"age": [30, 50], "sex": ["f", "m"]})
    assert encoder.n_states_.tolist() == [4, 3]
    X = pd.DataFrame({"age": [None, 40], "sex": [None, "x"]})
    assert encoder.encode(X).tolist() == [[3, 1], [2, 255]]


def test_fitting_and_copies_set_the_mark():
    encoder = TableEncoder().declare({"age": [30, 50]})
    assert pickle.loads(pickle.dumps(encoder)).is_declared_
    assert not hasattr(clone(encoder), "is_declared_")
    assert not encoder.fit(pd.DataFrame({"age": [1.5, 2, 3, 4]}), [0, 0, 1, 1]).is_declared_


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([], ValueError, "no column is declared. Declare categories or cut points for every column."),
        ("age", TypeError, "or a list of categories or cut points with one entry per column, got str. Pass a"),
        ({1: [2]}, TypeError, "the names of columns must be strings, got [1]. Pass a list without names."),
        ({"age": []}, ValueError, "X column 'age' has no declared values. Declare at least one category or one cut"),
        ({"sex": "female"}, TypeError, "X column 'sex': categories or cut points must be a list, got 'female'."),
        ([[3], 4], TypeError, "X column 1: categories or cut points must be a list, got 4."),
        ({"sex": ["f", None]}, ValueError, "X column 'sex' declares a missing value at position 1. Leave it out"),
        ({"age": [30, 30]}, ValueError, "X column 'age': cut points must increase, but 30.0 follows 30.0. Sort them"),
        ({"age": [np.inf]}, ValueError, "X column 'age'"),
        ({"age": [30, "old"]}, TypeError, "X column 'age'"),
    ],
)
def test_contradictory_declarations_are_refused(columns, error, message):
    with pytest.raises(error, match=re.escape(message)):
        TableEncoder().declare(columns)


def test_options_that_need_rows_are_refused():
    with pytest.raises(ValueError, match="discretizer computes cut points from rows, but cut points are declared"):
        TableEncoder(discretizer=QuantileDiscretizer()).declare({"age": [30]})
    with pytest.raises(ValueError, match="handle_missing='auto' needs rows"):
        TableEncoder(handle_missing="auto").declare({"age": [30]})


def test_intervals_are_limited_to_the_number_of_codes():
    assert TableEncoder().declare({"age": range(65_534)}).n_states_.tolist() == [65_535]
    with pytest.raises(ValueError, match="X column 'age' has 65536 categories, more than 65535"):
        TableEncoder().declare({"age": range(65_535)})
