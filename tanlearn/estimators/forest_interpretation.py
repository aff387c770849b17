"""Methods that explain and summarize forests of Bayesian networks, shared by their classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.displays.forest import plot_dependences, plot_importances
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.estimators.explanation_frame import explanation_frame
from tanlearn.files.description import feature_names
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_description import describe
from tanlearn.forest.interpretation import dependences, explain
from tanlearn.models.explanation import against_class

__all__ = ["ForestReadingMixin"]


class ForestReadingMixin:
    """Methods of classifiers that are forests of Bayesian networks."""

    model_: Any  # a Forest
    classes_: AnyArray
    n_jobs: int | None

    @property
    def forest_(self) -> Forest:
        """Networks and weights."""
        forest: Forest = self.model_
        return forest

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
            against ``against``. The last entry is the contribution of the class prior. The contributions add up to
            ``predict_log_proba``, or to the log odds. With a ``class_prior``, they add up to ``predict_log_proba``
            except for a constant per row. The contribution of a feature is the evidence of its value, given the classes
            and its parents, summed over all networks.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.

        Notes
        -----
        With fitted weights, a feature adds the weighted gains of its families to the log odds. The forest also limits
        the certainty of predictions according to the estimated fraction of random labels. This slightly reduces
        contributions, most of all large ones. With ``weights=None``, probabilities are averaged. For each network, the
        difference from the prior is then split by logarithmic means (log mean Divisia), and the results are averaged
        over the networks. Both methods are exact, without sampling.

        If a column has missing values in training, "missing" is a category of the column. In other columns, a missing
        value contributes 0.

        Examples
        --------
        >>> from tanlearn import BayesForestClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BayesForestClassifier(n_estimators=4, random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> contributions = model.explain([["sun", 11.0]], against="home")[0, :, 0]  # evidence for the beach
        >>> (contributions > 0.1).tolist(), (contributions < -0.1).tolist()  # weather is for, temperature against it
        ([True, False, False], [False, True, False])
        """
        codes = encode_rows(self, X)
        return against_class(explain(self.forest_, codes, n_jobs=self.n_jobs), against, self.classes_)

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

    @property
    def feature_importances_(self) -> FloatArray:
        """Mean increase in the log loss, in nats, if a feature is left out. Shape: (n_features,).

        The log loss is measured on out-of-fold rows, which are predicted by networks that were grown without these
        rows. If a feature is left out, its families contribute nothing, and the families of its children use fewer
        parents. Redundant features have little importance. For example, two equal features may both have an importance
        of 0. By chance, features without information may have slightly negative importances.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        AttributeError
            If the forest has no importances.
        """
        check_is_fitted(self)
        if (importances := self.forest_.importances) is None:
            raise AttributeError(f"this {type(self).__name__} has no feature importances. Fit it again.")
        return importances

    def dependences(self, X: Any) -> list[tuple[str, str, float]]:
        """Return the dependences between features that affect the predictions of rows, in decreasing order of strength.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values. Use new rows if possible, because families with many parents overfit the training rows.

        Returns
        -------
        list of tuple
            Parent, child and strength for each pair of a parent and a child in any network. The strength, in nats per
            row, is the change in the contribution of the child to the predictions if the value of this parent is used.
            The contributions of all features, alone and given parents, add up to the mean of ``sum_c p_c log(p_c /
            q_c)`` over the rows, where p are the predictions and q are the class frequencies. Because the orders are
            random, each of two dependent features is a parent of the other in some of the networks.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from tanlearn import BayesForestClassifier
        >>> X = np.random.default_rng(0).integers(0, 2, (300, 4))
        >>> model = BayesForestClassifier(n_estimators=16, random_state=0).fit(X[:200], X[:200, 1] ^ X[:200, 3])
        >>> sorted(pair[:2] for pair in model.dependences(X[200:])[:2])
        [('x1', 'x3'), ('x3', 'x1')]
        """
        codes = encode_rows(self, X)
        strengths, names = dependences(self.forest_, codes, n_jobs=self.n_jobs), feature_names(self)
        pairs: set[tuple[int, int]] = set()
        for member in self.forest_.members:
            child, place = np.nonzero(member.tables.parents >= 0)
            pairs.update(zip(member.tables.parents[child, place].tolist(), child.tolist(), strict=True))
        found = [(names[j], names[i], float(strengths[j, i])) for j, i in sorted(pairs)]
        return sorted(found, key=lambda one: -one[2])

    def plot_importances(self, ax: Any = None, *, most: int = 20) -> Any:
        """Plot ``feature_importances_`` as horizontal bars, with the largest at the top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=20
            Maximum number of features to show.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ImportError
            If Matplotlib is not installed.
        """
        return plot_importances(self.feature_importances_, feature_names(self), ax, most=most)

    def plot_dependences(self, X: Any, ax: Any = None, *, most: int = 20) -> Any:
        """Plot the dependences between features as a heat map of parents and children.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as in :meth:`dependences`.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=20
            Maximum number of features to show. The features with the strongest dependences are shown.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ImportError
            If Matplotlib is not installed.
        """
        codes = encode_rows(self, X)
        strengths = dependences(self.forest_, codes, n_jobs=self.n_jobs)
        return plot_dependences(strengths, feature_names(self), ax, most=most)

    def describe(self) -> dict[str, Any]:
        """Return a summary of the model's size and weights as a JSON-compatible dictionary.

        Returns
        -------
        dict
            The learner, the classes, the number of networks, the weights of networks and levels, and the features in
            order of decreasing weight. See :mod:`tanlearn.forest.forest_description` for the keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a class is not a string, a number or a boolean.

        Examples
        --------
        >>> from tanlearn import BayesForestClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BayesForestClassifier(n_estimators=4, random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> told = model.describe()
        >>> told["n_members"], told["n_levels"], told["combined"]
        (4, 2, 'added')
        """
        return describe(self)
