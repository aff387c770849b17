"""The scikit-learn estimators: the border outside, learners on encoded data inside."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from tanlearn._cuda import DEVICES, check_device
from tanlearn._typing import AnyArray, Codes, FloatArray, codes_dtype, missing_code
from tanlearn.archive import fields
from tanlearn.border import encode_rows, encode_training, forget, generator
from tanlearn.class_weights import read_prior
from tanlearn.devices import DeviceMixin
from tanlearn.encoded_data import EncodedData
from tanlearn.generation import GenerativeMixin
from tanlearn.generative import log_evidence
from tanlearn.inference import log_joint, log_posterior
from tanlearn.parameters import MaximumLikelihood, ParameterLearner, check_learner_device
from tanlearn.persistence import save
from tanlearn.quantization import FixedPoint, IntegerTables
from tanlearn.serialization import restore_tables
from tanlearn.streams import PartialFitMixin, check_structure
from tanlearn.structures import Structure
from tanlearn.table_encoder import TableEncoder
from tanlearn.tables import Tables

__all__ = ["BayesNetClassifier", "Classifier", "NaiveBayesClassifier", "StructureLearner"]


class StructureLearner(Protocol):
    """What an estimator asks of an object that learns structures."""

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return a structure.

        Parameters
        ----------
        data : EncodedData
            Rows.
        rng : numpy.random.Generator
            Where all randomness comes from.

        Returns
        -------
        Structure
        """
        ...


class Classifier(ClassifierMixin, BaseEstimator):
    """Encoding at the border, prediction, and what a fitted model can tell; subclasses learn."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "class_weight": [None, StrOptions({"balanced"}), dict],
        "class_prior": [None, "array-like"],
        "encoder": [None, TableEncoder],
        "device": [StrOptions(set(DEVICES))],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
    }

    class_weight: Any
    class_prior: Any
    encoder: TableEncoder | None
    device: str
    n_jobs: int | None
    random_state: Any
    structure_: Structure
    tables_: Tables
    classes_: AnyArray
    encoder_: TableEncoder

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the classifier.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values: strings, categories, booleans and whole numbers, if at most 10 distinct ones, are taken as
            they are, other numbers are discretised (see :class:`~tanlearn.TableEncoder`).
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; 0 is as good as an absent row.

        Returns
        -------
        object
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If a column, ``y`` or the weights break a rule of the border; the message names the place and the
            remedy.
        ImportError, RuntimeError
            If the device is not there.
        """
        self._validate_params()
        check_device(self.device)
        forget(self)
        fraction = getattr(self, "validation_fraction", None)
        data, held_out = encode_training(self, X, y, sample_weight, validation_fraction=fraction)
        return self._learn_all(data, held_out)

    def fit_encoded(self, data: EncodedData, validation: EncodedData | None = None) -> Any:
        """Learn from codes; for searches that encode once and learn many times.

        Parameters
        ----------
        data : EncodedData
            Encoded rows and classes. Prediction from raw values needs :meth:`fit`, so what an earlier one left
            is forgotten. ``class_weight`` belongs to encoding: here, the weights count as they are.
        validation : EncodedData, optional
            Held-out rows for learners that watch some.

        Returns
        -------
        object
            The estimator itself, with all that :meth:`fit` learns but the encoding.
        """
        self._validate_params()
        check_device(self.device)
        forget(self)
        return self._learn_all(data, validation)

    def _learn_all(self, data: EncodedData, validation: EncodedData | None) -> Any:
        """Learn, then replace the prior if the user knows better."""
        log_prior = None if self.class_prior is None else read_prior(self.class_prior, data.n_classes)
        data = replace(data, device=self.device)
        validation = None if validation is None else replace(validation, device=self.device)
        self._learn(data, validation, generator(self.random_state))
        if log_prior is not None:
            self._set_log_prior(log_prior)
        return self

    def _set_log_prior(self, log_prior: FloatArray) -> None:
        """Take other class probabilities; models without ``tables_`` have their own way."""
        self.tables_ = self.tables_.with_log_prior(log_prior)

    def with_class_prior(self, class_prior: Any) -> Any:
        """Return a copy of the fitted classifier for a place where classes are more or less frequent.

        Parameters
        ----------
        class_prior : array-like of shape (n_classes,)
            Probabilities of the classes, in the order of ``classes_``.

        Returns
        -------
        object
            A classifier like this one; this one stays as it is.

        Raises
        ------
        NotFittedError
            If there is nothing to copy.
        ValueError
            If these are no probabilities of the classes, or one is smaller than tables rounded to few bits can hold.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["cough"], ["cough"], ["none"]], ["cold", "cold", "well"])
        >>> model.with_class_prior([0.01, 0.99]).predict([["cough"]]).tolist()  # few people have a cold in summer
        ['well']
        """
        check_is_fitted(self)
        twin = copy(self)
        twin.class_prior = class_prior
        twin._set_log_prior(read_prior(class_prior, len(self.classes_)))
        return twin

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Set ``structure_`` and ``tables_``, or whatever an overridden ``_log_joint`` reads."""
        raise NotImplementedError(type(self).__name__)

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log p(class, features) of every row; missing features are summed out.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_joint(encode_rows(self, X))

    def _log_joint(self, codes: Codes) -> FloatArray:
        """Return log p(class, features) of encoded rows; models without ``tables_`` have their own."""
        return log_joint(self.tables_, self.structure_, codes, n_jobs=self.n_jobs, device=self.device)

    def score_samples(self, X: Any) -> FloatArray:
        """Return log p(features) of every row: how likely the model holds it for; missing features are summed out.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            The probability of the encoded row: of a continuous column, that of its interval. After training for
            anything but likelihood it ranks rows still, but says little of their frequency.
        """
        evidence = log_evidence(self.predict_joint_log_proba(X))
        tables = getattr(self, "tables_", None)
        if isinstance(tables, IntegerTables):  # they are not normalised
            codes = codes_dtype(int(tables.layout.n_states.max()))
            nothing = np.full((len(tables), 1), missing_code(codes), codes)
            evidence -= log_evidence(log_joint(tables, self.structure_, nothing, device=self.device))
        return evidence

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of every class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return log_posterior(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of every row; of equals, the first in ``classes_``.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.predict_joint_log_proba(X)
        return self.classes_[scores.argmax(axis=1)]

    def save(self, path: Any) -> None:
        """Write the fitted classifier to a file, from which :func:`tanlearn.load` makes it again.

        Parameters
        ----------
        path : str or path
            Where; what is there is replaced. See :mod:`tanlearn.persistence` for what a file keeps, and its format.
        """
        save(self, path)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters of the fitted model."""
        return self.tables_.n_parameters

    def _get_state(self) -> dict[str, Any]:
        """Return what a file of the model holds beside parameters, classes and encoder."""
        if isinstance(self.tables_, IntegerTables):
            bits = self.tables_.fixed_point.integer_bits, self.tables_.fixed_point.fraction_bits
            return {"structure": self.structure_, "cells": self.tables_.packed, "bits": bits}
        return {"structure": self.structure_, "cells": self.tables_.cells}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take what a file holds; classes and encoder are there already."""
        fixed_point = FixedPoint(*state.pop("bits")) if "bits" in state else None
        structure, cells = fields(state, "structure", "cells")
        self.tables_ = restore_tables(structure, self.encoder_.n_states_, len(self.classes_), cells, fixed_point)
        self.structure_ = structure

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tables_") and hasattr(self, "encoder_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class BayesNetClassifier(PartialFitMixin, GenerativeMixin, DeviceMixin, Classifier):
    """A structure learner and a parameter learner, one after the other.

    Parameters
    ----------
    structure : StructureLearner or Structure, optional
        An object with ``learn(data, rng)``, such as those of :mod:`tanlearn.baselines`, or a structure that you
        know; by default naive Bayes.
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
        The copy of ``structure`` that learnt, unless that is a structure or None.
    parameters_ : ParameterLearner
        The copy of ``parameters`` that learnt, with what it found on the way.
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
        structure = Structure.naive_bayes(data.n_features) if self.structure is None else self.structure
        if not isinstance(structure, Structure):
            self.structure_learner_ = clone(structure, safe=False)
            check_learner_device(self.structure_learner_, self.device)
            structure = self.structure_learner_.learn(data, rng)
        check_structure(structure, data.n_features)
        self.tables_ = self.parameters_.fit(structure, data, rng)
        self.structure_ = structure


class NaiveBayesClassifier(PartialFitMixin, GenerativeMixin, DeviceMixin, Classifier):
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
        The copy of ``parameters`` that learnt, with what it found on the way.
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
