"""What anomalies.md shows: rare classes, ranks of rows, and the report."""

import numpy as np
import pytest

from benchmarks.quality import anomalies


def write_table(folder, n=300):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.2).astype(int)
    X = np.stack([rng.integers(0, 3, n), rng.integers(0, 3, n), rng.normal(6 * y, 1)], axis=1)
    X[:, 1] = np.where(y == 1, 3 + X[:, 1], X[:, 0])
    (folder / "raw").mkdir()
    np.savez(folder / "raw" / "vote.npz", X=X, y=y, is_categorical=np.array([True, True, False]))


def test_one_row_in_twenty_has_the_rare_class(tmp_path):
    write_table(tmp_path)
    X, is_rare, is_categorical = anomalies.load("vote", 0, tmp_path)
    assert is_rare.mean() == pytest.approx(anomalies.RARE, abs=0.01)
    assert set(X[is_rare, 1]) <= {3, 4, 5}
    assert is_categorical.tolist() == [True, True, False]


@pytest.mark.parametrize("learner", [name for name in anomalies.LEARNERS if name not in anomalies.PYOD])
def test_clear_outliers_are_ranked_first(learner, tmp_path):
    write_table(tmp_path)
    X, is_rare, is_categorical = anomalies.load("vote", 0, tmp_path)
    found = anomalies.measure(learner, X, is_rare, is_categorical, None)
    assert found["auc"] > (0.4 if learner == "LocalOutlierFactor" else 0.9)  # which compares with near rows only


def test_the_command_leaves_out_pyod_and_writes_a_report(tmp_path, capsys):
    write_table(tmp_path)
    options = ["--results", str(tmp_path)]
    anomalies.main(["run", "--sets", "vote", "--data", str(tmp_path), *options])
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 3 * len(anomalies.SEEDS)
    assert "ECOD" not in printed
    lines = anomalies.read(tmp_path / "anomalies.jsonl")
    lines += [{**lines[0], "learner": name, "auc": 0.5, "seed": 0} for name in anomalies.PYOD]
    anomalies.write_report(lines, tmp_path / "anomalies.md")
    assert "| vote |" in (tmp_path / "anomalies.md").read_text()
