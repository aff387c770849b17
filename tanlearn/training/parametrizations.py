"""From free parameters to the numbers in the tables, and back for gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.kernels._backends import CPU, Backend
from tanlearn.network.tables import TableLayout

__all__ = ["Normalized"]


class Normalized:
    """Log-probabilities that stay normalised: theta = rho - logsumexp(rho), resource-efficient eq. 9.

    The sum runs over the child's own values, for every parent value and class; for the prior over the classes.

    Parameters
    ----------
    layout : TableLayout
        Where the tables lie.
    dtype : dtype, default=float64
        Type of the parameters, float32 or float64.
    backend : Backend, default=CPU
        Where vectors lie, those that are returned too.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.training.parametrizations import Normalized
    >>> from tanlearn.network.tables import TableLayout
    >>> layout = TableLayout.of_parents(np.array([[-1, -1]]), np.array([2]), 2)
    >>> theta = Normalized(layout).forward(np.zeros(layout.n_cells))
    >>> np.exp(theta).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """

    def __init__(self, layout: TableLayout, dtype: Any = np.float64, backend: Backend = CPU) -> None:
        # A group is what sums to one: the prior over its classes, then each table over its child's values.
        n_values, offset = layout.groups()
        self._backend = backend
        self._n_values, self._offset, self._groups = backend.put(n_values, offset, np.arange(len(n_values)))
        self._scratch = backend.empty(int((np.diff(offset) // n_values).max()), dtype)

    def forward(self, rho: Any, out: Any = None) -> Any:
        """Return theta of finite unnormalised log-parameters.

        Parameters
        ----------
        rho : ndarray of shape (n_cells,)
            Unnormalised log-parameters of this object's type.
        out : ndarray of shape (n_cells,), optional
            Where to write.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        theta = self._backend.empty(rho.shape, rho.dtype) if out is None else out
        self._backend.kernels.normalize(rho, self._n_values, self._offset, self._scratch, theta)
        return theta

    def pull_back(
        self,
        theta: Any,
        d_theta: Any,
        out: Any = None,
        tables: IntArray | None = None,
    ) -> Any:
        """Return d_rho = d_theta - exp(theta) * (sum of d_theta over the child's values).

        Parameters
        ----------
        theta : ndarray of shape (n_cells,)
            What :meth:`forward` returned.
        d_theta : ndarray of shape (n_cells,)
            Gradient with respect to theta.
        out : ndarray of shape (n_cells,), optional
            Where to write; may be ``d_theta`` itself.
        tables : ndarray of shape (n_selected,), int, optional
            Tables to work on besides the prior, on the host; the rest of ``out`` is left as it is. All by default.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        put, kernels = self._backend.put, self._backend.kernels
        d_rho = self._backend.empty(theta.shape, theta.dtype) if out is None else out
        groups = self._groups if tables is None else put(np.append(0, tables + 1))[0]
        kernels.normalize_adjoint(theta, d_theta, groups, self._n_values, self._offset, self._scratch, d_rho)
        return d_rho
