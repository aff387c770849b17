"""Losses: functions of the scores and the classes, and of nothing else.

Notation: ``s_c`` is the log joint of class c, y the true class, and the margin with the softened maximum of
the other classes is

    d = s_y - (1/eta) log sum_{c != y} exp(eta s_c)

(differentiable TAN, eq. 7; maximum margin, eq. 4). A loss is that of one row. The papers add up those of a data set
(differentiable TAN, eq. 5, 6 and 8), and so do batch learners here; gradient TAN takes the weighted mean of a batch, so
that what it adds to the loss, the price of size, is per row.

Zero probabilities are everyday, so scores may be -inf.
Every loss then has a stated outcome, and never nan:

=========================== =============================== ============================================
a row whose                 negative log-likelihoods        margin losses
=========================== =============================== ============================================
true class is -inf, and     inf, finite gradient            d = -inf: loss inf, finite gradient
another is finite
true class is finite, and   joint -s_y, conditional 0       d = inf: hinge 0, smooth hinge -1,
all others are -inf                                         gradient 0
scores are all -inf         joint inf, conditional          d = -log(n_classes - 1) / eta: a tie
                            log(n_classes): a tie           like any other equal scores
=========================== =============================== ============================================

A nan in the scores comes out as a nan loss. Softmax weights below 2e-19 count as 0.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Protocol, TypeGuard, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.kernels import losses as kernels

__all__ = [
    "CompiledLoss",
    "ConditionalNLL",
    "HingeMargin",
    "Hybrid",
    "JointNLL",
    "Loss",
    "Margin",
    "SoftHybrid",
    "check_loss",
    "evaluate",
    "is_built_in",
]


class Loss(Protocol):
    """What a loss must offer; any object with this method is one, and needs no compiler.

    Rows are independent: the caller applies sample weights and takes the mean. A training is repeated bit for bit if
    its loss is, wherever its arrays lie in memory. Functions of NumPy and SciPy are; products of vectors by BLAS, of
    more than 10,000 numbers, only on the same number of threads.

    Examples
    --------
    One minus the probability of the true class:

    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from tanlearn.training.losses import check_loss
    >>> class ExpectedError:
    ...     def value_and_gradient(self, scores, y):
    ...         p, true = softmax(scores, axis=1), np.eye(scores.shape[1])[y]
    ...         p_true = (p * true).sum(axis=1)
    ...         return 1 - p_true, p_true[:, np.newaxis] * (p - true)
    >>> loss = check_loss(ExpectedError())
    >>> loss.value_and_gradient(np.log([[0.75, 0.25]]), np.array([0]))
    (array([0.25]), array([[-0.1875,  0.1875]]))
    """

    def value_and_gradient(self, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of every row and its gradient.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes), float32 or float64
            Log joint; may hold -inf.
        y : ndarray of shape (n_samples,), intp
            True classes ``0..n_classes - 1``.

        Returns
        -------
        loss : ndarray of shape (n_samples,)
            Loss of every row, in the type of the scores.
        d_scores : ndarray of shape (n_samples, n_classes)
            Gradient of every row's loss with respect to its scores, in the type of the scores.
        """
        ...


_Loss = TypeVar("_Loss", bound=Loss)


def check_loss(loss: _Loss) -> _Loss:
    """Return a loss after checking that it is one, and the parameters of a built-in one."""
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, got the class {loss.__name__}. Pass {loss.__name__}() instead.")
    if not callable(getattr(loss, "value_and_gradient", None)):
        raise TypeError(
            f"{loss!r} is not compatible with gradient training: it must implement "
            f"value_and_gradient(scores, y). Missing: value_and_gradient."
        )
    if isinstance(loss, CompiledLoss):
        loss.kernel_parameters()
    return loss


def is_built_in(loss: Loss) -> TypeGuard[CompiledLoss]:
    """Return whether a loss is computed by the library's kernels, and not by code of the user's own."""
    return isinstance(loss, CompiledLoss) and type(loss).value_and_gradient is CompiledLoss.value_and_gradient


def evaluate(loss: Loss, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return a loss and its gradient, in the shapes and types that kernels rely on.

    Shapes: scores: (n_samples, n_classes); y: (n_samples,); result loss: (n_samples,); result d_scores: (n_samples,
        n_classes).
    """
    values, d_scores = loss.value_and_gradient(scores, y)
    if is_built_in(loss):
        return values, d_scores
    values, d_scores = np.asarray(values), np.asarray(d_scores)
    if values.shape != y.shape or d_scores.shape != scores.shape:
        raise ValueError(
            f"{type(loss).__name__}.value_and_gradient must return one loss a row, shape {y.shape}, and one "
            f"derivative a score, shape {scores.shape}; it returned shapes {values.shape} and {d_scores.shape}."
        )
    return values.astype(scores.dtype, copy=False), np.ascontiguousarray(d_scores, dtype=scores.dtype)


#: Built-in losses and parameters that have passed the check; not kept on the loss, which is the user's object.
_VALID: set[tuple[type, tuple[float, float, float]]] = set()


class CompiledLoss(BaseEstimator):
    """Base of the built-in losses: a number that selects the kernel, and up to three parameters for it."""

    #: One of the numbers in :mod:`tanlearn.kernels.losses`.
    kind: ClassVar[int]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def _kernel_parameters(self) -> tuple[float, float, float]:
        """Return the parameters in the places where the kernel expects them, 0 in the others."""
        return 0.0, 0.0, 0.0

    def kernel_parameters(self) -> tuple[float, float, float]:
        """Return the three parameters of the kernel.

        Returns
        -------
        tuple of 3 floats
            To be passed on in the type of the scores; 0 where the kernel uses none.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        parameters = self._kernel_parameters()
        if (type(self), parameters) not in _VALID:  # scikit-learn's check takes 15 us, a batch of 100 rows the same
            self._validate_params()
            _VALID.add((type(self), parameters))
        return parameters

    def value_and_gradient(self, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of every row and its gradient.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes), float32 or float64
            Log joint of at least two classes; may hold -inf.
        y : ndarray of shape (n_samples,), intp
            True classes ``0..n_classes - 1``.

        Returns
        -------
        loss : ndarray of shape (n_samples,)
            Loss of every row, in the type of the scores.
        d_scores : ndarray of shape (n_samples, n_classes)
            Gradient of every row's loss with respect to its scores, in the type of the scores.

        Raises
        ------
        ValueError
            If a parameter is out of range, the arrays do not fit together, or a class does not exist.
        TypeError
            If the scores are not float32 or float64, or the classes not integers.
        """
        scores, y = _contiguous(scores, y)
        loss = np.empty(scores.shape[0], scores.dtype)
        d_scores = np.empty_like(scores)
        parameters = np.array(self.kernel_parameters(), scores.dtype)
        bad_row = kernels.loss_rows(self.kind, parameters, scores, y, loss, d_scores)
        if bad_row >= 0:
            raise ValueError(
                f"y[{bad_row}] is {y[bad_row]}, but scores has {scores.shape[1]} classes "
                f"(0..{scores.shape[1] - 1}). Encode the classes from 0, or pass the scores of every class."
            )
        return loss, d_scores


class JointNLL(CompiledLoss):
    """Negative log joint likelihood, ``-s_y``: the generative loss (differentiable TAN, eq. 5).

    See Also
    --------
    tanlearn.MaximumLikelihood : Its minimum for a fixed structure in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import JointNLL
    >>> loss, d_scores = JointNLL().value_and_gradient(np.log([[0.5, 0.25]]), np.array([1]))
    >>> loss.round(4), d_scores
    (array([1.3863]), array([[ 0., -1.]]))
    """

    kind = kernels.JOINT_NLL


class ConditionalNLL(CompiledLoss):
    """Negative log conditional likelihood, ``-s_y + log sum_c exp(s_c)`` (maximum margin, eq. 2).

    Also known as cross-entropy or the logistic loss.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import ConditionalNLL
    >>> loss, d_scores = ConditionalNLL().value_and_gradient(np.log([[0.3, 0.1]]), np.array([0]))
    >>> loss.round(4), d_scores  # -log 0.75
    (array([0.2877]), array([[-0.25,  0.25]]))
    """

    kind = kernels.CONDITIONAL_NLL


class HingeMargin(CompiledLoss):
    """Hinge of the margin, ``max(0, gamma - d)`` (differentiable TAN, eq. 6 and 7).

    Parameters
    ----------
    gamma : float, default=1.0
        Desired margin in nats, at least 0. The paper searches 0.1 to 100; the more features, the more is right.
    eta : float, default=10.0
        Sharpness of the softened maximum in ``d``, above 0; the larger, the closer to the maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import HingeMargin
    >>> scores = np.array([[-1.0, -3.0], [-1.0, -1.5]])
    >>> HingeMargin(gamma=1).value_and_gradient(scores, np.array([0, 0]))  # margins 2 and 0.5
    (array([0. , 0.5]), array([[ 0.,  0.],
           [-1.,  1.]]))
    """

    kind = kernels.HINGE_MARGIN
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, gamma: float = 1.0, eta: float = 10.0) -> None:
        self.gamma = gamma
        self.eta = eta

    def _kernel_parameters(self) -> tuple[float, float, float]:
        return 0.0, self.gamma, self.eta


class Margin(CompiledLoss):
    """Smooth hinge of the margin, ``-h(scale d)`` (maximum margin, eq. 4 to 6, derivative eq. 8).

    ``h`` is ``min(1, z)`` with the kink rounded off between ``1 - 2 kappa`` and 1::

        h(z) = z + kappa                    z <= 1 - 2 kappa
               1 - (z - 1)^2 / (4 kappa)    1 - 2 kappa < z < 1
               1                            z >= 1

    The loss is at least -1, and -1 for every row whose margin is ``1 / scale`` nats or more.

    Parameters
    ----------
    scale : float, default=0.02
        The paper's lambda, above 0: one over the desired margin in nats. The paper searches 0.001 to 0.5 and
        shows 0.02.
    kappa : float, default=0.5
        Roundness, above 0. The paper searches 0.01 to 0.5 and finds little influence, 0.5 slightly better.
    eta : float, default=10.0
        Sharpness of the softened maximum in ``d``, above 0. The paper finds no influence from 5 on.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import Margin
    >>> scores = np.array([[-1.0, -6.0], [-1.0, -3.0], [-5.0, -1.0]])
    >>> loss, d_scores = Margin(scale=0.25, kappa=0.5).value_and_gradient(scores, np.array([0, 0, 0]))
    >>> loss  # margins 5, 2 and -4
    array([-1.   , -0.875,  0.5  ])
    >>> d_scores[1:]
    array([[-0.125,  0.125],
           [-0.25 ,  0.25 ]])
    """

    kind = kernels.MARGIN
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": [Interval(Real, 0, None, closed="neither")],
        "kappa": [Interval(Real, 0, None, closed="neither")],
        "eta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, scale: float = 0.02, kappa: float = 0.5, eta: float = 10.0) -> None:
        self.scale = scale
        self.kappa = kappa
        self.eta = eta

    def _kernel_parameters(self) -> tuple[float, float, float]:
        return self.scale, self.kappa, self.eta


class Hybrid(CompiledLoss):
    """Generative plus discriminative, ``-s_y + trade_off max(0, gamma - d)`` (differentiable TAN, eq. 8).

    Parameters
    ----------
    trade_off : float, default=10.0
        Weight of the hinge, the paper's lambda, at least 0. The paper searches 10 to 1,000.
    gamma : float, default=10.0
        Desired margin in nats, at least 0. The paper searches 0.1 to 100; the more features, the more is right.
    eta : float, default=10.0
        Sharpness of the softened maximum in ``d``, above 0; the larger, the closer to the maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import Hybrid
    >>> scores = np.array([[-1.0, -3.0], [-1.0, -1.5]])
    >>> Hybrid(trade_off=10, gamma=1).value_and_gradient(scores, np.array([0, 0]))  # margins 2 and 0.5
    (array([1., 6.]), array([[ -1.,   0.],
           [-11.,  10.]]))
    """

    kind = kernels.HYBRID
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "trade_off": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, trade_off: float = 10.0, gamma: float = 10.0, eta: float = 10.0) -> None:
        self.trade_off = trade_off
        self.gamma = gamma
        self.eta = eta

    def _kernel_parameters(self) -> tuple[float, float, float]:
        return self.trade_off, self.gamma, self.eta


class SoftHybrid(CompiledLoss):
    """Generative plus discriminative, without a kink: ``-s_y + trade_off (1/eta) log(1 + exp(eta (gamma - d)))``.

    The hinge of :class:`Hybrid` is what comes of it for large ``eta``. With ``eta=1`` and ``gamma=0`` the second part
    is the negative log conditional likelihood; with another ``eta``, ``1/eta`` times that of scores ``eta s``, as if
    every feature were said to count ``eta`` times; and ``gamma`` asks of the true class to lead by so much. So one
    family goes from frequencies over conditional likelihood to margin, and batch learners can follow it.

    Parameters
    ----------
    trade_off : float, default=10.0
        Weight of the second part, at least 0.
    gamma : float, default=0.0
        Desired margin in nats, at least 0.
    eta : float, default=1.0
        Sharpness, above 0: of the softened maximum in ``d``, and of the bend at ``gamma``.

    References
    ----------
    Bouchard, Triggs: The tradeoff between generative and discriminative classifiers. COMPSTAT 2004.

    Povey, Kanevsky, Kingsbury, Ramabhadran, Saon, Visweswariah: Boosted MMI for model and feature-space discriminative
    training. ICASSP 2008 (conditional likelihood that asks for a margin).

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import SoftHybrid
    >>> loss, d_scores = SoftHybrid(trade_off=10).value_and_gradient(np.log([[0.3, 0.1]]), np.array([0]))
    >>> loss.round(4), d_scores  # -log 0.3 - 10 log 0.75
    (array([4.0808]), array([[-3.5,  2.5]]))
    """

    kind = kernels.SOFT_HYBRID
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = Hybrid._parameter_constraints

    def __init__(self, *, trade_off: float = 10.0, gamma: float = 0.0, eta: float = 1.0) -> None:
        self.trade_off = trade_off
        self.gamma = gamma
        self.eta = eta

    def _kernel_parameters(self) -> tuple[float, float, float]:
        return self.trade_off, self.gamma, self.eta


def _contiguous(scores: AnyArray, y: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return both arrays in the layout that the kernels are compiled for, after checking that they fit."""
    scores, y = np.ascontiguousarray(scores), np.ascontiguousarray(y)
    if scores.ndim != 2 or scores.shape[1] < 2 or y.shape != scores.shape[:1]:
        raise ValueError(
            f"scores must have shape (n_samples, n_classes) with at least two classes, and y must have shape "
            f"(n_samples,), got {scores.shape} and {y.shape}."
        )
    if scores.dtype not in (np.float32, np.float64):
        raise TypeError(f"scores must be float32 or float64, got {scores.dtype}. Cast them with astype.")
    if y.dtype.kind not in "iu":
        raise TypeError(f"y must hold integer class codes from 0, got dtype {y.dtype}. Encode the classes first.")
    return scores, y.astype(np.intp, copy=False)
