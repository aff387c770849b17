"""Values that training did not contain, in tables of any kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from tanlearn import TableEncoder
from tanlearn.encoding.novelty import find_novelty
from tanlearn.sources.columns import read_columns

TRAIN = {"town": ["Graz", "Linz", "Graz", "Wien"], "size": [0.5, 1.25, 8.5, 9.75], "same": [2.5] * 4}
NEW = {
    "town": ["Linz", "Rom", None, "Wien", "Rom"],
    "size": [0.5, 9.75, None, 10.75, -1.5],
    "same": [2.5, None, 2.5, 7.0, -7.0],
}
MEAN_ABOVE, CUT_ABOVE, MEAN_BELOW, CUT_BELOW = 9.125, 4.875, 0.875, 4.875


def find(encoder, table):
    columns = read_columns(table)
    return find_novelty(encoder, columns, encoder.encode_columns(columns))


@pytest.mark.filterwarnings("ignore:.*one value")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda table: pd.DataFrame(table).astype(object)])
def test_unseen_is_neither_missing_nor_known(make):
    encoder = TableEncoder(discrete_features=[True, False, False]).fit(make(TRAIN), [0, 0, 1, 1])
    assert encoder.discretizer_.cut_points_[0].tolist() == [CUT_ABOVE]
    found = find(encoder, make(NEW))
    assert found.is_unseen.tolist() == [
        [False, True, False, False, True],
        [False] * 5,
        [False, False, False, True, True],
    ]
    above = (10.75 - MEAN_ABOVE) / (MEAN_ABOVE - CUT_ABOVE)
    below = (MEAN_BELOW + 1.5) / (CUT_BELOW - MEAN_BELOW)
    np.testing.assert_allclose(found.log_density, [0, 0, 0, -above, -below], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:discretization left")
def test_tails_are_those_of_the_outermost_intervals_of_the_own_column():
    # Classes change at 9.5 and 19.5 of the second column, and never by the first, whose density is uniform.
    x, y = np.arange(40.0), np.repeat([0, 1, 0], [10, 10, 20])
    uniform = np.tile([2.0, 14.0], 20)
    encoder = TableEncoder(discrete_features=False).fit(np.column_stack([uniform, x]), y)
    assert [cuts.tolist() for cuts in encoder.discretizer_.cut_points_] == [[], [9.5, 19.5]]
    found = find(encoder, [[2.0, -3.5], [2.0, 49.5], [26.0, 0.0], [-4.0, 39.0]])
    below, above = (4.5 + 3.5) / (9.5 - 4.5), (49.5 - 29.5) / (29.5 - 19.5)
    deviation = 12 / np.sqrt(12)
    expected = [-below, -above, -(26 - 8) / deviation, -(8 + 4) / deviation]
    np.testing.assert_allclose(found.log_density, expected, rtol=1e-12)


class Halves(BaseEstimator):
    """A discretizer without cut points."""

    def fit(self, X, y, sample_weight=None):
        self.n_states_ = np.full(X.shape[1], 2)
        return self

    def transform(self, X):
        return (X > 5).astype(np.uint8)


def test_numbers_of_a_discretizer_without_cut_points_have_a_uniform_density():
    encoder = TableEncoder(discrete_features=False, discretizer=Halves()).fit([[2.0], [5.0], [14.0]], [0, 1, 1])
    found = find(encoder, [[26.0], [8.0], [-4.0]])
    np.testing.assert_allclose(found.log_density, [-18 / np.sqrt(12), 0.0, -12 / np.sqrt(12)], rtol=1e-12)


def test_every_number_of_a_column_without_training_values_is_unseen():
    encoder = TableEncoder(discrete_features=False).fit([[0.5, np.nan], [9.5, np.nan]], [0, 1])
    found = find(encoder, [[0.5, 3.0], [0.5, np.nan]])
    assert found.is_unseen.tolist() == [[False, False], [True, False]]
    assert found.log_density.tolist() == [0.0, 0.0]


def test_numbers_that_are_categories_are_unseen_and_not_far():
    encoder = TableEncoder().fit([[1], [2], [3]], [0, 1, 1])
    found = find(encoder, [[2], [4], [10**6]])
    assert found.is_unseen.tolist() == [[False, True, True]]
    assert found.log_density.tolist() == [0.0] * 3


def test_extreme_ranges_do_not_overflow():
    encoder = TableEncoder(discrete_features=False).fit([[-1.5e308], [1.5e308], [0.5]], [0, 1, 1])
    found = find(encoder, [[-1.7e308], [1.7e308], [0.0]])
    assert (found.log_density <= 0).all()
    assert not np.isnan(found.log_density).any()
    assert found.log_density[2] == 0
