"""Loaders: what they read, and what they say when they cannot."""

import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn.sources.datasets import Dataset, load_dataset, load_digits, load_npz, load_openml, load_table
from tanlearn.sources.file_formats import FORMATS

DATA = Path(__file__).parents[2].parent / "shared" / "data"
real_data = pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")

FRAME = pd.DataFrame({"sky": ["sun", "rain", None, "sun"], "degrees": [31.5, 12.0, 15.0, None], "go": list("bhhb")})


@pytest.fixture
def save(tmp_path):
    """Return a function that saves arrays and returns the path."""

    def save(**arrays):
        np.savez(tmp_path / "some.npz", **arrays)
        return tmp_path / "some.npz"

    return save


def test_digits_are_the_bundled_ones():
    data = load_digits()
    assert (data.name, data.X.shape, len(np.unique(data.y)), data.folds) == ("digits", (1797, 64), 10, None)


def test_take_returns_rows_of_arrays_and_of_frames():
    rows = np.array([2, 0])
    for X in (FRAME[["sky", "degrees"]], FRAME[["sky", "degrees"]].to_numpy()):
        taken, y = Dataset("weather", X, FRAME["go"].to_numpy(), ["sky", "degrees"]).take(rows)
        assert np.asarray(taken)[:, 1].tolist() == [15.0, 31.5]
        assert y.tolist() == ["h", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, "X has 2 rows, but y has 3"),
        ({"feature_names": ["a"]}, "X has 2 columns, but there are 1 feature names"),
        (
            {"folds": [(np.array([0]), np.array([2]))]},
            "the test rows of split 1 must be one or more numbers from 0 to 1",
        ),
        ({"folds": [(np.array([-1]), np.array([1]))]}, "the training rows of split 1"),
        ({"folds": [(np.array([0]), np.array([], int))]}, "the test rows of split 1 must be one or more numbers"),
    ],
)
def test_dataset_that_does_not_fit_together_is_refused(change, message):
    parts = {"X": np.zeros((2, 2)), "y": np.zeros(2), "feature_names": ["a", "b"]}
    with pytest.raises(ValueError, match=message):
        Dataset("weather", **(parts | change))


@pytest.mark.filterwarnings("ignore:discretization left")
def test_npz_of_one_table(save):
    path = save(
        X=np.array([[0, 31], [1, 12], [0, 15]], np.uint8),
        y=[1, 0, 1],
        classes=["home", "beach"],
        feature_names=["sky", "degrees"],
        is_categorical=[True, False],
        missing=np.array([[False, False], [False, True], [True, False]]),
        train_idx=np.array([0, 1], np.int32),
        test_idx=np.array([2], np.int32),
    )
    data = load_npz(path)
    np.testing.assert_array_equal(data.X, [[0, 31], [1, np.nan], [np.nan, 15]])
    assert data.y.tolist() == ["beach", "home", "beach"]
    assert data.feature_names == ["sky", "degrees"]
    assert data.discrete_features.tolist() == [True, False]
    ((train, test),) = data.folds
    assert (train.tolist(), test.tolist()) == ([0, 1], [2])
    encoder = TableEncoder(discrete_features=data.discrete_features).fit(data.X, data.y)
    assert encoder.n_states_[0] == 2


def test_npz_of_one_table_needs_no_more_than_x_and_y(save):
    data = load_npz(save(X=np.array([["sun"], ["rain"]]), y=["b", "h"]))
    assert (data.discrete_features, data.folds, data.feature_names) == ("auto", None, ["0"])
    assert NaiveBayesClassifier().fit(data.X, data.y).predict([["sun"]]).tolist() == ["b"]


def test_missing_strings_are_none(save):
    data = load_npz(save(X=np.array([["sun"], ["rain"]]), y=[0, 1], missing=np.array([[True], [False]])))
    assert data.X.tolist() == [[None], ["rain"]]


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_integers_stay_integers_where_cells_are_missing(save, dtype):
    X = np.stack([np.arange(130) % 5, np.arange(130) % 3, np.arange(130)], axis=1).astype(dtype)
    y = np.arange(130) % 2
    missing = np.zeros(X.shape, bool)
    missing[7, [0, 2]] = True
    data = load_npz(save(X=X, y=y, missing=missing))
    encoder = TableEncoder(discrete_features=data.discrete_features).fit(data.X, data.y)
    assert encoder.is_discrete_.tolist() == [True, True, False]
    assert encoder.n_states_[:2].tolist() == [5, 3]
    declared = load_npz(save(X=X, y=y, missing=missing, is_categorical=[False, True, True]))
    assert declared.discrete_features.tolist() == [False, True, True]
    assert load_npz(save(X=X + 0.5, y=y, missing=missing)).discrete_features == "auto"


def test_npz_of_folds(save):
    parts = {}
    for k, train, test in ((1, [[1, 2], [2, 1]], [[1, 1]]), (2, [[3, 3], [1, 2]], [[2, 2]])):
        parts |= {f"x_tr_fold{k}": train, f"x_te_fold{k}": test}
        parts |= {f"t_tr_fold{k}": [k, k + 10], f"t_te_fold{k}": [k + 20]}
    data = load_npz(save(**parts, n_folds=2))
    assert data.discrete_features is True
    splits = [[part for rows in fold for part in data.take(rows)] for fold in data.folds]
    for k, split in enumerate(splits, start=1):
        names = ("x_tr", "t_tr", "x_te", "t_te")
        for values, name in zip(split, names, strict=True):
            np.testing.assert_array_equal(values, parts[f"{name}_fold{k}"])


FOLD = {"x_tr_fold1": [[1], [2]], "t_tr_fold1": [0, 1], "x_te_fold1": [[1]], "t_te_fold1": [0]}
TABLE = {"X": [[1.0], [2.0]], "y": [0, 1]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"mi_graph_1": [1.0]},
            r"or the arrays of folds \(x_tr_fold1 and so on\), but contains mi_graph_1",
        ),
        ({"X": [[1.0]]}, r"must also contain y\. It contains only X"),
        (TABLE | {"train_idx": [0]}, r"must also contain test_idx\. It contains only X, y, train_idx"),
        (TABLE | {"X": [1.0, 2.0]}, r"X must have shape \(n_samples, n_features\), got \(2,\)"),
        (TABLE | {"classes": ["one"]}, r"y must hold indices into classes \(0\.\.0\)"),
        (TABLE | {"missing": [[False]]}, r"missing must be a bool mask of shape \(2, 1\), got \(1, 1\)"),
        (TABLE | {"X": np.array([["a"], [None]], object)}, "cannot be read: .*Python objects are never unpickled"),
        ({"x_tr_fold1": [[1]]}, "must also contain x_te_fold1, t_tr_fold1, t_te_fold1"),
        (FOLD | {"t_te_fold1": [0, 1]}, "one row per entry of t_tr_fold<k>.*Wrong shape: x_te_fold1"),
        (FOLD | {"x_te_fold1": [[1, 2]]}, "Wrong shape: x_te_fold1"),
        (FOLD | {"x_tr_fold1": [1, 2], "x_te_fold1": [1]}, "two-dimensional, .*Wrong shape: x_tr_fold1"),
    ],
)
def test_npz_of_another_form_is_refused(save, arrays, message):
    with pytest.raises(ValueError, match=message):
        load_npz(save(**arrays))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not an archive", b"a,b\n1,2\n"])
def test_file_that_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "some.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not an archive of NumPy arrays"):
        load_npz(path)


def test_single_array_is_no_archive(tmp_path):
    with (tmp_path / "some.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="is not an archive of NumPy arrays"):
        load_npz(tmp_path / "some.npz")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_table_keeps_strings_numbers_and_gaps(tmp_path, suffix):
    path = tmp_path / f"weather.{suffix}"
    FRAME.to_csv(path, index=False) if suffix == "csv" else FRAME.to_parquet(path)
    data = load_table(path, target="go")
    assert (data.name, data.feature_names, data.y.tolist()) == ("weather", ["sky", "degrees"], list("bhhb"))
    encoder = TableEncoder().fit(data.X, data.y)
    assert encoder.is_discrete_.tolist() == [True, False]
    assert encoder.encode(data.X)[0].tolist() == [1, 0, 255, 1]


def test_table_without_the_target_is_refused_with_its_columns(tmp_path):
    FRAME.to_csv(tmp_path / "weather.csv", index=False)
    with pytest.raises(ValueError, match=r"there is no column 'walk'\. The columns are: sky, degrees, go\."):
        load_table(tmp_path / "weather.csv", target="walk")
    with pytest.raises(ValueError, match=r"target must name the column with the classes\. The columns are: sky"):
        load_dataset(tmp_path / "weather.csv")


def test_row_without_class_is_left_out(tmp_path):
    FRAME.to_csv(tmp_path / "weather.csv", index=False)
    with pytest.warns(UserWarning, match=r"weather\.csv: 1 of 4 rows has no 'sky' and is left out"):
        found = load_table(tmp_path / "weather.csv", target="sky")
    assert len(found.y) == len(found.X) == 3


@pytest.mark.parametrize("name", ["bad.csv", "bad.parquet"])
def test_table_that_cannot_be_parsed_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=f"{name} cannot be read: "):
        load_table(tmp_path / name, target="go")


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "absent.npz"])
def test_absent_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"there is no file .*{name}"):
        load_dataset(tmp_path / name, target="go" if name != "absent.npz" else None)


def test_missing_package_names_the_extra(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "weather.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"weather.parquet needs pyarrow.*tanlearn\[frames\]"):
        load_table(tmp_path / "weather.parquet", target="go")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"weather.parquet needs pandas.*tanlearn\[frames\]"):
        load_table(tmp_path / "weather.parquet", target="go")
    with pytest.raises(ImportError, match=r"openml:vote needs pandas.*tanlearn\[frames\]"):
        load_openml("vote")


@pytest.mark.parametrize(
    ("name", "ending"), [("csv", ".csv.gz"), *((name, one) for name, known in FORMATS.items() for one in known.endings)]
)
def test_every_extension_of_a_table_is_loaded(name, ending, tmp_path):
    path, frame = tmp_path / f"weather{ending}", FRAME[["sky", "go"]]
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "parquet": lambda: frame.to_parquet(path),
        "feather": lambda: frame.to_feather(path),
    }[name]()
    data = load_dataset(path, target="go")
    assert (data.X["sky"].dropna().tolist(), data.y.tolist()) == (["sun", "rain", "sun"], list("bhhb"))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "weather.xls",
            None,
            r"'digits', 'iris', 'wine', 'breast_cancer', 'openml:NAME', or a file \.npz, \.csv, \.tsv, \.parquet "
            r"or \.feather, got 'weather\.xls'",
        ),
        ("digit", None, r"got 'digit'\. Did you mean 'digits'\?"),
        ("digits", "go", r"target \('go'\) cannot be set for digits, which contains its own classes"),
    ],
)
def test_source_of_no_known_kind_is_refused(source, target, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(source, target=target)


@pytest.fixture
def openml(monkeypatch):
    """Put a function in place of scikit-learn's, and return the arguments that it was called with."""
    calls = []

    def replace(answer):
        def fetch(name, **options):
            calls.append((name, options["target_column"]))
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return replace


def test_openml_declares_which_columns_are_nominal(openml):
    X = FRAME[["sky", "degrees"]].assign(sky=FRAME["sky"].astype("category"), count=[1, 2, 3, 4])
    calls = openml(Bunch(data=X, target=FRAME["go"].astype("category"), frame=FRAME))
    data = load_dataset("openml:weather", target="go")
    assert calls == [("weather", "go")]
    assert data.discrete_features.tolist() == [True, False, False]
    assert data.y.tolist() == list("bhhb")
    load_openml("weather")
    assert calls[1] == ("weather", "default-target")


def test_openml_out_of_reach_is_said(openml):
    openml(URLError("no route to host"))
    with pytest.raises(ConnectionError, match=r"openml:weather cannot be fetched: .*no route to host.*\.csv"):
        load_openml("weather")


def test_openml_without_one_target_asks_for_it(openml):
    openml(Bunch(data=FRAME, target=None, frame=FRAME))
    with pytest.raises(
        ValueError, match=r"does not declare exactly one target column. Set target to one of: sky, degrees, go"
    ):
        load_openml("weather")


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.data
@real_data
def test_every_raw_file_loads_and_can_be_encoded():
    for path in sorted((DATA / "raw").glob("*.npz")):
        if path.stat().st_size < 1e5 and not needs_pickle(path):
            data = load_npz(path)
            encoder = TableEncoder(discrete_features=data.discrete_features).fit(data.X, data.y)
            np.testing.assert_array_equal(encoder.is_discrete_, data.discrete_features)


def needs_pickle(path):
    """Return whether a file holds Python objects, which are refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            [file[key] for key in file.files]
    except ValueError:
        with pytest.raises(ValueError, match="cannot be read"):
            load_npz(path)
        return True
    return False


@pytest.mark.data
@real_data
def test_published_folds_load():
    data = load_npz(DATA / "discretized" / "satimage.npz")
    assert [len(train) + len(test) for train, test in data.folds] == [6435] * 5
    assert data.X.min() == 1
