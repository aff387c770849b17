"""Class-independent terms that maximize the likelihood of rows and do not change posteriors of complete rows.

A discriminative training determines the differences between the scores of the classes. If a function f of the features
is added to the scores of all classes, P(y | x) stays the same. But the joint distribution changes, and with it the
predictions of rows with missing values. In a tree, ``p(x, y) = exp(f(x) + S(x, y)) / Z`` with terms f for each feature
and each edge is an exponential family. Its likelihood is concave in f. At the maximum, the model reproduces three kinds
of frequencies of the rows: the values of each root, the groups of each child given the groups of its parent, and the
values within each group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.models.term_tables import TermColumn, TermTables
from tanlearn.structures.structures import Structure
from tanlearn.terms.term_tree import TermTree
from tanlearn.training.optimizers import minimize_lbfgs

__all__ = [
    "add_log_frequencies",
    "add_row_terms",
    "column_frequencies",
    "fit_row_terms",
    "independent_row_terms",
]

MAX_ITER, TOL = 100, 1e-5


def column_frequencies(column: TermColumn, data: EncodedData) -> FloatArray:
    """Return the smoothed frequencies (n_cells,) of the cells among rows without a missing value in the column."""
    cell = column.cells_of([data.codes[i] for i in column.features], missing_code(data.codes.dtype))
    counts = np.bincount(cell, data.in_whole_rows().weights, column.n_cells + 1)[:-1].reshape(column.n_groups)
    sides = []
    for axis, n_groups in enumerate(column.n_groups):
        side = np.moveaxis(counts, axis, 0).reshape(n_groups, -1).sum(axis=1) + 1 / n_groups
        sides.append(side / side.sum())
    independent = sides[0] if len(sides) == 1 else np.outer(sides[0], sides[1])
    frequencies: FloatArray = (counts + independent) / (counts.sum() + 1)  # one more row, with independent features
    return frequencies.ravel()


def add_log_frequencies(tables: TermTables, data: EncodedData) -> TermTables:
    """Add the log frequency of each value to the column of its feature, and set the shift of the class prior."""
    values = [
        one + np.log(column_frequencies(column, data))[:, np.newaxis] if len(column.features) == 1 else one
        for column, one in zip(tables.columns, tables.values, strict=True)
    ]
    # With this intercept, the mean prediction equals the class frequencies of the training rows.
    frequencies = log_frequencies(data.class_totals())
    shift, prior = tables.log_prior - frequencies, tables.log_prior
    return TermTables(tables.layout, tables.columns, values, prior, is_normalized=False, prior_shift=shift)


def fit_row_terms(tables: TermTables, structure: Structure, data: EncodedData) -> TermTables:
    """Add the class-independent terms of maximum likelihood to the columns of a tree."""
    tree = TermTree(tables.columns, structure)
    frequencies = tree.in_agreement([column_frequencies(column, data) for column in tables.columns])
    target = np.concatenate(frequencies)

    def objective(terms: FloatArray) -> tuple[float, FloatArray]:
        found = tree.marginals(tables.log_prior, add_row_terms(tables.values, tree.split(terms)))
        marginals = np.concatenate([one.sum(axis=1) for one in found.columns])
        return found.log_z - float((target * terms).sum()), marginals - target

    start = [
        one - cells.mean(axis=1)
        for one, cells in zip(independent_row_terms(tables.columns, frequencies), tables.values, strict=True)
    ]
    found = minimize_lbfgs(objective, np.concatenate(start), max_iter=MAX_ITER, tol=TOL).x
    values = add_row_terms(tables.values, tree.split(found))
    return TermTables(tables.layout, tables.columns, values, tables.log_prior, is_normalized=False)


def independent_row_terms(columns: Sequence[TermColumn], frequencies: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the class-independent terms of maximum likelihood for features independent of the class, (n_cells,) each.

    The terms of an edge are the logs of the ratios to independent features.
    """
    terms = []
    for column, own in zip(columns, frequencies, strict=True):
        table = own.reshape(column.n_groups)
        if len(column.features) == 2:
            table = table / (table.sum(axis=1, keepdims=True) * table.sum(axis=0))
        terms.append(np.log(table).ravel())
    return terms


def add_row_terms(values: Sequence[FloatArray], terms: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the sum of the cells (n_cells, n_classes) of each column and its class-independent terms (n_cells,)."""
    return [one + own[:, np.newaxis] for one, own in zip(values, terms, strict=True)]
