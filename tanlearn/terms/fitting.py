"""Training of the terms of a network by L-BFGS, with one ridge per kind of term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tanlearn._typing import Codes, FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.structures.table_layout import TableLayout
from tanlearn.terms.basis import OWN_GROUPS, OWN_SMOOTH, TermBasis
from tanlearn.terms.losses import ridge_unit, score_unit
from tanlearn.terms.monotone import rising
from tanlearn.training.lbfgs import minimize_without_bounds
from tanlearn.training.losses import Loss
from tanlearn.training.objectives import Objective
from tanlearn.training.optimizers import OptimizeOutcome
from tanlearn.training.parametrizations import Unnormalized

__all__ = ["Ridges", "TermFit"]

#: Smallest weight of a value of a monotone feature, so that values without rows are ordered, too.
LEAST_VARIANCE = 1e-9
#: Weights of the squared terms, in the order of their kinds.
Ridges = tuple[float, ...]


class TermFit:
    """Objective of the terms of a network: the sum of the losses of rows plus half of the weighted squared terms.

    The weights of the squared terms are the ridges times the unit of the loss. The parameters are a flat vector of the
    class prior, which has no penalty, and the terms. The objective is convex for a convex loss. A missing value
    contributes nothing to the score of a row. Curves of monotone features are made monotone after the minimization.
    """

    def __init__(self, basis: TermBasis, data: EncodedData, loss: Loss) -> None:
        self.basis, self.n_classes = basis, data.n_classes
        self._layout = TableLayout.of_features(basis.n_states, data.n_classes)
        rows = EncodedData(basis.encode(data.codes), basis.n_states, data.y, data.n_classes, data.sample_weight)
        whole = data.in_whole_rows().weights
        self._codes, self._weights = rows.codes, whole
        self._total, self._unit = float(whole.sum()), ridge_unit(loss)
        self._objective = Objective(self._layout, rows, loss, parametrization=Unnormalized)
        prior = log_frequencies(np.bincount(data.y, whole, data.n_classes))
        self._terms = slice(data.n_classes, data.n_classes + len(basis.kinds) * data.n_classes)
        #: Parameters of a model that predicts the class frequencies, up to a temperature.
        self.start: FloatArray = np.append(
            (prior - prior.mean()) / score_unit(loss), np.zeros(len(basis.kinds) * data.n_classes)
        )

    def minimize(
        self, start: FloatArray, ridges: Ridges, *, max_iter: int, tol: float = 0.0, least_decrease: float = 0.0
    ) -> OptimizeOutcome:
        """Minimize the objective, beginning with the parameters ``start``.

        The search ends if no entry of the gradient of the mean loss with respect to the scaled terms exceeds ``tol``,
        or if an iteration lowers the objective by less than the fraction ``least_decrease``. A term is scaled by the
        root of its ridge, because ridges of different kinds differ by factors of a thousand. All parameters are scaled
        by the root of the unit of the loss.
        """
        total, scale, penalized = self._total, self._scale(ridges), self._terms

        def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self._mean_loss(scaled * scale)
            gradient = total * gradient * scale
            gradient[penalized] += scaled[penalized]
            return total * value + float((scaled[penalized] ** 2).sum()) / 2, gradient

        outcome = minimize_without_bounds(
            objective, start / scale, max_iter=max_iter, tol=total * tol, least_decrease=least_decrease
        )
        history = [replace(one, loss=one.loss / total) for one in outcome.history]
        return outcome._replace(x=self._in_order(outcome.x * scale), history=history)

    def _in_order(self, parameters: FloatArray) -> FloatArray:
        """Replace the curves of monotone features by the closest monotone curves, and return the parameters.

        Squared differences of the log odds are weighted by the variances of the rows, as in a Newton step. The weighted
        mean of the log odds stays the same.
        """
        if not self.basis.monotone:
            return parameters
        scores = self._layout.log_joint(self._codes, self._cells(parameters))
        p = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        found, n = parameters.copy(), self.n_classes
        terms, curves = found[self._terms].reshape(-1, n), self.prior_and_cells(parameters)[1]
        for i, direction, n_ranked, first in self.basis.monotone:
            variances = np.bincount(self._codes[i], self._weights * p * (1 - p), len(curves[i]) + 1)[:n_ranked]
            odds = (curves[i][:n_ranked, 1] - curves[i][:n_ranked, 0])[::direction]
            change = (rising(odds, variances[::direction] + LEAST_VARIANCE) - odds)[::direction] / 2
            terms[first : first + n_ranked] += np.column_stack([-change, change])
        return found

    def scores(self, parameters: FloatArray, data: EncodedData) -> FloatArray:
        """Return the scores (n_samples, n_classes) of the classes for the given rows."""
        return self.scores_of_cells(parameters, self.basis.encode(data.codes))

    def scores_of_cells(self, parameters: FloatArray, cells: Codes) -> FloatArray:
        """Return the score of each class for cells of rows (n_columns, n_samples), as returned by ``basis.encode``."""
        return self._layout.log_joint(cells, self._cells(parameters))

    def warm_start(self, parameters: FloatArray) -> FloatArray:
        """Return initial parameters: class prior and curves of a network with other edges, and zeros for the rest."""
        start, n_own = np.zeros(len(self.start)), self._n_own_parameters
        start[:n_own] = parameters[:n_own]
        return start

    @property
    def _n_own_parameters(self) -> int:
        """Number of parameters of the class prior and the terms of single features, which come first."""
        return self.n_classes * (1 + int(np.isin(self.basis.kinds, [OWN_GROUPS, OWN_SMOOTH]).sum()))

    def prior_and_cells(self, parameters: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the class prior (n_classes,) and the cells (n_cells, n_classes) of each column."""
        n = self.n_classes
        return parameters[:n], self.basis.split(self.basis.cells(parameters[self._terms].reshape(-1, n)))

    def _cells(self, parameters: FloatArray) -> FloatArray:
        """Return the prior and the cells of all columns, flat."""
        n = self.n_classes
        return np.append(parameters[:n], self.basis.cells(parameters[self._terms].reshape(-1, n)).ravel())

    def _scale(self, ridges: Ridges) -> FloatArray:
        """Return the factors of all parameters in the search."""
        weights = np.append(np.ones(self.n_classes), np.repeat(np.array(ridges)[self.basis.kinds], self.n_classes))
        scale: FloatArray = 1 / np.sqrt(self._unit * weights)
        return scale

    def _mean_loss(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss of the rows, without the penalty, and its gradient."""
        value, d_cells = self._objective(self._cells(parameters))
        return value, self._pull_back(d_cells)

    def _pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient for the prior and the terms, given the gradient for the prior and all cells."""
        n = self.n_classes
        return np.append(d_cells[:n], self.basis.pull_back(d_cells[n:].reshape(-1, n)).ravel())
