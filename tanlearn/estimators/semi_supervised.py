"""Classifier that learns from labeled and unlabeled rows by expectation maximization."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import draw_folds
from tanlearn.encoding.weights import read_prior
from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier
from tanlearn.estimators.estimator_input import delete_fitted_attributes, encode_partly_labeled
from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
from tanlearn.models.bayes_net import BayesNet
from tanlearn.parameters.expectation_maximization import ExpectationMaximization
from tanlearn.parameters.held_out_calibration import calibrate
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.unlabeled_rows import UnlabeledFit, bounded_distances, fit_unlabeled
from tanlearn.sources.frames import warn_of_row_order
from tanlearn.sources.validation import read_partial_labels, read_weights, zero_weight_rows
from tanlearn.training.history import Iteration

__all__ = ["SemiSupervisedClassifier"]

#: Number of folds of the labeled rows with which it is decided whether unlabeled rows are used.
_N_FOLDS = 10
#: Increase in the log loss, in nats summed over all labeled rows, above which unlabeled rows are not used.
_HARM = 1.0


class SemiSupervisedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Bayesian network classifier that also learns from rows without a class.

    Use this classifier if labels are expensive, but rows without labels are available. The network is first fitted to
    the labeled rows. Each iteration then computes the class probabilities of the unlabeled rows, and fits the network
    to all rows. An unlabeled row is counted in every class, with the probability of the class as its weight
    (expectation maximization, Nigam et al. 2000).

    A row is unlabeled if its label is missing (None, NaN), or if it is -1, as in :mod:`sklearn.semi_supervised`. The
    label -1 is a class, however, if there is only one other label, or if another label is not a nonnegative integer.
    With the labels -1 and 1, for example, no row is unlabeled. An object array may mix strings and the integer -1.

    Unlabeled rows increase the accuracy if the classes are clusters of rows, and can decrease it otherwise.

    Parameters
    ----------
    estimator : NaiveBayesClassifier or BayesNetClassifier
        Network whose ``parameters`` are None, :class:`~tanlearn.MaximumLikelihood` or
        :class:`~tanlearn.ExpectationMaximization`. If its encoder has no discretizer, numeric columns are discretized
        to five intervals with equally many rows, including unlabeled rows.
    unlabeled_weight : float or "auto", default="auto"
        Weight of an unlabeled row relative to a labeled row, from 0 to 1. If 0, unlabeled rows are ignored. "auto" is
        1, unless the log loss on held-out labeled rows (ten folds) is clearly higher with unlabeled rows. In this case,
        the weight is 0, and unlabeled rows only determine intervals and categories.
    calibrate : bool, default=True
        Whether to fit a temperature for the probabilities to at most 300 labeled rows. Each of these rows is predicted
        without its own counts. Without a temperature, probabilities are far too close to 0 and 1.
    max_iter : int, default=2
        Maximum number of iterations. Few iterations reduce overfitting, so no warning is issued if the maximum is
        reached. See ``converged_``.
    tol : float, default=1e-5
        Training stops if the score in ``history_`` increases by less than this number, in nats per row.

    Attributes
    ----------
    estimator_ : NaiveBayesClassifier or BayesNetClassifier
        The fitted classifier, with all of its methods, such as explanations, exports and files.
    unlabeled_weight_ : float
        The given or selected weight of unlabeled rows.
    n_unlabeled_ : int
        Number of unlabeled rows of positive sample weight.
    n_iter_ : int
        Number of iterations, which is 0 if no unlabeled rows were used.
    converged_ : bool
        Whether the training stopped because of ``tol``, or no iteration was necessary.
    history_ : list of Iteration
        One entry for the start and one for each iteration. The ``score`` of an entry is the penalized log-likelihood
        divided by the weight of all rows. It never decreases.
    classes_ : ndarray of shape (n_classes,)
        Class labels of the labeled rows, in sorted order.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.

    Notes
    -----
    Let ``n`` be the counts of the labeled rows, ``w`` the weights of the unlabeled rows times ``unlabeled_weight``, and
    ``alpha`` the pseudo-count for smoothing. The score times the weight of all rows is::

        sum_k (n_k + alpha) log theta_k  +  sum_u w_u log sum_c P(c, x_u)

    Missing values of unlabeled rows are marginalized. Missing values of labeled rows are treated as in ``parameters``.
    If ``epsilon`` or ``shrinkage`` of :class:`~tanlearn.MaximumLikelihood` is set, the score can decrease.

    Without unlabeled rows, or with ``unlabeled_weight=0``, the result is exactly ``estimator`` fitted to the labeled
    rows, without the temperature. The training runs on the CPU.

    References
    ----------
    Nigam, McCallum, Thrun, Mitchell: Text classification from labeled and unlabeled documents using EM. Machine
    Learning 39, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from tanlearn import NaiveBayesClassifier, SemiSupervisedClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> y_known = np.where(np.arange(178) % 15 == 0, y, -1)  # 12 labels
    >>> model = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, y_known)
    >>> model.n_unlabeled_, model.classes_.tolist()
    (166, [0, 1, 2])
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [NaiveBayesClassifier, BayesNetClassifier],
        "unlabeled_weight": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "calibrate": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }
    estimator_: Any
    unlabeled_weight_: float
    n_unlabeled_: int
    n_iter_: int
    converged_: bool
    history_: list[Iteration]

    def __init__(
        self,
        estimator: Any,
        *,
        unlabeled_weight: Any = "auto",
        calibrate: bool = True,
        max_iter: int = 2,
        tol: float = 1e-5,
    ) -> None:
        self.estimator = estimator
        self.unlabeled_weight = unlabeled_weight
        self.calibrate = calibrate
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the network to labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values in a form that the classifier accepts.
        y : array-like of shape (n_samples,)
            Class labels, with -1 or a missing label for unlabeled rows.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. Rows of weight 0 are ignored.

        Returns
        -------
        SemiSupervisedClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If the labeled rows have fewer than two classes. If there are unlabeled rows, also if ``estimator`` has an
            unsupported parameter learner, class weights, or an encoder that depends on classes.
        """
        self._validate_params()
        self._check_learner()
        delete_fitted_attributes(self)
        warn_of_row_order(X, y)
        ignored = zero_weight_rows(sample_weight)
        y, is_unlabeled = read_partial_labels(y, _num_samples(X), ignored)
        weights = read_weights(sample_weight, len(y))
        counted = ~is_unlabeled if ignored is None else ~(is_unlabeled | ignored)
        n_unlabeled = int(is_unlabeled.sum())
        if not counted.any():
            raise ValueError(
                f"y must contain classes, but all {n_unlabeled} row(s) with non-zero weight have a missing label "
                f"(NaN, None) or -1. Label at least one row of each class."
            )
        if n_unlabeled and (self.unlabeled_weight == "auto" or self.unlabeled_weight > 0):
            self._fit_all(X, y, is_unlabeled, sample_weight)
        else:
            self._fit_labeled(X, y, counted, weights)
        self.n_unlabeled_ = n_unlabeled
        return self

    def _check_learner(self) -> None:
        """Raise ValueError for an estimator that cannot learn from unlabeled rows."""
        learner = self.estimator.parameters
        if learner is not None and type(learner) not in (MaximumLikelihood, ExpectationMaximization):
            raise ValueError(
                f"unlabeled rows need a generative parameter learner, got parameters={learner!r}. Use "
                f"MaximumLikelihood() or ExpectationMaximization()."
            )

    def _fit_labeled(self, X: Any, y: AnyArray, is_labeled: AnyArray, weights: AnyArray | None) -> None:
        """Fit the classifier to the labeled rows only, as if there were no other rows."""
        if not is_labeled.all():
            rows = np.flatnonzero(is_labeled)
            X, y = _safe_indexing(indexable(X)[0], rows), y[rows]
            weights = None if weights is None else weights[rows]
        self.estimator_ = clone(self.estimator).fit(X, y, weights)
        self.unlabeled_weight_, self.history_, self.n_iter_, self.converged_ = 0.0, [], 0, True

    def _fit_all(self, X: Any, y: AnyArray, is_unlabeled: AnyArray, sample_weight: Any) -> None:
        """Fit the classifier to the labeled rows, and then to all rows."""
        fitted = clone(self.estimator)
        if fitted.class_weight is not None:
            raise ValueError(
                f"class_weight of estimator must be None, because {is_unlabeled.sum()} row(s) have no class to "
                f"weigh, got {fitted.class_weight!r}. Use class_prior, or estimator_.with_class_prior(...) after "
                f"the fit."
            )
        fitted._begin()
        labeled, unlabeled = encode_partly_labeled(fitted, X, y, is_unlabeled, sample_weight)
        weight = self.unlabeled_weight
        if weight == "auto":
            weight = 0.0 if self._rows_do_harm(labeled, unlabeled) else 1.0
        found = self._learn(fitted, labeled, unlabeled, weight, calibrates=self.calibrate)
        fitted.calibration_ = found.calibration
        self.estimator_ = fitted._end(labeled.n_classes)  # applies class_prior, to the power of the temperature
        self.unlabeled_weight_ = float(weight)
        self.history_, self.n_iter_, self.converged_ = found.history, len(found.history) - 1, found.converged

    def _learn(
        self, fitted: Any, labeled: EncodedData, unlabeled: EncodedData, weight: float, *, calibrates: bool
    ) -> UnlabeledFit:
        """Fit a network to labeled rows, and then to all rows."""
        fitted._learn_all(labeled, None)
        prior, used = fitted.class_prior, unlabeled.take(np.full(unlabeled.n_samples, weight > 0))
        found = fit_unlabeled(
            fitted.structure_,
            labeled,
            replace(used, sample_weight=weight * used.weights),
            fitted.parameters_,
            log_prior=None if prior is None else read_prior(prior, labeled.n_classes),
            calibrates=calibrates,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=fitted.n_jobs,
        )
        fitted.model_ = BayesNet(fitted.structure_, found.tables)
        return found

    def _rows_do_harm(self, labeled: EncodedData, unlabeled: EncodedData) -> bool:
        """Return whether the log loss on held-out labeled rows is clearly higher with unlabeled rows."""
        n_rows = labeled.n_samples
        fold = draw_folds(labeled.y, min(_N_FOLDS, n_rows), np.random.default_rng(0))
        losses = []
        for weight in (0.0, 1.0):
            distances = np.empty((n_rows, labeled.n_classes))
            for k in range(int(fold.max()) + 1):
                fitted = clone(self.estimator)
                self._learn(fitted, labeled.take(fold != k), unlabeled, weight, calibrates=False)
                scores = fitted.model_.log_joint(labeled.take(fold == k).codes, n_jobs=fitted.n_jobs)
                distances[fold == k] = bounded_distances(scores)
            calibration = calibrate(distances, labeled.y, labeled.weights, 1.0)
            losses.append(-calibration.log_posterior(-distances)[np.arange(n_rows), labeled.y] @ labeled.weights)
        return bool(losses[1] - losses[0] > _HARM)

    def predict(self, X: Any) -> AnyArray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @property
    def classes_(self) -> AnyArray:
        """Class labels in sorted order."""
        return np.asarray(self._of_fitted("classes_"))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return int(self._of_fitted("n_features_in_"))

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns of ``X``."""
        return np.asarray(self._of_fitted("feature_names_in_"))

    def _of_fitted(self, name: str) -> Any:
        """Return an attribute of the fitted classifier, or raise AttributeError if it does not exist."""
        fitted = self.__dict__.get("estimator_")
        if not hasattr(fitted, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return getattr(fitted, name)
