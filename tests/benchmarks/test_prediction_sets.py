"""Prediction sets of the benchmark cover rows, and sentences of its report follow from results."""

import numpy as np
import pytest
from support.results_files import write

from benchmarks.quality import prediction_sets
from tanlearn import NaiveBayesClassifier

TREE, TERMS = prediction_sets.LEARNERS
OURS, HELD_BACK = prediction_sets.METHODS


def line(name, learner, method, seed, coverage, size):
    """Return a line of results."""
    start = {"set": name, "learner": learner, "method": method, "seed": seed}
    return start | {
        "n_rows": 300,
        "coverage": coverage,
        "size": size,
        "seconds": 1.0,
        "versions": "tanlearn 1, numpy 2",
    }


def test_report_counts_data_sets_from_results(tmp_path):
    results = {(TREE, OURS): (0.91, 1.2), (TREE, HELD_BACK): (0.95, 1.5), (TERMS, OURS): (0.88, 1.1)}
    results[TERMS, HELD_BACK] = (0.89, 1.0)
    lines = [
        line(name, *which, seed, coverage, size + 0.1 * seed)
        for name in ("car", "vote")
        for which, (coverage, size) in results.items()
        for seed in range(prediction_sets.N_SPLITS)
    ]
    lines += [line("cmc", TREE, OURS, 0, 0.1, 9)]  # not finished
    write(tmp_path / prediction_sets.FILE, lines)
    prediction_sets.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    text = (tmp_path / "prediction_sets.md").read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert (
        "With the Chow-Liu tree, the sets of `ConformalClassifier` contain the true class in 91.0 % of the rows, as "
        "a mean over 2 data sets. On single data sets, this coverage is 91.0 to 91.0 %, and it is within two points "
        "of the required 90 % on 2 data sets. If a fifth of the training rows is used for calibration only, the mean "
        "coverage is 95.0 %, and it is within two points on 0 data sets. The sets of `ConformalClassifier` are "
        "smaller on 2 data sets, with 1.30 instead of 1.60 classes on average."
    ) in sentences
    assert "are smaller on 0 data sets, with 1.20 instead of 1.10 classes" in sentences
    assert "| car | 300 | 91.0 | 95.0 | 1.30 | 1.60 | 88.0 | 89.0 | 1.20 | 1.10 |" in text
    assert "cmc" not in text


def test_nothing_is_reported_of_nothing(tmp_path):
    with pytest.raises(SystemExit, match="nothing is finished"):
        prediction_sets.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])


def test_sets_of_all_rows_cover_test_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1_200)
    X = y[:, np.newaxis] + 0.7 * rng.normal(size=(1_200, 2))
    found = prediction_sets.measure(
        NaiveBayesClassifier(), prediction_sets.ours, X[:600], X[600:], y[:600], y[600:], seed=0
    )
    assert found["n_rows"] == 600
    assert abs(found["coverage"] - 0.9) < 0.05
    assert 0.9 < found["size"] < 1.5


def test_sets_with_rows_held_back_are_those_of_mapie():
    pytest.importorskip("mapie", reason='MAPIE is not installed: pip install -e ".[peers]"')
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1_200)
    X = y[:, np.newaxis] + 0.7 * rng.normal(size=(1_200, 2))
    arguments = NaiveBayesClassifier(), X[:600], y[:600], X[600:], 0
    assert prediction_sets.held_back(*arguments).shape == prediction_sets.ours(*arguments).shape == (600, 3)
