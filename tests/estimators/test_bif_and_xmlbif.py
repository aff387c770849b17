"""BIF and XMLBIF out and in: the same network, names that all programs read, and nothing else in the folder."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.saved_models import ESTIMATORS, FRAME, HOLED, fitted, odd_model

from tanlearn import (
    MaximumLikelihood,
    NaiveBayesClassifier,
    TableEncoder,
    Tables,
    read_bif,
    read_xmlbif,
    write_bif,
    write_xmlbif,
)
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import Calibration, EvidenceCalibration

FORMATS = {"bif": (write_bif, read_bif), "bifxml": (write_xmlbif, read_xmlbif)}
both_formats = pytest.mark.parametrize(("write", "read"), FORMATS.values(), ids=FORMATS)
NETWORKS = [name for name in ESTIMATORS if name not in ("cyclic", "aode", "a2de", "k-tree", "term-tan")]


@both_formats
@pytest.mark.parametrize("name", NETWORKS)
def test_network_that_went_out_and_in_predicts_the_same_to_the_last_bit(tmp_path, name, write, read):
    write(fitted(name), tmp_path / "network")
    found = read(tmp_path / "network", handle_unknown="missing")
    rows = HOLED[fitted(name).feature_names_in_]
    assert np.array_equal(found.predict_joint_log_proba(rows), fitted(name).predict_joint_log_proba(rows))
    assert np.array_equal(found.classes_, fitted(name).classes_)
    assert found.structure_ == fitted(name).structure_
    for drawn, expected in zip(found.sample(9, random_state=1), fitted(name).sample(9, random_state=1), strict=True):
        assert np.array_equal(drawn, expected)
    text = (tmp_path / "network").read_bytes()
    write(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == text


@pytest.mark.filterwarnings("ignore:discretization left")
@both_formats
def test_what_was_read_can_be_fitted_and_saved(tmp_path, write, read):
    write(fitted("tan"), tmp_path / "network")
    found = read(tmp_path / "network", handle_unknown="missing")
    again = clone(found).fit(FRAME, np.arange(len(FRAME)) % 2)
    assert again.structure_ == fitted("tan").structure_
    assert again.encoder_.handle_unknown == "missing"
    found.save(tmp_path / "model.tan")


@both_formats
def test_columns_without_names_stay_so_and_classes_keep_their_type(tmp_path, write, read):
    rng = np.random.default_rng(3)
    X = rng.integers(-1, 2, (40, 12))
    model = NaiveBayesClassifier().fit(X, rng.integers(0, 2, 40) * 2)
    write(model, tmp_path / "network", class_name="the class")
    found = read(tmp_path / "network", class_name="the class")
    assert not hasattr(found, "feature_names_in_")
    assert np.array_equal(found.predict(X), model.predict(X))
    assert read(tmp_path / "network", class_name="the_class").classes_.tolist() == [0, 2]
    write(
        NaiveBayesClassifier().fit(pd.DataFrame({"the_class": [3, 4]}), [0, 2]),
        tmp_path / "network",
        class_name="the class",
    )
    assert read(tmp_path / "network", class_name="the class").classes_.tolist() == [0, 2]  # written as the_class
    with pytest.raises(ValueError, match="variable 'the_class_2' has parents"):
        read(tmp_path / "network", class_name="the_class")


@both_formats
def test_odd_names_are_written_in_names_that_all_accept_and_come_back(tmp_path, write, read):
    model, frame = odd_model()
    write(model, tmp_path / "network", class_name="type")
    found = read(tmp_path / "network", class_name="type")
    assert np.array_equal(found.predict_proba(frame), model.predict_proba(frame))
    assert found.feature_names_in_.tolist() == frame.columns.tolist()
    text = (tmp_path / "network").read_text("ascii")
    variables = re.findall(r"^variable (.*) \{$|<NAME>(.*)</NAME>$", text, re.MULTILINE)
    names = [name for pair in variables for name in pair if name and name != "tanlearn"]
    assert len(names) == 14
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in names)
    assert len({name.lower() for name in names}) == len(names)
    states = re.findall(r"<OUTCOME>(.*)</OUTCOME>", text) or re.findall(r"\] \{ (.*) \};", text)[1].split(", ")
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+", state) for state in states)
    assert {"table_5", "Table_5_2", "default_ed", "network_", "type_", "_1st"} <= set(names)
    assert {"a_b", "a_b_2", "_5", "_5_2", "5", "table_", "_1e5", "minus_3", "minus_3_4", "_1_5"} <= set(states)


@both_formats
def test_names_of_states_may_differ_in_case_only_and_those_of_intervals_are_their_limits(tmp_path, write, read):
    X = pd.DataFrame({"x": ["a", "A", "b", "b"] * 9, "n": [-2.5, -1.5, 2.25, 7.0] * 9})
    model = NaiveBayesClassifier().fit(X, [0, 0, 1, 2] * 9)
    assert model.encoder_.discretizer_.cut_points_[0].tolist() == [0.375, 4.625]
    write(model, tmp_path / "network")
    text = (tmp_path / "network").read_text("ascii")
    states = re.findall(r"<OUTCOME>(.*)</OUTCOME>", text)
    states = states or ", ".join(re.findall(r"\] \{ (.*) \};", text)).split(", ")
    assert states == ["0", "1", "2", "A", "a", "b", "up_to_0_375", "above_0_375_up_to_4_625", "above_4_625"]
    assert np.array_equal(read(tmp_path / "network").predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore:discretization left")
@both_formats
def test_constant_and_never_seen_columns_come_back(tmp_path, write, read):
    X = [[1.5, None, "a"], [1.5, None, "b"], [2.5, None, "a"]]
    encoder = TableEncoder(discrete_features=[1, 2])
    model = NaiveBayesClassifier(encoder=encoder).fit(X, [True, False, True])
    write(model, tmp_path / "network")
    found = read(tmp_path / "network")
    assert found.encoder_.n_states_.tolist() == [1, 1, 2]
    assert np.array_equal(found.predict_proba(X), model.predict_proba(X))
    assert found.classes_.dtype == bool
    assert "any" in (tmp_path / "network").read_text()
    assert "unseen" in (tmp_path / "network").read_text()


def read_text(folder, text):
    """Return the classifier in a text of BIF."""
    (folder / "text").write_text(text)
    return read_bif(folder / "text")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"column": 0', '"column": "0"'),
        ('"column": 0', '"columm": 0'),
        ('"name": "owner"', '"name": 7'),
        ('"name": "owner"', '"name": "income"'),
        ("[false, true]", "[false, true, 2]"),
        ("[false, true]", "[true, false]"),
        ("[false, true]", "[[false], true]"),
        ("[false, true]", '{"kind": "objects", "items": []}'),
        ("[false, true]", "[NaN, true]"),
        ("[false, true]", "[" * 5000),
        ("{ False, True }", "{ False, Wahr }"),
        ('"cut_points": [', '"cut_points": [1e999, '),
        ('"cut_points": [', '"cut_points": ["a", '),
        ('"typical_values": [', '"typical_values": [[1, '),
        ('"typical_values"', '"typical"'),
        ('["high", "low", "middle"]', '["high", "low", 3]'),
        ('["high", "low", "middle"]', "7"),
        ("property tanlearn = {", "property tanlearn = ["),
        ("property tanlearn = {", "property tanlearn = "),
    ],
)
def test_property_that_does_not_fit_is_refused(tmp_path, old, new):
    write_bif(fitted("small"), tmp_path / "small")
    text = (tmp_path / "small").read_text()
    assert old in text
    with pytest.raises(ValueError, match="cannot be read as a network"):
        read_text(tmp_path, text.replace(old, new, 1))


def test_without_its_properties_a_file_holds_strings(tmp_path):
    write_bif(fitted("small"), tmp_path / "small")
    model = read_text(tmp_path, re.sub(r" *property .*\n", "", (tmp_path / "small").read_text()))
    assert model.classes_.tolist() == fitted("small").classes_.tolist()
    assert model.encoder_.categories_[0].tolist() == ["False", "True"]
    assert np.array_equal(model.tables_.cells, fitted("small").tables_.cells)


@both_formats
def test_refused_model_leaves_no_file_and_what_stood_there(tmp_path, write, read):
    (tmp_path / "kept").write_text("before")
    model = fitted("small")
    doubled = clone(model)
    vars(doubled).update(vars(model))
    doubled.model_ = BayesNet(doubled.structure_, Tables(model.tables_.layout, model.tables_.cells + np.log(2)))
    days = pd.Categorical(pd.to_datetime(["2024-01-01", "2024-01-02"]))
    dated = NaiveBayesClassifier().fit(pd.DataFrame({"day": days}), [0, 1])
    cases = [
        (
            fitted("aode"),
            TypeError,
            "must have a single structure with normalized CPTs, got AODEClassifier",
        ),
        (
            fitted("k-tree"),
            TypeError,
            "must have a single structure with normalized CPTs, got KTreeClassifier",
        ),
        (fitted("cyclic"), ValueError, "a network in a file must not have a cycle"),
        (doubled, ValueError, "CPTs in a file must be normalized, .* differ from 1 by up to 1"),
        (dated, ValueError, "Cast the categories to str"),
        (NaiveBayesClassifier(), NotFittedError, "not fitted"),
    ]
    for refused, kind, message in cases:
        with pytest.raises(kind, match=message):
            write(refused, tmp_path / "kept")
    for name in ("income", "", 7):
        with pytest.raises(ValueError, match=rf"differs from all feature names, got {name!r}\. Pass another"):
            write(model, tmp_path / "kept", class_name=name)
    with pytest.raises(OSError, match=r"the network cannot be written .*An existing file is unchanged"):
        write(model, tmp_path / "absent" / "network")
    with pytest.raises(OSError, match="the network cannot be read"):
        read(tmp_path / "absent")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "before"


@both_formats
def test_probabilities_that_no_double_holds_come_back(tmp_path, write, read):
    X = [["a"], ["b"]]
    model = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.0)).fit(X, [0, 1])
    cells = np.array([0.0, -1e-20, -800.0, -np.inf, -1e-300, 0.0])
    cells[0] = -47.0
    model.model_ = BayesNet(model.structure_, Tables(model.tables_.layout, cells))
    write(model, tmp_path / "network")
    assert np.array_equal(read(tmp_path / "network").tables_.cells, cells)


@both_formats
@pytest.mark.parametrize(
    "calibration",
    [Calibration(3.0, 0.6, 2.0), EvidenceCalibration(2.0, prior_shift=(0.25, -0.5))],
    ids=["joint", "evidence"],
)
def test_calibrations_come_back(tmp_path, write, read, calibration):
    X, y = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 5, ["n", "y", "y", "n"] * 5
    model = NaiveBayesClassifier().fit(X, y)
    model.calibration_ = calibration
    write(model, tmp_path / "network")
    found = read(tmp_path / "network")
    assert found.calibration_ == calibration
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
