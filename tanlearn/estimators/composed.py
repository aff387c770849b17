"""Naive Bayes, and classifiers put together of a learner of structures and one of parameters."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, InvalidParameterError

from tanlearn.data.border import generator
from tanlearn.data.encoded_data import EncodedData
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
from tanlearn.network.tables import TableLayout, Tables
from tanlearn.parameters.learned_structure import LearnedStructure, copy_generator
from tanlearn.parameters.learner import ParameterLearner, check_learner_device
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["BayesNetClassifier", "NaiveBayesClassifier", "StructureLearner"]


class StructureLearner(Protocol):
    """What an estimator asks of an object that learns structures."""

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return a structure."""
        ...


#: Where learners are, for who passes a name or a class in place of one.
_LEARNERS = {
    "structure": "tanlearn.baselines, such as ChowLiu()",
    "parameters": "tanlearn, such as MaximumLikelihood()",
}


class _FamiliesMixin(PartialFitMixin):
    """``fit_batches`` of structures and their families."""

    structure_: Structure
    structure_learner_: Any
    parameters_: Any
    random_state: Any
    tables_: Tables

    def _validate_params(self) -> None:
        """Refuse wrong parameters, and with a remedy names and classes in place of learners."""
        for name, learners in _LEARNERS.items():
            given = getattr(self, name, None)
            if isinstance(given, str):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be an object, and no name of one. Got "
                    f"{given!r} instead. Pass a learner of {learners}."
                )
            if isinstance(given, type):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be an object, got the class "
                    f"{given.__name__}. Pass an instance instead: {given.__name__}(...)."
                )
        super()._validate_params()  # type: ignore[misc]

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Find the structure from counts of pairs, unless it is known, then count its families."""
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
        if counts is pairs or pairs is None:  # otherwise the structure of chunks that come later would be another
            self.counts_ = counts

    def _as_own(self, counts: Any) -> Any:
        """Return pairs for a learner of structures, contexts for smoothing over them, else the families' own tables."""
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
        if isinstance(counts, CountState):
            layout, cells = forest_counts(counts, given)
            own = FamilyCounts(layout)
            own.cells = cells
            return own
        found = Structure(counts.layout.parents if isinstance(counts, FamilyCounts) else counts.parents)
        if found != given:
            raise ValueError(
                f"the counts are of the families of {found!r}, and not of those of {given!r}. Name that structure, or "
                f"pass counts of pairs."
            )
        return counts


class BayesNetClassifier(_FamiliesMixin, GenerativeMixin, EmbeddedMixin, Classifier):
    """A structure learner and a parameter learner, one after the other.

    Parameters
    ----------
    structure : StructureLearner or Structure, optional
        An object with ``learn(data, rng)``, such as those of :mod:`tanlearn.baselines`, or a structure that you
        know; by default naive Bayes. Parameter learners that use held-out rows have the structure learned again without
        these, on data of up to 300,000 numbers (rows times features times classes).
    parameters : ParameterLearner, optional
        An object with ``fit(structure, data, rng)``; by default ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factors of the rows' weights by class; "balanced" gives all classes the same weight.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes, in sorted order, in place of those learnt.
    encoder : TableEncoder, optional
        How raw columns become codes; by default ``TableEncoder()``.
    device : {"cpu", "cuda"}, default="cpu"
        Where rows are counted, tables are trained and classes are predicted. "cuda" needs an NVIDIA device and
        ``tanlearn[cuda12]`` or ``tanlearn[cuda13]``; what cannot be done there is refused, and nothing falls back.
        Encoding, and drawing, completing and explaining rows, stay on the CPU.
    n_jobs : int, optional
        Threads for encoding and prediction, as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for learners that draw. The same rows, parameters and int give the same model, bit for bit: where all is
        counted on every x86-64 processor, where parameters are trained by gradient on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network; ``structure_.parent`` and ``structure_.to_networkx()``.
    tables_ : Tables
        Log-probabilities of every feature given its parents and the class.
    structure_learner_ : StructureLearner
        The copy of ``structure`` that learnt, with what it found on the way, such as ``history_``; not set if that is a
        structure or None.
    parameters_ : ParameterLearner
        The copy of ``parameters`` that learnt, with what it found on the way, such as ``n_iter_`` and ``history_``.
    calibration_ : Calibration
        How scores become probabilities: found on held-out rows by learners that train for classification (their
        ``calibrate``), otherwise of temperature and power 1. Where it divides the evidence alone, the class
        prior of the tables is adapted to it (see :class:`~tanlearn.HybridCV`).
    classes_ : ndarray of shape (n_classes,)
        Classes in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` had any.
    n_parameters_ : int
        Free parameters.

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
        """Learn the structure, then the tables."""
        # Learners are copied, as they may keep what they find: what the user passed stays as it was.
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
    """Naive Bayes: features independent given the class (resource-efficient, eq. 4), any parameter learner.

    Parameters
    ----------
    parameters : ParameterLearner, optional
        An object with ``fit(structure, data, rng)``; by default ``MaximumLikelihood(alpha=1)``.
    class_weight : None, "balanced" or dict, default=None
        Factors of the rows' weights by class; "balanced" gives all classes the same weight.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes, in sorted order, in place of those learnt.
    encoder : TableEncoder, optional
        How raw columns become codes; by default ``TableEncoder()``.
    device : {"cpu", "cuda"}, default="cpu"
        Where rows are counted, tables are trained and classes are predicted. "cuda" needs an NVIDIA device and
        ``tanlearn[cuda12]`` or ``tanlearn[cuda13]``; what cannot be done there is refused, and nothing falls back.
        Encoding, and drawing, completing and explaining rows, stay on the CPU.
    n_jobs : int, optional
        Threads for encoding and prediction, as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for parameter learners that draw. The same rows, parameters and int give the same model, bit for bit: where
        all is counted on every x86-64 processor, where parameters are trained by gradient on the same machine.

    Attributes
    ----------
    structure_ : Structure
        The network without edges between features.
    tables_ : Tables
        Log-probabilities of every feature given the class.
    parameters_ : ParameterLearner
        The copy of ``parameters`` that learnt, with what it found on the way, such as ``n_iter_`` and ``history_``.
    calibration_ : Calibration
        How scores become probabilities: found on held-out rows by learners that train for classification (their
        ``calibrate``), otherwise of temperature and power 1. Where it divides the evidence alone, the class
        prior of the tables is adapted to it (see :class:`~tanlearn.HybridCV`).
    classes_ : ndarray of shape (n_classes,)
        Classes in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` had any.
    n_parameters_ : int
        Free parameters.

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
        """Learn the tables."""
        self.structure_ = Structure.naive_bayes(data.n_features)
        self.parameters_ = MaximumLikelihood() if self.parameters is None else clone(self.parameters, safe=False)
        check_learner_device(self.parameters_, self.device)
        self.tables_ = self.parameters_.fit(self.structure_, data, rng)
        self.calibration_ = getattr(self.parameters_, "calibration_", Calibration())
