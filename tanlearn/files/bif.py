"""The Interchange Format for Bayesian networks, BIF 0.15: text to networks, and back.

Read is more than is written: comments, properties, names in quotes or of several words, lists with and without commas,
``table``, ``default`` and rows in any order, and headers ``(child parent parent)`` of the format's first version.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.files.discrete_network import (
    LARGEST_NETWORK,
    Definition,
    Network,
    Variable,
    log_of,
    look_up,
    normalize,
    text_of,
    unique,
)

__all__ = ["format_bif", "parse_bif"]

# Each alternative starts with characters that no other starts with, or takes what it started or fails for good, so that
# broken text takes no longer than other text.
_TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*.*?\*/)
    |property(?=[\s"])(?P<property>(?:"[^"]*+"|[^;"])*+)(?P<end>;)?
    |"(?P<quoted>[^"\n]*+)"
    |(?P<mark>[{}()\[\]|,;])
    |(?P<word>(?:(?!//|/\*)[^\s{}()\[\]|,;"])++)""",
    re.DOTALL | re.VERBOSE,
)
_NOTE = re.compile(r"\s*tanlearn\s*=(.*)", re.DOTALL)


class _Token(NamedTuple):
    """A word, mark or property, and its line."""

    kind: str
    text: str
    line: int


class _Block(NamedTuple):
    """What stands between the braces of a ``probability``, before names are looked up."""

    line: int
    head: list[list[str]]
    parents: list[list[str]] | None
    entries: list[tuple[str, list[list[str]], list[_Token]]]


def parse_bif(content: bytes) -> Network:
    """Read a network.

    Parameters
    ----------
    content : bytes
        The content of a file, in UTF-8.

    Returns
    -------
    Network

    Raises
    ------
    ValueError
        If it breaks a rule; the message names the line and the variable.

    Examples
    --------
    >>> from tanlearn.files.bif import parse_bif
    >>> network = parse_bif(b'''network weather { }
    ... variable rain { type discrete [2] { yes, no }; }
    ... probability (rain) { table 0.25, 0.75; } // in June''')
    >>> network.variables["rain"].states
    ('yes', 'no')
    """
    try:
        cursor = _Cursor(_tokenize(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is no UTF-8. Save the file as UTF-8.") from error
    variables: dict[str, Variable] = {}
    blocks = []
    while cursor.token.kind != "end":
        _, keyword, line = cursor.take("word")
        if keyword == "network":
            cursor.names("{")
            cursor.properties()
            cursor.mark("}")
        elif keyword == "variable":
            variable = _variable(cursor)
            if variable.name in variables:
                raise ValueError(f"{variable.place}: variable {variable.name!r} is declared twice: rename one.")
            variables[variable.name] = variable
        elif keyword == "probability":
            blocks.append(_block(cursor))
        else:
            raise ValueError(f"line {line}: {keyword[:40]!r} stands where network, variable or probability belongs.")
    definitions: dict[str, Definition] = {}
    n_numbers = 0
    for block in blocks:
        child, parents = _header(block, variables)
        if child in definitions:
            raise ValueError(f"line {block.line}: variable {child!r} has two probability blocks: remove one.")
        try:
            definitions[child] = Definition(parents, _table(block, child, parents, variables))
        except ValueError as error:
            place = "" if str(error).startswith("line ") else f"line {block.line}: "
            raise ValueError(f"{place}probability of {child!r}: {error}") from error
        n_numbers += definitions[child].log_table.size
        if n_numbers > LARGEST_NETWORK:
            raise ValueError(
                f"line {block.line}: up to here there are more than {LARGEST_NETWORK} numbers: remove parents."
            )
    return Network(variables, definitions)


def format_bif(network: Network) -> str:
    """Return a network as text.

    Parameters
    ----------
    network : Network
        Its names are of letters, digits and ``_``, and its notes hold no ``;``.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.files.bif import format_bif
    >>> from tanlearn.files.discrete_network import Definition, Network, Variable
    >>> rain = Variable("rain", ("yes", "no"), None, "")
    >>> print(format_bif(Network({"rain": rain}, {"rain": Definition((), np.log([0.25, 0.75]))})))
    network tanlearn {
    }
    variable rain {
        type discrete [ 2 ] { yes, no };
    }
    probability ( rain ) {
        table 0.25, 0.75;
    }
    <BLANKLINE>
    """
    lines = ["network tanlearn {", "}"]
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
            lines.append(f"    {given} {', '.join(map(text_of, row))};")
        lines.append("}")
    return "\n".join([*lines, ""])


def _tokenize(text: str) -> Iterator[_Token]:
    """Yield the tokens, and an end."""
    position, line = 0, 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or (found["property"] is not None and found["end"] is None):
            what = "a comment, a quoted name or a property"
            raise ValueError(
                f"line {line}: {what} begins with {text[position : position + 20]!r} and does not end. Close it."
            )
        for kind in ("quoted", "word", "mark", "property"):
            if found[kind] is not None:
                yield _Token("word" if kind == "quoted" else kind, found[kind], line)
        line += text.count("\n", position, found.end())
        position = found.end()
    yield _Token("end", "the end of the file", line)


class _Cursor:
    """Where in the tokens a parser is."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self.token = next(tokens)

    def fail(self, message: str) -> NoReturn:
        """Raise an error with the line."""
        raise ValueError(f"line {self.token.line}: {message}")

    def take(self, kind: str, *texts: str) -> _Token:
        """Return the token, which must be of this kind and one of these texts, if any, and go on."""
        token = self.token
        if token.kind != kind or (texts and token.text not in texts):
            self.fail(f"{token.text[:40]!r} stands where {' or '.join(map(repr, texts)) or 'a ' + kind} belongs.")
        if kind != "end":
            self.token = next(self._tokens)
        return token

    def mark(self, *marks: str) -> str:
        """Return the mark that stands here, which must be one of these."""
        return self.take("mark", *marks).text

    def names(self, *ends: str) -> tuple[list[list[str]], str]:
        """Return words up to a mark, which is taken, too, in the groups that commas make."""
        groups: list[list[str]] = [[]]
        while True:
            if self.token.kind == "word":
                groups[-1].append(self.take("word").text)
                continue
            mark = self.mark(",", *ends)
            if mark != ",":
                return groups, mark
            groups.append([])

    def numbers(self) -> list[_Token]:
        """Return words up to a semicolon, which is taken, too; commas are ignored."""
        words = []
        while True:
            if self.token.kind == "word":
                words.append(self.take("word"))
            elif self.mark(",", ";") == ";":
                return words

    def properties(self) -> str | None:
        """Take all properties that stand here, and return tanlearn's own, if there is one."""
        note = None
        while self.token.kind == "property":
            found = _NOTE.fullmatch(self.take("property").text)
            note = note if found is None else found[1].strip()
        return note


def _joined(groups: list[list[str]], n_words: int | None) -> list[str]:
    """Return a list of names: between commas, or, where there are none, word by word if there are as many as wanted."""
    if len(groups) == 1 and (n_words is None or len(groups[0]) == n_words):
        return groups[0]
    return [" ".join(words) for words in groups]


def _variable(cursor: _Cursor) -> Variable:
    """Return the variable that is declared next."""
    line = cursor.token.line
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
        raise ValueError(f"line {line}: variable {name!r} must have {n_states[:40]} states, but {len(states)} follow.")
    try:
        unique([name], "variables")
        return Variable(name, unique(states, "states"), note, f"line {line}")
    except ValueError as error:
        raise ValueError(f"line {line}: variable {name!r}: {error}") from error


def _block(cursor: _Cursor) -> _Block:
    """Return the probability block that stands next."""
    line = cursor.token.line
    cursor.mark("(")
    head, mark = cursor.names("|", ")")
    parents = cursor.names(")")[0] if mark == "|" else None
    cursor.mark("{")
    entries: list[tuple[str, list[list[str]], list[_Token]]] = []
    while True:
        cursor.properties()
        if cursor.token.kind == "word":
            entries.append((cursor.take("word", "table", "default").text, [], cursor.numbers()))
        elif cursor.mark("(", "}") == "(":
            states, _ = cursor.names(")")
            entries.append(("row", states, cursor.numbers()))
        else:
            return _Block(line, head, parents, entries)


def _header(block: _Block, variables: dict[str, Variable]) -> tuple[str, tuple[str, ...]]:
    """Return the names of a variable and its parents."""
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


def _table(block: _Block, child: str, parents: tuple[str, ...], variables: dict[str, Variable]) -> FloatArray:
    """Return the log-probabilities of a block, of shape (parents' states ..., child's states)."""
    shape = look_up(variables, child, parents)
    kinds = [kind for kind, _, _ in block.entries]
    if "table" in kinds:
        if len(kinds) > 1:
            raise ValueError("a table has all the numbers: remove the other entries.")
        # The variable's state changes slowest here, but fastest in rows.
        flat = _logarithms(block.entries[0][2], int(np.prod(shape)), block.line)
        return normalize(np.ascontiguousarray(np.moveaxis(flat.reshape(shape[-1], *shape[:-1]), 0, -1)))
    numbers = [{state: i for i, state in enumerate(variables[name].states)} for name in parents]
    table: FloatArray = np.full(shape, np.nan)
    default = None
    for kind, groups, words in block.entries:
        line = words[0].line if words else block.line
        row = _logarithms(words, shape[-1], line)
        if kind == "default":
            if default is not None:
                raise ValueError(f"line {line}: there are two defaults: remove one.")
            default = row
            continue
        states = _joined(groups, len(parents))
        index = tuple(known.get(state, -1) for known, state in zip(numbers, states, strict=False))
        if len(states) != len(parents) or -1 in index or not parents:
            raise ValueError(f"line {line}: ({', '.join(states)[:80]}) must be one state each of {list(parents)}.")
        if not np.isnan(table[index][0]):
            raise ValueError(f"line {line}: ({', '.join(states)}) stands twice: remove one.")
        table[index] = row
    absent = np.isnan(table[..., 0])
    if default is not None:
        table[absent] = default
    elif absent.any():
        index = np.argwhere(absent)[0].tolist()
        states = [variables[name].states[i] for name, i in zip(parents, index, strict=True)]
        raise ValueError(f"there are no numbers for ({', '.join(states)}): add them, or a default.")
    return normalize(table)


def _logarithms(words: list[_Token], count: int, line: int) -> FloatArray:
    """Return the logarithms of so many probabilities."""
    if len(words) != count:
        raise ValueError(f"line {line}: {count} numbers belong here, but {len(words)} stand.")
    logs: FloatArray = np.empty(count)
    for i, word in enumerate(words):
        try:
            logs[i] = log_of(word.text)
        except ValueError as error:
            raise ValueError(f"line {word.line}: {error}") from error
    return logs
