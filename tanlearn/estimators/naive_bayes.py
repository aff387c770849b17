"""Naive Bayes classifier."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import HasMethods

from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.counting_classifier import CountingClassifier
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.estimators.network_learning import (
    check_needs,
    convert_counts,
    histories,
    learn_batches,
    learn_counts,
    learn_rows,
    needs_from_counts,
    new_counts,
    validate_params,
)
from tanlearn.parameters.parameter_learner import ParameterLearner

__all__ = ["NaiveBayesClassifier"]


class NaiveBayesClassifier(CountingClassifier, NetworkClassifier):
    """Naive Bayes classifier with any parameter learner.

    The features are independent given the class (resource-efficient paper, eq. 4).

    Parameters
    ----------
    parameters : ParameterLearner, optional
        A learner with ``fit(structure, data, rng)``. The default is ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu", "cuda", "cuda:0", "cuda:1", ...}, default="cpu"
        Device for counting, training and prediction. "cuda" needs an NVIDIA GPU and ``tanlearn[cuda12]`` or
        ``tanlearn[cuda13]``. It is the first GPU, or the current device of CuPy. "cuda:1" is the second GPU. An
        operation that does not support CUDA raises an error. There is no fallback to the CPU. Encoding, sampling,
        completion and explanations always run on the CPU.
    n_jobs : int, optional
        Number of threads for encoding and prediction, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed for randomized parameter learners. With the same rows, parameters and integer seed, models based on counts
        are equal bit for bit on every x86-64 processor. Models trained by gradient are equal on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network without edges between features.
    tables_ : Tables
        CPTs: log-probabilities of each feature given the class.
    parameters_ : ParameterLearner
        The fitted copy of ``parameters``, with attributes such as ``n_iter_`` and ``history_``.
    calibration_ : Calibration
        Map from scores to probabilities. Discriminative parameter learners with ``calibrate=True`` fit it to held-out
        rows. Otherwise, its temperature and power are 1. If the temperature divides only the contributions of the
        features, the class prior in ``tables_`` is adapted to the temperature (see :class:`~tanlearn.HybridCV`).
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters.

    References
    ----------
    Duda, Hart: Pattern classification and scene analysis. Wiley, 1973.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> X = [["sun", 30.5], ["rain", 12.0], ["sun", 28.0], ["rain", 15.5]]
    >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "beach", "home"])
    >>> model.predict([["sun", None], ["snow", 11.0]]).tolist()  # None: not known; snow: never seen
    ['beach', 'home']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkClassifier._parameter_constraints,
        "parameters": [None, HasMethods("fit")],
    }

    structure = None

    def __init__(
        self,
        *,
        parameters: ParameterLearner | None = None,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.parameters = parameters
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _default_discretizer(self) -> MDLPDiscretizer:
        """Return the default discretizer, which does not search for interactions."""
        return MDLPDiscretizer(n_jobs=self.n_jobs)

    _validate_params, _histories = validate_params, histories
    _learn, _learn_batches, _learn_counts = learn_rows, learn_batches, learn_counts
    _check_needs, _needs_from_counts = check_needs, needs_from_counts
    _new_counts, _convert_counts = new_counts, convert_counts
