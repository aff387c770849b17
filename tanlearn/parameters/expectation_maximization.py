"""Expectation maximization: maximum-likelihood CPTs for a fixed structure and rows with missing values.

The method is from Dempster, Laird and Rubin (1977). In each iteration, the expected counts over the completions of each
row are computed, and the CPTs are estimated as their smoothed frequencies. The likelihood of the observed values, times
the prior implied by the smoothing, never decreases.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._progress import print_line
from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.incomplete_rows import IncompleteRows
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.history import Iteration, Stopwatch

__all__ = ["ExpectationMaximization"]


class ExpectationMaximization(BaseEstimator):
    """Maximum likelihood of the observed values, for rows with missing values.

    :class:`~tanlearn.MaximumLikelihood` omits families with a missing value, which is consistent if values are missing
    completely at random. This learner is also consistent if values are missing at random, that is, if the probability
    that a value is missing depends only on observed values. Without missing values, both learners give the same CPTs.

    Parameters
    ----------
    alpha : float, default=1.0
        Count added to each CPT entry, as in :class:`~tanlearn.MaximumLikelihood`.
    max_iter : int, default=100
        Maximum number of iterations. Few iterations reduce overfitting, so no warning is issued if the maximum is
        reached (see ``converged_``).
    tol : float, default=1e-6
        Training stops if the mean log-likelihood per row increases by less than this number, in nats.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        If 1, one line per iteration is printed.

    Attributes
    ----------
    n_iter_ : int
        Number of updates of the CPTs. It is 0 if no row with positive weight has a missing value.
    converged_ : bool
        Whether the training stopped because of ``tol``, or no iteration was necessary.
    history_ : list of Iteration
        One entry for the start and one for each iteration. The ``score`` of an entry is the penalized log-likelihood
        per row: the log-likelihood of the class and the observed values plus the log Dirichlet prior (``alpha`` times
        the sum of all log-probabilities), divided by the weight of the rows. In each iteration, the score after the
        previous iteration is computed, so the last entry is missing if ``max_iter`` is reached.

    References
    ----------
    Dempster, Laird, Rubin: Maximum likelihood from incomplete data via the EM algorithm. Journal of the Royal
    Statistical Society B 39, 1977.

    Examples
    --------
    >>> from tanlearn import BayesNetClassifier, ExpectationMaximization, Structure
    >>> X = [["a", "u"], ["a", None], ["b", "v"], [None, "v"], ["b", "v"], ["a", "u"]]
    >>> learner = ExpectationMaximization()
    >>> model = BayesNetClassifier(structure=Structure([-1, 0]), parameters=learner).fit(X, [0, 0, 1, 1, 1, 0])
    >>> model.predict([[None, "u"], ["b", None]]).tolist(), model.parameters_.converged_
    ([0, 1], True)
    """

    counts_classes: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    n_iter_: int
    converged_: bool
    history_: list[Iteration]

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows with or without missing values.
        rng : numpy.random.Generator
            Not used, because the start is :class:`~tanlearn.MaximumLikelihood` with smoothing.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, because the parents form a cycle or a row would take more than 1e9
            operations (or ``TANLEARN_MAX_ROW_OPERATIONS``).
        TableMemoryError
            If the CPTs exceed the memory limit.
        """
        self._validate_params()
        learner = MaximumLikelihood(alpha=self.alpha)
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        self.n_iter_, self.converged_, self.history_ = 0, True, []
        stopwatch = Stopwatch()
        is_incomplete = data.is_incomplete
        rows = np.flatnonzero(is_incomplete & (data.weights > 0))
        if not len(rows):
            return learner.fit(structure, data, rng)
        # A probability that is zero at the start stays zero, so the start is always smoothed.
        tables = MaximumLikelihood(alpha=self.alpha or 1.0).fit(structure, data, rng)
        complete = data.take(~is_incomplete)
        known = layout.count(complete.codes, complete.y, complete.weights)
        indicators = np.zeros((len(rows), data.n_classes))
        indicators[np.arange(len(rows)), data.y[rows]] = data.weights[rows]
        incomplete = IncompleteRows(structure, layout, data.codes[:, rows])
        for iteration in range(1, self.max_iter + 1):
            scores = incomplete.log_joint(tables.cells, n_jobs=self.n_jobs)
            likelihood = self._likelihood(tables.cells, known, scores, indicators) / float(data.weights.sum())
            stopwatch.n_evaluations = iteration
            gain = likelihood - self.history_[-1].score if self.history_ else np.inf
            self.history_.append(stopwatch.iteration(iteration - 1, -likelihood))
            if self.verbose:
                print_line(f"iteration {iteration}: mean log-likelihood {likelihood:.6f}")
            self.converged_ = gain < self.tol
            if self.converged_:
                break
            expected = incomplete.log_joint_adjoint(tables.cells, indicators, n_jobs=self.n_jobs)
            tables = learner.from_counts(layout, known + expected)
            self.n_iter_ = iteration
        return tables

    def _likelihood(self, cells: FloatArray, known: FloatArray, scores: FloatArray, indicators: FloatArray) -> float:
        """Return the log-likelihood of complete rows (by their counts) and incomplete rows, plus the log prior."""
        weight = known + self.alpha
        used = weight > 0  # with alpha = 0, an entry without rows may be -inf
        observed = (scores[indicators > 0] * indicators[indicators > 0]).sum()
        return float((weight[used] * cells[used]).sum() + observed)
