"""TAN-CMI: the tree that maximises the likelihood (Friedman, Geiger and Goldszmidt 1997; Chow and Liu 1968).

Edge weights are the mutual informations of two features given the class, I(X_i; X_j | C); the maximum spanning
tree, directed away from a root, is the most likely TAN structure (order-based 2008, section 4; differentiable TAN
2020, section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log
from tanlearn.kernels.spanning import hang_on, insert_vertices
from tanlearn.network.counts import CountState
from tanlearn.network.information import Information
from tanlearn.network.structures import Structure

__all__ = ["ChowLiu"]


_NOTHING = 1e-300


class ChowLiu(BaseEstimator):
    """Maximum spanning tree over class-conditional mutual information.

    Parameters
    ----------
    root : int, optional
        Number of the feature that has no augmenting parent. By default it is the feature with the largest mutual
        information with the class, and so is the root of every tree of a forest; equal features are ordered by name.
        With a number, the root of every other tree is its feature with the lowest number. The root matters where
        tables are smoothed, because smoothing depends on which of two features is the child.
    penalty : {"aic", "bic"}, float or None, default=None
        Price of a free parameter in nats of log-likelihood: 1 for AIC, log(n) / 2 for BIC, or a number. An edge that
        does not earn its (values_i - 1) (values_j - 1) n_classes parameters is left out, which
        leaves a forest.
    n_jobs : int, optional
        Threads for counting, as in joblib.

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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "root": [None, Interval(Integral, 0, None, closed="left")],
        "penalty": [None, StrOptions({"aic", "bic"}), Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self, *, root: int | None = None, penalty: str | float | None = None, n_jobs: int | None = None
    ) -> None:
        self.root = root
        self.penalty = penalty
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return the tree.

        Parameters
        ----------
        data : EncodedData
            A row counts for a pair of features where neither is missing.
        rng : numpy.random.Generator
            Not used. Equal edges (to 9e-13 nats) are ordered by the names of their features, without names by the
            lower number of the two, then by the higher.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If ``root`` is no feature of the data.
        TableMemoryError
            If there is no room for the counts of all pairs, on "cuda".
        """
        self._check(data.n_features)
        return self._grow(Information.of_rows(data, n_jobs=self.n_jobs))

    def from_counts(self, state: CountState, rng: np.random.Generator | None = None) -> Structure:
        """Return the tree of counts that are at hand already.

        Parameters
        ----------
        state : CountState
            Pair counts.
        rng : numpy.random.Generator, optional
            Not used, as in :meth:`learn`.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If ``root`` is no feature of the data.
        """
        self._check(state.n_features)
        return self._grow(Information.of_counts(state, n_jobs=self.n_jobs))

    def _check(self, n_features: int) -> None:
        """Refuse parameters that do not fit, before anything is counted."""
        self._validate_params()
        if self.root is not None and self.root >= n_features:
            raise ValueError(f"root must be a feature (0..{n_features - 1}), got {self.root}.")

    def _grow(self, information: Information) -> Structure:
        """Return the tree that information decides."""
        named = {"aic": 1.0, "bic": log(max(information.weight, 1.0)) / 2}
        price = named[self.penalty] if isinstance(self.penalty, str) else self.penalty or 0.0
        free = information.n_states - 1
        order = information.by_name
        free = free[order]

        def gains() -> Iterator[tuple[int, FloatArray]]:
            for first, gain in information.of_pairs(order):
                if price:  # without rows, nothing pays for an edge
                    n_parameters = np.outer(free[first : first + len(gain)], free[: gain.shape[1]])
                    n_parameters *= information.n_classes
                    gain -= price / max(information.weight, _NOTHING) * n_parameters
                yield first, gain

        if self.root is None:
            roots = information.by_class
        else:
            numbers = np.arange(len(order))
            roots = np.append(self.root, numbers[numbers != self.root])
        position = np.argsort(order)
        found = maximum_spanning_forest(gains(), position[roots], spanning=self.penalty is None)
        return Structure(np.where(found < 0, -1, order[found])[position])


def maximum_spanning_forest(gains: Iterable[tuple[int, FloatArray]], roots: IntArray, *, spanning: bool) -> IntArray:
    """Return the parents of the maximum-weight forest.

    Shapes: gains: (n_rows, first + n_rows); roots: (n_features,); result: (n_features,).
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
