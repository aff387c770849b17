"""TAN Random: a random tree that does not depend on the data (differentiable TAN 2020, section 4.2).

It is the reference for learned structures: with discriminative parameters it is often as accurate as the Chow-Liu tree
(differentiable TAN 2020, section 4.3).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from tanlearn.counts.pair_counts import PairCounts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import Knowledge, read_rules
from tanlearn.structures.orderings import check_ordering
from tanlearn.structures.structures import Structure

__all__ = ["RandomTree"]


class RandomTree(BaseEstimator):
    """Random tree: each feature gets a random parent among the features before it in an ordering.

    In an estimator, ``fit_batches`` draws the same tree as ``fit``. ``partial_fit`` draws a tree per batch; with an
    integer ``random_state`` it is the same tree each time.

    Parameters
    ----------
    ordering : array-like of shape (n_features,), optional
        Feature indices, first feature first; by default a random order per call.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. A random order is changed so that required parents come before
        their children, and earlier tiers come first. A given order must have required parents first. A feature has no
        parent if no earlier feature is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import RandomTree
    >>> data = EncodedData.from_codes([[0, 1, 0], [1, 0, 1]], [0, 1])
    >>> RandomTree(ordering=[2, 0, 1]).learn(data, np.random.default_rng(0)).parent.tolist()
    [2, 0, -1]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # any device, because the rows are not used
    needs: ClassVar[str] = "pairs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ordering": [None, "array-like"],
        "knowledge": [None, Knowledge],
    }

    def __init__(self, *, ordering: Any = None, knowledge: Knowledge | None = None) -> None:
        self.ordering = ordering
        self.knowledge = knowledge

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Draw a tree; all parents that the ordering allows are equally likely.

        Parameters
        ----------
        data : EncodedData
            Training rows; only the number and the names of the features are used.
        rng : numpy.random.Generator
            Random numbers for the ordering and the parents.

        Returns
        -------
        Structure
            A tree in which only the first feature of the ordering has no parent.

        Raises
        ------
        ValueError
            If ``ordering`` is not a permutation of the features, or ``knowledge`` contradicts itself or does not fit
            the ordering or the columns.
        """
        return self._draw(data, rng)

    def from_counts(self, state: PairCounts, rng: np.random.Generator) -> Structure:
        """Draw a tree, given pair counts.

        Parameters
        ----------
        state : PairCounts
            Pair counts; only the number and the names of the features are used.
        rng : numpy.random.Generator
            Random numbers for the ordering and the parents.

        Returns
        -------
        Structure
            The tree that :meth:`learn` draws from the same generator.

        Raises
        ------
        ValueError
            If ``ordering`` is not a permutation of the features, or ``knowledge`` contradicts itself or does not fit
            the ordering or the columns.
        """
        return self._draw(state, rng)

    def _draw(self, data: EncodedData | PairCounts, rng: np.random.Generator) -> Structure:
        """Draw a tree over the features of data or counts."""
        self._validate_params()
        n_features, rules = data.n_features, read_rules(self.knowledge, data, max_parents=1)
        given = self.ordering is not None
        order = check_ordering(self.ordering, n_features) if given else rng.permutation(n_features)
        parent = np.full(n_features, -1, dtype=np.intp)
        if rules is not None:
            if given:
                rules.check_ordering(order)
            order = order if given else rules.ordered(order)
            for position, child in enumerate(order.tolist()):
                earlier = order[:position][rules.allowed[child, order[:position]]]
                if len(earlier):
                    parent[child] = rng.choice(earlier)
            return Structure(parent)
        parent[order[1:]] = order[rng.integers(np.arange(1, n_features))]  # one draw below each position
        return Structure(parent)
