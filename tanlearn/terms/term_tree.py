"""Sum-product messages in a tree of columns: log normalizer and marginals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.models.term_tables import TermColumn, log_sum_of_groups, sum_of_groups
from tanlearn.structures.structures import Structure

__all__ = ["Marginals", "TermTree"]


class Marginals(NamedTuple):
    """Log of the sum of exp(score) over all possible rows and classes, and its gradient, the marginal probabilities."""

    log_z: float
    p_class: FloatArray  # (n_classes,)
    columns: list[FloatArray]  # P(cell, class), (n_cells, n_classes) of each column


class TermTree:
    """Columns of a network with at most one parent per feature."""

    def __init__(self, columns: Sequence[TermColumn], structure: Structure) -> None:
        self._columns, self._order = columns, structure.order.tolist()
        self._own = {column.features[0]: k for k, column in enumerate(columns) if len(column.features) == 1}
        self._edge = {column.features[0]: k for k, column in enumerate(columns) if len(column.features) == 2}
        self._ends = np.cumsum([column.n_cells for column in columns])[:-1]

    def split(self, terms: FloatArray) -> list[FloatArray]:
        """Return the class-independent terms of each column."""
        return np.split(terms, self._ends)

    def in_agreement(self, frequencies: Sequence[FloatArray]) -> list[FloatArray]:
        """Return cell probabilities (n_cells,) of each column that are marginals of one distribution.

        Frequencies of different columns are not marginals of one distribution: they are smoothed separately, and with
        missing values they are computed from different rows. With such frequencies, the likelihood would have no
        maximum, and terms would grow without bound.
        """
        found = list(frequencies)
        for i in self._order:
            if i in self._edge:
                own, edge = self._own[i], self._edge[i]
                column = self._columns[edge]
                pair = found[edge].reshape(column.n_groups)
                pair = pair / pair.sum(axis=0) * np.bincount(column.groups[1], found[self._own[column.features[1]]])
                groups = column.groups[0]
                found[own] = found[own] * (pair.sum(axis=1) / np.bincount(groups, found[own]))[groups]
                found[edge] = pair.ravel()
        return found

    def marginals(self, log_prior: FloatArray, theta: Sequence[FloatArray]) -> Marginals:
        """Return the marginals of the distribution that is proportional to exp(score).

        Shapes: log_prior: (n_classes,); theta: (n_cells, n_classes) of each column.
        """
        n_classes = len(log_prior)
        belief = {i: theta[self._own[i]].copy() for i in self._order}  # own terms and messages of the children
        message, grouped = {}, {}
        total = log_prior.copy()
        for i in self._order[::-1]:
            if i not in self._edge:
                total += np.logaddexp.reduce(belief[i], axis=0)
                continue
            column = self._columns[self._edge[i]]
            edge = theta[self._edge[i]].reshape(*column.n_groups, n_classes)
            grouped[i] = log_sum_of_groups(belief[i], column.groups[0], column.n_groups[0])
            message[i] = np.logaddexp.reduce(grouped[i][:, np.newaxis] + edge, axis=0)
            belief[column.features[1]] += message[i][column.groups[1]]
        log_z = float(np.logaddexp.reduce(total))
        p_class = np.exp(total - log_z)
        joint: dict[int, FloatArray] = {}  # P(value, class) of each feature
        found: list[FloatArray] = [np.empty(0)] * len(theta)
        for i in self._order:
            if i not in self._edge:
                joint[i] = np.exp(belief[i] - np.logaddexp.reduce(belief[i], axis=0)) * p_class
            else:
                column = self._columns[self._edge[i]]
                edge = theta[self._edge[i]].reshape(*column.n_groups, n_classes)
                of_parent = sum_of_groups(joint[column.features[1]], column.groups[1], column.n_groups[1])
                pair = np.exp(grouped[i][:, np.newaxis] + edge - message[i]) * of_parent
                found[self._edge[i]] = pair.reshape(-1, n_classes)
                of_value = pair.sum(axis=1)[column.groups[0]]
                joint[i] = np.exp(belief[i] - grouped[i][column.groups[0]]) * of_value
            found[self._own[i]] = joint[i]
        return Marginals(log_z, p_class, found)
