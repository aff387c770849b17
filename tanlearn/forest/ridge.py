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
#: L-BFGS stops at this relative decrease of the loss per iteration.
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of a multinomial logistic regression, P(class) = softmax(base + weights . scores)."""

    scores: AnyArray  # (n_scores, n_rows, n_classes) float32
    base: FloatArray  # (n_rows, n_classes)
    y: IntArray  # (n_rows,) class codes
    sample_weight: AnyArray  # (n_rows,)

    def take(self, rows: AnyArray) -> Problem:
        """Return the problem restricted to some rows, a mask (n_rows,)."""
        scores = np.take(self.scores, np.arange(len(self.y))[rows], axis=1)  # a mask takes ten times as long
        return Problem(scores, self.base[rows], self.y[rows], self.sample_weight[rows])

    def log_p(self, weights: FloatArray) -> FloatArray:
        """Compute the log probabilities of the classes (n_rows, n_classes) for weights (n_scores,)."""
        flat = self.scores.reshape(len(self.scores), -1)
        total = (weights.astype(flat.dtype) @ flat).reshape(self.base.shape) + self.base
        total -= total.max(axis=1, keepdims=True)
        total -= np.log(np.exp(total).sum(axis=1, keepdims=True))
        return total

    def minimize(
        self, first: FloatArray, start: FloatArray, ridge: float, max_iter: int, lowest: FloatArray | None = None
    ) -> FloatArray:
        """Minimize the mean log loss + ridge / 2 |weights - start|^2 by L-BFGS, beginning with the weights ``first``.

        No weight is below ``lowest``, which may be -inf.

        Shapes: first, start, lowest, result: (n_scores,).
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
