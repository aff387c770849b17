"""Maximum likelihood: smoothed relative frequencies."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["MaximumLikelihood"]

#: Ratio of total weight to smoothing count below which all probabilities are equal, up to a millionth.
_LIGHTEST = 1e-6


class MaximumLikelihood(BaseEstimator):
    """Smoothed relative frequencies, in closed form (maximum margin, section 2.1).

    Parameters
    ----------
    alpha : float, default=1.0
        Count that is added to each CPT entry (a symmetric Dirichlet prior). 1 is Laplace's rule, and 0 means unsmoothed
        frequencies.
    epsilon : float or None, default=None
        Value that replaces zero probabilities before renormalization, as in order-based and maximum-margin learning
        (1e-5 with ``alpha=0``). A distribution without any row is uniform.
    shrinkage : float, default=0.0
        Number of pseudo-rows, distributed like the feature itself, that are added to each distribution of a feature,
        but not to the class prior (Friedman, Geiger and Goldszmidt 1997, section 5, with 5 pseudo-rows).

    Notes
    -----
    Let ``n_xh`` be the weight of the rows with value x and parents (and class) h, and k the number of values::

        theta_x|h = (n_xh + alpha + shrinkage p(x)) / (n_h + k alpha + shrinkage),   p(x) = sum_h n_xh / sum_h n_h

    With ``alpha=0``, this is Friedman's mixture ``a n_xh / n_h + (1 - a) p(x)`` with ``a = n_h / (n_h + shrinkage)``.
    The fewer rows a distribution has, the closer it is to the distribution of the feature without parents.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 1])
    >>> tables = MaximumLikelihood(alpha=1).fit(Structure([-1]), data, np.random.default_rng(0))
    >>> tables.probabilities(0).round(2).tolist()  # rows are values, columns classes
    [[0.67, 0.25], [0.33, 0.75]]
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    needs: ClassVar[str] = "families"
    counts_classes: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "epsilon": [None, Interval(Real, 0, 1, closed="neither")],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, alpha: float = 1.0, epsilon: float | None = None, shrinkage: float = 0.0) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.shrinkage = shrinkage

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows. A CPT uses the rows in which neither the feature nor a parent is missing.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables

        Raises
        ------
        TableMemoryError
            If the CPTs exceed the memory limit: 8 GiB or half of the machine's memory, whichever is smaller. For arrays
            with more than 100 entries per training row, the limit is a quarter of that size. The environment variable
            ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.

        Warns
        -----
        UserWarning
            If the weight of all rows is negligible compared with ``alpha``.
        """
        self._validate_params()
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples, data.label)
        total = float(data.weights.sum())
        if total < _LIGHTEST * self.alpha:
            warn(
                f"all probabilities are nearly uniform, because the weights of {data.n_samples:,} rows sum to "
                f"{total:.3g}, which is negligible compared with alpha={self.alpha}. Multiply the weights by a "
                f"common factor, or decrease alpha.",
                UserWarning,
            )
        return self.from_counts(layout, layout.count(data.codes, data.y, data.weights, data.device))

    def from_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the CPTs for given counts.

        Parameters
        ----------
        layout : TableLayout
            Layout of the CPTs.
        counts : ndarray of shape (n_cells,)
            Weighted counts of all CPT entries.

        Returns
        -------
        Tables
        """
        n_values, offset = layout.groups()
        theta = np.empty(layout.n_cells)
        for k, first, last in zip(n_values, offset[:-1], offset[1:], strict=True):
            counted, p = counts[first:last].reshape(k, -1), theta[first:last].reshape(k, -1)
            np.add(counted, float(self.alpha), out=p)
            if self.shrinkage and first:  # position 0 is the class prior
                p += self.shrinkage * _normalize(counted.sum(axis=1, keepdims=True).astype(np.float64))
            _normalize(p)
            if self.epsilon is not None:
                p[p == 0] = self.epsilon
                p /= p.sum(axis=0)
            log_all(theta[first:last], theta[first:last])
        return Tables(layout, theta)


def _normalize(p: FloatArray) -> FloatArray:
    """Divide each column by its sum, in place. A column whose sum is zero becomes uniform."""
    total = p.sum(axis=0)
    np.divide(p, total, out=p, where=total > 0)
    p[:, total <= 0] = 1.0 / len(p)
    return p
