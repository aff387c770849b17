"""C99 code that sums the magnitudes for a row without multiplications.

The position of a CPT row is the offset of the CPT, plus value times stride for the child and for each parent. There are
only a few distinct strides. For example, if features have one parent, the strides of all parents are equal to the
number of classes. Multiples of strides are therefore stored in a lookup table. For the 42,042 entries of a network for
letter, this table takes 240 bytes.

Shifts and additions would take as much space, and compilers would convert them back to multiplications.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.c_export.cells import add_cells
from tanlearn.c_export.scores import CHECK
from tanlearn.c_export.text import CText, unsigned_type
from tanlearn.models.log_joint import log_joint
from tanlearn.models.quantization import IntegerTables
from tanlearn.structures.structures import Structure

__all__ = ["NetworkSums"]

_SUMS = """
/* Write the sum of magnitudes of each class; the log joint is minus the sum times @step@. Return 0; or -1, without
   writing, if a code is invalid. */
static inline int16_t model_sums(const model_code *codes, model_sum *sums)
{
@check@
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
}"""

_PARENT = """
        if (@parent@ < MODEL_N_FEATURES) {
            at = (model_position)(at + @multiple@);
        }"""


class NetworkSums:
    """Sums of magnitudes for a network with integer CPTs."""

    def __init__(self, tables: IntegerTables, structure: Structure) -> None:
        self._tables, self._structure = tables, structure
        self.n_code_arrays = 1
        self.n_classes = tables.layout.n_classes
        self.n_states = tables.layout.n_states.tolist()
        self.title = f"Bayesian-network classifier with {tables.fixed_point.n_bits}-bit integers"
        first = np.append(0, tables.layout.offset[:-1])
        self.largest_sum = int(np.maximum.reduceat(tables.magnitudes, first).sum(dtype=np.int64))

    def codes(self, codes: Codes) -> Codes:
        """Return the codes in C, which are equal to the codes of the encoder."""
        return codes

    def sums(self, codes: Codes) -> IntArray:
        """Return the sums (n_rows, n_classes) that C computes for complete rows of codes (n_features, n_rows)."""
        scores = log_joint(self._tables, self._structure, np.ascontiguousarray(codes))
        return np.rint(-scores / self._tables.fixed_point.step).astype(np.int64)

    def add(self, text: CText, n_states: str, *, packed: bool) -> None:
        """Append the CPTs and ``model_sums`` (see :meth:`tanlearn.c_export.scores.Scores.add`)."""
        tables, layout = self._tables, self._tables.layout
        text.add("\n/* Magnitudes of the prior, then of each feature as [value][values of parents][class]. */")
        columns, n_bits = (self.n_classes, text.rename("MODEL_N_CLASSES")), tables.fixed_point.n_bits
        unit = add_cells(text, tables.magnitudes, n_bits, columns, packed=packed)
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
        values = {"check": text.rename(CHECK, n_states=n_states), "offset": offset, "child": child, "parents": parents}
        text.add(_SUMS, step=f"{tables.fixed_point.step:g}", **values)


def _strides(tables: IntegerTables) -> AnyArray:
    """Return the strides of the child and of each parent in CPT entries. Shape: (n_tables, 1 + n_parents)."""
    layout = tables.layout
    widths = np.where(layout.parents >= 0, layout.n_states[layout.parents], 1)
    strides = np.full((layout.n_tables, 1 + widths.shape[1]), layout.n_classes)
    strides[:, :-1] *= widths[:, ::-1].cumprod(axis=1)[:, ::-1]  # a stride is the product of all subsequent widths
    return strides


def _multiples(strides: AnyArray, lengths: AnyArray) -> tuple[AnyArray, list[int]]:
    """Return the start of the multiples of each stride, in the shape of ``strides``, and a list of all multiples.

    The number of multiples of a stride is the largest number of values of a feature with this stride.
    """
    multiples: list[int] = []
    start = np.zeros_like(strides)
    for stride in np.unique(strides[lengths > 0]).tolist():
        chosen = (strides == stride) & (lengths > 0)
        start[chosen] = len(multiples)
        multiples += [stride * k for k in range(lengths[chosen].max())]
    return start, multiples
