"""Docstrings, messages, pages and names use the field's terms: words that readers stumbled over stay out."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from support.modules import docstrings, module_names

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.*")),
    *sorted((ROOT / "docs").glob("[agl]*/*.*")),  # about, api, gallery, guide, learners
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
PAGES = [page for page in PAGES if page.suffix in (".md", ".rst", ".py") and page.name != "conf.py"]

#: Per pattern, the words to use in its place. Code in backquotes and doctests are not read.
BANNED = {
    r"gaps?|holes?|sum(s|med|ming)? out": "missing value; marginalize",
    r"cuts?(?!\s+points?\b)|cutting": "cut point; discretize",
    r"learnt|told|tells?|says?|said|knows?": "learned, fitted; set by; reports, contains",
    r"rooms?|doors?|borders?|twins?|walks?|dear|cold|grains?|prices?": "package; reference; expensive; unfitted",
    r"(?<!in )(?<!decimal )places?": "position, column",
    r"pieces?|panels?": "batch",
    r"members?": "network of the forest",
    r"as good as|no more than|and no other": "equal to; at most; only",
    r"whole numbers?|truths|texts": "integers; booleans; strings",
    r"beside|in place of|in the manner of|and the like": "next to, compared with, in addition to; instead of; similar",
    r"\w*(discret|normal|summar|initial|optim|regular|marginal|serial|recogn|general|maxim|minim)is(?!t|m)\w*": "-ize",
    r"behaviour\w*|colour\w*|neighbour\w*|favour\w*": "American spelling",
}
RST_CODE = r"^\.\. (code-block|toctree|currentmodule|autosummary).*(\n( .*)?)*"
PATTERN = re.compile("|".join(rf"\b({pattern})\b" for pattern in BANNED), re.IGNORECASE)
#: Words that no name of a module, class, function or parameter has, and the words to use in their place.
BANNED_IN_NAMES = {
    r"gaps?|holes?|lost": "missing",
    r"cuts?(?!_points?(?![a-z]))": "cut_point",
    r"learnt|told|tells?|says?|said|knows?|asked": "fitted, requested, report",
    r"rooms?|doors?|borders?|twins?|walks?|dear|cold|grains?|prices?": "package, reference, cost, unfitted",
    r"places?": "position, label",
    r"pieces?|panels?": "batch",
    r"members?": "network",
    r"looks?": "format, evaluation",
    r"truths?|texts": "boolean; strings",
}
NAME_PATTERN = re.compile("|".join(rf"(?<![a-z])({pattern})(?![a-z])" for pattern in BANNED_IN_NAMES))
#: Names that still have such words; names of kernels change together, because a change compiles all kernels anew.
EXCEPTIONS = frozenset(
    """
    Gaps Learnt _Gaps _cut _cuts _learnt _place _read_n_cuts accept_cut asked asked_feature asked_values best_cut
    class_place cold count_cuts_below cut cut_features cuts entropy_cuts feature_cuts gaps is_cut learnt look
    look_up looks lost make_gaps mdlp_cuts member members n_asked n_cuts n_members place places price price_gradient
    purest_cut quantile_cuts room tell twins value_place
    """.split()  # noqa: SIM905 - as a list, one name per line
)


def prose(text: str) -> str:
    """Return a text without code: spans in backquotes, roles and doctests."""
    text = re.sub(r"^ *>>> .*(\n.*\S.*)*", "", text, flags=re.MULTILINE)  # with the output, up to a blank line
    text = re.sub(r"``.*?``|:\w+:`[^`]*`|`[^`]*`", "", text, flags=re.DOTALL)
    text = re.sub(r"^[\w, *]+ : ", "", text, flags=re.MULTILINE)  # names of parameters
    return re.sub(r"\"[^\"\n]*\"", "", text)  # and their values


def messages(module: str) -> dict[str, str]:
    """Return the strings that a module raises or warns with, by line."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        name = getattr(getattr(node, "func", None), "id", getattr(getattr(node, "func", None), "attr", ""))
        if isinstance(node, ast.Raise) or name == "warn" or name.endswith(("Error", "Warning")):
            parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            found[f"line {node.lineno}"] = " ".join(part for part in parts if isinstance(part, str))
    return found


def names(module: str) -> set[str]:
    """Return the name of a module without its package, and the names of its classes, functions and parameters."""
    found = {module.rpartition(".")[2]}
    for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def banned_names(found: set[str]) -> list[str]:
    """Return the names with a banned word, in any case and between underscores."""
    snake = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in found}
    return sorted(name for name, words in snake.items() if NAME_PATTERN.search(words))


def page_prose(page: Path) -> str:
    """Return the text of a page without code blocks, link targets and HTML comments."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        blocks = re.findall(r"^# %%.*\n((?:#.*\n)+)", text, flags=re.MULTILINE)
        return "\n".join([ast.get_docstring(ast.parse(text)) or "", *blocks])
    if page.suffix == ".rst":
        return re.sub(RST_CODE, "", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)(```|:::).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)|<!--.*?-->", "", text, flags=re.DOTALL)


def code_comments(page: Path) -> str:
    """Return the comments of the Python examples of a page."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines() if page.suffix == ".py" else re.findall(r"^ *(?:>>>|\.\.\.) .*", text, flags=re.MULTILINE)
    return "\n".join(line.partition("  # ")[2] for line in lines)


def banned(texts: dict[str, str]) -> list[str]:
    """Return name and word of each banned word of some texts."""
    return [f"{name}: {match[0]}" for name, text in texts.items() for match in PATTERN.finditer(prose(text))]


@pytest.mark.parametrize("name", module_names())
def test_docstrings_and_messages_use_the_terms_of_the_field(name):
    assert "\n".join(banned(docstrings(name)) + banned(messages(name))) == ""


@pytest.mark.parametrize("name", module_names())
def test_names_use_the_terms_of_the_field(name):
    assert [found for found in banned_names(names(name)) if found not in EXCEPTIONS] == []


def test_banned_words_are_found_in_names():
    wrong = {"StringLook", "_told_once", "has_gaps", "cut", "CutDiscretizer", "lostColumns", "twin2"}
    right = {"cut_points_", "CutPointDiscretizer", "replace", "_lookup", "context", "execute"}
    assert banned_names(wrong | right) == sorted(wrong)


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_of_benchmarks_use_the_terms_of_the_field(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    texts = {f"line {getattr(node, 'lineno', 1)}": ast.get_docstring(node) or "" for node in documented}
    commands = r"python -m benchmarks\S*"  # whose names are not prose
    assert "\n".join(banned({name: re.sub(commands, "", text) for name, text in texts.items()})) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_the_terms_of_the_field(page):
    assert "\n".join(banned({"text": page_prose(page), "comments": code_comments(page)})) == ""


def test_pages_are_read_without_code_and_links(tmp_path):
    (tmp_path / "page.md").write_text("A gap [here](rooms.md).\n\n```python\n>>> cold = 1  # told\n```\n", "utf-8")
    assert banned({"text": page_prose(tmp_path / "page.md")}) == ["text: gap"]
    assert banned({"comments": code_comments(tmp_path / "page.md")}) == ["comments: told"]


def test_banned_words_are_found_in_prose_and_not_in_code():
    assert banned({"f": "Sum out what a row has no cut for; ``gaps`` stay."}) == ["f: Sum out", "f: cut"]
    assert banned({"f": "Return cut points in place.\n\n>>> gaps = 3\n>>> gaps\n'cold'"}) == []
