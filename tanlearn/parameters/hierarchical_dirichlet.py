"""Hierarchical Dirichlet smoothing with one concentration per level."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.context_tries import level_starts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import dirichlet as kernels
from tanlearn.kernels.context_smoothing import smooth_entries
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.tables import Tables
from tanlearn.parameters.hierarchical_smoothing import dense_if_small, log_class_prior
from tanlearn.structures.structures import Structure

__all__ = ["HierarchicalDirichlet"]

#: Limits for concentrations. Below the lower limit, smoothing has no effect. Above the upper limit, the rows of a
#: context have no effect.
_SMALLEST, _LARGEST = 1e-3, 1e4


class _Restaurant:
    """Contexts of a family, with counts and estimates (Chinese restaurant representation)."""

    def __init__(self, contexts: ContextCounts, feature: int) -> None:
        grown, self.n_states = contexts.grow(feature), int(contexts.n_states[feature])
        trie, counts, self.links = grown.trie, grown.counts.astype(np.float64), grown.links
        start = level_starts(trie.children, 0, len(trie.branch), 1 + len(contexts.family(feature)[0]))
        bounds = trie.class_start[start], trie.entry_start[trie.value_start[start]]
        self.bounds = np.stack(bounds, axis=1).astype(np.intp)
        above, below = self.links[0], np.flatnonzero(self.links[0] >= 0)
        self.own = counts - np.bincount(above[below], counts[below], len(counts))
        self.counts, self.tables = np.empty((2, len(counts)))
        self.totals, self.unseen = np.empty((2, len(trie.classes)))
        self.p = np.full(len(counts), 1.0 / self.n_states)

    def seat(self, c: FloatArray) -> FloatArray:
        """Estimate table counts and probabilities.

        Return two sums per level, an array (n_levels, 2) from which the concentrations are updated.
        """
        c = np.ascontiguousarray(c[: len(self.bounds) - 1])
        sums, (above, run, _) = np.zeros((len(c), 2)), self.links
        found = self.counts, self.totals, self.tables
        kernels.seat(self.bounds, above, run, self.own, c, self.n_states, self.p, *found, sums)
        m = np.repeat(c, np.diff(self.bounds[:, 0]))
        smooth_entries(*self.links, m, self.counts, self.p, self.unseen)
        return sums


class HierarchicalDirichlet(BaseEstimator):
    """Frequencies that are smoothed toward the estimate with one fewer parent by a hierarchical Dirichlet process.

    Parameters
    ----------
    n_iter : int, default=60
        Number of iterations of the estimation.
    sparse : "auto" or bool, default="auto"
        Whether to store only the counts of observed contexts instead of all CPT entries, as for
        :class:`~tanlearn.HierarchicalSmoothing`.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.

    Attributes
    ----------
    concentrations_ : ndarray of shape (n_levels,)
        Concentration of each level, from no parent to the maximum number of parents.

    Notes
    -----
    Let c_j be the concentration of level j. A context is an assignment of values to the first parents. The
    probabilities are computed as in :class:`~tanlearn.HierarchicalSmoothing`, but from different counts. In contexts
    with all parents, rows are counted. In shorter contexts, *tables* of the next longer contexts (in the Chinese
    restaurant representation of the process) and rows with a missing next parent are counted. Each iteration has three
    steps. First, the expected number of tables is computed, beginning with the longest contexts. For n rows (or tables)
    of a value with probability p in the next shorter context, it is::

        t = c p (psi(c p + n) - psi(c p))

    Second, the concentrations are set to maximize the likelihood of these numbers (Polya likelihood; Minka's fixed
    point), between 0.001 and 10,000::

        c_j = sum of t / sum over contexts and classes of (psi(c_j + N) - psi(c_j))

    Third, the probabilities are computed, beginning with no parents. Petitjean et al. sample tables and concentrations.
    Expectations require no random numbers, and only a few dozen iterations instead of thousands. If a value is frequent
    only in a single context, it has less effect on shorter contexts than with frequencies. The concentrations are
    computed only from the counts. They maximize the likelihood of the features, not the accuracy of predicted classes.
    With KDB-5, error and log loss are 8.0 % and 0.30 on letter (8.6 % and 0.38 with
    :class:`~tanlearn.HierarchicalSmoothing`), 4.0 % and 0.17 on segment (4.2 % and 0.26), but 30.2 % and 0.69 on the
    noisy data set german (25.1 % and 0.54).

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

    needs: ClassVar[str] = "contexts"
    counts_classes: ClassVar[bool] = True

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
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents. Each estimate backs off to the parents before the last one.
        data : EncodedData
            Training rows.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables
            :class:`~tanlearn.models.back_off.BackOffTables` if sparse.

        Raises
        ------
        TableMemoryError
            If ``sparse`` is False and the CPTs exceed the memory limit.
        """
        contexts = ContextCounts(structure.parents, data.n_states, data.n_classes).update(data, n_jobs=self.n_jobs)
        return self.from_contexts(contexts)

    def from_contexts(self, contexts: ContextCounts, rows: Callable[[], EncodedData] | None = None) -> Tables:
        """Return the CPTs for given counts.

        Parameters
        ----------
        contexts : ContextCounts
            Counts of the families of a structure.
        rows : callable, optional
            Not used, because the counts are sufficient.

        Returns
        -------
        Tables
            As in :meth:`fit`.

        Raises
        ------
        TableMemoryError
            As in :meth:`fit`.
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
