"""Conditional probability tables (CPTs) of a fitted network, in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import scores
from tanlearn.network.table_layout import TableLayout

__all__ = ["Tables"]


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
