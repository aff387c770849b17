"""One row at a time: the answers, and the errors, of predict."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KBinsDiscretizer

from tanlearn import BayesNetClassifier, HierarchicalSmoothing, NaiveBayesClassifier, Structure, TableEncoder
from tanlearn.baselines import ChowLiu


def table(n=300):
    """Return rows of strings, codes, booleans and quantities, some of them missing, and classes that hang on all."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"], dtype=object)[(y + rng.integers(0, 2, n)) % 3],
            "code": (y + rng.integers(0, 3, n)) % 4,
            "flag": (y == 1) ^ (rng.random(n) < 0.3),
            "size": y + rng.normal(size=n),
        }
    )
    X.loc[rng.random(n) < 0.1, "word"] = None
    X.loc[rng.random(n) < 0.1, "size"] = np.nan
    return X, np.array(["x", "y", "z"])[y]


MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "tree": BayesNetClassifier(structure=ChowLiu()),
    "two parents": BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [1, 2]])),
    "three parents": BayesNetClassifier(structure=Structure([[-1] * 3, [0, -1, -1], [0, 1, -1], [1, 2, 0]])),
    "other cuts": NaiveBayesClassifier(encoder=TableEncoder(discrete_features=[0, 1, 2])),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("bits", [None, (2, 3)])
def test_rows_and_codes_are_predicted_as_in_a_table(model, bits):
    X, y = table()
    model.fit(X, y)
    model = model if bits is None else model.with_bits(bits)
    expected = model.predict(X)
    predictor = model.row_predictor()
    assert [predictor.predict(row) for row in X.itertuples(index=False, name=None)] == expected.tolist()
    assert [predictor.predict_codes(codes) for codes in model.encoder_.encode(X).T] == expected.tolist()


def test_what_was_not_there_in_fit_counts_as_in_predict():
    X, y = table()
    model = NaiveBayesClassifier().fit(X, y)
    predictor = model.row_predictor()
    for row in [
        ("new", 2, True, 0.5),
        (None, 9, None, None),
        ("a", pd.NA, np.True_, np.float32(1)),
        ("b", Decimal(1), 1, 2),
    ]:
        assert predictor.predict(row) == model.predict(pd.DataFrame([row], columns=X.columns))[0]
    for row in [("a", 1, True, np.ma.masked), (np.ma.masked, 1, True, 2.5), ("a", 1, True, 1e300), ("a", 1, True, -3)]:
        assert predictor.predict(row) == model.predict(pd.DataFrame([row], columns=X.columns, dtype=object))[0]


@pytest.mark.parametrize("handle_unknown", ["missing", "error"])
def test_scalars_of_all_numeric_types_count_as_in_predict(handle_unknown):
    X, y = table()
    model = NaiveBayesClassifier(encoder=TableEncoder(handle_unknown=handle_unknown)).fit(X.to_numpy(object), y)
    predictor, ordinary = model.row_predictor(), ["a", 1, True, 0.5]
    ones = [True, np.bool_(True), 1.0, 1, *(np.dtype(code).type(1) for code in "bhilqBHILQefdg")]
    limits = [np.int64(-(2**63)), np.int64(2**63 - 1), np.uint64(2**63), -(2**63), 2**63, np.float16(6e4), 1e300]
    for i in range(1, 4):
        for value in [*ones, *(limits if i == 3 else [])]:
            row = [*ordinary[:i], value, *ordinary[i + 1 :]]
            assert predictor.predict(row) == model.predict([row])[0], (i, value)


def test_gaps_are_encoded_without_the_encoder(monkeypatch):
    X, y = table()
    model = NaiveBayesClassifier().fit(X, y)
    rows = [(None, 2, True, np.nan), (np.nan, float("nan"), None, np.float32("nan"))]
    expected = model.predict(pd.DataFrame(rows, columns=X.columns, dtype=object)).tolist()
    predictor = model.row_predictor()
    monkeypatch.setattr(TableEncoder, "encode_columns", None)
    assert [predictor.predict(row) for row in rows] == expected


def test_declared_categories_of_any_kind_are_known():
    X, y = table()
    X = pd.DataFrame({"age": pd.cut(np.nan_to_num(X["size"]), 4), "code": X["code"], "size": X["size"]})
    model = NaiveBayesClassifier().fit(X, y)
    predictor = model.row_predictor()
    rows = list(X.itertuples(index=False, name=None))
    assert any(row[2] != row[2] for row in rows)
    assert [predictor.predict(row) for row in rows] == model.predict(X).tolist()


def test_processes_and_threads_share_a_predictor():
    X, y = table()
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    rows, expected = list(X.itertuples(index=False, name=None)), model.predict(X).tolist()
    copy = pickle.loads(pickle.dumps(model.row_predictor()))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(copy.predict, rows)) == expected


def test_a_discretizer_of_the_user_encodes():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X.sum(axis=1) > 0

    class Bins(KBinsDiscretizer):
        def fit(self, X, y, sample_weight=None):
            super().fit(X)
            self.n_states_ = self.n_bins_
            return self

        def transform(self, X):
            return super().transform(X).astype(np.uint8)

    bins = Bins(3, encode="ordinal", strategy="uniform")
    model = NaiveBayesClassifier(encoder=TableEncoder(discretizer=bins)).fit(X, y)
    predictor = model.row_predictor()
    assert [predictor.predict(row) for row in X.tolist()] == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (("a", 1, True), ValueError, r"must have 4 values, one for each column used in fit, got 3"),
        (("a", 1, True, np.inf), ValueError, "X column 3 contains infinity"),
        (
            ("a", 1, True, "long"),
            TypeError,
            "X column 3 holds str, such as 'long' in row 0, but held numbers",
        ),
        ((7, 1, True, 0.5), TypeError, "X column 0 holds 7 in row 0, of numbers, but held strings such as 'a'"),
        (([], 1, True, 0.5), TypeError, "X column 0 holds list"),
        (("a", 1, True, 2**70), ValueError, "X column 3 holds 1180591620717411303424 in row 0"),
        (("a", 1, True, 10**400), ValueError, "X column 3 holds"),
        (("a", 1, True, np.longdouble("inf")), ValueError, "X column 3 contains infinity"),
        (("a", Decimal("inf"), True, 0.5), ValueError, "X column 1 contains infinity"),
        (("a", 1 + 0j, True, 0.5), TypeError, "X column 1 holds complex"),
    ],
)
def test_wrong_rows_are_refused(row, error, message):
    predictor = NaiveBayesClassifier().fit(*table()).row_predictor()
    with pytest.raises(error, match=message):
        predictor.predict(row)


def test_rows_with_names_are_put_in_order():
    X, y = table()
    model = NaiveBayesClassifier().fit(X, y)
    predictor, moved = model.row_predictor(), X[X.columns[::-1]]
    expected = model.predict(X).tolist()
    assert [predictor.predict(row) for row in moved.to_dict("records")] == expected
    assert [predictor.predict(row) for _, row in moved.iterrows()] == expected


ROW = {"word": "a", "code": 1, "flag": True, "size": 0.5}


@pytest.mark.parametrize("make", [dict, pd.Series])
def test_rows_with_other_names_are_refused(make):
    X, y = table()
    predictor = NaiveBayesClassifier().fit(X, y).row_predictor()
    for row, message in (
        (
            {name: ROW[name] for name in ("word", "code", "flag")},
            "must have exactly one value for each column used in fit .* has 0 values for column 'size'",
        ),
        ({**ROW, "sise": 1}, "has a value for 'sise', which was not a column in fit"),
        (dict(enumerate(ROW.values())), r"but has 0 values for column 'word'\. Its names are 0, 1, 2, 3\. "),
    ):
        with pytest.raises(ValueError, match=message):
            predictor.predict(make(row))
    nameless = NaiveBayesClassifier().fit(X.to_numpy(), y).row_predictor()
    with pytest.raises(TypeError, match=r"no names in fit: pass a tuple"):
        nameless.predict(make(ROW))


def test_a_name_that_occurs_twice_is_refused():
    predictor = NaiveBayesClassifier().fit(*table()).row_predictor()
    with pytest.raises(ValueError, match=r"exactly one value for each column .* but has 2 values for column 'size'"):
        predictor.predict(pd.Series([*ROW.values(), 2], index=[*ROW, "size"]))


@pytest.mark.parametrize("row", ["au", b"au"])
def test_a_string_is_no_row(row):
    predictor = NaiveBayesClassifier().fit([["a", "u"], ["b", "v"]], [0, 1]).row_predictor()
    with pytest.raises(TypeError, match=r"a row must be a sequence of values, got b?'au': pass a tuple"):
        predictor.predict(row)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([255, 0, 9999, 0], "the code of feature 2 must be below 2, .* got 9999"),
        ([255, 0, 0, -5], "the code of feature 3 must be below 3, .* got -5"),
        ([0, 0, 0], r"codes must have shape \(4,\), one per feature, got \(3,\)"),
        (
            [0, 0, 2, 0],
            "the code of feature 2 must be below 2, its number of values, or 255 for a missing value, got 2",
        ),
        ([-1, 0, 0, 0], "the code of feature 0 must be below 3, .* got -1"),
    ],
)
def test_wrong_codes_are_refused(codes, message):
    predictor = NaiveBayesClassifier().fit(*table()).row_predictor()
    with pytest.raises(ValueError, match=message):
        predictor.predict_codes(codes)


@pytest.mark.parametrize("sparse", [False, True])
def test_wrong_codes_are_refused_where_tables_back_off(sparse):
    X, y = table()
    smoothing = HierarchicalSmoothing(m=1.0, sparse=sparse)
    model = BayesNetClassifier(structure=Structure([-1, 0, 0, 2]), parameters=smoothing).fit(X, y)
    predictor = model.row_predictor()
    rows = [*X.itertuples(index=False, name=None)]
    assert [predictor.predict(row) for row in rows] == model.predict(X).tolist()
    assert [predictor.predict_codes(codes) for codes in model.encoder_.encode(X).T] == model.predict(X).tolist()
    for i, n in enumerate(model.encoder_.n_states_.tolist()):
        codes = np.zeros(4, int)
        for code in (0, n - 1, 255):
            codes[i] = code
            assert predictor.predict_codes(codes) in ("x", "y", "z")
        for code in (-1, n, 254, 256):
            codes[i] = code
            with pytest.raises(ValueError, match=f"the code of feature {i} must be below {n}, .* got {code}"):
                predictor.predict_codes(codes)


def test_codes_are_integers():
    predictor = NaiveBayesClassifier().fit(*table()).row_predictor()
    with pytest.raises(TypeError, match="codes must be integers, got float64"):
        predictor.predict_codes([0.0, 1.0, 0.0, 0.0])


def test_an_encoder_that_refuses_what_is_unseen_refuses_it_here():
    X, y = table()
    encoder = TableEncoder(handle_unknown="error")
    predictor = NaiveBayesClassifier(encoder=encoder).fit(X, y).row_predictor()
    with pytest.raises(ValueError, match="'new' in row 0, which was not seen in fit"):
        predictor.predict(("new", 1, True, 0.5))


def test_an_unfitted_classifier_has_no_predictor():
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().row_predictor()


def test_a_series_without_names_is_in_order():
    X = np.array([[0.0, 1.0], [1.0, 0.0]] * 4)
    predictor = NaiveBayesClassifier().fit(X, ["a", "b"] * 4).row_predictor()
    assert predictor.predict(pd.Series(X[0])) == predictor.predict(pd.DataFrame(X).iloc[0]) == predictor.predict(X[0])
