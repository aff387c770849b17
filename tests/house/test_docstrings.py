"""Examples in docstrings and in the README run, and docstrings say what signatures say."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
import textwrap
import typing
from pathlib import Path

import numpydoc.docscrape
import numpydoc.validate
import pytest
from support.modules import PACKAGES, docstrings, module_names
from support.titanic import SOURCE, write_titanic

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[gl]*/*.md")))
    if ">>> " in page.read_text(encoding="utf-8")
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# numpydoc's names for: unknown section, sections out of order, no docstring; parameters missing, unknown, out
# of order, without a type, without a space before the colon; no Returns; no Yields.
CHECKS = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR04", "PR10", "RT01", "YD01"}
SECTION = re.compile(
    r"^(Parameters|Attributes|Returns|Yields|Raises|Warns|Examples|See Also|Notes)\n-{3,}$", re.MULTILINE
)
#: Words that no first line begins with: a docstring begins with an imperative verb or with a noun phrase.
OPENINGS = re.compile(
    r"(what|who|whoever|whatever|that|those|of|as many|where|whether|how|which|when)\b", re.IGNORECASE
)
CONSTRUCTORS = {"__init__", "__new__", "__post_init__"}


def public_members(owner: type) -> dict[str, object]:
    """Return the public methods and properties that the package itself defines on a class or its bases."""
    members = {}
    for base in reversed(owner.__mro__):
        if base.__module__.split(".")[0] != owner.__module__.split(".")[0]:
            continue
        for name, value in vars(base).items():
            # What a classmethod, a staticmethod or scikit-learn's available_if wraps.
            function = getattr(value, "fn", getattr(value, "__func__", value))
            if not name.startswith("_") and (inspect.isfunction(function) or isinstance(value, property)):
                members[name] = function
    return members


def names_on_pages() -> list[tuple[str, str]]:
    """Return module and name of everything that the API pages list."""
    found = []
    for page in sorted((ROOT / "docs" / "api").glob("*.rst")):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif module and (match := re.fullmatch(r"   (\w+)", line)):
                found.append((module, match[1]))
    return found


def objects_on_pages() -> dict[str, object]:
    """Return the classes with their public members, and the functions, of the API pages by dotted name."""
    objects = {}
    for module, public in names_on_pages():
        value = getattr(importlib.import_module(module), public)
        name = f"{value.__module__}.{value.__qualname__}"  # where it is made, wherever it is offered
        objects[name] = value
        if inspect.isclass(value):
            objects |= {f"{name}.{member}": item for member, item in public_members(value).items()}
    return objects


def docstring_problems(value: object, *, needs_example: bool = True) -> list[str]:
    """Return what is wrong with the docstring of one object: what numpydoc finds, errors and shapes left out."""
    document = numpydoc.docscrape.get_doc_object(value)
    if getattr(value, "__doc__", None) and value.__doc__.startswith("Not available:"):  # hides a method of a base class
        return []
    errors = numpydoc.validate.validate(document)["errors"]
    wanted = CHECKS | {"EX01"} if inspect.isclass(value) and needs_example else CHECKS
    if getattr(value, "_is_protocol", False):  # nobody calls its constructor
        wanted = wanted - {"PR01"}
    problems = [f"{code}: {text}" for code, text in errors if code in wanted]
    return problems + unnamed_errors(value, document) + shapeless_arrays(document)


def unnamed_errors(value: object, document: numpydoc.docscrape.NumpyDocString) -> list[str]:
    """Return the errors that the body of a function, or the constructor of a class, makes and the docstring hides."""
    function = getattr(value, "fget", value)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    bodies = [tree]
    if inspect.isclass(value):
        bodies = [node for node in tree.body[0].body if getattr(node, "name", None) in CONSTRUCTORS]
    raised = [node.exc for body in bodies for node in ast.walk(body) if isinstance(node, ast.Raise)]
    documented = {word for entry in document["Raises"] for word in re.findall(r"\w+", entry.type)}
    problems = [f"RS02: it is not said when there is {entry.type}" for entry in document["Raises"] if not entry.desc]
    for name in sorted({ast.unparse(error.func) for error in raised if isinstance(error, ast.Call)}):
        made_by = eval(name, vars(sys.modules[function.__module__]))
        error = made_by if inspect.isclass(made_by) else typing.get_type_hints(made_by)["return"]
        # A base class may stand for it, but not the one of all.
        if not documented & {base.__name__ for base in error.__mro__ if base not in Exception.__mro__}:
            problems.append(f"RS01: {error.__name__} is not documented")
    return problems


def shapeless_arrays(document: numpydoc.docscrape.NumpyDocString) -> list[str]:
    """Return the arrays that are documented without a shape; lists and dictionaries of arrays need none."""
    sections = ("Parameters", "Attributes", "Returns", "Yields")
    entries = [entry for section in sections for entry in document[section]]
    arrays = [entry for entry in entries if re.match(r"(ndarray|array-like)\b", entry.type)]
    return [
        f"SH01: {entry.name or 'the result'} is {entry.type}, of what shape?"
        for entry in arrays
        if not re.search(r"\bof (the same |any )?shape\b", entry.type)
    ]


OBJECTS = objects_on_pages()
SHOWN = {
    f"{function.__module__}.{function.__qualname__}"
    for value in OBJECTS.values()
    for part in (value, *(getattr(value, "__mro__", ())))
    if (function := getattr(part, "fget", part))
}
EXPORTED = [getattr(package, name) for package in PACKAGES for name in package.__all__]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    if name.startswith("tanlearn.cli."):
        pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_pages_run(page, tmp_path, monkeypatch):
    # A closing fence would count as expected output, so fences are blanked; the line numbers stay.
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path(page.name).write_text(text, encoding="utf-8")
    if "titanic3.csv" in text:  # which readers download
        if not SOURCE.is_file():
            pytest.skip("scikit-learn is installed without its tests, which contain the table")
        write_titanic(Path("titanic3.csv"))
    results = doctest.testfile(page.name, module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_pages_are_examples_that_run(page):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert [block for block in blocks if not block.startswith(">>> ")] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_public_names_are_strings_that_resolve_once(package):
    assert all(isinstance(name, str) for name in package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert len(set(package.__all__)) == len(package.__all__)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_public_docstring_matches_the_signature(name):
    value = OBJECTS[name]
    needs_example = any(value is exported for exported in EXPORTED)  # not who is used through others only
    assert docstring_problems(value, needs_example=needs_example) == []


CLASS_DOCSTRING = """Hold one number.

Parameters
----------
number : int
    The number.

Attributes
----------
table : ndarray of shape (n, n)
    A table.

Raises
------
ValueError
    If the number is negative.

Examples
--------
>>> 1 + 1
2
"""

METHOD_DOCSTRING = """Return sums.

Parameters
----------
other : array-like of shape (n,)
    The other numbers.

Returns
-------
ndarray of the same shape

Raises
------
OSError
    If they lie in a file that is not there.
"""

PROPERTY_DOCSTRING = """Twice the number.

Raises
------
KeyError
    If there is no such number.
"""


def refusal(message: str) -> KeyError:
    return KeyError(message)


def sample(class_docstring: str, method_docstring: str, property_docstring: str = PROPERTY_DOCSTRING) -> type:
    """Return a class with one method and one property that carry these docstrings."""

    class Sample:
        def __init__(self, *, number):
            if number < 0:
                raise ValueError(number)
            self.number = number

        def add(self, other):
            try:
                return self.number + other
            except TypeError as error:
                raise FileNotFoundError(other) from error

        @property
        def double(self):
            if self.number > 9:
                raise refusal("too large")
            return 2 * self.number

        def _hidden(self, other):
            raise RuntimeError(other)

    Sample.__doc__ = class_docstring
    Sample.add.__doc__ = method_docstring
    Sample.double = property(Sample.double.fget, doc=property_docstring)
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
        ("ndarray of shape (n, n)", "ndarray", "SH01"),
        ("Raises\n------\nValueError\n    If the number is negative.\n", "", "RS01"),
        ("    If the number is negative.\n", "", "RS02"),
        (CLASS_DOCSTRING, "", "GL08"),
    ],
)
def test_docstring_checker_reports_a_class(old, new, code):
    problems = docstring_problems(sample(CLASS_DOCSTRING.replace(old, new), METHOD_DOCSTRING))
    assert code in [problem[:4] for problem in problems]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("other : array-like", "another : array-like", "PR02"),
        ("Returns\n-------\nndarray of the same shape\n", "", "RT01"),
        ("array-like of shape (n,)", "array-like", "SH01"),
        ("ndarray of the same shape", "ndarray of float", "SH01"),
        ("OSError", "ValueError", "RS01"),
        ("OSError", "Exception", "RS01"),
        (METHOD_DOCSTRING, "", "GL08"),
    ],
)
def test_docstring_checker_reports_a_method(old, new, code):
    problems = docstring_problems(sample(CLASS_DOCSTRING, METHOD_DOCSTRING.replace(old, new)).add)
    assert code in [problem[:4] for problem in problems]


def test_docstring_checker_reports_a_property():
    hiding = sample(CLASS_DOCSTRING, METHOD_DOCSTRING, property_docstring="Twice the number.")
    assert docstring_problems(hiding.double) == ["RS01: KeyError is not documented"]


def test_docstring_checker_asks_for_no_example_of_what_no_package_exports():
    bare = sample(CLASS_DOCSTRING.replace("Examples\n--------\n>>> 1 + 1\n2\n", ""), METHOD_DOCSTRING)
    assert docstring_problems(bare, needs_example=False) == []


def test_docstring_checker_asks_for_no_constructor_of_a_protocol():
    class Adder(typing.Protocol):
        """Whatever adds."""

        def add(self, other: int) -> int: ...

    assert docstring_problems(Adder, needs_example=False) == []


def test_names_on_pages_are_found_with_their_members():
    assert "tanlearn.estimators.gradient_tan.TANClassifier" in OBJECTS
    assert "tanlearn.baselines.chow_liu.ChowLiu.from_counts" in OBJECTS
    assert "tanlearn.estimators.row_predictor.RowPredictor.predict" in OBJECTS
    assert "tanlearn.training.tan_state.State.perturb" not in OBJECTS


@pytest.mark.parametrize("name", module_names())
def test_only_what_a_page_shows_has_sections(name):
    found = docstrings(name)
    assert "\n".join(own for own, text in found.items() if own not in SHOWN and SECTION.search(text)) == ""


@pytest.mark.parametrize("name", module_names())
def test_docstrings_begin_with_a_verb_or_a_noun(name):
    assert "\n".join(own for own, text in docstrings(name).items() if OPENINGS.match(text)) == ""
