"""Imports are cheap: the package alone, its names, and the command line before it has work to do."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

HEAVY = {"cupy", "cvxpy", "matplotlib", "networkx", "pandas", "polars", "rich", "scipy.optimize", "typer"}


def imported_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after one statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def heavy_beyond_dependencies(statement: str) -> set[str]:
    """Return the heavy packages of a statement that its scikit-learn modules and Numba do not explain."""
    modules = imported_by(statement)
    dependencies = {"numba", "sklearn.base", *(name for name in modules if name.split(".")[0] == "sklearn")}
    explained = imported_by(f"import {', '.join(sorted(dependencies))}")
    return HEAVY & (modules - explained)


#: Parts of the library and of scikit-learn that naive Bayes does not need.
UNUSED = {
    *(f"tanlearn.{package}" for package in ("baselines", "c_export", "cli", "comparison", "dask", "density")),
    *(f"tanlearn.{package}" for package in ("displays", "exports", "forest", "privacy", "search", "terms", "training")),
    *(f"tanlearn.kernels.{module}" for module in ("boosting", "cuda.train", "missing_values", "terms", "train")),
    *(f"tanlearn.estimators.{module}" for module in ("bayes_forest", "gradient_tan", "notebook", "row_predictor")),
    "tanlearn.estimators.table_counts",
    "tanlearn.files.models",
    "tanlearn.parameters.hybrid_cv",
    "tanlearn.sources.batches",
    "tanlearn.structures.drawings",
    "sklearn.model_selection",
}
X_AND_Y = "[['sun', 30.5], ['rain', 12.0], ['sun', 28.0], ['rain', 15.5]], ['beach', 'home', 'beach', 'home']"


@pytest.mark.parametrize(
    "statement",
    [
        "import tanlearn; tanlearn.NaiveBayesClassifier()",
        "from tanlearn.estimators import NaiveBayesClassifier",
        f"import tanlearn; model = tanlearn.NaiveBayesClassifier().fit({X_AND_Y}); model.predict([['sun', None]])",
    ],
    ids=["name", "package", "fit"],
)
def test_naive_bayes_imports_no_other_learners(statement):
    modules = imported_by(statement)
    assert "tanlearn.estimators.naive_bayes" in modules
    assert modules & UNUSED == set()
    assert heavy_beyond_dependencies(statement) == set()


def test_unused_modules_exist():
    own = sorted(name for name in UNUSED if name.startswith("tanlearn"))
    assert [name for name in own if find_spec(name) is None] == []


@pytest.mark.parametrize("statement", ["import tanlearn", "import tanlearn; dir(tanlearn); tanlearn.__all__"])
def test_importing_the_package_alone_imports_no_other(statement):
    found = {name.split(".")[0] for name in imported_by(statement) - imported_by("")}
    assert found - sys.stdlib_module_names == {"tanlearn"}


def test_importing_a_public_name_imports_nothing_heavy():
    assert heavy_beyond_dependencies("from tanlearn import TANClassifier") == set()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--version"], "tanlearn 0."),
        (["--help"], "export-c"),
        (["fit", "--help"], "--target"),
        (["fit", "no.csv", "--target", "y", "-o", "a.tan"], "there is no file no.csv."),
        (["fit", "no.npz", "--learner", "NB ML", "-o", "a.tan"], "there is no file no.npz."),
        (["fit", "no.csv", "--targt", "y"], "No such option"),
        (["predict", "no.tan", "no.csv"], "there is no file no."),
        (["explain", "no.tan", "a=1"], "there is no file no.tan."),
        (["ask", "no.tan"], "there is no file no.tan."),
        (["describe", "no.tan"], "there is no file no.tan."),
        (["export-c", "no.tan", "-o", "a.h"], "there is no file no.tan."),
        (["export-sql", "no.tan", "--table", "t", "--dialect", "duckdb"], "there is no file no.tan."),
        (["export-js", "no.tan"], "there is no file no.tan."),
        (["export-onnx", "no.tan", "-o", "a.onnx"], "there is no file no.tan."),
        (["compare", "no.csv", "--target", "y"], "there is no file no.csv."),
        (["compare", "--help"], "--cell-time-limit"),
        (["compare", "no.csv", "other.csv", "--output", "results.csv"], "there is no file no.csv."),
        (["report", "--help"], "--reference"),
        (["report", "no.csv"], "there is no file no.csv."),
        (["counts", "no.csv", "--target", "y", "-o", "a.counts"], "there is no file no.csv."),
        (["outliers", "no.csv"], "there is no file no.csv."),
        (
            ["private-counts", "no.csv", "-t", "y", "--declared", "no.json", "--epsilon", "1", "-o", "a.counts"],
            "there is no file no.csv.",
        ),
        (["impute", "no.csv", "-o", "a.csv"], "there is no file no.csv."),
        (["merge", "no.counts", "-o", "a.counts"], "there is no file no.counts."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_line_answers_before_it_imports_what_learns(arguments, answer, tmp_path):
    pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    code = (
        "import contextlib, sys\n"
        "from tanlearn.cli import main\n"
        f"sys.argv = ['tanlearn', *{arguments}]\n"
        "with contextlib.suppress(SystemExit):\n    main()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    *_, modules = done.stdout.splitlines()
    assert answer in done.stdout + done.stderr
    unused = {"numba", "scipy", "sklearn", *HEAVY - {"rich", "typer"}}
    if arguments in (["--version"], ["--help"]):
        unused |= {"joblib"}
    assert unused & set(modules.split()) == set()


def test_importing_the_baselines_imports_nothing_heavy():
    assert heavy_beyond_dependencies("import tanlearn.baselines") == set()


def test_checker_reports_a_heavy_import():
    assert heavy_beyond_dependencies("import sklearn.base, networkx") == {"networkx"}
