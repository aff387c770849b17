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
    bins, (error, confidence, ece, chance, loss, brier) = calibration.measure(NaiveBayesClassifier(), X, y, 0)
    X, X_test, y, y_test = calibration.train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    model = NaiveBayesClassifier().fit(X, y)
    p = model.predict_proba(X_test)
    assert error == pytest.approx(100 - 100 * model.score(X_test, y_test))
    assert confidence == pytest.approx(100 * p.max(axis=1).mean())
    assert loss == pytest.approx(log_loss(y_test, p))
    assert brier == pytest.approx(2 * brier_score_loss(y_test, p[:, 1]))  # of both classes
    assert bins[0].sum() == 100
    assert ece == pytest.approx(100 * calibration.calibration_error(bins))
    assert 0 < chance < 15


def test_certain_and_true_confidences_show_nothing_by_chance():
    assert calibration.chance_error(np.ones(50), np.random.default_rng(0)) == 0


def test_verdict_counts_splits():
    figures = {False: [[5, 99, 4.0, 1, 0.3, 0.1]] * 2, True: [[5, 95, 3.0, 1, 0.3, 0.1], [5, 95, 4.0, 1, 0.2, 0.1]]}
    row = {(name, when): (None, np.array(figures[when])) for name in calibration.models(True, 0) for when in figures}
    lines = calibration.verdict({"a": row, "b": row}).splitlines()
    assert lines[2] == "- TANClassifier(): a lower ECE in 2 of 4 splits, a lower log loss in 2."
    assert list(calibration.rows("a", row))[-1] == [
        *("a", "TANClassifier()", "yes", "5.00", "95.00", "3.50", "1.00", "0.250", "0.100"),
    ]


def test_command_writes_table_and_picture(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = np.stack([y ^ (rng.random(120) < 0.3) for _ in range(3)], axis=1)
    models = dict.fromkeys(calibration.models(True, 0), NaiveBayesClassifier())
    monkeypatch.setattr(calibration, "models", lambda calibrate, seed: models)
    monkeypatch.setattr(calibration, "load_table", lambda name, folder: (X, y))
    calibration.main(["--sets", "digits", "german", "--seeds", "0", "--data", "none", "--output", str(tmp_path)])
    assert len(capsys.readouterr().out.splitlines()) == 6  # german is not there
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert text.count("\n| digits | ") == 6
    assert "of 1 splits" in text
    assert (tmp_path / "calibration.png").stat().st_size > 5000
