"""Probabilities are as frequent as they say where the model is true, and how far from it on the digits."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits

from benchmarks.quality import calibration
from benchmarks.quality.runs import calibration_error, confidence_bins
from tanlearn import Calibration
from tanlearn.baselines import LEARNERS

X_DIGITS, Y_DIGITS = load_digits(return_X_y=True)


def test_bins_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    happened = rng.random(500) < p**2
    share, mean = calibration_curve(happened, p, n_bins=10)
    n, confidence, right = confidence_bins(p, happened)
    np.testing.assert_allclose([right / n, confidence / n], [share, mean])
    assert n.sum() == 500


@pytest.mark.parametrize("name", ["NB ML", "TAN-CMI ML", "KDB-2 ML", "TAN-CMI CG-CL", "TAN Order-free HYB"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_model_is_calibrated_for_rows_of_its_own(name, missing):
    """However it was learnt; and with features summed out, too. Four pixels leave doubts about most rows."""
    model = LEARNERS[name].make(random_state=0).fit(X_DIGITS[:, 18:42:6], Y_DIGITS)
    model.calibration_ = Calibration()  # those of the network itself, and not those that digits want of it
    X, y = model.sample(40_000, random_state=1)
    X[np.random.default_rng(2).random(X.shape) < missing] = None
    p = model.predict_proba(X)
    assert 0.3 < p.max(axis=1).mean() < 0.9
    for probability, happened in ((p.max(axis=1), model.predict(X) == y), (p[:, 3], y == model.classes_[3])):
        rng = np.random.default_rng(3)
        draws = [rng.random(len(probability)) < probability for _ in range(200)]
        chances = [calibration_error(confidence_bins(probability, draw)) for draw in draws]
        # However a CPU has rounded the model, chance goes beyond seven standard deviations about once in a million:
        # where one bin decides it is half a normal distribution, cut at 5.0. Probabilities to the power of 1.1,
        # normalised, go beyond for all ten models.
        bound = np.mean(chances) + 7 * np.std(chances)
        assert calibration_error(confidence_bins(probability, happened)) < bound < 0.02


def test_frequencies_are_overconfident_about_digits_and_a_temperature_mends_what_is_trained():
    """On average over three splits, which the trees that tie differ by 0.0025 in confidence; 0.02 is 0.004 away."""
    found = {}
    for name in ("NB ML", "NB CG-CL", "TAN-CMI ML", "TAN-CMI HYB"):
        model = LEARNERS[name].make(random_state=0)
        splits = [calibration.measure(model, X_DIGITS, Y_DIGITS, seed) for seed in range(3)]
        mean = {what: np.mean([split[what] for split in splits]) for what in splits[0] if what != "bins"}
        wrong, confidence, error = mean["error"], mean["confidence"], mean["ece"]
        excess = (confidence + wrong) / 100 - 1
        found[name] = error, mean["log_loss"]
        assert (excess > 0.02) == name.endswith("ML")
        assert (error > 2 * mean["chance"]) == name.endswith("ML")  # in per cent
    assert found["NB CG-CL"][1] < found["NB ML"][1] / 2
    assert found["TAN-CMI HYB"][1] < found["TAN-CMI ML"][1] / 1.5
