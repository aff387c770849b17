"""Sampling and completion of rows, for classifiers that are Bayesian networks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.data.columns import read_columns
from tanlearn.data.estimator_input import encode_rows, generator
from tanlearn.data.validation import number_classes
from tanlearn.estimators.reading import ReadingMixin
from tanlearn.network.queries import most_probable_completion, sample

__all__ = ["GenerativeMixin"]


class GenerativeMixin(ReadingMixin):
    """Methods of classifiers that are Bayesian networks with a single structure."""

    random_state: Any

    def sample(self, n_samples: int = 1, *, y: Any = None, random_state: Any = None) -> tuple[AnyArray, AnyArray]:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; ignored if ``y`` is given.
        y : array-like of shape (n_samples,), optional
            Classes of the rows; by default they are drawn too.
        random_state : int, RandomState, Generator or None, default=None
            Seed; by default the estimator's ``random_state``.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), object
            Categories. The model contains only intervals of continuous columns: their values are the mean of the
            training values in the interval.
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
        check_is_fitted(self)
        rng = generator(self.random_state if random_state is None else random_state)
        given = None if y is None else number_classes(y, len(y), self.classes_)
        codes, drawn = sample(self.tables_, self.structure_, n_samples if y is None else len(y), rng, y=given)
        return self.encoder_.decode(codes), self.classes_[drawn]

    def complete(self, X: Any, *, y: Any = None) -> tuple[Any, AnyArray]:
        """Impute the missing values of each row with their most probable joint completion.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values. NaN, None and the like are imputed, except in columns without any value in training. Unseen
            categories are kept, although the model treats them as missing.
        y : array-like of shape (n_samples,), optional
            Classes of the rows; by default they are imputed together with the values.

        Returns
        -------
        X : DataFrame, or ndarray of shape (n_samples, n_features), object
            The completed rows; a frame stays a frame. An interval of a continuous column is imputed by the mean of its
            training values. Imputed columns of a frame keep declared categories, and otherwise get the type of their
            values.
        y : ndarray of shape (n_samples,)
            The most probable classes jointly with the completion, which may differ from those of ``predict``.

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
        codes = encode_rows(self, X)
        given = None if y is None else number_classes(y, codes.shape[1], self.classes_)
        completed, found = most_probable_completion(self.tables_, self.structure_, codes, given, n_jobs=self.n_jobs)
        columns = read_columns(X)
        absent = np.zeros(codes.T.shape, bool)
        for i, column in enumerate(columns):
            if column.categories is not None:
                absent[:, i] = column.values < 0
            elif column.missing is not None:
                absent[:, i] = column.missing
        return _filled(X, absent, self.encoder_.decode(completed)), self.classes_[found]


def _filled(X: Any, absent: AnyArray, values: AnyArray) -> Any:
    """Return a copy of ``X`` with ``values`` where ``absent`` is True; a frame stays a frame."""
    for module in ("pandas", "polars"):
        if module in sys.modules and isinstance(X, sys.modules[module].DataFrame):
            library, filled = sys.modules[module], X.copy() if module == "pandas" else X.clone()
            for i in np.flatnonzero(absent.any(axis=0)).tolist():
                name, dtype = X.columns[i], X.dtypes[i] if module == "polars" else X.dtypes.iloc[i]
                cells = zip(X[name].to_list(), values[:, i], absent[:, i], strict=True)
                column = [new if gone else old for old, new, gone in cells]
                if module == "pandas":
                    is_declared = isinstance(dtype, library.CategoricalDtype)
                    filled[name] = library.Series(column, X.index, dtype=dtype if is_declared else None)
                else:
                    is_declared = dtype in (library.Enum, library.Categorical)
                    if any(isinstance(value, float) for value in column):  # means of integers need not be integers
                        column = [None if value is None else float(value) for value in column]
                    filled = filled.with_columns(library.Series(name, column, dtype=dtype if is_declared else None))
            return filled
    table = np.array(X, dtype=object)
    table[absent] = values[absent]
    return table
