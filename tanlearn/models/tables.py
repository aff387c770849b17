"""Conditional probability tables (CPTs) of a fitted network, in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import scores
from tanlearn.models.elimination import Eliminator
from tanlearn.models.row_scorers import ColumnScorer, DenseScorer, RowScorer
from tanlearn.models.upward_pass import log_joint_in_trees
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

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
        normalized, but their scores rank classes equally well.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> model = NaiveBayesClassifier().fit([["a"], ["b"], ["b"]], [0, 1, 1])
    >>> model.tables_
    Tables(n_features=1, n_classes=2, n_parameters=3)
    >>> (3 * model.tables_.probabilities(0)).round(2).tolist()  # P(value | class), one row per value
    [[2.0, 0.75], [1.0, 2.25]]
    """

    layout: TableLayout
    cells: FloatArray
    is_normalized: bool = True

    @property
    def log_prior(self) -> FloatArray:
        """Log probability of each class. Shape: (n_classes,)."""
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
        """Return log P(value | parent values, class). Shape: (values, values of each parent, classes)."""
        # A negative index would select an empty slice, and IndexError ends a loop over the CPTs.
        if not 0 <= feature < len(self):
            raise IndexError(f"feature must be from 0 to {len(self) - 1}, got {feature}.")
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

    def addends(self, feature: int) -> list[tuple[tuple[int, ...], tuple[IntArray, ...], FloatArray]]:
        """Return tables whose sum is the log probability of a feature given its parents and the class.

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        list of (features, groups, values)
            ``features`` are this feature and some of its parents, ``groups`` the group of each of their values, and
            ``values`` an array [group of each feature]...[class].
        """
        features = tuple(self._family(feature))
        groups = tuple(np.arange(self.layout.n_states[i]) for i in features)
        return [(features, groups, np.asarray(self[feature], np.float64))]

    def _family(self, feature: int) -> list[int]:
        """Return a feature and its parents."""
        parents = self.layout.parents[feature]
        return [feature, *parents[parents >= 0].tolist()]

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

    def row_scorer(self, structure: Structure, score_column: ColumnScorer) -> RowScorer:
        """Return a function that computes the log joint of single rows.

        Parameters
        ----------
        structure : Structure
            The structure of these CPTs.
        score_column : callable
            Function that computes the log joint of codes of shape (n_features, 1), in a slower way.

        Returns
        -------
        callable
            ``score(row)`` returns the log joint (n_classes,) of valid codes (n_features,), intp.
        """
        return DenseScorer(self, structure, score_column)

    def marginalize(
        self,
        structure: Structure,
        codes: Codes,
        rows: IntArray,
        *,
        is_exact: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> FloatArray:
        """Return the log joint of the selected rows, with missing values marginalized.

        Parameters
        ----------
        structure : Structure
            The structure of these CPTs, without a cycle.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes.
        rows : ndarray of shape (n_rows,)
            Positions of the samples.
        is_exact : bool, default=False
            Whether rows over the limit of operations raise an error; otherwise they are approximated, with a warning.
        n_jobs : int, optional
            Number of threads, as in joblib. Results do not depend on ``n_jobs``.
        device : {"cpu", "cuda", "cuda:0", "cuda:1", ...}, default="cpu"
            Device of the computation.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        if (structure.parents[:, 1] >= 0).any():
            eliminator = Eliminator(structure, self.layout, is_normalized=self.is_normalized)
            return eliminator.log_joint(codes, rows, self.cells, is_exact=is_exact, n_jobs=n_jobs)
        own, rule = np.ascontiguousarray(codes[:, rows]), {"is_normalized": self.is_normalized}
        return log_joint_in_trees(structure, self.layout, self.cells, own, **rule, n_jobs=n_jobs, device=device)

    def is_exact(self, structure: Structure, codes: Codes) -> AnyArray:
        """Return a mask of the rows that can be explained exactly.

        With back-off CPTs and sums of terms, the scores of rows that exceed the limit of operations are approximate.
        All other CPTs are exact.

        Parameters
        ----------
        structure : Structure
            The structure of these CPTs.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes.

        Returns
        -------
        ndarray of shape (n_samples,), bool
        """
        return np.ones(codes.shape[1], np.bool_)

    def complete(
        self, structure: Structure, codes: Codes, rows: IntArray, y: IntArray, *, n_jobs: int | None = None
    ) -> Codes:
        """Return a copy of the codes with the most probable joint completion of the selected rows.

        Parameters
        ----------
        structure : Structure
            The structure of these CPTs, without a cycle.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes.
        rows : ndarray of shape (n_rows,)
            Positions of the samples.
        y : ndarray of shape (n_samples,)
            Class codes. A class -1 is replaced in place by the class that is most probable together with the
            completion.
        n_jobs : int, optional
            Number of threads, as in joblib. Results do not depend on ``n_jobs``.

        Returns
        -------
        ndarray of shape (n_features, n_samples)
        """
        return Eliminator(structure, self.layout).complete(codes, rows, self.cells, y, n_jobs=n_jobs)

    def least_log_probabilities(self) -> FloatArray:
        """Return the smallest finite log probability of each feature in each class.

        Returns
        -------
        ndarray of shape (n_features, n_classes)
        """
        least = np.empty((len(self), self.layout.n_classes))
        for i, n_states in enumerate(self.layout.n_states.tolist()):
            table = np.asarray(self[i], np.float64).reshape(n_states, -1, self.layout.n_classes)
            if not self.is_normalized:
                table = table - np.logaddexp.reduce(table, axis=0, keepdims=True)
            least[i] = table.min(axis=(0, 1), where=np.isfinite(table), initial=0.0)
        return least

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return all conditional distributions of a feature, and the index of the distribution of each row.

        Parameters
        ----------
        feature : int
            Index of the feature.
        codes : ndarray of shape (n_features, n_samples)
            Feature-major codes; only the codes of the parents are used.
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

    def _conditional_of_rows(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return one distribution per row, for :meth:`conditional` of CPTs whose entries are not stored."""
        seen, rows = codes.copy(), np.arange(codes.shape[1])
        table = np.empty((int(self.layout.n_states[feature]), len(rows)))
        for value, chances in enumerate(table):
            seen[feature] = value
            chances[:] = self.of_rows(feature, seen)[rows, y]
        return table, rows

    def check_device(self, device: str) -> None:
        """Raise an error if the device has no kernels for these CPTs.

        Parameters
        ----------
        device : {"cpu", "cuda", "cuda:0", "cuda:1", ...}
            Device of the computation.

        Raises
        ------
        ValueError
            If the device has no kernels for these CPTs.
        """
        self.layout.check_device(device)

    @property
    def is_dense(self) -> bool:
        """True if CPTs are stored entry by entry; back-off CPTs and sums of terms compute ``cells`` on demand."""
        return True

    @property
    def n_cells(self) -> int:
        """Number of CPT entries, with the class prior."""
        return self.layout.n_cells

    @property
    def n_addend_cells(self) -> int:
        """Number of cells of all :meth:`addends`."""
        return int(self.layout.sizes().sum())

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
        """Numbers whose sums are the scores of complete rows. Shape: (n_cells,)."""
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
            Sums of one number per CPT and one number of the prior.

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
            ``cells``. Rounded CPTs add ``bits``, and other unnormalized CPTs add ``normalized``, which is False.
        """
        return {"cells": self.cells, **({} if self.is_normalized else {"normalized": False})}

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the parameters of a feature for ``describe`` of classifiers.

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        dict
            ``probabilities`` as nested lists [value][value of the 1st parent]...[class]. It is null for back-off CPTs
            and for sums of terms. Back-off CPTs have ``back_off`` instead: one object per number of parents, with ``m``
            and ``counts``. Sums of terms have ``columns``: objects with ``features``, ``groups`` and ``cells``.
        """
        return {"probabilities": self.probabilities(feature).tolist()}

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: the number of values minus one, for each distribution."""
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
