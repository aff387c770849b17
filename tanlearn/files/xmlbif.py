"""The Interchange Format for Bayesian networks in XML, XMLBIF 0.3: text to networks, and back."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from tanlearn.files.discrete_network import (
    Definition,
    Logarithms,
    Network,
    Texts,
    Variable,
    look_up,
    normalize,
    unique,
)

__all__ = ["format_xmlbif", "parse_xmlbif"]

#: What some programs and editors put before the declaration, where XML allows nothing, and the declaration.
_START = re.compile(rb"(?:\xef\xbb\xbf)?+((?:\s++|\xef\xbb\xbf|<!--.*?-->)++)(<\?xml\s[^>]*+>)", re.DOTALL)


@dataclass
class _Element:
    """An element, its text and line."""

    tag: str
    line: int
    children: list[_Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text, without white space around."""
        return "".join(self.pieces).strip()

    def texts(self, tag: str) -> list[str]:
        """Return the texts of the children of this tag."""
        return [child.text for child in self.children if child.tag == tag]

    def one(self, tag: str) -> str:
        """Return the text of the one child of this tag."""
        texts = self.texts(tag)
        if len(texts) != 1:
            raise ValueError(f"line {self.line}: {self.tag} must hold one {tag}, but has {len(texts)}.")
        return texts[0]


def parse_xmlbif(content: bytes) -> Network:
    """Read a network.

    Declarations of entities are refused: a few lines of them can stand for gigabytes of text, or for other files.
    """
    root = _parse(content)
    networks = [child for child in root.children if child.tag == "NETWORK"]
    if root.tag != "BIF" or len(networks) != 1:
        raise ValueError(f"line {root.line}: the file must be one BIF with one NETWORK, but begins {root.tag!r}.")
    variables: dict[str, Variable] = {}
    definitions: dict[str, Definition] = {}
    logarithms = Logarithms()
    for element in networks[0].children:
        if element.tag == "VARIABLE":
            name, place = element.one("NAME"), f"line {element.line}"
            if name in variables:
                raise ValueError(f"{place}: variable {name!r} is declared twice: rename one.")
            try:
                states = unique(element.texts("OUTCOME"), "states")
                variables[unique([name], "variables")[0]] = Variable(name, states, _note(element), place)
            except ValueError as error:
                raise ValueError(f"{place}: variable {name!r}: {error}") from error
    for element in networks[0].children:
        if element.tag == "DEFINITION":
            name, parents = element.one("FOR"), tuple(element.texts("GIVEN"))
            if name in definitions:
                raise ValueError(f"line {element.line}: variable {name!r} has two definitions: remove one.")
            words = element.one("TABLE").split()
            try:
                shape = look_up(variables, name, parents)
                if len(words) != np.prod(shape):
                    raise ValueError(f"its table must have {np.prod(shape)} numbers, but has {len(words)}.")
                log_table = normalize(logarithms.of(words).reshape(shape))
            except ValueError as error:
                raise ValueError(f"line {element.line}: definition of {name!r}: {error}") from error
            definitions[name] = Definition(parents, log_table)
    return Network(variables, definitions)


def format_xmlbif(network: Network) -> str:
    """Return a network as text."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>tanlearn</NAME>"]
    texts = Texts()
    for name, states, note, _ in network.variables.values():
        lines += ['<VARIABLE TYPE="nature">', f"    <NAME>{escape(name)}</NAME>"]
        lines += [f"    <OUTCOME>{escape(state)}</OUTCOME>" for state in states]
        lines += [] if note is None else [f"    <PROPERTY>tanlearn = {escape(note)}</PROPERTY>"]
        lines.append("</VARIABLE>")
    for child, (parents, log_table) in network.definitions.items():
        lines += ["<DEFINITION>", f"    <FOR>{escape(child)}</FOR>"]
        lines += [f"    <GIVEN>{escape(name)}</GIVEN>" for name in parents]
        rows = log_table.reshape(-1, log_table.shape[-1]).tolist()
        lines += ["    <TABLE>", *("        " + " ".join(map(texts.__getitem__, row)) for row in rows), "    </TABLE>"]
        lines.append("</DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def _parse(content: bytes) -> _Element:
    """Return the tree of elements, with the lines that the tree of xml.etree does not know."""
    parser = expat.ParserCreate()
    top = _Element("", 0)
    path = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, parser.CurrentLineNumber)
        if tag == "VARIABLE" and attributes.get("TYPE", "nature") != "nature":
            raise ValueError(
                f"line {element.line}: a variable is of type {attributes['TYPE']!r}, but must be of nature."
            )
        path[-1].children.append(element)
        path.append(element)

    def refuse(name: str, *_: object) -> NoReturn:
        raise ValueError(
            f"line {parser.CurrentLineNumber}: the entity {name!r} is declared, but none may be: remove it."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.CharacterDataHandler = lambda text: path[-1].pieces.append(text)
    parser.EntityDeclHandler = refuse
    try:
        found = _START.match(content)
        if found is not None:  # the declaration goes first; the lines of all else stay
            before = found[1].replace(codecs.BOM_UTF8, b"")
            content = found[2] + before + content[found.end() :]
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: this is no XML ({expat.errors.messages[error.code]}).") from error
    except LookupError as error:
        raise ValueError(f"line 1: {error}. Save the file as UTF-8.") from error
    return top.children[0]


def _note(element: _Element) -> str | None:
    """Return what tanlearn noted about a variable."""
    for text in element.texts("PROPERTY"):
        name, equals, note = text.partition("=")
        if equals and name.strip() == "tanlearn":
            return note.strip()
    return None
