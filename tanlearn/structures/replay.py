"""Reconstruction of the structures after each step of a search."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tanlearn.structures.structures import Structure, padded_parents

__all__ = ["structures_along"]


def structures_along(history: Iterable[Any], n_features: int) -> Iterator[tuple[Any, Structure]]:
    """Yield the structure after each step of a structure search.

    Parameters
    ----------
    history : iterable of ParentChange
        ``history_`` of a search that starts from naive Bayes. Each record changes the parents of one feature.
        Consecutive records of the same step, such as the reversal of an arc, form one change, because intermediate
        structures can have cycles.
    n_features : int
        Number of features.

    Yields
    ------
    change : ParentChange
        Last record of the step.
    structure : Structure
        Structure after the step.

    Raises
    ------
    ValueError
        If a record has a feature index outside of 0 to ``n_features - 1``, or the parents form a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import GreedySearch, structures_along
    >>> x = np.random.default_rng(0).integers(0, 2, (200, 4))
    >>> data = EncodedData.from_codes(x, 2 * (x[:, 0] ^ x[:, 2]) + (x[:, 1] ^ x[:, 3]))
    >>> search = GreedySearch()
    >>> structure = search.learn(data, np.random.default_rng(0))
    >>> [(change.step, found.parent.tolist()) for change, found in structures_along(search.history_, 4)]
    [(1, [-1, 3, -1, -1]), (2, [2, 3, -1, -1])]
    """
    parents: list[tuple[int, ...]] = [()] * n_features
    for _, changes in itertools.groupby(history, key=lambda change: change.step):
        for change in changes:
            if not 0 <= change.child < n_features:
                raise ValueError(
                    f"history must come from a search over {n_features} features, but it contains feature "
                    f"{change.child}. Pass the number of features of the data."
                )
            parents[change.child] = tuple(change.parents)
        yield change, Structure(padded_parents(parents))
