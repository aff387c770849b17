"""Generative or discriminative parameter learning, selected by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from tanlearn._progress import print_line
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.calibration import Calibration
from tanlearn.models.tables import Tables
from tanlearn.parameters.batch_gradient import LBFGS, BatchLearner
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out_selection import Choice, FittedTables, choose, evaluation_iterations, held_out_parts
from tanlearn.parameters.monotone_cpts import MonotoneCPTs
from tanlearn.parameters.parameter_learner import needs_of
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.structures.structures import Structure
from tanlearn.training.history import EpochReport, Iteration
from tanlearn.training.losses import Loss, SoftHybrid

__all__ = ["MINI_BATCH_LOSS", "HybridCV", "default_learners"]

#: Loss of the mini-batch learner, a large soft margin. It suits many features, many classes, and gradient TAN.
MINI_BATCH_LOSS = SoftHybrid(trade_off=30, gamma=10, eta=0.3)
#: Losses of the batch learners: close to likelihood, close to conditional likelihood, and a margin.
LOSSES = SoftHybrid(trade_off=1), SoftHybrid(trade_off=1000), SoftHybrid(trade_off=100, gamma=10)


class HybridCV(BaseEstimator):
    """Generative, discriminative or margin-based parameters, with the loss and the method selected on held-out rows.

    No loss is best for all data sets. If the classes are separable, conditional likelihood or margin losses should be
    trained to convergence. If rows are few or noisy, parameters should be close to the frequencies. Many features
    require margins and mini-batches. Therefore, three losses are minimized by L-BFGS on each fold, and the held-out
    rows are classified after several numbers of iterations. A fourth loss is minimized on mini-batches. Of all
    candidates whose error is within one standard error of the lowest error, the candidate with the lowest log loss is
    selected and fitted to all rows. Its probabilities are calibrated on the same held-out rows.

    Parameters
    ----------
    learners : sequence of ConjugateGradient, LBFGS, ExtendedBaumWelch, BackOffRidge or StochasticGradient, optional
        Candidates, each with its own loss. For all types except StochasticGradient, the number of iterations is
        selected, too. The maximum is ``max_iter`` of this class; ``max_iter`` of the candidates is ignored.
    max_iter : int, default=100
        Maximum number of iterations of the batch learners.
    cv : int or float, optional
        Number of folds, or the fraction of the rows that is held out once. By default, there are five folds if rows
        times features times classes are at most 300,000, and three folds up to 3,000,000. For larger data, one fifth of
        the rows is held out once.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on the held-out rows. The log joint is divided by a
        temperature. If the log loss is then clearly lower, only the evidence of the features is divided
        (``EvidenceCalibration``, not for CPTs with few bits). Each fold discretizes continuous columns without its
        held-out rows and, on small data, learns its own structure if the estimator learns one.
    increasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises, the log odds of the second class (in sorted
        order) do not fall. The columns must contain numbers or ordered categories, and have no children in the
        structure. Trained CPTs are replaced by the closest CPTs with this property before they are evaluated on
        held-out rows. The property holds exactly for rows without missing values.
    decreasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises, these log odds do not rise.
    n_jobs : int, optional
        Number of threads, as in joblib, each for one learner and fold. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        If 1, the selected learner is printed.

    Attributes
    ----------
    learner_ : object
        The selected learner, fitted to all rows.
    loss_ : Loss
        The loss of the selected learner.
    best_n_iter_ : int
        The selected number of iterations, where 0 is the maximum-likelihood start. For mini-batches, it is the number
        of epochs.
    best_score_ : float
        The held-out classification rate of the joint scores, before calibration.
    best_index_ : int
        Index of the learner in ``cv_results_``.
    best_params_ : dict
        The name of the selected learner, as in ``cv_results_``.
    cv_results_ : dict
        Results as in scikit-learn, for each learner at its best number of iterations: ``params``, ``param_learner``,
        ``split<k>_test_score``, ``mean_test_score`` (over all rows), ``std_test_score`` and ``rank_test_score``. In
        addition, ``best_n_iter`` is the best number of iterations, and ``mean_log_loss`` is the log loss at the best
        temperature.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    n_iter_ : int
        Number of iterations of the final fit: the selected number, or fewer if the training ended earlier.
    converged_ : bool
        Whether the final fit ended because of its tolerance.
    history_ : list of Iteration or list of EpochReport
        Mean loss per row at the start and after each iteration of the final fit. The list is empty if the start was
        selected. For mini-batches, it contains the reports of the epochs.

    See Also
    --------
    tanlearn.CrossTuned : Selection of the settings of one batch learner by classification rate only, as published.

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
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
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
    history_: list[Iteration] | list[EpochReport]

    def __init__(
        self,
        *,
        learners: Sequence[Any] | None = None,
        max_iter: int = 100,
        cv: float | None = None,
        calibrate: bool = True,
        increasing: Sequence[Any] = (),
        decreasing: Sequence[Any] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learners = learners
        self.max_iter = max_iter
        self.cv = cv
        self.calibrate = calibrate
        self.increasing = increasing
        self.decreasing = decreasing
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows; missing values are marginalized.
        rng : numpy.random.Generator
            Random generator for the mini-batches. The same data always have the same held-out rows.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, if there is only one class or one row, or if there are fewer rows
            than folds. The error is also raised if a column of ``increasing`` or ``decreasing`` is unknown, is listed
            twice, has no order or has children, or if there are not two classes.
        TypeError
            If a learner in ``learners`` has an unsupported type.
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
        trained_parts: list[FittedTables] | None = None,
        structures: Sequence[Structure] | None = None,
    ) -> Tables:
        """Fit the CPTs of a structure with given splits into training and held-out rows.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows for the final fit.
        parts : sequence of (EncodedData, EncodedData)
            Training rows and held-out rows of each split.
        rng : numpy.random.Generator
            Random generator for the mini-batches.
        trained : Tables, optional
            CPTs that the last learner has already fitted to all rows. The learner is then not fitted to all rows again.
        trained_parts : list of FittedTables, optional
            CPTs that the last learner has already fitted to each split. The learner is then not fitted to the splits
            again.
        structures : sequence of Structure, optional
            Structure for each split, learned without its held-out rows. By default, ``structure`` is used for all
            splits.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            As in :meth:`fit`.
        TypeError
            As in :meth:`fit`.
        """
        self._validate_params()
        learners = default_learners() if self.learners is None else [clone(one, safe=False) for one in self.learners]
        if not learners or not parts:
            raise ValueError(
                f"selection on held-out rows needs at least one learner and two rows of positive weight, got "
                f"learners={self.learners!r} and {np.count_nonzero(data.weights)} row(s). Add learners, or use "
                f"MaximumLikelihood() for few rows."
            )
        for learner in learners:
            if not isinstance(learner, BatchLearner | StochasticGradient):
                raise TypeError(
                    f"learners must be instances of ConjugateGradient, LBFGS, ExtendedBaumWelch, BackOffRidge or "
                    f"StochasticGradient, got {learner!r}. Fit other learners directly, without HybridCV."
                )
            learner.set_params(calibrate=False)  # scores are calibrated once, below
        monotone = MonotoneCPTs.of_columns(self.increasing, self.decreasing, data)
        if monotone is not None:
            monotone.check_structure(structure, data)
        competitors = learners if trained_parts is None else [*learners[:-1], trained_parts]
        of_parts = structure if structures is None else structures
        iterations = evaluation_iterations(self.max_iter)
        choice = choose(competitors, of_parts, parts, iterations=iterations, n_jobs=self.n_jobs, monotone=monotone)
        learner = self.learner_ = learners[choice.index]
        if needs_of(learner) == "gradients":
            tables = learner.improve(learner.start(structure, data, rng), data, n_iter=choice.n_iter)
            self.n_iter_, self.converged_, self.history_ = learner.n_iter_, learner.converged_, learner.history_
            self.best_n_iter_ = choice.n_iter
        else:
            if trained is not None and choice.index == len(learners) - 1:
                tables, self.history_ = trained, []
            else:
                tables = learner.fit(structure, data, rng)
                self.history_ = learner.history_
            self.n_iter_ = self.best_n_iter_ = learner.n_epochs
            self.converged_ = False
        self.loss_ = type(learner).default_loss() if learner.loss is None else learner.loss
        self._keep(choice, learners)
        if self.verbose:
            print_line(
                f"chosen on held-out rows: {learner!r}, {self.best_n_iter_} iterations, "
                f"held-out error {1 - self.best_score_:.2%}"
            )
        return tables if monotone is None else monotone.apply(tables)

    def _keep(self, choice: Choice, learners: Sequence[Any]) -> None:
        """Set the attributes of the selection, and the results of each learner at its best evaluation."""
        self.calibration_ = choice.calibration if self.calibrate else Calibration()
        every, best = np.arange(len(learners)), choice.best_evaluations
        errors, settings = choice.errors[every, best], [{"learner": clone(one, safe=False)} for one in learners]
        epochs = [getattr(one, "n_epochs", 0) for one in learners]
        self.cv_results_ = {
            **cv_results(settings, 1 - choice.split_errors[:, every, best], 1 - errors),
            "best_n_iter": np.where(epochs, epochs, choice.iterations[best]),
            "mean_log_loss": choice.log_losses[every, best],
        }
        self.best_index_, self.best_params_ = choice.index, settings[choice.index]
        self.best_score_ = float(1 - errors[choice.index])


def default_learners(**settings: Any) -> list[Any]:
    """Return the default candidates of :class:`HybridCV`. ``settings`` apply to the last, which uses mini-batches."""
    # Losses are cloned, so that the model has its own copy of the selected loss.
    batch = [LBFGS(loss=clone(loss)) for loss in LOSSES]
    return [*batch, StochasticGradient(**{"loss": clone(MINI_BATCH_LOSS), **settings})]
