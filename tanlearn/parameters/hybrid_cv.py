"""Parameters between frequencies, conditional likelihood and margin, wherever held-out rows want them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.parameters.batch import LBFGS
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out import choose, held_out_parts, looks
from tanlearn.training.losses import Loss, SoftHybrid

__all__ = ["HybridCV"]

#: What held-out rows choose from: near likelihood, near conditional likelihood, and with margins in between.
LOSSES = (
    SoftHybrid(trade_off=1),
    SoftHybrid(trade_off=1000),
    SoftHybrid(trade_off=10, eta=0.3),
    SoftHybrid(trade_off=100, gamma=10),
)


class HybridCV(BaseEstimator):
    """L-BFGS from the frequencies on, with the loss and the number of iterations that held-out rows choose.

    No loss is right for every table: what can be learnt without error wants conditional likelihood or margin to the
    end, what is few and noisy wants hardly more than frequencies. So every loss is followed on folds, and its iterates
    classify the rows left out. Of all whose error is within half a standard error of the least, the one is taken that
    gives the classes the best probabilities, and all rows are learnt with it. The same held-out rows tell by which
    temperature scores are to be divided.

    Parameters
    ----------
    losses : sequence of Loss, optional
        What to choose from; by default four of :class:`~tanlearn.SoftHybrid`.
    max_iter : int, default=100
        Most iterations.
    cv : int or float, optional
        Number of folds, or the share of rows that is held out once. By default five folds of less than 2,000 rows, three
        of less than 10,000, and a fifth of more.
    alpha : float, default=1.0
        Smoothing of the frequencies.
    calibrate : bool, default=True
        Whether classifiers divide scores by the temperature, for probabilities.
    n_jobs : int, optional
        Threads, one a loss and fold, as in joblib. Results do not depend on it.
    verbose : int, default=0
        1 prints what was chosen.

    Attributes
    ----------
    loss_ : Loss
        The loss chosen.
    best_n_iter_ : int
        The number of iterations chosen; 0 is the maximum-likelihood start.
    best_score_ : float
        Their held-out classification rate.
    best_index_ : int
        Row of the loss in ``cv_results_``.
    best_params_ : dict
        The loss by its name, as in ``cv_results_``.
    cv_results_ : dict
        As in scikit-learn, for every loss at its best number of iterations: ``params``, ``param_loss``,
        ``split<k>_test_score``, ``mean_test_score`` (of all rows), ``std_test_score``, ``rank_test_score``; and
        ``best_n_iter``, this number, and ``mean_log_loss``, at the best temperature.
    temperature_ : float
        What scores are to be divided by; 1 without ``calibrate``.
    n_iter_ : int
        Iterations on all rows: those chosen, or fewer if the search ended before.
    converged_ : bool
        Whether these ended because the gradient vanished.
    history_ : list of float
        Mean loss of a row at the start and after each of them; empty where the start itself was chosen.

    See Also
    --------
    tanlearn.CrossTuned : The same for settings of any batch learner, by classification rate alone, as published.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import HybridCV, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier(parameters=HybridCV(), random_state=0).fit(X, y)
    >>> model.parameters_.best_score_ > 0.9, model.temperature_ > 0
    (True, True)
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "losses": [None, list, tuple],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cv": [None, Interval(Integral, 2, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "calibrate": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    loss_: Loss
    best_n_iter_: int
    best_score_: float
    best_index_: int
    best_params_: dict[str, Any]
    cv_results_: dict[str, Any]
    temperature_: float
    n_iter_: int
    converged_: bool
    history_: list[float]

    def __init__(
        self,
        *,
        losses: Sequence[Loss] | None = None,
        max_iter: int = 100,
        cv: float | None = None,
        alpha: float = 1.0,
        calibrate: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.losses = losses
        self.max_iter = max_iter
        self.cv = cv
        self.alpha = alpha
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows; what they miss is summed out.
        rng : numpy.random.Generator
            Where the held-out rows come from.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be summed out, there is one class or one row only, or fewer rows than folds.
        """
        self._validate_params()
        return self.fit_on_parts(structure, data, held_out_parts(data, self.cv, rng), rng)

    def fit_on_parts(
        self,
        structure: Structure,
        data: EncodedData,
        parts: Sequence[tuple[EncodedData, EncodedData]],
        rng: np.random.Generator,
    ) -> Tables:
        """Return the tables of a structure, where it is said which rows are held out.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows to learn from in the end.
        parts : sequence of (EncodedData, EncodedData)
            Rows to learn from, and rows to look at.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            As :meth:`fit`.
        """
        self._validate_params()
        losses = LOSSES if self.losses is None else self.losses
        if not len(losses) or not len(parts):
            raise ValueError(
                f"losses are chosen on rows that are held out: there must be a loss and two rows of positive weight, got "
                f"losses={losses!r} and {np.count_nonzero(data.weights)} row(s). Use MaximumLikelihood() for so few."
            )
        learners = [
            LBFGS(loss=loss, max_iter=self.max_iter, alpha=self.alpha, calibrate=False) for loss in losses
        ]
        choice = choose(learners, structure, parts, rng, iterations=looks(self.max_iter), n_jobs=self.n_jobs)
        self._keep(choice, losses)
        if self.verbose:
            print(  # noqa: T201
                f"chosen on held-out rows: {self.loss_!r}, {self.best_n_iter_} iterations, temperature "
                f"{choice.temperature:.2f}; held-out error {1 - self.best_score_:.2%}"
            )
        learner = learners[choice.index]
        tables = learner.improve(learner.start(structure, data, rng), data, n_iter=choice.n_iter)
        self.n_iter_, self.converged_, self.history_ = learner.n_iter_, learner.converged_, learner.history_
        return tables

    def _keep(self, choice: Any, losses: Sequence[Loss]) -> None:
        """Keep what was chosen, and the table of all losses, each where it does best."""
        self.loss_, self.best_n_iter_, self.best_index_ = losses[choice.index], choice.n_iter, choice.index
        self.temperature_ = choice.temperature if self.calibrate else 1.0
        every = np.arange(len(losses))
        look = choice.best_looks
        errors = choice.errors[every, look]
        self.cv_results_ = {
            **cv_results([{"loss": loss} for loss in losses], 1 - choice.split_errors[:, every, look], 1 - errors),
            "best_n_iter": choice.iterations[look],
            "mean_log_loss": choice.log_losses[every, look],
        }
        self.best_params_ = self.cv_results_["params"][choice.index]
        self.best_score_ = float(1 - errors[choice.index])
