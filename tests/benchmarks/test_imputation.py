"""What imputation.md shows: which cells count, and how errors are computed."""

import numpy as np
import pytest

from benchmarks.quality import imputation


def small_table(n=80):
    rng = np.random.default_rng(0)
    category = rng.integers(0, 3, n)
    X = np.stack([category, (category + (rng.random(n) < 0.1)) % 3, category + rng.normal(0, 0.3, n)], axis=1)
    X[5, 0] = np.nan
    return X, np.array([True, True, False])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", imputation.IMPUTERS)
def test_every_imputer_fills_categories_with_categories(name):
    X, is_categorical = small_table()
    lost = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    filled = imputation.IMPUTERS[name](lost, is_categorical)
    seen = ~np.isnan(lost)
    np.testing.assert_allclose(filled[seen], lost[seen])
    assert set(filled[:, :2].ravel()) <= {0, 1, 2}
    assert np.isfinite(filled).all()


def test_lost_cells_with_a_known_value_are_compared():
    X, is_categorical = small_table()
    found = imputation.measure(lambda shown, _: np.where(np.isnan(shown), X, shown), X, is_categorical, 0)
    assert (found["right"], found["rmse"]) == (100, 0)
    wrong = imputation.measure(lambda shown, _: np.where(np.isnan(shown), X + 1, shown), X, is_categorical, 0)
    assert wrong["right"] == 0
    assert wrong["rmse"] == pytest.approx(1 / np.std(X[:, 2]))


def test_indicators_are_decoded_to_what_was_encoded():
    X, is_categorical = small_table()
    X = X[~np.isnan(X).any(axis=1)]
    columns = imputation.Indicators(X, is_categorical)
    Z = columns.encode(X)
    assert Z.shape[1] == 3 + 3 + 1
    np.testing.assert_allclose(columns.decode(Z), X)
    assert np.linalg.norm(Z[0, :3] - Z[X[:, 0] != X[0, 0]][0, :3]) == pytest.approx(1)


def test_the_report_counts_wins_and_marks_the_best(tmp_path):
    lines = []
    for name, shift in (("vote", 0), ("chess", 1)):
        for k, imputer in enumerate(imputation.IMPUTERS):
            figures = {"seconds": 1.0, "right": 90.0 - k - shift, "rmse": None}
            kinds = {"n_samples": 100, "n_categorical": 3, "n_numeric": 0, "versions": "tanlearn 0 a, numpy 1, numba 1"}
            lines.append({"set": name, "seed": 0, "imputer": imputer, **figures, **kinds})
    imputation.write_report(lines, tmp_path / "imputation.md")
    text = (tmp_path / "imputation.md").read_text()
    assert "| vote | 100 | 3 + 0 | **90.0** | 89.0 |" in text
    start = "Of 1 data sets, TANImputer imputes more categories correctly than *most frequent, mean* on 1, than *KNN"
    assert start in " ".join(text.split())


def test_the_command_runs_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(imputation, "load", lambda name, folder: small_table())
    arguments = ["--sets", "vote", "--imputers", imputation.BASE, "--results", str(tmp_path), "--data", "none"]
    for n_lines in (2, 0):
        imputation.main(["run", *arguments])
        assert len(capsys.readouterr().out.splitlines()) == n_lines
    imputation.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    assert (tmp_path / "imputation.md").exists()
