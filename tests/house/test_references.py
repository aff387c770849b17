"""What docstrings refer to exists: a role such as ``:class:`~tanlearn.Tables``` is resolved as Sphinx would."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import reduce
from types import ModuleType

import pytest

import tanlearn
import tanlearn.baselines

ROLE = re.compile(r":(?:attr|class|func|meth|mod):`~?([\w.]+)`")


def modules() -> list[ModuleType]:
    """Return all modules of the package."""
    packages = (tanlearn, tanlearn.baselines)
    found = {f.name for package in packages for f in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")}
    return [importlib.import_module(name) for name in sorted({"tanlearn", *found})]


def documented(owner: object, module: ModuleType) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield the docstrings of a module and of all that it defines, with the scopes of their names."""
    yield (owner, module), owner.__doc__ or ""
    for value in vars(owner).values():
        value = getattr(value, "__func__", getattr(value, "fget", value))  # what methods and properties wrap
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            yield from documented(value, module)
        else:
            yield (owner, module), getattr(value, "__doc__", None) or ""


def resolves(target: str, scopes: tuple[object, ...]) -> bool:
    """Return whether a name is one of its class or module, or a dotted one that can be imported."""
    for scope in scopes:
        try:
            reduce(getattr, target.split("."), scope)
        except AttributeError:
            continue
        return True
    try:
        pkgutil.resolve_name(target)
    except (AttributeError, ImportError):
        return False
    return "." in target or target == "tanlearn"


def dead_references(module: ModuleType) -> list[str]:
    """Return what the docstrings of a module refer to, and is not there."""
    return [
        target
        for scopes, text in documented(module, module)
        for target in ROLE.findall(text)
        if not resolves(target, scopes)
    ]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_docstrings_refer_to_what_exists(module):
    assert dead_references(module) == []


def test_checker_reports_what_does_not_exist():
    module = ModuleType("tanlearn.novelty", "Of :mod:`tanlearn.gpu` and :class:`tanlearn.Tables`, not :func:`json`.")

    class Table:
        """See :meth:`get`, :meth:`set`, :class:`Table`, :class:`~tanlearn.Tables` and :attr:`~tanlearn.Tables.none`."""

        @property
        def get(self):
            """What :func:`put` puts."""

    Table.__module__ = Table.get.fget.__module__ = module.__name__
    module.Table = Table
    assert dead_references(module) == ["tanlearn.gpu", "json", "set", "tanlearn.Tables.none", "put"]
