"""TAN Random: a tree that never looks at the data (differentiable TAN 2020, section 4.2).

What a learnt structure has to beat: with discriminative parameters it often does as well as the Chow-Liu tree
(differentiable TAN 2020, section 4.3).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.counts import CountState
from tanlearn.network.orderings import check_ordering
from tanlearn.network.structures import Structure

__all__ = ["RandomTree"]


class RandomTree(BaseEstimator):
    """For every feature a random parent among those before it in an ordering.

    An estimator's ``fit_batches`` draws the tree of its ``fit``; ``partial_fit`` draws it again for every chunk, the
    same one from an int ``random_state``.

    Parameters
    ----------
    ordering : array-like of shape (n_features,), optional
        Feature numbers, first feature first; by default a random order for every call.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import RandomTree
    >>> data = EncodedData.from_codes([[0, 1, 0], [1, 0, 1]], [0, 1])
    >>> RandomTree(ordering=[2, 0, 1]).learn(data, np.random.default_rng(0)).parent.tolist()
    [2, 0, -1]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # it does not look at the rows
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"ordering": [None, "array-like"]}

    def __init__(self, *, ordering: Any = None) -> None:
        self.ordering = ordering

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return a tree; every parent that the ordering allows is equally likely.

        Parameters
        ----------
        data : EncodedData
            Only its number of features counts.
        rng : numpy.random.Generator
            Where the order and the parents come from.

        Returns
        -------
        Structure
            The first feature of the ordering has no parent, every other feature one.

        Raises
        ------
        ValueError
            If ``ordering`` is no permutation of the features.
        """
        return self._draw(data.n_features, rng)

    def from_counts(self, state: CountState, rng: np.random.Generator) -> Structure:
        """Return a tree without looking at counts, which hold the tables of any.

        Parameters
        ----------
        state : CountState
            Pair counts; only their number of features counts.
        rng : numpy.random.Generator
            Where the order and the parents come from.

        Returns
        -------
        Structure
            The one that :meth:`learn` draws from the same generator.

        Raises
        ------
        ValueError
            If ``ordering`` is no permutation of the features.
        """
        return self._draw(state.n_features, rng)

    def _draw(self, n_features: int, rng: np.random.Generator) -> Structure:
        """Return a tree of so many features."""
        self._validate_params()
        given = self.ordering is not None
        order = check_ordering(self.ordering, n_features) if given else rng.permutation(n_features)
        parent = np.full(n_features, -1, dtype=np.intp)
        parent[order[1:]] = order[rng.integers(np.arange(1, n_features))]  # one draw below each position
        return Structure(parent)
