"""C99 code that sums magnitudes without multiplications, the part of an exported classifier that runs per row.

A row of a CPT begins at the offset of the CPT plus, for the child and each parent, its value times a stride. There are
few distinct strides (with one parent, those of all parents equal the number of classes), so their multiples are stored
in a lookup table: the positions of all rows of letter's 42,042 entries take 240 bytes. If magnitudes are packed,
positions are in bits, so that no position is multiplied by the width of a magnitude.

Shifts and additions in place of the lookup table are not smaller, and compilers turn them back into multiplications.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.c_export.split_array import add_split_array, is_long
from tanlearn.c_export.text import CText, unsigned_type
from tanlearn.models.quantization import IntegerTables

__all__ = ["add_tables", "sum_type"]

_LARGEST_POSITION = 2**32 - 1

_ADD_WHOLE = """
/* Add a row of magnitudes to the sums. */
static inline void model_add(model_position at, model_sum *sums)
{
@start@    for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {
        sums[c] = (model_sum)(sums[c] + @read@);
    }
}"""

# Bytes are read on demand. gcc -Os generates multiplications for positions that increase by the bits of a magnitude
# (12.2 for Cortex-M0+), and for a loop that reads bytes instead of one or two conditions (5.4 for AVR).
_ADD_PACKED = """
/* Add a row of magnitudes, which starts at a bit position, to the sums. */
static inline void model_add(model_position at, model_sum *sums)
{
    @start@
    const @window@ mask = @mask@;
    @window@ bits = @read@;
    uint8_t left = (uint8_t)(8u - (at & 7u)); /* bits not yet used */
    for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {@refills@
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

_SUMS = """
/* Write the sum of magnitudes of each class; the log joint is minus the sum times @step@. Return 0; or -1, without
   writing, if a code is invalid. */
static inline int16_t model_sums(const model_code *codes, model_sum *sums)
{
    for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
        if (codes[i] >= @n_states@) {
            return -1;
        }
    }
    for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {
        sums[c] = 0;
    }
    model_add(0, sums);
    for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
        model_position at = @offset@;
        at = (model_position)(at + @child@);@parents@
        model_add(at, sums);
    }
    return 0;
}

/* Return the most probable class, the first one in case of a tie; -1 if a code is invalid. */
static inline int16_t model_predict_codes(const model_code *codes)
{
    model_sum sums[MODEL_N_CLASSES];
    model_index best = 0;
    if (model_sums(codes, sums) != 0) {
        return -1;
    }
    model_sum least = sums[0]; /* not sums[best], whose address AVR's compiler computes by a multiplication */
    for (model_index c = 1; c < MODEL_N_CLASSES; ++c) {
        if (sums[c] < least) {
            least = sums[c];
            best = c;
        }
    }
    return (int16_t)best;
}"""

_PARENT = """
        if (@parent@ < MODEL_N_FEATURES) {
            at = (model_position)(at + @multiple@);
        }"""


def sum_type(tables: IntegerTables) -> str:
    """Return the smallest unsigned C type that no sum of magnitudes, one per CPT, can overflow."""
    first = np.append(0, tables.layout.offset[:-1])
    return unsigned_type(int(np.maximum.reduceat(tables.magnitudes, first).sum(dtype=np.int64)))


def add_tables(text: CText, tables: IntegerTables, n_states: str, *, packed: bool) -> None:
    """Append the CPTs, and the functions that sum their magnitudes and find the smallest sum.

    ``n_states`` is the C expression for the number of states of feature ``i``. If ``packed``, magnitudes are stored as
    bits, otherwise as bytes. Raises ValueError if the CPTs have 2**32 bits or more.
    """
    layout, fixed_point = tables.layout, tables.fixed_point
    packed = packed and fixed_point.n_bits not in (8, 16)
    unit = fixed_point.n_bits if packed else 1
    end = layout.n_cells * unit
    if end > _LARGEST_POSITION:
        raise ValueError(
            f"the CPTs have {end} bits, but positions in C have 32 bits. Use fewer bits, or learn CPTs with fewer "
            f"values or parents."
        )
    text.add("\n/* Magnitudes of the prior, then of each feature as [value][values of parents][class]. */")
    text.add(f"typedef {unsigned_type(max(256, end))} model_position;")
    _add_cells(text, tables, packed)

    strides = _strides(tables) * unit
    users = np.column_stack([layout.child, layout.parents])
    start, multiples = _multiples(strides, np.where(users >= 0, layout.n_states[users], 0))
    text.add("\n/* Start of each CPT, and multiples of the lengths of its rows. */")
    text.array("multiples", unsigned_type(max(multiples)), multiples)
    offset = text.column("offset", (layout.offset[:-1] * unit).tolist())
    child = text.read("multiples", f"{text.column('child_multiples', start[:, 0].tolist())} + codes[i]")
    parents = ""
    for slot in range(layout.parents.shape[1]):
        parent = np.where(layout.parents[:, slot] >= 0, layout.parents[:, slot], layout.n_tables).tolist()
        if min(parent) < layout.n_tables:
            number = text.column(f"parent{slot}", parent)
            column = text.column(f"parent{slot}_multiples", start[:, slot + 1].tolist())
            multiple = text.read("multiples", f"{column} + codes[{number}]")
            parents += text.rename(_PARENT, parent=number, multiple=multiple)
    values = {"n_states": n_states, "offset": offset, "child": child, "parents": parents}
    text.add(_SUMS, step=f"{fixed_point.step:g}", **values)


def _add_cells(text: CText, tables: IntegerTables, packed: bool) -> None:
    """Append the magnitudes, and the function that adds those of a row; positions are in bits if packed."""
    n_bits, n_classes = tables.fixed_point.n_bits, tables.layout.n_classes
    mask = 2**n_bits - 1
    c_type = "uint8_t" if packed else unsigned_type(mask)
    values = tables.packed.tolist() if packed else tables.magnitudes.tolist()
    n_row = (n_classes * n_bits + 14) // 8 if packed else n_classes
    if is_long(c_type, len(values), n_row):
        add_split_array(text, "cells", c_type, values, n_row)
        whole = ("    const model_address row = model_address_of(at);\n", "MODEL_READ_ADDRESS(row, c)")
        bits = ("model_address next = model_address_of(at >> 3u);", "MODEL_READ_ADDRESS(next, 0)")
    else:
        text.array("cells", c_type, values)
        whole = ("", text.read("cells", "at + c"))
        bits = ("const uint8_t *next = &model_cells[at >> 3u];", "MODEL_READ_8(next)")
    start, read = map(text.rename, bits if packed else whole)
    if packed:
        window = unsigned_type(2 ** (n_bits + 7) - 1)  # at most n_bits - 1 unused bits and one new byte
        more = read if n_bits == 1 else f"({window})((bits << 8u) | {read})"
        refill = text.rename(_REFILL, n_bits=n_bits, more=more)
        refills = refill if n_bits <= 8 else refill + refill
        text.add(_ADD_PACKED, window=window, n_bits=n_bits, mask=mask, refills=refills, start=start, read=read)
    else:
        text.add(_ADD_WHOLE, start=start, read=read)


def _strides(tables: IntegerTables) -> AnyArray:
    """Return the strides of the child and of each parent in CPT entries, shape (n_tables, 1 + n_parents)."""
    layout = tables.layout
    widths = np.where(layout.parents >= 0, layout.n_states[layout.parents], 1)
    strides = np.full((layout.n_tables, 1 + widths.shape[1]), layout.n_classes)
    strides[:, :-1] *= widths[:, ::-1].cumprod(axis=1)[:, ::-1]  # a stride is the product of the widths after it
    return strides


def _multiples(strides: AnyArray, lengths: AnyArray) -> tuple[AnyArray, list[int]]:
    """Return the start of the multiples of each stride, shaped like ``strides``, and all multiples in one list.

    A stride has as many multiples as its longest user needs.
    """
    multiples: list[int] = []
    start = np.zeros_like(strides)
    for stride in np.unique(strides[lengths > 0]).tolist():
        chosen = (strides == stride) & (lengths > 0)
        start[chosen] = len(multiples)
        multiples += [stride * k for k in range(lengths[chosen].max())]
    return start, multiples
