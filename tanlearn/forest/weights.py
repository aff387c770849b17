"""Weights by conditional likelihood: a ridge pulls them to where they start, and folds choose how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import AnyArray, FloatArray, IntArray

__all__ = ["Fitted", "fit_weights"]

#: Weaker ridges are not tried once one is this much worse than the best.
_WORSE = 1.01
#: Where L-BFGS ends: what an iteration gains of the loss.
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights, and what left-out rows say of them.

    Parameters
    ----------
    weights : ndarray of shape (n_scores,)
    ridge : float
        The one that was chosen.
    losses : ndarray of shape (n_rows,)
        Negative log-probability of the class of every row, where its fold is left out.
    log_loss : float
        The mean of it.
    start_loss : float
        The same of what weights are pulled to.
    of_folds : ndarray of shape (n_folds, n_scores)
        The weights that the rows outside of every fold have at this ridge.
    """

    weights: FloatArray
    ridge: float
    losses: FloatArray
    log_loss: float
    start_loss: float
    of_folds: FloatArray


def fit_weights(
    scores: AnyArray,
    base: FloatArray,
    y: IntArray,
    sample_weight: AnyArray,
    start: FloatArray,
    ridges: Sequence[float],
    fold: IntArray,
    *,
    fold_starts: FloatArray | None = None,
    max_iter: int = 60,
) -> Fitted:
    """Minimise the log loss of softmax(base + weights . scores) + ridge / 2 |weights - start|^2.

    Parameters
    ----------
    scores : ndarray of shape (n_scores, n_rows, n_classes), float32
    base : ndarray of shape (n_rows, n_classes)
    y : ndarray of shape (n_rows,), intp
        Classes.
    sample_weight : ndarray of shape (n_rows,)
        Weights of the rows.
    start : ndarray of shape (n_scores,)
        Where weights are pulled to.
    ridges : sequence of float
        From strong to weak; of one, nothing is chosen.
    fold : ndarray of shape (n_rows,), intp
        Folds that choose the ridge.
    fold_starts : ndarray of shape (n_folds, n_scores), optional
        Where weights are pulled to that must not know of a fold; by default ``start``.
    max_iter : int, default=60
        Iterations of L-BFGS for each.

    Returns
    -------
    Fitted
    """
    n_folds = int(fold.max()) + 1
    starts = np.tile(start, (n_folds, 1)) if fold_starts is None else fold_starts
    losses, found = np.empty((1 + len(ridges), len(y))), np.empty((len(ridges), n_folds, len(start)))
    with one_blas_thread():
        whole = _Rows(scores, base, y, sample_weight)
        parts = [(whole.take(fold != f), whole.take(fold == f)) for f in range(n_folds)]
        for f, (_, outside) in enumerate(parts):
            losses[0, fold == f] = outside.losses(starts[f])
        weights_of = starts.copy()
        for number, ridge in enumerate(ridges):
            for f, (inside, outside) in enumerate(parts):
                weights_of[f] = found[number, f] = _minimize(inside, weights_of[f], starts[f], ridge, max_iter)
                losses[1 + number, fold == f] = outside.losses(weights_of[f])
            means = np.average(losses[: 2 + number], axis=1, weights=sample_weight)
            if means[-1] > means[1:].min() * _WORSE:
                break
        best = int(means[1:].argmin())
        weights = start
        for ridge in ridges[: best + 1]:
            weights = _minimize(whole, weights, start, ridge, max_iter)
    return Fitted(weights, ridges[best], losses[1 + best], float(means[1 + best]), float(means[0]), found[best])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Scores of rows, to which weights are to be found."""

    scores: AnyArray
    base: FloatArray
    y: IntArray
    sample_weight: AnyArray

    def take(self, rows: AnyArray) -> _Rows:
        """Return some of the rows."""
        scores = np.ascontiguousarray(self.scores[:, rows])
        return _Rows(scores, self.base[rows], self.y[rows], self.sample_weight[rows])

    def log_p(self, weights: FloatArray) -> FloatArray:
        """Return log-probabilities of the classes."""
        flat = self.scores.reshape(len(self.scores), -1)
        total = (weights.astype(flat.dtype) @ flat).reshape(self.base.shape) + self.base
        total -= total.max(axis=1, keepdims=True)
        total -= np.log(np.exp(total).sum(axis=1, keepdims=True))
        return total

    def losses(self, weights: FloatArray) -> FloatArray:
        """Return the negative log-probability of the class of every row."""
        return -self.log_p(weights)[np.arange(len(self.y)), self.y]


def _minimize(rows: _Rows, first: FloatArray, start: FloatArray, ridge: float, max_iter: int) -> FloatArray:
    """Return the minimum, looked for from ``first`` on."""
    from scipy.optimize import minimize

    flat, own = rows.scores.reshape(len(rows.scores), -1), (np.arange(len(rows.y)), rows.y)
    share = rows.sample_weight / rows.sample_weight.sum()

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        log_p = rows.log_p(weights)
        slope = np.exp(log_p)
        slope[own] -= 1.0
        slope *= share[:, np.newaxis]
        away = weights - start
        gradient = flat @ slope.astype(flat.dtype).ravel() + ridge * away
        return float(ridge / 2 * (away @ away) - (share * log_p[own]).sum()), gradient.astype(np.float64)

    options = {"maxiter": max_iter, "ftol": _TOLERANCE}
    found: FloatArray = minimize(objective, first, jac=True, method="L-BFGS-B", options=options).x
    return found
