"""Hierarchical smoothing: probabilities that back off to fewer parents where there are few rows."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.leave_one_out import LeaveOneOut
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["CONCENTRATIONS", "HierarchicalSmoothing", "dense_if_small", "log_class_prior", "read_concentrations"]

#: What leave-one-out chooses from.
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
#: Cells up to which tables are dense, 8 MB.
_DENSE = 2**20


class HierarchicalSmoothing(BaseEstimator):
    """Frequencies, of every level smoothed by those with one parent less.

    Parameters
    ----------
    m : "auto", float or array-like of shape (n_levels,), default="auto"
        Weight of the estimate with one parent less, in rows: one for all levels, or one each, from that of no parent
        (whose estimate without any is uniform) to that of the most parents. "auto" has rows choose, each left out of
        its own counts, level by level.
    sparse : "auto" or bool, default="auto"
        Whether tables keep the counts of seen contexts (:class:`~tanlearn.network.back_off.BackOffTables`), or all
        cells; "auto" keeps all cells if they are a million at most. The probabilities are the same; but sparse tables
        back off where a row misses so much that summing it out would take more than 262,144 numbers, and dense ones
        refuse it from 4 million on.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Attributes
    ----------
    m_ : ndarray of shape (n_levels,)
        The weights.
    log_loss_, error_ : float
        Mean -log P(class | features) and share of errors of rows left out, with "auto".

    Notes
    -----
    With n and N the weights of the rows of a value x and of all, with class y and the first j parents::

        P_j(x | y, p1..pj) = (n + m_j P_{j-1}(x | y, p1..pj-1)) / (N + m_j),    P_-1 = 1 / n_states

    and the table of a feature is that with all its parents. Rows count for as many of the first parents as they do not
    miss. The classes are smoothed by Laplace's rule.

    "auto" tries 0.1, 0.3, 1, ..., 100 for m_0 in naive Bayes, then for m_1 with one parent a feature, and so on, and
    takes what makes the classes of rows most probable, of which each is taken out of the counts of its own contexts:
    that is exact leave-one-out, and costs n_levels (n_levels + 7) passes over rows x features x classes. Of more than
    two million rows x classes x candidates, an evenly spaced part of the rows is judged.

    References
    ----------
    Friedman, Geiger, Goldszmidt: Bayesian network classifiers. Machine Learning 29, 1997, section 5.
    Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using hierarchical
    Dirichlet processes. Machine Learning 107, 2018, section 3, where it is the m-estimate with back-off.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, HierarchicalSmoothing, Structure
    >>> data = EncodedData.from_codes([[0, 0], [1, 1], [1, 1]], [0, 1, 1])
    >>> tables = HierarchicalSmoothing(m=1.0).fit(Structure([-1, 0]), data, np.random.default_rng(0))
    >>> tables.probabilities(1)[1].round(2).tolist()  # of value 1, given each value of the parent, in each class
    [[0.13, 0.83], [0.25, 0.94]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "m": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "sparse": [StrOptions({"auto"}), "boolean"],
        "n_jobs": [None, Integral],
    }

    def __init__(self, *, m: Any = "auto", sparse: Any = "auto", n_jobs: int | None = None) -> None:
        self.m = m
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
        ValueError
            If ``m`` holds other numbers than positive ones, or more or fewer than there are levels.
        TableMemoryError
            If ``sparse`` is False and the cells would need more memory than tables may take.
        """
        contexts = ContextCounts(structure.parents, data.n_states, data.n_classes).update(data, n_jobs=self.n_jobs)
        return self.from_contexts(contexts, lambda: data)

    def from_contexts(self, contexts: ContextCounts, rows: Callable[[], EncodedData]) -> Tables:
        """Return the tables of counts that are at hand already.

        Parameters
        ----------
        contexts : ContextCounts
            Of the families of a structure.
        rows : callable
            Returns rows, all or some of those that are counted; called if these are to choose ``m``.

        Returns
        -------
        Tables
            As :meth:`fit` returns them.

        Raises
        ------
        ValueError, TableMemoryError
            As by :meth:`fit`.
        """
        self._validate_params()
        m = read_concentrations(self.m, 1 + int((contexts.parents >= 0).sum(axis=1).max()))
        if m is None:
            judge = LeaveOneOut(rows(), contexts.parents, len(CONCENTRATIONS), n_jobs=self.n_jobs)
            m, (self.log_loss_, self.error_) = judge.choose(CONCENTRATIONS)
        self.m_ = m
        tables = BackOffTables(contexts, self.m_, log_class_prior(contexts.class_counts), n_jobs=self.n_jobs)
        return dense_if_small(tables, self.sparse)


def read_concentrations(m: Any, n_levels: int) -> FloatArray | None:
    """Return the weights that the user names.

    Shapes: m: (n_levels,); result: (n_levels,).
    """
    if isinstance(m, str):
        return None
    given = np.asarray(m)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (n_levels,)) or not (given > 0).all():
        raise ValueError(
            f"m must be 'auto', a positive number, or {n_levels} of them, one for no parent and one for each number up "
            f"to the most parents of a feature; got {m!r}."
        )
    if not np.isfinite(given).all():
        raise ValueError(f"m must be finite, got {m!r}. A large number, as 1e6, leaves the parent out.")
    return np.full(n_levels, given, np.float64)


def log_class_prior(counts: AnyArray) -> FloatArray:
    """Return the log-probabilities of the classes by Laplace's rule.

    Shapes: counts: (n_classes,); result: (n_classes,).
    """
    prior: FloatArray = counts + 1.0
    prior /= prior.sum()
    log_all(prior, prior)
    return prior


def dense_if_small(tables: BackOffTables, sparse: Any) -> Tables:
    """Return tables with all their cells if these are wanted, or few."""
    is_small = tables.layout.sizes().sum() <= _DENSE
    return tables.to_dense() if not sparse or (sparse == "auto" and is_small) else tables
