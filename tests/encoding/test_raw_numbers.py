"""Cut points of folds: fitted without the held-out rows, on weights before class weights."""

import pickle
import warnings

import numpy as np
import pytest

from tanlearn import MDLPDiscretizer, NaiveBayesClassifier, QuantileDiscretizer, TableEncoder
from tanlearn.encoding.encoded_data import EncodedData, joined
from tanlearn.estimators.estimator_input import encode_training

RNG = np.random.default_rng(0)
N = 120
Y = RNG.integers(0, 2, N)
NUMBERS = RNG.normal(size=(N, 3)) + np.outer(Y, [2.0, 2.5, 2.0])
NUMBERS[::7, 2] = np.nan
WORDS = RNG.choice(["a", "b", "c"], N)
X = np.array([[*numbers, word] for numbers, word in zip(NUMBERS.tolist(), WORDS, strict=True)], dtype=object)
HELD_OUT = RNG.random(N) < 0.3


def encode(discretizer=None, weight=None, **options):
    encoder = TableEncoder(discrete_features=[3], discretizer=discretizer)
    return encode_training(NaiveBayesClassifier(encoder=encoder, **options), X, Y, weight)[0]


def expected_codes(rows, weight=None):
    """Return codes by cut points of the rows that are not held out, value by value."""
    cuts = MDLPDiscretizer().fit(NUMBERS[~HELD_OUT], Y[~HELD_OUT], weight).cut_points_
    codes = [[sum(value > cut for cut in own) for value in NUMBERS[rows, j]] for j, own in enumerate(cuts)]
    missing = np.isnan(NUMBERS[rows]).T
    return np.where(missing, 255, np.array(codes)), [len(own) + 1 for own in cuts]


@pytest.mark.parametrize("order", ["as they are", "taken", "joined", "pickled"])
def test_split_fits_cut_points_without_held_out_rows(order):
    data, held_out = encode(), HELD_OUT
    if order == "taken":  # twice, so that rows are rows of rows
        data = data.take(np.arange(N)[::-1]).take(np.arange(N)[::-1])
    elif order == "joined":
        data = joined([data.take(np.arange(50)), data.take(np.arange(50, N))])
    elif order == "pickled":
        data = pickle.loads(pickle.dumps(data))
    rest, held = data.split(held_out)
    for part, rows in ((rest, ~HELD_OUT), (held, HELD_OUT)):
        codes, n_states = expected_codes(rows)
        np.testing.assert_array_equal(part.codes[:3], codes)
        np.testing.assert_array_equal(part.codes[3], data.codes[3, rows])
        assert part.n_states.tolist() == [*n_states, 3]
        np.testing.assert_array_equal(part.y, Y[rows])


def test_held_out_classes_do_not_change_cut_points():
    data = encode()
    other = encode_training(
        NaiveBayesClassifier(encoder=TableEncoder(discrete_features=[3])),
        X,
        np.where(HELD_OUT & (np.arange(N) % 3 == 0), 1 - Y, Y),
    )[0]
    assert not np.array_equal(data.codes, other.codes)  # cut points of all rows do change
    for part, twin in zip(data.split(HELD_OUT), other.split(HELD_OUT), strict=True):
        np.testing.assert_array_equal(part.codes, twin.codes)


def test_folds_weigh_rows_before_class_weights():
    weight = RNG.integers(1, 4, N)
    data = encode(weight=weight, class_weight={0: 1, 1: 20})
    codes, _ = expected_codes(HELD_OUT, weight[~HELD_OUT])
    rest, held = data.split(HELD_OUT)
    np.testing.assert_array_equal(held.codes[:3], codes)
    np.testing.assert_array_equal(rest.weights, (weight * np.where(Y, 20, 1))[~HELD_OUT])
    np.testing.assert_array_equal(rest.base_weights, weight[~HELD_OUT])


def test_cut_points_without_classes_and_codes_of_ones_own_stay():
    plain = EncodedData.from_codes(RNG.integers(0, 3, (N, 2)), Y)
    for data in (encode(QuantileDiscretizer(max_bins=4)), plain):
        assert data.raw is None
        rest, held = data.split(HELD_OUT)
        np.testing.assert_array_equal(rest.codes, data.codes[:, ~HELD_OUT])
        np.testing.assert_array_equal(held.codes, data.codes[:, HELD_OUT])


def test_rows_of_one_class_keep_their_cut_points():
    data = encode()
    rest, _ = data.split(Y == 1)
    np.testing.assert_array_equal(rest.codes, data.codes[:, Y == 0])


def test_a_single_numeric_column_is_discretized_within_folds():
    encoder = TableEncoder(discrete_features=[1])
    data = encode_training(NaiveBayesClassifier(encoder=encoder), X[:, [0, 3]], Y)[0]
    rest, held = data.take(np.arange(N)[::-1]).take(np.arange(N)[::-1]).split(HELD_OUT)
    for part, rows in ((rest, ~HELD_OUT), (held, HELD_OUT)):
        np.testing.assert_array_equal(part.codes[0], expected_codes(rows)[0][0])


class Thirds:
    """Somebody's own discretizer: thirds of the range of class 1."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def get_params(self, deep=True):
        return {"scale": self.scale}

    def set_params(self, **parameters):
        return self

    def fit(self, X, y, sample_weight=None):
        own = X[np.asarray(y) == 1]
        self.low, self.high = np.nanmin(own, axis=0), np.nanmax(own, axis=0)
        self.n_states_ = np.full(X.shape[1], 3)
        return self

    def transform(self, X):
        with np.errstate(invalid="ignore"):
            codes = np.clip(np.floor(3 * (X - self.low) / (self.high - self.low)), 0, 2)
        return np.where(np.isnan(X), 255, codes).astype(np.uint8)


def test_a_discretizer_of_ones_own_is_fitted_again():
    rest, held = encode(Thirds()).split(HELD_OUT)
    own = Thirds().fit(NUMBERS[~HELD_OUT], Y[~HELD_OUT])
    np.testing.assert_array_equal(rest.codes[:3], own.transform(NUMBERS[~HELD_OUT]).T)
    np.testing.assert_array_equal(held.codes[:3], own.transform(NUMBERS[HELD_OUT]).T)


def test_features_that_are_taken_keep_their_numbers():
    data = encode()
    rest, held = data.take_features([3, 2, 0]).split(HELD_OUT)
    for part, whole in zip((rest, held), data.split(HELD_OUT), strict=True):
        np.testing.assert_array_equal(part.codes, whole.codes[[3, 2, 0]])
        assert part.n_states.tolist() == whole.n_states[[3, 2, 0]].tolist()
    assert data.take_features([3]).raw is None


@pytest.mark.parametrize("wide", ["categories", "cut points"])
def test_missing_values_stay_missing_in_wider_codes(wide):
    """Codes of 16 bits beside cut points of 8 bits, and the other way around: the missing code is another in each."""
    n = 900
    y = np.arange(n) % 2
    words = np.array([f"w{i}" for i in range(n)]) if wide == "categories" else np.where(y, "a", "b")
    numbers = np.column_stack([np.arange(n, dtype=float), np.arange(n, dtype=float)])
    numbers[:, 0] = y + 0.1 * np.sin(np.arange(n))
    numbers[::5] = np.nan
    X = np.array([[*row, word] for row, word in zip(numbers.tolist(), words.tolist(), strict=True)], dtype=object)
    weight = np.full(n, 40) if wide == "cut points" else None  # so heavy that every change of the class is a cut point
    encoder = TableEncoder(discrete_features=[2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, _ = encode_training(NaiveBayesClassifier(encoder=encoder), X, y, weight)
    for held_out in (np.arange(n) % 7 == 0, np.arange(n) % 2 == 0):
        for part, rows in zip(data.split(held_out), (~held_out, held_out), strict=True):
            missing = np.iinfo(part.codes.dtype).max
            np.testing.assert_array_equal(part.codes[:2] == missing, np.isnan(numbers[rows]).T)
            assert (np.where(part.codes == missing, 0, part.codes) < part.n_states[:, np.newaxis]).all()
    assert data.codes.dtype == np.uint16


class AtZero(MDLPDiscretizer):
    """A discretizer that inherits from a built-in one, and cuts every column at zero."""

    def fit(self, X, y, sample_weight=None):
        return self.restore([np.array([0.0])] * np.shape(X)[1])


def test_a_subclass_of_a_built_in_discretizer_fits_in_folds_too():
    data = encode(AtZero())
    for part in (data, *data.split(HELD_OUT)):
        assert part.n_states.tolist() == [2, 2, 2, 3]
