"""What can be read from classifiers of one structure and its tables: explanations, descriptions, graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.border import encode_rows
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
    """Methods of classifiers of one structure and its tables, normalised or not."""

    structure_: Structure
    tables_: Tables
    classes_: AnyArray
    encoder_: TableEncoder
    calibration_: Calibration
    n_jobs: int | None

    def explain(self, X: Any, *, against: Any = None) -> FloatArray:
        """Split every prediction into what each feature says.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Return log-odds against this class instead of log-probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_classes)
            The share of every feature in log p(class, features), or in the log-odds of every class against the given
            one; the last is that of the class prior. Over the features they add up to ``predict_joint_log_proba``, or
            to the difference of ``predict_log_proba``: where ``calibration_`` scales that, it scales shares in log-odds
            by the same factor. A feature's share is the log-probability of its value given its parents and the class,
            for complete rows. With missing values it is that given the class and what is observed of the features
            before it (``structure_.order``); a missing feature has none.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is no class; or if a row misses something and the tables are not normalised.

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
        """Return all of the model as a dictionary for JSON, to be read without tanlearn.

        Returns
        -------
        dict
            The learner, the classes, and of every feature its categories or cut points, its parents and its
            probabilities. See :mod:`tanlearn.files.description` for the keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a category is neither string nor number, or a discretizer not tanlearn's.

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
        """Return the network as a directed graph of names.

        Parameters
        ----------
        class_name : str, default="class"
            Name of the class.

        Returns
        -------
        networkx.DiGraph
            The class, then the features by their names, or x0, x1 and so on; an edge from parent to child.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the name of the class is that of a feature.

        Examples
        --------
        >>> from tanlearn import BayesNetClassifier, Structure
        >>> model = BayesNetClassifier(structure=Structure([-1, 0])).fit([["a", "b"], ["b", "b"]], [0, 1])
        >>> list(model.to_networkx().edges)
        [('class', 'x0'), ('class', 'x1'), ('x0', 'x1')]
        """
        check_is_fitted(self)
        return self.structure_.to_networkx(feature_names(self, class_name), class_name=class_name)
