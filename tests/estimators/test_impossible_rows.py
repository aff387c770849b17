"""Rows of probability zero: the class probabilities are predicted, with a warning that names the rows."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tanlearn import Calibration, load, read_bif
from tanlearn.estimators.impossible_rows import ImpossibleRowsWarning

#: ``b`` is impossible with ``x = yes, y = no``; ``a`` with ``x = yes``; so such rows are with every class.
TREE = """
variable class { type discrete [3] { a, b, c }; }
variable x { type discrete [2] { yes, no }; }
variable y { type discrete [2] { yes, no }; }
probability (class) { table 0.2, 0.5, 0.3; }
probability (x | class) { (a) 0, 1; (b) 0.5, 0.5; (c) 0.4, 0.6; }
probability (y | class, x) { default 0.25, 0.75; (b, yes) 1, 0; (c, yes) 1, 0; }
"""
#: ``z`` has two parents beside the class, so its missing values are summed out by elimination.
TWO_PARENTS = (
    TREE
    + "variable z { type discrete [2] { yes, no }; } probability (z | x, y, class) "
    + "{ default 0.5, 0.5; (no, no, a) 1, 0; (no, no, b) 1, 0; (no, no, c) 1, 0; }"
)
PRIOR = [0.2, 0.5, 0.3]


@pytest.fixture(params=["tree", "two parents"])
def model(request, tmp_path):
    path = tmp_path / "zeros.bif"
    path.write_text(TREE if request.param == "tree" else TWO_PARENTS)
    return read_bif(path)


def rows(model, *cells):
    """Return rows with these first columns, whose others are missing."""
    return pd.DataFrame(cells, columns=["x", "y"]).reindex(columns=model.feature_names_in_)


def test_class_probabilities_are_predicted_and_rows_named(model):
    X = rows(model, ("yes", "yes"), ("yes", "no"), ("no", None), ("yes", "no"))
    message = r"2 of 4 rows have probability zero in every class \(rows 1, 3\).*smoothing"
    with pytest.warns(ImpossibleRowsWarning, match=message) as caught:
        p = model.predict_proba(X)
    assert [warning.filename for warning in caught] == [__file__]
    assert issubclass(ImpossibleRowsWarning, UserWarning)
    expected = [0, 0.5 * 0.5, 0.3 * 0.4], PRIOR, [0.2, 0.5 * 0.5, 0.3 * 0.6], PRIOR
    assert p == pytest.approx(np.array([np.array(row) / np.sum(row) for row in expected]), rel=1e-12)
    with pytest.warns(ImpossibleRowsWarning, match=message) as caught:
        assert np.array_equal(np.exp(model.predict_log_proba(X)), p)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ImpossibleRowsWarning, match=message) as caught:
        assert model.predict(X).tolist() == ["b", "b", "b", "b"]
    assert [warning.filename for warning in caught] == [__file__]


def test_joint_probabilities_stay_zero_without_a_warning(model):
    X = rows(model, ("yes", "no"), ("no", "no"))
    assert np.isneginf(model.predict_joint_log_proba(X)).all(axis=1).tolist() == [True, False]
    assert np.isneginf(model.score_samples(X)).tolist() == [True, False]


def test_possible_rows_are_no_reason_to_warn(model):
    X = rows(model, ("yes", "yes"), ("no", "no"), (None, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isneginf(model.predict_log_proba(X)[0, 0])
        model.predict(X)


def test_first_rows_are_named_and_others_counted(model):
    X = rows(model, *[("yes", "no")] * 1200)
    with pytest.warns(ImpossibleRowsWarning, match=r"1,200 of 1,200 .*\(rows 0, 1, 2, 3, 4 and 1,195 more\)"):
        model.predict(X)
    with pytest.warns(ImpossibleRowsWarning, match=r"1 of 1 rows has .*\(row 0\)"):
        model.predict(X[:1])


@pytest.mark.parametrize("calibration", [Calibration(2.0), Calibration(2.0, 0.5, 3.0)], ids=str)
def test_prediction_is_that_of_a_row_without_any_feature(model, calibration):
    model.calibration_ = calibration
    nothing = model.predict_proba(rows(model, (None, None)))
    with pytest.warns(ImpossibleRowsWarning):
        assert np.array_equal(model.predict_proba(rows(model, ("yes", "no"))), nothing)


def test_other_class_probabilities_are_taken(model):
    with pytest.warns(ImpossibleRowsWarning):
        found = model.with_class_prior([0.1, 0.2, 0.7]).predict_proba(rows(model, ("yes", "no")))
    assert found == pytest.approx(np.array([[0.1, 0.2, 0.7]]), rel=1e-12)
    with pytest.warns(ImpossibleRowsWarning):
        assert model.with_class_prior([0.1, 0.2, 0.7]).predict(rows(model, ("yes", "no"))).tolist() == ["c"]


def test_saved_model_predicts_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        with pytest.warns(ImpossibleRowsWarning):
            assert again.predict_proba(rows(model, ("yes", "no"))) == pytest.approx(np.array([PRIOR]), rel=1e-12)


def test_row_predictor_answers_as_predict(model):
    predictor = model.with_class_prior([0.1, 0.2, 0.7]).row_predictor()
    n_other = model.n_features_in_ - 2
    for other in ((None,) * n_other, ("yes",) * n_other):
        with pytest.warns(ImpossibleRowsWarning, match="1 of 1 rows") as caught:
            assert predictor.predict(("yes", "no", *other)) == "c"
        assert [warning.filename for warning in caught] == [__file__]
        assert predictor.predict(("yes", "yes", *other)) == "c"


def test_command_names_rows_of_the_whole_table(model, tmp_path, monkeypatch):
    pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    from typer.testing import CliRunner

    from tanlearn.cli import predicting
    from tanlearn.cli.app import build_app

    monkeypatch.setattr(predicting, "_CHUNK_ROWS", 2)
    model.save(tmp_path / "model")
    X = rows(model, ("no", "no"), ("yes", "yes"), ("no", "no"), ("yes", "no"), ("yes", "no"))
    X.to_csv(tmp_path / "new.csv", index=False)
    done = CliRunner().invoke(build_app(), ["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "--proba"])
    assert done.exit_code == 0
    assert len(re.findall("probability zero", done.stderr)) == 1
    assert "2 of 5 rows have probability zero in every class (rows 4, 5)" in done.stderr
    label, *p = done.stdout.splitlines()[-1].split(",")
    assert (label, [*map(float, p)]) == ("b", pytest.approx(PRIOR))


def test_command_explains_no_row_of_probability_zero(model, tmp_path):
    pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    from typer.testing import CliRunner

    from tanlearn.cli.app import build_app

    model.save(tmp_path / "model")
    rows(model, ("yes", "yes"), ("yes", "no")).to_csv(tmp_path / "new.csv", index=False)
    path = str(tmp_path / "new.csv")
    assert CliRunner().invoke(build_app(), ["explain", str(tmp_path / "model"), f"{path}:1"]).exit_code == 0
    done = CliRunner().invoke(build_app(), ["explain", str(tmp_path / "model"), f"{path}:2"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "its probability is zero for every class" in done.stderr
