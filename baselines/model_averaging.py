"""MANB: exact average over all naive Bayes networks with and without each edge from the class (Dash, Cooper 2002).

There are 2^d networks over d features. With Dirichlet priors and independent edges, the average of their predictions
is the prediction of one network, whose CPTs mix the estimates with and without the class.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["ModelAveraging"]


class ModelAveraging(BaseEstimator):
    """Bayesian average over the inclusion of each edge from the class to a feature, in closed form.

    With ``NaiveBayesClassifier(parameters=ModelAveraging())`` this is MANB, model-averaged naive Bayes. Features that
    are independent of the class hardly influence the prediction, so no selection of features is needed. The average is
    over the edges from the class only; augmenting parents are fixed.

    Parameters
    ----------
    prior : float, default=0.5
        Prior probability of an edge from the class to a feature, above 0 and below 1. Use a small value if few of many
        features depend on the class.
    alpha : float, default=1.0
        Pseudo-count of each entry of the CPTs with and without the class: a symmetric Dirichlet prior.

    Attributes
    ----------
    edge_probabilities_ : ndarray of shape (n_features,)
        Posterior probability of the edge from the class to each feature.

    Notes
    -----
    Let D_i be the counts of feature i with its augmenting parents h. The posterior odds of the edge from the class C
    are the prior odds times a ratio of Dirichlet marginal likelihoods, and P is a smoothed frequency::

        p_i / (1 - p_i) = prior / (1 - prior) * P(D_i | h, C) / P(D_i | h)
        P(x_i | h, c) = p_i P(x_i | h, c; D_i) + (1 - p_i) P(x_i | h; D_i)

    Without augmenting parents, this equals the average of the 2^d naive Bayes networks, weighted by their posterior
    probabilities. The marginal likelihoods use the log-gamma function of SciPy, so results on different CPUs are equal
    up to rounding.

    References
    ----------
    Dash, Cooper: Exact model averaging with naive Bayesian classifiers. ICML, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.baselines import ModelAveraging
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 3))
    >>> model = NaiveBayesClassifier(parameters=ModelAveraging()).fit(X, X[:, 1] ^ (rng.random(500) < 0.1))
    >>> model.parameters_.edge_probabilities_.round(2).tolist()  # only feature 1 depends on the class
    [0.14, 1.0, 0.11]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    needs: ClassVar[str] = "families"
    counts_classes: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prior": [Interval(Real, 0, 1, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    edge_probabilities_: FloatArray

    def __init__(self, *, prior: float = 0.5, alpha: float = 1.0) -> None:
        self.prior = prior
        self.alpha = alpha

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents; none for MANB.
        data : EncodedData
            Training rows. A CPT uses the rows in which neither the feature nor a parent is missing.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables

        Raises
        ------
        TableMemoryError
            If the CPTs exceed the memory limit: 8 GiB or half of the machine's memory, whichever is smaller. For arrays
            with more than 100 entries per training row, the limit is a quarter of that size. The environment variable
            ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
        """
        self._validate_params()
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples, data.label)
        return self.from_counts(layout, layout.count(data.codes, data.y, data.weights, data.device))

    def from_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the CPTs for given counts.

        Parameters
        ----------
        layout : TableLayout
            Layout of the CPTs, one per feature.
        counts : ndarray of shape (n_cells,)
            Weighted counts of all CPT entries.

        Returns
        -------
        Tables
        """
        self._validate_params()
        cells = np.empty(layout.n_cells)
        cells[: layout.n_classes] = _frequency(counts[: layout.n_classes, np.newaxis], self.alpha)[:, 0]
        self.edge_probabilities_ = np.empty(layout.n_tables)
        log_odds = math.log(self.prior) - math.log1p(-self.prior)
        for t, n_values in enumerate(layout.n_states[layout.child].tolist()):
            table = slice(layout.offset[t], layout.offset[t + 1])
            within = counts[table].reshape(n_values, -1, layout.n_classes).astype(np.float64)
            without = within.sum(axis=2, keepdims=True)
            gain = _log_evidence(within, self.alpha) - _log_evidence(without, self.alpha)
            p = _logistic(log_odds + gain)
            self.edge_probabilities_[t] = p
            mixed = p * _frequency(within, self.alpha) + (1.0 - p) * _frequency(without, self.alpha)
            cells[table] = mixed.ravel()
        log_all(cells, cells)
        return Tables(layout, cells)


def _frequency(counts: FloatArray, alpha: float) -> FloatArray:
    """Return smoothed frequencies of counts along axis 0."""
    frequency: FloatArray = (counts + alpha) / (counts.sum(axis=0) + alpha * len(counts))
    return frequency


def _log_evidence(counts: FloatArray, alpha: float) -> float:
    """Return the log probability of counts whose distributions, along axis 0, have symmetric Dirichlet priors.

    The multinomial coefficients are left out, because they are equal with and without the class.
    """
    from scipy.special import gammaln

    total = counts.sum(axis=0)
    rise = gammaln(counts + alpha).sum() - counts.size * gammaln(alpha)
    return float(rise - (gammaln(total + alpha * len(counts)).sum() - total.size * gammaln(alpha * len(counts))))


def _logistic(x: float) -> float:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))
