"""Losses as functions of scores and classes.

Notation: ``s_c`` is the log joint of class c and y is the true class. The margin with the softened maximum of the other
classes is

    d = s_y - (1/eta) log sum_{c != y} exp(eta s_c)

(differentiable TAN, eq. 7; maximum margin, eq. 4). Each loss is defined per row. The papers and the batch learners of
this package sum the losses over the data set (differentiable TAN, eq. 5, 6 and 8). Gradient TAN uses the weighted mean
over a batch, so its penalty on the model size is also per row.

Zero probabilities are common, so scores may be -inf. Each loss has a defined value in these cases and is never nan:

=========================== =============================== ============================================
scores of a row             negative log-likelihoods        margin losses
=========================== =============================== ============================================
true class -inf,            inf, finite gradient            d = -inf: loss inf, finite gradient
another class finite
true class finite,          joint -s_y, conditional 0       d = inf: hinge 0, smooth hinge -1,
all other classes -inf                                      gradient 0
all classes -inf            joint inf, conditional          d = -log(n_classes - 1) / eta: a tie
                            log(n_classes): a tie           like any other equal scores
=========================== =============================== ============================================

If a score is nan, the loss is nan. Softmax weights below 2e-19 count as 0.
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
    "evaluate",
    "is_built_in",
    "require_loss",
]


class Loss(Protocol):
    """Protocol for losses. Any object with this method is a loss, and needs no compiler.

    Rows are independent. The caller applies sample weights and computes the mean. A training is reproducible bit for
    bit if its loss does not depend on the memory addresses of its arrays. This holds for functions of NumPy and SciPy.
    BLAS products of vectors with more than 10,000 elements are reproducible only with the same number of threads.

    Examples
    --------
    One minus the probability of the true class:

    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from tanlearn.training.losses import require_loss
    >>> class ExpectedError:
    ...     def value_and_gradient(self, scores, y):
    ...         p, true = softmax(scores, axis=1), np.eye(scores.shape[1])[y]
    ...         p_true = (p * true).sum(axis=1)
    ...         return 1 - p_true, p_true[:, np.newaxis] * (p - true)
    >>> loss = require_loss(ExpectedError())
    >>> loss.value_and_gradient(np.log([[0.75, 0.25]]), np.array([0]))
    (array([0.25]), array([[-0.1875,  0.1875]]))
    """

    def value_and_gradient(self, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of each row and its gradient.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes), float32 or float64
            Log joint, which may contain -inf.
        y : ndarray of shape (n_samples,), intp
            True classes ``0..n_classes - 1``.

        Returns
        -------
        loss : ndarray of shape (n_samples,)
            Loss of each row, with the dtype of the scores.
        d_scores : ndarray of shape (n_samples, n_classes)
            Gradient of each row's loss with respect to its scores, with the dtype of the scores.
        """
        ...


_Loss = TypeVar("_Loss", bound=Loss)


def require_loss(loss: _Loss) -> _Loss:
    """Return the loss after checking its interface and, for a built-in loss, its parameters.

    Raises TypeError for a class or an object without ``value_and_gradient``, and ValueError for a parameter out of
    range.
    """
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, got the class {loss.__name__}. Pass {loss.__name__}() instead.")
    if isinstance(loss, str):
        raise TypeError(
            f"loss must be an object, got the string {loss!r}. Pass a loss of tanlearn, such as ConditionalNLL() or "
            f"Margin()."
        )
    if not callable(getattr(loss, "value_and_gradient", None)):
        raise TypeError(f"a loss must have the method value_and_gradient(scores, y), but {loss!r} does not have it.")
    if isinstance(loss, CompiledLoss):
        loss.kernel_parameters()
    return loss


def is_built_in(loss: Loss) -> TypeGuard[CompiledLoss]:
    """Return whether the loss is computed by kernels of the library.

    A subclass of a built-in loss that overrides ``value_and_gradient`` is a custom loss.
    """
    return isinstance(loss, CompiledLoss) and type(loss).value_and_gradient is CompiledLoss.value_and_gradient


def evaluate(loss: Loss, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the loss (n_samples,) and its gradient (n_samples, n_classes) as C-contiguous arrays of the scores' dtype.

    Raises ValueError if a custom loss returns arrays of other shapes.
    """
    values, d_scores = loss.value_and_gradient(scores, y)
    if is_built_in(loss):
        return values, d_scores
    values, d_scores = np.asarray(values), np.asarray(d_scores)
    if values.shape != y.shape or d_scores.shape != scores.shape:
        raise ValueError(
            f"{type(loss).__name__}.value_and_gradient must return one loss per row, shape {y.shape}, and one "
            f"derivative per score, shape {scores.shape}, got shapes {values.shape} and {d_scores.shape}."
        )
    return values.astype(scores.dtype, copy=False), np.ascontiguousarray(d_scores, dtype=scores.dtype)


#: Types and parameters of built-in losses that are valid. They are stored here, because losses are objects of the user.
_VALID: set[tuple[type, tuple[float, float, float]]] = set()


class CompiledLoss(BaseEstimator):
    """Base class of built-in losses, with a number that selects the kernel, and up to three kernel parameters."""

    #: One of the constants in :mod:`tanlearn.kernels.losses`.
    kind: ClassVar[int]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def _kernel_parameters(self) -> tuple[float, float, float]:
        """Return the parameters in the order that the kernel expects, with 0 for unused ones."""
        return 0.0, 0.0, 0.0

    def kernel_parameters(self) -> tuple[float, float, float]:
        """Return the three parameters of the kernel.

        Returns
        -------
        tuple of 3 floats
            Values for the kernel, which expects them in the dtype of the scores. Unused parameters are 0.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        parameters = self._kernel_parameters()
        if (type(self), parameters) not in _VALID:  # scikit-learn's check takes 15 us, as long as a batch of 100 rows
            self._validate_params()
            _VALID.add((type(self), parameters))
        return parameters

    def value_and_gradient(self, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of each row and its gradient.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes), float32 or float64
            Log joint of at least two classes, which may contain -inf.
        y : ndarray of shape (n_samples,), intp
            True classes ``0..n_classes - 1``.

        Returns
        -------
        loss : ndarray of shape (n_samples,)
            Loss of each row, with the dtype of the scores.
        d_scores : ndarray of shape (n_samples, n_classes)
            Gradient of each row's loss with respect to its scores, with the dtype of the scores.

        Raises
        ------
        ValueError
            If a parameter is out of range, the shapes of the arrays do not match, or a class does not exist.
        TypeError
            If the scores are not float32 or float64, or the classes are not integers.
        """
        scores, y = _contiguous(scores, y)
        loss = np.empty(scores.shape[0], scores.dtype)
        d_scores = np.empty_like(scores)
        parameters = np.array(self.kernel_parameters(), scores.dtype)
        bad_row = kernels.loss_rows(self.kind, parameters, scores, y, loss, d_scores)
        if bad_row >= 0:
            raise ValueError(
                f"y[{bad_row}] is {y[bad_row]}, but scores have {scores.shape[1]} classes (0..{scores.shape[1] - 1}). "
                f"Encode the classes from 0, or pass the scores of every class."
            )
        return loss, d_scores


class JointNLL(CompiledLoss):
    """Negative log joint likelihood, ``-s_y``, which is the generative loss (differentiable TAN, eq. 5).

    See Also
    --------
    tanlearn.MaximumLikelihood : The closed-form minimum for a fixed structure.

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

    This loss is also known as cross-entropy or logistic loss.

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
    """Hinge loss of the margin, ``max(0, gamma - d)`` (differentiable TAN, eq. 6 and 7).

    Parameters
    ----------
    gamma : float, default=1.0
        Desired margin in nats, at least 0. The paper searches from 0.1 to 100. More features need a larger margin.
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

    ``h`` is ``min(1, z)`` with its kink smoothed between ``1 - 2 kappa`` and 1::

        h(z) = z + kappa                    z <= 1 - 2 kappa
               1 - (z - 1)^2 / (4 kappa)    1 - 2 kappa < z < 1
               1                            z >= 1

    The loss is at least -1, and it is -1 for each row with a margin of ``1 / scale`` nats or more.

    Parameters
    ----------
    scale : float, default=0.02
        Inverse of the desired margin in nats, above 0. This is lambda in the paper, which searches from 0.001 to 0.5
        and reports 0.02.
    kappa : float, default=0.5
        Width of the smoothing, above 0. The paper searches from 0.01 to 0.5, and finds little influence; 0.5 is
        slightly better.
    eta : float, default=10.0
        Sharpness of the softened maximum in ``d``, above 0. The paper finds no influence for values of 5 or more.

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
    """Generative plus discriminative loss, ``-s_y + trade_off max(0, gamma - d)`` (differentiable TAN, eq. 8).

    Parameters
    ----------
    trade_off : float, default=10.0
        Weight of the hinge loss, at least 0. This is lambda in the paper, which searches from 10 to 1,000.
    gamma : float, default=10.0
        Desired margin in nats, at least 0. The paper searches from 0.1 to 100. More features need a larger margin.
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
    """Smooth hybrid loss, ``-s_y + trade_off (1/eta) log(1 + exp(eta (gamma - d)))``.

    With ``eta=1`` and ``gamma=0`` the second term is the negative log conditional likelihood. With another ``eta``, it
    is ``1/eta`` times the negative log conditional likelihood of the scores ``eta s``. For large ``eta`` it approaches
    the hinge loss of :class:`Hybrid`. ``gamma`` is the desired margin of the true class. The loss therefore connects
    maximum likelihood, conditional likelihood and maximum margin. The loss is differentiable, so batch learners can
    minimize it.

    Parameters
    ----------
    trade_off : float, default=10.0
        Weight of the second term, at least 0.
    gamma : float, default=0.0
        Desired margin in nats, at least 0.
    eta : float, default=1.0
        Sharpness of the softened maximum in ``d`` and of the bend at ``gamma``, above 0.

    References
    ----------
    Bouchard, Triggs: The tradeoff between generative and discriminative classifiers. COMPSTAT 2004.

    Povey, Kanevsky, Kingsbury, Ramabhadran, Saon, Visweswariah: Boosted MMI for model and feature-space discriminative
    training. ICASSP 2008 (conditional likelihood with a margin).

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
    """Validate the shapes and dtypes of both arrays, and return them as C-contiguous arrays."""
    scores, y = np.ascontiguousarray(scores), np.ascontiguousarray(y)
    if scores.ndim != 2 or scores.shape[1] < 2 or y.shape != scores.shape[:1]:
        raise ValueError(
            f"scores must have shape (n_samples, n_classes) with at least two classes, and y must have shape "
            f"(n_samples,), got {scores.shape} and {y.shape}."
        )
    if scores.dtype not in (np.float32, np.float64):
        raise TypeError(f"scores must be float32 or float64, got {scores.dtype}. Cast them with astype.")
    if y.dtype.kind not in "iu":
        raise TypeError(
            f"y must contain integer class codes, starting at 0, but its dtype is {y.dtype}. Encode the classes first."
        )
    return scores, y.astype(np.intp, copy=False)
