"""Density of rows without classes, as a scikit-learn estimator: log densities, unusual values, sampling, queries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.density.latent_estimator import LatentNetworkEstimator
from tanlearn.density.queries import joint_probabilities
from tanlearn.encoding.novelty import Novelty
from tanlearn.encoding.stored_values import check_array
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.estimator_input import encode_new_rows, generator
from tanlearn.models.explanation import explain
from tanlearn.models.log_joint import log_evidence
from tanlearn.models.sampling import sample
from tanlearn.models.value_joints import log_joint_of_values, value_starts
from tanlearn.sources.columns import read_columns

__all__ = ["TANDensity"]

#: Array elements per block of rows in ``contributions``: 64 MB.
_BLOCK_NUMBERS = 2**23


class TANDensity(OutlierMixin, LatentNetworkEstimator):
    """Density of rows without classes, modeled by a tree-augmented network with a latent class.

    The network is the same as in :class:`~tanlearn.TANImputer`. Use it to find outliers and unusual values, to sample,
    and to compute conditional probabilities.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of latent classes. 1 is a single Chow-Liu tree. "auto" hides a tenth of the values, and compares 1, 2, 4,
        8, 16 and 32 latent classes, with and without a tree between the columns, by the log-probability of the hidden
        values.
    contamination : float, default=0.05
        Fraction of the training rows that ``predict`` treats as outliers, above 0 and at most 0.5.
    encoder : TableEncoder, optional
        Encoder of raw columns. By default, numeric columns are discretized to at most 12 intervals with about equally
        many rows.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the initial latent classes, the hidden values, and samples.

    Attributes
    ----------
    offset_ : float
        Log density below which a row without missing values is an outlier.
    n_components_ : int
        Number of latent classes.
    structure_ : Structure
        The network of the columns. The latent class is a parent of all columns.
    tables_ : Tables
        CPTs of the columns, given their parent column and the latent class.
    candidates_ : list of LatentCandidate
        The networks that were compared, with the attributes ``n_components``, ``has_tree`` and ``score``, which is the
        mean log-probability of a hidden value, in nats. The list is empty if ``n_components`` is a number.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.

    Notes
    -----
    If c is the latent class, x_p(j) the parent of column x_j, and w_j the width of the interval that contains the
    number x_j, the density is::

        log p(x) = log sum_c p(c) prod_j p(x_j | x_p(j), c)  -  sum_numeric log w_j

    This is a density over the numeric columns, in their units, and a probability over the categorical columns. Within
    an interval, the density is constant. The outermost intervals end at the smallest and the largest training value.
    Outside these values, the log density decreases linearly, as in ``score_samples`` of classifiers. Missing values are
    marginalized, so the result is the density of the observed values.

    References
    ----------
    Meila, Jordan: Learning with mixtures of trees. Journal of Machine Learning Research 1, 2000.

    Examples
    --------
    >>> from tanlearn import TANDensity
    >>> X = [["sun", "hot"]] * 30 + [["rain", "cold"]] * 30 + [["rain", "hot"]]
    >>> model = TANDensity(contamination=0.02, random_state=0).fit(X)
    >>> model.predict([["sun", "hot"], ["rain", "hot"]]).tolist()
    [1, -1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LatentNetworkEstimator._parameter_constraints,
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
    }

    def __init__(
        self,
        *,
        n_components: Any = "auto",
        contamination: float = 0.05,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.contamination = contamination
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the network to rows with or without missing values.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values; NaN, None and similar values are missing.
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights. A row of weight 2 counts twice, and rows of weight 0 are dropped. With several latent
            classes, repeating a row gives a different model than a weight of 2, because the initial latent class of
            each row is random.

        Returns
        -------
        TANDensity
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a column or a parameter is invalid, or if the encoder needs classes or does not compute cut points.
        """
        rows = self._fit_network(X, sample_weight)
        self._log_widths = _log_widths(self.encoder_)
        scores, parts = self.score_samples(X), self.contributions(X)
        known = (rows.codes != missing_code(rows.codes.dtype)).T
        weights = np.ones((len(known), 1))
        if rows.weights is not None:
            is_used = np.asarray(sample_weight) > 0
            scores, parts, weights = scores[is_used], parts[is_used], rows.weights[:, np.newaxis]
        sums = (weights * known).sum(axis=0)
        self._expected = (weights * parts).sum(axis=0, where=known) / np.where(sums > 0, sums, 1)
        complete = scores + np.where(known, 0.0, self._expected).sum(axis=1)
        if rows.weights is None:
            self.offset_ = float(np.quantile(complete, self.contamination))
        else:
            self.offset_ = _weighted_quantile(complete, rows.weights, self.contamination)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log density of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values. Missing values are marginalized. An unseen category has the smallest probability of all values
            of its column, and a number outside the training range has an exponential tail.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of the densities.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError, TypeError
            If a column is invalid, or the columns differ from those in ``fit``.
        """
        codes, novelty = encode_new_rows(self, X)
        return self._score(codes, novelty)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log density minus ``offset_``, which is negative for outliers.

        The density of a row with missing values is larger, because it is a product of fewer probabilities. To correct
        this, the mean contribution of a column in training is added for each missing value.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as for :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples,)
            For rows without missing values, ``score_samples(X) - offset_``.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        """
        codes, novelty = encode_new_rows(self, X)
        is_missing = (codes == missing_code(codes.dtype)) & ~novelty.is_unseen
        lost = np.where(is_missing.T, self._expected, 0.0).sum(axis=1)
        return self._score(codes, novelty) + lost - self.offset_

    def predict(self, X: Any) -> AnyArray:
        """Return -1 for outliers and 1 for other rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as for :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples,), int
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def contributions(self, X: Any) -> FloatArray:
        """Split the log density of each row into contributions of the columns.

        Columns are added in the order of ``structure_.order``, parents before children::

            contribution_i = log p(x_1, ..., x_i) - log p(x_1, ..., x_i-1)

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as for :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The log density of each value given the values of earlier columns, and 0 for missing values. The
            contributions of a row add up to ``score_samples``. The part due to unseen categories is divided equally
            among them, and the part due to numbers outside the training range is divided equally among these numbers.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        Examples
        --------
        >>> from tanlearn import TANDensity
        >>> X = [["sun", "hot"]] * 30 + [["rain", "cold"]] * 30 + [["rain", "hot"]]
        >>> model = TANDensity(n_components=1).fit(X)
        >>> model.contributions([["rain", "hot"]]).round(1).tolist()
        [[-0.7, -2.3]]
        """
        codes, novelty = encode_new_rows(self, X)
        found = np.zeros(codes.T.shape)
        order = self.structure_.order
        n_rows = max(1, _BLOCK_NUMBERS // (codes.shape[0] * self.n_components_))
        for first in range(0, codes.shape[1], n_rows):
            block = np.ascontiguousarray(codes[:, first : first + n_rows])
            parts = explain(self.tables_, self.structure_, block, n_jobs=self.n_jobs)
            sums = np.concatenate([parts[:, -1:], parts[:, order]], axis=1).cumsum(axis=1)  # column 0 is the prior
            evidence = np.logaddexp.reduce(sums, axis=2)
            found[first : first + n_rows, order] = np.diff(evidence, axis=1)
        found -= self._widths_of(codes)
        rest = self._score(codes, novelty) - found.sum(axis=1)
        new = novelty.is_unseen.T | self._outside(X)
        n_new = new.sum(axis=1, keepdims=True)
        found += np.where(new, rest[:, np.newaxis] / np.maximum(n_new, 1), 0.0)
        return found

    def surprises(self, X: Any) -> FloatArray:
        """Return how surprising each value is, given all other values in its row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values, as for :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            ``-log p(value | other values)`` in nats, and 0 for missing values. For a number, p is the probability of
            its interval. A value with a large surprise is unusual and may be an error. Unlike :meth:`contributions`,
            surprises do not add up to the log density.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        Examples
        --------
        >>> from tanlearn import TANDensity
        >>> X = [["sun", "hot"]] * 30 + [["rain", "cold"]] * 30 + [["rain", "hot"]]
        >>> model = TANDensity(n_components=1).fit(X)
        >>> model.surprises([["rain", "hot"], ["rain", "cold"]]).round(1).tolist()
        [[2.3, 2.3], [0.1, 0.1]]
        """
        codes, novelty = encode_new_rows(self, X)
        own = log_evidence(self.model_.log_joint_of_new_values(codes, novelty.is_unseen, n_jobs=self.n_jobs))
        found = np.zeros(codes.T.shape)
        missing = missing_code(codes.dtype)
        for i in range(len(codes)):
            hidden, is_unseen = codes.copy(), novelty.is_unseen.copy()
            hidden[i], is_unseen[i] = missing, False
            found[:, i] = log_evidence(self.model_.log_joint_of_new_values(hidden, is_unseen, n_jobs=self.n_jobs)) - own
            found[(codes[i] == missing) & ~novelty.is_unseen[i], i] = 0.0
        return found

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> AnyArray:
        """Draw rows from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState, Generator or None, default=None
            Seed for drawing the rows. The default is the ``random_state`` of the estimator.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            Raw values. For a numeric column, the value is a random training value from the drawn interval.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        Examples
        --------
        >>> from tanlearn import TANDensity
        >>> X = [["sun", "hot"]] * 30 + [["rain", "cold"]] * 30
        >>> TANDensity(n_components=1).fit(X).sample(2, random_state=0).shape
        (2, 2)
        """
        rng = generator(self.random_state if random_state is None else random_state)
        codes, _ = sample(self.tables_, self.structure_, n_samples, rng)
        values = self.encoder_.decode(codes)
        for i in np.flatnonzero(~self.encoder_.is_discrete_).tolist():
            values[:, i] = self.interval_numbers_.draw(i, codes[i], rng)
        return values

    def conditional(self, feature: Any, given: Mapping[Any, Any] | None = None) -> dict[Any, float]:
        """Return the probabilities of the values of one or several columns, given values of other columns.

        Parameters
        ----------
        feature : str, int, or list of str and int
            Name or number of the column. For a list of columns, their joint distribution is returned.
        given : dict, optional
            Dictionary from names or numbers of other columns to their values. All columns without a value are
            marginalized exactly.

        Returns
        -------
        dict
            Probabilities by category, or by interval (low, high) of a numeric column. Intervals include their upper
            end, and the outermost intervals end at -inf and inf. For a list of columns, the keys are tuples with the
            values of the columns in the order of the list.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If a column does not exist or occurs twice, ``given`` contains the column itself, a given category is
            unseen, or the columns of a list have more than 100,000 combinations of values.

        Examples
        --------
        >>> from tanlearn import TANDensity
        >>> X = [["sun", "hot"]] * 30 + [["rain", "cold"]] * 30 + [["rain", "hot"]]
        >>> model = TANDensity(n_components=1).fit(X)
        >>> {value: round(p, 2) for value, p in model.conditional(1, {0: "rain"}).items()}
        {'cold': 0.9, 'hot': 0.1}
        >>> {values: round(p, 2) for values, p in model.conditional([0, 1]).items()}
        {('rain', 'cold'): 0.46, ('rain', 'hot'): 0.05, ('sun', 'cold'): 0.03, ('sun', 'hot'): 0.46}
        """
        names = feature if isinstance(feature, list) else [feature]
        numbers, others = [self._number(name) for name in names], {}
        for name, value in (given or {}).items():
            others[self._number(name)] = value
        for name, i in zip(names, numbers, strict=True):
            if i in others:
                raise ValueError(
                    f"given must not contain {name!r}, because its probabilities are requested. Remove it from given."
                )
        if not 0 < len(numbers) == len(set(numbers)):
            raise ValueError(f"feature must be a column or a list of different columns, got {feature!r}.")
        row = [others.get(j) for j in range(self.n_features_in_)]
        codes = self.encoder_.encode_columns(read_columns([row]), handle_unknown="error")
        if isinstance(feature, list):
            joint = joint_probabilities(self.model_, codes, numbers, n_jobs=self.n_jobs)
            return dict(zip(itertools.product(*map(self._values, numbers)), joint.tolist(), strict=False))
        start, (i,) = value_starts(self.encoder_.n_states_), numbers
        logs = log_evidence(log_joint_of_values(self.tables_, self.structure_, codes)[0, start[i] : start[i + 1]])
        p = np.exp(logs - np.logaddexp.reduce(logs))
        return dict(zip(self._values(i), p.tolist(), strict=False))

    def _values(self, i: int) -> list[Any]:
        """Return the categories of a column, or its intervals."""
        categories = self.encoder_.categories_[i]
        if categories is not None:
            return categories.tolist()
        ends = [-np.inf, *_cut_points(self.encoder_, i).tolist(), np.inf]
        return list(itertools.pairwise(ends))

    def _number(self, feature: Any) -> int:
        """Return the number of a column, given its name or number."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and feature in names.tolist():
            return int(names.tolist().index(feature))
        if isinstance(feature, int | np.integer) and 0 <= feature < self.n_features_in_:
            return int(feature)
        known = (
            f"a column number from 0 to {self.n_features_in_ - 1}"
            if names is None
            else f"one of the columns {', '.join(map(repr, names.tolist()))}"
        )
        raise ValueError(f"there is no column {feature!r}. Pass {known}.")

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, besides the encoder."""
        return {"offset": self.offset_, "expected": self._expected, **super()._get_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after the encoder. Raise ValueError for inconsistent values."""
        state = dict(state)
        self.offset_ = state.pop("offset", None)
        if type(self.offset_) is not float or np.isnan(self.offset_):
            raise ValueError(f"offset must be a float, got {self.offset_!r}.")
        self._expected = check_array("expected", state.pop("expected", None), np.float64, (self.n_features_in_,))
        super()._set_state(state)
        self._log_widths = _log_widths(self.encoder_)

    def _score(self, codes: Codes, novelty: Novelty) -> FloatArray:
        """Return the log density of encoded rows."""
        scores = self.model_.log_joint_of_new_values(codes, novelty.is_unseen, n_jobs=self.n_jobs)
        return log_evidence(scores) + novelty.log_density - self._widths_of(codes).sum(axis=1)

    def _widths_of(self, codes: Codes) -> FloatArray:
        """Return the log width of the interval of each value (0 for categories), an array (n_samples, n_features)."""
        found = np.zeros(codes.T.shape)
        for i, widths in self._log_widths.items():
            known = codes[i] != missing_code(codes.dtype)
            found[known, i] = widths[codes[i, known]]
        return found

    def _outside(self, X: Any) -> AnyArray:
        """Return an (n_samples, n_features) mask that marks numbers outside the training range."""
        columns = read_columns(X)
        found = np.zeros((columns.n_samples, len(columns)), np.bool_)
        for i, bounds in enumerate(self.encoder_.value_ranges_):
            if bounds is not None:
                values = np.asarray(columns[i].numbers(), np.float64)
                found[:, i] = (values < bounds[0]) | (values > bounds[1])
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _cut_points(encoder: TableEncoder, i: int) -> FloatArray:
    """Return the cut points of a numeric column."""
    found: list[FloatArray] | None = getattr(encoder.discretizer_, "cut_points_", None)
    if found is None:
        raise ValueError(
            f"the discretizer of encoder must have cut_points_, because the density of a number depends on the "
            f"width of its interval, got {encoder.discretizer_!r}. Pass "
            f"TableEncoder(discretizer=QuantileDiscretizer())."
        )
    return found[int(np.count_nonzero(~encoder.is_discrete_[:i]))]


def _weighted_quantile(values: FloatArray, weights: FloatArray, fraction: float) -> float:
    """Return a quantile of weighted values, as if each were repeated, with NumPy's linear interpolation."""
    order = np.argsort(values, kind="stable")
    above = weights[order].cumsum()  # a value has the positions from the preceding sum to its own sum minus 1
    position = fraction * max(above[-1] - 1, 0)
    below = np.floor(position)
    low, high = values[order][np.searchsorted(above, [below, min(below + 1, above[-1] - 1)], side="right")]
    return float(low + (position - below) * (high - low))


def _log_widths(encoder: TableEncoder) -> dict[int, FloatArray]:
    """Return the log widths of the intervals of numeric columns; 0 for columns with a single value."""
    found = {}
    for i, bounds in enumerate(encoder.value_ranges_):
        if bounds is not None:
            ends = np.concatenate([bounds[:1], _cut_points(encoder, i), bounds[1:]])
            with np.errstate(invalid="ignore"):
                widths = np.diff(ends)
            found[i] = np.log(np.where(widths > 0, widths, 1.0))
    return found
