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
from tanlearn.parameters.held_out_selection import after_iterations
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.cpt_terms import CPTTerms
from tanlearn.training.lbfgs import minimize_without_bounds
from tanlearn.training.losses import ConditionalNLL, Loss, Margin, require_loss
from tanlearn.training.objectives import Objective
from tanlearn.training.observed_terms import ObservedTerms
from tanlearn.training.optimizers import OptimizeOutcome
from tanlearn.training.parametrizations import Normalized

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
#: Number of steps that approximate the curvature, up to this number of parameters, and with more of them, which saves
#: memory. With 5 steps, the log loss on krkopt was 0.008 nats higher (two folds), and a fit as long.
N_STEPS, FEW_PARAMETERS, N_STEPS_MANY = 10, 200_000, 5
#: Maximum number of rows at which only the terms of observed parent values are searched: codes of the combinations of
#: values have 16 bits.
MOST_CONTEXTS = 65_000


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
        Training stops when all entries of the gradient of the mean loss are at most ``tol`` in absolute value.
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

    def _minimize(
        self,
        tables: Tables,
        objective_of: Callable[[Loss], Any],
        total: float,
        callback: Callable[[Tables], Any] | None,
        n_iter: int,
        data: EncodedData | None,
    ) -> tuple[OptimizeOutcome, Tables]:
        """Minimize the sum of the losses plus the ridge penalty over the terms.

        Terms for parent values that do not occur in ``data`` have no gradient except that of their penalty. If they are
        0 at the start, they stay 0 and are left out of the search. On segment, these are three out of four parameters.
        """
        loss, layout = require_loss(self._loss()), tables.layout
        all_terms, normalized = CPTTerms(layout), Normalized(layout)
        start = all_terms.from_cells(tables.cells)
        terms: CPTTerms | ObservedTerms = all_terms
        positions: Any = slice(None)
        observed = None if data is None else _observed_terms(layout, data, start)
        if observed is None:
            objective = objective_of(loss)
        else:
            terms, positions = observed, observed.positions
            objective = Objective(observed.layout, observed.rows, loss)
        ridge = getattr(self, "ridge_", RIDGES[1]) if self.ridge is None else self.ridge
        ridges = np.where(terms.n_parents > 0, ridge * DEEPER ** (terms.n_parents - 1.0), 0.0)

        pull = np.empty_like(ridges)

        def of_terms(parameters: FloatArray) -> tuple[float, FloatArray]:
            value, d_cells = objective(terms.cells(parameters))
            gradient = terms.pull_back(d_cells)
            gradient *= total
            gradient += np.multiply(ridges, parameters, out=pull)
            return total * value + float(pull @ parameters) / 2, gradient

        def tables_of(parameters: FloatArray) -> Tables:
            start[positions] = parameters
            return Tables(layout, normalized.forward(all_terms.cells(start)))

        report = after_iterations(callback, tables_of)
        n_steps = N_STEPS if len(ridges) <= FEW_PARAMETERS else N_STEPS_MANY
        outcome = minimize_without_bounds(
            of_terms, start[positions], max_iter=n_iter, tol=total * self.tol, callback=report, n_steps=n_steps
        )
        return outcome, tables_of(outcome.x)


def _observed_terms(layout: TableLayout, data: EncodedData, start: FloatArray) -> ObservedTerms | None:
    """Return the terms for the parent values of the rows; None if others are needed, too.

    Values of parents are missing in some row, other terms do not start at 0, or there are too many combinations.
    """
    if data.has_missing or data.device != "cpu" or data.n_samples > MOST_CONTEXTS:
        return None
    terms = ObservedTerms(layout, data)
    is_other = np.ones(len(start), bool)
    is_other[terms.positions] = False
    return None if (np.abs(start[is_other]) > SMALL).any() else terms


def _spread(plain: Tables, layout: TableLayout) -> Tables:
    """Expand ``plain``, which has no parents, to the given layout: the entries are the same for all parent values."""
    terms = CPTTerms(layout)
    parameters = np.zeros(len(terms.n_parents))
    parameters[terms.n_parents == 0] = plain.cells
    return Tables(layout, terms.cells(parameters))
