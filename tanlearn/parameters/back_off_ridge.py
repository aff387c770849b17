"""CPTs as sums of terms with zero, one or more parents, and a ridge penalty on the higher-order terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.tables import Tables
from tanlearn.parameters.batch_gradient import BatchLearner
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.cpt_terms import CPTTerms
from tanlearn.training.losses import ConditionalNLL, Loss, Margin
from tanlearn.training.optimizers import OptimizeOutcome, minimize_lbfgs

__all__ = ["BackOffRidge"]

#: Default candidates, from which one is selected on held-out rows. With KDB-2 on the published splits of letter, usps
#: and satimage, the lowest test errors were 7.6, 3.2 and 8.3 % with the margin loss, for ridges of 0.003, 0.003 and
#: 0.03 (20 to 60 iterations), and 8.1, 4.0 and 11.3 % with conditional likelihood, for ridges of 0.3, 0.003 and any
#: value.
RIDGES = (0.003, 0.03, 0.3)
LOSSES: tuple[Loss, ...] = (ConditionalNLL(), Margin())
#: Factor for the penalty per additional parent. A term with an additional parent has about ten times as many
#: parameters, each with fewer rows.
DEEPER = 10.0
#: Largest absolute value that counts as a rounding error of a term that is 0 at the start.
SMALL = 1e-9


class BackOffRidge(BatchLearner):
    """CPTs trained by gradient that back off to fewer parents because of a ridge penalty.

    The log parameters of a CPT are a normalized sum of terms, one for each subset of its parents. With two parents,
    ``rho(x | y, p, q) = w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. L-BFGS minimizes the sum of the losses of
    all rows plus ``ridge / 2 * (|w_1|^2 + 10 |w_2|^2 + 100 |w_3|^2 ...)``, where w_k are the terms with k parents. w(x,
    y) and the class prior have no penalty. For a rare combination of parent values, the estimate is therefore close to
    the sum of the simpler terms. CPTs with independent entries would overfit more with each additional parent. The
    search starts at naive Bayes. The method is not from a paper.

    Parameters
    ----------
    ridge : float, optional
        Weight of the penalty relative to the sum of the losses of all rows, at least 0. By default, 0.003, 0.03 or 0.3
        is selected on held-out rows.
    loss : Loss, optional
        Any loss. By default, ``ConditionalNLL()`` or ``Margin()`` is selected on held-out rows.
    max_iter : int, optional
        Maximum number of iterations. By default, the number of iterations, at most 100, is selected on held-out rows,
        as in :class:`~tanlearn.LBFGS`.
    tol : float, default=1e-6
        Training stops if no entry of the gradient of the mean loss has an absolute value above ``tol``.
    alpha : float, default=1.0
        Smoothing count of the naive Bayes frequencies at the start, above 0.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on held-out rows: cross-validation folds, or one fifth of the
        rows of large data.
    epsilon : float, optional
        If it is set, training starts at unsmoothed frequencies with zeros replaced by this value, and ``alpha`` is not
        used. By default, training starts at frequencies smoothed by ``alpha``.

    Attributes
    ----------
    ridge_ : float
        The ridge of the final fit.
    loss_ : Loss
        The loss of the final fit.
    n_iter_ : int
        Number of iterations performed.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    converged_ : bool
        Whether the search ended because of ``tol``.
    history_ : list of Iteration
        Mean loss per row, including its contribution to the ridge penalty, at the start and after each iteration.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BackOffRidge, BayesNetClassifier
    >>> from tanlearn.baselines import KDependence
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesNetClassifier(structure=KDependence(k=2), parameters=BackOffRidge()).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "ridge": [None, Interval(Real, 0, None, closed="left")],
    }

    ridge_: float
    loss_: Loss

    def __init__(
        self,
        *,
        ridge: float | None = None,
        loss: Loss | None = None,
        max_iter: int | None = None,
        tol: float = 1e-6,
        alpha: float = 1.0,
        calibrate: bool = True,
        epsilon: float | None = None,
    ) -> None:
        super().__init__(loss=loss, max_iter=max_iter, tol=tol, alpha=alpha, calibrate=calibrate, epsilon=epsilon)
        self.ridge = ridge

    def start(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the start of the search: naive Bayes as CPTs of the structure.

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
        plain = super().start(Structure.naive_bayes(data.n_features), data, rng)
        return _spread(plain, TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))

    def _start_of_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return naive Bayes as CPTs of the structure, from the counts of its families."""
        terms, plain = CPTTerms(layout), TableLayout.of_features(layout.n_states, layout.n_classes)
        sums = terms.pull_back(counts)[terms.n_parents == 0]
        return _spread(self._frequencies().from_counts(plain, sums), layout)

    def _rivals(self) -> Sequence[BackOffRidge]:
        """Return the candidates for the selection on held-out rows."""
        losses = LOSSES if self.loss is None else (self.loss,)
        ridges = RIDGES if self.ridge is None else (self.ridge,)
        return [clone(self).set_params(loss=loss, ridge=ridge) for loss in losses for ridge in ridges]

    def _take(self, rival: Any) -> None:
        """Copy the loss and the ridge of the selected candidate."""
        self.loss_, self.ridge_ = rival.loss, rival.ridge

    def _loss(self) -> Loss:
        """Return the loss that was set or selected, or the first candidate before a selection."""
        if self.loss is not None:
            return self.loss
        chosen: Loss = getattr(self, "loss_", None) or LOSSES[0]
        return chosen

    def _minimizer(self, layout: TableLayout, data: EncodedData | None) -> Callable[..., OptimizeOutcome]:
        """Return a function that minimizes, over the terms, an objective of the CPT entries plus the ridge penalty.

        Terms for parent values that do not occur in ``data`` have no gradient except that of their penalty. If they are
        0 at the start, they stay 0 and are left out of the search. On segment, these are three out of four parameters.
        """
        terms = CPTTerms(layout)
        ridge = getattr(self, "ridge_", RIDGES[1]) if self.ridge is None else self.ridge
        ridges = np.where(terms.n_parents > 0, ridge * DEEPER ** (terms.n_parents - 1.0), 0.0)

        def minimize(
            function: Callable[[FloatArray], tuple[float, FloatArray]],
            cells: FloatArray,
            *,
            max_iter: int,
            tol: float,
            callback: Callable[[FloatArray], Any],
        ) -> OptimizeOutcome:
            every = terms.from_cells(cells)
            free = np.arange(len(every))
            if data is not None and not data.has_missing:
                free = np.flatnonzero((terms.pull_back(_in_rows(layout, data)) > 0) | (np.abs(every) > SMALL))
            free_ridges = ridges[free]

            def cells_of(parameters: FloatArray) -> FloatArray:
                every[free] = parameters
                return terms.cells(every)

            def of_parameters(parameters: FloatArray) -> tuple[float, FloatArray]:
                value, d_cells = function(cells_of(parameters))
                pull = free_ridges * parameters
                return value + float((pull * parameters).sum()) / 2, terms.pull_back(d_cells)[free] + pull

            outcome = minimize_lbfgs(
                of_parameters,
                every[free],
                max_iter=max_iter,
                tol=tol,
                callback=lambda parameters: callback(cells_of(parameters)),
            )
            return outcome._replace(x=cells_of(outcome.x))

        return minimize


def _in_rows(layout: TableLayout, data: EncodedData) -> FloatArray:
    """Return 1 for CPT entries (n_cells,) whose parent values occur in a complete row with a weight, otherwise 0."""
    counts = layout.count(data.codes, data.y, data.weights)
    flags = np.ones(layout.n_cells)
    for t in range(layout.n_tables):
        own = slice(layout.offset[t], layout.offset[t + 1])
        table = counts[own].reshape(layout.shape(t))
        flags[own].reshape(table.shape)[...] = table.sum(axis=(0, -1), keepdims=True) > 0
    return flags


def _spread(plain: Tables, layout: TableLayout) -> Tables:
    """Return CPTs in the given layout that are equal to ``plain``, CPTs without parents, for all parent values."""
    terms = CPTTerms(layout)
    parameters = np.zeros(len(terms.n_parents))
    parameters[terms.n_parents == 0] = plain.cells
    return Tables(layout, terms.cells(parameters))
