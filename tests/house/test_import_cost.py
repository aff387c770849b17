"""Importing the package brings no heavy package along but those that scikit-learn and Numba need."""

from __future__ import annotations

import subprocess
import sys

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


def test_importing_the_package_imports_nothing_heavy():
    assert heavy_beyond_dependencies("import tanlearn") == set()


def test_importing_the_baselines_imports_nothing_heavy():
    assert heavy_beyond_dependencies("import tanlearn.baselines") == set()


def test_checker_reports_a_heavy_import():
    assert heavy_beyond_dependencies("import sklearn.base, networkx") == {"networkx"}
