"""Random search over the settings of gradient TAN, which can be interrupted and resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from tanlearn._progress import print_line
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.splits import search_splits
from tanlearn.estimators.estimator_input import delete_fitted_attributes, encode_training
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.parameters.cv_results import cv_results
from tanlearn.search.checkpoint import SearchCheckpoint, fingerprint
from tanlearn.search.runs import Part, Run, RunResult, run_population
from tanlearn.sources.validation import read_classes, read_weights
from tanlearn.training.losses import Hybrid

__all__ = ["TANSearchCV", "default_distributions"]


def default_distributions(estimator: TANClassifier) -> dict[str, Any]:
    """Return the default search space of an estimator, for :class:`TANSearchCV` or ``RandomizedSearchCV``.

    The ranges contain the best settings of wide searches on validation rows of letter, satimage, usps and mnist. The
    best ``gamma`` increases with the number of features: it was 5 for 16, 30 for 36, and 100 for 256 features. If the
    estimator has the hybrid loss, parameters of the loss are included. If the candidates have a parameter for the
    number of candidate parents, this parameter is included. Raises ValueError if the estimator is not a TANClassifier.
    """
    if not isinstance(estimator, TANClassifier):
        raise ValueError(
            f"param_distributions must be set for {type(estimator).__name__}, because only TANClassifier has default "
            f"distributions."
        )
    distributions: dict[str, Any] = {
        "training__learning_rate": loguniform(0.01, 0.1),
        "training__structure_learning_rate": [1e-3, 3e-3, 1e-2],
        "training__temperature": [(1.0, 0.1), (3.0, 0.1)],
        "training__init": ["maximum-likelihood"],
    }
    if isinstance(estimator.loss, Hybrid | None):
        margin = {"trade_off": loguniform(10, 1000), "gamma": loguniform(2, 200), "eta": loguniform(1, 10)}
        distributions |= {f"loss__{name}": values for name, values in margin.items()}
    if estimator.get_params().get("candidates__kind") in ("subset", "heuristic"):
        distributions["candidates__n_candidates"] = [4, 8, 16]
    return distributions


class TANSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Random search over the settings of gradient TAN.

    This search is faster than scikit-learn's ``RandomizedSearchCV`` for many similar trainings, because each split is
    encoded only once. Each worker runs one training at a time, and finished trainings can be stored in a file.

    Parameters
    ----------
    estimator : TANClassifier, optional
        Classifier that provides all other settings. The default is ``TANClassifier()``. If its ``loss`` is None, the
        search uses ``Hybrid()``, because the search itself selects the parameters of the loss. All trainings are
        calibrated like ``best_estimator_``, because calibration may change predicted classes. Calibration requires up
        to five additional fits per training. Set ``calibrate=False`` to avoid them.
    param_distributions : dict, optional
        Dictionary from the name of each parameter to a list or SciPy distribution of its values. Names of nested
        parameters are, for example, ``loss__gamma`` and ``training__learning_rate``. The default is
        :func:`default_distributions`.
        Parameters of the encoder cannot be searched.
    n_iter : int, default=40
        Number of combinations of settings that are drawn.
    cv : int, splitter or float, default=0.2
        A float is the fraction of rows that one stratified split holds out. Any other value determines the folds, as in
        scikit-learn.
    refit : bool, default=True
        Whether to train a classifier with the best settings on all rows.
    checkpoint : str or path, optional
        File to which each finished training is appended. If the file exists, a search with the same data and settings
        resumes from it. If the file belongs to another search, an error is raised.
    n_jobs : int, optional
        Number of threads, as in joblib, each for one training. Within ``joblib.parallel_config(backend="dask")``, or
        with another process backend, trainings run on the workers of the backend, and each split is sent once. The
        estimator's ``callback`` is also sent, but values that it stores stay in the worker. Results do not depend on
        ``n_jobs``. With ``device="cuda"``, no workers are used: all trainings of a split run together on the device and
        finish together.
    random_state : int or None, default=None
        Seed for the drawn settings, the splits and each training.
    verbose : int, default=0
        If 1, one line per training is printed, with the best score so far.
    callback : callable, optional
        Function that is called in this process with each :class:`~tanlearn.search.runs.RunResult`. If it returns True,
        the search ends with the results so far.

    Attributes
    ----------
    cv_results_ : dict of ndarrays
        Results as in scikit-learn: ``params``, ``param_<name>``, ``split<k>_test_score``, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_fit_time``, ``std_fit_time``, and ``mean_n_parameters``,
        ``mean_size_bits`` and ``mean_n_operations``. Settings that were not trained on all splits have nan scores and
        the last rank. Display the results with ``pandas.DataFrame(cv_results_)``.
    n_splits_ : int
        Number of splits.
    best_index_ : int
        Index of the settings with the highest mean score. Ties are broken by the number of parameters (fewest first),
        then by the order in which the settings were drawn.
    best_params_ : dict
        The best settings.
    best_score_ : float
        Mean held-out accuracy of the best settings.
    best_estimator_ : TANClassifier
        Classifier with the best settings, trained on all rows. It is set only if ``refit`` is True.
    refit_time_ : float
        Time of the training on all rows, in seconds. It is set only if ``refit`` is True.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order. It is set only if ``refit`` is True.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import GradientTraining, Hybrid, TANClassifier, TANSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = TANSearchCV(TANClassifier(loss=Hybrid(), n_epochs=30, training=GradientTraining(batch_size=20)),
    ...                      {"loss__trade_off": loguniform(1, 100), "loss__gamma": [1, 3]}, n_iter=4, random_state=0)
    >>> search.fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [None, HasMethods(["fit_encoded", "predict_proba"])],
        "param_distributions": [None, dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object", Interval(Real, 0, 1, closed="neither")],
        "refit": ["boolean"],
        "checkpoint": [None, str, os.PathLike],
        "n_jobs": [None, Integral],
        "random_state": [None, Integral],
        "verbose": [Interval(Integral, 0, None, closed="left")],
        "callback": [None, callable],
    }

    best_estimator_: TANClassifier

    def __init__(
        self,
        estimator: TANClassifier | None = None,
        param_distributions: Any = None,
        *,
        n_iter: int = 40,
        cv: Any = 0.2,
        refit: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
        callback: Callable[[RunResult], Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.cv = cv
        self.refit = refit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TANSearchCV:
        """Draw settings, train a classifier with each on each split, and train one with the best settings on all rows.

        A keyboard interrupt stops the search. The finished trainings are then in the checkpoint.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in training and in the score.

        Returns
        -------
        TANSearchCV
            The fitted search itself.

        Raises
        ------
        ValueError
            If the data are invalid, the checkpoint belongs to another search, or no settings were trained on all
            splits.
        TypeError
            If the backend uses processes and the estimator, for example its callback, cannot be serialized.
        """
        self._validate_params()
        delete_fitted_attributes(self)
        base = TANClassifier() if self.estimator is None else self.estimator
        if getattr(base, "loss", "") is None:
            base = clone(base).set_params(loss=Hybrid())  # loss__gamma and other nested names need an object
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "a checkpoint needs an integer random_state, so that every search draws the same settings. Set, for "
                "example, random_state=0."
            )
        own = base.get_params()
        if self.checkpoint is not None and own.get("training__callback") is not None:
            raise ValueError(
                "a checkpoint does not record the effects of the estimator's callback, which may stop trainings. "
                "Remove the checkpoint or the callback."
            )
        if own.get("training__checkpoint") is not None:
            raise ValueError(
                "the estimator's checkpoint can store only one training, but a search consists of many. Set the "
                "checkpoint of the search instead."
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0] if self.random_state is None else self.random_state)
        from sklearn.model_selection import ParameterSampler  # an import of 0.14 s that most processes avoid

        given = self.param_distributions
        distributions = default_distributions(base) if given is None else given
        settings = list(ParameterSampler(distributions, self.n_iter, random_state=seed))
        for setting in settings:
            if any(name.startswith(("encoder", "class_weight")) for name in setting):
                raise ValueError(
                    "parameters of the encoder and class_weight cannot be searched, because each split is encoded "
                    "and weighted once for all settings. Remove them from param_distributions."
                )
            clone(base).set_params(**clone(setting, safe=False))  # raises ValueError for unknown names
        whole = clone(base)
        encode_training(whole, X, y, sample_weight)  # validate the data before any training
        parts = self._parts(base, X, y, sample_weight, seed)
        runs = [
            Run(i, k, {"random_state": seed + i, **setting})
            for i, setting in enumerate(settings)
            for k in range(len(parts))
        ]
        finished = self._train(base, parts, runs)
        self._collect(settings, finished, len(parts))
        self.n_features_in_ = whole.n_features_in_
        if hasattr(whole, "feature_names_in_"):
            self.feature_names_in_ = whole.feature_names_in_
        if self.refit:
            parameters = {"random_state": seed + self.best_index_, **clone(self.best_params_, safe=False)}
            started = time.perf_counter()
            self.best_estimator_ = clone(base).set_params(**parameters).fit(X, y, sample_weight)
            self.refit_time_ = time.perf_counter() - started
            self.classes_ = self.best_estimator_.classes_
        return self

    def _parts(self, base: TANClassifier, X: Any, y: Any, sample_weight: Any, seed: int) -> list[Part]:
        """Encode each split; categories and cut points are fitted to its training rows only."""
        (table,) = indexable(X)
        n_samples = _num_samples(table)
        weight = read_weights(sample_weight, n_samples)
        present = np.arange(n_samples) if weight is None else np.flatnonzero(weight)
        codes, classes = read_classes(y, n_samples)
        parts = []
        for train, test in search_splits(self.cv, table, codes, len(classes), present, seed):
            weights = [None if weight is None else weight[rows] for rows in (train, test)]
            carrier = clone(base)
            data, _ = encode_training(carrier, _safe_indexing(table, train), classes[codes[train]], weights[0])
            known = {label: code for code, label in enumerate(carrier.classes_.tolist())}
            known_codes = np.array([known.get(label, -1) for label in classes[codes[test]].tolist()])
            held_out_codes = carrier.encoder_.encode(_safe_indexing(table, test), handle_unknown="missing")
            numbered = replace(data, row_numbers=train[data.row_numbers])  # messages refer to rows of the user's data
            parts.append(Part(numbered, held_out_codes, known_codes, weights[1]))
        return parts

    def _train(self, base: TANClassifier, parts: list[Part], runs: list[Run]) -> list[RunResult]:
        """Run the trainings that the checkpoint does not contain."""
        file = None
        if self.checkpoint is not None:
            file = SearchCheckpoint(self.checkpoint, fingerprint(base, parts, runs))
        finished = [] if file is None else file.finished
        done = {(result.setting, result.part) for result in finished}
        todo = [run for run in runs if (run.setting, run.part) not in done]
        progress = print if self.verbose else None
        with closing(run_population(base, parts, todo, n_jobs=self.n_jobs, progress=progress)) as results:
            for result in results:
                finished.append(result)
                if file is not None:
                    file.append(result)
                if self.verbose:
                    best = np.nanmax([r.score for r in finished] + [0.0])
                    outcome = result.failure or f"accuracy {result.score:.4f}"
                    print_line(
                        f"{len(finished)}/{len(runs)}: setting {result.setting}, split {result.part}: {outcome} "
                        f"(best so far {best:.4f}, {result.seconds:.1f} s)"
                    )
                if self.callback is not None and self.callback(result):
                    break
        return finished

    def _collect(self, settings: list[dict[str, Any]], finished: list[RunResult], n_parts: int) -> None:
        """Set ``cv_results_`` and the attributes that describe the best settings."""
        shape = (n_parts, len(settings))
        costs = {name: np.full(shape, np.nan) for name in ("n_parameters", "size_bits", "n_operations")}
        scores, seconds, sizes = np.full(shape, np.nan), np.full(shape, np.nan), costs["n_parameters"]
        for result in finished:
            scores[result.part, result.setting] = result.score
            seconds[result.part, result.setting] = result.seconds
            for name, values in costs.items() if not result.failure else ():
                values[result.part, result.setting] = getattr(result, name)
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            failures = {result.failure for result in finished if result.failure}
            raise ValueError(
                f"no settings were trained successfully on every split, so there are no best settings. Failures: "
                f"{sorted(failures) or 'none'}."
            )
        self.cv_results_: dict[str, Any] = {
            **cv_results(settings, scores, mean),
            "mean_fit_time": seconds.mean(axis=0),
            "std_fit_time": seconds.std(axis=0),
            **{f"mean_{name}": values.mean(axis=0) for name, values in costs.items()},
        }
        self.n_splits_ = n_parts
        rank = self.cv_results_["rank_test_score"]
        self.best_index_ = int(np.lexsort((np.arange(len(settings)), sizes.mean(axis=0), rank))[0])
        self.best_params_ = settings[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])

    def predict(self, X: Any) -> AnyArray:
        """Predict the class of each row with the best estimator.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities with the best estimator.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Predict log class probabilities with the best estimator.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_log_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(TANClassifier() if self.estimator is None else self.estimator).input_tags
        tags.non_deterministic = self.random_state is None
        return tags
