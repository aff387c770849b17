"""Learners that minimise the loss of all rows at once: conjugate gradient and L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.calibration import Calibration
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables
from tanlearn.parameters.held_out import choose, held_out_parts, looks
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.training.losses import Loss, Margin, check_loss
from tanlearn.training.objectives import Objective
from tanlearn.training.optimizers import OptimizeOutcome, minimize_cg, minimize_lbfgs

__all__ = ["LBFGS", "BatchLearner", "ConjugateGradient"]

#: Most iterations where held-out rows decide on their number.
MOST_ITERATIONS = 100


class BatchLearner(BaseEstimator):
    """Minimise the loss of all rows at once, from the maximum-likelihood start; subclasses name the method.

    Start and search are apart so that cross-tuning can score every iterate, the start among them.

    Weights count rows, 2 is the row twice, as for :class:`MaximumLikelihood`: the start is smoothed, and the first step
    measured, by their sum. Weights of a mean below 1, as of probabilities, count as those of mean 1 in proportion.

    Parameters
    ----------
    loss, max_iter, tol, alpha, calibrate : as for :class:`ConjugateGradient`
        The loss that None stands for is that of the subclass.

    Attributes
    ----------
    n_iter_, converged_, history_ : as for :class:`ConjugateGradient`
        Set by :meth:`improve`.
    calibration_ : Calibration
        Set by :meth:`fit`.
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": "no_validation",  # type: ignore[dict-item]
        "max_iter": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "calibrate": ["boolean"],
    }
    #: The loss where ``loss`` is None.
    default_loss: ClassVar[Callable[[], Loss]] = Margin

    n_iter_: int
    converged_: bool
    history_: list[float]
    calibration_: Calibration

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        max_iter: int | None = None,
        tol: float = 1e-6,
        alpha: float = 1.0,
        calibrate: bool = True,
    ) -> None:
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol
        self.alpha = alpha
        self.calibrate = calibrate

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows; what they miss is summed out.
        rng : numpy.random.Generator
            Not used: there is nothing random, and the same rows are held out of the same table.

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
        n_iter = self._choose_on_held_out_rows(structure, lambda: data)
        return self.improve(self.start(structure, data, rng), data, n_iter=n_iter)

    def from_objective(self, structure: Structure, layout: TableLayout, counts: FloatArray, rows: Any) -> Tables:
        """Return the tables of a structure, of rows that are not at hand.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        layout : TableLayout
            Its tables.
        counts : ndarray of shape (n_cells,)
            Weighted counts of every cell, for the start.
        rows : object
            With ``n_samples``, the number of rows of non-zero weight; ``sample``, some of them, which are asked what
            held-out rows are otherwise; and ``objective(layout, loss)``, the mean loss of all of them.

        Returns
        -------
        Tables
            The same as of :meth:`fit` but for rounding, where nothing is left to held-out rows.

        Raises
        ------
        ValueError
            As by :meth:`fit`.
        """
        self._validate_params()
        n_iter = self._choose_on_held_out_rows(structure, lambda: rows.sample)
        weight = float(counts[: layout.n_classes].sum())
        total = max(weight, float(rows.n_samples))  # as in_whole_rows does
        start = self._start_of_counts(layout, counts * (total / weight))
        return self._search(start, lambda loss: rows.objective(layout, loss), total, None, n_iter)

    def _start_of_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the tables that the search starts at, of counts of whole rows."""
        return MaximumLikelihood(alpha=self.alpha).from_counts(layout, counts)

    def _rivals(self) -> Sequence[BatchLearner]:
        """Return what held-out rows choose from."""
        return [self]

    def _take(self, rival: Any) -> None:
        """Learn as one of :meth:`_rivals`."""

    def _choose_on_held_out_rows(self, structure: Structure, rows: Callable[[], EncodedData]) -> int | None:
        """Return the number of iterations, chosen on held-out rows if it is open, and calibrate on these."""
        self.calibration_, n_iter, rivals = Calibration(), self.max_iter, self._rivals()
        self._take(rivals[0])
        parts = held_out_parts(rows()) if n_iter is None or self.calibrate or len(rivals) > 1 else []
        if parts:
            iterations = looks(MOST_ITERATIONS) if n_iter is None else [n_iter]
            choice = choose(rivals, structure, parts, iterations=iterations)
            self._take(rivals[choice.index])
            n_iter = choice.n_iter
            if self.calibrate:
                self.calibration_ = choice.calibration
        return n_iter

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

    def improve(
        self,
        tables: Tables,
        data: EncodedData,
        callback: Callable[[Tables], Any] | None = None,
        *,
        n_iter: int | None = None,
    ) -> Tables:
        """Return the tables that the search ends at.

        Parameters
        ----------
        tables : Tables
            Where to start, without probabilities of zero.
        data : EncodedData
            Rows; what they miss is summed out.
        callback : callable, optional
            Called with the tables after every iteration; a true answer ends the search there.
        n_iter : int, optional
            Most iterations, 0 for none; by default ``max_iter``, or 100 where that is None.

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
        total = float(data.in_whole_rows().weights.sum())
        return self._search(tables, lambda loss: Objective(tables.layout, data, loss), total, callback, n_iter)

    def _search(
        self,
        tables: Tables,
        objective_of: Callable[[Loss], Any],
        total: float,
        callback: Callable[[Tables], Any] | None,
        n_iter: int | None,
    ) -> Tables:
        """Search from tables on, of rows that weigh so much in total."""
        if n_iter is None:
            n_iter = MOST_ITERATIONS if self.max_iter is None else self.max_iter
        self.n_iter_, self.converged_, self.history_ = 0, False, []
        if n_iter == 0:
            return tables
        loss = check_loss(self._loss())
        layout = tables.layout
        objective = objective_of(loss)

        def sum_of_losses(rho: FloatArray) -> tuple[float, FloatArray]:
            # The sum, because SciPy's first step is at most one gradient long. The mean's gradient is n times shorter,
            # and line searches that start there took 415 evaluations instead of 86 (CG-MM of naive Bayes on usps).
            value, gradient = objective(rho)
            return total * value, total * gradient

        def report(rho: FloatArray) -> Any:
            return callback is not None and callback(Tables(layout, objective.theta(rho)))

        minimize = self._minimizer(layout)
        outcome = minimize(sum_of_losses, tables.cells, max_iter=n_iter, tol=total * self.tol, callback=report)
        self.n_iter_, self.converged_ = outcome.n_iter, outcome.converged
        self.history_ = [value / total for value in outcome.history]
        return Tables(layout, objective.theta(outcome.x))

    def _loss(self) -> Loss:
        """Return the loss."""
        return type(self).default_loss() if self.loss is None else self.loss

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return a function like :func:`~tanlearn.training.optimizers.minimize_cg`."""
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
    max_iter : int, optional
        Most iterations. By default, held-out rows choose their number, up to 100: of those whose error is within a
        standard error of the least, the one that gives the classes the best probabilities. Few iterations regularise,
        so nothing warns of an end before convergence; ``converged_`` tells.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of the maximum-likelihood start, positive: the start must be finite.
    calibrate : bool, default=True
        Whether held-out rows, on folds or of a large table once a fifth, find a scale by which scores become
        probabilities. All rows are learnt after that.

    Attributes
    ----------
    n_iter_ : int
        Iterations that were done.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    converged_ : bool
        Whether they ended because of ``tol``.
    history_ : list of float
        Mean loss of a row at the start and after every iteration, weighted as in the search.

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
    max_iter : int, optional
        Most iterations. By default, held-out rows choose their number, up to 100: of those whose error is within a
        standard error of the least, the one that gives the classes the best probabilities. Few iterations regularise,
        so nothing warns of an end before convergence; ``converged_`` tells.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of the maximum-likelihood start, positive: the start must be finite.
    calibrate : bool, default=True
        Whether held-out rows, on folds or of a large table once a fifth, find a scale by which scores become
        probabilities. All rows are learnt after that.

    Attributes
    ----------
    n_iter_ : int
        Iterations that were done.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    converged_ : bool
        Whether they ended because of ``tol``.
    history_ : list of float
        Mean loss of a row at the start and after every iteration, weighted as in the search.

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
