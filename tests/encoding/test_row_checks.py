"""Counts of missing, unseen and out-of-range values, of every kind of table and classifier."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tanlearn
from tanlearn import BayesForestClassifier, NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import AODEClassifier
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.files.encoders import describe_table
from tanlearn.files.values import Writer

N = 60
Y = np.arange(N) % 2
AGE = np.linspace(20, 50, N) + 100 * Y
FRAME = pd.DataFrame({"purpose": np.where(Y, "car", "house"), "age": AGE, "rooms": Y + 1})
NEW = pd.DataFrame(
    {"purpose": ["boat", None, "car", "boat"], "age": [19.0, np.nan, 20.0, 151.0], "rooms": [1, 2, 9, 2]}
)
EXPECTED = {"missing": [1, 1, 0], "unseen": [2, 0, 1], "out_of_range": [0, 2, 0]}


@pytest.mark.parametrize(
    "model",
    [
        TableEncoder(), NaiveBayesClassifier(), AODEClassifier(), BayesForestClassifier(random_state=0),
        TANClassifier(n_epochs=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_every_classifier_counts_what_it_cannot_use(model):
    check = model.fit(FRAME, Y).check_rows(NEW)
    frame = check.to_frame()
    assert frame.index.tolist() == ["purpose", "age", "rooms"]
    assert frame.to_dict("list") == EXPECTED
    assert not check.is_clean
    assert check.messages() == [
        "purpose: 2 of 4 rows hold values not seen in training ('boat'), which count as missing.",
        "age: 2 of 4 rows hold numbers outside the training range of 20 to 150 (19.0).",
        "rooms: 1 of 4 rows holds a value not seen in training (9), which counts as missing.",
    ]
    clean = model.check_rows(FRAME)
    assert clean.is_clean
    assert str(clean) == "60 rows, 3 columns\nAll values were seen in training."
    assert (clean + check).n_samples == 64
    assert (clean + check).to_frame().to_dict("list") == EXPECTED
    assert [own.example for own in (clean + check + clean).columns] == ["boat", 19.0, 9]
    assert (frame.index.name, str(frame["out_of_range"].dtype)) == ("column", "Int64")
    # What is unseen is what the model treats as missing.
    if hasattr(model, "encoder_"):
        assert (encode_rows(model, NEW)[0] == 255).sum() == 3


@pytest.mark.parametrize(
    "as_table",
    [
        lambda frame: frame, pl.from_pandas, lambda frame: frame.astype({"purpose": "category"}),
        lambda frame: frame.astype({"age": "Float64", "rooms": "Int8"}), lambda frame: frame.astype(object),
    ],
)  # fmt: skip
def test_frames_of_any_kind_count_the_same(as_table):
    encoder = TableEncoder().fit(FRAME, Y)
    assert encoder.check_rows(as_table(NEW)).to_frame().to_dict("list") == EXPECTED


def test_lists_and_arrays_are_checked_by_numbers_of_columns():
    rows = NEW.to_numpy(dtype=object).tolist()
    encoder = TableEncoder().fit(FRAME.to_numpy(dtype=object).tolist(), Y)
    frame = encoder.check_rows(rows).to_frame()
    assert frame.index.tolist() == [0, 1, 2]
    assert frame.to_dict("list") == EXPECTED
    numbers = NaiveBayesClassifier().fit(AGE[:, np.newaxis], Y)
    check = numbers.check_rows(np.array([[1.0], [np.nan], [400.0], [30.0]]))
    assert (check.columns[0].n_missing, check.columns[0].n_out_of_range) == (1, 2)
    with pytest.raises(ValueError, match="2 features"):
        numbers.check_rows(np.zeros((3, 2)))


def test_numbers_where_strings_were_are_unseen():
    assert TableEncoder().fit(FRAME, Y).check_rows(NEW.assign(purpose=7)).columns[0].n_unseen == 4
    with pytest.raises(TypeError, match="held numbers in fit"):
        TableEncoder().fit(FRAME, Y).check_rows(NEW.assign(age="old"))


def test_ranges_are_kept_in_files_and_unknown_in_those_of_earlier_versions(tmp_path):
    model = NaiveBayesClassifier().fit(FRAME, Y)
    model.save(tmp_path / "model.tan")
    for again in (tanlearn.load(tmp_path / "model.tan"), pickle.loads(pickle.dumps(model))):
        assert again.encoder_.value_ranges_ == [None, (20.0, 150.0), None]
        assert again.check_rows(NEW).to_frame().to_dict("list") == EXPECTED
    assert "value_ranges" in describe_table(Writer(), model.encoder_, model.classes_, None, "model")["encoder"]
    model.encoder_.value_ranges_ = [None] * 3  # as read from a file of an earlier version
    assert "value_ranges" not in describe_table(Writer(), model.encoder_, model.classes_, None, "model")["encoder"]
    model.save(tmp_path / "old.tan")
    old = tanlearn.load(tmp_path / "old.tan")
    assert old.encoder_.value_ranges_ == [None] * 3
    for unknown in (model, old):
        check = unknown.check_rows(NEW)
        assert check.columns[1].n_out_of_range is None
        assert check.to_frame()["out_of_range"].isna().tolist() == [False, True, False]
        assert "age: the training range is unknown." in str(check)
        assert (check + check).columns[1].n_out_of_range is None


@pytest.mark.parametrize("n_rows", [7, 60])
def test_batches_and_chunks_have_the_range_of_all_rows(n_rows):
    def rows():
        for first in range(0, N, n_rows):
            yield FRAME[first : first + n_rows], Y[first : first + n_rows]

    assert NaiveBayesClassifier().fit_batches(rows).encoder_.value_ranges_ == [None, (20.0, 150.0), None]


def test_missing_columns_and_integers_have_ranges_too():
    X = pd.DataFrame({"none": np.full(N, np.nan), "n": pd.array([None, *range(5, N + 4)], "Int64")})
    encoder = NaiveBayesClassifier().fit(X, np.arange(N) > 30).encoder_
    assert repr(encoder.value_ranges_) == "[None, (5.0, 63.0)]"
    held = TableEncoder(discrete_features=False).fit(X, np.arange(N) > 30)
    assert repr(held.value_ranges_) == "[(nan, nan), (5.0, 63.0)]"
    assert held.check_rows(pd.DataFrame({"none": [1.0], "n": [64]})).to_frame()["out_of_range"].tolist() == [0, 1]
