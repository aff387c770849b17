"""Files of fitted classifiers: what survives, what is refused, and what a failure leaves behind."""

import enum
import errno
import io
import json
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from support.saved_models import CYCLE, ESTIMATORS, FRAME, HOLED, Y, fitted
from support.system_calls import patch_system

import tanlearn
import tanlearn.baselines
from tanlearn import (
    BayesNetClassifier,
    CandidateSets,
    ConjugateGradient,
    Hybrid,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
    TANSearchCV,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.files import archive, regular_files
from tanlearn.files import values as file_values
from tanlearn.files.models import load, save
from tanlearn.files.values import Reader, Writer


def round_trip(model, folder):
    save(model, folder / "model.tan")
    return load(folder / "model.tan")


def assert_same(found, expected):
    """Compare values of all kinds that models consist of, types included."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype.newbyteorder("=")
        assert found.shape == expected.shape
        assert_same(found.tolist(), expected.tolist())
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, dict):
        assert_same(list(found.items()), list(expected.items()))
    elif isinstance(expected, Structure):
        assert_same((found.parents, found.is_acyclic), (expected.parents, expected.is_acyclic))
    elif isinstance(expected, CandidateSets):
        assert_same(vars(found), vars(expected))
    elif hasattr(expected, "get_params"):
        assert_same(found.get_params(deep=False), expected.get_params(deep=False))
    else:
        assert repr(found) == repr(expected)


def assert_same_encoder(found, expected):
    assert_same(found, expected)
    for name in ("is_discrete_", "n_states_", "categories_", "typical_values_", "value_ranges_", "n_features_in_"):
        assert_same(getattr(found, name), getattr(expected, name))
    assert_same(found.discretizer_, expected.discretizer_)
    if expected.discretizer_ is not None:
        for name in ("cut_points_", "n_states_", "n_features_in_"):
            assert_same(getattr(found.discretizer_, name), getattr(expected.discretizer_, name))


# What survives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_loaded_classifier_is_the_one_that_was_saved(name, tmp_path):
    model = fitted(name)
    again = round_trip(model, tmp_path)
    assert_same(again, model)
    assert_same_encoder(again.encoder_, model.encoder_)
    for learnt in ("classes_", "n_features_in_", "feature_names_in_", "n_parameters_"):
        assert_same(getattr(again, learnt), getattr(model, learnt))
    if name not in ("aode", "a2de"):
        assert_same((again.structure_, again.tables_.cells), (model.structure_, model.tables_.cells))
    if isinstance(model, TANClassifier):
        assert_same(again.structure_probabilities_, model.structure_probabilities_)
    rows = [FRAME] if name in ("cyclic", "pseudo-tan") else [FRAME, HOLED, FRAME.to_numpy()]
    for X in rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an array without names
            np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
            assert_same(again.predict(X), model.predict(X))
    found_on_the_way = ("parameters_", "structure_learner_", "candidates_", "history_", "n_iter_")
    assert not any(hasattr(again, lost) for lost in found_on_the_way)


def test_tables_of_impossible_values_survive(tmp_path):
    model = fitted("nb")
    assert np.isneginf(model.tables_.cells).any()
    assert round_trip(model, tmp_path).tables_.cells.tobytes() == model.tables_.cells.tobytes()


def test_equal_models_make_equal_files_and_a_loaded_one_can_be_saved_and_fitted(tmp_path):
    again = round_trip(fitted("tan"), tmp_path)
    save(again, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "model.tan").read_bytes()
    again.fit(FRAME, Y)
    np.testing.assert_array_equal(again.predict_proba(FRAME), fitted("tan").predict_proba(FRAME))


def test_loaded_classifier_has_no_counts_to_go_on_from(tmp_path):
    model = NaiveBayesClassifier().partial_fit(FRAME, Y, classes=np.unique(Y))
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
    with pytest.raises(ValueError, match="it was read from a file without counts"):
        again.partial_fit(FRAME, Y)


def test_handle_unknown_survives(tmp_path):
    model = NaiveBayesClassifier(encoder=TableEncoder(handle_unknown="error")).fit(FRAME, Y)
    with pytest.raises(ValueError, match="Wien"):
        round_trip(model, tmp_path).predict(HOLED.assign(rooms=2))


@pytest.mark.parametrize(
    "classes",
    [
        ["no", "yes"],
        np.array(["no", "a\0b"]),
        [False, True],
        np.array([0, 300], np.uint16),
        np.array([2.0, -1.0]),
        np.array([3, 2**60], dtype=">i8"),
        pd.Series(["u", "v"], dtype="string"),
        np.array([np.str_("p"), np.str_("q")], dtype=object),
        ["\ud800", "\N{GRINNING FACE}"],
    ],
    ids=repr,
)
def test_classes_of_every_type_survive(classes, tmp_path):
    y = pd.concat([classes, classes]) if isinstance(classes, pd.Series) else np.tile(np.asarray(classes), 2)
    model = NaiveBayesClassifier().fit([[0], [1], [2], [2]], y)
    again = round_trip(model, tmp_path)
    assert_same(again.classes_, model.classes_)
    assert_same(again.predict([[0], [1], [2]]), model.predict([[0], [1], [2]]))


VALUES = [
    None, True, 0, -(10**30), 0.1, -0.0, 1e300, math.inf, -math.inf, math.nan, "", "\ud800\0\"\\", b"\0\xff", [], (),
    {}, {1: "a", "1": [None], None: (), (2, 3): {}, 2.5: True}, [(1, [2.0]), [3]],
    np.int8(-3), np.uint64(2**64 - 1), np.float32(0.1), np.float64(np.nan), np.float16(-np.inf), np.bool_(True),
    np.str_("x\0"), np.bytes_(b"x"), np.array(3.5), np.zeros((0, 3)), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([[True], [False]]), np.array(["a", "bc\N{GRINNING FACE}"]), np.array([b"a", b""]),
    np.arange(3, dtype=">i4"),
    np.array(["a", None, (1, 2), 3.0, np.str_("b")], dtype=object), np.arange(10, dtype=np.uint8)[::3],
    Structure([-1, 0, 1]), Structure([[1, -1], [-1, -1], [1, 0]]), CYCLE, CandidateSets.from_lists([[1], [0], []]),
    ConjugateGradient(loss=Hybrid(gamma=np.float32(0.3))),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_parameters_of_every_kind_survive(value):
    writer = Writer()
    text = json.dumps(writer.encode(value, "model", "x"), allow_nan=False)
    reader = Reader({name: archive._read_npy(name, archive._npy(array)) for name, array in writer.arrays.items()})
    assert_same(reader.decode(json.loads(text)), value)
    reader.finish()


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        ({"kind": "float", "value": "1"}, []),
        ({"kind": "scalar", "type": "int8", "value": 1.0}, []),
        ({"kind": "dict", "items": [[1, 2], [True, 3]]}, []),
        ({"kind": "array", "member": "1.npy"}, [[1]]),
        ([{"kind": "array", "member": "0.npy"}] * 2, [[1]]),
        ({"kind": "candidates", "arborescence": False, "allow_cycles": 0}, [[[-1, -1]], [0, 1]]),
        ({"kind": "candidates", "arborescence": False, "allow_cycles": False}, [[[-1, -1]], [0, 2]]),
        ({"kind": "candidates", "arborescence": False, "allow_cycles": False}, [[[-1, -1], [1, -1]], [0, 1, 2]]),
    ],
)
def test_values_that_no_writer_makes_are_refused(value, arrays):
    if isinstance(value, dict) and value["kind"] == "candidates":
        value = {**value, "parents": "0.npy", "group": "1.npy"}
    with pytest.raises(ValueError, match=r"must|not of type int8|twice"):
        Reader({f"{i}.npy": np.array(array) for i, array in enumerate(arrays)}).decode(value)


def test_every_public_estimator_learner_and_loss_can_be_a_parameter():
    public = {name: getattr(package, name) for package in (tanlearn, tanlearn.baselines) for name in package.__all__}
    classes = {
        name: value for name, value in public.items() if isinstance(value, type) and hasattr(value, "get_params")
    }
    assert {name: file_values._registered(name) for name in classes} == classes
    for known in classes.values():
        wrappers = tanlearn.ConformalClassifier, tanlearn.SemiSupervisedClassifier
        arguments = (tanlearn.NaiveBayesClassifier(),) if known in wrappers else ()
        if known is tanlearn.FixedCPTs:
            arguments = ({0: [[0.25, 0.5], [0.75, 0.5]], "b": [[1.0, 1.0]]},)
        assert_same(Reader({}).decode(Writer().encode(known(*arguments), "model", "x")), known(*arguments))


def columns(n):
    """Return a strategy of columns of n rows."""
    kinds = [
        st.text(max_size=3),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 3),
        st.floats(allow_nan=True, allow_infinity=False),
        st.booleans(),
        st.none() | st.sampled_from(["a", "b", "1", ""]),
        st.binary(max_size=2),
    ]
    plain = st.one_of([st.lists(kind, min_size=n, max_size=n) for kind in kinds])
    labels = st.lists(st.sampled_from([1, "1", 1.5, b"1", np.str_("n"), np.int8(7)]), unique_by=str, min_size=1)
    declared = labels.flatmap(
        lambda known: st.lists(st.sampled_from([None, *known]), min_size=n, max_size=n).map(
            lambda values: pd.Categorical(values, categories=pd.Index(known, dtype=object))
        )
    )
    dtypes = st.sampled_from([np.float32, np.float16, np.int8, np.uint64, ">f8"])
    typed = dtypes.flatmap(lambda dtype: st.lists(st.integers(0, 99), min_size=n, max_size=n).map(
        lambda values: np.array(values).astype(dtype)))  # fmt: skip
    return plain | declared | typed


@pytest.mark.filterwarnings("ignore:discretization left", "ignore:no feature value occurs")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(columns(12), min_size=1, max_size=3),
    st.integers(0, 99),
    st.sampled_from([NaiveBayesClassifier, AODEClassifier, BayesNetClassifier]),
    st.sampled_from([ChowLiu(), KDependence(k=2)]),
)
def test_any_model_of_any_table_answers_as_before(tmp_path_factory, table, seed, estimator, learner):
    folder = tmp_path_factory.getbasetemp()
    frame = pd.DataFrame({f"c{i}": values for i, values in enumerate(table)})
    y = np.random.default_rng(seed).permutation(np.arange(12) % 3)
    model = estimator(encoder=TableEncoder(discrete_features="auto"))
    if estimator is BayesNetClassifier:
        model.set_params(structure=learner)
    model.fit(frame.head(8), y[:8])
    again = round_trip(model, folder)
    assert_same_encoder(again.encoder_, model.encoder_)
    np.testing.assert_array_equal(again.encoder_.encode(frame), model.encoder_.encode(frame))
    np.testing.assert_array_equal(again.predict_joint_log_proba(frame), model.predict_joint_log_proba(frame))


# What cannot be saved --------------------------------------------------------------------------------------


class OwnLoss:
    def value_and_gradient(self, scores, y):
        return Hybrid().value_and_gradient(scores, y)


class OwnLearner(BaseEstimator):
    def learn(self, data, rng):
        return Structure.naive_bayes(data.n_features)


class OwnDiscretizer(MDLPDiscretizer):
    pass


class OwnEncoder(TableEncoder):
    pass


class OwnModel(NaiveBayesClassifier):
    pass


class Town(enum.StrEnum):
    GRAZ, LINZ = "Graz", "Linz"


def own_lambda(report):
    return None


ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("change", "named", "remedy"),
    [
        ({"random_state": np.random.default_rng(0)}, "random_state", r"set_params\(random_state=None\)"),
        ({"random_state": np.random.RandomState(0)}, "random_state", r"set_params\(random_state=None\)"),
        ({"training__callback": own_lambda}, "callback", r"set_params\(training__callback=None\)"),
        ({"loss": OwnLoss()}, "loss", r"set_params\(loss=None\)"),
        ({"candidates": [[], [OwnLoss()]]}, "candidates", r"set_params\(candidates='subset'\)"),
        ({"candidates__ordering": pd.Index([1, 2])}, "ordering", "set_params"),
        ({"candidates__ordering": np.array([1j])}, "ordering", "set_params"),
        ({"encoder": TableEncoder(discretizer=OwnDiscretizer())}, "encoder__discretizer", "set_params"),
        ({"n_epochs": -1}, "n_epochs", "set_params"),
        ({"candidates": ENDLESS}, "contains itself", "contains itself"),
        ({"candidates__n_candidates": 10**5000}, "4300 digits", "set_params"),
    ],
)  # fmt: skip
def test_parameter_that_no_file_can_hold_is_named_before_anything_is_written(change, named, remedy, tmp_path):
    model = round_trip(fitted("tan"), tmp_path).set_params(**change)
    (tmp_path / "model.tan").write_bytes(b"what was there")
    with pytest.raises(ValueError, match=named) as caught:
        save(model, tmp_path / "model.tan")
    assert caught.match(remedy)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"what was there"]


@pytest.mark.parametrize(
    ("estimator", "X", "message"),
    [
        (BayesNetClassifier(structure=OwnLearner()), FRAME, r"set_params\(structure=None\)"),
        (NaiveBayesClassifier(parameters=ConjugateGradient(loss=OwnLoss(), max_iter=1)), FRAME, "parameters__loss=N"),
        (NaiveBayesClassifier(encoder=TableEncoder(discretizer=OwnDiscretizer())), FRAME, "OwnDiscretizer.*Fit with"),
        (NaiveBayesClassifier(encoder=OwnEncoder()), FRAME, "OwnEncoder.*Fit with"),
        (NaiveBayesClassifier(), pd.DataFrame({"a": pd.cut(np.arange(60), 3)}), "column 0.*Interval.*Cast"),
        (NaiveBayesClassifier(), np.array([[Town.GRAZ], [Town.LINZ]] * 30, dtype=object), "column 0.*GRAZ.*Cast"),
        (NaiveBayesClassifier(), np.ones((60, 1), np.longdouble) * 2, None),
        (NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)), np.ones((60, 1), np.longdouble), None),
    ],
)  # fmt: skip
def test_model_that_no_file_can_hold_is_refused(estimator, X, message, tmp_path):
    model = estimator.fit(X, Y)
    if message is None:
        save(model, tmp_path / "model.tan")
        return
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model.tan")
    assert list(tmp_path.iterdir()) == []


def test_only_fitted_classifiers_can_be_saved(tmp_path):
    codes = tanlearn.EncodedData.from_codes([[0], [1]], [0, 1])
    for model in (NaiveBayesClassifier(), TANClassifier(), AODEClassifier(), NaiveBayesClassifier().fit_encoded(codes)):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "model.tan")
    for other in (OwnModel().fit(FRAME, Y), TANSearchCV(), TableEncoder(), None, "model"):
        with pytest.raises(TypeError, match=r"must be a fitted classifier, .* of tanlearn, got .*best_estimator_"):
            save(other, tmp_path / "model.tan")
    assert list(tmp_path.iterdir()) == []


def test_tables_with_nan_are_refused(tmp_path):
    model = round_trip(fitted("nb"), tmp_path)
    model.tables_.cells[5] = np.nan
    with pytest.raises(ValueError, match="cells contains nan"):
        save(model, tmp_path / "other.tan")
    assert not (tmp_path / "other.tan").exists()


# Failures while writing ------------------------------------------------------------------------------------


class FullDisk(io.FileIO):
    def write(self, content):
        super().write(bytes(content)[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def break_replace(monkeypatch, error):
    def replace(source, target):
        raise error

    patch_system(monkeypatch, replace=replace)


def break_fsync(monkeypatch, error):
    def fsync(number):
        raise error

    patch_system(monkeypatch, fsync=fsync)


def break_write(monkeypatch, error):
    def opened(path, mode, opener):
        return FullDisk(path, "x", opener=opener)

    monkeypatch.setattr(regular_files, "open", opened, raising=False)


@pytest.mark.parametrize("breaks", [break_replace, break_fsync, break_write])
@pytest.mark.parametrize("before", [None, b"what was there"])
def test_failure_leaves_what_was_there(breaks, before, tmp_path, monkeypatch):
    path = tmp_path / "model.tan"
    if before is not None:
        path.write_bytes(before)
    with monkeypatch.context() as patch:
        breaks(patch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        with pytest.raises(OSError, match=r"No space left.*Free some space.*model\.tan") as caught:
            save(fitted("nb"), path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert [found.read_bytes() for found in tmp_path.iterdir()] == ([] if before is None else [before])


def test_interrupted_save_leaves_nothing(tmp_path, monkeypatch):
    break_fsync(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        save(fitted("nb"), tmp_path / "model.tan")
    assert list(tmp_path.iterdir()) == []


#: What a file in the place of a folder is to POSIX systems and to Windows.
NO_FOLDER = (NotADirectoryError, FileNotFoundError)


def test_paths_that_cannot_be_written_or_read_say_so(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cases = [
        (tmp_path, IsADirectoryError, "Name a file in it"),
        (tmp_path / "none" / "model.tan", FileNotFoundError, "Make the folder"),
        (tmp_path / "file" / "model.tan", NO_FOLDER, "Name a file in|Make the folder"),
    ]
    for path, kind, remedy in cases:
        with pytest.raises(kind, match=remedy) as caught:
            save(fitted("nb"), path)
        assert caught.value.filename == str(path)
        with pytest.raises(kind, match="Name a file that tanlearn's save"):
            load(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(OSError, match="it is a device, not a regular file"):
        load("/dev/zero")


def test_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "model.tan"
    link.symlink_to(target)
    save(fitted("nb"), link)
    save(fitted("tan"), str(link))
    assert link.is_symlink()
    assert type(load(target)) is TANClassifier
    assert sorted(path.name for path in target.parent.iterdir()) == ["model.tan"]


def test_a_new_process_loads_what_names_classes_of_baselines(tmp_path):
    X, y = [["a", 1], ["b", 2], ["a", 2], ["b", 1]] * 5, ["left", "right", "left", "right"] * 5
    models = [AODEClassifier().fit(X, y), BayesNetClassifier(structure=ChowLiu()).fit(X, y)]
    for number, model in enumerate(models):
        model.save(tmp_path / f"{number}.tan")
    program = (
        "import sys, tanlearn; assert 'tanlearn.baselines' not in sys.modules; "
        "print([tanlearn.load(path).predict([['b', 1]])[0] for path in sys.argv[1:]])"
    )
    paths = [str(tmp_path / f"{number}.tan") for number in range(len(models))]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['right', 'right']", done.stderr
