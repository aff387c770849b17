"""TAN-EAR: the tree of maximum explaining-away residual (Bilmes 1999; Pernkopf and Bilmes 2005).

The weight of an edge is EAR(i, j) = I(X_i; X_j | C) - I(X_i; X_j). It approximates the gain of the edge in the expected
log posterior of the class. Dependences that are equal in all classes do not help to discriminate, and are subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import EdgeRules, Knowledge
from tanlearn.structures.structures import Structure

from .chow_liu import spanning_structure, tree_rules

__all__ = ["ExplainingAway"]


class ExplainingAway(BaseEstimator):
    """Maximum spanning forest over explaining-away residuals, a discriminative criterion in closed form.

    Like :class:`~tanlearn.baselines.ChowLiu` this search needs only pair counts, so estimators that use it can be
    fitted in batches.

    Parameters
    ----------
    root : int, optional
        Index of the root feature, which has no augmenting parent. By default, the root of each tree of the forest is
        its feature with the largest mutual information with the class; ties are broken by name. If a number is given,
        the root of every other tree is its feature with the lowest index.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The result is the forest of largest weight that they permit. Required
        edges are kept regardless of their weights.
    spanning : bool, default=False
        Whether to keep edges of weight 0 or less, so that the result is a tree, as in the papers.
    n_jobs : int, optional
        Number of threads for counting, as in joblib.

    Notes
    -----
    The weight of an edge, in nats, is::

        EAR(i, j) = I(X_i; X_j | C) - I(X_i; X_j)

    By default, edges of weight 0 or less are omitted, because they lower the approximated posterior of the class. The
    result is therefore a forest.

    References
    ----------
    Bilmes: Natural statistical models for automatic speech recognition. PhD thesis, UC Berkeley, 1999.

    Pernkopf, Bilmes: Discriminative versus generative parameter and structure learning of Bayesian network classifiers.
    ICML, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import ChowLiu, ExplainingAway
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (500, 3))
    >>> y = x[:, 0] ^ x[:, 2]  # features 0 and 2 are independent, but dependent given the class
    >>> x[:, 1] = x[:, 0]  # a copy is as dependent without the class as given the class
    >>> data = EncodedData.from_codes(x, y)
    >>> ExplainingAway(root=0).learn(data, rng).parent.tolist()
    [-1, 2, 0]
    >>> ChowLiu(root=0).learn(data, rng).parent.tolist()
    [-1, 0, 0]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    needs: ClassVar[str] = "pairs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "root": [None, Interval(Integral, 0, None, closed="left")],
        "knowledge": [None, Knowledge],
        "spanning": ["boolean"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        *,
        root: int | None = None,
        knowledge: Knowledge | None = None,
        spanning: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.root = root
        self.knowledge = knowledge
        self.spanning = spanning
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Learn the forest from rows.

        Parameters
        ----------
        data : EncodedData
            Training rows. A row is counted for a pair of features if both are observed.
        rng : numpy.random.Generator
            Ignored. Ties (up to 2e-12 nats) are broken by feature name, or, without names, by the lower and then the
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
        within = Information.of_rows(data, n_jobs=self.n_jobs)
        one_class = replace(data, y=np.zeros_like(data.y), n_classes=1)
        return self._grow(within, Information.of_rows(one_class, n_jobs=self.n_jobs), rules)

    def from_counts(self, state: PairCounts, rng: np.random.Generator | None = None) -> Structure:
        """Learn the forest from pair counts.

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
        within = Information.of_counts(state, n_jobs=self.n_jobs)
        return self._grow(within, Information.of_counts(_without_classes(state), n_jobs=self.n_jobs), rules)

    def _grow(self, within: Information, without: Information, rules: EdgeRules | None) -> Structure:
        """Build the forest from the mutual information of pairs, with and without conditioning on the class."""
        order = within.by_name
        pairs = zip(_rows(within.of_pairs(order)), _rows(without.of_pairs(order)), strict=True)
        gains = ((i, (given - alone)[np.newaxis]) for i, (given, alone) in enumerate(pairs))
        return spanning_structure(gains, within, self.root, rules, spanning=self.spanning)


def _rows(blocks: Iterable[tuple[int, FloatArray]]) -> Iterator[FloatArray]:
    """Yield the rows of blocks one by one; row i has i + 1 numbers."""
    for first, block in blocks:
        for i, row in enumerate(block, first):
            yield row[: i + 1]


def _without_classes(state: PairCounts) -> PairCounts:
    """Return the pair counts of all classes together."""
    sums = {name: counts.reshape(-1, state.n_classes).sum(axis=1) for name, counts in state.arrays().items()}
    one_class = PairCounts.from_state(sums, state.n_states, 1)
    one_class.names = state.names
    return one_class
