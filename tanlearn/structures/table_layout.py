"""Layout of conditional probability tables (CPTs) in one flat vector.

The vector ``cells`` contains the class prior, then one CPT per family. A layout may contain several CPTs per feature,
one for each candidate set of parents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tanlearn._memory import check_memory
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import scores
from tanlearn.kernels._backends import backend_of
from tanlearn.kernels._cuda import on_device

__all__ = ["TableLayout", "n_table_cells"]

#: Largest number of cells. It is below 2**63, with a margin for rounding errors in the estimate.
_MOST_CELLS = 2.0**62
#: Largest number of augmenting parents that kernels for devices support.
_DEVICE_PARENTS = 2


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Layout of the CPTs of several families in the flat vector ``cells``.

    The class prior comes first (``cells[:n_classes]``). CPT ``t`` is ``cells[offset[t]:offset[t + 1]]``, with axes
    ``[child value][parent value(s)][class]``, in C order. A lookup therefore reads ``n_classes`` contiguous numbers,
    and a sum over the values of the child adds long contiguous rows.
    """

    child: IntArray  # (n_tables,) feature of each CPT
    parents: IntArray  # (n_tables, width) augmenting parents besides the class, -1 for none
    n_states: IntArray  # (n_features,)
    n_classes: int

    @cached_property
    def offset(self) -> IntArray:
        """Start of each CPT, and end of the last CPT, an array of shape (n_tables + 1,).

        Raises TableMemoryError if the number of cells exceeds the range of 64-bit integers.
        """
        # With two parents, there are fewer than 2**62 cells, and the check would increase the time by a third.
        if self.parents.shape[1] > 2 and self.sizes().sum() > _MOST_CELLS:
            self.check_memory(None)
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1)
        sizes = self.n_states[self.child] * widths.prod(axis=1) * self.n_classes
        offset: IntArray = np.concatenate(([self.n_classes], self.n_classes + np.cumsum(sizes))).astype(np.intp)
        return offset

    def sizes(self) -> FloatArray:
        """Return the sizes (n_tables,) of the CPTs as floats, which cannot overflow and are exact up to 2**53."""
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1).prod(axis=1, dtype=np.float64)
        sizes: FloatArray = self.n_states[self.child] * widths * self.n_classes
        return sizes

    @classmethod
    def of_parents(cls, parents: IntArray, n_states: IntArray, n_classes: int) -> TableLayout:
        """Create the layout with one CPT per feature, from the parents (n_features, width) with -1 for none."""
        return cls(np.arange(parents.shape[0]), parents, n_states, n_classes)

    @classmethod
    def of_features(cls, n_states: IntArray, n_classes: int) -> TableLayout:
        """Create the layout with one CPT per feature, given only the class."""
        return cls.of_parents(np.full((len(n_states), 2), -1, np.intp), n_states, n_classes)

    @property
    def n_tables(self) -> int:
        """Number of CPTs, without the class prior."""
        return self.child.shape[0]

    @property
    def n_cells(self) -> int:
        """Length of the flat vector, including the class prior."""
        return int(self.offset[-1])

    def shape(self, table: int) -> tuple[int, ...]:
        """Return the shape of a CPT: child values, values of each parent, classes."""
        parents = self.parents[table]
        widths = (int(self.n_states[j]) for j in parents[parents >= 0])
        return (int(self.n_states[self.child[table]]), *widths, self.n_classes)

    def select(self, tables: IntArray) -> TableLayout:
        """Return the layout of a subset of the CPTs, in the given order, after the class prior."""
        return TableLayout(self.child[tables], self.parents[tables], self.n_states, self.n_classes)

    def select_cells(self, cells: AnyArray, tables: IntArray) -> AnyArray:
        """Return a copy of the class prior and the selected CPTs, laid out by :meth:`select`.

        Shapes: cells: (n_cells,); tables: (n_selected,); result: (n_selected_cells,).
        """
        pieces = [cells[self.offset[t] : self.offset[t + 1]] for t in tables]
        return np.concatenate([cells[: self.n_classes], *pieces])

    def add_cells(self, cells: AnyArray, tables: IntArray, selected: AnyArray) -> None:
        """Add ``selected`` to the class prior and the selected CPTs in place (the transpose of :meth:`select_cells`).

        Shapes: cells: (n_cells,); tables: (n_selected,); selected: (n_selected_cells,).
        """
        layout = self.select(tables)
        cells[: self.n_classes] += selected[: self.n_classes]
        for t, (first, last) in zip(tables, itertools.pairwise(layout.offset), strict=True):
            cells[self.offset[t] : self.offset[t + 1]] += selected[first:last]

    def groups(self) -> tuple[IntArray, IntArray]:
        """Return the number of values of the distributions and the offset of the class prior and of each CPT.

        The distributions of group ``g`` are in ``cells[offset[g]:offset[g + 1]]``, each over ``n_values[g]`` values.

        Shapes: result n_values: (n_tables + 1,); result offset: (n_tables + 2,).
        """
        return np.append(self.n_classes, self.n_states[self.child]), np.append(0, self.offset)

    def distributions(self) -> IntArray:
        """Return the index of the distribution to which each cell belongs. Index 0 is the class prior.

        The probabilities of the cells with the same index sum to one.
        """
        n_values, offset = self.groups()
        sizes = np.diff(offset) // n_values
        first = np.cumsum(sizes) - sizes
        pieces = [start + np.tile(np.arange(m), k) for start, m, k in zip(first, sizes, n_values, strict=True)]
        return np.concatenate(pieces)

    def log_joint(self, codes: Codes, cells: FloatArray) -> FloatArray:
        """Compute the log joint of complete rows as the sum over all CPTs of the layout.

        Shapes: codes: (n_features, n_samples); cells: (n_cells,); result: (n_samples, n_classes).
        """
        n_samples = codes.shape[1]
        selected, rows = np.arange(self.n_tables), np.empty(n_samples, np.intp)
        out = np.empty((n_samples, self.n_classes), cells.dtype)
        scores.log_joint(codes, 0, cells, *self.arrays(), selected, missing_code(codes.dtype), rows, out)
        return out

    def count(self, codes: Codes, y: IntArray, weights: AnyArray, device: str = "cpu") -> AnyArray:
        """Sum the weights of the rows in each cell. A row is not counted in families in which it has a missing value.

        The result has the dtype of the weights, is exact for integers, and does not depend on the device.

        Shapes: codes: (n_features, n_samples); y, weights: (n_samples,); result: (n_cells,).
        """
        self.check_device(device)
        backend = backend_of(device)
        arrays = codes, y, weights, np.zeros(self.n_cells, weights.dtype), *self.arrays()
        with on_device(device):
            codes, y, weights, counts, *families = backend.put(*arrays)
            backend.kernels.count_classes(y, weights, counts[: self.n_classes])
            rows = np.empty(codes.shape[1], np.intp)
            backend.kernels.count_families(codes, y, weights, *families, missing_code(codes.dtype), rows, counts)
            return backend.get(counts)

    def check_memory(self, n_samples: int | None, label: Callable[[int], str] = "feature {}".format) -> None:
        """Raise TableMemoryError if the CPTs are too large. A cell takes 16 bytes, for its count and its logarithm.

        ``n_samples`` is None if more rows may follow. ``label`` returns the name of a feature in the message.
        """
        if not self.n_tables:
            return
        sizes = self.sizes()
        n_cells = self.n_classes + int(sizes.sum())
        t = int(sizes.argmax())
        given = " and ".join(label(j) for j in self.parents[t] if j >= 0)
        check_memory(
            n_cells,
            16 * n_cells,
            n_cells / self.n_tables / n_samples if n_samples else 0.0,
            f"a model whose largest CPT belongs to {label(self.child[t])}{f' given {given}' if given else ''} "
            f"({' x '.join(map(str, self.shape(t)))} values and classes)",
            "Use fewer parents, or merge, discretize or leave out columns with so many values",
        )

    def check_device(self, device: str) -> None:
        """Raise ValueError if a device other than the CPU does not support the number of parents."""
        if device != "cpu" and self.parents.shape[1] > _DEVICE_PARENTS:
            n_parents = (self.parents >= 0).sum(axis=1)
            t = int(n_parents.argmax())
            raise ValueError(
                f"device={device!r} supports at most {_DEVICE_PARENTS} augmenting parents per feature, but feature "
                f"{self.child[t]} has {n_parents[t]}. Use device='cpu', or learn a structure with fewer parents."
            )

    def arrays(self) -> scores.Families:
        """Return the layout as arrays for kernels."""
        return scores.Families(self.child, self.parents, self.n_states, self.offset)


def n_table_cells(parents: IntArray, n_states: IntArray, n_classes: int) -> int:
    """Return the number of entries of all CPTs of a structure, including the class probabilities.

    The result is a Python integer, which cannot overflow for forged structures.

    Shapes: parents: (n_features, n_parents), -1 for none; n_states: (n_features,).
    """
    states = n_states.tolist()
    families = enumerate(parents.tolist())
    sizes = [states[i] * math.prod(states[j] for j in given if j >= 0) for i, given in families]
    return int(n_classes * (1 + sum(sizes)))
