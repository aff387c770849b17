"""Bayesian network classifier with a structure learner and a parameter learner."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.counting_classifier import CountingClassifier
from tanlearn.estimators.estimator_input import encode_training
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
from tanlearn.structures.replay import structures_along
from tanlearn.structures.structures import Structure

__all__ = ["BayesNetClassifier", "StructureLearner"]


class StructureLearner(Protocol):
    """Interface for structure learners.

    A learner with ``needs = "pairs"`` also has ``from_counts(pairs, rng)``, which learns a structure from counts of
    pairs.
    """

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Learn a structure from encoded rows."""
        ...


class BayesNetClassifier(CountingClassifier, NetworkClassifier):
    """Bayesian network classifier that combines a structure learner and a parameter learner.

    Parameters
    ----------
    structure : StructureLearner or Structure, optional
        A learner with ``learn(data, rng)``, such as the learners in :mod:`tanlearn.baselines`, or a fixed structure.
        The default is the structure of naive Bayes. If the parameter learner uses held-out rows, the structure is
        learned again without these rows, unless rows times features times classes exceed 300,000.
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
        Seed for randomized learners. With the same rows, parameters and integer seed, models based on counts are equal
        bit for bit on every x86-64 processor. Models trained by gradient are equal on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network, with ``structure_.parent`` and ``structure_.to_networkx()``.
    tables_ : Tables
        CPTs: log-probabilities of each feature given its parents and the class.
    structure_learner_ : StructureLearner
        The fitted copy of ``structure``, with attributes such as ``history_``. It does not exist if ``structure`` is a
        :class:`~tanlearn.Structure` or None.
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
    Friedman, Geiger, Goldszmidt: Bayesian network classifiers. Machine Learning 29, 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BayesNetClassifier
    >>> from tanlearn.baselines import ChowLiu
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    >>> model.structure_
    Structure(n_features=4, n_edges=3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkClassifier._parameter_constraints,
        "structure": [None, Structure, HasMethods("learn")],
        "parameters": [None, HasMethods("fit")],
    }

    def __init__(
        self,
        *,
        structure: StructureLearner | Structure | None = None,
        parameters: ParameterLearner | None = None,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.structure = structure
        self.parameters = parameters
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    _validate_params, _histories = validate_params, histories
    _learn, _learn_batches, _learn_counts = learn_rows, learn_batches, learn_counts
    _check_needs, _needs_from_counts = check_needs, needs_from_counts
    _new_counts, _convert_counts = new_counts, convert_counts

    def _learning_errors(
        self, train: tuple[Any, Any], test: tuple[Any, Any], n_points: int
    ) -> dict[str, list[tuple[Any, float]]]:
        """Fit the parameters for the best structures along the search, and return held-out errors."""
        best: list[tuple[Any, Structure]] = []
        for change, structure in structures_along(self._histories()["structure"], self.structure_.n_features):
            if not best or change.score > best[-1][0].score:
                best.append((change, structure))
        if not best:
            return {}
        chosen = np.unique(np.linspace(0, len(best) - 1, n_points).round().astype(int))
        model = clone(self)
        data, _ = encode_training(model, *train)
        errors = []
        for change, structure in (best[k] for k in chosen):
            model.set_params(structure=structure)._learn_all(data, None)
            errors.append((change, 1.0 - float(model.score(*test))))
        return {"structure": errors}
