"""The same table gives the same model, whichever numeric type carries it; what discretisation loses is told, once."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

from tanlearn import BayesNetClassifier, MDLPDiscretizer, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.sources.columns import read_columns

SIGNED = {
    "list": lambda X: [[None if np.isnan(value) else int(value) for value in row] for row in X],
    "list of floats": lambda X: X.tolist(),
    "object array": lambda X: np.array(SIGNED["list"](X), dtype=object),
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "pandas": pd.DataFrame,
    "nullable pandas": lambda X: pd.DataFrame(X).astype("Int64"),
    "nullable floats": lambda X: pd.DataFrame(X).astype("Float64"),
    "Arrow": lambda X: pd.DataFrame(X).astype("int64[pyarrow]"),
    "polars": lambda X: pl.DataFrame(pd.DataFrame(X).astype("Int64")),
    "polars floats": lambda X: pl.DataFrame(X).with_columns(pl.all().fill_nan(None)),
    "masked array": lambda X: np.ma.array(np.nan_to_num(X).astype(int), mask=np.isnan(X)),
}
WHOLE = {name: lambda X, name=name: X.astype(name) for name in ("int8", "int16", "int32", "int64", "float16")}
UNSIGNED = {name: lambda X, name=name: X.astype(name) for name in ("uint8", "uint16", "uint64")}


def xor(rng, n):
    X = rng.integers(0, 4, (n, 2))
    return X, ((X[:, 0] ^ X[:, 1]) & 1)


def easy(rng, n):
    y = rng.integers(0, 3, n)
    return np.stack([y, 10 * y + rng.integers(0, 3, n), rng.integers(0, 2, n)], axis=1), y


def noisy(rng, n):
    y = rng.integers(0, 2, n)
    return np.stack([(rng.random(n) < 0.6) ^ y, rng.integers(0, 9, n) + y, rng.integers(0, 90, n) + 30 * y], axis=1), y


def negative(rng, n):
    X, y = noisy(rng, n)
    return X - 40, y


def wide(rng, n):
    y = rng.integers(0, 2, n)
    return rng.integers(0, 12, (n, 40)) + 2 * y[:, np.newaxis], y


TABLES = {
    "xor": (xor, 400),
    "easy": (easy, 200),
    "noisy": (noisy, 600),
    "negative": (negative, 300),
    "wide": (wide, 700),
    "tiny": (easy, 12),
}


@pytest.mark.filterwarnings("ignore:discretization left", "ignore:y equals a column")
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("kind", TABLES)
def test_every_carrier_of_a_table_gives_the_same_model(kind, has_missing):
    make, n = TABLES[kind]
    rng = np.random.default_rng(1)
    X, y = make(rng, n)
    X = np.where(rng.random(X.shape) < 0.05 * has_missing, np.nan, X)
    carriers = SIGNED | ({} if has_missing else WHOLE) | ({} if has_missing or X.min() < 0 else UNSIGNED)
    expected = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    for name, carry in carriers.items():
        model = BayesNetClassifier(structure=ChowLiu()).fit(carry(X), y)
        assert model.encoder_.is_discrete_.tolist() == expected.encoder_.is_discrete_.tolist(), name
        assert model.structure_ == expected.structure_, name
        np.testing.assert_array_equal(model.tables_.cells, expected.tables_.cells, name)
        # Trained on one carrier, asked with another.
        asked = expected.encoder_.encode_columns(read_columns(carry(X)))
        np.testing.assert_array_equal(asked, expected.encoder_.encode(X), name)


@pytest.mark.parametrize("carry", [np.asarray, np.float64, pd.DataFrame, OrdinalEncoder().fit_transform])
def test_a_tree_learns_xor_from_every_carrier(carry):
    X, y = xor(np.random.default_rng(0), 2000)
    model = BayesNetClassifier(structure=ChowLiu())
    assert cross_val_score(model, carry(X), y).tolist() == [1.0] * 5
    gaps = np.where(np.arange(4000).reshape(2000, 2) == 77, np.nan, X)
    assert cross_val_score(model, gaps, y).min() > 0.99


def test_chunks_may_come_in_other_types_than_the_first():
    X, y = easy(np.random.default_rng(0), 300)
    expected, mixed = (NaiveBayesClassifier() for _ in range(2))
    for first, carry in ((0, np.int8), (100, np.float64), (200, pd.DataFrame)):
        rows = slice(first, first + 100)
        expected.partial_fit(X[rows], y[rows], [0, 1, 2])
        table = carry(X[rows])
        mixed.partial_fit(table.to_numpy() if isinstance(table, pd.DataFrame) else table, y[rows], [0, 1, 2])
    np.testing.assert_array_equal(mixed.counts_.cells, expected.counts_.cells)


def test_whole_numbers_that_a_double_cannot_hold_stay_apart_as_integers():
    X, y = 2**53 + np.arange(40)[:, np.newaxis] % 2, np.arange(40) % 2
    assert NaiveBayesClassifier().fit(X, y).score(X, y) == 1
    assert TableEncoder().fit(X, y).n_states_.tolist() == [2]
    assert TableEncoder().fit(X.astype(float), y).n_states_.tolist() == [1]  # one number, as floating ones


@pytest.mark.parametrize("carry", [np.int64, np.float64])
@pytest.mark.parametrize("n", [400, 2000])
def test_one_odd_value_leaves_codes_codes(carry, n):
    X, y = xor(np.random.default_rng(0), n)
    X[0] = 9
    model = BayesNetClassifier(structure=ChowLiu()).fit(carry(X), y)
    assert model.encoder_.n_states_.tolist() == [5, 5]
    assert model.score(carry(X), y) > 0.99


@pytest.mark.parametrize("carry", [np.int64, np.float64])
def test_whole_numbers_are_codes_up_to_ten(carry):
    column = np.arange(110) % 11
    X, y = carry(np.column_stack([np.minimum(column, 9), column])), column > 5
    assert TableEncoder().fit(X, y).is_discrete_.tolist() == [True, False]
    assert TableEncoder().fit(X + 0.5, y).is_discrete_.tolist() == [False, False]


def test_digits_are_the_same_table_in_two_types():
    X, y = load_digits(return_X_y=True)
    one, other = (TableEncoder().fit(table, y) for table in (X, X.astype(np.uint8)))
    assert 0 < one.is_discrete_.sum() < 32
    assert one.n_states_.tolist() == other.n_states_.tolist()


# What is lost --------------------------------------------------------------------------------------------------


def halves(n=600):
    X, y = xor(np.random.default_rng(0), n)
    return X + 0.5, y


def test_columns_that_discretisation_gives_up_are_named_once():
    X, y = halves()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=y + 0.5)
    with pytest.warns(UserWarning, match="discretization left") as caught:
        NaiveBayesClassifier().fit(frame, y)
    (warning,) = caught
    message = str(warning.message)
    assert message.startswith(
        "discretization left a single interval in 2 column(s), which are now constant: X column 'a', X column 'b'. "
        "MDLPDiscretizer found no cut point"
    )
    assert message.endswith("only together with other columns.")


def test_warnings_about_discretizers_without_classes_do_not_mention_classes():
    class Coarse(BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            self.n_states_ = np.ones(X.shape[1], np.intp)
            return self

        def transform(self, X):
            return np.zeros(X.shape, np.uint8)

    X, y = halves()
    with pytest.warns(UserWarning, match=r"X column 1\. Coarse found one interval for each\. .* otherwise\.$"):
        TableEncoder(discretizer=Coarse()).fit(X, y, np.full(len(y), 1e-4))


def test_the_remedies_of_the_message_work():
    X, y = halves()
    tree = BayesNetClassifier(structure=ChowLiu())
    bins = KBinsDiscretizer(n_bins=4, encode="ordinal", strategy="uniform")
    assert make_pipeline(bins, tree).fit(X, y).score(X, y) == 1
    assert tree.set_params(encoder=TableEncoder(discrete_features=[0, 1])).fit(X, y).score(X, y) == 1
    assert tree.set_params(encoder=None).fit(X.astype(str), y).score(X.astype(str), y) == 1


def test_long_lists_of_columns_are_cut():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match=r"in 30 column\(s\).*X column 9, and 20 more\. MDLP"):
        TableEncoder().fit(rng.normal(size=(80, 30)), rng.permutation(np.arange(80) % 2))


def test_the_warning_says_where_weights_are_the_reason():
    y = np.arange(50) % 2
    with pytest.warns(UserWarning, match=r"Weights count as rows, and their sum is only 1: multiply them"):
        TableEncoder().fit(y[:, np.newaxis] + 0.5, y, np.full(50, 1 / 50))
    assert TableEncoder().fit(y[:, np.newaxis] + 0.5, y).n_states_.tolist() == [2]


@pytest.mark.parametrize(
    "column", [np.full(200, 0.5), np.where(np.arange(200) < 190, 0.5, np.arange(200)), np.full(200, np.nan)]
)
def test_columns_with_nothing_to_lose_are_no_reason(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = TableEncoder(discrete_features=False).fit(column[:, np.newaxis], np.arange(200) % 2)
    assert encoder.n_states_.tolist() == [1]


def test_a_discretizer_of_the_users_own_is_named():
    class Lazy(MDLPDiscretizer):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.cut_points_ = [cuts[:0] for cuts in self.cut_points_]
            self.n_states_ = np.ones_like(self.n_states_)
            return self

    with pytest.warns(UserWarning, match=r"X column 0\. Lazy found no cut"):
        TableEncoder(discretizer=Lazy()).fit(np.arange(40)[:, np.newaxis], np.arange(40) > 20)


@pytest.mark.filterwarnings("ignore:a column looks like row numbers")
@pytest.mark.parametrize("shift", [2**55, -(2**55), 2**53])
@pytest.mark.parametrize("make", [np.array, lambda rows: pd.DataFrame(rows, columns=["x0", "x1"])])
def test_integers_that_floating_numbers_do_not_tell_apart_are_warned_of(make, shift):
    rows = np.arange(60)[:, np.newaxis] + np.array([0, shift])
    y = np.arange(60) >= 30
    with pytest.warns(
        UserWarning, match=r"integers beyond 2\^53 are discretized as floating .*column .*1.*Subtract the smallest"
    ):
        NaiveBayesClassifier().fit(make(rows), y)
    assert NaiveBayesClassifier().fit(make(rows - [0, shift]), y).score(make(rows - [0, shift]), y) == 1.0
    texts = pd.DataFrame({"x1": (rows[:, 1] // 20).astype(str)})
    NaiveBayesClassifier().fit(texts, y)  # categories are what they are
