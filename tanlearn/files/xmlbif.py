"""Parser and writer for the XML interchange format of Bayesian networks, XMLBIF 0.3."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from tanlearn.files.discrete_network import (
    DecimalStrings,
    Definition,
    Logarithms,
    Network,
    Variable,
    cpt_shape,
    normalize,
    unique,
)

__all__ = ["format_xmlbif", "parse_xmlbif"]

#: XML declaration, with preceding white space and comments, which some programs write although XML forbids them.
_START = re.compile(rb"(?:\xef\xbb\xbf)?+((?:\s++|\xef\xbb\xbf|<!--.*?-->)++)(<\?xml\s[^>]*+>)", re.DOTALL)


@dataclass
class _Element:
    """XML element with its line number."""

    tag: str
    line: int
    children: list[_Element] = field(default_factory=list)
    character_data: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the element, without surrounding white space."""
        return "".join(self.character_data).strip()

    def strings(self, tag: str) -> list[str]:
        """Return the text of each child with this tag."""
        return [child.text for child in self.children if child.tag == tag]

    def one(self, tag: str) -> str:
        """Return the text of the only child with this tag. Raise ValueError if there is no such child, or several."""
        strings = self.strings(tag)
        if len(strings) != 1:
            raise ValueError(f"line {self.line}: {self.tag} must contain one {tag}, but has {len(strings)}.")
        return strings[0]


def parse_xmlbif(content: bytes) -> Network:
    """Parse an XMLBIF file. Invalid content raises ValueError with the line and the variable.

    Entity declarations are rejected, because a few declarations can expand to gigabytes of text or include other files.
    """
    root = _parse(content)
    networks = [child for child in root.children if child.tag == "NETWORK"]
    if root.tag != "BIF" or len(networks) != 1:
        raise ValueError(f"line {root.line}: the file must be a BIF with one NETWORK, but begins with {root.tag!r}.")
    variables: dict[str, Variable] = {}
    definitions: dict[str, Definition] = {}
    logarithms = Logarithms()
    for element in networks[0].children:
        if element.tag == "VARIABLE":
            name, position = element.one("NAME"), f"line {element.line}"
            if name in variables:
                raise ValueError(f"{position}: variable {name!r} is declared twice. Rename one of them.")
            try:
                states = unique(element.strings("OUTCOME"), "states")
                variables[unique([name], "variables")[0]] = Variable(name, states, _note(element), position)
            except ValueError as error:
                raise ValueError(f"{position}: variable {name!r}: {error}") from error
    for element in networks[0].children:
        if element.tag == "DEFINITION":
            name, parents = element.one("FOR"), tuple(element.strings("GIVEN"))
            if name in definitions:
                raise ValueError(f"line {element.line}: variable {name!r} has two definitions. Remove one of them.")
            words = element.one("TABLE").split()
            try:
                shape = cpt_shape(variables, name, parents)
                if len(words) != np.prod(shape):
                    raise ValueError(f"its TABLE must have {np.prod(shape)} numbers, but has {len(words)}.")
                log_table = normalize(logarithms.of(words).reshape(shape))
            except ValueError as error:
                raise ValueError(f"line {element.line}: the definition of {name!r} is invalid: {error}") from error
            definitions[name] = Definition(parents, log_table)
    return Network(variables, definitions)


def format_xmlbif(network: Network) -> str:
    """Format a network with ASCII names as XMLBIF.

    The document type is omitted, because some programs cannot read files that declare one.
    """
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>tanlearn</NAME>"]
    strings = DecimalStrings()
    for name, states, note, _ in network.variables.values():
        lines += ['<VARIABLE TYPE="nature">', f"    <NAME>{escape(name)}</NAME>"]
        lines += [f"    <OUTCOME>{escape(state)}</OUTCOME>" for state in states]
        lines += [] if note is None else [f"    <PROPERTY>tanlearn = {escape(note)}</PROPERTY>"]
        lines.append("</VARIABLE>")
    for child, (parents, log_table) in network.definitions.items():
        lines += ["<DEFINITION>", f"    <FOR>{escape(child)}</FOR>"]
        lines += [f"    <GIVEN>{escape(name)}</GIVEN>" for name in parents]
        rows = log_table.reshape(-1, log_table.shape[-1]).tolist()
        lines += [
            "    <TABLE>",
            *("        " + " ".join(map(strings.__getitem__, row)) for row in rows),
            "    </TABLE>",
        ]
        lines.append("</DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def _parse(content: bytes) -> _Element:
    """Return the tree of elements with their line numbers, which xml.etree does not provide."""
    parser = expat.ParserCreate()
    top = _Element("", 0)
    path = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, parser.CurrentLineNumber)
        if tag == "VARIABLE" and attributes.get("TYPE", "nature") != "nature":
            raise ValueError(
                f"line {element.line}: a variable has type {attributes['TYPE']!r}, but the type must be 'nature'."
            )
        path[-1].children.append(element)
        path.append(element)

    def refuse(name: str, *_: object) -> NoReturn:
        raise ValueError(
            f"line {parser.CurrentLineNumber}: entity declarations are not allowed. Remove the declaration of {name!r}."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.CharacterDataHandler = lambda text: path[-1].character_data.append(text)
    parser.EntityDeclHandler = refuse
    try:
        found = _START.match(content)
        if found is not None:  # move the declaration to the start without changing line numbers
            before = found[1].replace(codecs.BOM_UTF8, b"")
            content = found[2] + before + content[found.end() :]
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: invalid XML ({expat.errors.messages[error.code]}).") from error
    except LookupError as error:
        raise ValueError(f"line 1: {error}. Save the file as UTF-8.") from error
    return top.children[0]


def _note(element: _Element) -> str | None:
    """Return the value of tanlearn's own property of a variable, or None."""
    for text in element.strings("PROPERTY"):
        name, equals, note = text.partition("=")
        if equals and name.strip() == "tanlearn":
            return note.strip()
    return None
