"""Arrays that exceed the limits of AVR: 32,767 bytes per array, and 64 KB of flash memory for pointers.

The header defines ``MODEL_SPLIT`` on AVR. If it is defined, a long array is split into several arrays. Each of these
except the last also contains the first elements of the next array, as many as a row may have. A row is therefore always
contained in a single array. On AVRs with more than 64 KB of flash memory, these arrays are stored after the program,
and are read with 32-bit far addresses. On other microcontrollers, the array is not split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tanlearn.c_export.text import CText, spell, spell_lines

__all__ = ["add_split_array", "is_long"]

_LONGEST = 2**15 - 1
_SIZES = {"uint8_t": 1, "uint16_t": 2, "float": 4}
#: Largest flash memory of any AVR, in bytes.
_LARGEST_FLASH = 2**19

_ARRAY = """static const @type@ @array@[] MODEL_PART = {
@body@};"""
_PART_BOUNDARY = """#ifdef MODEL_SPLIT
@overlap@};
static const @type@ @array@[] MODEL_PART = {
#endif
"""
_MEMORY = """
#ifdef MODEL_FAR
#define MODEL_PART __attribute__((section(".text.model_cells")))
#else
#define MODEL_PART MODEL_ATTRIBUTE
#endif"""
_READ_MACROS = """
/* Address of a position, valid up to the end of a row. */
#ifdef MODEL_SPLIT
#ifdef MODEL_FAR
typedef uint_farptr_t model_address;
#define MODEL_ADDRESS(array, at) (pgm_get_far_address(array) + (@size@u * (at)))
#define MODEL_READ_ADDRESS(address, index) @far@((address) + (@size@u * (index)))
#else
typedef const @type@ *model_address;
#define MODEL_ADDRESS(array, at) (&(array)[at])
#define MODEL_READ_ADDRESS(address, index) @near@
#endif
static inline model_address model_address_of(model_position at)
{
@choices@}
#else
typedef model_position model_address;
#define model_address_of(at) (at)
#define MODEL_READ_ADDRESS(address, index) @whole@
#endif"""
_CHOICE = """    if (at >= @start@u) {
        return MODEL_ADDRESS(@array@, at - @start@u);
    }
"""
_FIRST = """    return MODEL_ADDRESS(@array@, at);
"""


def is_long(c_type: str, length: int, n_row: int) -> bool:
    """Return whether an array must be split on AVR, but fits into its flash memory.

    ``n_row`` is the maximum number of elements that are read from one position on.
    """
    size = _SIZES[c_type]
    return _LONGEST < length * size < _LARGEST_FLASH and n_row * size < _LONGEST // 2


def add_split_array(text: CText, name: str, c_type: str, values: Sequence[Any], n_row: int) -> None:
    """Append an array, and ``model_address_of``, which returns the read address of a ``model_position``.

    ``MODEL_READ_ADDRESS(address, index)`` reads the element ``index`` after such an address. ``n_row`` is the maximum
    number of elements that are read from one position on. The header must define the type ``model_position``.
    """
    size = _SIZES[c_type]
    far = {"uint8_t": "byte", "uint16_t": "word", "float": "float"}[c_type]
    length = _LONGEST // size - n_row
    starts = range(0, len(values), length)
    arrays = [f"{text.name}_{name}{f'_{part}' * (part > 0)}" for part in range(len(starts))]
    spelt = [spell(value, c_type) for value in values]
    body = ""
    for array, start in zip(arrays, starts, strict=True):
        if start:
            overlap = spell_lines(spelt[start : start + n_row])
            body += text.rename(_PART_BOUNDARY, overlap=overlap, type=c_type, array=array)
        body += spell_lines(spelt[start : start + length])
    later = zip(arrays[:0:-1], starts[:0:-1], strict=True)
    choices = [
        *(text.rename(_CHOICE, array=array, start=start) for array, start in later),
        text.rename(_FIRST, array=arrays[0]),
    ]
    text.add(_MEMORY)
    text.add(_ARRAY, type=c_type, array=arrays[0], body=body)
    text.types[name] = c_type
    text.n_bytes += size * len(values)
    text.add(
        _READ_MACROS,
        size=size,
        type=c_type,
        far=f"pgm_read_{far}_far",
        near=text.read_at(name, "&(address)[index]"),
        whole=text.read(name, "(address) + (index)"),
        choices="".join(choices),
    )
