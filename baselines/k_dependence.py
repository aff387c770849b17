"""KDB: every feature has at most k augmenting parents among the features that say more about the class.

Sahami, "Learning limited dependence Bayesian classifiers", KDD 1996: features enter in the order of falling
I(X_i; C), each with the k features already there of largest I(X_i; X_j | C). k = 0 is naive Bayes; k = 1 is a TAN
whose ordering is given by relevance to the class, where Chow-Liu trees have none.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.counts import CountState
from tanlearn.network.information import Information
from tanlearn.network.structures import Structure

__all__ = ["KDependence"]


class KDependence(BaseEstimator):
    """The most informative earlier features as parents, in the order of relevance to the class.

    Parameters
    ----------
    k : int, default=1
        Most augmenting parents of a feature, from 0. With any, rows may miss features: these are summed out in
        predictions. A family of more than two calls for ``HierarchicalSmoothing()``: dense tables grow by a factor of
        n_states a parent, and most of their cells see no row.
    threshold : float, default=0.0
        Sahami's theta: a parent whose I(X_i; X_j | C), in nats, is not larger is left out. Empirical information is
        positive even of independent features: on n rows about (values_i - 1) (values_j - 1) n_classes / (2 n).
    n_jobs : int, optional
        Threads for counting, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import KDependence
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> x = rng.integers(0, 2, (500, 3))
    >>> x[:, 1] = y ^ (rng.random(500) < 0.1)  # feature 1 is a noisy copy of the class,
    >>> x[:, 2] = x[:, 1] ^ (rng.random(500) < 0.1)  # feature 2 of feature 1
    >>> KDependence(k=2, threshold=0.01).learn(EncodedData.from_codes(x, y), rng).parents.tolist()
    [[-1, -1], [-1, -1], [1, -1]]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 0, None, closed="left")],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    def __init__(self, *, k: int = 1, threshold: float = 0.0, n_jobs: int | None = None) -> None:
        self.k = k
        self.threshold = threshold
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return the structure.

        Parameters
        ----------
        data : EncodedData
            A row counts for a feature, or a pair of them, where none is missing.
        rng : numpy.random.Generator
            Not used: equal features (to 9e-13 nats) are ordered by name, or by number without names.

        Returns
        -------
        Structure
        """
        self._validate_params()
        return self.from_information(Information.of_rows(data, n_jobs=self.n_jobs))

    def from_counts(self, state: CountState, rng: np.random.Generator | None = None) -> Structure:
        """Return the structure of counts that are at hand already.

        Parameters
        ----------
        state : CountState
            Pair counts.
        rng : numpy.random.Generator, optional
            Not used, as in :meth:`learn`.

        Returns
        -------
        Structure
        """
        self._validate_params()
        return self.from_information(Information.of_counts(state, n_jobs=self.n_jobs))

    def from_information(self, information: Information) -> Structure:
        """Return the structure that information decides.

        Parameters
        ----------
        information : Information
            Of features and pairs.

        Returns
        -------
        Structure
            The parents of a feature stand with the most informative first, so that those for a smaller ``k`` are the
            first ones of those for a larger.
        """
        order = information.by_class
        rank = np.argsort(information.by_name)
        parents = np.full((len(order), max(1, min(self.k, len(order) - 1))), -1)
        for first, block in information.of_pairs(order):
            for position, row in enumerate(block, first):
                of_pairs, earlier = row[:position], order[:position]
                for number in range(min(self.k, position)):
                    most = of_pairs.max()
                    if not most > self.threshold:
                        break
                    equal = np.flatnonzero(of_pairs == most)
                    best = equal[rank[earlier[equal]].argmin()]
                    parents[order[position], number] = earlier[best]
                    of_pairs[best] = -np.inf
        return Structure(parents)
