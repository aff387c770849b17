"""TAN-CMI: the tree of maximum likelihood (Friedman, Geiger and Goldszmidt 1997; Chow and Liu 1968).

The weight of an edge is the mutual information of two features given the class, I(X_i; X_j | C). The maximum spanning
tree, directed away from a root, is the TAN structure of maximum likelihood (order-based 2008, section 4; differentiable
TAN 2020, section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import FloatArray, IntArray
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log
from tanlearn.kernels.spanning import hang_on, insert_vertices
from tanlearn.structures.knowledge import EdgeRules, Knowledge, read_rules
from tanlearn.structures.restricted_forest import dense_gains, restricted_forest
from tanlearn.structures.structures import Structure

__all__ = ["ChowLiu", "spanning_structure", "tree_rules"]


_NOTHING = 1e-300


class ChowLiu(BaseEstimator):
    """Maximum spanning tree over class-conditional mutual information.

    Parameters
    ----------
    root : int, optional
        Index of the root feature, which has no augmenting parent. By default, the root of each tree of the forest is
        its feature with the largest mutual information with the class; ties are broken by name. If a number is given,
        the root of every other tree is its feature with the lowest index. The choice of the root matters because
        smoothing depends on which of two features is the child.
    penalty : {"aic", "bic"}, float or None, default=None
        Penalty per free parameter in nats of log-likelihood: 1 for AIC, log(n) / 2 for BIC, or a number. An edge adds
        (values_i - 1) (values_j - 1) n_classes parameters. It is omitted if the penalty of these parameters exceeds its
        gain in log-likelihood, so the result may be a forest.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The result is the forest of maximum likelihood that they permit. The
        root of each tree is then a feature from which all edges lead in permitted directions.
    n_jobs : int, optional
        Number of threads for counting, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import ChowLiu
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (500, 3))
    >>> x[:, 2] = x[:, 0] ^ (rng.random(500) < 0.1)  # feature 2 is a noisy copy of feature 0
    >>> data = EncodedData.from_codes(x, rng.integers(0, 2, 500))
    >>> ChowLiu(penalty="bic").learn(data, rng).parent.tolist()
    [2, -1, -1]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    needs: ClassVar[str] = "pairs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "root": [None, Interval(Integral, 0, None, closed="left")],
        "penalty": [None, StrOptions({"aic", "bic"}), Interval(Real, 0, None, closed="left")],
        "knowledge": [None, Knowledge],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        *,
        root: int | None = None,
        penalty: str | float | None = None,
        knowledge: Knowledge | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.root = root
        self.penalty = penalty
        self.knowledge = knowledge
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Learn the tree from rows.

        Parameters
        ----------
        data : EncodedData
            Training rows. A row is counted for a pair of features if both are observed.
        rng : numpy.random.Generator
            Ignored. Ties (up to 9e-13 nats) are broken by feature name, or, without names, by the lower and then the
            higher feature index of the edge.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If ``root`` is not a feature of the data, or ``knowledge`` contradicts itself or does not fit ``root`` or
            the columns.
        TableMemoryError
            If the counts of all pairs do not fit in the memory of the "cuda" device.
        """
        self._validate_params()
        rules = tree_rules(self.knowledge, self.root, data)
        return self._grow(Information.of_rows(data, n_jobs=self.n_jobs), rules)

    def from_counts(self, state: PairCounts, rng: np.random.Generator | None = None) -> Structure:
        """Learn the tree from pair counts.

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
            If ``root`` is not a feature of the data, or ``knowledge`` contradicts itself or does not fit ``root`` or
            the columns.
        """
        self._validate_params()
        rules = tree_rules(self.knowledge, self.root, state)
        return self._grow(Information.of_counts(state, n_jobs=self.n_jobs), rules)

    def _grow(self, information: Information, rules: EdgeRules | None) -> Structure:
        """Build the maximum spanning forest of the (penalized) mutual information."""
        named = {"aic": 1.0, "bic": log(max(information.weight, 1.0)) / 2}
        penalty = named[self.penalty] if isinstance(self.penalty, str) else self.penalty or 0.0
        free = information.n_states - 1
        order = information.by_name
        free = free[order]

        def gains() -> Iterator[tuple[int, FloatArray]]:
            for first, gain in information.of_pairs(order):
                if penalty:  # with a weight of 0, every edge is omitted
                    n_parameters = np.outer(free[first : first + len(gain)], free[: gain.shape[1]])
                    n_parameters *= information.n_classes
                    gain -= penalty / max(information.weight, _NOTHING) * n_parameters
                yield first, gain

        return spanning_structure(gains(), information, self.root, rules, spanning=self.penalty is None)


def tree_rules(knowledge: Knowledge | None, root: int | None, data: Any) -> EdgeRules | None:
    """Check the root and the knowledge against data or counts. Return the rules of trees, or None without knowledge."""
    if root is not None and root >= data.n_features:
        raise ValueError(f"root must be a feature (0..{data.n_features - 1}), got {root}.")
    rules = read_rules(knowledge, data, max_parents=1)
    if rules is not None and root is not None:
        for parent in rules.parents()[root]:
            raise ValueError(
                f"root={root} has no augmenting parent, but the edge {rules.shown[parent]} -> {rules.shown[root]} is "
                f"required. Remove the edge, or choose another root."
            )
        rules.allowed[root] = False
    return rules


def spanning_structure(
    gains: Iterable[tuple[int, FloatArray]],
    information: Information,
    root: int | None,
    rules: EdgeRules | None = None,
    *,
    spanning: bool,
) -> Structure:
    """Return the forest of maximum weight, given the weights of edges between features in the order of the names.

    ``root`` is the root of its tree. The root of each other tree is its feature with the lowest index, or, if ``root``
    is None, the feature with the largest information about the class. See :func:`maximum_spanning_forest` and, for
    rules, :func:`~tanlearn.structures.restricted_forest.restricted_forest`.
    """
    order = information.by_name
    if root is None:
        roots = information.by_class
    else:
        numbers = np.arange(len(order))
        roots = np.append(root, numbers[numbers != root])
    position = np.argsort(order)
    if rules is None:
        found = maximum_spanning_forest(gains, position[roots], spanning=spanning)
    else:
        dense = dense_gains(gains, len(order))
        found = restricted_forest(dense, rules.take(order), position[roots], spanning=spanning)
    return Structure(np.where(found < 0, -1, order[found])[position])


def maximum_spanning_forest(gains: Iterable[tuple[int, FloatArray]], roots: IntArray, *, spanning: bool) -> IntArray:
    """Return the parent of each feature (-1 for none) in the forest of maximum weight.

    ``gains`` yields blocks of edge weights: the number ``first`` of the block's first feature, then the weights of the
    edges from features ``first``, ``first + 1``, ... to all features before them; other entries are not read. ``roots``
    is a permutation of the features; the root of each tree is the first of its features in ``roots``. Without
    ``spanning``, edges of weight 0 or less are omitted. Among edges (i, j), i < j, of equal weight, the one with the
    lowest i, then j, is used.

    Shapes: gains: (n_rows, first + n_rows) per block; roots: (n_features,); result: (n_features,).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_features = len(roots)
    parent, weight, n_children = np.full(n_features, -1), np.zeros(n_features), np.zeros(n_features, np.intp)
    to_come, best, changed = np.empty((3, n_features), np.intp)
    best_weight = np.empty(n_features)
    for first, gain in gains:
        insert_vertices(gain, first, parent, weight, n_children, to_come, best, best_weight, changed)
    if not spanning:
        parent[weight <= 0] = -1
    child = np.flatnonzero(parent >= 0)
    edges = coo_array((np.ones(len(child)), (child, parent[child])), shape=(n_features, n_features))
    labels = connected_components(edges, directed=False)[1]
    for top in roots[np.unique(labels[roots], return_index=True)[1]]:
        hang_on(top, -1, 0.0, parent, weight, n_children)
    return parent
