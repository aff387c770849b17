"""What can be read off a fitted forest: why it predicts a class, what features are worth, and who informs whom."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.border import encode_rows
from tanlearn.estimators.explained import ExplanationMixin, compared
from tanlearn.files.description import feature_names
from tanlearn.forest.description import describe
from tanlearn.forest.forest import Forest
from tanlearn.forest.plots import plot_dependences, plot_importances
from tanlearn.forest.reading import dependences, explain

__all__ = ["ForestReadingMixin"]


class ForestReadingMixin(ExplanationMixin):
    """Methods of classifiers that are forests of Bayesian networks."""

    forest_: Forest
    classes_: AnyArray
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
            The share of every feature in the log-probabilities of the classes, or in the log-odds of every class
            against the given one; the last is that of the class prior. They add up, over the features, to
            ``predict_log_proba`` (with a ``class_prior``, but for a number that all classes of a row share), or to the
            log-odds. A feature's share is that of its own families in all members: of its value, given the classes
            and its parents.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is no class.

        Notes
        -----
        Where weights are learnt, a feature adds the weighted gains of its families to the log-odds, but for the doubt:
        that no prediction is surer than rows are true makes all shares a little smaller, most where they are large.
        With ``weights=None`` probabilities are averaged; every member's difference from the prior is then split by
        logarithmic means, and averaged part by part. Nothing is approximated, nor drawn, either way.

        Where a column has no gaps in training, a missing value has no share. Where it has some, "missing" is a value.

        Examples
        --------
        >>> from tanlearn import BayesForestClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BayesForestClassifier(n_estimators=4, random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> shares = model.explain([["sun", 11.0]], against="home")[0, :, 0]  # what speaks for the beach
        >>> (shares > 0.1).tolist(), (shares < -0.1).tolist()  # the weather does, the temperature speaks against it
        ([True, False, False], [False, True, False])
        """
        codes = encode_rows(self, X)
        return compared(explain(self.forest_, codes, n_jobs=self.n_jobs), against, self.classes_)

    @property
    def feature_importances_(self) -> FloatArray:
        """What leaving a feature out costs: the mean rise of the log loss, in nats.

        It is that of rows that were left out when twins of the forest were grown, as if the feature had not been asked:
        its families say nothing, and where it is a parent, fewer are given. What others say as well costs nothing, so
        of two equal features neither may seem to matter; and a feature of no use may be a little below 0, by chance.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        AttributeError
            If it is not known.
        """
        check_is_fitted(self)
        if (importances := self.forest_.importances) is None:
            raise AttributeError(f"importances of this {type(self).__name__} are not known. Fit it again.")
        return importances

    def dependences(self, X: Any) -> list[tuple[str, str, float]]:
        """Return which features inform which others in predictions of these rows, the strongest first.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, at best of rows that it has not learnt from: what many parents say of those, it knows by heart.

        Returns
        -------
        list of tuple
            Parent, child, and strength, of all pairs that are parent and child in a member. The strength, in nats a
            row, is what the child says of the classes given this parent, beyond what it says without it. All that
            features say, by themselves and given parents, is by how much predictions differ from the class
            frequencies, sum_c p_c log(p_c / q_c), the mean over rows; strengths are shares of that. As orders are
            drawn, each of two features that depend on each other is a parent of the other in some members.

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
        """Draw ``feature_importances_`` as bars, the dearest on top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to; by default in a new figure.
        most : int, default=20
            Features that are shown at most.

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
        """Draw which features inform which others, as a map of parents and children.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as of :meth:`dependences`.
        ax : matplotlib.axes.Axes, optional
            Where to; by default in a new figure.
        most : int, default=20
            Features that are shown at most: those of the strongest dependences.

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
        """Return the outlines of the model as a dictionary for JSON: how large it is, and what counts how much.

        Returns
        -------
        dict
            The learner, the classes, members, levels and their weights, and the features, that of the largest weight
            first. See :mod:`tanlearn.forest.description` for the keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a class is neither string nor number.

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
