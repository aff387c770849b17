"""Parameter learners: from a structure and data to tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import FloatArray
from tanlearn.candidates import CandidateSets
from tanlearn.device_objective import DeviceObjective
from tanlearn.encoded_data import EncodedData
from tanlearn.few_bits import train_in_bits
from tanlearn.kernels.mathematics import log_all
from tanlearn.losses import Hybrid, Loss, Margin, check_loss
from tanlearn.objectives import Objective
from tanlearn.optimizers import OptimizeOutcome, minimize_cg, minimize_lbfgs
from tanlearn.structures import Structure
from tanlearn.tables import TableLayout, Tables
from tanlearn.training import TrainingSettings

__all__ = [
    "LBFGS",
    "BatchLearner",
    "ConjugateGradient",
    "MaximumLikelihood",
    "ParameterLearner",
    "StochasticGradient",
    "check_learner_device",
]


#: Rows of less weight than this, beside a count of one in every cell, leave all probabilities equal to a millionth.
_LIGHTEST = 1e-6


class ParameterLearner(Protocol):
    """What an estimator asks of an object that learns tables."""

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows.
        rng : numpy.random.Generator
            Where all randomness comes from.

        Returns
        -------
        Tables
        """
        ...


def check_learner_device(learner: Any, device: str) -> None:
    """Refuse a learner of structures or parameters that has no kernels for a device.

    Parameters
    ----------
    learner : object
        With a method ``learn`` or ``fit``. Its attribute ``devices`` names those it can use; without one it is for the
        CPU only.
    device : {"cpu", "cuda"}
        Where it is to work.

    Raises
    ------
    ValueError
        If it cannot.

    Examples
    --------
    >>> from tanlearn import ConjugateGradient, ExpectationMaximization
    >>> from tanlearn.parameters import check_learner_device
    >>> check_learner_device(ConjugateGradient(), "cuda")
    >>> check_learner_device(ExpectationMaximization(), "cuda")
    Traceback (most recent call last):
    ...
    ValueError: ExpectationMaximization() works with device='cpu' only, got device='cuda'. Use device='cpu', ...
    """
    devices = getattr(learner, "devices", ("cpu",))
    if device not in devices:
        raise ValueError(
            f"{learner!r} works with device={' or '.join(map(repr, devices))} only, got device={device!r}. Use "
            f"device={devices[0]!r}, or learners that have kernels for {device!r}, such as ChowLiu() for structures, "
            f"MaximumLikelihood() and ConjugateGradient() for parameters."
        )


class MaximumLikelihood(BaseEstimator):
    """Smoothed relative frequencies, in closed form (maximum margin, section 2.1).

    Parameters
    ----------
    alpha : float, default=1.0
        Count added to every cell (a symmetric Dirichlet prior); 1 is Laplace's rule, 0 plain frequencies.
    epsilon : float or None, default=None
        Replace probabilities of zero by this and renormalise, as order-based and maximum-margin learning do
        (they use 1e-5 with ``alpha=0``). A distribution without any sample is uniform.
    shrinkage : float, default=0.0
        Number of samples, spread as the feature's own frequencies, that every distribution of a feature gets on top
        (Friedman, Geiger and Goldszmidt 1997, section 5, who take 5). The class prior gets none.

    Notes
    -----
    With ``n_xh`` the weight of the rows with value x and parents (and class) h, and k the number of values::

        theta_x|h = (n_xh + alpha + shrinkage p(x)) / (n_h + k alpha + shrinkage),   p(x) = sum_h n_xh / sum_h n_h

    With ``alpha=0`` that is Friedman's mixture ``a n_xh / n_h + (1 - a) p(x)`` with ``a = n_h / (n_h + shrinkage)``:
    the fewer rows a distribution has, the more it resembles the feature's distribution without parents.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 1])
    >>> tables = MaximumLikelihood(alpha=1).fit(Structure([-1]), data, np.random.default_rng(0))
    >>> tables.probabilities(0).round(2).tolist()  # rows are values, columns classes
    [[0.67, 0.25], [0.33, 0.75]]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "epsilon": [None, Interval(Real, 0, 1, closed="neither")],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, alpha: float = 1.0, epsilon: float | None = None, shrinkage: float = 0.0) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.shrinkage = shrinkage

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows count for a table where neither the feature nor a parent is missing.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables

        Raises
        ------
        TableMemoryError
            If the tables would need more memory than they may take (8 GiB, or 2 where rows cannot fill them).

        Warns
        -----
        UserWarning
            If the weights of all rows are lost beside ``alpha``.
        """
        self._validate_params()
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples)
        total = float(data.weights.sum())
        if total < _LIGHTEST * self.alpha:
            warnings.warn(
                f"the weights of {data.n_samples:,} rows add up to {total:.3g}, lost beside alpha={self.alpha}: "
                f"nothing is learnt. Multiply the weights by a common factor, or lower alpha.",
                UserWarning,
                stacklevel=2,
            )
        return self.from_counts(layout, layout.count(data.codes, data.y, data.weights, data.device))

    def from_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the tables of counts that are at hand already.

        Parameters
        ----------
        layout : TableLayout
            Where the tables lie.
        counts : ndarray of shape (n_cells,)
            Weighted counts of every cell.

        Returns
        -------
        Tables
        """
        n_values, offset = layout.groups()
        theta = np.empty(layout.n_cells)
        for k, first, last in zip(n_values, offset[:-1], offset[1:], strict=True):
            counted, p = counts[first:last].reshape(k, -1), theta[first:last].reshape(k, -1)
            np.add(counted, float(self.alpha), out=p)
            if self.shrinkage and first:  # the first group is the prior
                p += self.shrinkage * _normalize(counted.sum(axis=1, keepdims=True).astype(np.float64))
            _normalize(p)
            if self.epsilon is not None:
                p[p == 0] = self.epsilon
                p /= p.sum(axis=0)
            log_all(theta[first:last], theta[first:last])
        return Tables(layout, theta)


def _normalize(p: FloatArray) -> FloatArray:
    """Divide every column by its sum, in place; where that is zero, it becomes uniform."""
    total = p.sum(axis=0)
    np.divide(p, total, out=p, where=total > 0)
    p[:, total <= 0] = 1.0 / len(p)
    return p


class BatchLearner(BaseEstimator):
    """Minimise the loss of all rows at once, from the maximum-likelihood start; subclasses name the method.

    Start and search are apart so that cross-tuning can score every iterate, the start among them.

    Weights count rows, 2 is the row twice, as for :class:`MaximumLikelihood`: the start is smoothed, and the first step
    measured, by their sum. Weights of a mean below 1, as of probabilities, count as those of mean 1 in proportion.

    Parameters
    ----------
    loss, max_iter, tol, alpha : as for :class:`ConjugateGradient`
        The loss that None stands for is that of the subclass.
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": "no_validation",  # type: ignore[dict-item]
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }
    #: The loss where ``loss`` is None.
    default_loss: ClassVar[Callable[[], Loss]] = Margin

    def __init__(self, *, loss: Loss | None = None, max_iter: int = 100, tol: float = 1e-6, alpha: float = 1.0) -> None:
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol
        self.alpha = alpha

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows; what they miss is summed out.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If values are missing and cannot be summed out: the parents form a cycle, or tie too many of them together;
            on a device, if any value is missing or the loss is the user's own.
        """
        return self.improve(self.start(structure, data, rng), data)

    def start(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables that the search starts at.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows to count.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables
        """
        self._validate_params()
        return MaximumLikelihood(alpha=self.alpha).fit(structure, data.in_whole_rows(), rng)

    def improve(self, tables: Tables, data: EncodedData, callback: Callable[[Tables], Any] | None = None) -> Tables:
        """Return the tables that the search ends at.

        Parameters
        ----------
        tables : Tables
            Where to start, without probabilities of zero.
        data : EncodedData
            Rows; what they miss is summed out.
        callback : callable, optional
            Called with the tables after every iteration; a true answer ends the search there.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If values are missing and cannot be summed out: the parents form a cycle, or tie too many of them together;
            on a device, if any value is missing or the loss is the user's own.
        """
        self._validate_params()
        loss = check_loss(type(self).default_loss() if self.loss is None else self.loss)
        layout = tables.layout
        objective = (DeviceObjective if data.device == "cuda" else Objective)(layout, data, loss)
        total = float(data.in_whole_rows().weights.sum())

        def sum_of_losses(rho: FloatArray) -> tuple[float, FloatArray]:
            # The sum, because SciPy's first step is at most one gradient long. The mean's gradient is n times shorter,
            # and line searches that start there took 415 evaluations instead of 86 (CG-MM of naive Bayes on usps).
            value, gradient = objective(rho)
            return total * value, total * gradient

        def report(rho: FloatArray) -> Any:
            return callback is not None and callback(Tables(layout, objective.theta(rho)))

        minimize = self._minimizer(layout)
        outcome = minimize(sum_of_losses, tables.cells, max_iter=self.max_iter, tol=total * self.tol, callback=report)
        return Tables(layout, objective.theta(outcome.x))

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return a function like :func:`~tanlearn.optimizers.minimize_cg`."""
        raise NotImplementedError(type(self).__name__)


class ConjugateGradient(BatchLearner):
    """Polak-Ribiere conjugate gradient with line search (maximum margin, section 3 and appendix).

    Starts at the maximum-likelihood tables and keeps every distribution normalised. With ``loss=Margin()`` this
    is CG-MM, with ``loss=ConditionalNLL()`` CG-CL.

    The same rows give the same tables, bit for bit, on the same machine; with more than 10,000 cells also the number of
    threads that BLAS may take must be the same, because SciPy's steps are its sums. Another processor rounds otherwise,
    and iterations enlarge that: after some dozens the tables may be others that are as good.

    Parameters
    ----------
    loss : Loss, optional
        Any loss; ``Margin()`` by default.
    max_iter : int, default=100
        Most iterations; few of them regularise.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of the maximum-likelihood start, positive: the start must be finite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import ConditionalNLL, ConjugateGradient, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=20)).fit(X, y)
    >>> bool(model.score(X, y) >= NaiveBayesClassifier().fit(X, y).score(X, y))
    True
    """

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return the method."""
        return minimize_cg


class LBFGS(BatchLearner):
    """L-BFGS: the same objective and start as :class:`ConjugateGradient`, a limited-memory quasi-Newton method.

    What is said there of bits and machines holds here too.

    Parameters
    ----------
    loss : Loss, optional
        Any loss; ``Margin()`` by default.
    max_iter : int, default=100
        Most iterations; few of them regularise.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of the maximum-likelihood start, positive: the start must be finite.

    References
    ----------
    Liu, Nocedal: On the limited memory BFGS method for large scale optimization. Mathematical Programming 45, 1989.

    Byrd, Lu, Nocedal, Zhu: A limited memory algorithm for bound constrained optimization. SIAM Journal on Scientific
    Computing 16, 1995 (SciPy's, here without bounds).

    Examples
    --------
    >>> from tanlearn import LBFGS, ConditionalNLL
    >>> LBFGS(loss=ConditionalNLL(), max_iter=30)
    LBFGS(loss=ConditionalNLL(), max_iter=30)
    """

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return the method."""
        return minimize_lbfgs


class StochasticGradient(BaseEstimator):
    """Adam on mini-batches for a fixed structure: gradient TAN without its structure part.

    Parameters
    ----------
    loss : Loss, optional
        Any loss; ``Hybrid()`` by default.
    learning_rate : float, default=0.01
        Adam's rate at the start; it falls exponentially to a thousandth.
    n_epochs : int, default=100
        Passes over the data.
    batch_size : int, default=100
        Rows a step.
    init : {"uniform", "maximum-likelihood"}, default="maximum-likelihood"
        Where the parameters start.
    dtype : {"float32", "float64"}, default="float32"
        Type of the parameters while training.
    bits : int or tuple of (int, int), optional
        Train for tables of so few bits a number (resource-efficient BNs, III), as for
        :class:`~tanlearn.TANClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import Hybrid, NaiveBayesClassifier, StochasticGradient
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = StochasticGradient(loss=Hybrid(trade_off=100, gamma=1), learning_rate=0.1)
    >>> bool(NaiveBayesClassifier(parameters=learner, random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": "no_validation",  # type: ignore[dict-item]
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"uniform", "maximum-likelihood"})],
        "dtype": [StrOptions({"float32", "float64"})],
        "bits": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        learning_rate: float = 0.01,
        n_epochs: int = 100,
        batch_size: int = 100,
        init: str = "maximum-likelihood",
        dtype: str = "float32",
        bits: Any = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.init = init
        self.dtype = dtype
        self.bits = bits

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows; what they miss is summed out.
        rng : numpy.random.Generator
            Where the start and the order of the rows come from.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If values are missing and cannot be summed out: the parents form a cycle, or tie too many of them together.
        FloatingPointError
            If training diverges.
        """
        self._validate_params()
        settings = TrainingSettings(
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            init=self.init,
            dtype=self.dtype,
        )
        loss = check_loss(Hybrid() if self.loss is None else self.loss)
        return train_in_bits(self.bits, data, CandidateSets.of_structure(structure), loss, settings, rng).tables
