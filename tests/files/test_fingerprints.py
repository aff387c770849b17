"""Digests tell values apart by content and by names that users import, not by the module that holds them today."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import types

import pytest

import tanlearn
from tanlearn.files.fingerprints import digest

SOURCE = """
class Price:
    def __init__(self, weight):
        self.weight = weight

class Cost(Price):
    pass

class Callback:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, report):
        return None

def cheap(report):
    return None

def dear(report):
    return None

def make():
    return lambda report: None
"""

#: What a digest may be of: an instance, a class, a function, and what pickle writes with references to them.
VALUES = {
    "instance": lambda module: module.Price(1),
    "class": lambda module: module.Price,
    "function": lambda module: module.cheap,
    "callable instance": lambda module: module.Callback(1),
    "partial": lambda module: functools.partial(module.cheap, module.Price(1)),
    "method": lambda module: module.Callback(1).__call__,
}


@pytest.fixture
def module(monkeypatch):
    """Return a function that makes a module of the source, importable under a name."""

    def make(name):
        made = types.ModuleType(name)
        exec(SOURCE, vars(made))
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return make


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_moves_inside_tanlearn_keeps_its_digest(module, value):
    before, after = (digest("training", [value(module(f"tanlearn.{name}"))]) for name in ("losses", "attic.prices"))
    assert before == after


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_others_define_is_distinguished_by_its_module(module, value):
    names = "tanlearn.prices", "prices", "tanlearning"
    assert len({digest("training", [value(module(name))]) for name in names}) == 3


def test_different_names_and_contents_differ(module):
    own = module("tanlearn.prices")
    values = [own.Price, own.Cost, own.Price(1), own.Cost(1), own.Price(2), own.cheap, own.dear]
    values += [own.Callback(1), own.Callback(2), functools.partial(own.cheap), functools.partial(own.dear)]
    assert len({digest("training", [value]) for value in values}) == len(values)


def test_what_has_no_name_of_its_own_is_refused(module):
    with pytest.raises(ValueError, match="a checkpoint must identify the training"):
        digest("training", [module("tanlearn.prices").make()])


def test_no_two_public_classes_of_tanlearn_share_a_name():
    # Or an estimator with the one would go on from a checkpoint of the other.
    defined = {}
    for package in pkgutil.walk_packages(tanlearn.__path__, "tanlearn."):
        for name, value in vars(importlib.import_module(package.name)).items():
            is_own = isinstance(value, type) and value.__module__ == package.name and not name.startswith("_")
            # Twins of kernels share names, and only kernels are handed those; Dask's are what they are called.
            if is_own and ".kernels." not in package.name and not package.name.startswith("tanlearn.dask."):
                defined.setdefault(value.__qualname__, []).append(package.name)
    assert len(defined) > 50
    assert {name: modules for name, modules in defined.items() if len(modules) > 1} == {}
