"""Parser and writer for the Interchange Format of Bayesian networks, BIF 0.15.

The parser also accepts elements that the writer does not produce: comments, properties, quoted names, names of several
words, lists with or without commas, ``table``, ``default`` and rows in any order, and headers ``(child parent parent)``
as in the first version of the format.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.files.discrete_network import (
    LARGEST_NETWORK,
    DecimalStrings,
    Definition,
    Logarithms,
    Network,
    Variable,
    cpt_shape,
    normalize,
    unique,
)

__all__ = ["format_bif", "parse_bif"]

# Alternatives either start with different characters, or match or fail without backtracking. Parsing therefore takes
# linear time even for malformed text.
_TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*.*?\*/)
    |property(?=[\s"])(?P<property>(?:"[^"]*+"|[^;"])*+)(?P<end>;)?
    |"(?P<quoted>[^"\n]*+)"
    |(?P<mark>[{}()\[\]|,;])
    |(?P<word>(?:(?!//|/\*)[^\s{}()\[\]|,;"])++)""",
    re.DOTALL | re.VERBOSE,
)
#: Entry of a probability block in the usual form, ``(state, state) 0.5, 0.5;`` or ``table 0.5, 0.5;``. Large files
#: consist almost entirely of such entries. Other forms are read token by token. A failed match ends before the next
#: semicolon, and tokens are then read up to that semicolon, so parsing takes linear time even for malformed text.
_ENTRY = re.compile(
    r"""\s*+(?:\((?P<states>[^(){}\[\]|;"/]*+)\)|(?P<kind>table|default)(?=[\s,]))(?P<numbers>[-+0-9.eE,\s]*+);""",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\s,]++")
_NOTE = re.compile(r"\s*+tanlearn\s*+=(.*+)", re.DOTALL)


class _Token(NamedTuple):
    """Word, mark or property, with its position in the text."""

    kind: str
    text: str
    position: int


#: Entry of a probability block: kind, states of the parents, numbers, position of the numbers, position of each number.
#: In the usual form, states and numbers are strings that are split later, because garbage collection of millions of
#: lists would take longer than parsing. Otherwise, they are lists of words.
_Entry: TypeAlias = tuple[str, str | list[list[str]], str | list[str], int, list[int] | None]


class _Block(NamedTuple):
    """Content of a ``probability`` block, before names are resolved."""

    line: int
    head: list[list[str]]
    parents: list[list[str]] | None
    entries: list[_Entry]


def parse_bif(content: bytes) -> Network:
    """Parse a BIF file in UTF-8. Invalid content raises ValueError with the line and the variable."""
    try:
        cursor = _Cursor(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the file must be encoded in UTF-8, but byte {error.start} is invalid. Save the file as UTF-8."
        ) from error
    variables: dict[str, Variable] = {}
    blocks = []
    while cursor.token.kind != "end":
        keyword = cursor.take("word").text
        if keyword == "network":
            cursor.names("{")
            cursor.properties()
            cursor.mark("}")
        elif keyword == "variable":
            variable = _variable(cursor)
            if variable.name in variables:
                raise ValueError(
                    f"{variable.position}: variable {variable.name!r} is declared twice. Rename one of them."
                )
            variables[variable.name] = variable
        elif keyword == "probability":
            blocks.append(_block(cursor))
        else:
            raise ValueError(f"line {cursor.line}: expected network, variable or probability, found {keyword[:40]!r}.")
    definitions: dict[str, Definition] = {}
    n_implied, logarithms = 0, Logarithms()
    for block in blocks:
        child, parents = _header(block, variables)
        if child in definitions:
            raise ValueError(f"line {block.line}: variable {child!r} has two probability blocks. Remove one of them.")
        try:
            definitions[child] = Definition(parents, _table(block, child, parents, variables, cursor, logarithms))
        except ValueError as error:
            position = "" if str(error).startswith("line ") else f"line {block.line}: "
            raise ValueError(f"{position}probability of {child!r}: {error}") from error
        if any(entry[0] == "default" for entry in block.entries):
            table = definitions[child].log_table
            n_implied += table.size - (len(block.entries) - 1) * table.shape[-1]
        if n_implied > LARGEST_NETWORK:
            raise ValueError(
                f"line {block.line}: defaults may imply at most {LARGEST_NETWORK} numbers in total. Remove parents."
            )
    return Network(variables, definitions)


def format_bif(network: Network) -> str:
    """Format a network as BIF. Names must consist of letters, digits and ``_``, and notes must not contain ``;``."""
    lines, strings = ["network tanlearn {", "}"], DecimalStrings()
    for name, states, note, _ in network.variables.values():
        lines += [f"variable {name} {{", f"    type discrete [ {len(states)} ] {{ {', '.join(states)} }};"]
        lines += [] if note is None else [f"    property tanlearn = {note};"]
        lines.append("}")
    for child, (parents, log_table) in network.definitions.items():
        head = f"{child} | {', '.join(parents)}" if parents else child
        lines.append(f"probability ( {head} ) {{")
        configurations = itertools.product(*(network.variables[name].states for name in parents))
        for states, row in zip(configurations, log_table.reshape(-1, log_table.shape[-1]).tolist(), strict=True):
            given = f"({', '.join(states)})" if parents else "table"
            lines.append(f"    {given} {', '.join(map(strings.__getitem__, row))};")
        lines.append("}")
    return "\n".join([*lines, ""])


class _Cursor:
    """Position of the parser in a text. Tokens are read on demand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = self._taken = self._counted = 0
        self._counted_line = 1
        self._token: _Token | None = None

    @property
    def token(self) -> _Token:
        """Next token, which is not consumed."""
        while self._token is None:
            if self._position == len(self._text):
                self._token = _Token("end", "the end of the file", self._position)
                break
            start = self._position
            found = _TOKEN.match(self._text, start)
            if found is None or (found["property"] is not None and found["end"] is None):
                what = "a comment, a quoted name or a property"
                raise ValueError(
                    f"line {self.line_of(start)}: {what} that begins with {self._text[start : start + 20]!r} is not "
                    f"closed. Close it."
                )
            self._position = found.end()
            kind = found.lastgroup
            if kind == "quoted":
                self._token = _Token("word", found["quoted"], start)
            elif kind in ("word", "mark"):
                self._token = _Token(kind, found[kind], start)
            elif kind == "end":
                self._token = _Token("property", found["property"], start)
        return self._token

    @property
    def line(self) -> int:
        """Line of the last consumed token."""
        return self.line_of(self._taken)

    def line_of(self, position: int) -> int:
        """Return the line number of a position in the text."""
        if position >= self._counted:  # positions usually increase, so counting continues from the last position
            self._counted_line += self._text.count("\n", self._counted, position)
            self._counted = position
            return self._counted_line
        return 1 + self._text.count("\n", 0, position)

    def line_of_number(self, entry: _Entry, i: int) -> int:
        """Return the line of one number in an entry, or the line of the entry if it has no numbers."""
        *_, start, positions = entry
        if positions is not None:
            return self.line_of(positions[i] if positions else start)
        words = _WORD.finditer(self._text, start)
        return self.line_of(next(itertools.islice(words, i, None)).start())

    def fail(self, message: str) -> NoReturn:
        """Raise ValueError with the line number of the next token."""
        raise ValueError(f"line {self.line_of(self.token.position)}: {message}")

    def take(self, kind: str, *strings: str) -> _Token:
        """Consume and return the next token. It must be of the given kind and, if strings are given, one of these."""
        token = self.token
        if token.kind != kind or (strings and token.text not in strings):
            self.fail(f"expected {' or '.join(map(repr, strings)) or 'a ' + kind}, found {token.text[:40]!r}.")
        if kind != "end":
            self._token, self._taken = None, token.position
        return token

    def entry(self) -> _Entry | None:
        """Consume and return the next entry of a probability block if it has the usual form. Otherwise, return None."""
        found = _ENTRY.match(self._text, self._position) if self._token is None else None
        if found is None:
            return None
        self._position = found.end()
        states, kind, numbers = found.groups()
        return kind or "row", states, numbers, found.start("numbers"), None

    def mark(self, *marks: str) -> str:
        """Consume and return the next mark, which must be one of ``marks``."""
        return self.take("mark", *marks).text

    def names(self, *ends: str) -> tuple[list[list[str]], str]:
        """Consume words up to and including an end mark. Return the words in comma-separated groups, and the mark."""
        groups: list[list[str]] = [[]]
        while True:
            if self.token.kind == "word":
                groups[-1].append(self.take("word").text)
                continue
            mark = self.mark(",", *ends)
            if mark != ",":
                return groups, mark
            groups.append([])

    def numbers(self) -> tuple[list[str], int, list[int]]:
        """Consume words up to and including a semicolon, without commas. Return the words and their positions."""
        words: list[_Token] = []
        start = self.token.position
        while True:
            if self.token.kind == "word":
                words.append(self.take("word"))
            elif self.mark(",", ";") == ";":
                return [word.text for word in words], start, [word.position for word in words]

    def properties(self) -> str | None:
        """Consume all properties at this position, and return the value of tanlearn's own property, or None."""
        note = None
        while self.token.kind == "property":
            found = _NOTE.fullmatch(self.take("property").text)
            note = note if found is None else found[1].strip()
        return note


def _joined(groups: list[list[str]], n_words: int | None) -> list[str]:
    """Return one name per group of words, or one name per word if there is a single group of ``n_words`` words."""
    if len(groups) == 1 and (n_words is None or len(groups[0]) == n_words):
        return groups[0]
    return [" ".join(words) for words in groups]


def _variable(cursor: _Cursor) -> Variable:
    """Parse the next variable declaration."""
    line = cursor.line_of(cursor.token.position)
    name = " ".join(_joined(cursor.names("{")[0], None))
    note = cursor.properties()
    cursor.take("word", "type")
    cursor.take("word", "discrete")
    cursor.mark("[")
    n_states = cursor.take("word").text
    cursor.mark("]")
    cursor.mark("{")
    groups, _ = cursor.names("}")
    cursor.mark(";")
    note = cursor.properties() or note
    cursor.mark("}")
    count = int(n_states) if n_states.isdecimal() and len(n_states) < 10 else -1
    states = _joined(groups, count)
    if len(states) != count:
        raise ValueError(f"line {line}: variable {name!r} must have {n_states[:40]} states, got {len(states)}.")
    try:
        unique([name], "variables")
        return Variable(name, unique(states, "states"), note, f"line {line}")
    except ValueError as error:
        raise ValueError(f"line {line}: variable {name!r}: {error}") from error


def _block(cursor: _Cursor) -> _Block:
    """Parse the next probability block."""
    line = cursor.line_of(cursor.token.position)
    cursor.mark("(")
    head, mark = cursor.names("|", ")")
    parents = cursor.names(")")[0] if mark == "|" else None
    cursor.mark("{")
    entries: list[_Entry] = []
    while True:
        if (entry := cursor.entry()) is not None:
            entries.append(entry)
            continue
        cursor.properties()
        if cursor.token.kind == "word":
            entries.append((cursor.take("word", "table", "default").text, [], *cursor.numbers()))
        elif cursor.mark("(", "}") == "(":
            states, _ = cursor.names(")")
            entries.append(("row", states, *cursor.numbers()))
        else:
            return _Block(line, head, parents, entries)


def _header(block: _Block, variables: dict[str, Variable]) -> tuple[str, tuple[str, ...]]:
    """Return the name of the variable of a block, and the names of its parents."""
    if block.parents is not None:
        whole = " ".join(block.parents[0])
        separated = len(block.parents) > 1 or whole in variables
        return " ".join(_joined(block.head, None)), tuple(_joined(block.parents, 1 if separated else None))
    words = [word for group in block.head for word in group]
    whole = " ".join(words)
    if whole in variables or not words:
        return whole, ()
    child, *parents = _joined(block.head, None)
    return child, tuple(parents)


def _table(
    block: _Block,
    child: str,
    parents: tuple[str, ...],
    variables: dict[str, Variable],
    cursor: _Cursor,
    logarithms: Logarithms,
) -> FloatArray:
    """Return the log probabilities of a block. The axes are the states of each parent, then the states of the child."""
    shape = cpt_shape(variables, child, parents)
    kinds = [entry[0] for entry in block.entries]
    if "table" in kinds:
        if len(kinds) > 1:
            raise ValueError(
                "a table must be the only entry, because it contains all numbers. Remove the other entries."
            )
        # In a table, the state of the variable is the slowest index. In rows, it is the fastest index.
        flat = _logarithms(block.entries[0], math.prod(shape), cursor, logarithms)
        return normalize(np.ascontiguousarray(np.moveaxis(flat.reshape(shape[-1], *shape[:-1]), 0, -1)))
    numbers = [{state: i for i, state in enumerate(variables[name].states)} for name in parents]
    rows: dict[tuple[int, ...], FloatArray] = {}
    default = None
    for entry in block.entries:
        kind, given = entry[:2]
        row = _logarithms(entry, shape[-1], cursor, logarithms)
        if kind == "default":
            if default is not None:
                raise ValueError(f"line {cursor.line_of_number(entry, 0)}: there are two defaults. Remove one of them.")
            default = row
            continue
        groups = [group.split() for group in given.split(",")] if isinstance(given, str) else given
        states = _joined(groups, len(parents))
        index = tuple(known.get(state, -1) for known, state in zip(numbers, states, strict=False))
        if len(states) != len(parents) or -1 in index or not parents:
            line = cursor.line_of_number(entry, 0)
            raise ValueError(
                f"line {line}: ({', '.join(states)[:80]}) must contain one state of each parent, {list(parents)}."
            )
        if index in rows:
            line = cursor.line_of_number(entry, 0)
            raise ValueError(f"line {line}: ({', '.join(states)}) occurs twice. Remove one of the entries.")
        rows[index] = row
    table: FloatArray = np.empty(shape)
    if default is not None:
        table[...] = default
    elif len(rows) < math.prod(shape[:-1]):
        index = next(index for index in np.ndindex(*shape[:-1]) if index not in rows)
        states = [variables[name].states[i] for name, i in zip(parents, index, strict=True)]
        raise ValueError(f"the numbers for ({', '.join(states)}) are missing. Add them, or add a default.")
    if rows:
        table[tuple(np.array([*rows]).T)] = np.array([*rows.values()])
    return normalize(table)


def _logarithms(entry: _Entry, count: int, cursor: _Cursor, logarithms: Logarithms) -> FloatArray:
    """Return the logarithms of the probabilities of an entry, which must contain ``count`` numbers."""
    numbers = entry[2]
    words = numbers.replace(",", " ").split() if isinstance(numbers, str) else numbers
    if len(words) != count:
        line = cursor.line_of_number(entry, 0) if words else cursor.line_of(entry[3])
        raise ValueError(f"line {line}: expected {count} numbers, found {len(words)}.")
    try:
        return logarithms.of(words)
    except ValueError as error:
        first = next(i for i, word in enumerate(words) if word not in logarithms)
        raise ValueError(f"line {cursor.line_of_number(entry, first)}: {error}") from error
