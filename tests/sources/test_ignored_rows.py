"""Rows of weight 0 decide on no type, no category and no cut point, wherever rows enter."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tanlearn import NaiveBayesClassifier, TableCounts, TableEncoder
from tanlearn.sources.validation import read_classes

NAMES = ["size", "number", "color"]


def _rows():
    """Return rows, classes and weights, and the same with rows of weight 0 that no column could contain."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = np.where(x + 0.5 * rng.normal(size=60) > 0, "yes", "no").tolist()
    X = [[value, i % 3, "ab"[i % 2]] for i, value in enumerate(x.tolist())]
    bad = [["Total", "many", 3.5], [float("inf"), 10**30, "c"], [True, 0.5, b"d"]]
    nasty = [*X[:10], bad[0], *X[10:], *bad[1:]]
    weights = [1] * 10 + [0] + [1] * 50 + [0, 0]
    return X, y, nasty, [*y[:10], None, *y[10:], 7.5, "maybe"], weights


def _parts(encoder):
    """Return all that an encoder has found."""
    categories = [None if known is None else known.tolist() for known in encoder.categories_]
    # Sums of parts are rounded otherwise than sums of the whole.
    typical = [None if values is None else np.round(values, 12).tolist() for values in encoder.typical_values_]
    cuts = [cut.tolist() for cut in encoder.discretizer_.cut_points_]
    return categories, cuts, typical, encoder.n_states_.tolist()


def _frame(rows):
    return pd.DataFrame(rows, columns=NAMES, dtype=object)


def _batches(frame, y, weights, n_rows):
    cuts = range(0, len(y), n_rows)
    return [(frame[k : k + n_rows], y[k : k + n_rows], weights[k : k + n_rows]) for k in cuts]


DOORS = {
    "fit of a list": lambda X, y, w: NaiveBayesClassifier().fit(X, y, w).encoder_,
    "fit of a frame": lambda X, y, w: NaiveBayesClassifier().fit(_frame(X), y, w).encoder_,
    "encoder": lambda X, y, w: TableEncoder().fit(_frame(X), y, w),
    "partial_fit": lambda X, y, w: NaiveBayesClassifier().partial_fit(_frame(X), y, ["no", "yes"], w).encoder_,
    "batches": lambda X, y, w: NaiveBayesClassifier().fit_batches(_batches(_frame(X), y, w, 61)).encoder_,
    "one batch of weight 0": lambda X, y, w: NaiveBayesClassifier().fit_batches(_batches(_frame(X), y, w, 1)).encoder_,
    "table": lambda X, y, w: (
        NaiveBayesClassifier().fit_batches(_frame(X).assign(y=y, w=w), "y", sample_weight="w", batch_rows=20).encoder_
    ),
    "counts": lambda X, y, w: TableCounts.of_source(_frame(X).assign(y=y, w=w), "y", sample_weight="w").encoder,
}


@pytest.mark.parametrize("door", DOORS)
def test_rows_of_weight_0_have_no_part_in_the_encoder(door):
    X, y, nasty, nasty_y, weights = _rows()
    expected = TableEncoder().fit(X, y)
    assert expected.is_discrete_.tolist() == [False, True, True]
    assert expected.n_states_[0] > 1
    assert _parts(DOORS[door](nasty, nasty_y, weights)) == _parts(expected)


def test_partitions_of_dask_agree():
    bag = pytest.importorskip("dask.bag")
    from tanlearn.dask import NaiveBayesClassifier as DaskNaiveBayesClassifier

    X, y, nasty, nasty_y, weights = _rows()
    source = bag.from_sequence(_batches(_frame(nasty), nasty_y, weights, 21), npartitions=3)
    assert _parts(DaskNaiveBayesClassifier().fit(source).encoder_) == _parts(TableEncoder().fit(X, y))


@pytest.mark.parametrize("table", [np.asarray, pl.DataFrame, pd.DataFrame, pa.table])
def test_numbers_of_ignored_rows_may_be_infinite(table):
    X, y = [[0.5], [1.5], [2.5], [3.5]], [0.0, 0.0, 1.0, 1.0]
    rows, weights = np.array([*X, [np.inf]]), [1, 1, 1, 1, 0]
    given = table(rows) if table is np.asarray else table({"x": rows[:, 0]})
    if table is pa.table:
        source = given.append_column("y", pa.array([*y, np.nan])).append_column("w", pa.array(weights))
        model = NaiveBayesClassifier().fit_batches(source, "y", sample_weight="w")
    else:
        model = NaiveBayesClassifier().fit(given, [*y, np.nan], weights)
    assert model.classes_.tolist() == [0, 1]
    assert _parts(model.encoder_) == _parts(TableEncoder().fit(X, y))
    with pytest.raises(ValueError, match="contains infinity: inf in row 4"):
        NaiveBayesClassifier().fit(rows, [*y, 1.0], [1, 1, 0, 1, 1])


def test_messages_keep_the_numbers_of_rows():
    with pytest.raises(TypeError, match=r"float \(0.5 in row 1\) and str \('a' in row 2\)"):
        TableEncoder().fit([["b"], [0.5], ["a"], [1.0]], [0, 1, 0, 1], [0, 1, 1, 1])
    with pytest.raises(ValueError, match=r"y holds 'c' in row 2, which is not among the classes"):
        TableCounts.of_source([([["a"], ["b"]], ["a", "b"])]).update([["a"], ["b"], ["a"]], ["z", "a", "c"], [0, 1, 1])
    with pytest.raises(ValueError, match=r"y is missing in row 2 \(1 of 3 rows\)"):
        read_classes(["a", None, None], 3, np.array([True, False, True]))
