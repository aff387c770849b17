"""Results with noise are those of rows that determine no cut points, and the report follows from them."""

import numpy as np
import pytest
from support.results_files import write

from benchmarks.quality import private_counts as benchmark
from tanlearn import PrivacyBudget


def error_of(start):
    """Return an error that depends on the method and the loss: trees are better from epsilon 1."""
    epsilon = start["epsilon"]
    known = {benchmark.FREQUENT: 30.0, benchmark.ALL_ROWS: 9.0, benchmark.TREE: 8.0, benchmark.BAYES: 10.0}
    if epsilon is None:
        return known[start["method"]]
    if start["method"] == benchmark.BAYES:
        return 10 + 0.2 / epsilon
    return 9 + (1 if start["method"] == benchmark.TWO else 3) / epsilon + (start["set"] == "letter") / 100


def lines_of(name):
    """Yield the lines of a finished data set."""
    for seed in range(benchmark.N_SEEDS):
        for start in benchmark.starts(name, seed):
            error = error_of(start)
            measured = {"n_rows": 1234, "error": error, "log_loss": error / 20, "seconds": 1.0}
            yield start | measured | {"versions": "tanlearn 1, numpy 2"}


def test_report_compares_trees_and_naive_bayes_over_epsilon(tmp_path):
    unfinished = [line for line in lines_of("sleep") if line["seed"] == 0]
    write(tmp_path / benchmark.FILE, [*lines_of("adult"), *lines_of("letter"), *unfinished])
    benchmark.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    text = (tmp_path / "private_counts.md").read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert (
        "Use naive Bayes at epsilon 0.1 and 0.3. At epsilon 1, 3 and 10, use a tree in two releases: it has a lower "
        "mean error and a lower mean log loss than naive Bayes."
    ) in sentences
    assert (
        "At epsilon 0.1, 0.3, 1, 3 and 10 with delta 1e-06, noise raises the mean error of naive Bayes by 2.0, 0.7, "
        "0.2, 0.1 and 0.0 points. The tree in two releases has a lower log loss than naive Bayes on 0, 0, 2, 2 and "
        "2 of 2 data sets."
    ) in sentences
    assert (
        "On adult, the error of naive Bayes is 12.0 % at epsilon 0.1, 10.2 % at epsilon 1 and 10.0 % without noise. "
        "The error of the tree is 19.0 %, 10.0 % and 8.0 %. Predicting the most frequent class has an error of 30.0 %, "
        "and naive Bayes without noise, with cut points of all rows, one of 9.0 %."
    ) in sentences
    assert "| 0.1 | 1e-06 | 12.0 | 39.0 | 19.0 | 0.600 | 1.950 | 0.950 | 0 |" in text
    assert "| no noise |  | 10.0 | 8.0 | 8.0 | 0.500 | 0.400 | 0.400 |  |" in text
    assert "| letter | 1 | 0 | 10.2 | 12.0 | 10.0 |" in text
    assert "| adult | 1,234 | 30.0 | 10.0 | 9.0 | 8.0 |" in text
    assert "sleep" not in text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a data set of two classes, numbers and categories."""
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    X = np.column_stack([y + 0.3 * rng.normal(size=900), np.where(rng.random(900) < 0.8, y, rng.integers(0, 3, 900))])
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "clusters.npz", X=X, y=y, is_categorical=np.array([False, True]))
    monkeypatch.setattr(benchmark, "N_PUBLIC", 200)
    return tmp_path


@pytest.mark.filterwarnings("ignore:random_state repeats")
def test_methods_are_measured_with_noise_of_the_budget(folder, monkeypatch):
    problem = benchmark.Problem("clusters", folder, seed=0)
    assert (len(problem.X), len(problem.X_test)) == (400, 300)
    assert problem.counts.counts.class_counts.sum() == 400
    budgets, release = [], PrivacyBudget.release
    monkeypatch.setattr(PrivacyBudget, "release", lambda self, *a, **k: budgets.append(self) or release(self, *a, **k))
    for method, n_releases in zip(benchmark.METHODS, (1, 1, 2), strict=True):
        found = problem.protected(method, 10.0, 1e-6, seed=0)
        assert found["error"] < 20
        assert budgets[-1].spent_epsilon == 10.0
        assert len(budgets[-1].releases) == n_releases
    for method in benchmark.UNPROTECTED:
        found = problem.unprotected(method)
        assert found["error"] < (20 if method != benchmark.FREQUENT else 51)
        assert found["n_rows"] == 400


def test_lines_are_different():
    keys = [benchmark.key(start) for start in benchmark.starts("adult", 0)]
    assert len(set(keys)) == len(keys) == 4 + 5 * 2 * 3
