"""Base class of all classifiers, which validates and encodes raw data for learners of encoded data."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tanlearn._compilation import watch_compilation
from tanlearn._memory import Need, check_fit
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.counts.counts_base import Counts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.row_checks import RowCheck
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.encoding.weights import read_prior
from tanlearn.estimators.class_prior import moved_prior
from tanlearn.estimators.class_prior import with_class_prior as copy_with_class_prior
from tanlearn.estimators.estimator_input import (
    delete_fitted_attributes,
    encode_new_rows,
    encode_rows,
    encode_training,
    generator,
    read_rows,
)
from tanlearn.estimators.impossible_rows import replace_impossible
from tanlearn.estimators.learning_record import learning_errors as errors_along_learning
from tanlearn.estimators.learning_record import learning_history as stages_of_learning
from tanlearn.files.archive import ExplainedError
from tanlearn.kernels._cuda import check_device
from tanlearn.models.calibration import Calibration
from tanlearn.models.log_joint import log_evidence
from tanlearn.models.model import Model

if TYPE_CHECKING:
    from tanlearn.estimators.row_predictor import RowPredictor

__all__ = ["Classifier"]


watch_compilation()  # for all classifiers, as soon as they are imported


class Classifier(ClassifierMixin, BaseEstimator):
    """Base class that encodes raw data, predicts with ``model_``, and saves the fitted model.

    A subclass sets ``_model_type``, the type of ``model_`` in files, and overrides

    - ``_default_discretizer``: the discretizer, if the encoder does not set one;
    - ``_default_handle_missing``: the treatment of missing values, if the encoder does not set ``handle_missing``;
    - ``_learn(data, validation, rng)``, which sets ``model_`` from encoded rows. ``fit`` calls, in this order,
      ``_begin`` (validation of parameters, deletion of fitted attributes), the encoder, ``_learn``, and ``_end`` (class
      prior);
    - ``_memory_needs(data)``, the memory that ``_learn`` needs, so that an error is raised before a fit that is too
      large;
    - ``_check_joint``, if the subclass does not model the distribution of the features;
    - ``_get_state`` and ``_set_state``, if files contain more than the model.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "class_weight": [None, StrOptions({"balanced"}), dict],
        "class_prior": [None, "array-like"],
        "encoder": [None, TableEncoder],
        "device": [str],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
    }

    class_weight: Any
    class_prior: Any
    encoder: TableEncoder | None
    device: str
    n_jobs: int | None
    random_state: Any
    #: Type of ``model_``, which is used to read files.
    _model_type: ClassVar[type[Model]]
    #: Default of the encoder's ``handle_missing``, or None for the default of the encoder itself.
    _default_handle_missing: ClassVar[str | None] = None

    model_: Any  # an instance of _model_type
    classes_: AnyArray
    encoder_: TableEncoder
    counts_: Counts
    #: Map from scores to probabilities. Learners that calibrate fit it to held-out rows.
    calibration_: Calibration = Calibration()
    #: Metadata of the file from which the classifier was loaded.
    metadata_: dict[str, Any] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values. Columns of strings, categoricals or booleans are categorical, and so are integer-valued columns
            with at most 10 distinct values. Other numeric columns are discretized (see
            :class:`~tanlearn.TableEncoder`).
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. Rows of weight 0 are ignored.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a column, ``y`` or the weights are invalid. The message states the position and the remedy.
        ImportError, RuntimeError
            If the device is not available.
        """
        self._begin()
        data, held_out = encode_training(self, X, y, sample_weight, validation_fraction=self._validation_fraction)
        return self._learn_all(data, held_out)

    def fit_encoded(self, data: EncodedData, validation: EncodedData | None = None) -> Self:
        """Fit the classifier to encoded rows. Use this method to encode once and fit many times, as in searches.

        Parameters
        ----------
        data : EncodedData
            Encoded rows and classes. ``class_weight`` is applied when rows are encoded, so this method uses the weights
            in ``data`` unchanged. Results of an earlier fit are deleted, including the encoder. To predict raw rows,
            use :meth:`fit`.
        validation : EncodedData, optional
            Held-out rows for learners that use them.

        Returns
        -------
        object
            The fitted estimator, with all fitted attributes of :meth:`fit` except the attributes of the encoding.
        """
        self._begin()
        return self._learn_all(data, validation)

    @property
    def _validation_fraction(self) -> float | None:
        """Fraction of the rows that are held out before encoding, or None."""
        return None

    def _default_discretizer(self) -> Any:
        """Return the discretizer for encoders that do not set one, or None for the encoder's own default."""
        return MDLPDiscretizer(interactions=True, n_jobs=self.n_jobs)

    def _begin(self) -> None:
        """Validate parameters and device, and delete the fitted attributes of an earlier fit."""
        self._validate_params()
        check_device(self.device)
        delete_fitted_attributes(self)

    def _learn_all(self, data: EncodedData, validation: EncodedData | None) -> Self:
        """Fit the classifier to encoded rows, and apply ``class_prior``."""
        data, validation, rng = self._take_rows(data, validation)
        check_fit(type(self).__name__, self._memory_needs(data), (data.n_samples, data.n_features, data.n_classes))
        self._learn(data, validation, rng)
        return self._end(data.n_classes)

    def _take_rows(
        self, data: EncodedData, validation: EncodedData | None
    ) -> tuple[EncodedData, EncodedData | None, np.random.Generator]:
        """Validate ``class_prior``, and return the rows on the device and a random generator."""
        if self.class_prior is not None:
            read_prior(self.class_prior, data.n_classes)
        validation = None if validation is None else replace(validation, device=self.device)
        return replace(data, device=self.device), validation, generator(self.random_state)

    def _end(self, n_classes: int) -> Self:
        """Replace the fitted class prior by ``class_prior`` if it is set. Every method of fitting ends here."""
        if self.class_prior is not None:
            self._set_log_prior(read_prior(self.class_prior, n_classes))
        return self

    def _set_log_prior(self, log_prior: FloatArray) -> None:
        """Replace the class prior (see :mod:`tanlearn.estimators.class_prior`).

        The power of a calibration is dropped, because it applies to the sum of prior and features and would violate
        Bayes' rule. In an example, naive Bayes was fitted to dependent features with class frequencies of 50:50, and
        applied to rows with class frequencies of 99:1. The log loss was 0.080 with the power, 0.054 without it, and
        0.060 for the prior alone.
        """
        calibration = Calibration(self.calibration_.temperature)
        if calibration != self.calibration_:
            self.calibration_ = calibration
        self.model_ = self.model_.with_log_prior(moved_prior(self, log_prior))

    with_class_prior = copy_with_class_prior

    def _memory_needs(self, data: EncodedData) -> list[Need]:
        """Return the memory that ``_learn`` needs in addition to ``data``, without CPTs and counts."""
        return []

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Set ``model_`` last, so that an interrupted fit leaves an unfitted classifier."""
        raise NotImplementedError(type(self).__name__)

    @available_if(lambda classifier: classifier._check_joint())  # type: ignore[untyped-decorator]
    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log p(class, features) of each row, with missing features marginalized.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_joint(X)

    def _check_joint(self) -> bool:
        """Return True if the classifier models the distribution of the features. Otherwise, raise an AttributeError."""
        return True

    def _log_joint(self, X: Any) -> FloatArray:
        """Return the scores (n_samples, n_classes) of raw rows."""
        codes = encode_rows(self, X)  # raises NotFittedError before ``model_`` is read
        scores: FloatArray = self.model_.log_joint(codes, n_jobs=self.n_jobs, device=self.device)
        return scores

    def _class_scores(self, X: Any) -> FloatArray:
        """Return the log joint of raw rows. Rows with -inf in every class are scored as rows without features."""
        scores = self._log_joint(X)
        return replace_impossible(scores, self.model_.log_joint_without_features)

    @available_if(lambda classifier: classifier._check_joint())  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> FloatArray:
        """Return log p(features) of each row for outlier detection, with missing features marginalized.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN and None count as missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-probability of the encoded row, in which continuous columns are represented by intervals. After training
            with a discriminative loss, it can be used to rank rows, but it does not estimate their frequency.

        Notes
        -----
        Unlike a missing value, a value that does not occur in training lowers the score::

            score(x) = log sum_y p(y, x)  -  sum_j |x_j - mean_j| / |mean_j - cut_j|

        The probability of an unseen category is the smallest probability of all possible values of the feature, given
        the parents and the class. If necessary, it is reduced to the smallest probability of any value in the network,
        and to at most 1/3. For each child of the feature, the smallest probability over all values of this parent is
        used. The score of a row is therefore never higher with an unseen category than with a possible category of the
        feature. In ensembles and with back-off CPTs, the unseen value is marginalized, and the result is multiplied by
        a lower bound for all probabilities of the feature.

        The second sum runs over numbers outside the training range of continuous columns. The probability of such a
        number is the probability of the outermost interval, which starts at the cut point cut_j, multiplied by a
        factor. The factor is 1 at mean_j, the mean of the training values in this interval, and decreases
        exponentially. For a column with a single interval, the mean and the standard deviation of a uniform
        distribution replace mean_j and the difference. Networks that were read from files of other programs have no
        training ranges.

        ``predict_proba`` and ``predict_joint_log_proba`` treat unseen categories as missing.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", "hot"], ["rain", "cold"], ["rain", "hot"], ["sun", "hot"]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
        >>> model.score_samples([["sun", "hot"], ["rain", "hot"], ["snow", "hot"], [None, "hot"]]).round(2).tolist()
        [-1.07, -1.27, -1.86, -0.47]
        """
        codes, novelty = encode_new_rows(self, X)
        rule: dict[str, Any] = {"n_jobs": self.n_jobs, "device": self.device}
        scores = self.model_.log_joint_of_new_values(codes, novelty.is_unseen, **rule)
        return log_evidence(scores) + novelty.log_density - self.model_.log_normalizer(device=self.device)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

        Warns
        -----
        ImpossibleRowsWarning
            If rows have probability zero in every class, which is possible if CPTs contain zeros. Such rows are
            predicted like a row in which every feature is missing.

        Notes
        -----
        Missing features are marginalized first, and ``calibration_`` is then applied to the log joint probabilities.
        The calibration does not depend on which features are missing.
        """
        return self.calibration_.log_posterior(self._class_scores(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

        Warns
        -----
        ImpossibleRowsWarning
            If rows have probability zero in every class, which is possible if CPTs contain zeros. Such rows are
            predicted like a row in which every feature is missing.
        """
        return np.exp(self.calibration_.log_posterior(self._class_scores(X)))

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of each row. Ties are broken by the order of ``classes_``.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.

        Returns
        -------
        ndarray of shape (n_samples,)

        Warns
        -----
        ImpossibleRowsWarning
            If rows have probability zero in every class, which is possible if CPTs contain zeros. Such rows are
            predicted like a row in which every feature is missing.
        """
        scores = self.calibration_.shifted(self._class_scores(X))
        return self.classes_[scores.argmax(axis=1)]

    def check_rows(self, X: Any) -> RowCheck:
        """Count the missing, unseen and out-of-range values in each column of new rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Raw values, with the same columns as in ``fit``.

        Returns
        -------
        RowCheck
            Counts per column, with the column names of the training data if there were any. The result can be printed,
            and ``to_frame`` converts it to a pandas frame. A number is out of range if it is below the smallest or
            above the largest training value (``encoder_.value_ranges_``).

        Raises
        ------
        ValueError
            If the columns of X differ from those in ``fit``, or a value is infinite.
        TypeError
            If a column mixes strings and numbers, or a numeric column of ``fit`` contains other values.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"], ["rain"]], ["beach", "home", "home"])
        >>> print(model.check_rows([["snow"], ["rain"], [None]]))
        3 rows, 1 column
        0: 1 of 3 rows holds no value.
        0: 1 of 3 rows holds a value not seen in training ('snow'), which counts as missing.
        """
        columns = read_rows(self, X)  # raises NotFittedError without an encoder
        return self.encoder_.check_columns(columns)

    def row_predictor(self) -> RowPredictor:
        """Return a fast predictor for single rows, for example in a service. A prediction takes microseconds.

        Returns
        -------
        RowPredictor
            The methods ``predict``, ``predict_proba`` and ``log_joint`` accept a tuple of raw values or, if the columns
            had names in ``fit``, a dictionary. ``predict_codes`` accepts a row of codes. Later changes to the
            classifier do not affect the predictor.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["cough"], ["cough"], ["none"]], ["cold", "cold", "well"])
        >>> model.row_predictor().predict(("cough",))
        'cold'
        """
        from tanlearn.estimators.row_predictor import RowPredictor

        check_is_fitted(self)
        joint_error = None
        try:
            self._check_joint()
        except AttributeError as error:
            joint_error = str(error)
        return RowPredictor(self.encoder_, self.model_, self.classes_, self.calibration_, joint_error)

    def save(self, path: Any, *, counts: bool = False, metadata: dict[str, Any] | None = None) -> None:
        """Save the fitted classifier to a file for :func:`tanlearn.load`.

        Parameters
        ----------
        path : str or path
            Path of a regular file. An existing file is replaced and keeps its permissions. See
            :mod:`tanlearn.files.models` for the contents and the format.
        counts : bool, default=False
            Whether to save ``counts_``, so that ``partial_fit`` can continue from the loaded classifier. Only
            ``partial_fit``, ``fit_batches`` and ``from_counts`` set ``counts_``, which can be many times as large as
            the model.
        metadata : dict, optional
            Dictionary of your own values. They are stored with the date, the numbers of rows and columns, and the
            versions of packages, and are available in ``metadata_`` of a loaded classifier.

        Raises
        ------
        NotFittedError, TypeError, ValueError, OSError
            Under the same conditions as in :func:`tanlearn.files.models.save`.

        Examples
        --------
        >>> import tanlearn
        >>> places = ["beach", "home"]
        >>> model = tanlearn.NaiveBayesClassifier().partial_fit([["sun"], ["rain"]], places, places)
        >>> model.save("outing.tan", counts=True)
        >>> again = tanlearn.load("outing.tan").partial_fit([["rain"]], ["beach"])
        >>> again.counts_.class_counts.tolist()
        [2, 1]
        """
        from tanlearn.files.models import save

        save(self, path, counts=counts, metadata=metadata)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters of the fitted model."""
        n_parameters: int = self.model_.n_parameters
        return n_parameters

    learning_history, learning_errors = stages_of_learning, errors_along_learning

    def _histories(self) -> dict[str, list[Any]]:
        """Return the history of each stage of learning. The dictionary may be empty."""
        return {}

    def _learning_errors(
        self, train: tuple[Any, Any], test: tuple[Any, Any], n_points: int
    ) -> dict[str, list[tuple[Any, float]]]:
        """Return entries of histories with held-out errors. The dictionary may be empty."""
        return {}

    def _summary(self) -> dict[str, str]:
        """Return short descriptions of the fitted model for the command line, as a dictionary with their titles."""
        return {}

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        state: dict[str, Any] = self.model_.to_state()
        return state

    def _get_counts(self) -> Counts:
        """Return ``counts_`` for a model file."""
        if not hasattr(self, "counts_"):
            from tanlearn.estimators.table_counts import why_no_counts

            remedy = "Leave counts out"
            if hasattr(self, "partial_fit"):  # absent from gradient learners
                remedy += ", or fit with fit_batches or partial_fit, which keep counts"
            raise ExplainedError(f"counts=True needs counts_, but {why_no_counts(self)}. {remedy}.")
        return self.counts_

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        self.model_ = self._model_type.from_state(state, self.encoder_.n_states_, len(self.classes_))

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram of the estimator, followed by a summary of the fitted model."""
        from tanlearn.estimators.notebook import fitted_html

        diagram: str = super()._repr_html_inner()
        return diagram + fitted_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the representations that Jupyter displays."""
        from tanlearn.estimators.notebook import mime_bundle

        return mime_bundle(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") and hasattr(self, "encoder_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
