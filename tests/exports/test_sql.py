"""Statements in SQL predict what Python predicts, in SQLite and in DuckDB."""

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracles import exported
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from support.odd_tables import odd_table, rows_of
from support.random_terms import random_terms

import tanlearn
from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    Calibration,
    NaiveBayesClassifier,
    TableEncoder,
    TermNetClassifier,
    to_sql,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.exports import sql_terms
from tanlearn.exports.dialects import DIALECTS
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import EvidenceCalibration
from tanlearn.structures.table_layout import TableLayout

ALL = ("prediction", "probability", "log_probability", "log_joint")
X, y = odd_table(300, 0, missing=0.1)
X_NEW, _ = odd_table(60, 1, missing=0.4)
X_NEW.loc[:9, "select"] = "unseen"


def tree(**parameters):
    """Return a tree with dependences between columns."""
    return BayesNetClassifier(structure=ChowLiu(), **parameters)


class Halves(BaseEstimator):
    """Discretizer of two intervals, below 5 and above."""

    def fit(self, X, y, sample_weight=None):
        self.n_states_ = np.full(X.shape[1], 2)
        return self

    def transform(self, X):
        return (X > 5).astype(np.uint8)


def require_exponential(database):
    """Skip the test if SQLite was compiled without mathematical functions."""
    try:
        database.execute("SELECT exp(0.0)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no mathematical functions")


def results(statement, dialect, X, table="visits"):
    """Return the results of a statement on the rows of a frame, with the number of each row in the column `id`."""
    frame = X.copy()
    frame.insert(0, "id", range(len(X)))
    if dialect == "sqlite":
        database = sqlite3.connect(":memory:")
        if "exp(" in statement:
            require_exponential(database)
        frame.to_sql(table, database, index=False)
        rows = database.execute(statement)
        titles = [one[0] for one in rows.description]
        rows = rows.fetchall()
        database.close()
    else:
        duckdb = pytest.importorskip("duckdb", reason="statements for DuckDB run in the extra `dev`")
        with duckdb.connect() as database:
            database.register("frame", frame)
            name = table.replace('"', '""')
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM frame')
            rows = database.execute(statement)
            titles = [one[0] for one in rows.description]
            rows = rows.fetchall()
    return pd.DataFrame(rows, columns=titles).sort_values("id", ignore_index=True)


def numbers(found, prefix, model):
    """Return the columns of a result, NaN for NULL."""
    return found[[f"{prefix}_{label}" for label in model.classes_]].to_numpy(float)


def check(model, dialect, X, **options):
    """Compare all results of all rows with Python; return them."""
    statement = to_sql(model, "visits", dialect=dialect, keep=["id"], output=ALL, **options)
    found = results(statement, dialect, X)
    expected = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(numbers(found, "log_joint", model), expected, rtol=0, atol=1e-12)
    log_p = model.predict_log_proba(X)
    np.testing.assert_allclose(numbers(found, "log_probability", model), log_p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(numbers(found, "probability", model), np.exp(log_p), rtol=0, atol=1e-12)
    assert found["prediction"].tolist() == model.predict(X).tolist()
    return found


def check_probabilities(model, dialect, X, **options):
    """Compare predictions and probabilities of all rows with Python, for models without a log joint."""
    statement = to_sql(model, "visits", dialect=dialect, keep=["id"], output=ALL[:3], **options)
    found = results(statement, dialect, X)
    expected = model.predict_log_proba(X)
    np.testing.assert_allclose(numbers(found, "log_probability", model), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(numbers(found, "probability", model), np.exp(expected), rtol=0, atol=1e-12)
    assert found["prediction"].tolist() == model.predict(X).tolist()


@pytest.fixture(params=["sqlite", "duckdb"])
def dialect(request):
    """Return the name of a dialect."""
    return request.param


MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "categories of missing values": NaiveBayesClassifier(encoder=TableEncoder(handle_missing="category")),
    "tree": tree(),
    "tree with categories of missing values": tree(encoder=TableEncoder(handle_missing="category")),
    "few bits": NaiveBayesClassifier(),
    "tree of few bits": tree(),
}


@pytest.mark.parametrize("name", MODELS)
def test_statements_agree_with_an_enumeration_of_missing_values(name, dialect):
    model = clone(MODELS[name]).fit(X, y)
    if "few bits" in name:
        model = model.with_bits((4, 3))
    found = check(model, dialect, X_NEW)
    description = model.describe()
    expected = [exported.log_joint(description, row) for row in rows_of(X_NEW)]
    np.testing.assert_allclose(numbers(found, "log_joint", model), expected, rtol=0, atol=1e-12)


def test_sums_of_terms_agree_with_python(dialect):
    model = TermNetClassifier(random_state=0).fit(X, y)
    check(model, dialect, X_NEW)


COMBINED = {
    "forest": BayesForestClassifier(n_estimators=3, random_state=0),
    "forest of averages": BayesForestClassifier(n_estimators=3, weights=None, random_state=0),
    "forest with a prior": BayesForestClassifier(n_estimators=3, class_prior=[0.2, 0.3, 0.5], random_state=0),
}


@pytest.mark.parametrize("name", COMBINED)
def test_forests_agree_with_python(name, dialect):
    model = clone(COMBINED[name]).fit(X[:100], y[:100])
    check_probabilities(model, dialect, X_NEW)


def test_ensembles_agree_with_python(dialect):
    model = BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=3), random_state=0).fit(X, y)
    for weights in ([0.7, 0.4, 0.3], [1.0, 0.0, 0.0], [0.0, 1.2, 0.0], [0.0, 0.0, 0.8]):
        model.model_ = replace(model.model_, weights=np.array(weights))
        check_probabilities(model, dialect, X_NEW)


TERMS = {
    "boosted terms": BoostedTermsClassifier(random_state=0, max_terms=20),
    "few terms of many splits": BoostedTermsClassifier(max_terms=4, max_splits=8, random_state=0),
    "categories of missing values": BoostedTermsClassifier(
        encoder=TableEncoder(handle_missing="category"), max_terms=20, random_state=0
    ),
    "a class of probability zero": BoostedTermsClassifier(class_prior=[0.0, 0.3, 0.7], max_terms=10, random_state=0),
}


@pytest.mark.parametrize("name", TERMS)
def test_boosted_terms_agree_with_python(name, dialect):
    model = clone(TERMS[name]).fit(X, y)
    assert model.n_terms_ > 0
    check_probabilities(model, dialect, X_NEW)


def test_boosted_terms_of_two_classes_without_missing_values(dialect):
    encoder = TableEncoder(handle_missing="category", handle_unknown="error")
    model = BoostedTermsClassifier(encoder=encoder, max_terms=20, random_state=0).fit(X, y == y[0])
    new = X_NEW.replace({"select": {"unseen": None}})
    check_probabilities(model, dialect, new)
    assert "iif" not in to_sql(model, "visits", dialect="sqlite")


def test_cells_without_rows_and_groups_of_terms(dialect, monkeypatch):
    model = BoostedTermsClassifier(max_terms=10, random_state=0).fit(X, y)
    n_states = model.encoder_.n_states_
    model.model_ = random_terms(n_states, 3, n_splits=[0, 1, 2, 3, 3, 4, 5])
    check_probabilities(model, dialect, X_NEW)
    n_queries = to_sql(model, "visits", dialect=dialect).count(" AS (\n")
    monkeypatch.setattr(sql_terms, "_MOST_COLUMNS", 12)
    check_probabilities(model, dialect, X_NEW)
    assert to_sql(model, "visits", dialect=dialect).count(" AS (\n") > n_queries + 6
    model.model_ = random_terms(n_states, 3, n_splits=[])
    check_probabilities(model, dialect, X_NEW[:5])


def test_missing_values_of_boosted_terms_can_be_null(dialect):
    model = BoostedTermsClassifier(max_terms=10, random_state=0).fit(X, y)
    model.model_ = random_terms(model.encoder_.n_states_, 3, n_splits=[2, 2], seed=1)
    check_probabilities(model, dialect, X.dropna(), missing="null")
    found = results(to_sql(model, "visits", dialect=dialect, keep=["id"], missing="null"), dialect, X_NEW)
    used = np.unique(model.model_.features)
    assert 0 < len(used) < 5
    is_null = (model.encoder_.encode(X_NEW)[used] == 255).any(axis=0)
    assert found["prediction"].isna().tolist() == is_null.tolist()
    assert found["prediction"][~is_null].tolist() == model.predict(X_NEW[~is_null]).tolist()


def test_values_that_predict_refuses_give_null_in_boosted_terms(dialect):
    encoder = TableEncoder(handle_unknown="error")
    model = BoostedTermsClassifier(encoder=encoder, max_terms=5, random_state=0).fit(X, y)
    odd = X.dropna().iloc[:3].copy()
    odd.iloc[0, 0] = np.inf
    odd.iloc[1, 2] = "unseen"
    found = results(to_sql(model, "visits", dialect=dialect, keep=["id"], output=ALL[:3]), dialect, odd)
    assert found.iloc[:2, 1:].isna().all(axis=None)
    assert found["prediction"][2] == model.predict(odd.iloc[2:])[0]


def test_large_boosted_terms_are_refused():
    model = BoostedTermsClassifier(max_terms=20, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"at least [\d,]+ bytes, more than max_bytes=5,000\. .* decrease max_terms"):
        to_sql(model, "visits", dialect="sqlite", max_bytes=5000)
    n_bytes = len(to_sql(model, "visits", dialect="sqlite").encode())
    with pytest.raises(ValueError, match=r"needs [\d,]+ bytes, more than .* Pass missing='null', a larger max_bytes"):
        to_sql(model, "visits", dialect="sqlite", max_bytes=n_bytes - 1)
    assert len(to_sql(model, "visits", dialect="sqlite", missing="null").encode()) < 0.6 * n_bytes


NULL_CASES = {
    "naive Bayes": (NaiveBayesClassifier(), False),
    "tree": (tree(), True),
    "tree without missing values": (
        tree(encoder=TableEncoder(handle_missing="category", handle_unknown="error")),
        False,
    ),
    "forest": (BayesForestClassifier(n_estimators=2, random_state=0), False),
    "boosted terms": (BoostedTermsClassifier(max_terms=8, random_state=0), True),
}


@pytest.mark.parametrize("name", NULL_CASES)
def test_null_is_advised_exactly_if_it_shortens_the_statement(name):
    model, is_shorter = NULL_CASES[name]
    model = clone(model).fit(X[:100], y[:100])
    n_bytes, n_null = (
        len(to_sql(model, "visits", dialect="sqlite", missing=missing).encode()) for missing in ("marginalize", "null")
    )
    assert (n_null < n_bytes) == is_shorter
    with pytest.raises(ValueError, match="more than max_bytes") as caught:
        to_sql(model, "visits", dialect="sqlite", max_bytes=n_bytes - 1)
    assert ("missing='null'" in str(caught.value)) == is_shorter


def test_large_forests_are_refused_before_they_are_written():
    model = BayesForestClassifier(n_estimators=3, random_state=0).fit(X[:100], y[:100])
    with pytest.raises(
        ValueError, match=r"at least [\d,]+ bytes, more than max_bytes=10,000\. .* decrease n_estimators"
    ):
        to_sql(model, "visits", dialect="sqlite", max_bytes=10_000)
    n_bytes = len(to_sql(model, "visits", dialect="sqlite").encode())
    with pytest.raises(
        ValueError,
        match=r"Pass a larger max_bytes, or fit a smaller model: decrease n_estimators of the forest, use fewer",
    ):
        to_sql(model, "visits", dialect="sqlite", max_bytes=n_bytes - 1)
    with pytest.raises(
        ValueError, match=r"output must not contain 'log_joint', because BayesForestClassifier has no log joint"
    ):
        to_sql(model, "visits", dialect="sqlite", output=ALL)


def test_several_parents_need_null(dialect):
    model = BayesNetClassifier(structure=KDependence(k=2)).fit(X, y)
    with pytest.raises(ValueError, match=r"depends on several other columns \(.*Pass missing='null'"):
        to_sql(model, "visits", dialect=dialect)
    check(model, dialect, X.dropna(), missing="null")
    is_parent = np.isin(np.arange(5), model.structure_.parents)
    statement = to_sql(model, "visits", dialect=dialect, keep=["id"], output=ALL, missing="null")
    found = results(statement, dialect, X_NEW)
    codes = model.encoder_.encode(X_NEW)
    is_null = (codes[is_parent] == 255).any(axis=0)
    assert is_null.any()
    assert not is_null.all()
    assert found["prediction"].isna().tolist() == is_null.tolist()
    assert np.isnan(numbers(found, "probability", model)).any(axis=1).tolist() == is_null.tolist()
    expected = model.predict_joint_log_proba(X_NEW)
    joint = numbers(found, "log_joint", model)
    np.testing.assert_allclose(joint[~is_null], expected[~is_null], rtol=0, atol=1e-12)


def test_a_cycle_gives_null_for_missing_values(dialect):
    structure = tanlearn.Structure([[1], [0], [-1], [-1], [-1]], allow_cycles=True)
    model = BayesNetClassifier(structure=structure).fit(X, y)
    with pytest.raises(ValueError, match="this structure has a cycle"):
        to_sql(model, "visits", dialect=dialect)
    found = results(to_sql(model, "visits", dialect=dialect, keep=["id"], missing="null"), dialect, X_NEW)
    complete = (model.encoder_.encode(X_NEW) != 255).all(axis=0)
    assert found["prediction"].notna().tolist() == complete.tolist()
    assert found["prediction"][complete].tolist() == model.predict(X_NEW[complete]).tolist()


@pytest.mark.parametrize(
    "calibration",
    [Calibration(2.5), Calibration(1.5, 0.7, 3.0), EvidenceCalibration(2.0, prior_shift=(0.5, -0.5, 0.0))],
    ids=["temperature", "power", "evidence"],
)
def test_probabilities_are_calibrated(calibration, dialect):
    model = NaiveBayesClassifier().fit(X, y)
    model.calibration_ = calibration
    check(model, dialect, X_NEW)


def test_zeros_and_impossible_rows(dialect):
    rows = pd.DataFrame({"a": ["u", "v", "u", "v", "u", "w"], "b": ["p", "q", "p", "q", "p", "p"]})
    model = BayesNetClassifier(
        structure=tanlearn.Structure([[-1], [0]]), parameters=tanlearn.MaximumLikelihood(alpha=0.0)
    ).fit(rows, [0, 0, 1, 1, 1, 1])
    new = pd.DataFrame({"a": ["u", "v", "w", None, None, "w"], "b": ["p", "p", "q", "p", "q", None]})
    with pytest.warns(tanlearn.ImpossibleRowsWarning):
        found = check(model, dialect, new)
    assert np.isneginf(numbers(found, "log_joint", model)).all(axis=1).tolist() == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_class_of_probability_zero(dialect):
    check(tree().fit(X, y).with_class_prior([0.0, 0.5, 0.5]), dialect, X_NEW)


def test_cut_points_are_compared_exactly(dialect):
    """A value equal to a cut point, and its neighbors, get the codes of Python, whatever its digits."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.normal(size=40) * 10.0 ** rng.integers(-30, 30, 40))
    model = NaiveBayesClassifier().fit(pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9]}), [0, 0, 1, 1])
    fitted = model.encoder_
    fitted.discretizer_.cut_points_ = [cuts]
    fitted.discretizer_.n_states_ = np.array([41])
    fitted.restore([None], [None], fitted.discretizer_)
    table = rng.dirichlet(np.ones(41), 2).T
    layout = TableLayout.of_parents(model.structure_.parents, np.array([41]), 2)
    cells = np.concatenate([np.log([0.5, 0.5]), np.log(table).ravel()])
    model.model_ = BayesNet(model.structure_, tanlearn.Tables(layout, cells))
    values = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])
    check(model, dialect, pd.DataFrame({"x": values}))


def test_values_that_predict_refuses_give_null(dialect):
    model = tree(encoder=TableEncoder(handle_unknown="error")).fit(X, y)
    odd = X.dropna().iloc[:3].copy()
    odd.iloc[0, 0] = np.inf
    odd.iloc[1, 2] = "unseen"
    found = results(to_sql(model, "visits", dialect=dialect, keep=["id"], output=ALL), dialect, odd)
    assert found.iloc[:2, 1:].isna().all(axis=None)
    assert found["prediction"][2] == model.predict(odd.iloc[2:])[0]


def test_text_in_a_numeric_column_of_sqlite_gives_null():
    model = NaiveBayesClassifier().fit(pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9]}), [0, 0, 1, 1])
    statement = to_sql(model, "visits", dialect="sqlite", output="prediction")
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE visits (x)")
    database.executemany("INSERT INTO visits VALUES (?)", [(9,), ("0.1",), (None,), (0.1,)])
    assert database.execute(statement).fetchall() == [(1,), (None,), (0,), (0,)]
    database.close()


def test_nan_is_a_missing_value_in_duckdb():
    duckdb = pytest.importorskip("duckdb", reason="statements for DuckDB run in the extra `dev`")
    frame = pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9], "n": [1, 2, 1, 2]})
    model = NaiveBayesClassifier().fit(frame, [0, 0, 1, 1])
    with duckdb.connect() as database:
        database.execute("CREATE TABLE visits (x DOUBLE, n DOUBLE)")
        database.execute("INSERT INTO visits VALUES ('NaN', 2), (9.0, 'NaN')")
        found = database.execute(to_sql(model, "visits", dialect="duckdb", output="log_joint")).fetchall()
    expected = model.predict_joint_log_proba(pd.DataFrame({"x": [np.nan, 9.0], "n": [2, np.nan]}))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [[False, True], [1, 7], [1.0, 2.0], ["a", "b"]], ids=["bool", "int", "float", "str"])
def test_labels_keep_their_type(labels, dialect):
    frame = pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9]})
    model = NaiveBayesClassifier().fit(frame, np.repeat(labels, 2))
    found = results(to_sql(model, "visits", dialect=dialect, keep=["id"], output="prediction"), dialect, frame)
    assert found["prediction"].tolist() == [labels[0], labels[0], labels[1], labels[1]]


def test_a_schema_and_other_names_of_columns():
    model = NaiveBayesClassifier().fit([["sun", 29.0], ["rain", 11.0]] * 3, ["beach", "home"] * 3)
    with pytest.raises(
        ValueError, match=r"column names, but the data passed to fit had none. Pass columns=\[...\] with the 2 columns"
    ):
        to_sql(model, "step1", dialect="sqlite")
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE "step1" ("the sky" TEXT, t REAL)')
    database.execute("INSERT INTO step1 VALUES ('sun', 30)")
    statement = to_sql(
        model, "step1", schema="main", dialect="sqlite", columns=["the sky", "t"], keep=["t"], output="prediction"
    )
    assert database.execute(statement).fetchall() == [(30.0, "beach")]
    absent = to_sql(model, "step1", dialect="sqlite", columns=["the ski", "t"])
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        database.execute(absent)
    database.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "oracle"}, "dialect must be one of 'sqlite', 'duckdb', 'postgresql', got 'oracle'"),
        ({"output": "classes"}, "output must contain names from 'prediction', .*, got 'classes'"),
        ({"output": ()}, "output must contain names from .*, got none"),
        ({"missing": "mean"}, "missing must be 'marginalize' or 'null', got 'mean'"),
        ({"columns": ["x"]}, "columns must contain 5 names, in the order of the columns of fit, got 1 names"),
        ({"columns": "x"}, "columns must contain 5 names, in the order of the columns of fit, got 'x'"),
        ({"keep": [""]}, "a name in SQL must not be empty or contain null characters, got ''"),
        (
            {"max_bytes": 1000},
            r"the statement needs [\d,]+ bytes, .*=1,000\. .* larger max_bytes, or fit .*: use fewer columns\.$",
        ),
        ({"dialect": "postgresql", "keep": ["i" * 64]}, "PostgreSQL allows names of at most 63 bytes, but 'i+' has 64"),
    ],
)
def test_errors(options, message):
    model = NaiveBayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match=message):
        to_sql(model, "visits", **{"dialect": "sqlite", **options})


def test_other_classifiers_and_encoders_are_refused():
    with pytest.raises(NotFittedError):
        to_sql(NaiveBayesClassifier(), "visits", dialect="sqlite")
    forest = AODEClassifier().fit(X, y)
    with pytest.raises(TypeError, match="AODEClassifier cannot be exported to SQL"):
        to_sql(forest, "visits", dialect="sqlite")
    model = NaiveBayesClassifier(encoder=TableEncoder(discretizer=Halves())).fit([[0.1], [0.2], [9.8]], [0, 0, 1])
    with pytest.raises(ValueError, match=r"but this model uses Halves\. Fit it again with encoder=TableEncoder"):
        to_sql(model, "visits", dialect="sqlite", columns=["x"])


def test_too_many_columns_and_too_small_probabilities_are_refused():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (20, 2001)), columns=[f"c{i}" for i in range(2001)])
    model = NaiveBayesClassifier().fit(wide, [0, 1] * 10)
    with pytest.raises(
        ValueError, match="SQLite allows at most 2,000 columns in a query, but this network needs 2,001"
    ):
        to_sql(model, "visits", dialect="sqlite")
    n = 120
    star = tanlearn.Structure(np.append(-1, np.zeros(n, int))[:, np.newaxis])
    frame = pd.DataFrame({f"c{i}": [0, 0, 1, 1] for i in range(n + 1)})
    model = BayesNetClassifier(structure=star, parameters=tanlearn.MaximumLikelihood(alpha=1e-6)).fit(
        frame, [0, 1, 0, 1]
    )
    with pytest.raises(
        ValueError, match=r"column 'c0' only if probabilities of its children differ by .* Pass missing='null'"
    ):
        to_sql(model, "visits", dialect="sqlite")


def test_many_terms_and_classes_stay_within_the_limits_of_sqlite():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(130), 2)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 2, 260) for i in range(300)})
    model = NaiveBayesClassifier().fit(frame, classes)
    check(model, "sqlite", frame[:3])


def test_constants_of_sqlite_are_exact():
    rng = np.random.default_rng(0)
    values = [*(rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)).tolist(), 5e-324, 2.0**-1060 * 3, 1.5e308]
    database = sqlite3.connect(":memory:")
    for value in values:
        (found,) = database.execute(f"SELECT {DIALECTS['sqlite'].exact(value)} = ?", [value]).fetchone()
        assert found, value
    database.close()


def test_sums_and_maxima_of_many_expressions_are_grouped():
    numbers = [str(i) for i in range(250)]
    own = DIALECTS["postgresql"]
    assert own.total(numbers).count("(") == 3
    assert own.maximum(numbers).count("greatest") == 4
    assert own.maximum(["1"]) == "1"
