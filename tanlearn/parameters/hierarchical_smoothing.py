"""Hierarchical smoothing: probability estimates that back off to fewer parents if there are few rows."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.leave_one_out import LeaveOneOut
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["CONCENTRATIONS", "HierarchicalSmoothing", "dense_if_small", "log_class_prior", "read_concentrations"]

#: Candidate weights for the selection by leave-one-out cross-validation.
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
#: Maximum number of entries of dense CPTs, 8 MB.
_DENSE = 2**20


class HierarchicalSmoothing(BaseEstimator):
    """Frequencies that are smoothed, level by level, toward the estimate with one fewer parent.

    Parameters
    ----------
    m : "auto", float or array-like of shape (n_levels,), default="auto"
        Weight of the estimate with one fewer parent, in rows. A number applies to all levels. An array has one weight
        per level, from no parent (smoothed by the uniform distribution) to the maximum number of parents. "auto" means
        that the weights are selected level by level with leave-one-out cross-validation.
    sparse : "auto" or bool, default="auto"
        Whether to store only the counts of observed contexts, that is, combinations of parent values
        (:class:`~tanlearn.models.back_off.BackOffTables`), instead of all CPT entries. "auto" means that all entries
        are stored if there are at most 1,048,576. The probabilities are the same, with one exception: if missing values
        of a row cannot be marginalized exactly within 1e9 operations (or ``TANLEARN_MAX_ROW_OPERATIONS``), the two
        kinds of CPTs approximate the score differently, with an :class:`~tanlearn.InexactMarginalizationWarning`.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.

    Attributes
    ----------
    m_ : ndarray of shape (n_levels,)
        The weights of the levels.
    log_loss_, error_ : float
        Mean of -log P(class | features), and error rate, both by leave-one-out cross-validation. They are set only if
        ``m`` is "auto".

    Notes
    -----
    Let N be the total weight of the rows with class y and values p1..pj of the first j parents, and n the weight of
    those rows that also have value x. The estimates are::

        P_j(x | y, p1..pj) = (n + m_j P_{j-1}(x | y, p1..pj-1)) / (N + m_j),    P_-1 = 1 / n_states

    and the CPT of a feature uses all its parents. A row with missing parents is counted at the levels before its first
    missing parent. The class prior is smoothed by Laplace's rule.

    With "auto", the weights 0.1, 0.3, 1, ..., 100 are tried for m_0 in naive Bayes, then for m_1 with one parent per
    feature, and so on. The weights with the highest conditional likelihood of the classes are selected. Leave-one-out
    predictions are exact, because each row is removed from the counts of its own contexts. This takes n_levels
    (n_levels + 7) passes over rows x features x classes. If rows x classes x candidates exceed two million, an evenly
    spaced subset of the rows is evaluated.

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

    needs: ClassVar[str] = "contexts"
    counts_classes: ClassVar[bool] = True

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
        ValueError
            If a weight in ``m`` is not positive, or the number of weights is not the number of levels.
        TableMemoryError
            If ``sparse`` is False and the CPTs exceed the memory limit.
        """
        contexts = ContextCounts(structure.parents, data.n_states, data.n_classes).update(data, n_jobs=self.n_jobs)
        return self.from_contexts(contexts, lambda: data)

    def from_contexts(self, contexts: ContextCounts, rows: Callable[[], EncodedData]) -> Tables:
        """Return the CPTs for given counts.

        Parameters
        ----------
        contexts : ContextCounts
            Counts of the families of a structure.
        rows : callable
            Function that returns all or some of the counted rows. It is called only if ``m`` is "auto".

        Returns
        -------
        Tables
            As in :meth:`fit`.

        Raises
        ------
        ValueError, TableMemoryError
            As in :meth:`fit`.
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
    """Return the weights (n_levels,) in ``m``, or None for "auto". Raise ValueError for invalid weights."""
    if isinstance(m, str):
        return None
    given = np.asarray(m)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (n_levels,)) or not (given > 0).all():
        raise ValueError(
            f"m must be 'auto', a positive number, or {n_levels} positive numbers, one per number of parents from 0 "
            f"to the maximum, got {m!r}."
        )
    if not np.isfinite(given).all():
        raise ValueError(f"m must be finite, got {m!r}. A large number such as 1e6 ignores the parent.")
    return np.full(n_levels, given, np.float64)


def log_class_prior(counts: AnyArray) -> FloatArray:
    """Return the log-probabilities (n_classes,) of the classes by Laplace's rule, from their counts (n_classes,)."""
    prior: FloatArray = counts + 1.0
    prior /= prior.sum()
    log_all(prior, prior)
    return prior


def dense_if_small(tables: BackOffTables, sparse: Any) -> Tables:
    """Return dense CPTs if ``sparse`` is False, or if it is "auto" and they have at most a million entries."""
    is_small = tables.layout.sizes().sum() <= _DENSE
    return tables.to_dense() if not sparse or (sparse == "auto" and is_small) else tables
