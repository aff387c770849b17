"""What a user sees of the package: the public names, not its packages."""

import importlib
import inspect
from pathlib import Path

import pytest

import tanlearn
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
