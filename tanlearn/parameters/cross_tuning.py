"""Cross-tuning: selection of loss settings and the number of iterations by held-out accuracy.

Maximum margin 2012 regularizes by early stopping (section 5). The number of iterations, lambda and kappa with the best
classification rate on the held-out rows of the folds are selected, after Greiner, Su, Shen and Zhou (Structural
extension to logistic regression, Machine Learning 59, 2005).
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from tanlearn._progress import print_line
from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.models.calibration import Calibration
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.parameters.batch_gradient import BatchLearner, ConjugateGradient
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out_selection import choose
from tanlearn.parameters.learned_structure import structures_of_parts
from tanlearn.parameters.parameter_learner import check_learner_device
from tanlearn.structures.structures import Structure
from tanlearn.training.history import Iteration
from tanlearn.training.losses import Margin

__all__ = ["CrossTuned"]

#: Default grid with a few values of lambda and kappa from the ranges that are searched in maximum margin (section 5).
MARGIN_GRID: dict[str, list[float]] = {"loss__scale": [0.01, 0.05, 0.2], "loss__kappa": [0.1, 0.5]}


class CrossTuned(BaseEstimator):
    """Batch learner with settings and a number of iterations that are selected by cross-validation.

    Each setting is trained on each fold, and the held-out rows are classified after each iteration, including the
    start. The setting and iteration with the highest mean rate are used for the final fit to all rows. Ties are broken
    by the number of iterations (fewest first), then by the order of the settings.

    Parameters
    ----------
    learner : ConjugateGradient, LBFGS or ExtendedBaumWelch, optional
        Learner to tune, whose ``max_iter`` is the maximum number of iterations. The default is
        ``ConjugateGradient(loss=Margin())``.
    param_grid : dict or list of dict, optional
        Dictionary from the name of each parameter of the learner to the list of its values, as in scikit-learn's
        ``ParameterGrid``. All combinations are tried. Names of nested parameters are, for example, ``loss__scale``. The
        default is six pairs of ``scale`` and ``kappa`` for the loss ``Margin``. For any other loss, only the number of
        iterations is tuned by default.
    cv : int, default=5
        Number of stratified folds, at least 2.
    patience : int or None, default=20
        Number of iterations without an increase in the held-out classification rate after which training on a fold
        ends, or None for no limit.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on the held-out rows of the folds.
    n_jobs : int, optional
        Number of threads, as in joblib, each for one setting and fold. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        If 1, one line per setting and fold is printed.

    Attributes
    ----------
    best_params_ : dict
        The selected setting.
    best_n_iter_ : int
        The selected number of iterations. If 0, the maximum-likelihood parameters are kept.
    best_score_ : float
        Held-out classification rate of the selection over all rows, before calibration.
    best_index_ : int
        Index of the setting in ``cv_results_``.
    cv_results_ : dict of ndarrays
        Results as in scikit-learn, for each setting at its best number of iterations: ``params``, ``param_<name>``,
        ``split<k>_test_score``, ``mean_test_score`` (over all rows), ``std_test_score`` and ``rank_test_score``. In
        addition, ``best_n_iter`` is the best number of iterations, and ``split<k>_n_iter`` is the number of iterations
        on a fold. Display the results with ``pandas.DataFrame(cv_results_)``.
    score_path_ : ndarray of shape (n_settings, 1 + most iterations)
        Held-out classification rate over all rows, after 0, 1, ... iterations.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    n_iter_ : int
        Number of iterations of the final fit: the selected number, or fewer if the training ended earlier.
    converged_ : bool
        Whether the final fit ended because of the learner's ``tol``.
    history_ : list of Iteration
        Mean loss per row at the start and after each iteration of the final fit. The list is empty if the start was
        selected.

    Notes
    -----
    A classifier fits a copy of this object. The copy, which has the fitted attributes, is ``parameters_`` of the
    classifier.

    Each fold discretizes continuous columns without its held-out rows. On small data, each fold also learns its own
    structure, if the estimator learns one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import ConjugateGradient, CrossTuned, Margin, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ConjugateGradient(loss=Margin(), max_iter=20)
    >>> tuned = CrossTuned(learner=learner, param_grid={"loss__scale": [0.05, 0.5]})
    >>> model = NaiveBayesClassifier(parameters=tuned, random_state=0).fit(X, y)
    >>> sorted(model.parameters_.best_params_), model.parameters_.best_n_iter_ <= 20
    (['loss__scale'], True)
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [None, BatchLearner],
        "param_grid": [None, dict, list],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "calibrate": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    best_params_: dict[str, Any]
    best_n_iter_: int
    best_score_: float
    calibration_: Calibration
    best_index_: int
    cv_results_: dict[str, Any]
    score_path_: FloatArray
    n_iter_: int
    converged_: bool
    history_: list[Iteration]

    def __init__(
        self,
        *,
        learner: BatchLearner | None = None,
        param_grid: Any = None,
        cv: int = 5,
        patience: int | None = 20,
        calibrate: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.param_grid = param_grid
        self.cv = cv
        self.patience = patience
        self.calibrate = calibrate
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
            Random generator for the folds.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, if there are fewer rows than folds, or if the grid is empty or
            contains an unknown parameter.
        """
        self._validate_params()
        from sklearn.model_selection import ParameterGrid  # an import of 0.14 s that most processes avoid

        base = ConjugateGradient() if self.learner is None else clone(self.learner)
        check_learner_device(base, data.device)
        if base.loss is None:
            base.set_params(loss=type(base).default_loss())  # loss__scale and other nested names need an object
        default = MARGIN_GRID if isinstance(base.loss, Margin) else {}
        settings = list(ParameterGrid(default if self.param_grid is None else self.param_grid))
        if not settings:
            raise ValueError(
                "param_grid must contain at least one setting, got an empty list. Pass {} to tune only the number of "
                "iterations."
            )
        # The values are also cloned, because otherwise runs with the same setting would share a loss object.
        learners = [clone(base).set_params(**clone(setting, safe=False)) for setting in settings]
        present = data.present()
        masks = validation_masks(present.y, present.n_classes, self.cv, rng)
        parts = [present.split(held_out) for held_out in masks]
        structures = structures_of_parts(structure, parts, self.n_jobs)
        with warnings.catch_warnings():  # as in held_out.choose
            warnings.filterwarnings("ignore", message="The line search algorithm")
            tasks = [
                (clone(learner), f"setting {i}, fold {k}", structures[k], *part, rng)
                for i, learner in enumerate(learners)
                for k, part in enumerate(parts)
            ]
            runs = in_threads(lambda task: self._run(*task), tasks, self.n_jobs)
        longest = max(map(len, runs))
        # Shorter runs are extended by their last rate. A converged run would stay at this rate. A run without patience
        # left is on a plateau, where the last rate is a fair sample, but the best rate is optimistic. If all folds were
        # truncated to the length of the shortest, one easy fold would end all others.
        right = np.array([run + run[-1:] * (longest - len(run)) for run in runs]).reshape(len(settings), self.cv, -1)
        # Rates are sums over all rows, not means of folds. With integer weights, equal rates are then equal floats.
        self.score_path_ = right.sum(axis=1) / present.weights.sum()
        every, best_n_iter = np.arange(len(settings)), self.score_path_.argmax(axis=1)
        mean_score, ran = self.score_path_[every, best_n_iter], np.array([len(run) - 1 for run in runs])
        split_scores = right[every, :, best_n_iter] / [held_out.weights.sum() for _, held_out in parts]
        self.cv_results_ = {
            **cv_results(settings, split_scores.T, mean_score),
            "best_n_iter": best_n_iter,
            **{f"split{k}_n_iter": ran[k :: self.cv] for k in range(self.cv)},
        }
        best = self.best_index_ = int(np.lexsort((best_n_iter, -mean_score))[0])
        self.best_params_, self.best_n_iter_ = settings[best], int(best_n_iter[best])
        self.best_score_ = float(mean_score[best])
        learner, self.calibration_ = learners[best], Calibration()
        if self.calibrate:
            found = choose([learner], structures, parts, iterations=[self.best_n_iter_], n_jobs=self.n_jobs)
            self.calibration_ = found.calibration
        tables = learner.improve(learner.start(structure, data, rng), data, n_iter=self.best_n_iter_)
        self.n_iter_, self.converged_, self.history_ = learner.n_iter_, learner.converged_, learner.history_
        return tables

    def _run(
        self,
        learner: BatchLearner,
        name: str,
        structure: Structure,
        data: EncodedData,
        held_out: EncodedData,
        rng: np.random.Generator,
    ) -> list[Any]:
        """Return the correctly classified held-out weight after 0, 1, ... iterations of one setting and fold."""
        right: list[Any] = []

        def record(tables: Tables) -> bool:
            scores = log_joint(tables, structure, held_out.codes, device=held_out.device)
            right.append(held_out.weights[scores.argmax(axis=1) == held_out.y].sum())
            return self.patience is not None and len(right) - 1 - int(np.argmax(right)) >= self.patience

        start = learner.start(structure, data, rng)
        record(start)
        learner.improve(start, data, record)
        if self.verbose:
            best = int(np.argmax(right))
            rate = right[best] / held_out.weights.sum()
            print_line(f"{name}: rate {rate:.4f} after {best} of {len(right) - 1} iterations")
        return right
