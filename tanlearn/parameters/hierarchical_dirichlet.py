"""Hierarchical Dirichlet smoothing, with one concentration a level."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels import dirichlet as kernels
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.contexts import ContextCounts, build_levels
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.parameters.hierarchical import dense_if_small, log_class_prior

__all__ = ["HierarchicalDirichlet"]

#: Concentrations beyond these are as good as none, or as the level above alone.
_SMALLEST, _LARGEST = 1e-3, 1e4


class _Restaurant:
    """A family: its contexts, their rows, and what is estimated of them."""

    def __init__(self, contexts: ContextCounts, feature: int) -> None:
        self.levels, self.bounds = build_levels(*contexts.families[feature], contexts.family(feature)[1])
        self.n_states = int(contexts.n_states[feature])
        counts = self.levels.entry_count.astype(np.float64)
        below = np.flatnonzero(self.levels.above >= 0)
        self.own = counts - np.bincount(self.levels.above[below], counts[below], len(counts))
        self.counts, self.totals = np.empty(len(counts)), np.empty(len(self.levels.class_id))
        self.p, self.tables = np.full(len(counts), 1.0 / self.n_states), np.empty(len(counts))

    def seat(self, c: FloatArray) -> FloatArray:
        """Estimate tables and then probabilities; return what concentrations follow from."""
        c = np.ascontiguousarray(c[: len(self.bounds) - 1])
        sums = np.zeros((len(c), 2))
        found = self.counts, self.totals
        kernels.seat(self.levels, self.bounds, self.own, c, self.n_states, self.p, *found, self.tables, sums)
        kernels.predict(self.levels, self.bounds, c, self.n_states, *found, self.p)
        return sums


class HierarchicalDirichlet(BaseEstimator):
    """Frequencies smoothed by those with one parent less, of which a hierarchical Dirichlet process says how much.

    Parameters
    ----------
    n_iter : int, default=60
        Rounds of estimation.
    sparse : "auto" or bool, default="auto"
        Whether tables keep the counts of seen contexts or all cells, as for :class:`~tanlearn.HierarchicalSmoothing`.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Attributes
    ----------
    concentrations_ : ndarray of shape (n_levels,)
        One a level, from no parent to the most parents.

    Notes
    -----
    With c_j the concentration of level j, probabilities are those of :class:`~tanlearn.HierarchicalSmoothing`, with
    other counts: contexts of all parents count rows, shorter ones the *tables* of the longer ones, at which the rows
    sit in the Chinese restaurants of the process, and rows that miss the next parent. A round takes their expectation
    from the longest contexts up, where n rows (or tables) of a value have the probability p in the context above::

        t = c p (psi(c p + n) - psi(c p))

    then the probabilities, from no parent down, and the concentrations under which so many tables are most probable
    (Polya likelihood; Minka's fixed point), limited to 0.001 and 10,000::

        c_j = sum of t / sum over contexts and classes of (psi(c_j + N) - psi(c_j))

    Petitjean et al. sample tables and concentrations; expectations are the same for any seed, and need some dozen
    rounds in place of thousands. What was counted often in one context says less about others than by plain
    frequencies, and concentrations follow from the counts, without a pass over classes: what is likely, and not what
    separates the classes best. With KDB-5 error and log loss are 8.0 % and .30 in place of 8.6 % and .38 of
    :class:`~tanlearn.HierarchicalSmoothing` on letter, 4.0 % and .17 in place of 4.2 % and .26 on segment, but 30.2 %
    and .69 in place of 25.1 % and .54 on the noisy german.

    References
    ----------
    Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using hierarchical
    Dirichlet processes. Machine Learning 107, 2018.
    Minka: Estimating a Dirichlet distribution. Technical report, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, HierarchicalDirichlet, Structure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 3, (300, 3))
    >>> x[:, 2] = (x[:, 0] + x[:, 1]) % 3  # the third feature is a function of the others
    >>> data = EncodedData.from_codes(x, rng.integers(0, 2, 300))
    >>> learner = HierarchicalDirichlet()
    >>> tables = learner.fit(Structure([[-1, -1], [-1, -1], [0, 1]]), data, rng)
    >>> bool(tables.probabilities(2)[0, 1, 2, 0] > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "sparse": [StrOptions({"auto"}), "boolean"],
        "n_jobs": [None, Integral],
    }

    def __init__(self, *, n_iter: int = 60, sparse: Any = "auto", n_jobs: int | None = None) -> None:
        self.n_iter = n_iter
        self.sparse = sparse
        self.n_jobs = n_jobs

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents, of which the last backs off to those before it.
        data : EncodedData
            Rows.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables
            :class:`~tanlearn.network.back_off.BackOffTables` if they are sparse.

        Raises
        ------
        TableMemoryError
            If ``sparse`` is False and the cells would need more memory than tables may take.
        """
        contexts = ContextCounts(structure.parents, data.n_states, data.n_classes).update(data, n_jobs=self.n_jobs)
        return self.from_contexts(contexts)

    def from_contexts(self, contexts: ContextCounts, rows: Callable[[], EncodedData] | None = None) -> Tables:
        """Return the tables of counts that are at hand already.

        Parameters
        ----------
        contexts : ContextCounts
            Of the families of a structure.
        rows : callable, optional
            Not used: counts are all that there is to know.

        Returns
        -------
        Tables
            As :meth:`fit` returns them.

        Raises
        ------
        TableMemoryError
            As by :meth:`fit`.
        """
        self._validate_params()
        families = in_threads(lambda i: _Restaurant(contexts, i), range(len(contexts.parents)), self.n_jobs)
        depth = (contexts.parents >= 0).sum(axis=1)
        self.concentrations_: FloatArray = np.ones(1 + int(depth.max()))
        for _ in range(self.n_iter):
            sums = np.zeros((len(self.concentrations_), 2))
            for found in in_threads(lambda family: family.seat(self.concentrations_), families, self.n_jobs):
                sums[: len(found)] += found
            np.divide(sums[:, 0], sums[:, 1], out=self.concentrations_, where=sums[:, 1] > 0)
            np.clip(self.concentrations_, _SMALLEST, _LARGEST, out=self.concentrations_)
        counts = [family.counts for family in families]
        prior = log_class_prior(contexts.class_counts)
        tables = BackOffTables(contexts, self.concentrations_, prior, counts=counts, n_jobs=self.n_jobs)
        return dense_if_small(tables, self.sparse)
