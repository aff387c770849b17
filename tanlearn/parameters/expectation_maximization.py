"""Expectation maximisation: maximum-likelihood tables of a fixed structure from rows with missing values.

Dempster, Laird and Rubin (1977). An iteration counts every row as its completions, each with its probability, and takes
the smoothed frequencies of these counts; the likelihood of what is observed, times the prior that smoothing stands for,
never falls.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.gaps import IncompleteRows
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["ExpectationMaximization"]


class ExpectationMaximization(BaseEstimator):
    """Maximum likelihood of all that is observed, in rows with missing values.

    :class:`~tanlearn.MaximumLikelihood` leaves out families that miss something, which is right if values are missing
    completely at random; this learner also where it depends on what is observed which values are. Without missing
    values both are the same.

    Parameters
    ----------
    alpha : float, default=1.0
        Count added to every cell, as in :class:`~tanlearn.MaximumLikelihood`.
    max_iter : int, default=100
        Most iterations. Few of them regularise, so nothing warns of an end before convergence; ``converged_`` tells.
    tol : float, default=1e-6
        Stop when the mean log-likelihood of a row grows by less, in nats.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.
    verbose : int, default=0
        1 prints every iteration.

    Attributes
    ----------
    n_iter_ : int
        How often the tables were estimated anew; 0 if no row that counts misses anything.
    converged_ : bool
        Whether it stopped because of ``tol``; true also if there was nothing to iterate for.
    history_ : list of float
        At the start and after every iteration, the mean log-likelihood of a row (its class and what is observed of it)
        plus the logarithm of the Dirichlet prior, ``alpha`` times the sum of all log-probabilities, over the weight of
        the rows. An iteration computes that of the one before, so after ``max_iter`` of them the last value is missing.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    n_iter_: int
    converged_: bool
    history_: list[float]

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
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows with or without missing values.
        rng : numpy.random.Generator
            Not used: it starts at the tables of :class:`~tanlearn.MaximumLikelihood`, smoothed.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If values are missing and cannot be summed out: the parents form a cycle, or tie too many of them together.
        TableMemoryError
            If the tables would need more memory than they may take (8 GiB, or 2 where rows cannot fill them).
        """
        self._validate_params()
        learner = MaximumLikelihood(alpha=self.alpha)
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        self.n_iter_, self.converged_, self.history_ = 0, True, []
        is_incomplete = data.is_incomplete
        rows = np.flatnonzero(is_incomplete & (data.weights > 0))
        if not len(rows):
            return learner.fit(structure, data, rng)
        # What starts at zero stays there, so the start is smoothed in any case.
        tables = MaximumLikelihood(alpha=self.alpha or 1.0).fit(structure, data, rng)
        complete = data.take(~is_incomplete)
        known = layout.count(complete.codes, complete.y, complete.weights)
        indicators = np.zeros((len(rows), data.n_classes))
        indicators[np.arange(len(rows)), data.y[rows]] = data.weights[rows]
        incomplete = IncompleteRows(structure, layout, data.codes[:, rows])
        for iteration in range(1, self.max_iter + 1):
            scores = incomplete.log_joint(tables.cells, n_jobs=self.n_jobs)
            likelihood = self._likelihood(tables.cells, known, scores, indicators) / float(data.weights.sum())
            gain = likelihood - self.history_[-1] if self.history_ else np.inf
            self.history_.append(likelihood)
            if self.verbose:
                print(f"iteration {iteration}: mean log-likelihood {likelihood:.6f}")  # noqa: T201
            self.converged_ = gain < self.tol
            if self.converged_:
                break
            expected = incomplete.log_joint_adjoint(tables.cells, indicators, n_jobs=self.n_jobs)
            tables = learner.from_counts(layout, known + expected)
            self.n_iter_ = iteration
        return tables

    def _likelihood(self, cells: FloatArray, known: FloatArray, scores: FloatArray, indicators: FloatArray) -> float:
        """Return the log-likelihood of complete rows, by their counts, and of incomplete ones, and the prior."""
        weight = known + self.alpha
        used = weight > 0  # with alpha = 0 an empty cell may be -inf
        observed = (scores[indicators > 0] * indicators[indicators > 0]).sum()
        return float((weight[used] * cells[used]).sum() + observed)
