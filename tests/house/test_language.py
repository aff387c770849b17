"""Docstrings and messages use the field's terms: words that readers stumbled over stay out of both."""

import ast
import importlib
import inspect
import re

import pytest
from support.modules import docstrings, module_names

#: Per pattern, the words to use in its place. Code in backquotes and doctests are not read.
BANNED = {
    r"gaps?|holes?|sum(s|med|ming)? out": "missing value; marginalize",
    r"cuts?(?! points?\b)|cutting": "cut point; discretize",
    r"learnt|told|tells?|says?|said|knows?": "learned, fitted; set by; reports, contains",
    r"rooms?|doors?|borders?|twins?|walks?|dear|cold|grains?|prices?": "package; reference; expensive; unfitted",
    r"(?<!in )(?<!decimal )places?": "position, column",
    r"pieces?|panels?": "batch",
    r"members?": "network of the forest",
    r"as good as|no more than|and no other": "equal to; at most; only",
    r"whole numbers?|truths|texts": "integers; booleans; strings",
    r"\w*(discret|normal|summar|initial|optim|regular|marginal|serial|recogn|general|maxim|minim)is(?!t|m)\w*": "-ize",
    r"behaviour\w*|colour\w*|neighbour\w*|favour\w*": "American spelling",
}
PATTERN = re.compile("|".join(rf"\b({pattern})\b" for pattern in BANNED), re.IGNORECASE)


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


def banned(texts: dict[str, str]) -> list[str]:
    """Return name and word of each banned word of some texts."""
    return [f"{name}: {match[0]}" for name, text in texts.items() for match in PATTERN.finditer(prose(text))]


@pytest.mark.parametrize("name", module_names())
def test_docstrings_and_messages_use_the_terms_of_the_field(name):
    assert "\n".join(banned(docstrings(name)) + banned(messages(name))) == ""


def test_banned_words_are_found_in_prose_and_not_in_code():
    assert banned({"f": "Sum out what a row has no cut for; ``gaps`` stay."}) == ["f: Sum out", "f: cut"]
    assert banned({"f": "Return cut points in place.\n\n>>> gaps = 3\n>>> gaps\n'cold'"}) == []
