"""Classifier that is a sum of many small tables of a few features, which are trained one after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from tanlearn._memory import Need
from tanlearn._progress import reporter
from tanlearn._typing import FloatArray, IntArray
from tanlearn._version import __version__
from tanlearn.c_export.header import export_c
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.estimators.explanation_frame import explanation_frame
from tanlearn.files.description import as_json, feature_names, given_parameters
from tanlearn.forest.interpretation import normalized_contributions
from tanlearn.models.boosted_contributions import explain_terms
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.explanation import against_class
from tanlearn.models.model import Model
from tanlearn.models.rounded_terms import round_terms
from tanlearn.structures.monotone_columns import read_directions
from tanlearn.terms.boosting import BoostingSettings
from tanlearn.terms.boosting_selection import BoostingOutcome, boosting_needs, learn_boosted_terms
from tanlearn.terms.learning import NO_ROWS

__all__ = ["BoostedTermsClassifier"]

#: Maximum number of quantile intervals of a numeric column.
N_INTERVALS = 64


class BoostedTermsClassifier(Classifier):
    """Sum of many small tables of a few features: fast to fit, and accurate for rules that combine several thresholds.

    Up to a constant per row, the log probability of class y is::

        log P(y | x) = log P(y) + sum_t v_t(x, y) + constant

    Each term v_t is defined by up to ``max_splits`` splits. A split divides the values of one feature into two sides:
    numbers below and above a threshold, or two groups of categories. The term has one number per class for each
    combination of sides. By default, a term depends on up to five features and has up to 32 numbers per class.

    Terms are added one after another. Each term is fitted to the residuals of all earlier terms, on a random subset of
    rows and features. Its splits maximize the gain in conditional likelihood. Its numbers come from one Newton step,
    multiplied by the learning rate. The number of terms is selected by the log loss of held-out rows.

    Unlike a Bayesian network, the model does not contain a distribution of the features. If a feature of a term is
    missing, the term contributes the mean over both sides of the splits of this feature, weighted by the variances of
    the classes of the training rows. If the missing values of a column depend on the class in the training rows,
    "missing" becomes a category of the column.

    If there are more than 1,024 columns, only the 1,024 columns that predict the class best on their own are used, and
    a warning is issued.

    Parameters
    ----------
    max_terms : int, default=2000
        Maximum number of terms, at least 1. The number of terms is selected on held-out rows.
    max_splits : int, default=5
        Maximum number of splits per term, from 1 to 8. If 1, each term is a function of one feature.
    learning_rate : float, default=0.1
        Factor by which the numbers of each term are multiplied, above 0 and at most 1. Smaller factors require more
        terms.
    ridge : float, default=1.0
        Penalty on the squared numbers of a term, at least 0.001, in units of the variance of one row (at most 1/4). A
        larger penalty shrinks mainly the numbers of combinations with few rows.
    increasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises and all other values stay the same, the log
        odds of ``classes_[1]`` never fall. The columns must contain numbers or ordered categories, and there must be
        exactly two classes.
    decreasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises and all other values stay the same, the log
        odds of ``classes_[1]`` never rise.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder(discretizer=QuantileDiscretizer(max_bins=64,
        mdl_points=True), handle_missing="auto")``. If your encoder does not set ``discretizer`` or ``handle_missing``,
        these defaults are used.
    n_jobs : int, optional
        Number of threads for encoding, prediction and the folds of the selection, as in joblib. Results do not depend
        on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for drawing the rows and features of each term.
    verbose : int, default=0
        If 1, the held-out log loss is printed after every 100 terms; if 2, after every 10 terms. In both cases, the
        progress of the final fit is also printed.

    Attributes
    ----------
    n_terms_ : int
        Number of terms. It is 0 if the terms do not clearly improve on the class frequencies for held-out rows, and 50
        if there are no held-out rows.
    cv_results_ : dict
        Held-out results for each number of terms: ``param_n_terms`` and ``mean_log_loss``, ndarrays of the same length.
        The dict is empty if rows cannot be held out because the remaining rows would contain only one class.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters of all terms and the class prior.

    See Also
    --------
    tanlearn.BayesEnsembleClassifier : Ensemble with a forest and a network: more accurate on most data sets.
    tanlearn.TermNetClassifier : Readable model with a curve per feature and a table per pair of features.

    Notes
    -----
    With ``increasing`` or ``decreasing``, the numbers of each term are the monotone numbers that are closest to the
    Newton step in squared difference (isotonic regression). Each term is monotone, and so is the sum of all terms.
    Between two values of the column, the scores of the classes never change in the wrong direction, not even by a
    rounding error. The log-probabilities of ``predict_log_proba`` may change in the wrong direction only by rounding
    errors. Both guarantees also hold if other columns are missing. A category for missing values of the column itself
    has no position in the order.

    The number of terms is selected with five folds for up to 1,000 rows and with three folds for up to 20,000 rows. For
    more rows, it is selected on 10,000 held-out rows. A larger number is selected only if it lowers the log loss by
    more than 1e-5 nats.

    References
    ----------
    Friedman: Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001; Stochastic
    gradient boosting. Computational Statistics and Data Analysis 38, 2002.

    Kohavi: Bottom-up induction of oblivious read-once decision graphs. ECML 1994 (tables with the same splits in all
    cells).

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import BoostedTermsClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = (X[:, 0] > 0.5) & (X[:, 1] < 0) | (X[:, 2] > 1)
    >>> model = BoostedTermsClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in Classifier._parameter_constraints.items() if name != "device"},
        "max_terms": [Interval(Integral, 1, None, closed="left")],
        "max_splits": [Interval(Integral, 1, 8, closed="both")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "ridge": [Interval(Real, 1e-3, None, closed="left")],
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    device = "cpu"
    _default_handle_missing = "auto"
    _model_type: ClassVar[type[Model]] = BoostedTerms
    cv_results_: dict[str, Any]

    def __init__(
        self,
        *,
        max_terms: int = 2000,
        max_splits: int = 5,
        learning_rate: float = 0.1,
        ridge: float = 1.0,
        increasing: Sequence[Any] = (),
        decreasing: Sequence[Any] = (),
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_terms = max_terms
        self.max_splits = max_splits
        self.learning_rate = learning_rate
        self.ridge = ridge
        self.increasing = increasing
        self.decreasing = decreasing
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_terms_(self) -> int:
        """Number of terms.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        check_is_fitted(self, "model_")
        return len(self.model_.features)

    def _default_discretizer(self) -> QuantileDiscretizer:
        """Return a quantile discretizer with cut points that separate classes."""
        return QuantileDiscretizer(max_bins=N_INTERVALS, mdl_points=True, n_jobs=self.n_jobs)

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Select the number of terms on held-out rows, and fit them to all rows."""
        self._fit_boosting(data, rng)

    def _settings(self) -> BoostingSettings:
        """Return the settings of the terms."""
        return BoostingSettings(int(self.max_splits), float(self.learning_rate), float(self.ridge))

    def _memory_needs(self, data: EncodedData) -> list[Need]:
        """Return the memory needs of class scores and terms."""
        return boosting_needs(data, self._settings(), int(self.max_terms))

    def _fit_boosting(self, data: EncodedData, rng: np.random.Generator, needed: IntArray = NO_ROWS) -> BoostingOutcome:
        """Fit terms to encoded rows with ``learn_boosted_terms``."""
        directions = read_directions(self.increasing, self.decreasing, data)
        settings = self._settings()._replace(directions=directions if directions.any() else None)
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "needed": needed, "report": reporter(self.verbose)}
        outcome = learn_boosted_terms(data, settings, int(self.max_terms), rng, **options)
        curve = {"param_n_terms": outcome.n_terms, "mean_log_loss": outcome.log_losses}
        self.cv_results_ = curve if len(outcome.n_terms) else {}
        self.model_ = outcome.model
        return outcome

    def _check_joint(self) -> bool:
        """Raise an AttributeError, because boosted terms do not model the distribution of the features."""
        raise AttributeError(
            f"{type(self).__name__} models the class given the features, not the distribution of the features. Use "
            f"predict_log_proba, or a TermNetClassifier."
        )

    def with_bits(self, bits: int) -> Self:
        """Return a copy of the fitted classifier whose terms are few-bit integers times a power of two.

        Parameters
        ----------
        bits : int
            Number of bits per number of a term, from 2 to 16. A number is the difference between the score of a class
            and the score of the first class, minus the smallest of these differences in the term. All numbers are
            multiples of one step, which is the smallest power of two for which all numbers fit into ``bits`` bits.

        Returns
        -------
        object
            A new classifier. For complete rows, it predicts the same classes as the C code of
            ``export_c(bits=bits)``. Rounding changes the log odds of a class against the first class by at most
            ``(n_terms_ + 1) * step / 2``.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is not an integer from 2 to 16, or a class has probability 0.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import BoostedTermsClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BoostedTermsClassifier(max_terms=30, random_state=0).fit(X, y)
        >>> bool((model.with_bits(8).predict(X) == model.predict(X)).all())
        True
        """
        check_is_fitted(self)
        rounded = copy(self)
        rounded.model_ = round_terms(self.model_, bits).terms
        return rounded

    def export_c(
        self,
        path: str | os.PathLike[str],
        *,
        bits: int = 8,
        name: str | None = None,
        packed: bool = True,
        number_type: str = "double",
        test_rows: Any = None,
    ) -> None:
        """Write the fitted classifier as a C99 header with integers, additions, shifts and comparisons only.

        Numbers are rounded as by ``with_bits(bits)``, which returns a classifier with the same predictions for complete
        rows. For rows with missing or unseen values, the C function returns -1. To limit the size, set a small
        ``max_terms``. With 8 bits and two classes, a term of five splits takes 42 bytes.

        Parameters
        ----------
        path : str or path
            Path of the header. An existing file is replaced.
        bits : int, default=8
            Number of bits per number of a term, from 2 to 16.
        name : str, optional
            Prefix of all names in the header. By default, it is the file name without its extension.
        packed : bool, default=True
            Whether to pack numbers bit by bit if ``bits`` is not 8 or 16. If False, numbers are stored in whole bytes,
            which are read faster.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            C type of the numbers in rows (see :meth:`tanlearn.NaiveBayesClassifier.export_c`).
        test_rows : array-like or frame of shape (n_samples, n_features), optional
            Raw values for a test program, ``<name of the file>_test.c``, written next to the header. The program
            returns 0 if it computes the same codes, sums and classes for these rows as Python.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is not an integer from 2 to 16, a class has probability 0, a column has a category for missing
            values or had no value in training, the C type cannot represent a category or cut point, or ``name`` is not
            a C identifier. No file is written in these cases.
        OSError
            If a file cannot be written. An existing file is then unchanged.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import BoostedTermsClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BoostedTermsClassifier(max_terms=30, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.export_c(f"{folder}/iris.h", number_type="float", test_rows=X)
        ...     header = Path(folder, "iris.h").read_text()
        >>> "static inline int16_t iris_predict(const iris_value *row)" in header
        True
        """
        options = {"name": name, "packed": packed, "number_type": number_type, "test_rows": test_rows}
        export_c(self, path, bits=bits, **options)

    def explain(self, X: Any, *, against: Any = None) -> FloatArray:
        """Split each prediction into contributions of the features.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Split the log odds against this class instead of the log-probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_classes)
            Contribution of each feature to the log-probabilities of the classes, or to the log odds of each class
            against ``against``. The last entry is the contribution of the class prior and the means of all terms. The
            contributions add up to ``predict_log_proba``, or to the log odds. With a ``class_prior``, they add up to
            ``predict_log_proba`` except for a constant per row. A term of several features is divided among them by
            exact Shapley values. A missing value contributes 0, unless "missing" is a category of its column.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.

        Examples
        --------
        >>> from tanlearn import BoostedTermsClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BoostedTermsClassifier(random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> of_weather, of_temperature, _ = model.explain([["sun", 11.0]], against="home")[0, :, 0]  # for the beach
        >>> bool(of_weather > 0.1), bool(of_temperature < -0.1)
        (True, True)
        """
        codes = encode_rows(self, X)
        found = normalized_contributions(explain_terms(self.model_, codes))
        found[:, -1] += self.model_.log_prior - self.model_.log_frequency
        return against_class(found, against, self.classes_)

    def explain_frame(self, X: Any, *, against: Any = None) -> Any:
        """Return the contributions of ``explain`` as a data frame with the names of features and classes.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Split the log odds against this class instead of the log-probabilities. The contributions then add up to the
            log odds of ``predict_proba``.

        Returns
        -------
        pandas.DataFrame
            One line per row and feature, and one line per row for the class prior, named ``"(classes)"``. The columns
            are ``row`` (index of a pandas frame, or row number), ``feature``, and each class.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.
        ImportError
            If pandas is not installed.
        """
        return explanation_frame(self, X, against)

    def describe(self) -> dict[str, Any]:
        """Return a summary of the model as a JSON-compatible dictionary.

        Returns
        -------
        dict
            The learner, the classes, the numbers of terms and parameters, and ``features``. This list contains the name
            of each feature and the number of terms that use it, in decreasing order.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a class is not a string, a number or a boolean.

        Examples
        --------
        >>> from tanlearn import BoostedTermsClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BoostedTermsClassifier(random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> [sorted(feature) for feature in model.describe()["features"]]
        [['n_terms', 'name'], ['n_terms', 'name']]
        """
        check_is_fitted(self)
        return {
            "format": "tanlearn boosted terms description",
            "version": 1,
            "tanlearn": __version__,
            "learner": {"class": type(self).__name__, "parameters": given_parameters(self)},
            "classes": as_json(self.classes_, "classes"),
            "n_terms": self.n_terms_,
            "n_parameters": self.n_parameters_,
            "features": [{"name": name, "n_terms": number} for name, number in self._numbers_of_terms()],
        }

    def _numbers_of_terms(self) -> list[tuple[str, int]]:
        """Return the name of each feature and the number of terms that use it, in decreasing order."""
        names = feature_names(self)
        numbers = np.zeros(len(names), np.intp)
        for row in self.model_.features:
            numbers[np.unique(row[row >= 0])] += 1
        order = np.argsort(-numbers, kind="stable").tolist()
        return [(names[i], int(numbers[i])) for i in order]

    def _summary(self) -> dict[str, str]:
        """Return the number of terms, and the most frequent features."""
        most = ", ".join(name for name, number in self._numbers_of_terms()[:5] if number)
        return {"terms": f"{self.n_terms_}", "most frequent features": most or "none"}
