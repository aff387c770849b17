"""Parameters between frequencies, conditional likelihood and margin, wherever held-out rows want them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.calibration import Calibration
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.parameters.batch import LBFGS, BatchLearner
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out import Choice, Trained, choose, held_out_parts, looks
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.training.losses import Loss, SoftHybrid

__all__ = ["MINI_BATCH_LOSS", "HybridCV", "default_learners"]

#: By mini-batches: margins wide and soft. Wide tables and many classes want it, and gradient TAN its structure.
MINI_BATCH_LOSS = SoftHybrid(trade_off=30, gamma=10, eta=0.3)
#: In whole: near likelihood, near conditional likelihood, and margin.
LOSSES = SoftHybrid(trade_off=1), SoftHybrid(trade_off=1000), SoftHybrid(trade_off=100, gamma=10)


class HybridCV(BaseEstimator):
    """Parameters by likelihood and margin, with the loss, the method and the length that held-out rows choose.

    No loss is right for every table: what can be learnt without error wants conditional likelihood or margin to the
    end, what is few and noisy wants hardly more than frequencies, and wide tables want margins and mini-batches. So
    L-BFGS follows three losses on folds, and its iterates classify the rows left out, as do the tables that
    mini-batches learn by a fourth. Of all whose error is within a standard error of the least, that one is taken which
    gives the classes the best probabilities, and all rows are learnt so. The same held-out rows tell how scores become
    probabilities.

    Parameters
    ----------
    learners : sequence of ConjugateGradient, LBFGS, ExtendedBaumWelch or StochasticGradient, optional
        What to choose from, each with a loss of its own. The first three are followed along their iterations, of which
        ``max_iter`` stands below, and not in them.
    max_iter : int, default=100
        Most iterations of those that are followed.
    cv : int or float, optional
        Number of folds, or the share of rows that is held out once. By default five folds of up to 300,000 numbers
        (rows times features times classes), three of up to 3,000,000, and a fifth of the rows of larger tables.
    calibrate : bool, default=True
        Whether the held-out rows are used for calibration, too. A temperature divides the log joint, or the evidence of
        the features alone where that has a clearly lower log loss (``EvidenceCalibration``, not for tables of few
        bits). Folds fit their own cut points and, on small data, their own structures where an estimator learns them.
    n_jobs : int, optional
        Threads, one a learner and fold, as in joblib. Results do not depend on it.
    verbose : int, default=0
        1 prints what was chosen.

    Attributes
    ----------
    learner_ : object
        The learner chosen, as it has learnt all rows.
    loss_ : Loss
        Its loss.
    best_n_iter_ : int
        The number of iterations chosen; 0 is the maximum-likelihood start. Of mini-batches, their epochs.
    best_score_ : float
        The held-out classification rate of the joint scores, before calibration.
    best_index_ : int
        Row of the learner in ``cv_results_``.
    best_params_ : dict
        The learner by its name, as in ``cv_results_``.
    cv_results_ : dict
        As in scikit-learn, for every learner at its best number of iterations: ``params``, ``param_learner``,
        ``split<k>_test_score``, ``mean_test_score`` (of all rows), ``std_test_score``, ``rank_test_score``; and
        ``best_n_iter``, this number, and ``mean_log_loss``, at the best temperature.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    n_iter_ : int
        Iterations on all rows: those chosen, or fewer if the search ended before.
    converged_ : bool
        Whether these ended because the gradient vanished.
    history_ : list of float
        Mean loss of a row at the start and after each of them; empty where the start itself was chosen. Of
        mini-batches, the mean loss of every epoch.

    See Also
    --------
    tanlearn.CrossTuned : The same for settings of any batch learner, by classification rate alone, as published.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import HybridCV, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier(parameters=HybridCV(), random_state=0).fit(X, y)
    >>> model.parameters_.best_score_ > 0.9, model.calibration_.temperature > 0
    (True, True)
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learners": [None, list, tuple],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cv": [None, Interval(Integral, 2, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "calibrate": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    learner_: Any
    loss_: Loss
    best_n_iter_: int
    best_score_: float
    best_index_: int
    best_params_: dict[str, Any]
    cv_results_: dict[str, Any]
    calibration_: Calibration
    n_iter_: int
    converged_: bool
    history_: list[float]

    def __init__(
        self,
        *,
        learners: Sequence[Any] | None = None,
        max_iter: int = 100,
        cv: float | None = None,
        calibrate: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learners = learners
        self.max_iter = max_iter
        self.cv = cv
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
            For mini-batches. The same rows are held out of the same table.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be summed out, there is one class or one row only, or fewer rows than folds.
        TypeError
            If a learner is of another kind.
        """
        self._validate_params()
        return self.fit_on_parts(structure, data, held_out_parts(data, self.cv), rng=rng)

    def fit_on_parts(
        self,
        structure: Structure,
        data: EncodedData,
        parts: Sequence[tuple[EncodedData, EncodedData]],
        *,
        rng: np.random.Generator,
        trained: Tables | None = None,
        trained_parts: list[Trained] | None = None,
        structures: Sequence[Structure] | None = None,
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
            For mini-batches.
        trained : Tables, optional
            What the last of the learners has come to already, so that it need not learn all rows again.
        trained_parts : list of Trained, optional
            What the last of the learners has come to on every part, so that it need not learn these either.
        structures : sequence of Structure, optional
            The structures of the parts, learned without their held-out rows; by default ``structure``.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            As :meth:`fit`.
        TypeError
            If a learner is of another kind.
        """
        self._validate_params()
        learners = default_learners() if self.learners is None else [clone(one, safe=False) for one in self.learners]
        if not learners or not parts:
            raise ValueError(
                f"held-out rows choose: there must be a learner and two rows of positive weight, got "
                f"learners={self.learners!r} and {np.count_nonzero(data.weights)} row(s). Use MaximumLikelihood() for "
                f"so few."
            )
        for learner in learners:
            if not isinstance(learner, BatchLearner | StochasticGradient):
                raise TypeError(
                    f"learners must be of ConjugateGradient, LBFGS, ExtendedBaumWelch or StochasticGradient, got "
                    f"{learner!r}. Fit others by themselves."
                )
            learner.set_params(calibrate=False)  # once, below
        competitors = learners if trained_parts is None else [*learners[:-1], trained_parts]
        of_parts = structure if structures is None else structures
        choice = choose(competitors, of_parts, parts, iterations=looks(self.max_iter), n_jobs=self.n_jobs)
        learner = self.learner_ = learners[choice.index]
        if isinstance(learner, BatchLearner):
            tables = learner.improve(learner.start(structure, data, rng), data, n_iter=choice.n_iter)
            self.n_iter_, self.converged_, self.history_ = learner.n_iter_, learner.converged_, learner.history_
            self.best_n_iter_ = choice.n_iter
        else:
            if trained is not None and choice.index == len(learners) - 1:
                tables, self.history_ = trained, []
            else:
                tables = learner.fit(structure, data, rng)
                self.history_ = [report.loss for report in learner.history_]
            self.n_iter_ = self.best_n_iter_ = learner.n_epochs
            self.converged_ = False
        self.loss_ = type(learner).default_loss() if learner.loss is None else learner.loss
        self._keep(choice, learners)
        if self.verbose:
            print(  # noqa: T201
                f"chosen on held-out rows: {learner!r}, {self.best_n_iter_} iterations, "
                f"held-out error {1 - self.best_score_:.2%}"
            )
        return tables

    def _keep(self, choice: Choice, learners: Sequence[Any]) -> None:
        """Keep what was chosen, and the table of all learners, each where it does best."""
        self.calibration_ = choice.calibration if self.calibrate else Calibration()
        every, look = np.arange(len(learners)), choice.best_looks
        errors, settings = choice.errors[every, look], [{"learner": clone(one, safe=False)} for one in learners]
        epochs = [getattr(one, "n_epochs", 0) for one in learners]
        self.cv_results_ = {
            **cv_results(settings, 1 - choice.split_errors[:, every, look], 1 - errors),
            "best_n_iter": np.where(epochs, epochs, choice.iterations[look]),
            "mean_log_loss": choice.log_losses[every, look],
        }
        self.best_index_, self.best_params_ = choice.index, settings[choice.index]
        self.best_score_ = float(1 - errors[choice.index])


def default_learners(**settings: Any) -> list[Any]:
    """Return what :class:`HybridCV` chooses from; the last learns by mini-batches."""
    # Losses are cloned: what is chosen is the model's own.
    batch = [LBFGS(loss=clone(loss)) for loss in LOSSES]
    return [*batch, StochasticGradient(**{"loss": clone(MINI_BATCH_LOSS), **settings})]
