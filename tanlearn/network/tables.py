"""Conditional probability tables (CPTs) in one flat vector, and the layout of this vector.

The vector ``cells`` contains the class prior, then one CPT per family. A layout may contain several CPTs per feature,
one for each candidate set of parents; `Tables` contains exactly one per feature.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._memory import check_memory
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import scores
from tanlearn.kernels._backends import backend_of

__all__ = ["TableLayout", "Tables"]

#: Largest number of cells: below 2**63, with a margin for the rounding of the estimate.
_MOST_CELLS = 2.0**62
#: Largest number of augmenting parents that device kernels support.
_DEVICE_PARENTS = 2


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Layout of the CPTs of several families in the flat vector ``cells``.

    The class prior comes first (``cells[:n_classes]``). CPT ``t`` is ``cells[offset[t]:offset[t + 1]]``, with axes
    ``[child value][parent value(s)][class]``, in C order. So a lookup reads ``n_classes`` contiguous numbers, and a sum
    over the child's values adds long contiguous rows.
    """

    child: IntArray  # (n_tables,) feature of each CPT
    parents: IntArray  # (n_tables, width) augmenting parents besides the class, -1 for none
    n_states: IntArray  # (n_features,)
    n_classes: int

    @cached_property
    def offset(self) -> IntArray:
        """Start of each CPT, and end of the last one, shape (n_tables + 1,).

        Raises TableMemoryError if the cells are too many to number by 64-bit integers.
        """
        # With two parents there are fewer than 2**62, and the check would cost a third more.
        if self.parents.shape[1] > 2 and self.sizes().sum() > _MOST_CELLS:
            self.check_memory(None)
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1)
        sizes = self.n_states[self.child] * widths.prod(axis=1) * self.n_classes
        offset: IntArray = np.concatenate(([self.n_classes], self.n_classes + np.cumsum(sizes))).astype(np.intp)
        return offset

    def sizes(self) -> FloatArray:
        """Return the size of each CPT (n_tables,) as a float, which cannot overflow; exact up to 2**53."""
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1).prod(axis=1, dtype=np.float64)
        sizes: FloatArray = self.n_states[self.child] * widths * self.n_classes
        return sizes

    @classmethod
    def of_parents(cls, parents: IntArray, n_states: IntArray, n_classes: int) -> TableLayout:
        """Create the layout with one CPT per feature, from the parents (n_features, width), -1 for none."""
        return cls(np.arange(parents.shape[0]), parents, n_states, n_classes)

    @classmethod
    def of_features(cls, n_states: IntArray, n_classes: int) -> TableLayout:
        """Create the layout with one CPT per feature given the class only."""
        return cls.of_parents(np.full((len(n_states), 2), -1, np.intp), n_states, n_classes)

    @property
    def n_tables(self) -> int:
        """Number of CPTs, without the class prior."""
        return self.child.shape[0]

    @property
    def n_cells(self) -> int:
        """Length of the flat vector, with the class prior."""
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
        """Add ``selected`` to the class prior and the selected CPTs in place: the transpose of :meth:`select_cells`.

        Shapes: cells: (n_cells,); tables: (n_selected,); selected: (n_selected_cells,).
        """
        layout = self.select(tables)
        cells[: self.n_classes] += selected[: self.n_classes]
        for t, (first, last) in zip(tables, itertools.pairwise(layout.offset), strict=True):
            cells[self.offset[t] : self.offset[t + 1]] += selected[first:last]

    def groups(self) -> tuple[IntArray, IntArray]:
        """Return the number of values of the distributions, and the offsets, of the class prior and each CPT.

        The distributions of group ``g`` are in ``cells[offset[g]:offset[g + 1]]``, each over ``n_values[g]`` values.

        Shapes: result n_values: (n_tables + 1,); result offset: (n_tables + 2,).
        """
        return np.append(self.n_classes, self.n_states[self.child]), np.append(0, self.offset)

    def distributions(self) -> IntArray:
        """Return the index of the distribution of each cell; 0 is the class prior.

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
        """Count the weight of each cell; a row does not count for families in which it has a missing value.

        The result has the dtype of the weights; integers are exact. It does not depend on the device.

        Shapes: codes: (n_features, n_samples); y, weights: (n_samples,); result: (n_cells,).
        """
        self.check_device(device)
        backend = backend_of(device)
        arrays = codes, y, weights, np.zeros(self.n_cells, weights.dtype), *self.arrays()
        codes, y, weights, counts, *families = backend.put(*arrays)
        backend.kernels.count_classes(y, weights, counts[: self.n_classes])
        rows = np.empty(codes.shape[1], np.intp)
        backend.kernels.count_families(codes, y, weights, *families, missing_code(codes.dtype), rows, counts)
        return backend.get(counts)

    def check_memory(self, n_samples: int | None) -> None:
        """Raise TableMemoryError if the CPTs are too large: 16 bytes per cell, for its count and its logarithm.

        ``n_samples`` is None if more rows may follow.
        """
        if not self.n_tables:
            return
        sizes = self.sizes()
        n_cells = self.n_classes + int(sizes.sum())
        t = int(sizes.argmax())
        given = " and ".join(str(j) for j in self.parents[t] if j >= 0)
        check_memory(
            n_cells,
            16 * n_cells,
            n_cells / self.n_tables / n_samples if n_samples else 0.0,
            f"a model whose largest table is that of feature {self.child[t]}{f' given {given}' if given else ''} "
            f"({' x '.join(map(str, self.shape(t)))} values and classes)",
            "Take fewer parents, or merge, discretize or leave out columns with so many values",
        )

    def check_device(self, device: str) -> None:
        """Raise ValueError if a device other than the CPU does not support the number of parents."""
        if device != "cpu" and self.parents.shape[1] > _DEVICE_PARENTS:
            n_parents = (self.parents >= 0).sum(axis=1)
            t = int(n_parents.argmax())
            raise ValueError(
                f"device={device!r} supports at most {_DEVICE_PARENTS} augmenting parents per feature, but feature "
                f"{self.child[t]} has {n_parents[t]}. Use device='cpu', or learn a structure with fewer."
            )

    def arrays(self) -> scores.Families:
        """Return the arrays of the layout that kernels take."""
        return scores.Families(self.child, self.parents, self.n_states, self.offset)


@dataclass(frozen=True, eq=False)
class Tables:
    """Log probabilities of all CPTs of a fitted network, and of its class prior.

    Parameters
    ----------
    layout : TableLayout
        Layout with one CPT per feature, in the order of the features.
    cells : ndarray of shape (n_cells,), float64
        Log probabilities; -inf is log 0, and nan never occurs.
    is_normalized : bool, default=True
        Whether the probabilities of each distribution sum to one. CPTs of gradient k-trees and rounded CPTs are not
        normalized, but score classes equally well.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> model = NaiveBayesClassifier().fit([["a"], ["b"], ["b"]], [0, 1, 1])
    >>> model.tables_
    Tables(n_features=1, n_classes=2, n_parameters=3)
    >>> (3 * model.tables_.probabilities(0)).round(2).tolist()  # P(value | class), one row a value
    [[2.0, 0.75], [1.0, 2.25]]
    """

    layout: TableLayout
    cells: FloatArray
    is_normalized: bool = True

    @property
    def log_prior(self) -> FloatArray:
        """Log probability of each class, shape (n_classes,)."""
        return self.cells[: self.layout.n_classes]

    def with_log_prior(self, log_prior: FloatArray) -> Tables:
        """Return a copy with other class probabilities.

        Parameters
        ----------
        log_prior : ndarray of shape (n_classes,)
            Log probability of each class.

        Returns
        -------
        Tables
        """
        cells = self.cells.copy()
        cells[: len(log_prior)] = log_prior
        return Tables(self.layout, cells, self.is_normalized)

    def __getitem__(self, feature: int) -> FloatArray:
        """Return log P(value | parent values, class), shape (values, values of each parent, classes)."""
        # A negative index would select an empty slice, and IndexError ends a loop over the CPTs.
        if not 0 <= feature < len(self):
            raise IndexError(f"there is no feature {feature}: features are numbered from 0 to {len(self) - 1}.")
        cells = self.cells[self.layout.offset[feature] : self.layout.offset[feature + 1]]
        return cells.reshape(self.layout.shape(feature))

    def __len__(self) -> int:
        return self.layout.n_tables

    def probabilities(self, feature: int) -> FloatArray:
        """Return P(value | parent values, class) of a feature.

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        ndarray of shape (values, parent values ..., classes)

        Raises
        ------
        IndexError
            If the index is out of range.
        """
        return np.exp(self[feature])

    def of_rows(self, feature: int, codes: Codes) -> FloatArray:
        """Return the contribution of a feature to the log joint of rows.

        Parameters
        ----------
        feature : int
            Index of the feature.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes. Results of rows in which the feature or a parent is missing are undefined.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows = np.empty(codes.shape[1], np.intp)
        family = self.layout.child[feature], self.layout.parents[feature], self.layout.n_states
        scores.family_rows(codes, 0, *family, missing_code(codes.dtype), rows)
        return self[feature].reshape(-1, self.layout.n_classes)[rows]

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]:
        """Return a function that sums :attr:`scoring_cells` for a block of complete rows.

        Parameters
        ----------
        missing : int
            Code of missing values.

        Returns
        -------
        callable
            ``score(codes, first, sums)`` writes the sums of ``len(sums)`` rows, starting with row ``first``.
        """
        arrays = self.scoring_cells, *self.layout.arrays(), np.arange(len(self))

        def score(codes: Codes, first: int, sums: AnyArray) -> None:
            scores.log_joint(codes, first, *arrays, missing, np.empty(len(sums), np.intp), sums)

        return score

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return all conditional distributions of a feature, and the index of the one that applies to each row.

        Parameters
        ----------
        feature : int
            Index of the feature.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes, of which the parents are read.
        y : ndarray of shape (n_samples,)
            Class codes.

        Returns
        -------
        table : ndarray of shape (n_values, n_distributions)
            Log probabilities, one distribution per column.
        column : ndarray of shape (n_samples,)
            Column of each row.
        """
        column = np.zeros(codes.shape[1], np.intp)
        for j in self.layout.parents[feature][self.layout.parents[feature] >= 0]:
            column = column * self.layout.n_states[j] + codes[j]
        table = self[feature].reshape(self.layout.n_states[feature], -1)
        return table, column * self.layout.n_classes + y

    def check_device(self, device: str) -> None:
        """Raise an error if the device has no kernels for these CPTs.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Device of the computation.

        Raises
        ------
        ValueError
            If the device has none.
        """
        self.layout.check_device(device)

    @property
    def n_cells(self) -> int:
        """Number of CPT entries, with the class prior."""
        return self.layout.n_cells

    @property
    def bits(self) -> tuple[int, int] | None:
        """Integer and fraction bits of a rounded number, or None for floating-point numbers."""
        return None

    @property
    def bits_per_cell(self) -> int:
        """Bits of a number on a microcontroller: 32, a single-precision float."""
        return 32

    @property
    def scoring_cells(self) -> AnyArray:
        """Numbers that are summed to score complete rows, shape (n_cells,)."""
        return self.cells

    @property
    def sum_dtype(self) -> Any:
        """Data type of a sum of :attr:`scoring_cells`."""
        return np.float64

    def decode(self, sums: AnyArray) -> FloatArray:
        """Convert sums of :attr:`scoring_cells` to log joints.

        Parameters
        ----------
        sums : ndarray of any shape, of :attr:`sum_dtype`
            Sums of one number per CPT and one of the prior.

        Returns
        -------
        ndarray of the same shape, float64
        """
        return sums

    def to_state(self) -> dict[str, Any]:
        """Return the fields that a file stores, apart from the structure.

        Returns
        -------
        dict
            ``cells``; for rounded CPTs also ``bits``, and for others that are not normalized ``normalized``, which is
            False.
        """
        return {"cells": self.cells, **({} if self.is_normalized else {"normalized": False})}

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: one fewer than the number of values per distribution."""
        groups, offset = self.layout.groups()
        sizes = np.diff(offset)
        return int((sizes - sizes // groups).sum())

    def _repr_html_(self) -> str:
        most = 20
        lines = ["<tr><th>feature</th><th>values</th><th>contexts of parents</th><th>numbers</th></tr>"]
        for i in range(min(len(self), most)):
            n_values, *sides = self.layout.shape(i)
            contexts = math.prod(sides[:-1])
            lines.append(f"<tr><td>{i}</td><td>{n_values}</td><td>{contexts:,}</td><td>{self[i].size:,}</td></tr>")
        rest = f"<p>and {len(self) - most} more features</p>" if len(self) > most else ""
        return f"<p>{self!r}</p><table>{''.join(lines)}</table>{rest}"

    def __repr__(self) -> str:
        return f"Tables(n_features={len(self)}, n_classes={self.layout.n_classes}, n_parameters={self.n_parameters})"
