"""Losses that can train terms: they must be convex and differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.training.losses import (
    ConditionalNLL,
    HingeMargin,
    Hybrid,
    JointNLL,
    Loss,
    Margin,
    SoftHybrid,
    is_built_in,
    require_loss,
)

__all__ = [
    "fit_temperature",
    "held_out_temperature",
    "is_calibrated",
    "is_generative",
    "require_term_loss",
    "ridge_unit",
    "score_unit",
]

#: Bounds of the logarithm of a temperature.
BOUNDS = float(np.log(1e-3)), float(np.log(1e3))


def require_term_loss(loss: Any, max_parents: int) -> Loss:
    """Return the loss if it can train terms; None means conditional likelihood.

    Raises TypeError and ValueError as in :func:`~tanlearn.training.losses.require_loss`. Also raises ValueError for
    losses with a kink, for custom losses, which may not be convex, and for losses with the joint likelihood if features
    can have several parents.
    """
    if loss is None:
        return ConditionalNLL()
    found: Loss = require_loss(loss)
    if is_built_in(found) and isinstance(found, (ConditionalNLL, Margin, JointNLL, SoftHybrid)):
        if is_generative(found) and max_parents > 1:
            raise ValueError(
                f"loss={loss!r} contains the joint likelihood and needs normalized CPTs, so max_parents must be 0 "
                f"or 1, got {max_parents}. Set max_parents=1, or use ConditionalNLL() or Margin()."
            )
        return found
    if isinstance(found, HingeMargin):
        scale = f"scale={1 / found.gamma:.3g}" if found.gamma else ""
        reason = f"it has a kink, and L-BFGS needs a derivative. Use Margin({scale})"
    elif isinstance(found, Hybrid):
        smooth = f"SoftHybrid(trade_off={found.trade_off:g}, gamma={found.gamma:g}, eta={found.eta:g})"
        reason = f"it has a kink, and L-BFGS needs a derivative. Use {smooth}"
    else:
        reason = "custom losses may not be convex. Use ConditionalNLL(), Margin() or SoftHybrid()"
    raise ValueError(f"loss={loss!r} cannot train a network of terms: {reason}.")


def is_generative(loss: Loss) -> bool:
    """Return whether the loss contains the joint likelihood of rows and classes."""
    return isinstance(loss, (JointNLL, SoftHybrid))


def is_calibrated(loss: Loss) -> bool:
    """Return whether minimizing the loss leads to probabilities, so that scores need no temperature.

    With a joint likelihood it does not, because real features are more dependent than a tree assumes.
    """
    return isinstance(loss, ConditionalNLL)


def ridge_unit(loss: Loss) -> float:
    """Return the factor of all ridges, so that the same ridges suit each loss.

    A margin loss with ``scale`` bends at ``1 / scale`` nats. Terms are larger by this factor, so their squares are
    multiplied by ``scale**2``. A hybrid loss is the sum of a likelihood and ``trade_off`` times another loss, so its
    factor is ``1 + trade_off``.
    """
    return 1.0 + float(loss.trade_off) if isinstance(loss, SoftHybrid) else score_unit(loss) ** 2


def score_unit(loss: Loss) -> float:
    """Return the divisor of log probabilities that gives the scores of a loss: the scale of a margin loss."""
    return float(loss.scale) if isinstance(loss, Margin) else 1.0


def held_out_temperature(loss: Loss, held_out: Sequence[EncodedData], scores: Sequence[FloatArray]) -> float:
    """Return the temperature of held-out scores of all folds, each (n_samples, n_classes); 1 for likelihood."""
    if is_calibrated(loss):
        return 1.0
    y, weights = (np.concatenate([getattr(one, name) for one in held_out]) for name in ("y", "weights"))
    return fit_temperature(np.vstack(scores), y, weights)


def fit_temperature(scores: FloatArray, y: IntArray, weights: FloatArray) -> float:
    """Return the divisor of scores that minimizes their log loss.

    The objective contains one additional row, whose class is uniformly distributed. Without this row, the temperature
    would be 0 if all rows are classified correctly, and all probabilities would be 0 or 1.

    Shapes: scores: (n_samples, n_classes); y, weights: (n_samples,).
    """
    from scipy.optimize import minimize_scalar

    rows, total = np.arange(len(y)), float(weights.sum())
    distances = scores.max(axis=1, keepdims=True) - scores
    own, mean = distances[rows, y], distances.mean(axis=1)

    def objective(log_temperature: float) -> float:
        scaled = np.exp(-log_temperature)
        normalizers = np.log(np.exp(-scaled * distances).sum(axis=1))
        return float((weights * (normalizers + scaled * own + (normalizers + scaled * mean) / total)).sum())

    return float(np.exp(minimize_scalar(objective, bounds=BOUNDS, method="bounded").x))
