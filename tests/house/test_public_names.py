"""What a user sees of the package: the public names, not its packages."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import tanlearn
import tanlearn._public
import tanlearn.baselines
import tanlearn.estimators
import tanlearn.parameters


def test_the_package_shows_public_names_only():
    assert dir(tanlearn) == sorted([*tanlearn.__all__, "__version__"])


@pytest.mark.parametrize("package", [tanlearn, tanlearn.baselines, tanlearn.estimators, tanlearn.parameters])
def test_public_names_are_no_modules(package):
    """A function such as ``size_path`` must not be hidden by the module it stands in."""
    assert package.__all__ == sorted(package.__all__, key=lambda name: (not name.isupper(), name))
    assert [name for name in package.__all__ if inspect.ismodule(getattr(package, name))] == []


@pytest.mark.parametrize("package", [tanlearn._public, tanlearn.estimators, tanlearn.parameters])
def test_names_are_imported_from_the_modules_that_type_checkers_read(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    statements = {alias.name: node.module for node in branch.body for alias in node.names}
    (assignment,) = branch.orelse
    assert ast.unparse(assignment.value.func) == "lazy_names"
    assert ast.literal_eval(assignment.value.args[1]) == statements
    assert sorted(statements) == sorted(package.__all__)


def test_unknown_names_of_packages_raise_an_error():
    with pytest.raises(AttributeError, match=r"module 'tanlearn\.parameters' has no attribute 'MaximumLikelyhood'"):
        tanlearn.parameters.MaximumLikelyhood  # noqa: B018
    with pytest.raises(ImportError, match="MaximumLikelyhood"):
        from tanlearn.parameters import MaximumLikelyhood  # noqa: F401


def test_a_star_imports_all_public_names():
    namespace = {}
    exec("from tanlearn import *", namespace)
    assert {*tanlearn.__all__} <= {*namespace}


def test_a_public_name_is_one_object_wherever_it_is_imported_from():
    for package in (tanlearn.estimators, tanlearn.parameters):
        for name in package.__all__:
            found = getattr(package, name)
            assert getattr(importlib.import_module(found.__module__), name) is found
            assert getattr(tanlearn, name, found) is found


def test_the_version_needs_no_installed_metadata():
    """A source tree on the path, such as a copy on a machine with a GPU, has all functions."""
    sources = sorted(Path(tanlearn.__file__).parent.rglob("*.py"))
    assert [str(path) for path in sources if "importlib.metadata" in path.read_text("utf-8")] == []
