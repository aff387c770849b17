"""Files of TANDensity and TANImputer: equal results after loading, and refusal of inconsistent values."""

import numpy as np
import pandas as pd
import pytest
from support.saved_models import FRAME, HOLED

import tanlearn
from tanlearn import QuantileDiscretizer, TableEncoder, TANDensity, TANImputer
from tanlearn.cli.models import ModelFile
from tanlearn.density.stored_numbers import IntervalNumbers
from tanlearn.sources.columns import read_columns

ROWS = HOLED.drop(columns="key")
MIXED = FRAME.drop(columns="key")
INCOMPLETE = MIXED.mask(np.random.default_rng(0).random(MIXED.shape) < 0.2)
ENCODER = TableEncoder(discretizer=QuantileDiscretizer(max_bins=3), discrete_features=["town", "owner", "grade"])


def round_trip(model, folder, **options):
    tanlearn.save(model, folder / "model.tan", **options)
    return tanlearn.load(folder / "model.tan")


@pytest.mark.parametrize("n_components", [1, 3])
def test_a_loaded_density_gives_equal_bits(n_components, tmp_path):
    density = TANDensity(n_components=n_components, contamination=0.1, random_state=0).fit(MIXED)
    loaded = round_trip(density, tmp_path)
    assert not hasattr(loaded, "classes_")
    assert loaded.get_params()["contamination"] == 0.1
    assert (loaded.n_components_, loaded.structure_, loaded.offset_) == (
        density.n_components_, density.structure_, density.offset_
    )  # fmt: skip
    for method in ("score_samples", "decision_function", "predict", "contributions", "surprises"):
        np.testing.assert_array_equal(getattr(loaded, method)(ROWS), getattr(density, method)(ROWS))
    np.testing.assert_array_equal(loaded.sample(50, random_state=0), density.sample(50, random_state=0))
    query = ["income", "owner"], {"town": "Graz"}
    assert loaded.conditional(*query) == density.conditional(*query)
    tanlearn.save(loaded, tmp_path / "again.tan")
    assert (tmp_path / "again.tan").read_bytes() == (tmp_path / "model.tan").read_bytes()


@pytest.mark.parametrize("strategy", ["mean", "mode", "joint", "draw"])
def test_a_loaded_imputer_imputes_equal_values(strategy, tmp_path):
    imputer = TANImputer(strategy=strategy, n_components=2, encoder=ENCODER, random_state=0).fit(MIXED)
    loaded = round_trip(imputer, tmp_path, metadata={"author": "me"})
    assert loaded.metadata_["user"] == {"author": "me"}
    assert loaded.metadata_["rows"] == len(MIXED)
    pd.testing.assert_frame_equal(loaded.transform(INCOMPLETE), imputer.transform(INCOMPLETE))
    refitted = loaded.fit(MIXED)
    pd.testing.assert_frame_equal(refitted.transform(INCOMPLETE), imputer.transform(INCOMPLETE))


def test_tables_of_categories_only(tmp_path):
    X = [["a", "x"], ["b", "y"], ["b", None]] * 10
    density = TANDensity(n_components=1).fit(X)
    np.testing.assert_array_equal(round_trip(density, tmp_path).score_samples(X), density.score_samples(X))


def test_numbers_of_intervals_are_kept():
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=3), discrete_features=False)
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[:, 1] = 0
    codes = encoder.fit(X, np.arange(40) % 2).encode(X)
    numbers = IntervalNumbers.of(read_columns(X), codes, encoder)
    state = numbers.to_state()
    restored = IntervalNumbers.from_state(**state, n_intervals={0: 3, 1: int(encoder.n_states_[1])})
    for i in (0, 1):
        np.testing.assert_array_equal(restored.numbers[i], numbers.numbers[i])
        np.testing.assert_array_equal(restored.start[i], numbers.start[i])


WRONG = [
    ({"n_components": 0}, "n_components must be an integer from 1"),
    ({"n_components": 4}, "cells must have type float64 and shape"),
    ({"n_components": None}, "n_components must be an integer"),
    ({"numbers": np.zeros(1)}, "numbers must have type float64 and shape"),
    ({"n_numbers": np.zeros(1, np.int64)}, "n_numbers must have type int64 and shape"),
    ({"n_numbers": np.array([10**9, 0, 0, 0, 0, 0])}, "n_numbers must contain integers from 0 to 256"),
    ({"n_numbers": np.array([-1, 0, 0, 0, 0, 0])}, "n_numbers must contain integers from 0 to 256"),
    ({"offset": 1}, "offset must be a float"),
    ({"expected": np.zeros(1)}, "expected must have type float64 and shape"),
    ({"surplus": 1}, "expected an object with the keys"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_inconsistent_values_are_refused(changes, message):
    density = TANDensity(n_components=2, encoder=ENCODER, random_state=0).fit(MIXED)
    state = density._get_state()
    density._set_state(state)
    with pytest.raises(ValueError, match=message):
        density._set_state({**state, **changes})


def test_files_contain_no_counts_and_no_classes(tmp_path):
    density = TANDensity(n_components=1).fit(MIXED)
    with pytest.raises(ValueError, match=r"counts_, which TANDensity does not have\. Leave counts out"):
        tanlearn.save(density, tmp_path / "model.tan", counts=True)
    density.classes_ = np.array(["a", "b"])
    with pytest.raises(ValueError, match="classes of a model without classes must be null"):
        tanlearn.save(density, tmp_path / "model.tan")


def test_commands_read_classifiers(tmp_path):
    tanlearn.save(TANDensity(n_components=1).fit(MIXED), tmp_path / "model.tan")
    with pytest.raises(ValueError, match=r"model.tan contains a TANDensity, but this command needs a classifier"):
        ModelFile(str(tmp_path / "model.tan"))
