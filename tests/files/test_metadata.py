"""Metadata of model files: values of the user, date, rows, columns and versions."""

import re

import numpy as np
import pandas as pd
import pytest

import tanlearn
from tanlearn import NaiveBayesClassifier
from tanlearn.files.metadata import check_metadata

ROWS = pd.DataFrame({"town": ["a", "b", "a", "b", "c"], "size": ["s", "t", "t", "s", "s"]})
CLASSES = [0, 1, 0, 1, 1]
VALID = {"saved": "2026-01-31T23:59:59Z", "rows": 3, "columns": 2, "versions": {"numpy": "2.0"}, "user": {}}


def saved(model, folder, **options):
    """Return a model read from a file."""
    model.save(folder / "model.tan", **options)
    return tanlearn.load(folder / "model.tan")


def test_values_of_the_user_survive_with_date_rows_and_versions(tmp_path):
    user = {"author": "Ada", "tags": ["x", 2, 0.5, None, {"deep": True}], "größe": "ü"}
    weights = [1.0, 2.0, 1.0, 1.0, 0.0]
    found = saved(NaiveBayesClassifier().fit(ROWS, CLASSES, weights), tmp_path, metadata=user).metadata_
    assert found["user"] == user
    assert (found["rows"], found["columns"]) == (4, 2)  # a weight of 0 equals removing the row
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["saved"])
    assert found["versions"]["tanlearn"] == tanlearn.__version__
    assert found["versions"]["numpy"] == np.__version__


def test_files_without_metadata_have_none_and_a_loaded_model_keeps_its_own(tmp_path):
    model = NaiveBayesClassifier().fit(ROWS, CLASSES)
    assert model.metadata_ is None
    assert saved(model, tmp_path).metadata_ is None
    first = saved(model, tmp_path, metadata={"n": 1})
    content = (tmp_path / "model.tan").read_bytes()
    second = saved(first, tmp_path)
    assert (tmp_path / "model.tan").read_bytes() == content
    third = saved(second, tmp_path, metadata={"n": 2})
    assert (third.metadata_["user"], third.metadata_["rows"]) == ({"n": 2}, 5)
    third.fit(ROWS[:3], CLASSES[:3])
    assert third.metadata_ is None
    assert saved(third, tmp_path, metadata={}).metadata_["rows"] == 3


def test_rows_of_batches_are_added(tmp_path):
    model = NaiveBayesClassifier().partial_fit(ROWS, CLASSES, [0, 1]).partial_fit(ROWS[:2], CLASSES[:2])
    again = saved(model, tmp_path, counts=True, metadata={})
    assert again.metadata_["rows"] == 7
    again.partial_fit(ROWS[:1], CLASSES[:1])
    assert again.metadata_ is None
    assert saved(again, tmp_path, metadata={}).metadata_["rows"] == 8


def test_rows_of_counts_are_their_sum_and_otherwise_unknown(tmp_path):
    batches = NaiveBayesClassifier().fit_batches(lambda: iter([(ROWS, CLASSES)]))
    assert saved(batches, tmp_path, metadata={}).metadata_["rows"] == 5
    assert saved(saved(batches, tmp_path), tmp_path, metadata={}).metadata_["rows"] is None


@pytest.mark.parametrize("metadata", ["text", {1: 2}, [("a", 1)]])
def test_metadata_must_be_a_dictionary_by_strings(metadata, tmp_path):
    model = NaiveBayesClassifier().fit(ROWS, CLASSES)
    with pytest.raises(TypeError, match="metadata must be a dict with strings as keys"):
        model.save(tmp_path / "model.tan", metadata=metadata)
    with pytest.raises(ValueError, match=r"metadata cannot be saved with .* but not object. Convert it"):
        model.save(tmp_path / "model.tan", metadata={"a": object()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"saved": "yesterday"}, "the date in the metadata must have a form like"),
        ({"saved": 7}, "the date in the metadata must have a form like"),
        ({"rows": -1}, "numbers of rows and columns in the metadata must be nonnegative integers, got -1 and 2"),
        ({"columns": None}, "numbers of rows and columns in the metadata must be nonnegative integers"),
        ({"versions": {"numpy": 2}}, "the versions of the metadata must be a dictionary of strings"),
        ({"versions": []}, "the versions of the metadata must be a dictionary of strings"),
        ({"user": []}, "'user' in the metadata must be a dictionary"),
        ({"other": 1}, "expected an object with the keys saved, rows, columns, versions, user"),
    ],
)
def test_metadata_of_a_file_is_checked(changes, message):
    assert check_metadata(VALID) is VALID
    with pytest.raises(ValueError, match=message):
        check_metadata({**VALID, **changes})
