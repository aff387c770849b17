"""Fine cuts at quantiles."""

import pickle

import numpy as np
import pytest

from tanlearn import EncodedData, MDLPDiscretizer, QuantileDiscretizer, TableEncoder
from tanlearn.encoding.raw_numbers import raw_numbers
from tanlearn.sources.columns import read_columns


def test_few_values_are_all_distinguished():
    X = [[3.0, 0.5], [1.0, 0.5], [2.0, np.nan], [3.0, 0.5]]
    found = QuantileDiscretizer().fit(X, [0, 1, 0, 1])
    assert [cuts.tolist() for cuts in found.cut_points_] == [[1.5, 2.5], []]
    assert found.n_states_.tolist() == [3, 1]
    np.testing.assert_array_equal(found.transform([[1.5, 9], [2.6, np.nan]]), [[0, 0], [2, 255]])


def test_intervals_hold_about_equally_many_rows():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=5000)
    codes = QuantileDiscretizer(max_bins=10).fit(x[:, np.newaxis], x > 1).transform(x[:, np.newaxis])[:, 0]
    np.testing.assert_allclose(np.bincount(codes), 500, atol=1)


def test_a_value_of_many_quantiles_is_cut_off_once():
    x = np.append(np.zeros(90), np.arange(1, 11.0))
    cuts = QuantileDiscretizer(max_bins=5).fit(x[:, np.newaxis], x > 0).cut_points_[0]
    assert cuts.tolist() == [0.5]


def test_weights_are_numbers_of_repetitions():
    x = np.arange(8.0)
    weights = np.array([1, 0, 4, 1, 2, 1, 1, 3])
    found = QuantileDiscretizer(max_bins=4).fit(x[:, np.newaxis], x > 3, weights)
    repeated = np.repeat(x, weights)
    expected = QuantileDiscretizer(max_bins=4).fit(repeated[:, np.newaxis], repeated > 3)
    np.testing.assert_array_equal(found.cut_points_[0], expected.cut_points_[0])


def test_a_heavy_largest_value_is_cut_off():
    x = np.append(np.arange(10.0), np.full(90, 10.0))
    cuts = QuantileDiscretizer(max_bins=2).fit(x[:, np.newaxis], x > 9).cut_points_[0]
    assert cuts.tolist() == [9.5]


@pytest.mark.parametrize("weight", [None, 1.0])
def test_rows_in_a_rhythm_deceive_nobody(weight):
    """Every other row misses one column, and is constant in another; the third is sorted."""
    n = 300_000
    x = np.random.default_rng(0).integers(0, 40, (n // 2, 1)) / 3
    X = np.empty((n, 3))
    X[::2], X[1::2] = [np.nan, 0, 0], x
    X[:, 2].sort()
    found = QuantileDiscretizer(max_bins=8).fit(X, X[:, 1] > 5, weight)
    for column, cuts in zip(X.T, found.cut_points_, strict=True):
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        expected = QuantileDiscretizer(max_bins=8).fit(values[:, np.newaxis], values > 5, counts)
        np.testing.assert_array_equal(cuts, expected.cut_points_[0])
        assert len(cuts) >= 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_encoder_takes_it_like_its_own(n_jobs):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.random(200), rng.integers(0, 3, 200), rng.random(200)])
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=6, n_jobs=n_jobs), n_jobs=n_jobs).fit(
        X, X[:, 0] > 0.5
    )
    assert encoder.n_states_.tolist() == [6, 3, 6]
    codes = encoder.encode(X)
    cuts = encoder.discretizer_.cut_points_
    np.testing.assert_array_equal(codes[0], np.searchsorted(cuts[0], X[:, 0]))
    np.testing.assert_array_equal(codes[2], np.searchsorted(cuts[1], X[:, 2]))


def test_bins_are_from_two_to_as_many_as_codes_can_hold():
    for max_bins in (2, 65535):
        QuantileDiscretizer(max_bins=max_bins).fit([[1.0], [2.0]], [0, 1])
    for max_bins in (1, 65536):
        with pytest.raises(ValueError, match="max_bins"):
            QuantileDiscretizer(max_bins=max_bins).fit([[1.0], [2.0]], [0, 1])


# ------------------------------------------------------------------------------------------------ points of MDL


def thresholds(n_samples=400, seed=0):
    """Return a column whose last 3 % have another class, and a column of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 2))
    return X, X[:, 0] > np.quantile(X[:, 0], 0.97)


def with_points(cuts, more, x, weights):
    """Add points one after the other if the rows on both sides, up to the next points, weigh at least 5."""
    found = list(cuts)
    for cut in more:
        below = max([c for c in found if c < cut], default=-np.inf)
        above = min([c for c in found if c >= cut], default=np.inf)
        left = sum(w for value, w in zip(x, weights, strict=True) if below < value <= cut)
        right = sum(w for value, w in zip(x, weights, strict=True) if cut < value <= above)
        if cut not in found and left >= 5 and right >= 5:
            found = sorted([*found, cut])
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("max_bins", [3, 8, 1000])
def test_points_of_mdl_are_added_to_quantiles(weighted, missing, max_bins):
    X, y = thresholds()
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < missing] = np.nan
    weight = rng.integers(0, 3, 400) if weighted else np.ones(400, int)
    found = QuantileDiscretizer(max_bins=max_bins, mdl_points=True).fit(X, y, weight)
    quantiles = QuantileDiscretizer(max_bins=max_bins).fit(X, y, weight).cut_points_
    points = MDLPDiscretizer().fit(X, y, weight).cut_points_
    assert len(points[0])
    for k in range(2):
        known = ~np.isnan(X[:, k])
        expected = with_points(quantiles[k], points[k], X[known, k], weight[known])
        assert found.cut_points_[k].tolist() == expected
    assert len(found.cut_points_[0]) == len(quantiles[0]) + (max_bins < 1000)


def test_a_rare_class_behind_a_threshold_gets_its_own_interval():
    X, y = thresholds()
    codes = QuantileDiscretizer(max_bins=8, mdl_points=True).fit(X, y).transform(X)[:, 0]
    assert y[codes == codes.max()].all()
    assert not y[codes < codes.max()].any()


def test_folds_fit_their_own_points_of_mdl_and_share_the_quantiles():
    assert not QuantileDiscretizer().uses_classes
    assert QuantileDiscretizer(mdl_points=True).uses_classes
    X, y = thresholds()
    X = np.column_stack([X, np.arange(400) % 3])
    encoder = TableEncoder(
        discretizer=QuantileDiscretizer(max_bins=4, mdl_points=True), discrete_features=[False, False, True]
    )
    rows = read_columns(X)
    codes = encoder.fit(X, y).encode_columns(rows)
    data = EncodedData(codes, encoder.n_states_, y.astype(int), 2, raw=raw_numbers(encoder, rows))
    held_out = np.arange(400) % 3 == 0
    quantiles = QuantileDiscretizer(max_bins=4).fit(X[:, :2], y).cut_points_
    points = MDLPDiscretizer().fit(X[~held_out, :2], y[~held_out]).cut_points_
    expected = with_points(quantiles[0], points[0], X[~held_out, 0], np.ones(sum(~held_out)))
    for own, k in ((data, 0), (data.take_features([1, 0, 2]), 1), (pickle.loads(pickle.dumps(data)), 0)):
        rest, held = own.split(held_out)
        np.testing.assert_array_equal(rest.codes[k], np.searchsorted(expected, X[~held_out, 0]))
        np.testing.assert_array_equal(held.codes[k], np.searchsorted(expected, X[held_out, 0]))
        np.testing.assert_array_equal(rest.codes[1 - k], np.searchsorted(quantiles[1], X[~held_out, 1]))
