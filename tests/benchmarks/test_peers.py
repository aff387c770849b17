"""The benchmark beside other libraries: it measures, compares what they predict, and says what it left out."""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest

from benchmarks import ROOT
from benchmarks.peers import __main__ as classics
from benchmarks.peers import report


def write_set(folder, name, n_features):
    """Write a set in the published format, in which every feature depends on the class and the one before."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    columns = [y]
    for _ in range(n_features):
        columns.append(np.where(rng.random(300) < 0.6, (columns[-1] + y) % 3, rng.integers(0, 3, 300)))
    x = np.stack(columns[1:], axis=1) + 1
    np.savez(
        folder / f"{name}.npz",
        n_folds=1,
        x_tr_fold1=x[:200],
        t_tr_fold1=y[:200],
        x_te_fold1=x[200:],
        t_te_fold1=y[200:],
    )


def measured(folder, *options):
    """Return the figures by task and library."""
    classics.main(["--data", str(folder), "--output", str(folder), "--repeats", "1", *options])
    results = json.loads((folder / "results.json").read_text())
    return results, {(row["task"], row["library"]): row for row in results["results"]}


def test_same_work_is_measured_and_reported(tmp_path):
    write_set(tmp_path, "tiny", 4)
    _, rows = measured(tmp_path, "--sets", "tiny", "--peers", "scikit-learn")

    bayes = [row for (task, _), row in rows.items() if task == "naive Bayes"]
    assert [row["library"] for row in bayes] == ["tanlearn", "tanlearn, encoded", "scikit-learn"]
    assert len({row["accuracy"] for row in bayes}) == 1
    assert all(row["agreement"] == 1 and row["rows"] == 100 and row["fit"] > 0 for row in bayes)
    assert rows["Chow-Liu TAN", "tanlearn"]["edges"] == 3
    assert rows["pair counts", "NumPy, one-hot product"]["agreement"] == 1

    written, picture = tmp_path / "README.md", tmp_path / "classics.png"
    text = written.read_text()
    assert "| tiny | scikit-learn | " in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    written.unlink()
    classics.main(["--report-only", "--output", str(tmp_path)])
    assert written.read_text() == text


def test_slow_and_absent_libraries_are_named(tmp_path, monkeypatch):
    def no_pgmpy(package):
        if package == "pgmpy":
            raise PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(classics, "version", no_pgmpy)
    monkeypatch.setattr(report, "plot", lambda measured, path: None)
    write_set(tmp_path, "wide", 17)
    options = ("--sets", "wide", "--peers", "scikit-learn", "pgmpy", "--limit", "0")
    results, rows = measured(tmp_path, *options)

    assert rows["naive Bayes", "scikit-learn"]["skipped"].endswith("the limit is 0 s")
    assert results["left_out"] == {"pgmpy": 'not installed, pip install -e ".[peers]"'}
    text = (tmp_path / "README.md").read_text()
    assert "| wide | scikit-learn | skipped: a fit would take up to 0 s" in text
    assert "pgmpy is left out: not installed" in text


@pytest.mark.filterwarnings("default")  # pyAgrum crashes where a warning at its import is an error
@pytest.mark.parametrize(("package", "library"), [("pyagrum", "pyAgrum"), ("pgmpy", "pgmpy")])
def test_peer_predicts_the_same_classes(tmp_path, monkeypatch, package, library):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f'{package} is not installed: pip install -e ".[peers]"')
    monkeypatch.setattr(report, "plot", lambda measured, path: None)
    write_set(tmp_path, "tiny", 4)
    _, rows = measured(tmp_path, "--sets", "tiny", "--peers", package)

    assert rows["naive Bayes", library]["agreement"] == 1
    assert rows["Chow-Liu TAN", library]["edges"] == 3
    assert rows["Chow-Liu TAN", library]["agreement"] >= 0.9


def test_site_has_the_ratios_of_the_results():
    measured = json.loads((classics.HERE / "results.json").read_text())
    seconds = {(row["task"], row["library"], row["set"]): row.get("fit") for row in measured["results"]}
    ratios = [
        report.ratio(*(seconds["Chow-Liu TAN", library, name] for library in ("pyAgrum", "tanlearn")))
        for name in ("letter", "satimage", "usps")
    ]
    said = f"| pyAgrum {measured['versions']['pyagrum']}: {', '.join(ratios)} times as long |"
    text = (ROOT / "docs" / "guide" / "speed.md").read_text(encoding="utf-8")
    assert said in text
    assert f"in one run on {measured['date']}" in text
