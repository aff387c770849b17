"""Base class of classifiers with a single network: explanation, sampling, completion, rounding and export to C.

[RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.estimators.acquisition_methods import acquisition_curve as curve_of_acquisition
from tanlearn.estimators.acquisition_methods import feature_gains as gains_of_features
from tanlearn.estimators.acquisition_methods import next_feature as find_next_feature
from tanlearn.estimators.class_prior import read_offset, state_of_offset
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.estimator_input import encode_rows, generator
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import Calibration
from tanlearn.models.model import Model
from tanlearn.models.tables import Tables
from tanlearn.sources.validation import encode_labels
from tanlearn.structures.structures import Structure

if TYPE_CHECKING:
    import networkx

__all__ = ["NetworkClassifier"]


class NetworkClassifier(Classifier):
    """Classifier with a single network, whose ``model_`` is a :class:`~tanlearn.models.bayes_net.BayesNet`."""

    _model_type: ClassVar[type[Model]] = BayesNet

    @property
    def structure_(self) -> Structure:
        """Structure of the network."""
        structure: Structure = self.model_.structure
        return structure

    @property
    def tables_(self) -> Tables:
        """CPTs of the network."""
        tables: Tables = self.model_.tables
        return tables

    def _contribution_errors(self, feature: int) -> FloatArray | None:
        """Return the standard errors (n_values, n_classes) of the contributions of a feature, or None."""
        return None

    def _check_generative(self) -> bool:
        """Return True if scores are log probabilities of rows. Otherwise, raise an AttributeError."""
        return True

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
            Contribution of each feature to log p(class, features), or to the log odds of each class against
            ``against``. The last entry is the contribution of the class prior. The contributions add up to
            ``predict_joint_log_proba``, or to differences of ``predict_log_proba``. If ``calibration_`` scales these
            differences, all contributions to the log odds are scaled by the same factor. In complete rows, the
            contribution of a feature is the log-probability of its value given its parents and the class. In rows with
            missing values, it is the log-probability given the class and all observed features that come earlier in
            ``structure_.order``, and missing features contribute 0.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class, or if a row has missing values and the CPTs are not normalized.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
        >>> model.explain([["sun", None]], against="home")[0, :, 0].round(2).tolist()  # evidence for the beach
        [0.98, 0.0, -0.41]
        """
        from tanlearn.models.explanation import against_class, explain

        codes = encode_rows(self, X)
        contributions = explain(self.tables_, self.structure_, codes, n_jobs=self.n_jobs)
        return against_class(contributions, against, self.classes_, self.calibration_)

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
            are ``row`` (index of a pandas frame, or row number), ``feature``, ``parents`` (comma-separated names), and
            each class.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
        >>> model.explain_frame([["sun", 29.0]], against="home").drop(columns="parents").round(2)
           row    feature  beach  home
        0    0         x0   0.98   0.0
        1    0         x1   0.00   0.0
        2    0  (classes)  -0.41   0.0
        """
        from tanlearn.estimators.explanation_frame import explanation_frame

        check_is_fitted(self)
        return explanation_frame(self, X, against, parents=self.structure_.parents.tolist())

    def describe(self) -> dict[str, Any]:
        """Return the whole model as a JSON-compatible dictionary that can be used without tanlearn.

        Returns
        -------
        dict
            The learner, the classes, and, for each feature, its categories or cut points, its parents, and its
            probabilities. See :mod:`tanlearn.files.description` for the keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a category is not a string, a number or a boolean, or if the discretizer is not a class of tanlearn.

        Examples
        --------
        >>> import json
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
        >>> text = json.dumps(model.describe(), indent=2)
        >>> json.loads(text)["classes"]
        ['beach', 'home']
        """
        from tanlearn.files.description import describe

        return describe(self)

    def to_networkx(self, *, class_name: str = "class") -> networkx.DiGraph:
        """Return the network as a directed graph of feature names.

        Parameters
        ----------
        class_name : str, default="class"
            Name of the class node.

        Returns
        -------
        networkx.DiGraph
            The nodes are the class and the names of the features (x0, x1, ... if they have no names). The edges point
            from parent to child.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``class_name`` is the name of a feature.

        Examples
        --------
        >>> from tanlearn import BayesNetClassifier, Structure
        >>> model = BayesNetClassifier(structure=Structure([-1, 0])).fit([["a", "b"], ["b", "b"]], [0, 1])
        >>> list(model.to_networkx().edges)
        [('class', 'x0'), ('class', 'x1'), ('x0', 'x1')]
        """
        from tanlearn.files.description import feature_names

        check_is_fitted(self)
        return self.structure_.to_networkx(feature_names(self, class_name), class_name=class_name)

    @available_if(lambda classifier: classifier._check_generative())  # type: ignore[untyped-decorator]
    def sample(self, n_samples: int = 1, *, y: Any = None, random_state: Any = None) -> tuple[AnyArray, AnyArray]:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows. It is ignored if ``y`` is given.
        y : array-like of shape (n_samples,), optional
            Classes of the rows. By default, the classes are also drawn.
        random_state : int, RandomState, Generator or None, default=None
            Seed for drawing the rows. The default is the ``random_state`` of the classifier.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), object
            Raw values, with None for the category of missing values. In a continuous column, a value is the mean of the
            training values in the drawn interval.
        y : ndarray of shape (n_samples,)
            Classes.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the structure has a cycle, or ``y`` contains an unknown class.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
        >>> X, y = model.sample(2, y=["home", "home"], random_state=0)
        >>> X.shape, y.tolist()
        ((2, 2), ['home', 'home'])
        """
        from tanlearn.models.sampling import sample

        check_is_fitted(self)
        rng = generator(self.random_state if random_state is None else random_state)
        given = None if y is None else encode_labels(y, len(y), self.classes_)
        codes, drawn = sample(self.tables_, self.structure_, n_samples if y is None else len(y), rng, y=given)
        return self.encoder_.decode(codes), self.classes_[drawn]

    @available_if(lambda classifier: classifier._check_generative())  # type: ignore[untyped-decorator]
    def complete(self, X: Any, *, y: Any = None) -> tuple[Any, AnyArray]:
        """Impute the missing values of each row with their most probable joint completion.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values. NaN, None and similar values are imputed, except in columns without any value in training and in
            columns with a category for missing values (``encoder_.has_missing_category_``). Unseen categories are kept,
            although the model treats them as missing.
        y : array-like of shape (n_samples,), optional
            Classes of the rows. By default, they are imputed together with the values.

        Returns
        -------
        X : DataFrame, or ndarray of shape (n_samples, n_features), object
            The completed rows, as a frame if ``X`` is a frame. In a continuous column, the imputed value is the mean of
            the training values in the interval. An imputed column of a frame keeps its declared categories. Without
            declared categories, its dtype is inferred from the values.
        y : ndarray of shape (n_samples,)
            The classes of the most probable completions, which may differ from the result of ``predict``.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If exact completion is not possible: the structure has a cycle, or too many missing values depend on each
            other.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
        >>> model.complete([["sun", 29.0], [None, 12.0]])[0].tolist()
        [['sun', 29.0], ['rain', 12.0]]
        """
        from tanlearn.estimators.completed_rows import completed_rows
        from tanlearn.models.completion import most_probable_completion

        codes = encode_rows(self, X)
        given = None if y is None else encode_labels(y, codes.shape[1], self.classes_)
        completed, found = most_probable_completion(self.tables_, self.structure_, codes, given, n_jobs=self.n_jobs)
        return completed_rows(X, self.encoder_.decode(completed)), self.classes_[found]

    next_feature, feature_gains, acquisition_curve = find_next_feature, gains_of_features, curve_of_acquisition

    @property
    def size_bits_(self) -> int:
        """Size of all CPT entries in bits: 32 bits per entry, as in [RE], or the number of bits after rounding."""
        return self.tables_.n_cells * self.tables_.bits_per_cell

    @property
    def n_operations_(self) -> int:
        """Number of additions per prediction: one per feature and class ([RE] V-D)."""
        return len(self.tables_) * self.tables_.layout.n_classes

    def _directions(self) -> dict[str, Any]:
        """Return the columns that are "increasing" and "decreasing" in the classifier or its parameter learner."""
        owner = self if hasattr(self, "increasing") else getattr(self, "parameters_", None)
        return {name: getattr(owner, name, ()) for name in ("increasing", "decreasing")}

    def with_bits(self, bits: Any, X: Any = None, y: Any = None) -> Self:
        """Return a copy of the fitted classifier whose CPTs are rounded to a few bits, without training.

        Training with few bits (``TANClassifier(bits=...)``, ``StochasticGradient(bits=...)``) usually leads to fewer
        errors, and to far fewer errors with one or two bits.

        Parameters
        ----------
        bits : int or tuple of (int, int)
            Number of integer bits and number of fraction bits ([RE] eq. 10), either of which may be negative, or the
            sum of both, from 1 to 16.
        X : array-like or frame of shape (n_samples, n_features), optional
            Raw values. If ``bits`` is an int, it is split into integer and fraction bits so that these rows have the
            fewest errors. Ties are broken by the number of integer bits (fewest first).
        y : array-like of shape (n_samples,), optional
            Classes of the rows.

        Returns
        -------
        object
            A new classifier with :class:`~tanlearn.IntegerTables`.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is invalid, or is an int although rows are missing. Also if a class has probability 0, or if the
            classifier has monotone columns (``increasing``, ``decreasing``).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayesClassifier().fit(X, y)
        >>> small = model.with_bits(3, X, y)
        >>> small.tables_
        IntegerTables(n_features=4, n_classes=3, bits=(5, -2), n_cells=39)
        >>> model.size_bits_, small.size_bits_, round(small.score(X, y), 2)
        (1248, 117, 0.96)
        """
        from tanlearn.estimators.rounded_network import round_network

        rounded: Self = round_network(self, bits, X, y)
        return rounded

    def export_c(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        packed: bool = True,
        number_type: str = "double",
        test_rows: Any = None,
    ) -> None:
        """Write the fitted integer classifier as a C99 header with additions and comparisons only.

        The header is valid C99 and C++17. Its comments describe the functions, the format of a row, and macros for
        storing constants in a separate memory. The macros are predefined for AVR, where CPT entries of more than 32 KB
        are split into several arrays. For complete rows, the C function predicts the class that ``predict`` returns.
        For rows with missing or unseen values, it returns -1.

        Parameters
        ----------
        path : str or path
            Path of the header. An existing file is replaced.
        name : str, optional
            Prefix of all names in the header. By default, it is the file name without its extension.
        packed : bool, default=True
            Whether to pack CPT entries bit by bit. If False, they are stored in whole bytes, which are read faster.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            C type of the numbers in rows. Each number of this type is compared with cut points as in Python. With
            "double" and "float", columns of integer categories have the type int32_t, or int64_t if needed. Strings are
            UTF-8 strings. For columns of other categories, and for encoders other than :class:`~tanlearn.TableEncoder`
            with its own discretizer, a row contains the code of the value.
        test_rows : array-like or frame of shape (n_samples, n_features), optional
            Raw values for a test program, ``<name of the file>_test.c``, which is written next to the header. The
            program returns 0 if it computes the same codes, sums and classes for these rows as Python. Otherwise, it
            prints the first difference.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the CPTs are not integers, the C type cannot represent a category or cut point, a column had no value in
            training, or ``name`` is not a C identifier. No file is written in these cases.
        OSError
            If a file cannot be written. An existing file is then unchanged.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> small = NaiveBayesClassifier().fit(X, y).with_bits((3, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small.export_c(f"{folder}/iris.h", test_rows=X)
        ...     header = Path(folder, "iris.h").read_text()
        >>> "static inline int16_t iris_predict(const iris_value *row)" in header
        True
        """
        from tanlearn.c_export.header import export_c

        export_c(self, path, name=name, packed=packed, number_type=number_type, test_rows=test_rows)

    def _summary(self) -> dict[str, str]:
        """Return the number of bits of rounded CPTs."""
        bits = self.tables_.bits
        return {} if bits is None else {"bits": f"{bits[0]} integer, {bits[1]} fraction"}

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        state = super()._get_state()
        state = {"structure": state.pop("structure"), "calibration": asdict(self.calibration_), **state}
        return state | state_of_offset(self)

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        state = dict(state)
        calibration = Calibration.of_state(state.pop("calibration", {}))
        offset = read_offset(state.pop("prior_offset", None), len(self.classes_))
        super()._set_state(state)
        self.calibration_ = calibration
        self._prior_offset = offset
