"""Weights of scores, fitted by conditional likelihood with an L2 penalty on the distance to their start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import AnyArray, FloatArray, IntArray

__all__ = ["Fitted", "Problem", "fit_weights"]

#: Weaker ridges are not tried after the loss has exceeded the best loss by this factor.
_WORSE = 1.01
#: L-BFGS stops at this relative decrease in the loss per iteration.
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of a multinomial logistic regression, P(class) = softmax(base + weights . scores).

    Only differences of scores matter, so the differences to the last class are stored. Rows come last, because NumPy
    computes maxima and sums over a short last axis ten times as slowly.
    """

    differences: AnyArray  # (n_scores, n_classes - 1, n_rows) float32, scores minus the score of the last class
    base: FloatArray  # (n_classes, n_rows)
    y: IntArray  # (n_rows,) class codes
    sample_weight: AnyArray  # (n_rows,)

    @classmethod
    def from_scores(cls, scores: AnyArray, base: FloatArray, y: IntArray, sample_weight: AnyArray) -> Problem:
        """Return the problem of scores (n_scores, n_rows, n_classes) and a base (n_rows, n_classes)."""
        n_scores, n_rows, n_classes = scores.shape
        differences = np.empty((n_scores, n_classes - 1, n_rows), np.float32)
        for c in range(n_classes - 1):
            np.subtract(scores[:, :, c], scores[:, :, -1], out=differences[:, c], casting="same_kind")
        return cls(differences, np.ascontiguousarray(base.T), y, sample_weight)

    def take(self, rows: AnyArray) -> Problem:
        """Return the problem restricted to some rows, a mask (n_rows,) or row numbers."""
        places = np.arange(len(self.y))[rows]  # a mask takes ten times as long
        differences = np.take(self.differences, places, axis=2)
        return Problem(differences, self.base[:, places], self.y[places], self.sample_weight[places])

    def first(self, n_rows: int) -> Problem:
        """Return the problem restricted to the first rows."""
        return self if n_rows == len(self.y) else self.take(np.arange(n_rows))

    def mean(self, n: int) -> Problem:
        """Return the problem whose scores are means of ``n`` scores each, at equal distances in ``differences``."""
        flat = self.differences.reshape(n, -1)
        found = np.full(n, 1.0 / n, flat.dtype) @ flat
        shape = len(self.differences) // n, *self.differences.shape[1:]
        return Problem(found.reshape(shape), self.base, self.y, self.sample_weight)

    def log_p(self, weights: FloatArray) -> FloatArray:
        """Compute the log probabilities of the classes (n_rows, n_classes) for weights (n_scores,)."""
        return np.ascontiguousarray(self._log_p(weights).T)

    def _log_p(self, weights: FloatArray) -> FloatArray:
        """Compute the log probabilities of the classes. Shape: (n_classes, n_rows)."""
        flat, total = self.differences.reshape(len(self.differences), -1), self.base.copy()
        total[:-1] += (weights.astype(flat.dtype) @ flat).reshape(self.differences.shape[1:])
        total -= total.max(axis=0)
        total -= np.log(np.exp(total).sum(axis=0))
        return total

    def minimize(
        self, first: FloatArray, start: FloatArray, ridge: float, max_iter: int, lowest: FloatArray | None = None
    ) -> FloatArray:
        """Minimize the mean log loss + ridge / 2 |weights - start|^2 by L-BFGS, beginning with the weights ``first``.

        No weight is below ``lowest``, which may be -inf.

        Shapes: first, start, lowest, result: (n_scores,).
        """
        from scipy.optimize import minimize

        flat, own = self.differences.reshape(len(self.differences), -1), (self.y, np.arange(len(self.y)))
        share = self.sample_weight / self.sample_weight.sum()

        def objective(weights: FloatArray) -> tuple[float, FloatArray]:
            log_p = self._log_p(weights)
            slope = np.exp(log_p)
            slope[own] -= 1.0
            slope *= share
            away = weights - start
            gradient = flat @ slope[:-1].astype(flat.dtype).ravel() + ridge * away
            return float(ridge / 2 * (away @ away) - (share * log_p[own]).sum()), gradient.astype(np.float64)

        options = {"maxiter": max_iter, "ftol": _TOLERANCE}
        bounds = None if lowest is None else [(own, None) for own in lowest.tolist()]
        found: FloatArray = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted weights, and predictions of the left-out rows of each part."""

    weights: FloatArray  # (n_scores,)
    of_parts: list[FloatArray]  # (n_scores,) weights fitted to each part
    log_p: list[FloatArray]  # (n_rows, n_classes) log probabilities of the rows left out of each part
    ridge: float  # selected ridge; infinite if the weights stay at the start
    log_loss: float  # mean log loss of left-out rows
    start_loss: float  # the same at the start


def fit_weights(
    whole: Problem,
    parts: Sequence[tuple[Problem, Problem]],
    start: FloatArray,
    starts: Sequence[FloatArray],
    ridges: Sequence[float],
    *,
    max_iter: int = 60,
    lowest: FloatArray | None = None,
) -> Fitted:
    """Select the ridge that minimizes the mean log loss of left-out rows, and fit weights with it.

    Each of ``parts`` is a pair of problems: the rows to fit, and the left-out rows. The penalty is centered at
    ``start`` (n_scores,) for all rows, and at ``starts`` for the parts. ``starts`` must not depend on left-out rows.
    ``ridges`` are in decreasing order. Each fit starts at the weights of the previous fit and has at most ``max_iter``
    iterations of L-BFGS. If no ridge lowers the log loss, the initial weights are kept. No weight is below ``lowest``
    (n_scores,).
    """
    with one_blas_thread():
        outside = [own for _, own in parts]
        best = [problem.log_p(own) for problem, own in zip(outside, starts, strict=True)]
        least = start_loss = _mean_loss(outside, best)
        chosen, fitted, weights_of = -1, list(starts), list(starts)
        for number, ridge in enumerate(ridges):
            weights_of = [
                inside.minimize(first, own, ridge, max_iter, lowest)
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
            weights = whole.minimize(weights, start, ridge, max_iter, lowest)
    ridge = float(ridges[chosen]) if chosen >= 0 else np.inf
    return Fitted(weights, fitted, best, ridge, least, start_loss)


def _mean_loss(problems: Sequence[Problem], log_p: Sequence[FloatArray]) -> float:
    """Compute the mean log loss of the rows of all problems."""
    total = sum(
        -(own.sample_weight * p[np.arange(len(own.y)), own.y]).sum() for own, p in zip(problems, log_p, strict=True)
    )
    return float(total / sum(own.sample_weight.sum() for own in problems))
