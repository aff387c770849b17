"""Parametrizations of CPTs by unconstrained parameters, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.kernels._backends import CPU, Backend
from tanlearn.structures.table_layout import TableLayout

__all__ = ["Normalized", "Unnormalized"]


class Normalized:
    """Normalized log-probabilities: theta = rho - logsumexp(rho) (resource-efficient, eq. 9).

    In a CPT, the sum runs over the values of the child, for each combination of parent values and class. In the prior,
    it runs over the classes.
    """

    def __init__(self, layout: TableLayout, dtype: Any = np.float64, backend: Backend = CPU) -> None:
        # Groups of distributions: the prior over the classes, then each CPT over the values of its child.
        n_values, offset = layout.groups()
        self._backend = backend  # device of arguments and results
        self._n_values, self._offset, self._groups = backend.put(n_values, offset, np.arange(len(n_values)))
        self._scratch = backend.empty(int((np.diff(offset) // n_values).max()), dtype)

    def forward(self, rho: Any, out: Any = None) -> Any:
        """Return theta (n_cells,) of finite unnormalized log-parameters rho (n_cells,), in ``out`` if given."""
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
        """Return d_rho = d_theta - exp(theta) * (sum of d_theta over the values of the child).

        All arrays have shape (n_cells,). ``out`` may be ``d_theta`` itself. If ``tables`` (n_selected,), an array on
        the host, is given, only the prior and these CPTs are computed, and the rest of ``out`` stays unchanged.
        """
        put, kernels = self._backend.put, self._backend.kernels
        d_rho = self._backend.empty(theta.shape, theta.dtype) if out is None else out
        groups = self._groups if tables is None else put(np.append(0, tables + 1))[0]
        kernels.normalize_adjoint(theta, d_theta, groups, self._n_values, self._offset, self._scratch, d_rho)
        return d_rho


class Unnormalized:
    """Scores that are the parameters themselves: theta = rho. Only differences between classes are meaningful."""

    def __init__(self, layout: TableLayout, dtype: Any = np.float64, backend: Backend = CPU) -> None:
        pass

    def forward(self, rho: Any, out: Any = None) -> Any:
        """Return rho (n_cells,)."""
        return rho

    def pull_back(self, theta: Any, d_theta: Any, out: Any = None, tables: IntArray | None = None) -> Any:
        """Return ``d_theta`` (n_cells,)."""
        return d_theta
