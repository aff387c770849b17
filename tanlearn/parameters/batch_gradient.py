"""Batch learners, which minimize the loss over all rows by conjugate gradients or L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.calibration import Calibration
from tanlearn.models.tables import Tables
from tanlearn.parameters.held_out_selection import after_iterations, choose, evaluation_iterations, held_out_parts
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.history import Iteration
from tanlearn.training.losses import Loss, Margin, require_loss
from tanlearn.training.objectives import Objective
from tanlearn.training.optimizers import OptimizeOutcome, minimize_cg, minimize_lbfgs

__all__ = ["LBFGS", "BatchLearner", "ConjugateGradient"]

#: Maximum number of iterations if the number is selected on held-out rows.
MOST_ITERATIONS = 100


class BatchLearner(BaseEstimator):
    """Base class of learners that minimize the loss over all rows, starting from maximum likelihood.

    Start and search are separate methods, so that cross-tuning can score the CPTs after each iteration, including the
    start.

    A row of weight 2 counts twice, as in :class:`MaximumLikelihood`. The sum of the weights determines the smoothing of
    the start and the length of the first step. Weights with a mean below 1 are scaled to mean 1.

    Parameters
    ----------
    loss, max_iter, tol, alpha, calibrate, epsilon : as for :class:`ConjugateGradient`
        The default loss is defined by the subclass.

    Attributes
    ----------
    n_iter_, converged_, history_ : as for :class:`ConjugateGradient`
        Set by :meth:`improve`.
    calibration_ : Calibration
        Set by :meth:`fit`.
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    needs: ClassVar[str] = "gradients"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": "no_validation",  # type: ignore[dict-item]
        "max_iter": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "calibrate": ["boolean"],
        "epsilon": [None, Interval(Real, 0, 1, closed="neither")],
    }
    #: Loss used if ``loss`` is None.
    default_loss: ClassVar[Callable[[], Loss]] = Margin

    n_iter_: int
    converged_: bool
    history_: list[Iteration]
    calibration_: Calibration

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        max_iter: int | None = None,
        tol: float = 1e-6,
        alpha: float = 1.0,
        calibrate: bool = True,
        epsilon: float | None = None,
    ) -> None:
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol
        self.alpha = alpha
        self.calibrate = calibrate
        self.epsilon = epsilon

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows; missing values are marginalized.
        rng : numpy.random.Generator
            Not used, because the result is deterministic. The same data always have the same held-out rows.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, because the parents form a cycle or a row would take more than 1e9
            operations (or ``TANLEARN_MAX_ROW_OPERATIONS``). On CUDA, if a value is missing or the loss is custom.
        """
        self._validate_params()
        n_iter = self._choose_on_held_out_rows(structure, lambda: data)
        return self.improve(self.start(structure, data, rng), data, n_iter=n_iter)

    def from_objective(self, structure: Structure, layout: TableLayout, counts: FloatArray, rows: Any) -> Tables:
        """Fit the CPTs of a structure to rows that are not in memory.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        layout : TableLayout
            Layout of the CPTs of the structure.
        counts : ndarray of shape (n_cells,)
            Weighted counts of all CPT entries, from which the start is computed.
        rows : object
            Object with ``n_samples``, the number of rows of nonzero weight; ``sample``, some of these rows, for
            selection and calibration; and ``objective(layout, loss)``, which returns the mean loss of all rows.

        Returns
        -------
        Tables
            CPTs that are equal to the result of :meth:`fit` up to rounding, if no setting is selected on held-out rows.

        Raises
        ------
        ValueError
            As in :meth:`fit`.
        """
        self._validate_params()
        n_iter = self._choose_on_held_out_rows(structure, lambda: rows.sample)
        weight = float(counts[: layout.n_classes].sum())
        total = max(weight, float(rows.n_samples))  # as in in_whole_rows
        start = self._start_of_counts(layout, counts * (total / weight))
        return self._search(start, lambda loss: rows.objective(layout, loss), total, None, n_iter)

    def _start_of_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the CPTs at the start of the search, from counts of whole rows."""
        return self._frequencies().from_counts(layout, counts)

    def _frequencies(self) -> MaximumLikelihood:
        """Return the learner of the CPTs at the start."""
        if self.epsilon is None:
            return MaximumLikelihood(alpha=self.alpha)
        return MaximumLikelihood(alpha=0, epsilon=self.epsilon)

    def _rivals(self) -> Sequence[BatchLearner]:
        """Return the candidates for the selection on held-out rows."""
        return [self]

    def _take(self, rival: Any) -> None:
        """Copy the settings of the selected candidate."""

    def _choose_on_held_out_rows(self, structure: Structure, rows: Callable[[], EncodedData]) -> int | None:
        """Select unset settings and the number of iterations on held-out rows, and calibrate on these rows.

        Returns the number of iterations, or None if it must be selected but there are too few rows for held-out rows.
        """
        self.calibration_, n_iter, rivals = Calibration(), self.max_iter, self._rivals()
        self._take(rivals[0])
        parts = held_out_parts(rows()) if n_iter is None or self.calibrate or len(rivals) > 1 else []
        if parts:
            iterations = evaluation_iterations(MOST_ITERATIONS) if n_iter is None else [n_iter]
            choice = choose(rivals, structure, parts, iterations=iterations)
            self._take(rivals[choice.index])
            n_iter = choice.n_iter
            if self.calibrate:
                self.calibration_ = choice.calibration
        return n_iter

    def start(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the CPTs at the start of the search.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables
        """
        self._validate_params()
        return self._frequencies().fit(structure, data.in_whole_rows(), rng)

    def improve(
        self,
        tables: Tables,
        data: EncodedData,
        callback: Callable[[Tables], Any] | None = None,
        *,
        n_iter: int | None = None,
    ) -> Tables:
        """Minimize the loss, starting from given CPTs, and return the final CPTs.

        Parameters
        ----------
        tables : Tables
            Initial CPTs, without zero probabilities.
        data : EncodedData
            Training rows; missing values are marginalized.
        callback : callable, optional
            Function that is called with the CPTs after each iteration. If it returns True, the training ends.
        n_iter : int, optional
            Maximum number of iterations, at least 0. The default is ``max_iter``, or 100 if ``max_iter`` is None.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, because the parents form a cycle or a row would take more than 1e9
            operations (or ``TANLEARN_MAX_ROW_OPERATIONS``). On CUDA, if a value is missing or the loss is custom.
        """
        self._validate_params()
        total = float(data.in_whole_rows().weights.sum())
        return self._search(tables, lambda loss: Objective(tables.layout, data, loss), total, callback, n_iter, data)

    def _search(
        self,
        tables: Tables,
        objective_of: Callable[[Loss], Any],
        total: float,
        callback: Callable[[Tables], Any] | None,
        n_iter: int | None,
        data: EncodedData | None = None,
    ) -> Tables:
        """Minimize the loss from given CPTs. ``total`` is the total weight of the rows, ``data`` or elsewhere."""
        if n_iter is None:
            n_iter = MOST_ITERATIONS if self.max_iter is None else self.max_iter
        self.n_iter_, self.converged_, self.history_ = 0, False, []
        if n_iter == 0:
            return tables
        outcome, tables = self._minimize(tables, objective_of, total, callback, n_iter, data)
        self.n_iter_, self.converged_ = outcome.n_iter, outcome.converged
        self.history_ = [replace(iteration, loss=iteration.loss / total) for iteration in outcome.history]
        return tables

    def _minimize(
        self,
        tables: Tables,
        objective_of: Callable[[Loss], Any],
        total: float,
        callback: Callable[[Tables], Any] | None,
        n_iter: int,
        data: EncodedData | None,
    ) -> tuple[OptimizeOutcome, Tables]:
        """Minimize the sum of the losses over the CPT entries; return the outcome and the final CPTs."""
        layout, objective = tables.layout, objective_of(require_loss(self._loss()))

        def sum_of_losses(rho: FloatArray) -> tuple[float, FloatArray]:
            # The sum is minimized, because the length of SciPy's first step is at most the length of the gradient. The
            # gradient of the mean is n times shorter, and line searches then took 415 evaluations instead of 86 (CG-MM
            # with naive Bayes on usps).
            value, gradient = objective(rho)
            return total * value, total * gradient

        def tables_of(rho: FloatArray) -> Tables:
            return Tables(layout, objective.theta(rho))

        minimize, report = self._minimizer(layout), after_iterations(callback, tables_of)
        outcome = minimize(sum_of_losses, tables.cells, max_iter=n_iter, tol=total * self.tol, callback=report)
        return outcome, tables_of(outcome.x)

    def _loss(self) -> Loss:
        """Return the loss, or the default loss if it is None."""
        return type(self).default_loss() if self.loss is None else self.loss

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return a minimizer with the signature of :func:`~tanlearn.training.optimizers.minimize_cg`."""
        raise NotImplementedError(type(self).__name__)


class ConjugateGradient(BatchLearner):
    """Polak-Ribiere conjugate gradients with line search (maximum margin, section 3 and appendix).

    The search starts from the maximum-likelihood CPTs and keeps every distribution normalized. With ``loss=Margin()``,
    the method is CG-MM, and with ``loss=ConditionalNLL()``, it is CG-CL.

    The same rows give the same CPTs, bit for bit, on the same machine. The steps of SciPy are
    computed with one BLAS thread. Other processors may round differently, and iterations amplify rounding differences.
    After dozens of iterations, the CPTs may differ, but their losses are similar.

    Parameters
    ----------
    loss : Loss, optional
        Any loss. The default is ``Margin()``.
    max_iter : int, optional
        Maximum number of iterations. By default, the number of iterations, at most 100, is selected on held-out rows.
        The selected number has the lowest log loss among all numbers with an error within one standard error of the
        lowest error. Few iterations reduce overfitting, so no warning is issued if the maximum is reached. See
        ``converged_``.
    tol : float, default=1e-6
        Training stops when all entries of the gradient of the mean loss are at most ``tol`` in absolute value.
    alpha : float, default=1.0
        Smoothing count of the maximum-likelihood start. It must be positive, so that the start is finite.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on held-out rows: cross-validation folds, or one fifth of the
        rows of large data. The final CPTs are fitted to all rows.
    epsilon : float, optional
        If it is set, training starts at unsmoothed frequencies with zeros replaced by this value (1e-5 in the paper),
        and ``alpha`` is not used. By default, training starts at frequencies smoothed by ``alpha``.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations performed.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    converged_ : bool
        Whether the search ended because of ``tol``.
    history_ : list of Iteration
        Mean loss per row at the start and after each iteration, weighted as in the search.

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
        """Return the conjugate gradient minimizer."""
        return minimize_cg


class LBFGS(BatchLearner):
    """L-BFGS, a limited-memory quasi-Newton method, with the same objective and start as :class:`ConjugateGradient`.

    The notes on reproducibility in :class:`ConjugateGradient` also apply to this class.

    Parameters
    ----------
    loss : Loss, optional
        Any loss. The default is ``Margin()``.
    max_iter : int, optional
        Maximum number of iterations. By default, the number of iterations, at most 100, is selected on held-out rows.
        The selected number has the lowest log loss among all numbers with an error within one standard error of the
        lowest error. Few iterations reduce overfitting, so no warning is issued if the maximum is reached. See
        ``converged_``.
    tol : float, default=1e-6
        Training stops when all entries of the gradient of the mean loss are at most ``tol`` in absolute value.
    alpha : float, default=1.0
        Smoothing count of the maximum-likelihood start. It must be positive, so that the start is finite.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on held-out rows: cross-validation folds, or one fifth of the
        rows of large data. The final CPTs are fitted to all rows.
    epsilon : float, optional
        If it is set, training starts at unsmoothed frequencies with zeros replaced by this value, and ``alpha`` is not
        used. By default, training starts at frequencies smoothed by ``alpha``.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations performed.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    converged_ : bool
        Whether the search ended because of ``tol``.
    history_ : list of Iteration
        Mean loss per row at the start and after each iteration, weighted as in the search.

    References
    ----------
    Liu, Nocedal: On the limited memory BFGS method for large scale optimization. Mathematical Programming 45, 1989.

    Byrd, Lu, Nocedal, Zhu: A limited memory algorithm for bound constrained optimization. SIAM Journal on Scientific
    Computing 16, 1995 (SciPy's implementation, used without bounds).

    Examples
    --------
    >>> from tanlearn import LBFGS, ConditionalNLL
    >>> LBFGS(loss=ConditionalNLL(), max_iter=30)
    LBFGS(loss=ConditionalNLL(), max_iter=30)
    """

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return the L-BFGS minimizer."""
        return minimize_lbfgs
