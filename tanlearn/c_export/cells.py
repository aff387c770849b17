"""C99 code that adds a row of magnitudes to the sums of the classes.

Magnitudes are packed bit by bit or stored in whole bytes. Positions of packed magnitudes are counted in bits, which
avoids multiplications by the width of a magnitude.
"""

from __future__ import annotations

from tanlearn._typing import AnyArray
from tanlearn.c_export.split_array import add_split_array, is_long
from tanlearn.c_export.text import CText, unsigned_type
from tanlearn.models.quantization import FixedPoint

__all__ = ["add_cells"]

_LARGEST_POSITION = 2**32 - 1

_ADD_WHOLE = """
/* Add a row of magnitudes to the sums. */
static inline void model_add(model_position at, model_sum *sums)
{
@start@    for (model_index c = 0; c < @length@; ++c) {
        sums[c] = (model_sum)(sums[c] + @read@);
    }
}"""

# Bytes are read on demand. gcc -Os (12.2 for Cortex-M0+) generates multiplications if positions increase by the number
# of bits of a magnitude. gcc -Os (5.4 for AVR) generates them if a loop reads the bytes instead of one or two
# conditions.
_ADD_PACKED = """
/* Add a row of magnitudes, which starts at a bit position, to the sums. */
static inline void model_add(model_position at, model_sum *sums)
{
    @start@
    const @window@ mask = @mask@;
    @window@ bits = @read@;
    uint8_t left = (uint8_t)(8u - (at & 7u)); /* bits not yet used */
    for (model_index c = 0; c < @length@; ++c) {@refills@
        left = (uint8_t)(left - @n_bits@u);
        sums[c] = (model_sum)(sums[c] + ((bits >> left) & mask));
    }
}"""
_REFILL = """
        if (left < @n_bits@u) {
            ++next;
            bits = @more@;
            left = (uint8_t)(left + 8u);
        }"""


def add_cells(text: CText, magnitudes: AnyArray, n_bits: int, columns: tuple[int, str], *, packed: bool) -> int:
    """Append rows of magnitudes, the type of their positions, and ``model_add``, which adds a row to sums.

    ``columns`` is the length of a row, as a number and as a C expression. If ``packed`` is true, magnitudes are stored
    bit by bit, unless they fill whole bytes. Returns the difference between the positions of adjacent magnitudes.
    Raises ValueError if there are 2**32 positions or more.

    Shapes: magnitudes: (n,), from 0 to 2**n_bits - 1.
    """
    packed = packed and n_bits not in (8, 16)
    unit = n_bits if packed else 1
    end = len(magnitudes) * unit
    if end > _LARGEST_POSITION:
        raise ValueError(
            f"CPTs must have fewer than 2**32 bits, because positions in C have 32 bits, got {end} bits. Use fewer "
            f"bits per entry, or learn CPTs with fewer values or parents."
        )
    n_columns, length = columns
    text.add(f"typedef {unsigned_type(max(256, end))} model_position;")
    mask = 2**n_bits - 1
    c_type = "uint8_t" if packed else unsigned_type(mask)
    values = FixedPoint(n_bits, 0).pack(magnitudes).tolist() if packed else magnitudes.tolist()
    n_row = (n_columns * n_bits + 14) // 8 if packed else n_columns
    if is_long(c_type, len(values), n_row):
        add_split_array(text, "cells", c_type, values, n_row)
        whole = ("    const model_address row = model_address_of(at);\n", "MODEL_READ_ADDRESS(row, c)")
        bits = ("model_address next = model_address_of(at >> 3u);", "MODEL_READ_ADDRESS(next, 0)")
    else:
        text.array("cells", c_type, values)
        whole = ("", text.read("cells", "at + c"))
        bits = ("const uint8_t *next = &model_cells[at >> 3u];", "MODEL_READ_8(next)")
    start, read = map(text.rename, bits if packed else whole)
    common = {"length": length, "start": start, "read": read}
    if packed:
        window = unsigned_type(2 ** (n_bits + 7) - 1)  # at most n_bits - 1 unused bits and one new byte
        more = read if n_bits == 1 else f"({window})((bits << 8u) | {read})"
        refill = text.rename(_REFILL, n_bits=n_bits, more=more)
        refills = refill if n_bits <= 8 else refill + refill
        text.add(_ADD_PACKED, window=window, n_bits=n_bits, mask=mask, refills=refills, **common)
    else:
        text.add(_ADD_WHOLE, **common)
    return unit
