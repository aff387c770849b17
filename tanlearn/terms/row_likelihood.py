"""Class-independent terms that maximize the likelihood of the rows, without changing any posterior of complete rows.

A discriminative training determines the differences between the scores of the classes. A function f of the features
can be added to the scores of all classes: P(y | x) does not change, but the joint distribution does, and with it what
is predicted if values are missing. In a tree, ``p(x, y) = exp(f(x) + S(x, y)) / Z`` with terms f for each feature and
each edge is an exponential family. Its likelihood is concave in f, and at the maximum the model has the frequencies of
the rows: of the values of each root, of the groups of each child given those of its parent, and of the values within
each group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.models.term_tables import TermColumn, TermTables, log_sum_of_groups, sum_of_groups
from tanlearn.structures.structures import Structure
from tanlearn.training.optimizers import minimize_lbfgs

__all__ = ["add_log_frequencies", "column_frequencies", "fit_row_terms"]

MAX_ITER, TOL = 100, 1e-5


def column_frequencies(column: TermColumn, data: EncodedData) -> FloatArray:
    """Return the smoothed frequency of each cell among the rows without a missing value in the column, (n_cells,)."""
    cell = column.cells_of([data.codes[i] for i in column.features], missing_code(data.codes.dtype))
    counts = np.bincount(cell, data.in_whole_rows().weights, column.n_cells + 1)[:-1].reshape(column.n_groups)
    sides = []
    for axis, n_groups in enumerate(column.n_groups):
        side = np.moveaxis(counts, axis, 0).reshape(n_groups, -1).sum(axis=1) + 1 / n_groups
        sides.append(side / side.sum())
    independent = sides[0] if len(sides) == 1 else np.outer(sides[0], sides[1])
    frequencies: FloatArray = (counts + independent) / (counts.sum() + 1)  # one more row, of independent features
    return frequencies.ravel()


def add_log_frequencies(tables: TermTables, data: EncodedData) -> TermTables:
    """Add the log frequency of each value to the own column of its feature, and set the shift of the class prior."""
    values = [
        one + np.log(column_frequencies(column, data))[:, np.newaxis] if len(column.features) == 1 else one
        for column, one in zip(tables.columns, tables.values, strict=True)
    ]
    # With its intercept, the model predicts the class frequencies of the training rows on average.
    frequencies = log_frequencies(data.class_totals())
    shift, prior = tables.log_prior - frequencies, tables.log_prior
    return TermTables(tables.layout, tables.columns, values, prior, is_normalized=False, prior_shift=shift)


def fit_row_terms(tables: TermTables, structure: Structure, data: EncodedData) -> TermTables:
    """Add the class-independent terms of maximum likelihood to the columns of a tree."""
    tree = _Tree(tables, structure)
    frequencies = tree.in_agreement([column_frequencies(column, data) for column in tables.columns])
    target = np.concatenate(frequencies)

    def objective(terms: FloatArray) -> tuple[float, FloatArray]:
        log_z, marginals = tree.log_normalizer(terms)
        return log_z - float((target * terms).sum()), marginals - target

    start = []
    for column, cells, own in zip(tables.columns, tables.values, frequencies, strict=True):
        table = own.reshape(column.n_groups)
        if len(column.features) == 2:  # the log of the ratio to independent features
            table = table / (table.sum(axis=1, keepdims=True) * table.sum(axis=0))
        start.append(np.log(table).ravel() - cells.mean(axis=1))
    found = minimize_lbfgs(objective, np.concatenate(start), max_iter=MAX_ITER, tol=TOL).x
    values = [one + terms[:, np.newaxis] for one, terms in zip(tables.values, tree.split(found), strict=True)]
    return TermTables(tables.layout, tables.columns, values, tables.log_prior, is_normalized=False)


class _Tree:
    """Sum-product messages in a tree of columns, for the class-independent terms that are added to them."""

    def __init__(self, tables: TermTables, structure: Structure) -> None:
        self._tables, self._order = tables, structure.order.tolist()
        columns = tables.columns
        self._own = {column.features[0]: k for k, column in enumerate(columns) if len(column.features) == 1}
        self._edge = {column.features[0]: k for k, column in enumerate(columns) if len(column.features) == 2}
        self._ends = np.cumsum([column.n_cells for column in columns])[:-1]

    def split(self, terms: FloatArray) -> list[FloatArray]:
        """Return the terms of each column."""
        return np.split(terms, self._ends)

    def in_agreement(self, frequencies: Sequence[FloatArray]) -> list[FloatArray]:
        """Return probabilities of the cells of each column that are marginals of one distribution, (n_cells,) each.

        Frequencies of different columns are not, because they come from different rows where values are missing, and
        are smoothed separately. No terms would then have a maximum likelihood: they would grow without bound.
        """
        found = list(frequencies)
        for i in self._order:
            if i in self._edge:
                own, edge = self._own[i], self._edge[i]
                column = self._tables.columns[edge]
                pair = found[edge].reshape(column.n_groups)
                pair = pair / pair.sum(axis=0) * np.bincount(column.groups[1], found[self._own[column.features[1]]])
                groups = column.groups[0]
                found[own] = found[own] * (pair.sum(axis=1) / np.bincount(groups, found[own]))[groups]
                found[edge] = pair.ravel()
        return found

    def log_normalizer(self, terms: FloatArray) -> tuple[float, FloatArray]:
        """Return the log of the sum of exp(score) over all rows and classes, and its gradient: the marginals.

        Shapes: terms, marginals: (n_cells of all columns,).
        """
        tables, n_classes = self._tables, self._tables.layout.n_classes
        theta = [one + own[:, np.newaxis] for one, own in zip(tables.values, self.split(terms), strict=True)]
        belief = {i: theta[self._own[i]].copy() for i in self._order}  # own terms and messages of the children
        message, grouped = {}, {}
        total = tables.log_prior.copy()
        for i in self._order[::-1]:
            if i not in self._edge:
                total += np.logaddexp.reduce(belief[i], axis=0)
                continue
            column = tables.columns[self._edge[i]]
            edge = theta[self._edge[i]].reshape(*column.n_groups, n_classes)
            grouped[i] = log_sum_of_groups(belief[i], column.groups[0], column.n_groups[0])
            message[i] = np.logaddexp.reduce(grouped[i][:, np.newaxis] + edge, axis=0)
            belief[column.features[1]] += message[i][column.groups[1]]
        log_z = float(np.logaddexp.reduce(total))
        p_class = np.exp(total - log_z)
        joint: dict[int, FloatArray] = {}  # P(value, class) of each feature
        marginals = [np.empty(0)] * len(theta)
        for i in self._order:
            if i not in self._edge:
                joint[i] = np.exp(belief[i] - np.logaddexp.reduce(belief[i], axis=0)) * p_class
            else:
                column = tables.columns[self._edge[i]]
                edge = theta[self._edge[i]].reshape(*column.n_groups, n_classes)
                of_parent = sum_of_groups(joint[column.features[1]], column.groups[1], column.n_groups[1])
                pair = np.exp(grouped[i][:, np.newaxis] + edge - message[i]) * of_parent
                marginals[self._edge[i]] = pair.sum(axis=2).ravel()
                of_value = pair.sum(axis=1)[column.groups[0]]
                joint[i] = np.exp(belief[i] - grouped[i][column.groups[0]]) * of_value
            marginals[self._own[i]] = joint[i].sum(axis=1)
        return log_z, np.concatenate(marginals)
