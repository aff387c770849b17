"""Common parts of all C99 headers: comments, include guard, macros that read constants, and names of classes."""

from __future__ import annotations

import re
from typing import Any

from tanlearn._version import __version__
from tanlearn.c_export.encoder import ColumnKind, is_union
from tanlearn.c_export.text import CText, comment, spell_string

__all__ = ["add_class_names", "check_identifier", "framed"]

_HEAD = """/* @name@: @title@. Written by tanlearn @version@; do not edit.

@functions@

   Constants take @constants@ bytes. Arrays of a prediction take @stack@ bytes of the stack.

   @values@, in this order:
@columns@
   On AVR, constants are stored in flash memory. For another separate memory, define these macros before you include
   this file: MODEL_ATTRIBUTE, which follows the names of arrays, and the macros that read from a pointer:
   @macros@.
*/
#ifndef MODEL_H
#define MODEL_H

@includes@

#if defined(__AVR__) && !defined(MODEL_ATTRIBUTE)
#include <avr/pgmspace.h>
#define MODEL_ATTRIBUTE PROGMEM
@avr@@split@#endif
#ifndef MODEL_ATTRIBUTE
#define MODEL_ATTRIBUTE
#endif
@readers@
#ifdef __cplusplus
extern "C" {
#endif

@definitions@"""

_TAIL = """

#ifdef __cplusplus
}
#endif

#endif
"""

_CLASSES = """
/* Names of the classes, by number. */
static const char *const model_class_names[MODEL_N_CLASSES] = {
@strings@};
enum {
@numbers@};"""

#: Macros of avr-libc that read flash memory on AVR. For types without such a macro, a function copies the value.
_AVR = {
    "READ_8": "pgm_read_byte",
    "READ_16": "pgm_read_word",
    "READ_32": "pgm_read_dword",
    "READ_FLOAT": "pgm_read_float",
}
_AVR_COPIED = {"READ_64": "uint64_t", "READ_DOUBLE": "double"}
_COPY = """static inline @type@ model_@function@(const void *pointer)
{
    @type@ value;
    memcpy_P(&value, pointer, sizeof(value));
    return value;
}
"""
_SPLIT = """#define MODEL_SPLIT /* an array has at most 32,767 bytes */
#ifdef __AVR_HAVE_ELPM__
#define MODEL_FAR /* pointers reach only 64 KB */
#endif
"""
_READER = """#ifndef MODEL_@reader@
#define MODEL_@reader@(pointer) (*(pointer))
#endif
"""
_DOUBLE = """
#if DBL_MANT_DIG < 53
#error "double has single precision here: export with number_type='float'"
#endif"""


def check_identifier(name: str) -> None:
    """Raise ValueError if a name is not a short C identifier."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name):
        raise ValueError(
            f"name must be a C identifier (a letter, a to z or A to Z, then at most 30 letters, digits or _), got "
            f"{name!r}. Pass another name."
        )


def add_class_names(text: CText, classes: list[Any]) -> None:
    """Append the names of the classes, and an enumeration of their numbers."""
    labels = [str(label) for label in classes]
    plain = [re.sub(r"[^A-Za-z0-9]+", "_", label) for label in labels]
    if len({*plain}) < len(plain):
        plain = [f"{number}_{label}" for number, label in enumerate(plain)]
    text.add(
        _CLASSES,
        strings="".join(f"    {spell_string(label)},\n" for label in labels),
        numbers="".join(f"    {text.name.upper()}_CLASS_{label} = {number},\n" for number, label in enumerate(plain)),
    )


def framed(
    body: CText,
    kinds: list[ColumnKind],
    names: list[str],
    *,
    title: str,
    functions: str,
    values: str,
    definitions: str,
    stack: int,
) -> str:
    """Return the text of a header.

    ``functions`` describes the functions, and ``definitions`` contains the macros and types that the body uses.
    ``values`` introduces the list of columns, and ``stack`` is the number of bytes that arrays take on the stack.
    """
    text = str(body)
    floating = [limit for limit in ("DBL_MAX", "FLT_MAX") if limit in text]
    head = CText(body.name)
    head.add(
        _HEAD,
        name=body.name,
        title=title,
        version=__version__,
        functions=functions,
        constants=f"{body.n_bytes:,}",
        stack=f"{stack:,}",
        values=values,
        columns="".join(
            f"       [{i}] {_describe(kind, body.name, is_union(kinds))}: {comment(names[i])}\n"
            for i, kind in enumerate(kinds)
        ),
        macros=", ".join(head.rename(f"MODEL_{reader}") for reader in body.readers),
        avr="".join(_avr_reader(head, reader) for reader in body.readers),
        split=head.rename(_SPLIT) if head.rename("#ifdef MODEL_SPLIT") in text else "",
        includes="#include <stdint.h>" + "\n#include <float.h>" * bool(floating) + _DOUBLE * ("DBL_MAX" in floating),
        readers="".join(head.rename(_READER, reader=reader) for reader in body.readers),
        definitions=definitions,
    )
    return f"{head}{text}{_TAIL}"


def _avr_reader(head: CText, reader: str) -> str:
    """Return the definition of a reader macro for AVR, where constants are in flash memory."""
    copy, function = "", _AVR.get(reader)
    if function is None:
        copy = head.rename(_COPY, type=_AVR_COPIED[reader], function=reader.lower())
        function = f"{head.name}_{reader.lower()}"
    return copy + head.rename(f"#define MODEL_{reader}(pointer) {function}(pointer)\n")


def _describe(kind: ColumnKind, name: str, named: bool) -> str:
    """Describe the values of a column, for a comment in C."""
    what = {"cuts": "", "codes": ", the code that encoder_.transform returns"}
    member, c_type = f".{kind.member} " * named, kind.c_type or f"{name}_code"
    return f"{member}{c_type}{what.get(kind.name, ', one of the categories')}"
