"""What an optimiser sees of a classifier: free parameters in, value and gradient out."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.elimination import Eliminator
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout
from tanlearn.training.losses import Loss, evaluate
from tanlearn.training.parametrizations import Normalized

__all__ = ["Objective"]


class Objective:
    """The weighted mean loss of a fixed structure over a data set, as a function of ``rho``.

    Composition of a parametrisation, the log joint and a loss; the gradient runs back the same way::

        rho --Normalized--> theta --log joint--> scores --loss--> value
        d_rho <--pull-back-- d_theta <--transpose-- d_scores <-----'

    Parameters
    ----------
    layout : TableLayout
        One table a feature.
    data : EncodedData
        Rows; what they miss is summed out, for which the parents must form no cycle.
    loss : Loss
        Built-in or the user's own.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import ConditionalNLL, EncodedData, Structure
    >>> from tanlearn.training.objectives import Objective
    >>> from tanlearn.network.tables import TableLayout
    >>> data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 1])
    >>> layout = TableLayout.of_parents(Structure([-1]).parents, data.n_states, data.n_classes)
    >>> value, gradient = Objective(layout, data, ConditionalNLL())(np.zeros(layout.n_cells))
    >>> round(value, 4), gradient.shape  # log 2: nothing is known yet
    (0.6931, (6,))
    """

    def __init__(self, layout: TableLayout, data: EncodedData, loss: Loss) -> None:
        self._layout = layout
        self._loss = loss
        self._parametrization = Normalized(layout)
        is_incomplete = data.is_incomplete
        self._codes, self._rows = data.codes, np.flatnonzero(is_incomplete)
        self._complete = data.take(~is_incomplete).codes if len(self._rows) else data.codes
        order = np.argsort(is_incomplete, kind="stable")  # complete rows first, as in the scores
        self._y, weights = data.y[order], data.weights[order]
        self._share: FloatArray = weights / weights.sum()
        self._eliminator = Eliminator(Structure(layout.parents, allow_cycles=True), layout) if len(self._rows) else None

    def __call__(self, rho: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient at ``rho`` of shape (n_cells,), float64."""
        theta = self._parametrization.forward(rho)
        scores = self._layout.log_joint(self._complete, theta)
        n_complete = len(scores)
        if self._eliminator is not None:
            scores = np.concatenate([scores, self._eliminator.log_joint(self._codes, self._rows, theta)])
        losses, d_scores = evaluate(self._loss, scores, self._y)
        d_scores = np.ascontiguousarray(d_scores * self._share[:, np.newaxis])
        d_theta = self._layout.log_joint_adjoint(self._complete, d_scores[:n_complete])
        if self._eliminator is not None:
            d_theta += self._eliminator.log_joint_adjoint(self._codes, self._rows, theta, d_scores[n_complete:])
        # Not a product of BLAS: from 10,001 rows on, the order of that depends on the number of threads it may use.
        return float((losses * self._share).sum()), self._parametrization.pull_back(theta, d_theta, out=d_theta)

    def theta(self, rho: FloatArray) -> FloatArray:
        """Return the log-probabilities at ``rho`` (resource-efficient, eq. 9).

        Parameters
        ----------
        rho : ndarray of shape (n_cells,), float64
            Unnormalised log-parameters, finite.

        Returns
        -------
        ndarray of shape (n_cells,), float64
            ``rho - logsumexp(rho)``, the sum over the values of every distribution.
        """
        return self._parametrization.forward(rho)
