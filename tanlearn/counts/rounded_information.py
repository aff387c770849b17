"""Mutual information for structure learning: I(X_i; C) of each feature and I(X_i; X_j | C) of each pair.

Values are in nats. If counts are integers, values are equal on every CPU, and renaming the values of a feature does not
change a bit. Learners compare values rounded to 9e-13 nats, so values that are equal in exact arithmetic almost always
compare equal. Ties are broken by feature names, or by feature indices if there are no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.counts.mutual_information import class_information, pair_information
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.encoding.encoded_data import EncodedData, name_order
from tanlearn.structures.table_layout import TableLayout

__all__ = ["Information", "round_information"]

#: Resolution in nats, 9e-13: far above the rounding errors of integer counts, 1e-15.
_QUANTUM = 2.0**-40
#: Largest number of pair counts that are always kept dense, for any number of rows.
_DENSE_CELLS = 2**24
#: A pair with more counts per row is counted sparsely, because a row takes 30 ns and a count 1.5 ns.
_CELLS_A_ROW = 8


def round_information(values: FloatArray) -> FloatArray:
    """Round information in nats to the nearest multiple of 2^-40."""
    rounded = values / _QUANTUM
    np.rint(rounded, out=rounded)
    rounded *= _QUANTUM
    return rounded


@dataclass(frozen=True, eq=False)
class Information:
    """Empirical mutual information of a data set, in nats, rounded."""

    n_states: IntArray  # (n_features,)
    n_classes: int
    weight: float  # sum of the row weights
    of_class: FloatArray  # (n_features,) I(X_i; C) over the rows in which the feature is present
    # Maps a permutation of the features to blocks of rows of the matrix I(X_i; X_j | C), over the rows of data in which
    # both features are present. The whole matrix may not fit in memory. See
    # :func:`~tanlearn.counts.mutual_information.pair_information`.
    of_pairs: Callable[[IntArray], Iterator[tuple[int, FloatArray]]]
    names: Sequence[str] | None = None  # feature names, used to break ties

    @classmethod
    def of_counts(cls, state: PairCounts, *, n_jobs: int | None = None) -> Information:
        """Compute the information from pair counts."""

        def of_pairs(order: IntArray) -> Iterator[tuple[int, FloatArray]]:
            information = state.conditional_mutual_information(n_jobs=n_jobs)
            yield 0, round_information(np.tril(information[np.ix_(order, order)], -1))

        of_class = round_information(state.mutual_information())
        weight = float(state.class_counts.sum())
        return cls(state.n_states, state.n_classes, weight, of_class, of_pairs, state.names)

    @classmethod
    def of_rows(cls, data: EncodedData, *, n_jobs: int | None = None) -> Information:
        """Compute the information from rows, without storing the counts of all pairs.

        On "cuda", all pairs are counted first, which raises TableMemoryError if the counts do not fit in memory. On the
        CPU, if the counts were more than 2^24, pairs with a feature for which ``values**2 * n_classes`` exceeds eight
        times the number of rows are counted sparsely. The result does not depend on ``n_jobs``.
        """
        if data.device != "cpu":
            return cls.of_counts(PairCounts.of_features(data).update(data, n_jobs=n_jobs), n_jobs=n_jobs)
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
        """Feature indices sorted by name, or in their own order if there are no names."""
        return name_order(self.names, len(self.n_states))

    @property
    def by_class(self) -> IntArray:
        """Feature indices by decreasing information about the class; ties are broken by :attr:`by_name`."""
        by_name = self.by_name
        order: IntArray = by_name[np.argsort(-self.of_class[by_name], kind="stable")]
        return order

    def matrix(self) -> FloatArray:
        """Return I(X_i; X_j | C) of all pairs, symmetric (n_features, n_features), with a diagonal of zeros."""
        n_features = len(self.n_states)
        matrix = np.zeros((n_features, n_features))
        for first, information in self.of_pairs(np.arange(n_features)):
            n_rows, width = information.shape
            matrix[first : first + n_rows, :width] = information
        matrix = np.tril(matrix, -1)
        return matrix + matrix.T
