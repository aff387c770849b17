"""Probabilities are as frequent as they say where the model is true, and how far from it on the digits."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.quality import calibration
from tanlearn.baselines import LEARNERS

X_DIGITS, Y_DIGITS = load_digits(return_X_y=True)


def test_calibration_error_by_hand_and_by_scikit_learn():
    p, happened = np.array([0.05, 0.15, 0.18, 1.0, 0.95]), np.array([False, True, False, True, True])
    assert calibration.calibration_error(p, happened) == pytest.approx((0.05 + 0.67 + 0.05) / 5)
    rng = np.random.default_rng(0)
    p = rng.random(500)
    happened = rng.random(500) < p**2
    share, mean = calibration_curve(happened, p, n_bins=10)
    sizes, *found = calibration.reliability(p, happened)
    np.testing.assert_allclose(found, [mean, share])
    assert sizes.sum() == 500


@pytest.mark.parametrize("name", ["NB ML", "TAN-CMI ML", "KDB-2 ML", "TAN-CMI CG-CL", "TAN Order-free HYB"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_model_is_calibrated_for_rows_of_its_own(name, missing):
    """However it was learnt; and with features summed out, too. Four pixels leave doubts about most rows."""
    model = LEARNERS[name].make(random_state=0).fit(X_DIGITS[:, 18:42:6], Y_DIGITS)
    model.temperature_ = 1.0  # those of the network itself, and not those that digits want of it
    X, y = model.sample(40_000, random_state=1)
    X[np.random.default_rng(2).random(X.shape) < missing] = None
    p = model.predict_proba(X)
    assert 0.3 < p.max(axis=1).mean() < 0.9
    for probability, happened in ((p.max(axis=1), model.predict(X) == y), (p[:, 3], y == model.classes_[3])):
        chances = calibration.chance_errors(probability, np.random.default_rng(3))
        # However a CPU has rounded the model, chance goes beyond seven standard deviations about once in a million:
        # where one bin decides it is half a normal distribution, cut at 5.0. Probabilities to the power of 1.1,
        # normalised, go beyond for all ten models.
        bound = np.mean(chances) + 7 * np.std(chances)
        assert calibration.calibration_error(probability, happened) < bound < 0.02


def test_frequencies_are_overconfident_about_digits_and_a_temperature_mends_what_is_trained():
    """On average over three splits, which the trees that tie differ by 0.0025 in confidence; 0.02 is 0.004 away."""
    found = {}
    for name in ("NB ML", "NB CG-CL", "TAN-CMI ML", "TAN-CMI HYB"):
        model = LEARNERS[name].make(random_state=0)
        splits = [calibration.measure(model, X_DIGITS, Y_DIGITS, seed) for seed in range(3)]
        excess = np.mean([confidence.mean() - right.mean() for confidence, right, _ in splits])
        *_, error, chance, loss, _ = np.mean([figures for *_, figures in splits], axis=0)
        found[name] = error, loss
        assert (excess > 0.02) == name.endswith("ML")
        assert (error > 2 * chance) == name.endswith("ML")  # in per cent
    assert found["NB CG-CL"][1] < found["NB ML"][1] / 2
    assert found["TAN-CMI HYB"][1] < found["TAN-CMI ML"][1] / 1.5


def test_figures_of_the_table_are_those_of_scikit_learn():
    model = LEARNERS["NB ML"].make(random_state=0)
    confidence, right, (error, mean, *_, loss, brier) = calibration.measure(model, X_DIGITS, Y_DIGITS, 0)
    X, X_test, y, y_test = train_test_split(X_DIGITS, Y_DIGITS, test_size=1 / 3, stratify=Y_DIGITS, random_state=0)
    p = model.fit(X, y).predict_proba(X_test)
    assert error == pytest.approx(100 * (1 - model.score(X_test, y_test))) == pytest.approx(100 * (1 - right.mean()))
    assert mean == pytest.approx(100 * p.max(axis=1).mean()) == pytest.approx(100 * confidence.mean())
    assert loss == log_loss(y_test, p)
    assert brier == pytest.approx(
        np.mean([np.sum((row - np.eye(10)[k]) ** 2) for row, k in zip(p, y_test, strict=True)])
    )


@pytest.mark.filterwarnings("ignore:discretisation left")
@pytest.mark.parametrize("has_temperature", [False, True])
def test_command_prints_a_table_and_draws(has_temperature, monkeypatch, capsys, tmp_path):
    if has_temperature and not calibration.HAS_TEMPERATURE:
        pytest.skip("calibration by temperature needs scikit-learn 1.8")
    monkeypatch.setattr(calibration, "HAS_TEMPERATURE", has_temperature)
    monkeypatch.setattr(calibration, "NAMES", ["NB ML", "TAN-CMI ML"])
    monkeypatch.setattr(calibration, "RESCALED", ["NB ML"])
    monkeypatch.setattr(calibration, "DRAWN", ["NB ML", "NB ML, temperature"])
    monkeypatch.setattr(calibration, "COMPARED", ("TAN-CMI ML", "NB ML"))
    calibration.main(["--figure", str(tmp_path / "digits.png")])
    *rows, comparison = capsys.readouterr().out.splitlines()
    names = ["| learner", "| ---", "| NB ML", "| TAN-CMI ML"]
    if has_temperature:
        assert [row.split(" | ")[0] for row in rows] == [*names, "| NB ML, temperature", ""]
    else:
        assert [row.split(" | ")[0] for row in rows[:4]] == names
        assert "has no calibration by temperature, which came with 1.8" in rows[5]
    assert comparison == "TAN-CMI ML has a lower ECE than NB ML in 1 of 1 split(s)."
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
