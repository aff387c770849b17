"""Maximum likelihood with log odds that rise or fall with some features (Dykstra, Kochar, Robertson 1995).

For two classes, let n_xc be the smoothed count of value x in class c, n_x its sum over classes, and n_c its sum over
values. The CPT is p(x|1) = n_x phi_x / n_1 and p(x|0) = n_x (1 - phi_x) / n_0. The log odds log p(x|1) / p(x|0) rise
with x if and only if phi_x does. The likelihood is maximized by the isotonic regression phi of n_x1 / n_x with weights
n_x. Isotonic regression keeps the sum of n_x phi_x, so the CPT is normalized.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.monotone_logs import monotone_logs
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.monotone_cpts import QUANTUM
from tanlearn.structures.knowledge import ColumnNumbers
from tanlearn.structures.monotone_columns import numbers_of_ranked, read_directions, require_two_classes
from tanlearn.structures.structures import Structure

__all__ = ["MonotoneLikelihood"]


class MonotoneLikelihood(BaseEstimator):
    """Smoothed frequencies for two classes whose log odds rise or fall with chosen features.

    Use this learner with :class:`~tanlearn.NaiveBayesClassifier`. Of all CPTs with monotone log odds, it fits the CPTs
    with the highest likelihood. If no ``class_prior`` is set, the log odds of ``predict_joint_log_proba`` are
    exactly monotone in each of these features, even after rounding.

    Parameters
    ----------
    increasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises, the log odds of the second class (in sorted
        order) do not fall. The columns must contain numbers or ordered categories.
    decreasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises, these log odds do not rise.
    alpha : float, default=1.0
        Count that is added to each CPT entry, above 0.

    See Also
    --------
    tanlearn.Knowledge : Required and forbidden edges. A monotone column must have no edge except the edge from the
    class.

    Notes
    -----
    Let n_xc be the count of value x in class c plus ``alpha``, n_x its sum over both classes, and n_c its sum over the
    values. With the isotonic regression phi of n_x1 / n_x with weights n_x (pool adjacent violators), ::

        p(x | 1) = n_x phi_x / n_1,   p(x | 0) = n_x (1 - phi_x) / n_0

    The category for missing values (``handle_missing="category"``) has no position in the order, and keeps its
    frequencies. ``with_bits`` raises an error, because rounding each probability to few bits could break the order.

    References
    ----------
    Dykstra, Kochar, Robertson: Inference for likelihood ratio ordering in the two-sample problem. Journal of the
    American Statistical Association 90, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import MonotoneLikelihood, NaiveBayesClassifier, QuantileDiscretizer, TableEncoder
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(0, 10, (60, 1))
    >>> cured = rng.random(60) < dose[:, 0] / 10
    >>> encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=6))
    >>> new = [[1.0], [3.0], [5.0], [7.0], [9.0]]
    >>> NaiveBayesClassifier(encoder=encoder).fit(dose, cured).predict_proba(new)[:, 1].round(2).tolist()
    [0.33, 0.33, 0.25, 0.67, 0.83]
    >>> model = NaiveBayesClassifier(encoder=encoder, parameters=MonotoneLikelihood(increasing=[0]))
    >>> model.fit(dose, cured).predict_proba(new)[:, 1].round(2).tolist()
    [0.31, 0.31, 0.31, 0.67, 0.83]
    """

    counts_classes: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, increasing: Sequence[Any] = (), decreasing: Sequence[Any] = (), alpha: float = 1.0) -> None:
        self.increasing = increasing
        self.decreasing = decreasing
        self.alpha = alpha

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents. Monotone features must have neither augmenting parents nor children.
        data : EncodedData
            Training rows of two classes. A CPT uses the rows in which neither the feature nor a parent is missing.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If there are not exactly two classes, or if a monotone column is unknown, listed twice, has no order, or has
            an edge.
        """
        self._validate_params()
        require_two_classes(data)
        directions = read_directions(self.increasing, self.decreasing, data)
        self._check_edges(structure, data)
        tables = MaximumLikelihood(alpha=self.alpha).fit(structure, data, rng)
        layout, cells = tables.layout, np.rint(tables.cells / QUANTUM) * QUANTUM
        counts = layout.count(data.codes, data.y, data.weights)
        n_ranked = numbers_of_ranked(data).tolist()
        for i in np.flatnonzero(directions).tolist():
            own = slice(layout.offset[i], layout.offset[i + 1])
            counted = counts[own].reshape(1, -1, 2) + float(self.alpha)
            how = n_ranked[i], int(directions[i]), QUANTUM
            cells[own] = monotone_logs(counted, np.array([-1]), 0.0, *how).ravel()
        return Tables(layout, cells)

    def _check_edges(self, structure: Structure, data: EncodedData) -> None:
        """Raise ValueError if a monotone column has an edge."""
        columns = ColumnNumbers(data.names, data.n_features)
        for name in ("increasing", "decreasing"):
            for k, column in enumerate(getattr(self, name)):
                i = columns.find(f"{name}[{k}]", column)
                if (structure.parents[i] >= 0).any() or (structure.parents == i).any():
                    raise ValueError(
                        f"{name}[{k}] is {data.label(i)}, which has an edge to another column, so its log odds "
                        f"depend on the other column. Use NaiveBayesClassifier, or a structure without edges at "
                        f"{data.label(i)}."
                    )
