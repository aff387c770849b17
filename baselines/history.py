"""Record of one change made by a structure search."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ParentChange"]


@dataclass(frozen=True)
class ParentChange:
    """One change of a structure search: new augmenting parents of a feature.

    The ``history_`` of a search is a list of these records. The structures after each step are returned by
    :func:`~tanlearn.structures.replay.structures_along`.

    Parameters
    ----------
    child : int
        Index of the feature whose parents changed.
    parents : tuple of int
        Indices of all augmenting parents of the feature after the change; empty if its only parent was removed.
    score : float
        Score of the structure after the change; searches maximize it.
    step : int
        Number of the search step, from 1. Steps without a change are not recorded. Step 0 is the start of the search,
        with one record per feature that has parents in the initial structure.
    n_evaluations : int
        Number of structures that were scored up to the change.
    seconds : float
        Wall-clock time from the start of the search to the change, without the compilation of kernels. Comparisons of
        records ignore it.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import OrderSearch
    >>> x = np.random.default_rng(0).integers(0, 2, (400, 3))
    >>> data = EncodedData.from_codes(x, x.sum(axis=1) % 2)  # features are informative only all three together
    >>> search = OrderSearch(ordering=[0, 1, 2], max_parents=2)
    >>> search.learn(data, np.random.default_rng(0)).parents.tolist()
    [[-1, -1], [-1, -1], [0, 1]]
    >>> search.history_
    [ParentChange(child=2, parents=(0, 1), score=1.0, step=2, n_evaluations=4)]
    """

    child: int
    parents: tuple[int, ...]
    score: float
    step: int
    n_evaluations: int
    seconds: float = field(compare=False, repr=False)
