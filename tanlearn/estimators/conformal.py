"""Prediction sets with a given coverage, and predictions with a given error rate, from held-out probabilities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, column_or_1d, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from tanlearn._tasks import in_order
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.splits import validation_masks
from tanlearn.estimators.classifier import Classifier
from tanlearn.sources.unlabeled_rows import UNLABELED, warn_of_unlabeled
from tanlearn.sources.validation import read_partial_labels

__all__ = ["ConformalClassifier"]


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classifier that returns a set of classes for each row, with a given coverage, and marks reliable predictions.

    A prediction set contains every class that is plausible for a row. With ``coverage=0.9``, the sets of nine out of
    ten new rows contain the true class. This holds for any classifier, on average over rows from the distribution of
    the training rows. A more accurate classifier leads to smaller sets.

    Each training row is predicted by a model that was fitted without this row (cross-validation). The score of the row
    is the predicted probability of its class. A model that is fitted to all rows predicts new rows. The set of a new
    row contains all classes with a probability of at least a threshold. The threshold is the largest number such that
    ``coverage * (n + 1)`` of the n training rows have at least this score. These sets have the smallest mean size for a
    given coverage (Sadinle et al. 2019).

    Parameters
    ----------
    estimator : classifier
        Classifier with ``predict_proba`` or ``predict_log_proba``, from any library.
    per_class : bool, default=False
        Whether to use a threshold per class, so that the coverage holds within each class. Classes with fewer than
        about ``1 / (1
        - coverage)`` rows are then part of every set.
    cv : int, default=10
        Number of stratified folds. The classifier is fitted ``cv + 1`` times.
    n_jobs : int, optional
        Number of folds that are fitted in parallel, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed for the folds.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to all rows.
    classes_ : ndarray of shape (n_classes,)
        Class labels of ``y`` and of ``estimator_``, in sorted order.
    held_out_proba_ : ndarray of shape (n_samples, n_classes)
        Class probabilities of the labeled training rows with positive weight. Each row is predicted by a model that was
        fitted without this row.
    held_out_y_ : ndarray of shape (n_samples,)
        Classes of the rows of ``held_out_proba_``, as positions in ``classes_``.
    held_out_weights_ : ndarray of shape (n_samples,)
        Sample weights of the rows of ``held_out_proba_``.
    n_features_in_ : int
        Number of columns of ``X``, if the classifier has this attribute.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the classifier has this attribute.

    Notes
    -----
    Training rows and new rows are predicted by different models. The theory therefore guarantees only a coverage of ``2
    * coverage - 1``. The actual coverage is close to ``coverage`` unless the classifier is unstable (Barber et al.
    2021). For an exact guarantee, fit the classifier to one part of the rows, freeze it, and pass the other part to
    ``fit``: ``ConformalClassifier(FrozenEstimator(model)).fit(X_other, y_other)``, with
    :class:`sklearn.frozen.FrozenEstimator`.

    A sample weight of 2 has the same effect as repeating the row, except that both copies are in the same fold.

    With an estimator that learns from unlabeled rows, such as :class:`~tanlearn.SemiSupervisedClassifier`, unlabeled
    rows are part of the training rows of every fold. Coverage and errors refer to the labeled rows.

    References
    ----------
    Sadinle, Lei, Wasserman: Least ambiguous set-valued classifiers with bounded error levels. JASA 114, 2019.
    Barber, Candes, Ramdas, Tibshirani: Predictive inference with the jackknife+. Annals of Statistics 49, 2021.
    Vovk: Conditional validity of inductive conformal predictors. ACML 2012 (a threshold per class).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from tanlearn import ConformalClassifier, NaiveBayesClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = X[:, [0, 2]]  # alcohol and ash
    >>> model = ConformalClassifier(NaiveBayesClassifier(), random_state=0).fit(X[::2], y[::2])
    >>> model.predict_set(X[1:60:20], coverage=0.9)  # rows x classes
    array([[ True, False,  True],
           [False,  True,  True],
           [ True, False,  True]])
    >>> is_reliable = model.is_reliable(X[1::2], max_error=0.2)
    >>> is_wrong = model.predict(X[1::2]) != y[1::2]
    >>> bool(is_wrong.mean() > 0.3), bool(is_wrong[is_reliable].mean() < 0.2)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), HasMethods(["fit", "predict_log_proba"])],
        "per_class": ["boolean"],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
    }
    estimator_: Any
    classes_: AnyArray
    held_out_proba_: FloatArray
    held_out_y_: IntArray
    held_out_weights_: FloatArray

    def __init__(
        self,
        estimator: Any,
        *,
        per_class: bool = False,
        cv: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.per_class = per_class
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to all rows, and predict each row with a model that is fitted without this row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values in a form that the classifier accepts.
        y : array-like of shape (n_samples,)
            Class labels. If the classifier learns from unlabeled rows, a row with the label -1 or a missing label is
            unlabeled.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, which the classifier and the thresholds use.

        Returns
        -------
        ConformalClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If there are fewer labeled rows of positive weight than folds, a fold leaves labeled rows of a single class,
            a frozen classifier has none of the classes in ``y``, or the classifier raises an error for the data.
        """
        self._validate_params()
        y = column_or_1d(y, warn=True)
        if _num_samples(X) != len(y):
            raise ValueError(f"X has {_num_samples(X)} rows, but y has {len(y)} labels. Pass one label per row.")
        (X,) = indexable(X)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        _, is_unlabeled = read_partial_labels(y, len(y), weights == 0)
        has_class = (weights > 0) & ~is_unlabeled
        assert_all_finite(y[has_class], input_name="y")
        check_classification_targets(y[has_class])
        self.estimator_ = self._fitted(X, y, None if sample_weight is None else weights)
        if is_unlabeled.any() and UNLABELED in self.estimator_.classes_.tolist():
            is_class = np.array([isinstance(label, Real) and label == UNLABELED for label in y.tolist()])
            has_class, is_unlabeled = has_class | (is_class & (weights > 0)), is_unlabeled & ~is_class
            if not isinstance(self.estimator, Classifier):  # a Classifier issues this warning itself
                warn_of_unlabeled(*np.unique(y[has_class], return_counts=True))
        rows = np.flatnonzero(has_class)
        self.classes_ = _all_classes(y[rows], self.estimator_.classes_)
        codes = np.searchsorted(self.classes_, y[rows])
        if len(rows) < self.cv:
            kind, remedy = (" and a class", "Label more rows, or use") if is_unlabeled.any() else ("", "Use")
            raise ValueError(
                f"cv={self.cv} needs at least {self.cv} rows with positive weight{kind}, got {len(rows)}. "
                f"{remedy} fewer folds."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        masks = validation_masks(codes, len(self.classes_), self.cv, rng)
        shared = (self, X, y, None if sample_weight is None else weights)
        splits = [(np.flatnonzero(_marked(rows[~mask], len(y)) | is_unlabeled), rows[mask]) for mask in masks]
        folds = in_order(_held_out, [(shared, split) for split in splits], self.n_jobs)
        proba = np.empty((len(rows), len(self.classes_)))
        for mask, found in zip(masks, folds, strict=True):
            proba[mask] = found
        self.held_out_proba_, self.held_out_y_, self.held_out_weights_ = proba, codes, weights[rows]
        return self

    def _fitted(self, X: Any, y: AnyArray, weights: FloatArray | None) -> Any:
        """Return a fitted copy of the classifier."""
        given = {} if weights is None else {"sample_weight": weights}
        return clone(self.estimator).fit(X, y, **given)

    def predict(self, X: Any) -> AnyArray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels of ``estimator_``.

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
            Probabilities of ``estimator_``, in the order of ``classes_``.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        check_is_fitted(self)
        return _probabilities(self.estimator_, X, self.classes_)

    def predict_set(self, X: Any, coverage: float = 0.9, *, allow_empty: bool = False) -> NDArray[np.bool_]:
        """Return a prediction set for each row, as a mask of its classes.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.
        coverage : float, default=0.9
            Fraction of rows whose set contains the true class, between 0 and 1.
        allow_empty : bool, default=False
            Whether sets may be empty. If False, empty sets are replaced by the most probable class. The actual coverage
            is then at least the accuracy of the classifier, even if ``coverage`` is lower.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            True if the set of the row contains the class. If there are too few training rows for the coverage, all sets
            contain all classes.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``coverage`` is not between 0 and 1.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from tanlearn import ConformalClassifier, NaiveBayesClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> model = ConformalClassifier(NaiveBayesClassifier(), random_state=0).fit(X[::2], y[::2])
        >>> sets = model.predict_set(X[1::2], coverage=0.95)
        >>> sizes = sets.sum(axis=1)  # number of plausible classes of each row
        >>> round(float(sets[range(len(sets)), y[1::2]].mean()), 2)  # coverage
        0.97
        """
        check_is_fitted(self)
        _check_fraction("coverage", coverage)
        proba = self.predict_proba(X)
        found: NDArray[np.bool_] = proba >= self.thresholds(coverage)
        if not allow_empty:
            found[np.arange(len(proba)), proba.argmax(axis=1)] = True
        return found

    def thresholds(self, coverage: float = 0.9) -> FloatArray:
        """Return the probability that each class must reach to be in a prediction set.

        Parameters
        ----------
        coverage : float, default=0.9
            Fraction of rows whose set contains the true class, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_classes,)
            Thresholds. All thresholds are equal if ``per_class`` is False. They are 0 if there are too few rows for the
            coverage.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``coverage`` is not between 0 and 1.
        """
        check_is_fitted(self)
        _check_fraction("coverage", coverage)
        y, weights = self.held_out_y_, self.held_out_weights_
        own = self.held_out_proba_[np.arange(len(y)), y]
        if not self.per_class:
            return np.full(len(self.classes_), _threshold(own, weights, coverage))
        of_classes = [y == c for c in range(len(self.classes_))]
        return np.array([_threshold(own[mask], weights[mask], coverage) for mask in of_classes])

    def is_reliable(self, X: Any, max_error: float = 0.05) -> NDArray[np.bool_]:
        """Return a mask of the rows with a reliable prediction. You may abstain for the other rows.

        A prediction is reliable if its probability reaches a threshold. The threshold is the lowest probability such
        that at most the fraction ``max_error`` of the held-out predictions above the threshold are wrong. One wrong
        prediction is added to compute this fraction.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values.
        max_error : float, default=0.05
            Largest fraction of wrong predictions among the reliable rows, between 0 and 1.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            Whether the prediction for a row is reliable. All values are False if ``max_error`` cannot be reached.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``max_error`` is not between 0 and 1.
        """
        check_is_fitted(self)
        _check_fraction("max_error", max_error)
        is_reliable: NDArray[np.bool_] = self.predict_proba(X).max(axis=1) >= self._least_confidence(max_error)
        return is_reliable

    def _least_confidence(self, max_error: float) -> float:
        """Return the lowest confidence of a reliable row, or infinity if no row is reliable."""
        confidence = self.held_out_proba_.max(axis=1)
        is_wrong = self.held_out_proba_.argmax(axis=1) != self.held_out_y_
        levels, level = np.unique(-confidence, return_inverse=True)  # in descending order of confidence
        total = np.bincount(level, self.held_out_weights_).cumsum()
        wrong = np.bincount(level, self.held_out_weights_ * is_wrong).cumsum()
        enough = np.flatnonzero((wrong + 1) / (total + 1) <= max_error)
        return float(-levels[enough[-1]]) if len(enough) else np.inf

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

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


def _held_out(shared: tuple[Any, Any, AnyArray, FloatArray | None], train: IntArray, test: IntArray) -> FloatArray:
    """Fit the classifier to training rows, and return the probabilities of held-out rows."""
    conformal, X, y, weights = shared
    fitted = conformal._fitted(_safe_indexing(X, train), y[train], None if weights is None else weights[train])
    if not set(fitted.classes_.tolist()) <= set(conformal.classes_.tolist()):  # -1 was treated as a class
        raise ValueError(
            f"each fold must leave labeled rows of at least two classes, because with a single class "
            f"{type(fitted).__name__} treats the label {UNLABELED} as a class. Label more rows of each class, or "
            f"use missing labels (NaN, None) instead of {UNLABELED}."
        )
    return _probabilities(fitted, _safe_indexing(X, test), conformal.classes_)


def _all_classes(y: AnyArray, known: AnyArray) -> AnyArray:
    """Return the sorted union of the labels of rows and the classes of a frozen classifier.

    Shapes: y: (n_samples,); known: (n_known,), classes of the fitted classifier.
    """
    classes: AnyArray = np.unique(y)
    labels, others = set(classes.tolist()), set(known.tolist())
    if not labels & others:
        raise ValueError(
            f"y must contain classes of the fitted classifier, {known.tolist()}, got {classes.tolist()}. Use the "
            f"labels with which it was fitted."
        )
    return classes if others <= labels else np.union1d(classes, known)


def _marked(rows: IntArray, n_samples: int) -> NDArray[np.bool_]:
    """Return a mask (n_samples,) of the given rows."""
    mask = np.zeros(n_samples, np.bool_)
    mask[rows] = True
    return mask


def _probabilities(fitted: Any, X: Any, classes: AnyArray) -> FloatArray:
    """Return probabilities (n_samples, n_classes), which are 0 for classes that the training rows did not contain."""
    if hasattr(fitted, "predict_proba"):
        found = np.asarray(fitted.predict_proba(X), np.float64)
    else:
        found = np.exp(np.asarray(fitted.predict_log_proba(X), np.float64))
    proba = np.zeros((len(found), len(classes)))
    proba[:, np.searchsorted(classes, fitted.classes_)] = found
    return proba


def _threshold(proba: FloatArray, weights: FloatArray, coverage: float) -> float:
    """Return the largest probability that ``coverage * (n + 1)`` of n rows reach, or 0 if there are too few rows."""
    order = np.argsort(-proba, kind="stable")
    total = weights[order].cumsum()
    wanted = coverage * (1 + weights.sum()) * (1 - 1e-12)  # 0.9 * 10 rows must be 9 rows in spite of rounding errors
    place = int(np.searchsorted(total, wanted))
    return float(proba[order[place]]) if place < len(total) else 0.0


def _check_fraction(name: str, value: Any) -> None:
    """Raise ValueError if a value is not between 0 and 1."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}.")
