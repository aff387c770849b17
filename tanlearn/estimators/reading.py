"""Explanations, descriptions and graphs of classifiers with a single structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.estimator_input import encode_rows
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.explained import ExplanationMixin, compared
from tanlearn.files.description import describe, feature_names
from tanlearn.network.calibration import Calibration
from tanlearn.network.queries import explain
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

if TYPE_CHECKING:
    import networkx

__all__ = ["ReadingMixin"]


class ReadingMixin(ExplanationMixin):
    """Methods of classifiers with a single structure, normalized or not."""

    structure_: Structure
    tables_: Tables
    classes_: AnyArray
    encoder_: TableEncoder
    calibration_: Calibration
    n_jobs: int | None

    def explain(self, X: Any, *, against: Any = None) -> FloatArray:
        """Split each prediction into contributions of the features.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Return log odds against this class instead of log-probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_classes)
            Contribution of each feature to log p(class, features), or to the log odds of each class against
            ``against``; the last one is that of the class prior. The contributions add up to
            ``predict_joint_log_proba``, or to differences of ``predict_log_proba``. If ``calibration_`` scales these
            differences, all contributions to the log odds are scaled by the same factor. In complete rows, the
            contribution of a feature is the log-probability of its value given its parents and the class. In rows with
            missing values, it is the log-probability given the class and the observed earlier features
            (``structure_.order``), and missing features contribute 0.

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
        >>> model.explain([["sun", None]], against="home")[0, :, 0].round(2).tolist()  # what speaks for the beach
        [0.98, 0.0, -0.41]
        """
        codes = encode_rows(self, X)
        contributions = explain(self.tables_, self.structure_, codes, n_jobs=self.n_jobs)
        return compared(contributions, against, self.classes_, self.calibration_)

    def describe(self) -> dict[str, Any]:
        """Return the whole model as a JSON-compatible dictionary that can be used without tanlearn.

        Returns
        -------
        dict
            The learner, the classes, and for each feature its categories or cut points, its parents and its
            probabilities. See :mod:`tanlearn.files.description` for the keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a category is neither a string nor a number, or the discretizer is not one of tanlearn.

        Examples
        --------
        >>> import json
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
        >>> text = json.dumps(model.describe(), indent=2)
        >>> json.loads(text)["classes"]
        ['beach', 'home']
        """
        return describe(self)

    def to_networkx(self, *, class_name: str = "class") -> networkx.DiGraph:
        """Return the network as a directed graph whose nodes are names.

        Parameters
        ----------
        class_name : str, default="class"
            Name of the class node.

        Returns
        -------
        networkx.DiGraph
            Nodes are the class and the feature names (x0, x1, ... without names). Edges point from parent to child.

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
        check_is_fitted(self)
        return self.structure_.to_networkx(feature_names(self, class_name), class_name=class_name)
