"""CPTs whose logarithms are sums of columns.

A CPT with several parents, or with many values per feature, may have too many entries to be stored or estimated. Here
its logarithm is a sum of columns: one for the feature itself, one for each parent, and some for groups of values of
several features. A column of several features has one cell for each combination of groups of their values. The number
of parameters is the sum of the sizes of all columns, not their product.

If each feature has at most one parent, one pass of messages from the leaves to the roots normalizes the CPTs exactly.
With several parents, CPTs are not normalized. The model is still a distribution of classes and features, up to a
factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.kernels import scores as kernels
from tanlearn.models.local_networks import LocalNetworks
from tanlearn.models.row_scorers import ColumnScorer, RowScorer, TermScorer
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = [
    "TermColumn",
    "TermTables",
    "encode_columns",
    "log_sum_of_groups",
    "normalize_trees",
    "sum_of_groups",
]

#: Dense CPTs of trees with at most this many entries marginalize missing values faster, by an upward pass.
_MOST_DENSE = 2**22


class TermColumn(NamedTuple):
    """Features of a column, and the group of each of their values.

    The first feature is the child, the others are parents. Cells are ordered by the group of the child, then by the
    groups of the parents.
    """

    features: tuple[int, ...]
    groups: tuple[IntArray, ...]  # (n_states,) per feature
    n_groups: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return math.prod(self.n_groups)

    def cells_of(self, values: Sequence[AnyArray], missing: int) -> IntArray:
        """Return the cell of each row for the codes of its features, or ``n_cells`` if one of them is missing."""
        cell = np.zeros(len(values[0]), np.intp)
        is_missing = np.zeros(len(values[0]), np.bool_)
        for codes, groups, n_groups in zip(values, self.groups, self.n_groups, strict=True):
            hidden = codes == missing
            cell = cell * n_groups + groups[np.where(hidden, 0, codes)]
            is_missing |= hidden
        cell[is_missing] = self.n_cells
        return cell


def encode_columns(columns: Sequence[TermColumn], codes: Codes) -> Codes:
    """Return the cells (n_columns, n_samples) of the rows in each column; the last cell is for missing values."""
    dtype = codes_dtype(max(column.n_cells for column in columns) + 1)
    found: AnyArray = np.empty((len(columns), codes.shape[1]), dtype)
    missing = missing_code(codes.dtype)
    for target, column in zip(found, columns, strict=True):
        target[:] = column.cells_of([codes[i] for i in column.features], missing)
    return found


class TermTables(Tables):
    """CPTs whose logarithms are sums of columns of cells.

    ``log P(x_i | parents, y)`` is a sum over the columns of feature i: in each column, the cell of the groups of the
    values. Dense CPTs (:attr:`cells`) are computed on demand, if they fit in memory.

    The class prior of CPTs that are not normalized is an intercept, not the class probabilities. ``prior_shift`` is the
    difference from the log frequencies of the classes in training. It is kept when other class probabilities are set.
    """

    columns: list[TermColumn]
    values: list[FloatArray]  # (n_cells, n_classes) of each column
    _log_prior: FloatArray
    prior_shift: FloatArray | None  # (n_classes,), None for 0

    def __init__(
        self,
        layout: TableLayout,
        columns: Sequence[TermColumn],
        values: Sequence[FloatArray],
        log_prior: FloatArray,
        *,
        is_normalized: bool,
        prior_shift: FloatArray | None = None,
    ) -> None:
        # A feature has the parents of its columns, in the order of the columns.
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "columns", list(columns))
        object.__setattr__(self, "values", list(values))
        object.__setattr__(self, "_log_prior", np.asarray(log_prior, np.float64))
        object.__setattr__(self, "is_normalized", is_normalized)
        object.__setattr__(self, "prior_shift", prior_shift)

    @property
    def log_prior(self) -> FloatArray:
        """Log probability of each class, or the intercept of CPTs that are not normalized. Shape: (n_classes,)."""
        return self._log_prior

    def with_log_prior(self, log_prior: FloatArray) -> TermTables:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""
        prior = np.array(log_prior, np.float64)
        if self.prior_shift is not None:
            prior += self.prior_shift
        rule: dict[str, Any] = {"is_normalized": self.is_normalized, "prior_shift": self.prior_shift}
        return TermTables(self.layout, self.columns, self.values, prior, **rule)

    @cached_property
    def cells(self) -> FloatArray:
        """Dense log parameters (layout.n_cells,). Raises TableMemoryError if they exceed the memory limit of CPTs."""
        self.layout.check_memory(None)
        return np.concatenate([self.log_prior, *(self[i].ravel() for i in range(len(self)))])

    def __getitem__(self, feature: int) -> FloatArray:
        """Return the log parameters of a feature. Shape: (values, values of each parent, classes)."""
        if not 0 <= feature < len(self):
            raise IndexError(f"feature must be from 0 to {len(self) - 1}, got {feature}.")
        layout = self.layout
        parents = layout.parents[feature]
        alone = TableLayout(layout.child[[feature]], parents[np.newaxis], layout.n_states, layout.n_classes)
        alone.check_memory(None)
        shape = layout.shape(feature)
        axes = self._family(feature)
        table = np.zeros(shape)
        for k in self._columns_of[feature]:
            column = self.columns[k]
            own = self.values[k].reshape(*column.n_groups, layout.n_classes)
            places = [axes.index(i) for i in column.features]
            grid = [
                groups.reshape([-1 if a == place else 1 for a in range(len(axes))])
                for groups, place in zip(column.groups, places, strict=True)
            ]
            table += own[tuple(grid)]
        return table

    def of_rows(self, feature: int, codes: Codes) -> FloatArray:
        """Return the contribution of a feature to the log joint of rows. Shape: (n_samples, n_classes).

        Columns with a missing value contribute 0.
        """
        return self._sum(feature, codes[self._family(feature)], missing_code(codes.dtype))

    def of_values(self, feature: int, values: Codes) -> FloatArray:
        """Return the contribution of a feature to the log joint, from the codes of its family only.

        Row 0 of ``values`` (1 + n_parents, n_samples) belongs to the feature, the other rows to its parents. The result
        has shape (n_samples, n_classes).
        """
        return self._sum(feature, values, missing_code(values.dtype))

    def _sum(self, feature: int, values: Codes, missing: int) -> FloatArray:
        """Return the sum of the columns of a feature, from the codes of its family."""
        axes = self._family(feature)
        total = np.zeros((values.shape[1], self.layout.n_classes))
        for k in self._columns_of[feature]:
            column = self.columns[k]
            cell = column.cells_of([values[axes.index(i)] for i in column.features], missing)
            known = cell < column.n_cells
            total[known] += self.values[k][cell[known]]
        return total

    def addends(self, feature: int) -> list[tuple[tuple[int, ...], tuple[IntArray, ...], FloatArray]]:
        """Return the features, groups and values of the columns of a feature."""
        return [
            (column.features, column.groups, self.values[k].reshape(*column.n_groups, self.layout.n_classes))
            for k in self._columns_of[feature]
            for column in [self.columns[k]]
        ]

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]:
        """Return a function that writes the log joint of a block of rows; columns with a missing value contribute 0.

        ``score(codes, first, scores)`` processes ``len(scores)`` rows, starting with row ``first``.
        """
        layout, cells = self.flat

        def score(codes: Codes, first: int, scores: AnyArray) -> None:
            block = encode_columns(self.columns, codes[:, first : first + len(scores)])
            rows, selected = np.empty(len(scores), np.intp), np.arange(layout.n_tables)
            unused = missing_code(block.dtype)
            kernels.log_joint(block, 0, cells, *layout.arrays(), selected, unused, rows, scores)

        return score

    def row_scorer(self, structure: Structure, score_column: ColumnScorer) -> RowScorer:
        """Return a function that computes the log joint of single rows."""
        return TermScorer(self, structure, score_column)

    @cached_property
    def flat(self) -> tuple[TableLayout, FloatArray]:
        """Columns as CPTs without parents; an additional value with cells of 0 stands for missing values."""
        n_states = np.array([column.n_cells + 1 for column in self.columns], np.intp)
        nothing = np.zeros((1, self.layout.n_classes))
        padded = [part.ravel() for values in self.values for part in (values, nothing)]
        return TableLayout.of_features(n_states, self.layout.n_classes), np.concatenate([self.log_prior, *padded])

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
        """Return the log joint (n_rows, n_classes) of the selected rows, with missing values marginalized."""
        dense = self.dense_tree(structure)
        if dense is not None:
            return dense.marginalize(structure, codes, rows, is_exact=is_exact, n_jobs=n_jobs, device=device)
        return self._networks(structure).log_joint(codes, rows, is_exact=is_exact, n_jobs=n_jobs)

    def is_exact(self, structure: Structure, codes: Codes) -> AnyArray:
        """Return a mask of the rows within the limit of operations."""
        return self._networks(structure).is_exact(codes, np.arange(codes.shape[1]))

    def complete(
        self, structure: Structure, codes: Codes, rows: IntArray, y: IntArray, *, n_jobs: int | None = None
    ) -> Codes:
        """Return a copy of the codes with the most probable joint completion of the selected rows."""
        return self._networks(structure).complete(codes, rows, y, n_jobs=n_jobs)

    def _networks(self, structure: Structure) -> LocalNetworks:
        """Return the networks of missing features."""
        return LocalNetworks(self, structure, is_normalized=self.is_normalized)

    def dense_tree(self, structure: Structure) -> Tables | None:
        """Return dense CPTs, which marginalize missing values faster, if they are small and the structure is a tree."""
        is_tree = not (structure.parents[:, 1:] >= 0).any()
        return self._dense if is_tree and self.layout.sizes().sum() <= _MOST_DENSE else None

    @cached_property
    def _dense(self) -> Tables:
        """The same CPTs, stored entry by entry."""
        return Tables(self.layout, self.cells, self.is_normalized)

    def least_log_probabilities(self) -> FloatArray:
        """Return lower bounds of the log probabilities of all values. Shape: (n_features, n_classes)."""
        least = np.zeros((len(self), self.layout.n_classes))
        for column, values in zip(self.columns, self.values, strict=True):
            least[column.features[0]] += values.min(axis=0)
            if not self.is_normalized:
                least[column.features[0]] -= values.max(axis=0)
        if not self.is_normalized:
            least -= np.log(self.layout.n_states)[:, np.newaxis]
        return least

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the columns of a feature: their features, the group of each value, and the cells."""
        columns = [
            {
                "features": list(self.columns[k].features),
                "groups": [groups.tolist() for groups in self.columns[k].groups],
                "cells": self.values[k].tolist(),
            }
            for k in self._columns_of[feature]
        ]
        return {"probabilities": None, "columns": columns}

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the conditional distribution of a feature in each row, and the column of each row.

        Shapes: codes: (n_features, n_samples); y: (n_samples,); result table: (n_values, n_samples).
        """
        return self._conditional_of_rows(feature, codes, y)

    def check_device(self, device: str) -> None:
        """Raise ValueError on devices other than the CPU, which have no kernels for these CPTs."""
        if device != "cpu":
            raise ValueError(f"device={device!r} has no kernels for CPTs that are sums of terms. Use device='cpu'.")

    def to_state(self) -> dict[str, Any]:
        """Return the fields that a file stores, apart from the structure.

        ``cells`` is the class prior. ``terms`` contains ``features`` (n_columns, 1 + most parents), -1 for none, the
        ``groups`` of all values of all features of the columns, and the ``cells`` of all columns, concatenated. CPTs
        that are not normalized also have ``prior_shift`` (n_classes,).
        """
        width = max(len(column.features) for column in self.columns)
        features = np.full((len(self.columns), width), -1, np.int64)
        for row, column in zip(features, self.columns, strict=True):
            row[: len(column.features)] = column.features
        groups = [one for column in self.columns for one in column.groups]
        terms = {
            "features": features,
            "groups": np.concatenate(groups).astype(np.int64),
            "cells": np.concatenate([values.ravel() for values in self.values]),
        }
        if self.prior_shift is not None:
            terms["prior_shift"] = self.prior_shift
        return {"cells": self.log_prior, "terms": terms, **({} if self.is_normalized else {"normalized": False})}

    @classmethod
    def of_state(cls, layout: TableLayout, log_prior: Any, terms: Any, *, is_normalized: bool) -> TermTables:
        """Restore CPTs from the output of :meth:`to_state`; raise ValueError for inconsistent values of a file."""
        check_array("cells", log_prior, np.float64, (layout.n_classes,))
        terms = dict(terms) if type(terms) is dict else {}
        prior_shift = terms.pop("prior_shift", None)
        if (
            prior_shift is not None
            and np.isneginf(check_array("prior_shift", prior_shift, np.float64, (layout.n_classes,))).any()
        ):
            raise ValueError("prior_shift must be finite.")
        features, groups, cells = fields(terms, "features", "groups", "cells")
        shape = features.shape if isinstance(features, np.ndarray) and features.ndim == 2 else (len(layout.parents), 1)
        check_array("features", features, np.int64, (shape[0], max(1, shape[1])))
        scopes = [[i for i in row if i >= 0] for row in features.tolist()]
        families = [{i, *row} - {-1} for i, row in enumerate(layout.parents.tolist())]
        known = all(scope and scope[0] < len(families) and set(scope) <= families[scope[0]] for scope in scopes)
        known = known and all(len(scope) == len(set(scope)) for scope in scopes)
        own_columns = sorted(scope[0] for scope in scopes if len(scope) == 1)
        if not known or own_columns != list(range(len(families))):
            raise ValueError(
                "every column must contain a feature and some of its parents, and each feature must have exactly "
                "one column without parents."
            )
        sizes = [int(layout.n_states[i]) for scope in scopes for i in scope]
        check_array("groups", groups, np.int64, (sum(sizes),))
        parts = iter(np.split(groups.astype(np.intp), np.cumsum(sizes)[:-1]))
        columns = []
        for scope in scopes:
            own = tuple(next(parts) for _ in scope)
            if any(part.min() != 0 or len(np.unique(part)) != int(part.max()) + 1 for part in own):
                raise ValueError("the groups of each feature must be numbered from 0.")
            columns.append(TermColumn(tuple(scope), own, tuple(int(part.max()) + 1 for part in own)))
        lengths = [column.n_cells * layout.n_classes for column in columns]
        check_array("cells", cells, np.float64, (sum(lengths),))
        if not np.isfinite(cells).all():
            raise ValueError("the cells of terms must be finite.")
        values = [part.reshape(-1, layout.n_classes) for part in np.split(cells, np.cumsum(lengths)[:-1])]
        return cls(layout, columns, values, log_prior, is_normalized=is_normalized, prior_shift=prior_shift)

    @cached_property
    def _columns_of(self) -> list[list[int]]:
        """Indices of the columns of each feature."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for k, column in enumerate(self.columns):
            found[column.features[0]].append(k)
        return found

    @property
    def is_dense(self) -> bool:
        """False, because ``cells`` are computed on demand."""
        return False

    @property
    def n_cells(self) -> int:
        """Number of stored numbers: the class prior, and the cells of all columns."""
        return len(self.log_prior) + sum(values.size for values in self.values)

    @property
    def n_addend_cells(self) -> int:
        """Number of cells of all addends, which are the columns."""
        return self.n_cells - len(self.log_prior)

    @property
    def n_parameters(self) -> int:
        """Number of parameters: the cells of all columns, and n_classes - 1 for the class prior."""
        return self.n_cells - 1

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the attributes that are computed on demand."""
        return {name: value for name, value in vars(self).items() if name not in ("cells", "_dense", "flat")}

    def __repr__(self) -> str:
        shape = f"n_features={len(self)}, n_classes={self.layout.n_classes}"
        return f"TermTables({shape}, n_parameters={self.n_parameters})"


def normalize_trees(tables: TermTables, structure: Structure) -> TermTables:
    """Normalize CPTs with at most one parent per feature; posterior probabilities are unchanged.

    From the leaves to the roots, each feature sends its parent the log of the sum of its parameters over its values::

        m(p, y) = log sum_x exp(theta(x | p, y))

    The message is subtracted from the column of the edge and added to the column of the parent. The message of a root
    is added to the class prior.
    """
    values = [part.copy() for part in tables.values]
    prior = tables.log_prior.copy()
    own = {column.features[0]: k for k, column in enumerate(tables.columns) if len(column.features) == 1}
    edges = {column.features[0]: k for k, column in enumerate(tables.columns) if len(column.features) == 2}
    n_classes = tables.layout.n_classes
    for i in structure.order[::-1].tolist():
        if i not in edges:
            total = np.logaddexp.reduce(values[own[i]], axis=0)
            values[own[i]] -= total
            prior += total
            continue
        column = tables.columns[edges[i]]
        edge = values[edges[i]].reshape(*column.n_groups, n_classes)
        grouped = log_sum_of_groups(values[own[i]], column.groups[0], column.n_groups[0])
        message = np.logaddexp.reduce(grouped[:, np.newaxis] + edge, axis=0)
        edge -= message
        values[own[column.features[1]]] += message[column.groups[1]]
    prior -= np.logaddexp.reduce(prior)
    return TermTables(tables.layout, tables.columns, values, prior, is_normalized=True)


def log_sum_of_groups(log_values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """Return the log of the sum of exponentials (n_groups, n_classes) in each group. Groups must not be empty."""
    top = np.full((n_groups, log_values.shape[1]), -np.inf)
    np.maximum.at(top, groups, log_values)
    result: FloatArray = np.log(sum_of_groups(np.exp(log_values - top[groups]), groups, n_groups)) + top
    return result


def sum_of_groups(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """Return the sum of the values of each group. Shape: (n_groups, n_classes)."""
    sums = np.zeros((n_groups, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums
