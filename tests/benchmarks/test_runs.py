"""One run of a learner on a fold: what is read, what is kept of it, and that it is made once."""

import re

import numpy as np
import pytest
from support.results_files import appended, cut_after

from benchmarks.quality import runs
from benchmarks.shared.results import Results
from tanlearn import BackOffRidge, KTreeClassifier, NaiveBayesClassifier
from tanlearn.baselines import LEARNERS

MODELS = {name: LEARNERS[name].make(random_state=0) for name in ("NB ML", "TAN-CR ML")}


@pytest.fixture
def folder(tmp_path):
    """Return a folder of sets: one raw with a gap, and one that is published with its folds."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.stack([y ^ (rng.random(60) < 0.1), rng.integers(0, 3, 60)], axis=1)
    missing = np.zeros(X.shape, bool)
    missing[4, 1] = True
    (tmp_path / "raw").mkdir()
    (tmp_path / "discretized").mkdir()
    np.savez(tmp_path / "raw" / "gaps.npz", X=X, y=y, missing=missing)
    np.savez(tmp_path / "raw" / "few.npz", X=X[:40], y=y[:40])
    parts = {"x_tr": X[:40] + 1, "t_tr": y[:40], "x_te": X[40:] + 1, "t_te": y[40:]}
    np.savez(tmp_path / "discretized" / "few.npz", n_folds=1, **{f"{name}_fold1": part for name, part in parts.items()})
    return tmp_path


def test_sets_are_read_with_their_gaps_and_folds(folder):
    assert runs.sizes(folder) == {"few": 40, "gaps": 60}
    X, y, folds, encoder = runs.load("gaps", folder)
    lost, *_ = runs.load("gaps, 5 % lost", folder)
    assert np.isnan(lost).sum() > np.isnan(X).sum()
    np.testing.assert_array_equal(lost[~np.isnan(lost)], X[~np.isnan(lost)])
    assert np.argwhere(np.isnan(X)).tolist() == [[4, 1]]
    assert np.sort(np.concatenate([test for _, test in folds])).tolist() == list(range(60))
    assert [np.bincount(y[test]).tolist() for _, test in folds] == [[6, 6]] * 5
    assert encoder is None
    _, _, ((train, test),), encoder = runs.load("few, published", folder)
    assert (train.tolist(), test.tolist()) == (list(range(40)), list(range(40, 60)))
    assert encoder.discrete_features is True
    assert runs.load("digits", folder)[3].discrete_features is False


def test_bins_of_confidence_add_up():
    p, right = np.array([0.05, 0.55, 0.58, 1.0]), np.array([False, True, False, True])
    bins = runs.confidence_bins(p, right)
    assert bins[0].tolist() == [1, 0, 0, 0, 0, 2, 0, 0, 0, 1]
    np.testing.assert_allclose(bins[1, [0, 5, 9]], [0.05, 1.13, 1.0])
    assert bins[2, [0, 5, 9]].tolist() == [0, 1, 1]
    assert runs.calibration_error(bins) == pytest.approx((0.05 + 0.13 + 0) / 4)
    both = bins + runs.confidence_bins(np.array([0.5]), np.array([True]))
    assert runs.calibration_error(both) == pytest.approx((0.05 + abs(1.63 - 2)) / 5)


@pytest.mark.parametrize("n", [1, 8, 13])
def test_flags_come_back_from_words(n):
    flags = np.random.default_rng(n).random(n) < 0.5
    assert runs.unpacked(runs.packed(flags), n).tolist() == flags.tolist()


def test_what_is_measured_is_what_the_model_says():
    X, y = np.array([["a"], ["a"], ["b"], ["b"]] * 5), np.array([0, 0, 1, 1] * 5)
    X_test, y_test = np.array([["a"], ["b"], ["b"]]), np.array([0, 0, 2])  # training has no class 2
    found = runs.measure(NaiveBayesClassifier(), X, y, X_test, y_test)
    p = NaiveBayesClassifier().fit(X, y).predict_proba(X_test)
    assert found["error"] == pytest.approx(200 / 3)
    assert runs.unpacked(found["wrong"], 3).tolist() == [False, True, True]
    least = np.log(np.finfo(float).tiny)
    assert found["log_loss"] == pytest.approx(-(np.log(p[0, 0]) + np.log(p[1, 0]) + least) / 3)
    assert found["ece"] == pytest.approx(100 * abs(p.max(axis=1).sum() - 1) / 3)  # all in one bin
    assert (found["calibration"], found["chosen"]) == ([1.0, 1.0, 1.0], "")


def test_what_was_chosen_is_said():
    X, y = np.array([["a"], ["b"]] * 30), np.array([0, 1] * 30)
    said = runs.chosen(LEARNERS["NB HYB"].make(random_state=0).fit(X, y))
    assert re.fullmatch(r"learner=(LBFGS|StochasticGradient)\(.*SoftHybrid\(.*\)\), n_iter=\d+", said)
    assert re.fullmatch(r"n_iter=\d+", runs.chosen(LEARNERS["NB CG-CL"].make(random_state=0).fit(X, y)))
    model = KTreeClassifier(n_epochs=2, random_state=0).fit(X, y)
    assert re.fullmatch(r"loss=(ConditionalNLL|Margin)\(.*\)|refit=BackOffRidge\(.*\)", runs.chosen(model))
    model.refit_ = BackOffRidge(ridge=0.5)
    assert runs.chosen(model) == "refit=BackOffRidge(ridge=0.5)"


def test_runs_go_on_and_failures_stay(folder, capsys):
    path = folder / "results" / "runs.jsonl"
    runs.run_set(Results(path, runs.key), "gaps", MODELS, folder, half="held out")
    whole = appended(path, ["seconds"])
    assert [runs.key(line) for line in whole] == [("gaps", fold, name) for name in MODELS for fold in range(1, 6)]
    assert {(line["n_train"], line["n_test"], line["n_folds"], line["half"]) for line in whole} == {
        (48, 12, 5, "held out")
    }
    failed = [line for line in whole if "failure" in line]
    assert [(line["learner"], line["fold"]) for line in failed] == [("TAN-CR ML", fold) for fold in (1, 2, 4, 5)]
    assert all("complete rows only" in line["failure"] for line in failed)  # the gap is among the test rows of fold 3
    cut_after(path, 3)
    capsys.readouterr()
    runs.run_set(Results(path, runs.key), "gaps", MODELS, folder, half="held out")
    assert appended(path, ["seconds"]) == whole
    assert len(capsys.readouterr().out.splitlines()) == 7
    runs.run_set(Results(path, runs.key), "gaps", MODELS, folder, half="held out")
    assert capsys.readouterr().out == ""
