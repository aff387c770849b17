"""Pieces of C99: constants in the smallest types that hold them, how they are read, and how they are spelt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["CText", "comment", "signed_type", "spell", "spell_lines", "spell_string", "unsigned_type"]

_LINE = 112
#: What reads a constant, so that a microcontroller whose constants lie in another memory can say how.
_READERS = {
    "8": "READ_8",
    "16": "READ_16",
    "32": "READ_32",
    "64": "READ_64",
    "float": "READ_FLOAT",
    "double": "READ_DOUBLE",
}

_ARRAY = """static const @type@ @array@[@length@] MODEL_ATTRIBUTE = {
@body@};"""


class CText:
    """The text of one header, whose names share a prefix."""

    def __init__(self, name: str) -> None:
        self.name = name  # The prefix, in lower and in upper case
        self._parts: list[str] = []
        self.types: dict[str, str] = {}  # The types of the elements of arrays, by the names of these without the prefix

    @property
    def readers(self) -> list[str]:
        """The macros that arrays are read by, without their prefix."""
        return sorted({_reader(c_type) for c_type in self.types.values()}, key=list(_READERS.values()).index)

    def rename(self, template: str, **values: Any) -> str:
        """Return a template with the prefix for ``model_`` and ``MODEL_``, and values for names between ``@``."""
        prefixes = {"model": f"{self.name}_", "MODEL": f"{self.name.upper()}_"}
        renamed = re.sub(r"\b(model|MODEL)_", lambda found: prefixes[found[1]], template)
        return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), renamed)

    def add(self, template: str, **values: Any) -> None:
        """Append a piece, as :meth:`rename` returns it."""
        self._parts.append(self.rename(template, **values))

    def array(self, name: str, c_type: str, values: Sequence[Any]) -> None:
        """Append an array of constants; an empty one gets a zero, as C has no arrays without elements."""
        self.types[name] = c_type
        body = spell_lines([spell(value, c_type) for value in values] or ["0"])
        self.add(_ARRAY, type=c_type, array=f"{self.name}_{name}", length=max(1, len(values)), body=body)

    def read(self, name: str, index: str) -> str:
        """Return the expression for an element of an array."""
        return self.read_at(name, f"&{self.name}_{name}[{index}]")

    def read_at(self, name: str, pointer: str) -> str:
        """Return the expression for what a pointer into an array points to."""
        c_type = self.types[name]
        cast = f"({c_type})" if c_type.startswith("int") else ""  # pgm_read_byte and its like return unsigned numbers
        return f"{cast}{self.name.upper()}_{_reader(c_type)}({pointer})"

    def column(self, name: str, values: Sequence[int]) -> str:
        """Append a number of every feature; return the expression for that of feature ``i``, or of all if equal."""
        if len(set(values)) == 1:
            return f"{values[0]}u"
        self.array(name, unsigned_type(max(values)), values)
        return self.read(name, "i")

    def __str__(self) -> str:
        return "\n".join(self._parts)


def _reader(c_type: str) -> str:
    """Return the macro that reads a type."""
    return _READERS[re.sub(r"\D*int(\d+)_t", r"\1", c_type)]


def spell_lines(words: Iterable[str]) -> str:
    """Return words with commas between them, in indented lines."""
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > _LINE:
            lines.append(line)
            line = ""
        line += f"{word}, "
    return "".join(f"    {line.rstrip()}\n" for line in [*lines, line])


def spell(value: Any, c_type: str) -> str:
    """Return a number as a constant of a type; floating numbers in hexadecimal, which C99 reads exactly."""
    if c_type in ("double", "float"):
        return float(value).hex() + ("f" if c_type == "float" else "")
    number = int(value)
    if number == -(2**63):
        return f"({number + 1}LL - 1)"
    return f"{number}{'' if abs(number) < 2**31 else 'LL' if number < 2**63 else 'ULL'}"


def spell_string(text: str | bytes) -> str:
    r"""Return a text as a string of C, in UTF-8: what is neither a letter nor plain punctuation in octal."""
    # Three octal digits end an escape whatever follows; a question mark could begin a trigraph.
    plain = bytes(set(range(0x20, 0x7F)) - set(b'"\\?'))
    encoded = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in encoded) + '"'


def comment(text: str) -> str:
    """Return a text as it may stand in a comment: what could end one, or a line, is left out."""
    return re.sub(r"[^ -~]|[*/\\?]", "_", text)


def unsigned_type(largest: int) -> str:
    """Return the smallest unsigned type."""
    return next(f"uint{bits}_t" for bits in (8, 16, 32, 64) if largest < 2**bits)


def signed_type(values: Iterable[int]) -> str:
    """Return the smallest signed type."""
    numbers = list(values)
    return next(f"int{n}_t" for n in (8, 16, 32, 64) if all(-(2 ** (n - 1)) <= v < 2 ** (n - 1) for v in numbers))
