"""Examples in docstrings and in the README run, and docstrings say what signatures say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpydoc.docscrape
import numpydoc.validate
import pytest

import tanlearn
import tanlearn.baselines

README = Path(__file__).parents[2] / "README.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGES = (tanlearn, tanlearn.baselines)

# numpydoc's names for: unknown section, sections out of order, no docstring; parameters missing, unknown, out
# of order, without a type, without a space before the colon; no Returns; no Yields.
CHECKS = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR04", "PR10", "RT01", "YD01"}


def module_names() -> list[str]:
    """Return the names of all modules, the baselines under their installed name."""
    names = set()
    for package in PACKAGES:
        names.add(package.__name__)
        names.update(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    return sorted(names)


def public_members(owner: type) -> dict[str, object]:
    """Return the public methods and properties that the package itself defines on a class or its bases."""
    members = {}
    for base in reversed(owner.__mro__):
        if base.__module__.split(".")[0] != owner.__module__.split(".")[0]:
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)  # what a classmethod or staticmethod wraps
            if not name.startswith("_") and (inspect.isfunction(function) or isinstance(value, property)):
                members[name] = function
    return members


def public_objects() -> dict[str, object]:
    """Return the public classes with their members, and the public functions, by dotted name."""
    objects = {}
    for package in PACKAGES:
        for public in package.__all__:
            value = getattr(package, public)
            name = f"{package.__name__}.{public}"
            if inspect.isclass(value):
                objects |= {f"{name}.{member}": item for member, item in public_members(value).items()}
            if inspect.isclass(value) or inspect.isroutine(value):
                objects[name] = value
    return objects


def docstring_problems(value: object) -> list[str]:
    """Return what numpydoc finds wrong with the docstring of one object."""
    document = numpydoc.docscrape.get_doc_object(value)
    errors = numpydoc.validate.validate(document)["errors"]
    wanted = CHECKS | {"EX01"} if inspect.isclass(value) else CHECKS
    return [f"{code}: {text}" for code, text in errors if code in wanted]


OBJECTS = public_objects()


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    if name == "tanlearn.cli":
        pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


def test_readme_examples_run(tmp_path, monkeypatch):
    # A closing fence would count as expected output, so fences are blanked; the line numbers stay.
    text = re.sub(r"^```.*$", "", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text(text, encoding="utf-8")
    results = doctest.testfile("README.md", module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert results.attempted > 0
    assert results.failed == 0


def test_python_blocks_of_the_readme_are_examples_that_run():
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert [block for block in blocks if not block.startswith(">>> ")] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_public_names_are_strings_that_resolve_once(package):
    assert all(isinstance(name, str) for name in package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert len(set(package.__all__)) == len(package.__all__)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_public_docstring_matches_the_signature(name):
    assert docstring_problems(OBJECTS[name]) == []


CLASS_DOCSTRING = """Hold one number.

Parameters
----------
number : int
    The number.

Examples
--------
>>> 1 + 1
2
"""

METHOD_DOCSTRING = """Return a sum.

Parameters
----------
other : int
    The other number.

Returns
-------
int
"""


def sample(class_docstring: str, method_docstring: str) -> type:
    """Return a class with one method that carry these docstrings."""

    class Sample:
        def __init__(self, *, number):
            self.number = number

        def add(self, other):
            return self.number + other

        @property
        def double(self):
            """Twice the number."""
            return 2 * self.number

        def _hidden(self, other):
            pass

    Sample.__doc__ = class_docstring
    Sample.add.__doc__ = method_docstring
    return Sample


def test_docstring_checker_accepts_a_documented_class_with_its_members():
    documented = sample(CLASS_DOCSTRING, METHOD_DOCSTRING)
    members = public_members(documented)
    assert sorted(members) == ["add", "double"]
    assert [docstring_problems(item) for item in (documented, *members.values())] == [[], [], []]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("number : int\n    The number.\n", "", "PR01"),
        ("number : int", "digit : int", "PR02"),
        ("number : int", "number", "PR04"),
        ("number : int", "number: int", "PR10"),
        ("Examples\n--------\n>>> 1 + 1\n2\n", "", "EX01"),
        (CLASS_DOCSTRING, "", "GL08"),
    ],
)
def test_docstring_checker_reports_a_class(old, new, code):
    problems = docstring_problems(sample(CLASS_DOCSTRING.replace(old, new), METHOD_DOCSTRING))
    assert code in [problem[:4] for problem in problems]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("other : int", "another : int", "PR02"),
        ("Returns\n-------\nint\n", "", "RT01"),
        (METHOD_DOCSTRING, "", "GL08"),
    ],
)
def test_docstring_checker_reports_a_method(old, new, code):
    problems = docstring_problems(sample(CLASS_DOCSTRING, METHOD_DOCSTRING.replace(old, new)).add)
    assert code in [problem[:4] for problem in problems]
