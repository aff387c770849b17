"""KDB: k-dependence Bayesian networks (Sahami, "Learning limited dependence Bayesian classifiers", KDD 1996).

Features are added in order of decreasing I(X_i; C). The parents of a feature are the k features added before it with
the largest I(X_i; X_j | C). k = 0 is naive Bayes. k = 1 is a TAN whose ordering is fixed by the information about the
class; Chow-Liu trees have no ordering.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import EdgeRules, Knowledge, read_rules
from tanlearn.structures.structures import Structure

__all__ = ["KDependence"]

#: Nats that are added to the information of required parents; larger than any information.
_FIRST = 1e3


class KDependence(BaseEstimator):
    """k-dependence Bayesian network: features ordered by information about the class, each with k earlier parents.

    Parameters
    ----------
    k : int, default=1
        Maximum number of augmenting parents of each feature, from 0. Rows with missing values can be predicted for any
        k: missing features are marginalized. For k of 2 or more, use ``HierarchicalSmoothing()``: each parent
        multiplies the size of a CPT by its number of values, so most entries would be estimated from no rows.
    threshold : float, default=0.0
        Sahami's theta: a parent is used only if I(X_i; X_j | C), in nats, is larger than this number. Empirical
        information is positive even for independent features, about (values_i - 1) (values_j - 1) n_classes / (2 n) on
        n rows.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. Required parents come before their children in the ordering and before
        other parents, whatever their information. Earlier tiers come first in the ordering.
    n_jobs : int, optional
        Number of threads for counting, as in joblib.

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
    needs: ClassVar[str] = "pairs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 0, None, closed="left")],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "knowledge": [None, Knowledge],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self, *, k: int = 1, threshold: float = 0.0, knowledge: Knowledge | None = None, n_jobs: int | None = None
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.knowledge = knowledge
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Learn the structure from rows.

        Parameters
        ----------
        data : EncodedData
            Training rows. A row is counted for a feature, or a pair of features, if these are observed.
        rng : numpy.random.Generator
            Ignored. Ties (up to 9e-13 nats) are broken by feature name, or by number without names.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If ``knowledge`` contradicts itself or does not fit the columns, or requires more than ``k`` parents for a
            feature.
        """
        self._validate_params()
        rules = read_rules(self.knowledge, data, max_parents=self.k)
        return self.from_information(Information.of_rows(data, n_jobs=self.n_jobs), rules)

    def from_counts(self, state: PairCounts, rng: np.random.Generator | None = None) -> Structure:
        """Learn the structure from pair counts.

        Parameters
        ----------
        state : PairCounts
            Pair counts of the training rows.
        rng : numpy.random.Generator, optional
            Ignored, because the result is deterministic.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If ``knowledge`` contradicts itself or does not fit the columns, or requires more than ``k`` parents for a
            feature.
        """
        self._validate_params()
        rules = read_rules(self.knowledge, state, max_parents=self.k)
        return self.from_information(Information.of_counts(state, n_jobs=self.n_jobs), rules)

    def from_information(self, information: Information, rules: EdgeRules | None = None) -> Structure:
        """Learn the structure from mutual information.

        Parameters
        ----------
        information : Information
            Mutual information of features and of pairs of features.
        rules : EdgeRules, optional
            Required and allowed edges, instead of ``knowledge``.

        Returns
        -------
        Structure
            The parents of each feature: required ones first, then the most informative first. Without required edges,
            the parents for a smaller ``k`` are the first parents for a larger ``k``.
        """
        order = information.by_class if rules is None else rules.ordered(information.by_class)
        rank = np.argsort(information.by_name)
        parents = np.full((len(order), max(1, min(self.k, len(order) - 1))), -1)
        for first, block in information.of_pairs(order):
            for position, row in enumerate(block, first):
                of_pairs, earlier = row[:position], order[:position]
                if rules is not None:
                    of_pairs[~rules.allowed[order[position], earlier]] = -np.inf
                    of_pairs[rules.required[order[position], earlier]] += _FIRST
                for number in range(min(self.k, position)):
                    most = of_pairs.max()
                    if not most > self.threshold:
                        break
                    equal = np.flatnonzero(of_pairs == most)
                    best = equal[rank[earlier[equal]].argmin()]
                    parents[order[position], number] = earlier[best]
                    of_pairs[best] = -np.inf
        return Structure(parents)
