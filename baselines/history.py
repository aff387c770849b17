"""How searches for structures tell what they did: one record a change."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Edge"]


class Edge(NamedTuple):
    """What a search changed: a feature got other augmenting parents. Their ``history_`` is a list of these.

    Parameters
    ----------
    child : int
        Number of the feature.
    parents : tuple of int
        Numbers of all its parents from now on, beside the class; empty if it lost the one it had.
    score : float
        What the structure with this change scores.
    step : int
        In which iteration of the search, from 1 on; it may leave some out in which nothing was worth a change.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import OrderSearch
    >>> x = np.random.default_rng(0).integers(0, 2, (400, 3))
    >>> data = EncodedData.from_codes(x, x.sum(axis=1) % 2)  # only all three together tell the class
    >>> search = OrderSearch(ordering=[0, 1, 2], max_parents=2)
    >>> search.learn(data, np.random.default_rng(0)).parents.tolist()
    [[-1, -1], [-1, -1], [0, 1]]
    >>> search.history_
    [Edge(child=2, parents=(0, 1), score=1.0, step=2)]
    """

    child: int
    parents: tuple[int, ...]
    score: float
    step: int
