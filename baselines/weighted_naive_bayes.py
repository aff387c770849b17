"""Weighted naive Bayes: WANBIA (Zaidi et al. 2013) and AWNB (Hall 2007).

Each feature has a weight w_i, the exponent of its conditional probability:

    P(c | x) ~ P(c) * product over i of P(x_i | c)^w_i

Weights below 1 reduce the influence of features that repeat others, and a weight of 0 removes a feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.estimators.explanation_frame import explanation_frame
from tanlearn.models.bayes_net import restore_tables
from tanlearn.models.explanation import against_class
from tanlearn.models.model import Model
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure
from tanlearn.training.history import Iteration

from .feature_weights import OBJECTIVES, lookup_tables, trained_weights, tree_weights, weighted_sum

__all__ = ["WeightedNaiveBayes", "WeightedNaiveBayesClassifier"]


@dataclass(frozen=True, eq=False)
class WeightedNaiveBayes(Model):
    """CPTs of naive Bayes and weights of features.

    The scores are not log probabilities of rows: they are not normalized over the values of the features. A missing
    value contributes nothing.
    """

    tables: Tables  # of naive Bayes, normalized
    weights: FloatArray  # (n_features,)

    @cached_property
    def lookups(self) -> list[FloatArray]:
        """Log probabilities of each feature by value; the last row, of zeros, is for missing values."""
        return lookup_tables(self.tables)

    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""
        return self.tables.layout.n_states

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: the parameters of naive Bayes, and one weight per feature."""
        return self.tables.n_parameters + len(self.weights)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute log P(c) + sum over the observed features of w_i log P(x_i | c)."""
        return weighted_sum(codes, self.lookups, self.weights, self.tables.log_prior, n_jobs)

    def contributions(self, codes: Codes) -> FloatArray:
        """Return w_i log P(x_i | c) for each feature, then log P(c); these values add up to the log joint.

        Shapes: codes: (n_features, n_samples); result: (n_samples, n_features + 1, n_classes).
        """
        nothing = np.zeros(self.tables.layout.n_classes)
        found = np.empty((codes.shape[1], len(codes) + 1, len(nothing)))
        for i, table in enumerate(self.lookups):
            found[:, i] = weighted_sum(codes[i : i + 1], [table], self.weights[i : i + 1], nothing, 1)
        found[:, -1] = self.tables.log_prior
        return found

    def with_log_prior(self, log_prior: FloatArray) -> WeightedNaiveBayes:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""
        return replace(self, tables=self.tables.with_log_prior(log_prior))

    def to_state(self) -> dict[str, Any]:
        """Return the log probabilities and the weights."""
        return {"cells": self.tables.cells, "weights": self.weights}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> WeightedNaiveBayes:
        """Restore a model from the output of :meth:`to_state`; raise ValueError for inconsistent values."""
        cells, weights = fields(state, "cells", "weights")
        check_array("weights", weights, np.float64, (len(n_states),))
        if not (weights >= 0).all() or not np.isfinite(weights).all():
            raise ValueError("weights must be nonnegative finite numbers.")
        return cls(restore_tables(Structure.naive_bayes(len(n_states)), n_states, n_classes, cells), weights)


class WeightedNaiveBayesClassifier(Classifier):
    """Naive Bayes with a weight per feature, trained discriminatively (WANBIA) or from decision trees (AWNB).

    Parameters
    ----------
    weighting : {"conditional-likelihood", "squared-error", "trees"}, default="conditional-likelihood"
        "conditional-likelihood" and "squared-error" are WANBIA: the weights minimize the mean of -log P(class |
        features), or the squared error of the posterior, on the training rows. "trees" is AWNB: the mean of 1 /
        sqrt(depth) of the first test of a feature in bagged decision trees.
    max_weight : float, default=1.0
        Largest weight of WANBIA; the smallest weight is 0. The paper and its implementations use 1.
    max_iter : int, default=200
        Maximum number of iterations of L-BFGS, for WANBIA.
    n_trees : int, default=10
        Number of trees, for AWNB.
    subsample : float, default=0.5
        Number of rows drawn with replacement for each tree, relative to the number of rows, for AWNB.
    smoothing : MaximumLikelihood, optional
        Estimator of the CPTs, which must not be zero; by default ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu"}, default="cpu"
        Accepted for compatibility with other classifiers. There are no CUDA kernels.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the rows of each tree, for AWNB. WANBIA is deterministic.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each feature.
    tables_ : Tables
        Log probabilities of each feature given the class, without the weights.
    model_ : WeightedNaiveBayes
        CPTs and weights.
    n_iter_ : int
        Number of iterations of WANBIA; not set for AWNB.
    converged_ : bool
        Whether L-BFGS converged before ``max_iter``; not set for AWNB.
    history_ : list of Iteration
        Mean training loss at the start and after each iteration; not set for AWNB.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters, including the weights.

    Notes
    -----
    WANBIA minimizes, with L-BFGS-B from weights of 1::

        mean of -log P(y | x),    or    mean of 1/2 sum over c of (1[c = y] - P(c | x))^2

    The trees of AWNB use the splitting rule of C4.5 without pruning: one branch per value, the largest gain ratio among
    the tests of at least mean gain. A missing value is a branch of its own in trees. Otherwise, a missing feature
    contributes nothing to a prediction.

    The model has no joint distribution of the features, so ``score_samples`` and ``predict_joint_log_proba`` are not
    available. bnclassify normalizes P(x_i | c)^w_i over the values of the feature. Its probabilities therefore differ
    from both papers.

    References
    ----------
    Zaidi, Cerquides, Carman, Webb: Alleviating naive Bayes attribute independence assumption by attribute weighting.
    Journal of Machine Learning Research 14, 2013.

    Hall: A decision tree-based attribute weighting filter for naive Bayes. Knowledge-Based Systems 20, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import WeightedNaiveBayesClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> x, other = (y ^ (rng.random(300) < share) for share in (0.2, 0.3))
    >>> model = WeightedNaiveBayesClassifier().fit(np.stack([x, x, x, other], axis=1), y)
    >>> model.feature_weights_.round(1).tolist()  # the three copies share the weight of one feature
    [0.3, 0.3, 0.3, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "weighting": [StrOptions({*OBJECTIVES, "trees"})],
        "max_weight": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "smoothing": [None, MaximumLikelihood],
        "device": [StrOptions({"cpu"})],
    }
    _model_type: ClassVar[type[Model]] = WeightedNaiveBayes

    n_iter_: int
    converged_: bool
    history_: list[Iteration]

    def __init__(
        self,
        *,
        weighting: str = "conditional-likelihood",
        max_weight: float = 1.0,
        max_iter: int = 200,
        n_trees: int = 10,
        subsample: float = 0.5,
        smoothing: MaximumLikelihood | None = None,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.weighting = weighting
        self.max_weight = max_weight
        self.max_iter = max_iter
        self.n_trees = n_trees
        self.subsample = subsample
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _default_discretizer(self) -> MDLPDiscretizer:
        """Return the default discretizer, which does not search for interactions."""
        return MDLPDiscretizer(n_jobs=self.n_jobs)

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Estimate the CPTs, then the weights."""
        smoothing = MaximumLikelihood() if self.smoothing is None else self.smoothing
        if smoothing.alpha == 0 and smoothing.epsilon is None:
            raise ValueError(
                f"smoothing must keep all probabilities above zero, because their logarithms are weighted, got "
                f"{smoothing!r}. Pass MaximumLikelihood(alpha=1), or MaximumLikelihood(alpha=0, epsilon=1e-5)."
            )
        data = data.present()
        tables = smoothing.fit(Structure.naive_bayes(data.n_features), data, rng)
        if self.weighting in OBJECTIVES:
            settings = self.weighting, self.max_weight, self.max_iter, self.n_jobs
            weights, self.n_iter_, self.converged_, self.history_ = trained_weights(data, tables, *settings)
        else:
            weights = tree_weights(data, self.n_trees, self.subsample, rng)
        self.model_ = WeightedNaiveBayes(tables, weights)

    def _histories(self) -> dict[str, list[Any]]:
        """Return the history of the optimization of the weights."""
        return {"parameters": getattr(self, "history_", [])}

    def _check_joint(self) -> bool:
        """Raise an AttributeError, because the scores are not log probabilities of rows."""
        raise AttributeError(
            f"{type(self).__name__} has no joint distribution of the features, because weighted probabilities do not "
            f"sum to one. Use predict_log_proba."
        )

    @property
    def tables_(self) -> Tables:
        """CPTs of naive Bayes, without the weights."""
        tables: Tables = self.model_.tables
        return tables

    @property
    def feature_weights_(self) -> FloatArray:
        """Weight of each feature. Shape: (n_features,)."""
        weights: FloatArray = self.model_.weights
        return weights

    def explain(self, X: Any, *, against: Any = None) -> FloatArray:
        """Split each prediction into contributions of the features.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Return log odds against this class instead of scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_classes)
            Contribution w_i log P(x_i | c) of each feature to the score of each class, or to its log odds against
            ``against``; the last one is the contribution of the class prior. A missing feature contributes 0. The sums
            differ by the same amounts as the values of ``predict_log_proba``.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.

        Examples
        --------
        >>> from tanlearn.baselines import WeightedNaiveBayesClassifier
        >>> X = [["sun", "hot"], ["rain", "cold"], ["rain", "hot"], ["sun", "hot"]]
        >>> model = WeightedNaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
        >>> model.explain([["sun", None]], against="home")[0, 1].tolist()  # the second feature is missing
        [0.0, 0.0]
        """
        return against_class(self.model_.contributions(encode_rows(self, X)), against, self.classes_)

    def explain_frame(self, X: Any, *, against: Any = None) -> Any:
        """Return the contributions of :meth:`explain` as a data frame.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Return log odds against this class instead of scores.

        Returns
        -------
        DataFrame
            One line per row and feature, and one for the class prior; one column per class.

        Raises
        ------
        ImportError
            If pandas is not installed.
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.

        Examples
        --------
        >>> from tanlearn.baselines import WeightedNaiveBayesClassifier
        >>> model = WeightedNaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
        >>> model.explain_frame([["sun"]])["feature"].tolist()
        ['x0', '(classes)']
        """
        return explanation_frame(self, X, against)

    @property
    def size_bits_(self) -> int:
        """Size of the CPTs and weights in bits, 32 per number."""
        return 32 * (self.tables_.n_cells + len(self.feature_weights_))

    @property
    def n_operations_(self) -> int:
        """Number of additions per prediction: one weighted CPT entry per feature and class."""
        return len(self.feature_weights_) * self.tables_.layout.n_classes
