"""Tables that are too large are refused before they are made; what rows cannot fill is counted by rows."""

import re
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from tanlearn import BayesNetClassifier, EncodedData, PairCounts, Structure, TANClassifier, _memory
from tanlearn._memory import TableMemoryError, check_memory
from tanlearn.baselines import AODEClassifier, ChowLiu, GreedySearch, KDependence, OrderSearch
from tanlearn.structures.table_layout import TableLayout

RNG = np.random.default_rng(0)
GIB = 2**30


def wide_table(n_features, n_values, n_classes):
    """Every column holds each of its values once."""
    X = np.column_stack([RNG.permutation(n_values) for _ in range(n_features)])
    return X.astype(str), np.arange(n_values) % n_classes


@pytest.mark.parametrize(
    ("n_bytes", "cells_a_row", "installed", "limit", "is_refused"),
    [
        (8 * GIB, 1.0, 64, None, False),
        (8 * GIB + 1, 1.0, 64, None, True),
        (4 * GIB, 1.0, 8, None, False),
        (4 * GIB + 1, 1.0, 8, None, True),
        (8 * GIB, 1.0, None, None, False),
        (8 * GIB + 1, 1.0, None, None, True),
        (2 * GIB, 100.5, 64, None, False),
        (2 * GIB + 1, 100.5, 64, None, True),
        (2 * GIB + 1, 100.0, 64, None, False),
        (20 * GIB, 1000.0, 64, "20", False),
        (1 * GIB, 1.0, 64, "0.5", True),
    ],
)
def test_limit_is_that_of_the_library_the_machine_the_rows_or_the_user(
    n_bytes, cells_a_row, installed, limit, is_refused, monkeypatch
):
    def sysconf(name):
        if installed is None:
            raise ValueError(name)
        return {"SC_PHYS_PAGES": installed * GIB // 4096, "SC_PAGE_SIZE": 4096}[name]

    monkeypatch.setattr(_memory.os, "sysconf", sysconf)
    monkeypatch.setattr(_memory, "_restrictions", list)
    monkeypatch.delenv("TANLEARN_MAX_TABLE_GIB", raising=False)
    if limit is not None:
        monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", limit)
    if is_refused:
        with pytest.raises(TableMemoryError, match=r"the thing has 7 entries, which need .* [GM]iB\. Do less; or set"):
            check_memory(7, n_bytes, cells_a_row, "the thing", "Do less")
    else:
        check_memory(7, n_bytes, cells_a_row, "the thing", "Do less")


ESTIMATORS = {
    "two parents": (
        BayesNetClassifier(structure=KDependence(k=2)),
        r"X column \d given X column \d and X column \d \(30 x 30 x 30 x 2 val",
    ),
    "gradient": (TANClassifier(n_epochs=1), r"X column \d given X column \d \(30 x 30 x 2 values and classes\) has"),
    "edges": (
        BayesNetClassifier(structure=GreedySearch()),
        r"CPTs of all edges between 4 features of up to 30 values \(X column \d has 30\)",
    ),
    "ensemble": (
        AODEClassifier(),
        r"ensemble over all pairs of 4 features \(X column \d has 30 values\) has 29,282 entries",
    ),
}


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_estimators_refuse_with_cells_bytes_and_remedy(name, monkeypatch):
    estimator, message = ESTIMATORS[name]
    X, y = wide_table(4, 30, 2)
    estimator.fit(X, y)
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", "1e-4")
    with pytest.raises(ValueError, match=message) as error:
        estimator.fit(X, y)
    assert isinstance(error.value, MemoryError)
    assert re.search(
        r"[\d,]+ entries, which need \d+\.\d MiB, but arrays .*may take at most 0\.1 MiB", str(error.value)
    )
    assert "merge, discretize or leave out columns" in str(error.value)


def test_state_of_all_pairs_is_refused_before_it_is_made():
    with pytest.raises(TableMemoryError, match=r"counts of all pairs of 20 features \(feature 0 has 5,000 values\)"):
        PairCounts([5000] * 20, 2)


def test_two_parents_of_three_hundred_values_are_refused_at_once():
    X, y = wide_table(6, 300, 10)
    tracemalloc.start()
    with pytest.raises(TableMemoryError, match=r"300 x 300 x 300 x 10 .* GiB"):
        BayesNetClassifier(structure=KDependence(k=2)).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**28  # dense tables would be 8 GiB


def test_tables_of_more_cells_than_64_bits_number_are_refused():
    structure = Structure([[-1] * 6] * 6 + [[0, 1, 2, 3, 4, 5]])
    layout = TableLayout.of_parents(structure.parents, np.full(7, 5000), 2)
    with pytest.raises(TableMemoryError, match=r"feature 6 given feature 0 and feature 1 .* 5000 x 5000 .* entries"):
        _ = layout.n_cells


def test_a_tree_over_wide_columns_takes_little_more_than_its_tables():
    X, y = wide_table(3, 1000, 4)
    tracemalloc.start()
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.tables_.cells.nbytes > 6e7
    assert peak < 2.5 * model.tables_.cells.nbytes  # counts and logarithms, and no count of pairs


def test_search_over_wide_pairs_of_parents_makes_no_tables_of_pairs():
    X, y = wide_table(4, 200, 2)
    tracemalloc.start()
    data = EncodedData.from_codes(np.unique(X, return_inverse=True)[1].reshape(X.shape), y)
    OrderSearch(max_parents=2).learn(data, RNG)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**28  # one dense table of a pair has 16 million cells, 128 MB, and there are three at a time


@pytest.mark.parametrize("value", ["a lot", "", "-1", "nan", "0"])
def test_a_limit_that_is_no_number_is_refused_by_its_name(value, monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", value)
    with pytest.raises(ValueError, match=r"TANLEARN_MAX_TABLE_GIB must be a positive number of GiB, got"):
        check_memory(1, 1, 1.0, "the thing", "Do less")


def test_an_unknown_size_of_the_machine_is_no_limit(monkeypatch):
    monkeypatch.delenv("TANLEARN_MAX_TABLE_GIB", raising=False)
    monkeypatch.setattr(_memory.os, "sysconf", lambda name: -1)
    monkeypatch.setattr(_memory, "_restrictions", list)
    check_memory(1, 8 * GIB, 1.0, "the thing", "Do less")


def test_chunks_are_refused_before_anything_is_made():
    X, y = wide_table(3, 3000, 10)
    model = BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1]]))
    with pytest.raises(
        TableMemoryError,
        match=r"feature 2 given feature 0 and feature 1 \(3000 x 3000 x 3000 x 10 values and classes\)",
    ):
        model.partial_fit(X, y, classes=np.arange(10))


def test_a_stream_that_was_accepted_is_not_refused_for_a_short_chunk(monkeypatch):
    monkeypatch.setattr(_memory, "_MOST", 2**20)
    X, y = wide_table(2, 150, 2)
    model = BayesNetClassifier(structure=Structure([[-1, -1], [0, -1]])).partial_fit(X, y, classes=[0, 1])
    before = model.counts_.cells.sum()
    assert model.partial_fit(X[:3], y[:3]).counts_.cells.sum() > before
    with pytest.raises(TableMemoryError, match="entries per row"):
        clone(model).fit(X, y)


def test_search_names_the_features_of_the_user():
    X, y = wide_table(4, 30, 2)
    data = EncodedData.from_codes(np.unique(X, return_inverse=True)[1].reshape(X.shape), y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TANLEARN_MAX_TABLE_GIB", "2e-4")
        with pytest.raises(TableMemoryError, match=r"the set of CPTs of feature \d given \d candidate sets"):
            OrderSearch(max_parents=2).learn(data, RNG)
