"""Imputation of missing values without classes, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.density.latent_estimator import LatentNetworkEstimator
from tanlearn.density.stored_numbers import completed_table
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.estimator_input import generator, read_rows
from tanlearn.models.completion import most_probable_completion
from tanlearn.models.elimination import Eliminator
from tanlearn.models.log_joint import log_evidence
from tanlearn.models.value_joints import log_joint_of_values, value_starts

__all__ = ["TANImputer"]

#: Log-probabilities per block of rows: 64 MB.
_BLOCK_NUMBERS = 2**23


class TANImputer(OneToOneFeatureMixin, TransformerMixin, LatentNetworkEstimator):
    """Imputation of missing values by a tree-augmented network with a latent class.

    The network models the joint distribution of all columns. It is fitted by expectation maximization, also when rows
    have missing values. A missing value is imputed from its exact distribution given all observed values of its row.

    Parameters
    ----------
    strategy : {"mean", "mode", "joint", "draw"}, default="mean"
        Method of imputation:

        - "mean": the expected value of a numeric column, and the most probable category of a categorical column;
        - "mode": the mean of the most probable interval of a numeric column, and the most probable category;
        - "joint": the jointly most probable missing values and latent class of the row, with the mean of the interval
          for a numeric column;
        - "draw": a random draw of all missing values of the row from their joint distribution (see :meth:`draw`).
    n_components : "auto" or int, default="auto"
        Number of latent classes. 1 is a single Chow-Liu tree. "auto" hides a tenth of the values, and compares 1, 2, 4,
        8, 16 and 32 latent classes, with and without a tree between the columns, by the log-probability of the hidden
        values.
    encoder : TableEncoder, optional
        Encoder of raw columns. By default, numeric columns are discretized to at most 12 intervals with about equally
        many rows.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the initial latent classes, the hidden values, and draws.

    Attributes
    ----------
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
    The network with columns x_j, their parents x_p(j) and the latent class c has the distribution::

        p(x) = sum_c p(c) prod_j p(x_j | x_p(j), c)

    Missing values are marginalized exactly in ``fit`` and ``transform``. Class labels ``y`` are ignored, because new
    rows have no labels. If training rows were imputed with their labels, a classifier could infer the labels from the
    imputed values.

    References
    ----------
    Meila, Jordan: Learning with mixtures of trees. Journal of Machine Learning Research 1, 2000.
    Dempster, Laird, Rubin: Maximum likelihood from incomplete data via the EM algorithm. Journal of the Royal
    Statistical Society B 39, 1977.
    Rubin: Multiple imputation for nonresponse in surveys. Wiley, 1987.

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn import TANImputer
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "sun", "rain"] * 20, "degrees": [30.5, 11.5, 29.5, 11.5] * 20})
    >>> imputer = TANImputer(strategy="mode", random_state=0).fit(X)
    >>> imputer.transform(pd.DataFrame({"sky": [None, "rain"], "degrees": [29.0, None]}))
        sky  degrees
    0   sun     29.0
    1  rain     11.5
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LatentNetworkEstimator._parameter_constraints,
        "strategy": [StrOptions({"mean", "mode", "joint", "draw"})],
    }

    def __init__(
        self,
        *,
        strategy: str = "mean",
        n_components: Any = "auto",
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.strategy = strategy
        self.n_components = n_components
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the network to rows with or without missing values.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values; NaN, None and similar values are missing. Columns of strings, categoricals or booleans, and
            integer-valued columns with at most 10 distinct values, are categorical. Other numeric columns are
            discretized.
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights. A row of weight 2 counts twice, and rows of weight 0 are dropped. With several latent
            classes, repeating a row gives a different model than a weight of 2, because the initial latent class of
            each row is random.

        Returns
        -------
        TANImputer
            The fitted imputer.

        Raises
        ------
        ValueError, TypeError
            If a column or a parameter is invalid, or the encoder needs classes.
        """
        self._fit_network(X, sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """Impute the missing values of rows.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values. Unseen categories are kept, but the network treats them as missing. Columns without any observed
            value in ``fit`` stay missing.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            A copy with imputed values. A frame stays a frame and keeps its types where possible. An array of numbers
            stays an array of numbers. Other arrays and lists become arrays of objects. If ``set_output`` was called, it
            determines the type.

        Raises
        ------
        NotFittedError
            If the imputer is not fitted.
        ValueError, TypeError
            If a column is invalid, or the columns differ from those in ``fit``.
        """
        columns = read_rows(self, X)
        codes = self.encoder_.encode_columns(columns)
        absent = np.stack([~column.present for column in columns], axis=1)
        if self.strategy == "draw":
            return completed_table(X, absent, self._draw(codes, generator(self.random_state)))
        return completed_table(X, absent, self._impute(codes))

    def draw(self, X: Any, n_draws: Any = 5, *, random_state: Any = None) -> list[Any]:
        """Impute the missing values several times with random draws, for multiple imputation.

        The missing values of a row are drawn together from their distribution given the observed values of the row. A
        numeric value is one of the training values in its interval. Repeat your analysis with each completed copy. The
        variation of the results then represents the uncertainty about the missing values, given the fitted network.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values, as for :meth:`transform`.
        n_draws : int, default=5
            Number of completed copies.
        random_state : int, RandomState, Generator or None, default=None
            Seed for the draws. The default is the ``random_state`` of the imputer.

        Returns
        -------
        list of ndarray or frame of shape (n_samples, n_features)
            Completed copies of ``X``.

        Raises
        ------
        NotFittedError
            If the imputer is not fitted.
        ValueError, TypeError
            If ``n_draws`` is not a positive integer, or a column is invalid.

        Examples
        --------
        >>> from tanlearn import TANImputer
        >>> X = [["sun", "hot"], ["rain", "cold"], ["rain", "hot"], ["sun", "hot"], [None, "hot"]]
        >>> tables = TANImputer(random_state=0).fit(X).draw(X, 200)
        >>> sorted(set(table[4][0] for table in tables))
        ['rain', 'sun']
        """
        columns = read_rows(self, X)
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(
                f"n_draws, the number of completed copies, must be a positive integer, got {n_draws!r}. Pass, for "
                f"example n_draws=5."
            )
        rng = generator(self.random_state if random_state is None else random_state)
        codes = self.encoder_.encode_columns(columns)
        absent = np.stack([~column.present for column in columns], axis=1)
        return [completed_table(X, absent, self._draw(codes, rng)) for _ in range(n_draws)]

    def _impute(self, codes: Codes) -> AnyArray:
        """Return the decoded rows (n_samples, n_features), with missing values imputed according to ``strategy``."""
        missing = missing_code(codes.dtype)
        if self.strategy == "joint":
            completed, _ = most_probable_completion(self.tables_, self.structure_, codes, n_jobs=self.n_jobs)
            return self.encoder_.decode(completed)
        completed, means = codes.copy(), []
        start = value_starts(self.encoder_.n_states_)
        for rows, p in self._value_probabilities(codes):
            for i, is_missing in enumerate(codes[:, rows] == missing):
                chosen, own = rows[is_missing], p[is_missing, start[i] : start[i + 1]]
                completed[i, chosen] = own.argmax(axis=1)
                typical = self.encoder_.typical_values_[i]
                if self.strategy == "mean" and typical is not None and chosen.size:
                    means.append((chosen, i, (own * typical).sum(axis=1)))
        values = self.encoder_.decode(completed)
        for chosen, i, mean in means:
            values[chosen, i] = mean
        return values

    def _value_probabilities(self, codes: Codes) -> Iterator[tuple[AnyArray, FloatArray]]:
        """Yield indices of rows with missing values, with the probabilities (n_rows, n_values) of all values."""
        incomplete = np.flatnonzero((codes == missing_code(codes.dtype)).any(axis=0))
        n_rows = max(1, _BLOCK_NUMBERS // (int(self.encoder_.n_states_.sum()) * self.n_components_))
        for first in range(0, len(incomplete), n_rows):
            rows = incomplete[first : first + n_rows]
            block = np.ascontiguousarray(codes[:, rows])
            logs = log_joint_of_values(self.tables_, self.structure_, block, n_jobs=self.n_jobs)
            evidence = log_evidence(self.model_.log_joint(block, n_jobs=self.n_jobs))
            yield rows, np.exp(logs - evidence[:, np.newaxis, np.newaxis]).sum(axis=2)

    def _draw(self, codes: Codes, rng: np.random.Generator) -> AnyArray:
        """Return the decoded rows (n_samples, n_features), with missing values drawn from their posterior."""
        is_missing = codes == missing_code(codes.dtype)
        rows = np.flatnonzero(is_missing.any(axis=0))
        completed = codes.copy()
        if rows.size:
            scores = self.model_.log_joint(np.ascontiguousarray(codes[:, rows]), n_jobs=self.n_jobs)
            bounds = np.exp(scores - log_evidence(scores)[:, np.newaxis]).cumsum(axis=1)
            classes = (bounds[:, :-1] <= rng.random(len(rows))[:, np.newaxis] * bounds[:, -1:]).sum(axis=1)
            eliminator = Eliminator(self.structure_, self.tables_.layout)
            drawn = eliminator.sample(codes, rows, self.tables_.cells, rng)
            completed[:, rows] = drawn[:, np.arange(len(rows)), classes]
        values = self.encoder_.decode(completed)
        for i in np.flatnonzero(is_missing.any(axis=1)).tolist():
            if not self.encoder_.is_discrete_[i]:
                values[is_missing[i], i] = self.interval_numbers_.draw(i, completed[i, is_missing[i]], rng)
        return values

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
