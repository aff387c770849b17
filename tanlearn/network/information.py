"""What trees are decided by: information about the class, and of pairs of features given the class.

From integer counts it is the same on every CPU, and that of a copy with other values equal to the last bit. Learners
compare it rounded to 9e-13 nats, so that the rounding of sums hardly ever tells apart what is equal in exact
arithmetic, and the names of the features decide, or their numbers where they have no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData, name_order
from tanlearn.network.counts import CountState, class_information
from tanlearn.network.pair_information import pair_information
from tanlearn.network.tables import TableLayout

__all__ = ["Information", "round_information"]

#: Nats that are told apart, 9e-13: far above rounding, 1e-15 of integer counts.
_QUANTUM = 2.0**-40
#: Pair counts up to which tables are filled whatever the number of rows.
_DENSE_CELLS = 2**24
#: Cells of a pair for every row from where on it is counted sparsely: visiting rows takes 30 ns each, cells 1.5.
_CELLS_A_ROW = 8


def round_information(values: FloatArray) -> FloatArray:
    """Return information in nats to the next multiple of 2^-40."""
    rounded = values / _QUANTUM
    np.rint(rounded, out=rounded)
    rounded *= _QUANTUM
    return rounded


@dataclass(frozen=True, eq=False)
class Information:
    """Empirical information of a table, in nats, rounded."""

    n_states: IntArray  # (n_features,): Number of values of every feature
    n_classes: int  # Number of classes
    weight: float  # Of all rows
    of_class: FloatArray  # (n_features,): I(X_i; C) of the rows that do not miss the feature
    # Of an order, an array of all feature numbers. Returns an iterator over I(X_i; X_j | C) of the rows that miss
    # neither, some rows of the matrix at a time, as :func:`~tanlearn.network.pair_information.pair_information` does;
    # there is no room for all of it.
    of_pairs: Callable[[IntArray], Iterator[tuple[int, FloatArray]]]
    names: Sequence[str] | None = None  # Names of the features, by which learners break ties

    @classmethod
    def of_counts(cls, state: CountState, *, n_jobs: int | None = None) -> Information:
        """Return the information of pair counts."""

        def of_pairs(order: IntArray) -> Iterator[tuple[int, FloatArray]]:
            information = state.conditional_mutual_information(n_jobs=n_jobs)
            yield 0, round_information(np.tril(information[np.ix_(order, order)], -1))

        of_class = round_information(state.mutual_information())
        weight = float(state.class_counts.sum())
        return cls(state.n_states, state.n_classes, weight, of_class, of_pairs, state.names)

    @classmethod
    def of_rows(cls, data: EncodedData, *, n_jobs: int | None = None) -> Information:
        """Return the information of rows, without the counts of all pairs.

        (On "cuda" all pairs are counted first.) Where the counts would be more than 2^24, pairs with a feature of so
        many values that ``values**2 * n_classes`` exceeds eight times the number of rows are counted sparsely, cell by
        cell that occurs.
        """
        if data.device == "cuda":
            return cls.of_counts(CountState(data.n_states, data.n_classes).update(data, n_jobs=n_jobs), n_jobs=n_jobs)
        n_pairs = (int(data.n_states.sum()) ** 2 - int((data.n_states**2).sum())) // 2 * data.n_classes
        is_wide = data.n_states**2 * data.n_classes > _CELLS_A_ROW * data.n_samples
        is_sparse = is_wide & (n_pairs > _DENSE_CELLS)

        def of_pairs(order: IntArray) -> Iterator[tuple[int, FloatArray]]:
            for first, information in pair_information(data, order, is_sparse, n_jobs):
                yield first, round_information(information)

        layout = TableLayout.of_features(data.n_states, data.n_classes)
        counts = layout.count(data.codes, data.y, data.weights)
        of_class = round_information(class_information(layout, counts))
        weight = float(counts[: data.n_classes].sum())
        return cls(data.n_states, data.n_classes, weight, of_class, of_pairs, data.names)

    @property
    def by_name(self) -> IntArray:
        """Feature numbers in the order of the names, or in their own order without names."""
        return name_order(self.names, len(self.n_states))

    @property
    def by_class(self) -> IntArray:
        """Feature numbers, the most informative feature about the class first; ties are broken by :attr:`by_name`."""
        by_name = self.by_name
        order: IntArray = by_name[np.argsort(-self.of_class[by_name], kind="stable")]
        return order

    def matrix(self) -> FloatArray:
        """Return I(X_i; X_j | C) of all pairs.

        Shapes: result: (n_features, n_features).
        """
        n_features = len(self.n_states)
        matrix = np.zeros((n_features, n_features))
        for first, information in self.of_pairs(np.arange(n_features)):
            n_rows, width = information.shape
            matrix[first : first + n_rows, :width] = information
        matrix = np.tril(matrix, -1)
        return matrix + matrix.T
