"""Weights by conditional likelihood: a ridge pulls them to where they start, and left-out rows choose how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import AnyArray, FloatArray, IntArray

__all__ = ["Fitted", "Problem", "fit_weights"]

#: Weaker ridges are not tried once one is this much worse than the best.
_WORSE = 1.01
#: Where L-BFGS ends: what an iteration gains of the loss.
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows that weights are to tell the classes of: softmax(base + weights . scores)."""

    scores: AnyArray  # (n_scores, n_rows, n_classes):
    base: FloatArray  # (n_rows, n_classes):
    y: IntArray  # (n_rows,): Classes
    sample_weight: AnyArray  # (n_rows,): Weights of the rows

    def take(self, rows: AnyArray) -> Problem:
        """Return the problem of some of the rows.

        Shapes: rows: (n_rows,).
        """
        scores = np.ascontiguousarray(self.scores[:, rows])
        return Problem(scores, self.base[rows], self.y[rows], self.sample_weight[rows])

    def log_p(self, weights: FloatArray) -> FloatArray:
        """Return log-probabilities of the classes.

        Shapes: weights: (n_scores,); result: (n_rows, n_classes).
        """
        flat = self.scores.reshape(len(self.scores), -1)
        total = (weights.astype(flat.dtype) @ flat).reshape(self.base.shape) + self.base
        total -= total.max(axis=1, keepdims=True)
        total -= np.log(np.exp(total).sum(axis=1, keepdims=True))
        return total

    def minimize(self, first: FloatArray, start: FloatArray, ridge: float, max_iter: int) -> FloatArray:
        """Minimise the mean log loss + ridge / 2 |weights - start|^2.

        Shapes: first: (n_scores,); start: (n_scores,); result: (n_scores,).
        """
        from scipy.optimize import minimize

        flat, own = self.scores.reshape(len(self.scores), -1), (np.arange(len(self.y)), self.y)
        share = self.sample_weight / self.sample_weight.sum()

        def objective(weights: FloatArray) -> tuple[float, FloatArray]:
            log_p = self.log_p(weights)
            slope = np.exp(log_p)
            slope[own] -= 1.0
            slope *= share[:, np.newaxis]
            away = weights - start
            gradient = flat @ slope.astype(flat.dtype).ravel() + ridge * away
            return float(ridge / 2 * (away @ away) - (share * log_p[own]).sum()), gradient.astype(np.float64)

        options = {"maxiter": max_iter, "ftol": _TOLERANCE}
        found: FloatArray = minimize(objective, first, jac=True, method="L-BFGS-B", options=options).x
        return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights, and what left-out rows say of them."""

    weights: FloatArray  # (n_scores,):
    of_parts: list[FloatArray]  # (n_scores,): What the rows of every part have found
    log_p: list[FloatArray]  # (n_rows, n_classes): Log-probabilities of the rows left out of every part
    ridge: float  # The one that was chosen; infinite if weights stay where they start
    log_loss: float  # The mean log loss of left-out rows
    start_loss: float  # The same of where weights start


def fit_weights(
    whole: Problem,
    parts: Sequence[tuple[Problem, Problem]],
    start: FloatArray,
    starts: Sequence[FloatArray],
    ridges: Sequence[float],
    *,
    max_iter: int = 60,
) -> Fitted:
    """Fit weights with the ridge that left-out rows are best off with.

    Shapes: start: (n_scores,); starts: (n_scores,).
    """
    with one_blas_thread():
        outside = [own for _, own in parts]
        best = [problem.log_p(own) for problem, own in zip(outside, starts, strict=True)]
        least = start_loss = _mean_loss(outside, best)
        chosen, fitted, weights_of = -1, list(starts), list(starts)
        for number, ridge in enumerate(ridges):
            weights_of = [
                inside.minimize(first, own, ridge, max_iter)
                for (inside, _), first, own in zip(parts, weights_of, starts, strict=True)
            ]
            log_p = [problem.log_p(own) for problem, own in zip(outside, weights_of, strict=True)]
            loss = _mean_loss(outside, log_p)
            if loss < least:
                chosen, fitted, best, least = number, weights_of, log_p, loss
            elif loss > least * _WORSE:
                break
        weights = start
        for ridge in ridges[: chosen + 1]:
            weights = whole.minimize(weights, start, ridge, max_iter)
    ridge = float(ridges[chosen]) if chosen >= 0 else np.inf
    return Fitted(weights, fitted, best, ridge, least, start_loss)


def _mean_loss(problems: Sequence[Problem], log_p: Sequence[FloatArray]) -> float:
    """Return the mean log loss of all rows."""
    total = sum(
        -(own.sample_weight * p[np.arange(len(own.y)), own.y]).sum() for own, p in zip(problems, log_p, strict=True)
    )
    return float(total / sum(own.sample_weight.sum() for own in problems))
