"""Tables of other libraries are read with their names, or refused with the call that makes rows of them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from tanlearn import NaiveBayesClassifier, TableEncoder

FRAME = pd.DataFrame({"town": ["Graz", "Linz"] * 10, "age": np.arange(20) / 3})
Y = [0] * 10 + [1] * 10


def _class(module, name, **attributes):
    """Return an object that looks like one of a library that is not installed."""
    return type(name, (), {"__module__": module, **attributes})()


def _lazy():
    nw, duckdb, dask = map(pytest.importorskip, ("narwhals", "duckdb", "dask.dataframe"))
    relation = duckdb.from_arrow(pa.table({"town": ["Graz"]}))
    yield pl.DataFrame(FRAME).lazy(), "polars LazyFrame", "X.collect()"
    yield nw.from_native(pl.DataFrame(FRAME).lazy()), "narwhals LazyFrame", "X.collect()"
    yield nw.from_native(relation), "narwhals LazyFrame", "X.collect()"
    yield relation, "DuckDB relation", "X.df() or X.pl()"
    yield dask.from_pandas(FRAME, npartitions=2), "Dask DataFrame", "X.compute(), or use the classifiers of"
    table = pa.table({"town": ["Graz"]})
    yield table.to_reader(), "pyarrow RecordBatchReader", "X.read_all()"
    yield pyarrow.dataset.dataset(table), "pyarrow Dataset", "X.to_table()"
    yield pyarrow.dataset.dataset(table).scanner(), "pyarrow Scanner", "X.to_table()"
    yield _class("pyspark.sql.classic.dataframe", "DataFrame"), "Spark DataFrame", "X.toPandas()"
    yield _class("ibis.expr.types.relations", "Table"), "Ibis table", "X.to_pandas()"


def test_queries_are_refused_with_the_call_that_runs_them():
    model = NaiveBayesClassifier().fit(FRAME, Y)
    for X, name, call in _lazy():
        message = re.escape(f"X is a {name}, a query that has no rows yet. Run it first: pass {call}")
        for use in (
            lambda X: NaiveBayesClassifier().fit(X, Y),
            lambda X: TableEncoder().fit(X, Y),
            lambda X: NaiveBayesClassifier().partial_fit(X, Y, [0, 1]),
            model.predict,
            model.encoder_.encode,
        ):
            with pytest.raises(TypeError, match=message):
                use(X)


def _eager():
    nw = pytest.importorskip("narwhals")
    table = pa.table(FRAME)
    yield pl.DataFrame(FRAME)
    yield nw.from_native(FRAME)
    yield nw.from_native(pl.DataFrame(FRAME))
    yield nw.from_native(table)
    yield table
    yield table.to_batches()[0]
    yield pa.concat_tables([table.slice(0, 7), table.slice(7)])
    yield _class("modin.pandas.dataframe", "DataFrame", columns=FRAME.columns, _to_pandas=lambda self: FRAME)


def test_frames_are_read_with_their_names():
    expected = NaiveBayesClassifier().fit(FRAME, Y)
    for X in _eager():
        model = NaiveBayesClassifier().fit(X, Y)
        assert model.feature_names_in_.tolist() == ["town", "age"], type(X)
        assert model.encoder_.categories_[0].tolist() == ["Graz", "Linz"]
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(FRAME))
        np.testing.assert_array_equal(model.predict_proba(FRAME), expected.predict_proba(X))


SELECT = "Select the columns by name: {}."
MISSING = "Columns that are not available can be missing in every row: {}"


@pytest.mark.parametrize(
    ("X", "remedy"),
    [
        (FRAME[["age", "town"]], SELECT.format("X[list(model.feature_names_in_)]")),
        (FRAME.assign(y=Y), SELECT.format("X[list(model.feature_names_in_)]")),
        (FRAME[["age"]], MISSING.format("X.reindex(columns=model.feature_names_in_).")),
        (FRAME[["age"]].assign(y=Y), MISSING.format("X.reindex(columns=model.feature_names_in_).")),
        (pl.DataFrame(FRAME)[["age", "town"]], SELECT.format("X.select(list(model.feature_names_in_))")),
        (pl.DataFrame(FRAME)[["age"]], "X.with_columns(polars.lit(None).alias(name)), then select the columns of fit"),
        (
            pa.Table.from_pandas(FRAME[["age"]]),
            MISSING.format("X.to_pandas().reindex(columns=model.feature_names_in_)."),
        ),
        (pa.Table.from_pandas(FRAME[["age", "town"]]), SELECT.format("X.select(list(model.feature_names_in_))")),
    ],
)
def test_other_columns_are_refused_with_the_remedy(X, remedy):
    model = NaiveBayesClassifier().fit(FRAME, Y)
    for use in (
        model.predict,
        model.encoder_.encode,
        lambda X: NaiveBayesClassifier().partial_fit(FRAME, Y, [0, 1]).partial_fit(X, Y),
    ):
        with pytest.raises(ValueError, match=re.escape(remedy)):
            use(X)


def test_tables_without_names_need_the_columns_of_fit():
    model = NaiveBayesClassifier().fit([["a", 1], ["b", 2]], [0, 1])
    with pytest.raises(ValueError, match="Pass the 2 columns of fit in their order"):
        model.predict([["a"]])


def test_the_remedy_works():
    model = NaiveBayesClassifier().fit(FRAME, Y)
    for X in (FRAME[["age"]], FRAME[["age", "town"]], FRAME.assign(y=Y)):
        found = model.predict_proba(X.reindex(columns=model.feature_names_in_))
        known = FRAME.assign(town=None) if "town" not in X else FRAME
        np.testing.assert_array_equal(found, model.predict_proba(known))
    table = pa.Table.from_pandas(FRAME)
    found = model.predict_proba(table.select(["age"]).to_pandas().reindex(columns=model.feature_names_in_))
    np.testing.assert_array_equal(found, model.predict_proba(FRAME.assign(town=None)))
    swapped = table.select(["age", "town"]).select(list(model.feature_names_in_))
    np.testing.assert_array_equal(model.predict_proba(swapped), model.predict_proba(FRAME))
