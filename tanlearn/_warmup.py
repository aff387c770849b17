"""Compilation of the kernels of classifiers before the kernels are needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray
from tanlearn.estimators.bayes_forest import BayesForestClassifier
from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier
from tanlearn.estimators.boosted_terms import BoostedTermsClassifier
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.estimators.k_tree import KTreeClassifier
from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
from tanlearn.estimators.term_net import TermNetClassifier
from tanlearn.kernels._interpreter import compile_always

__all__ = ["warmup"]

_N_ROWS = 60


def warmup(*learners: Any, progress: Callable[[int, int], Any] | None = None) -> None:
    """Compile the kernels of learners and store them in Numba's cache, so that the first fits are fast.

    Call this function once after installation, for example while building a container image, as the same user and with
    the same ``NUMBA_CACHE_DIR`` as in later processes. Each learner is fitted to three small data sets (numbers,
    numbers with missing values, integer categories) and predicts their classes. Some settings and column types need
    additional kernels, which are compiled when they are first used.

    Parameters
    ----------
    *learners : classifier
        Unfitted classifiers, which are not modified. By default, the kernels of all classifiers of the package are
        compiled.
    progress : callable, optional
        Function that is called with the number of finished fits, starting at 0, and the total number of fits.

    Raises
    ------
    TypeError
        If a learner is not an instance with a method ``fit``.

    Examples
    --------
    >>> import tanlearn
    >>> tanlearn.warmup(tanlearn.NaiveBayesClassifier())
    """
    chosen = learners or (
        NaiveBayesClassifier(),
        BayesNetClassifier(),
        TANClassifier(random_state=0),
        KTreeClassifier(random_state=0),
        BayesForestClassifier(random_state=0),
        TermNetClassifier(random_state=0),
        BoostedTermsClassifier(random_state=0),
    )
    for learner in chosen:
        if isinstance(learner, type) or not callable(getattr(learner, "fit", None)):
            raise TypeError(f"learners must be unfitted classifiers, such as TANClassifier(), got {learner!r}.")
    tables = _tables()
    n_fits, n_done = len(chosen) * len(tables), 0
    with compile_always(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about small data sets
        warnings.filterwarnings("default", "compiled kernels cannot be stored")
        for learner in chosen:
            for X, y in tables:
                if progress is not None:
                    progress(n_done, n_fits)
                clone(learner).fit(X, y).predict(X)
                n_done += 1
    if progress is not None:
        progress(n_done, n_fits)


def _tables() -> list[tuple[AnyArray, AnyArray]]:
    """Return the features and classes of three small data sets."""
    rng = np.random.default_rng(0)
    y = np.arange(_N_ROWS) % 3
    numbers = y[:, np.newaxis] + rng.normal(size=(_N_ROWS, 4))
    missing = numbers.copy()
    missing[::5, 1] = np.nan
    integers = (y[:, np.newaxis] + rng.integers(0, 2, (_N_ROWS, 4))) % 3
    return [(numbers, y), (missing, y), (integers, y % 2)]
