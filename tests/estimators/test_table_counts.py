"""Counts of tables with what they are counts of: found, merged, kept in files, and refused where they differ."""

import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    NaiveBayesClassifier,
    PairCounts,
    Structure,
    TableCounts,
    TableEncoder,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu
from tanlearn.files import archive
from tanlearn.files.archive import kind_of_file
from tanlearn.files.regular_files import COUNTS, MODEL, SUMMARY

MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "given": BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [2, -1]])),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "AODE": AODEClassifier(),
    "forest": BayesForestClassifier(n_estimators=2, weights=None, random_state=0),
}


def table(n=240, seed=0):
    """Return numbers and categories with gaps, and classes of them."""
    rng = np.random.default_rng(seed)
    number, town = rng.normal(size=n).round(2), rng.choice(["Graz", "Linz", "Wien"], n)
    y = np.where((number > 0.2) ^ (town == "Wien") ^ (rng.random(n) < 0.1), "yes", "no")
    frame = pd.DataFrame({"number": number, "town": town, "rooms": rng.integers(1, 6, n), "area": rng.random(n) * 9})
    frame["area"] += 3 * (y == "yes")
    frame.loc[rng.random(n) < 0.1, ["town", "number"]] = None
    return frame, y


@pytest.fixture
def counts():
    frame, y = table()
    return TableCounts.of_source(frame.assign(sold=y), "sold")


def test_a_source_is_counted_as_batches_are():
    frame, y = table()
    weights = np.arange(240) % 3
    whole = NaiveBayesClassifier().fit(frame, y, weights)
    labelled = frame.assign(sold=y, times=weights)
    arrow = pa.Table.from_pandas(labelled, preserve_index=False)
    for source in (labelled, arrow, pl.from_pandas(labelled), lambda: arrow):
        found = TableCounts.of_source(source, "sold", sample_weight="times", batch_rows=64)
        assert isinstance(found.counts, PairCounts)
        np.testing.assert_array_equal(NaiveBayesClassifier().from_counts(found).tables_.cells, whole.tables_.cells)
    single = TableCounts.of_source([(frame, y, weights)], pairs=False)
    assert type(single.counts).__name__ == "FamilyCounts"
    np.testing.assert_array_equal(NaiveBayesClassifier().from_counts(single).tables_.cells, whole.tables_.cells)


def test_batches_have_as_many_rows_as_asked(monkeypatch):
    frame, y = table()
    sizes, add = [], TableCounts._add
    monkeypatch.setattr(TableCounts, "_add", lambda self, X, *rest: sizes.append(X.n_samples) or add(self, X, *rest))
    TableCounts.of_source(frame.assign(sold=y), "sold", batch_rows=100)
    assert sizes == [100, 100, 40]


def test_an_encoder_may_be_named():
    frame, y = table()
    encoder = TableEncoder(discrete_features=["town", "rooms", "area", "number"])
    found = TableCounts.of_source(frame.assign(sold=y), "sold", encoder=encoder, pairs=False)
    assert found.encoder.is_discrete_.all()
    assert not hasattr(encoder, "n_states_")


def test_several_places_make_the_counts_of_one(counts):
    frame, y = table()
    labelled = frame.assign(sold=y)[["sold", "town", "area", "number", "rooms"]]  # columns are found by name
    parts = [TableCounts.of_source(labelled[rows], "sold", like=counts) for rows in (slice(0, 100), slice(100, None))]
    assert parts[0].merge(parts[1]) == counts
    assert counts.empty().merge(counts) == counts
    rows = counts.empty().update(frame[:100], y[:100]).update(frame[100:], y[100:], np.ones(140, int))
    assert rows == counts
    assert rows.update(frame, y, np.zeros(240)) == counts


def test_like_a_model_in_what_that_counts():
    frame, y = table()
    labelled = frame.assign(sold=y)
    for model in (AODEClassifier(), BayesForestClassifier(n_estimators=2, weights=None, random_state=0)):
        seen = clone(model).fit_batches(labelled, "sold")
        assert TableCounts.of_source(labelled, "sold", like=seen) == TableCounts.of_model(seen)
    whole = AODEClassifier().fit(frame, y)
    again = AODEClassifier().from_counts(TableCounts.of_source(labelled, "sold", like=whole))
    np.testing.assert_array_equal(again.predict_proba(frame), whole.predict_proba(frame))


def test_what_like_settles_is_left_out(counts):
    frame, y = table()
    for setting in ({"encoder": TableEncoder()}, {"columns": ["town"]}, {"pairs": False}, {"exact": True}):
        with pytest.raises(ValueError, match="must not be passed with like, which determines columns"):
            TableCounts.of_source(frame.assign(sold=y), "sold", like=counts, **setting)
    with pytest.raises(TypeError, match="like must be a TableCounts or a fitted classifier, got TableEncoder"):
        TableCounts.of_source(frame.assign(sold=y), "sold", like=TableEncoder())
    turned = frame[["town", "number", "rooms", "area"]]
    with pytest.raises(
        ValueError, match=r"(?s)batch 0.*the columns must have the names of the counts, .* got .*'town', 'number'"
    ):
        TableCounts.of_source([(turned, y)], like=counts)
    with pytest.raises(ValueError, match="no column is called 'area'"):
        TableCounts.of_source(frame.drop(columns="area").assign(sold=y), "sold", like=counts)


def changed(frame, y, *, town=None, **columns):
    """Return counts of a table that was changed."""
    frame = frame.assign(**columns)
    if town is not None:
        frame["town"] = frame["town"].replace(*town)
    return TableCounts.of_source(frame.assign(sold=y), "sold")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, y: changed(X, y, town=("Wien", "Wels")),
            "X column 'town' has the category 'Wien' here, which is unknown",
        ),
        (lambda X, y: changed(X, y, town=("Wien", None)), "'Wien' here, which is unknown there"),
        (lambda X, y: changed(X, y, town=(["Wien", None], ["Wien", "Wels"])), "'Wels' there, which is unknown here"),
        (lambda X, y: changed(X, y, town=("Linz", "Zell")), "X column 'town' has the category 'Linz' here"),
        (lambda X, y: changed(X, y, rooms=X["rooms"].astype(str)), "X column 'rooms' has the category 1 here"),
        (lambda X, y: changed(X, y, area=X["area"] + 1), r"X column 'area' has the cut point \S+ here and \S+ there"),
        (lambda X, y: changed(X, y, area=0.5), r"X column 'area' has \d cut point\(s\) here and 0 there"),
        (lambda X, y: changed(X, y, area="a"), "X column 'area' has cut points here and categories there"),
        (
            lambda X, y: changed(X.rename(columns={"rooms": "beds"}), y),
            "column 2 is X column 'rooms' here and X column",
        ),
        (lambda X, y: changed(X[["town", "rooms"]], y), "there are 4 columns here and 2 there"),
        (lambda X, y: changed(X, np.where(y == "no", "nein", "ja")), "the classes are .*'no', 'yes'.* here and .*'ja'"),
        (lambda X, y: TableCounts.of_source([(X.to_numpy(object), y)]), "columns have names here, and none there"),
    ],
)
def test_counts_in_other_categories_or_cuts_are_refused(counts, change, message):
    frame, y = table()
    before = counts.counts.to_bytes()
    other = change(frame, y)
    with pytest.raises(ValueError, match=message) as caught:
        counts.merge(other)
    assert "Count one of them again with the categories of the other: TableCounts.of_source(..., like=other)" in str(
        caught.value
    )
    assert counts.counts.to_bytes() == before
    assert counts != other


def test_declared_categories_have_their_order(counts):
    frame, y = table()
    there = frame.assign(town=pd.Categorical(frame["town"], ["Wien", "Linz", "Graz"]))
    with pytest.raises(ValueError, match="X column 'town' has its categories in another order there"):
        counts.merge(TableCounts.of_source(there.assign(sold=y), "sold"))


def test_counts_of_another_kind_are_refused(counts):
    frame, y = table()
    other = TableCounts.of_source([(frame, y)], pairs=False)
    with pytest.raises(TypeError, match=r"PairCounts and FamilyCounts cannot be added.*pairs, or single values"):
        counts.merge(other)


def test_rows_that_break_a_rule_change_nothing(counts):
    frame, y = table()
    before = counts.counts.to_bytes()
    for X, labels, weights, message in (
        (frame, ["maybe"] * 240, None, "y holds 'maybe' in row 0"),
        (frame[["town", "number", "rooms", "area"]], y, None, "feature names"),
        (frame.drop(columns="town"), y, None, "feature"),
        (frame, y, -np.ones(240), "sample_weight must be non-negative, but is -1"),
    ):
        with pytest.raises(ValueError, match=message):
            counts.update(X, labels, weights)
    assert counts.counts.to_bytes() == before


def test_rows_of_no_weight_may_hold_anything(counts):
    frame, y = table()
    expected = counts.empty().update(frame[1:], y[1:])
    odd = frame.copy()
    odd.loc[0, "area"] = np.inf
    found = counts.empty().update(odd, np.where(np.arange(240) == 0, "never", y), np.arange(240) > 0)
    assert found.counts.class_counts.tolist() == expected.counts.class_counts.tolist()
    assert found.merge(expected).counts.class_counts.sum() == 2 * 239


def test_a_model_without_counts_says_what_to_do():
    with pytest.raises(ValueError, match=r"NaiveBayesClassifier has no counts.*of_source\(\.\.\., like=model\)"):
        TableCounts.of_model(NaiveBayesClassifier().fit(*table()))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_file_holds_all(model, tmp_path):
    frame, y = table()
    seen = clone(model).fit_batches([(frame, y, np.arange(240) % 3)])
    counts, path = TableCounts.of_model(seen), tmp_path / "all.counts"
    counts.save(path)
    again = TableCounts.load(path)
    assert again == counts
    assert repr(again) == repr(counts)
    found = clone(model).from_counts(again)
    np.testing.assert_array_equal(found.predict_proba(frame), seen.predict_proba(frame))
    found.partial_fit(frame, y)
    np.testing.assert_array_equal(found.predict_proba(frame), seen.partial_fit(frame, y).predict_proba(frame))
    assert (kind_of_file(path, MODEL, COUNTS), kind_of_file(path, MODEL, SUMMARY)) == (COUNTS, None)
    real = counts.empty().update(frame, y, np.full(240, 0.3))
    real.save(path)
    assert TableCounts.load(path) == real
    assert kind_of_file(tmp_path / "nothing", COUNTS) is kind_of_file(tmp_path, COUNTS) is None


def test_a_file_of_another_encoder_or_kind_is_not_written(tmp_path):
    frame, y = table()
    path = tmp_path / "all.counts"
    path.write_text("what was there")
    with pytest.raises(TypeError, match=r"not RowCounts. Save the model that was fitted to these counts"):
        TableCounts.of_model(AnDEClassifier().fit_batches([(frame, y)])).save(path)
    numbers = frame[["rooms", "area"]]
    encoder = TableEncoder(discrete_features=False, discretizer=Bins()).fit(numbers, y)
    counts = TableCounts(PairCounts(encoder.n_states_, 2), encoder=encoder, classes=["no", "yes"]).update(numbers, y)
    with pytest.raises(ValueError, match="uses Bins, but files can store"):
        counts.save(path)
    assert counts.empty().merge(counts) == counts  # of one and the same fit
    assert path.read_text() == "what was there"


def test_damage_is_told(counts, tmp_path):
    path = tmp_path / "all.counts"
    counts.save(path)
    content = path.read_bytes()
    for wrong, message in (
        (content[:-300], r"damaged \(truncated or altered\)\. Use an intact copy, or count again"),
        (content[:900] + bytes([content[900] ^ 1]) + content[901:], r"damaged \(truncated or altered\)"),
        (b"town,sold\nGraz,no\n", "it is not a tanlearn counts file. Name a file that tanlearn counts has written"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=f"{re.escape(repr(str(path)))} cannot be loaded: .*{message}"):
            TableCounts.load(path)
    NaiveBayesClassifier().fit(*table()).save(path)
    with pytest.raises(ValueError, match="format 'tanlearn model' instead of format 'tanlearn counts file'"):
        TableCounts.load(path)
    with pytest.raises(OSError, match="counts file cannot be read"):
        TableCounts.load(tmp_path / "nothing")


def test_what_a_forger_writes_is_refused(tmp_path):
    frame, y = table()
    path = tmp_path / "forged.counts"

    def forge(model, change):
        counts = TableCounts.of_model(clone(MODELS[model]).fit_batches([(frame, y)]))
        counts.save(path)
        description, arrays = archive.unpack(path.read_bytes(), COUNTS)
        change(description, arrays)
        path.write_bytes(archive.pack(description, arrays, COUNTS))
        with pytest.raises(ValueError, match="cannot be loaded"):
            TableCounts.load(path)

    def of(description, name):
        return description["counts"][name]["member"]

    for model in MODELS:
        forge(model, lambda d, a: d.update(kind="Counts"))
        forge(model, lambda d, a: d["counts"].popitem())
        forge(model, lambda d, a: d.update(counts=[]))
    for model, name in (("naive Bayes", "cells"), ("Chow-Liu", "cells"), ("Chow-Liu", "pairs"), ("forest", "counts")):
        forge(model, lambda d, a, name=name: a.update({of(d, name): -a[of(d, name)]}))
        forge(model, lambda d, a, name=name: a.update({of(d, name): a[of(d, name)][1:]}))
        forge(model, lambda d, a, name=name: a.update({of(d, name): a[of(d, name)].astype(np.int32)}))
    forge("naive Bayes", lambda d, a: a.update({d["counts"]["structure"]["parents"]: np.full((2, 2), -1)}))
    forge("forest", lambda d, a: a.update({of(d, "keys"): a[of(d, "keys")] + 2**40}))
    forge("forest", lambda d, a: a.update({of(d, "keys"): a[of(d, "keys")][::-1].copy()}))
    forge("forest", lambda d, a: a.update({of(d, "n_cells"): -a[of(d, "n_cells")]}))


def test_a_file_is_there_whole_or_not_at_all(counts, tmp_path, monkeypatch):
    path = tmp_path / "all.counts"
    path.write_text("what was there")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"the counts file cannot be written .*An existing file is unchanged"):
        counts.save(path)
    assert [found.name for found in tmp_path.iterdir()] == ["all.counts"]
    assert path.read_text() == "what was there"


class Bins:
    """A discretizer of somebody else."""

    def get_params(self, deep=False):
        return {}

    def set_params(self):
        return self

    def fit(self, X, y=None, sample_weight=None):
        self.n_states_ = np.full(np.shape(X)[1], 2)
        return self

    def transform(self, X):
        return (np.asarray(X) > 3).astype(np.uint8)
