"""Naive Bayes classifier, and classifiers composed of a structure learner and a parameter learner."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, InvalidParameterError

from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.estimator_input import generator
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.base import Classifier
from tanlearn.estimators.embedded import EmbeddedMixin
from tanlearn.estimators.generation import GenerativeMixin
from tanlearn.estimators.partial_fit import PartialFitMixin, forest_counts
from tanlearn.estimators.row_sources import EncodedSource
from tanlearn.network.calibration import Calibration
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.counts import CountState
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.structures import Structure, check_structure
from tanlearn.network.table_layout import TableLayout
from tanlearn.network.tables import Tables
from tanlearn.parameters.learned_structure import LearnedStructure, copy_generator
from tanlearn.parameters.learner import ParameterLearner, check_learner_device
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["BayesNetClassifier", "NaiveBayesClassifier", "StructureLearner"]


class StructureLearner(Protocol):
    """Interface of learners of structures."""

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Learn a structure from encoded rows."""
        ...


#: Suggestions shown when a string or a class is passed instead of an instance.
_LEARNERS = {
    "structure": "tanlearn.baselines, such as ChowLiu()",
    "parameters": "tanlearn, such as MaximumLikelihood()",
}


class _FamiliesMixin(PartialFitMixin):
    """``fit_batches`` and ``from_counts`` for classifiers with a structure and a parameter learner."""

    structure_: Structure
    structure_learner_: Any
    parameters_: Any
    random_state: Any
    tables_: Tables

    def _validate_params(self) -> None:
        """Validate the parameters; strings and classes passed as learners get an error with a suggestion."""
        for name, learners in _LEARNERS.items():
            given = getattr(self, name, None)
            if isinstance(given, str):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be an object, not a string. Got "
                    f"{given!r} instead. Pass a learner of {learners}."
                )
            if isinstance(given, type):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be an object, got the class "
                    f"{given.__name__}. Pass an instance instead: {given.__name__}(...)."
                )
        super()._validate_params()  # type: ignore[misc]

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Learn the structure from counts of pairs, unless it is fixed, then count its families."""
        structure, parameters = getattr(self, "structure", None), getattr(self, "parameters", None)
        self.parameters_ = MaximumLikelihood() if parameters is None else clone(parameters)
        check_learner_device(self.parameters_, self.device)
        pairs = start = None
        if structure is None:
            structure = Structure.naive_bayes(len(rows.n_states))
        elif not isinstance(structure, Structure):
            self.structure_learner_ = clone(structure)
            pairs = rows.add_to(CountState(rows.n_states, rows.n_classes), n_jobs=self.n_jobs)
            pairs.names = getattr(self, "feature_names_in_", None)
            rng = generator(self.random_state)
            start = copy_generator(rng)
            structure = self.structure_learner_.from_counts(pairs, rng)
        check_structure(structure, len(rows.n_states))
        self.structure_ = structure
        if hasattr(self.parameters_, "from_contexts"):
            contexts = ContextCounts(structure.parents, rows.n_states, rows.n_classes)
            contexts = rows.add_to(contexts, n_jobs=self.n_jobs)
            self.tables_ = self.parameters_.from_contexts(contexts, lambda: rows.sample)
            return
        if pairs is not None and (structure.parents[:, 1:] < 0).all():
            counts: Any = pairs
            layout, cells = forest_counts(pairs, structure)
        else:
            layout = TableLayout.of_parents(structure.parents, rows.n_states, rows.n_classes)
            counts = rows.add_to(FamilyCounts(layout), n_jobs=self.n_jobs)
            cells = counts.cells
        if hasattr(self.parameters_, "from_objective"):
            learned = structure if start is None else LearnedStructure(structure, self.structure_learner_, start)
            self.tables_ = self.parameters_.from_objective(learned, layout, cells, rows)
            self.calibration_ = self.parameters_.calibration_
            return
        self.tables_ = self.parameters_.from_counts(layout, cells)
        if counts is pairs or pairs is None:  # others cannot relearn the structure
            self.counts_ = counts

    def _as_own(self, counts: Any) -> Any:
        """Return the counts that the learners need, converted and checked.

        Structure learners need counts of pairs, smoothing over contexts needs counts of contexts, and other learners
        need the counts of their families.
        """
        structure, parameters = getattr(self, "structure", None), getattr(self, "parameters", None)
        if hasattr(structure, "from_counts"):
            self._check_kind(counts, CountState)
            return counts
        if hasattr(parameters, "from_contexts"):
            self._check_kind(counts, ContextCounts)
        else:
            self._check_kind(counts, CountState, FamilyCounts)
        given = Structure.naive_bayes(len(counts.n_states)) if structure is None else structure
        check_structure(given, len(counts.n_states))
        if counts.has_pairs:
            layout, cells = forest_counts(counts, given)
            own = FamilyCounts(layout)
            own.cells = cells
            return own
        found = Structure(counts.parents)
        if found != given:
            raise ValueError(
                f"the counts are those of the families of {found!r}, but structure is {given!r}. Pass the same "
                f"structure, or pass counts of pairs."
            )
        return counts


class BayesNetClassifier(_FamiliesMixin, GenerativeMixin, EmbeddedMixin, Classifier):
    """Bayesian network classifier composed of a structure learner and a parameter learner.

    Parameters
    ----------
    structure : StructureLearner or Structure, optional
        A learner with ``learn(data, rng)``, such as those of :mod:`tanlearn.baselines`, or a fixed structure; by
        default naive Bayes. For parameter learners that use held-out rows, the structure is learned again without these
        rows, on data of up to 300,000 numbers (rows times features times classes).
    parameters : ParameterLearner, optional
        A learner with ``fit(structure, data, rng)``; by default ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factor of the sample weights of each class; "balanced" gives all classes the same total weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities in sorted order of the classes, instead of the fitted ones.
    encoder : TableEncoder, optional
        Encoder of raw columns; by default ``TableEncoder()``.
    device : {"cpu", "cuda"}, default="cpu"
        Device for counting, training and prediction. "cuda" needs an NVIDIA GPU and ``tanlearn[cuda12]`` or
        ``tanlearn[cuda13]``. An operation that CUDA does not support raises an error; there is no fallback to the CPU.
        Encoding, sampling, completion and explanations always run on the CPU.
    n_jobs : int, optional
        Number of threads for encoding and prediction, as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of randomized learners. The same rows, parameters and int give the same model, bit for bit: models based on
        counts on every x86-64 processor, models trained by gradient on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network; ``structure_.parent`` and ``structure_.to_networkx()``.
    tables_ : Tables
        CPTs: log-probabilities of each feature given its parents and the class.
    structure_learner_ : StructureLearner
        The fitted copy of ``structure``, with attributes such as ``history_``; not set if ``structure`` is a
        :class:`~tanlearn.Structure` or None.
    parameters_ : ParameterLearner
        The fitted copy of ``parameters``, with attributes such as ``n_iter_`` and ``history_``.
    calibration_ : Calibration
        Map from scores to probabilities. Discriminative parameter learners with ``calibrate`` fit it on held-out rows;
        otherwise its temperature and power are 1. Where it divides only the evidence, the class prior of the tables
        is adapted to it (see :class:`~tanlearn.HybridCV`).
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; set only if ``X`` had names.
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
        **Classifier._parameter_constraints,
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

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Learn the structure, then the parameters."""
        # Learners set fitted attributes on themselves: fit copies, so that the user's objects do not change.
        self.parameters_ = MaximumLikelihood() if self.parameters is None else clone(self.parameters, safe=False)
        check_learner_device(self.parameters_, self.device)
        found = Structure.naive_bayes(data.n_features) if self.structure is None else self.structure
        if isinstance(found, Structure):
            check_structure(found, data.n_features)
            structure = found
        else:
            self.structure_learner_ = clone(found, safe=False)
            check_learner_device(self.structure_learner_, self.device)
            start = copy_generator(rng)
            found = self.structure_learner_.learn(data, rng)
            check_structure(found, data.n_features)
            structure = LearnedStructure(found, self.structure_learner_, start)
        self.tables_ = self.parameters_.fit(structure, data, rng)
        self.calibration_ = getattr(self.parameters_, "calibration_", Calibration())
        self.structure_ = found


class NaiveBayesClassifier(_FamiliesMixin, GenerativeMixin, EmbeddedMixin, Classifier):
    """Naive Bayes classifier with any parameter learner.

    The features are independent given the class (resource-efficient paper, eq. 4).

    Parameters
    ----------
    parameters : ParameterLearner, optional
        A learner with ``fit(structure, data, rng)``; by default ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factor of the sample weights of each class; "balanced" gives all classes the same total weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities in sorted order of the classes, instead of the fitted ones.
    encoder : TableEncoder, optional
        Encoder of raw columns; by default ``TableEncoder()``.
    device : {"cpu", "cuda"}, default="cpu"
        Device for counting, training and prediction. "cuda" needs an NVIDIA GPU and ``tanlearn[cuda12]`` or
        ``tanlearn[cuda13]``. An operation that CUDA does not support raises an error; there is no fallback to the CPU.
        Encoding, sampling, completion and explanations always run on the CPU.
    n_jobs : int, optional
        Number of threads for encoding and prediction, as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of randomized parameter learners. The same rows, parameters and int give the same model, bit for bit:
        models based on counts on every x86-64 processor, models trained by gradient on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network without edges between features.
    tables_ : Tables
        CPTs: log-probabilities of each feature given the class.
    parameters_ : ParameterLearner
        The fitted copy of ``parameters``, with attributes such as ``n_iter_`` and ``history_``.
    calibration_ : Calibration
        Map from scores to probabilities. Discriminative parameter learners with ``calibrate`` fit it on held-out rows;
        otherwise its temperature and power are 1. Where it divides only the evidence, the class prior of the tables
        is adapted to it (see :class:`~tanlearn.HybridCV`).
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; set only if ``X`` had names.
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
        **Classifier._parameter_constraints,
        "parameters": [None, HasMethods("fit")],
    }

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

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Fit the parameters."""
        self.structure_ = Structure.naive_bayes(data.n_features)
        self.parameters_ = MaximumLikelihood() if self.parameters is None else clone(self.parameters, safe=False)
        check_learner_device(self.parameters_, self.device)
        self.tables_ = self.parameters_.fit(self.structure_, data, rng)
        self.calibration_ = getattr(self.parameters_, "calibration_", Calibration())
