"""What trees are decided by: information about the class, and of pairs of features given the class.

From integer counts it is the same on every CPU, and that of a copy with other values equal to the last bit. Learners
compare it rounded to 9e-13 nats, so that the rounding of sums hardly ever tells apart what is equal in exact
arithmetic, and the order of the features decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray, IntArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.counts import sparse_information
from tanlearn.network.counts import CountState

__all__ = ["Information", "round_information"]

#: Nats that are told apart, 9e-13: far above rounding, 1e-15 of integer counts.
_QUANTUM = 2.0**-40
#: Pair counts that are made densely whatever the number of rows: 128 MB.
_DENSE_CELLS = 2**24
#: Cells of a pair for every row from where on it is counted sparsely: visiting rows takes 30 ns each, cells 1.5.
_CELLS_A_ROW = 8


def round_information(values: FloatArray) -> FloatArray:
    """Return information in nats to the next multiple of 2^-40.

    Parameters
    ----------
    values : ndarray of any shape
        Nats.

    Returns
    -------
    ndarray of shape ``values.shape``

    Examples
    --------
    >>> from tanlearn.baselines.information import round_information
    >>> round_information(np.array([1e-16, 0.1 + 0.2])) == round_information(np.array([0, 0.3]))
    array([ True,  True])
    """
    rounded: FloatArray = np.rint(values / _QUANTUM) * _QUANTUM
    return rounded


@dataclass(frozen=True, eq=False)
class Information:
    """Empirical information of a table, in nats, rounded.

    Parameters
    ----------
    n_states : ndarray of shape (n_features,), intp
        Number of values of every feature.
    n_classes : int
        Number of classes.
    weight : float
        Of all rows.
    of_class : ndarray of shape (n_features,)
        I(X_i; C) of the rows that do not miss the feature.
    of_pairs : ndarray of shape (n_features, n_features)
        I(X_i; X_j | C) of the rows that miss neither, symmetric; what stands on the diagonal says nothing.
    """

    n_states: IntArray
    n_classes: int
    weight: float
    of_class: FloatArray
    of_pairs: FloatArray

    @classmethod
    def of_counts(cls, state: CountState, *, n_jobs: int | None = None) -> Information:
        """Return the information of pair counts.

        Parameters
        ----------
        state : CountState
            Pair counts.
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        Information
        """
        of_pairs = round_information(state.conditional_mutual_information(n_jobs=n_jobs))
        of_class = round_information(state.mutual_information())
        return cls(state.n_states, state.n_classes, float(state.class_counts.sum()), of_class, of_pairs)

    @classmethod
    def of_rows(cls, data: EncodedData, *, n_jobs: int | None = None) -> Information:
        """Return the information of rows, without the counts of all pairs where these would be too many.

        Beyond 2^24 counts, pairs with a feature of so many values that ``values**2 * n_classes`` exceeds eight times
        the number of rows are counted sparsely, cell by cell that occurs. (On "cuda" all pairs are counted densely.)

        Parameters
        ----------
        data : EncodedData
            Rows.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        Information
            That of the pair counts.

        Raises
        ------
        TableMemoryError
            If the counts that are made densely need more memory than they may take.
        """
        is_wide = data.n_states**2 * data.n_classes > _CELLS_A_ROW * data.n_samples
        n_pairs = (int(data.n_states.sum()) ** 2 - int((data.n_states**2).sum())) // 2 * data.n_classes
        if n_pairs <= _DENSE_CELLS or data.device == "cuda" or not is_wide.any():
            return cls.of_counts(CountState(data.n_states, data.n_classes).update(data, n_jobs=n_jobs), n_jobs=n_jobs)
        narrow, wide = np.flatnonzero(~is_wide), np.flatnonzero(is_wide)
        of_pairs = np.zeros((data.n_features, data.n_features))
        if len(narrow):
            state = _counts(data, narrow, n_jobs)
            of_pairs[np.ix_(narrow, narrow)] = state.conditional_mutual_information(n_jobs=n_jobs)

        def inform(number: int) -> None:
            others = np.concatenate([narrow, wide[:number]])
            _inform(data, int(wide[number]), others, of_pairs[wide[number]])

        in_threads(inform, range(len(wide)), n_jobs)
        of_class = [_counts(data, np.array([i]), None).mutual_information()[0] for i in range(data.n_features)]
        return cls(
            data.n_states,
            data.n_classes,
            float(data.weights.sum()),
            round_information(np.array(of_class)),
            round_information(np.maximum(of_pairs, of_pairs.T)),
        )


def _counts(data: EncodedData, features: IntArray, n_jobs: int | None) -> CountState:
    """Return the pair counts of some features."""
    return CountState(data.n_states[features], data.n_classes).update(data.take_features(features), n_jobs=n_jobs)


def _inform(data: EncodedData, i: int, others: IntArray, information: FloatArray) -> None:
    """Write the information of one feature and each of some others, from the rows value by value."""
    missing, weights = missing_code(data.codes.dtype), data.weights
    samples = np.argsort(data.codes[i], kind="stable")
    values = data.codes[i][samples]
    samples = samples[values != missing]
    start = np.append(np.flatnonzero(np.diff(values[: len(samples)].astype(np.intp), prepend=-1)), len(samples))
    size = int(data.n_states[others].max(initial=1)) * data.n_classes
    cells, sides, margins = (np.zeros(n, weights.dtype) for n in (size, size, 2 * data.n_classes))
    sparse_information(
        data.codes,
        data.y,
        weights,
        samples,
        start,
        others,
        data.n_classes,
        missing,
        cells,
        sides,
        margins,
        information,
    )
