"""Cross-tuning: the settings of a loss and the number of iterations, by held-out classification rate.

Early stopping is how maximum margin 2012 regularises (section 5): the number of iterations, lambda and kappa are
those that classify best the rows that a fold leaves out, after Greiner, Su, Shen and Zhou (Structural extension to
logistic regression, Machine Learning 59, 2005).
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.splits import validation_masks
from tanlearn.network.calibration import Calibration
from tanlearn.network.inference import log_joint
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.parameters.batch import BatchLearner, ConjugateGradient
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out import choose
from tanlearn.parameters.learned_structure import structures_of_parts
from tanlearn.parameters.learner import check_learner_device
from tanlearn.training.losses import Margin

__all__ = ["CrossTuned"]

#: Where nothing is given: few values of lambda and kappa, across what maximum margin (section 5) searches.
MARGIN_GRID: dict[str, list[float]] = {"loss__scale": [0.01, 0.05, 0.2], "loss__kappa": [0.1, 0.5]}


class CrossTuned(BaseEstimator):
    """A batch learner whose settings and number of iterations are chosen on the training rows.

    Every setting runs on every fold, and the held-out rows are classified after every iteration, the start included.
    The best setting and iteration (highest mean rate; of equals, fewest iterations, then first setting) are
    then used on all rows.

    Parameters
    ----------
    learner : ConjugateGradient, LBFGS or ExtendedBaumWelch, optional
        What is tuned; its ``max_iter`` bounds the iterations. By default ``ConjugateGradient(loss=Margin())``.
    param_grid : dict or list of dict, optional
        Names of the learner's parameters (nested ones as ``loss__scale``) and the values to try, in all combinations,
        as in scikit-learn's ``ParameterGrid``. By default six pairs of ``scale`` and ``kappa`` for the loss ``Margin``,
        and for any other loss nothing but the number of iterations.
    cv : int, default=5
        Number of stratified folds, at least 2.
    patience : int or None, default=20
        End the run on a fold after so many iterations without a better held-out rate; None for never.
    calibrate : bool, default=True
        Whether the folds find a scale by which scores become probabilities.
    n_jobs : int, optional
        Threads, one a setting and fold, as in joblib. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for every setting and fold.

    Attributes
    ----------
    best_params_ : dict
        The setting chosen.
    best_n_iter_ : int
        The number of iterations chosen; 0 is the maximum-likelihood start.
    best_score_ : float
        Their held-out classification rate, the mean of all rows, before calibration.
    best_index_ : int
        Row of the setting in ``cv_results_``.
    cv_results_ : dict of ndarrays
        As in scikit-learn, for every setting at its best number of iterations: ``params``, ``param_<name>``,
        ``split<k>_test_score``, ``mean_test_score`` (of all rows), ``std_test_score``, ``rank_test_score``; and
        ``best_n_iter``, this number, and ``split<k>_n_iter``, the iterations that were run on a fold.
        ``pandas.DataFrame(cv_results_)`` is a table to look at.
    score_path_ : ndarray of shape (n_settings, 1 + most iterations)
        Held-out classification rate, the mean of all rows, after 0, 1, ... iterations.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    n_iter_ : int
        Iterations of the chosen setting on all rows: those chosen, or fewer if its search ended before.
    converged_ : bool
        Whether these ended because of the learner's ``tol``.
    history_ : list of float
        Mean loss of a row at the start and after each of them; empty where the start itself was chosen.

    Notes
    -----
    An estimator learns with a copy of this object, its ``parameters_``, which has the fitted attributes.

    Every fold fits its own cut points of continuous columns without the held-out rows and, on small data, its own
    structure where an estimator learns one.

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
    history_: list[float]

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
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows; what they miss is summed out.
        rng : numpy.random.Generator
            Where the folds come from.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be summed out, there are fewer rows than folds, or the grid is empty or names no
            parameter.
        """
        self._validate_params()
        from sklearn.model_selection import ParameterGrid  # 0.14 s of an import that most processes can do without

        base = ConjugateGradient() if self.learner is None else clone(self.learner)
        check_learner_device(base, data.device)
        if base.loss is None:
            base.set_params(loss=type(base).default_loss())  # so that loss__scale and the like have an object
        default = MARGIN_GRID if isinstance(base.loss, Margin) else {}
        settings = list(ParameterGrid(default if self.param_grid is None else self.param_grid))
        if not settings:
            raise ValueError("param_grid must hold at least one setting, got an empty list. {} tunes iterations only.")
        # The values are cloned, too: a loss in the settings is shared by all runs that have it.
        learners = [clone(base).set_params(**clone(setting, safe=False)) for setting in settings]
        present = data.take(np.flatnonzero(data.weights))  # a weight of 0 is as good as an absent row
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
        # A run that converged stays where it is. One out of patience is on a plateau, of which its last rate is a fair
        # sample and its best a lucky one. To cut all folds at the shortest would let an easy one end the others.
        right = np.array([run + run[-1:] * (longest - len(run)) for run in runs]).reshape(len(settings), self.cv, -1)
        # Folds count as much as their rows: where weights are integers, rates that are equal are then equal numbers.
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
        """Return the held-out weight that is classified rightly after 0, 1, ... iterations."""
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
            print(f"{name}: rate {rate:.4f} after {best} of {len(right) - 1} iterations")  # noqa: T201
        return right
