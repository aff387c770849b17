"""Conditional probability tables in one flat vector, and the layout that says where each of them lies."""

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

#: Cells that 64 bits number, with room for the rounding of their estimate.
_MOST_CELLS = 2.0**62
#: Augmenting parents that kernels on devices know of.
_DEVICE_PARENTS = 2


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Where the tables of a set of families lie in the flat vector ``cells``.

    The class prior comes first (``cells[:n_classes]``). Table ``t`` follows at ``offset[t]:offset[t + 1]``, laid
    out as ``[child value][parent value(s)][class]``: a gather reads one contiguous run of ``n_classes``
    numbers, and a sum over the child's values adds long contiguous rows.
    """

    child: IntArray  # (n_tables,): The feature whose table it is
    parents: IntArray  # (n_tables, width): Its augmenting parents besides the class, -1 for none
    n_states: IntArray  # (n_features,): Number of values of every feature
    n_classes: int  # Number of classes

    @cached_property
    def offset(self) -> IntArray:
        """Where every table begins, and where the last one ends, shape (n_tables + 1,)."""
        # (With two parents there are fewer than 2**62; looking costs a third more.)
        if self.parents.shape[1] > 2 and self.sizes().sum() > _MOST_CELLS:
            self.check_memory(None)
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1)
        sizes = self.n_states[self.child] * widths.prod(axis=1) * self.n_classes
        offset: IntArray = np.concatenate(([self.n_classes], self.n_classes + np.cumsum(sizes))).astype(np.intp)
        return offset

    def sizes(self) -> FloatArray:
        """Return the cells of every table in floating numbers, which do not overflow; exact up to 2**53.

        Shapes: result: (n_tables,).
        """
        widths = np.where(self.parents >= 0, self.n_states[self.parents], 1).prod(axis=1, dtype=np.float64)
        sizes: FloatArray = self.n_states[self.child] * widths * self.n_classes
        return sizes

    @classmethod
    def of_parents(cls, parents: IntArray, n_states: IntArray, n_classes: int) -> TableLayout:
        """Return the layout with one table a feature.

        Shapes: parents: (n_features, width); n_states: (n_features,).
        """
        return cls(np.arange(parents.shape[0]), parents, n_states, n_classes)

    @classmethod
    def of_features(cls, n_states: IntArray, n_classes: int) -> TableLayout:
        """Return the layout with one table a feature, given the class only.

        Shapes: n_states: (n_features,).
        """
        return cls.of_parents(np.full((len(n_states), 2), -1, np.intp), n_states, n_classes)

    @property
    def n_tables(self) -> int:
        """Number of tables, the class prior not counted."""
        return self.child.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of cells, the class prior included."""
        return int(self.offset[-1])

    def shape(self, table: int) -> tuple[int, ...]:
        """Return the shape of a table."""
        parents = self.parents[table]
        widths = (int(self.n_states[j]) for j in parents[parents >= 0])
        return (int(self.n_states[self.child[table]]), *widths, self.n_classes)

    def select(self, tables: IntArray) -> TableLayout:
        """Return the layout of some of the tables.

        Shapes: tables: (n_selected,).
        """
        return TableLayout(self.child[tables], self.parents[tables], self.n_states, self.n_classes)

    def select_cells(self, cells: AnyArray, tables: IntArray) -> AnyArray:
        """Return the cells that :meth:`select` lays out: the prior and those tables.

        Shapes: cells: (n_cells,); tables: (n_selected,); result: (n_selected_cells,).
        """
        pieces = [cells[self.offset[t] : self.offset[t + 1]] for t in tables]
        return np.concatenate([cells[: self.n_classes], *pieces])

    def add_cells(self, cells: AnyArray, tables: IntArray, selected: AnyArray) -> None:
        """Add to the cells of some tables what :meth:`select` lays out: the transpose of :meth:`select_cells`.

        Shapes: cells: (n_cells,); tables: (n_selected,); selected: (n_selected_cells,).
        """
        layout = self.select(tables)
        cells[: self.n_classes] += selected[: self.n_classes]
        for t, (first, last) in zip(tables, itertools.pairwise(layout.offset), strict=True):
            cells[self.offset[t] : self.offset[t + 1]] += selected[first:last]

    def groups(self) -> tuple[IntArray, IntArray]:
        """Return where the distributions lie: those of the prior first, then those of every table.

        Shapes: result n_values: (n_tables + 1,); result offset: (n_tables + 2,).
        """
        return np.append(self.n_classes, self.n_states[self.child]), np.append(0, self.offset)

    def distributions(self) -> IntArray:
        """Return the number of the distribution that every cell belongs to: what has one number sums to one.

        Shapes: result: (n_cells,).
        """
        n_values, offset = self.groups()
        sizes = np.diff(offset) // n_values
        first = np.cumsum(sizes) - sizes
        pieces = [start + np.tile(np.arange(m), k) for start, m, k in zip(first, sizes, n_values, strict=True)]
        return np.concatenate(pieces)

    def log_joint(self, codes: Codes, cells: FloatArray) -> FloatArray:
        """Return the log joint of complete rows when every table is in use.

        Shapes: codes: (n_features, n_samples); cells: (n_cells,); result: (n_samples, n_classes).
        """
        n_samples = codes.shape[1]
        selected, rows = np.arange(self.n_tables), np.empty(n_samples, np.intp)
        out = np.empty((n_samples, self.n_classes), cells.dtype)
        scores.log_joint(codes, 0, cells, *self.arrays(), selected, missing_code(codes.dtype), rows, out)
        return out

    def count(self, codes: Codes, y: IntArray, weights: AnyArray, device: str = "cpu") -> AnyArray:
        """Return the weighted counts of every cell, families with a missing member left out.

        Shapes: codes: (n_features, n_samples); y: (n_samples,); weights: (n_samples,); result: (n_cells,).
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
        """Refuse tables that are too large to be filled: 16 bytes a cell, for its count and its logarithm."""
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
        """Refuse more parents than the kernels of a device know of."""
        if device != "cpu" and self.parents.shape[1] > _DEVICE_PARENTS:
            n_parents = (self.parents >= 0).sum(axis=1)
            t = int(n_parents.argmax())
            raise ValueError(
                f"device={device!r} works with {_DEVICE_PARENTS} augmenting parents a feature at most, but feature "
                f"{self.child[t]} has {n_parents[t]}. Use device='cpu', or learn a structure with fewer."
            )

    def arrays(self) -> scores.Families:
        """Return what every kernel needs to know of the layout."""
        return scores.Families(self.child, self.parents, self.n_states, self.offset)


@dataclass(frozen=True, eq=False)
class Tables:
    """The learnt log-probabilities of a structure.

    Parameters
    ----------
    layout : TableLayout
        One table a feature, in the order of the features.
    cells : ndarray of shape (n_cells,), float64
        Log-probabilities; -inf is log 0, nan never occurs.
    is_normalized : bool, default=True
        Whether the probabilities of every distribution add up to one. Those of gradient k-trees and rounded ones do
        not: as scores of classes they are as good.

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
        """Log-probability of every class, shape (n_classes,)."""
        return self.cells[: self.layout.n_classes]

    def with_log_prior(self, log_prior: FloatArray) -> Tables:
        """Return tables with other class probabilities.

        Parameters
        ----------
        log_prior : ndarray of shape (n_classes,)
            Their logarithms.

        Returns
        -------
        Tables
        """
        cells = self.cells.copy()
        cells[: len(log_prior)] = log_prior
        return Tables(self.layout, cells, self.is_normalized)

    def __getitem__(self, feature: int) -> FloatArray:
        """Return log P(value | parent value, class), shape (values, parent values ..., classes)."""
        # A negative number would pick no run of cells; and IndexError is what ends a loop over the tables.
        if not 0 <= feature < len(self):
            raise IndexError(f"there is no feature {feature}: features are numbered from 0 to {len(self) - 1}.")
        cells = self.cells[self.layout.offset[feature] : self.layout.offset[feature + 1]]
        return cells.reshape(self.layout.shape(feature))

    def __len__(self) -> int:
        return self.layout.n_tables

    def probabilities(self, feature: int) -> FloatArray:
        """Return P(value | parent value, class) of a feature.

        Parameters
        ----------
        feature : int
            Number of the feature.

        Returns
        -------
        ndarray of shape (values, parent values ..., classes)

        Raises
        ------
        IndexError
            If there is no such feature.
        """
        return np.exp(self[feature])

    def of_rows(self, feature: int, codes: Codes) -> FloatArray:
        """Return what a feature adds to the log joint of rows.

        Parameters
        ----------
        feature : int
            Its number.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes. What is returned of rows that miss the feature or a parent is of no use.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows = np.empty(codes.shape[1], np.intp)
        family = self.layout.child[feature], self.layout.parents[feature], self.layout.n_states
        scores.family_rows(codes, 0, *family, missing_code(codes.dtype), rows)
        return self[feature].reshape(-1, self.layout.n_classes)[rows]

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]:
        """Return what adds up :attr:`scoring_cells` of a block of complete rows.

        Parameters
        ----------
        missing : int
            The code of what is missing.

        Returns
        -------
        callable
            ``score(codes, first, sums)`` writes the sums of as many rows, from row ``first`` on.
        """
        arrays = self.scoring_cells, *self.layout.arrays(), np.arange(len(self))

        def score(codes: Codes, first: int, sums: AnyArray) -> None:
            scores.log_joint(codes, first, *arrays, missing, np.empty(len(sums), np.intp), sums)

        return score

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the distributions of a feature, and which of them each row has.

        Parameters
        ----------
        feature : int
            Its number.
        codes : ndarray of shape (n_features, n_samples)
            Codes of its parents.
        y : ndarray of shape (n_samples,)
            Class codes.

        Returns
        -------
        table : ndarray of shape (n_values, n_distributions)
            Log-probabilities.
        column : ndarray of shape (n_samples,)
            The column of every row.
        """
        column = np.zeros(codes.shape[1], np.intp)
        for j in self.layout.parents[feature][self.layout.parents[feature] >= 0]:
            column = column * self.layout.n_states[j] + codes[j]
        table = self[feature].reshape(self.layout.n_states[feature], -1)
        return table, column * self.layout.n_classes + y

    def check_device(self, device: str) -> None:
        """Refuse a device that has no kernels for these tables.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Where something is to be done with them.

        Raises
        ------
        ValueError
            If it has none.
        """
        self.layout.check_device(device)

    @property
    def n_cells(self) -> int:
        """How many numbers the tables hold, the class prior included."""
        return self.layout.n_cells

    @property
    def bits(self) -> tuple[int, int] | None:
        """Integer and fraction bits of a number that is rounded to so many; None of floating numbers."""
        return None

    @property
    def bits_per_cell(self) -> int:
        """Bits that a microcontroller needs for a number: 32, a single-precision float."""
        return 32

    @property
    def scoring_cells(self) -> AnyArray:
        """What scores of complete rows are sums of, of all cells."""
        return self.cells

    @property
    def sum_dtype(self) -> Any:
        """The type of such a sum."""
        return np.float64

    def decode(self, sums: AnyArray) -> FloatArray:
        """Return the log joint that sums of :attr:`scoring_cells` stand for.

        Parameters
        ----------
        sums : ndarray of any shape, of :attr:`sum_dtype`
            One summand a table, and one of the prior.

        Returns
        -------
        ndarray of the same shape, float64
        """
        return sums

    def to_state(self) -> dict[str, Any]:
        """Return what a file keeps of the tables beside their structure.

        Returns
        -------
        dict
            ``cells``; ``bits`` of rounded ones, and of others that are not, whether they are ``normalized``.
        """
        return {"cells": self.cells, **({} if self.is_normalized else {"normalized": False})}

    @property
    def n_parameters(self) -> int:
        """Free parameters: of every distribution one value follows from the others."""
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
