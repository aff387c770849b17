"""Parts of C99 source code: constants of the smallest suitable types, expressions that read them, and literals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["CText", "comment", "signed_type", "size_of", "spell", "spell_lines", "spell_string", "unsigned_type"]

_LINE = 112
#: Macros that read constants. They can be redefined for microcontrollers with a separate memory for constants.
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
    """Source code of one header, whose names share a prefix."""

    def __init__(self, name: str) -> None:
        self.name = name  # prefix of all names, converted to upper case for macros
        self._parts: list[str] = []
        self.types: dict[str, str] = {}  # element types; the keys are names of arrays without the prefix
        self.n_bytes = 0  # total size of all arrays

    @property
    def readers(self) -> list[str]:
        """Macros that read the arrays, without the prefix."""
        return sorted({_reader(c_type) for c_type in self.types.values()}, key=list(_READERS.values()).index)

    def rename(self, template: str, **values: Any) -> str:
        """Replace ``model_`` and ``MODEL_`` in a template with the prefix, and names between ``@`` with values."""
        prefixes = {"model": f"{self.name}_", "MODEL": f"{self.name.upper()}_"}
        renamed = re.sub(r"\b(model|MODEL)_", lambda found: prefixes[found[1]], template)
        return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), renamed)

    def add(self, template: str, **values: Any) -> None:
        """Append a template, filled in by :meth:`rename`."""
        self._parts.append(self.rename(template, **values))

    def array(self, name: str, c_type: str, values: Sequence[Any]) -> None:
        """Append an array of constants. Because C does not allow empty arrays, an empty array is given one zero."""
        self.types[name] = c_type
        self.n_bytes += max(1, len(values)) * size_of(c_type)
        body = spell_lines([spell(value, c_type) for value in values] or ["0"])
        self.add(_ARRAY, type=c_type, array=f"{self.name}_{name}", length=max(1, len(values)), body=body)

    def read(self, name: str, index: str) -> str:
        """Return the C expression that reads the element ``index`` of an array."""
        return self.read_at(name, f"&{self.name}_{name}[{index}]")

    def read_at(self, name: str, pointer: str) -> str:
        """Return the C expression that reads the element of an array to which a pointer points."""
        c_type = self.types[name]
        cast = f"({c_type})" if c_type.startswith("int") else ""  # pgm_read_byte and similar macros return unsigned
        return f"{cast}{self.name.upper()}_{_reader(c_type)}({pointer})"

    def column(self, name: str, values: Sequence[int]) -> str:
        """Append one nonnegative number per feature, and return the C expression for the number of feature ``i``.

        If all numbers are equal, the expression is this number, and no array is appended.
        """
        if len(set(values)) == 1:
            return f"{values[0]}u"
        self.array(name, unsigned_type(max(values)), values)
        return self.read(name, "i")

    def __str__(self) -> str:
        return "\n".join(self._parts)


def _reader(c_type: str) -> str:
    """Return the name of the macro that reads a type."""
    return _READERS[re.sub(r"\D*int(\d+)_t", r"\1", c_type)]


def size_of(c_type: str) -> int:
    """Return the size of a number type in bytes."""
    return int(_reader(c_type).removeprefix("READ_").replace("FLOAT", "32").replace("DOUBLE", "64")) // 8


def spell_lines(words: Iterable[str]) -> str:
    """Return words as indented lines, separated by commas."""
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > _LINE:
            lines.append(line)
            line = ""
        line += f"{word}, "
    return "".join(f"    {line.rstrip()}\n" for line in [*lines, line])


def spell(value: Any, c_type: str) -> str:
    """Return a number as a C literal. Floating-point literals are hexadecimal, which C99 reads exactly."""
    if c_type in ("double", "float"):
        return float(value).hex() + ("f" if c_type == "float" else "")
    number = int(value)
    if number == -(2**63):
        return f"({number + 1}LL - 1)"
    return f"{number}{'' if abs(number) < 2**31 else 'LL' if number < 2**63 else 'ULL'}"


def spell_string(text: str | bytes) -> str:
    r"""Return a text as a C string literal in UTF-8, with octal escapes for all but plain printable characters."""
    # An escape ends after three octal digits, whatever follows. A question mark could begin a trigraph.
    plain = bytes(set(range(0x20, 0x7F)) - set(b'"\\?'))
    encoded = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in encoded) + '"'


def comment(text: str) -> str:
    """Replace the characters of a text that cannot be part of a C comment with ``_``."""
    return re.sub(r"[^ -~]|[*/\\?]", "_", text)


def unsigned_type(largest: int) -> str:
    """Return the smallest unsigned C type for numbers up to ``largest``."""
    return next(f"uint{bits}_t" for bits in (8, 16, 32, 64) if largest < 2**bits)


def signed_type(values: Iterable[int]) -> str:
    """Return the smallest signed C type for all of the values."""
    numbers = list(values)
    return next(f"int{n}_t" for n in (8, 16, 32, 64) if all(-(2 ** (n - 1)) <= v < 2 ** (n - 1) for v in numbers))
