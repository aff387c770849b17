"""What calibration.md shows: models that differ in the calibration alone, and what that does."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks.quality import calibration
from tanlearn import NaiveBayesClassifier


def test_models_differ_in_calibration_only():
    plain, calibrated = (calibration.models(calibrate, 3) for calibrate in (False, True))
    assert list(plain) == list(calibrated)
    for name, model in plain.items():
        before, after = model.get_params(), calibrated[name].get_params()
        (differing,) = [key for key in before if repr(before[key]) != repr(after[key]) and key != "parameters"]
        assert differing.endswith("calibrate")
        assert (before[differing], after[differing], before["random_state"]) == (False, True, 3)


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = np.stack([y ^ (rng.random(300) < 0.3) for _ in range(3)], axis=1)
    found = calibration.measure(NaiveBayesClassifier(), X, y, 0)
    X, X_test, y, y_test = calibration.train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    model = NaiveBayesClassifier().fit(X, y)
    p = model.predict_proba(X_test)
    assert found["error"] == pytest.approx(100 - 100 * model.score(X_test, y_test))
    assert found["confidence"] == pytest.approx(100 * p.max(axis=1).mean())
    assert found["log_loss"] == pytest.approx(log_loss(y_test, p))
    assert found["brier"] == pytest.approx(2 * brier_score_loss(y_test, p[:, 1]))  # of both classes
    assert sum(found["bins"][0]) == 100
    assert found["ece"] == pytest.approx(100 * calibration.calibration_error(np.array(found["bins"])))
    assert 0 < found["chance"] < 15


def test_certain_and_true_confidences_show_nothing_by_chance():
    assert calibration.chance_error(np.ones(50), np.random.default_rng(0)) == 0


def line(name, learner, calibrated, seed=0, **measures):
    """Return a line of results."""
    some = {"error": 5.0, "confidence": 95.0, "ece": 4.0, "chance": 1.0, "log_loss": 0.3, "brier": 0.1, **measures}
    start = {"set": name, "learner": learner, "calibrated": calibrated, "seed": seed}
    return {**start, **some, "bins": [[100] * 10] * 3, "versions": "tanlearn 1 abc, numpy 2"}


def test_sentences_follow_from_results():
    lines = [
        line(name, learner, False, seed) for name in "ab" for learner in calibration.models(True, 0) for seed in (0, 1)
    ]
    lines += [{**one, "calibrated": True, "ece": 3.0 + one["seed"], "log_loss": 0.2} for one in lines]
    text = " ".join(calibration.summary(calibration.cells(lines)).split())
    assert (
        "Calibration lowers the expected calibration error (ECE) of TANClassifier() from 4.0 to 3.5 percentage points, "
        "as a mean over 2 data sets (a, b)."
    ) in text
    assert "The mean log loss decreases from 0.300 to 0.200 nats." in text
    assert "calibration lowers the ECE in 6 and the log loss in 12 of 12 splits. The errors are equal." in text
    assert calibration.rows(calibration.cells(lines))[5] == [
        *("a", "TANClassifier()", "yes", "5.00", "95.00", "3.50", "1.00", "0.200", "0.100"),
    ]
    lines[-1] |= {"ece": 9.0, "error": 6.0}
    text = " ".join(calibration.summary(calibration.cells(lines)).split())
    assert "from 4.0 to 4.8 percentage points" in text
    assert "The error changes in 1 splits. The largest remaining ECE is 6.0 points (TANClassifier() on b)." in text


def test_command_writes_table_and_picture(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = np.stack([y ^ (rng.random(120) < 0.3) for _ in range(3)], axis=1)
    models = dict.fromkeys(calibration.models(True, 0), NaiveBayesClassifier())
    monkeypatch.setattr(calibration, "models", lambda calibrate, seed: models)
    monkeypatch.setattr(calibration, "load_table", lambda name, folder: (X, y))
    folders = ["--results", str(tmp_path)]
    run = ["run", "--sets", "digits", "german", "--seeds", "0", "--data", "none", *folders]
    calibration.main(run)
    assert len(capsys.readouterr().out.splitlines()) == 6  # there is no german
    calibration.main(run)
    assert capsys.readouterr().out == ""
    calibration.main(["report", "--output", str(tmp_path), *folders])
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert text.startswith("# Calibration\n\nCalibration lowers")
    assert text.count("\n| digits | ") == 6
    assert "over 1 stratified splits" in text
    assert (tmp_path / "calibration.png").stat().st_size > 5000
    with pytest.raises(SystemExit, match="nothing is finished"):
        calibration.write_report([], tmp_path)
