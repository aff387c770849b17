"""Objective function for optimizers: value and gradient of the loss of a classifier at given parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._backends import backend_of
from tanlearn.kernels._cuda import on_device, on_own_device
from tanlearn.models.incomplete_rows import IncompleteRows
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.losses import Loss, evaluate, is_built_in
from tanlearn.training.parametrizations import Normalized

__all__ = ["Objective"]


class Objective:
    """Weighted mean loss of a fixed structure over a data set, as a function of the parameters ``rho``.

    Missing values are marginalized, which requires an acyclic structure. On CUDA, the rows are transferred once; after
    that, only parameters and gradients are transferred. CUDA does not support custom losses, missing values, or CPTs
    with more than two augmenting parents.

    The objective is the composition of a parametrization, the log joint and a loss. The gradient is computed in
    reverse::

        rho --Normalized--> theta --log joint--> scores --loss--> value
        d_rho <--pull-back-- d_theta <--transpose-- d_scores <-----'
    """

    def __init__(
        self, layout: TableLayout, data: EncodedData, loss: Loss, parametrization: type[Any] = Normalized
    ) -> None:
        if data.device != "cpu":
            _refuse_what_only_the_cpu_does(data, loss)
            layout.check_device(data.device)
        self._layout, self._loss, self.device = layout, loss, data.device  # one CPT per feature
        self._backend = backend_of(data.device)
        with on_device(data.device):
            self._transfer(data, parametrization)

    def _transfer(self, data: EncodedData, parametrization: type[Any]) -> None:
        """Transfer the rows to the device, and allocate its scratch arrays."""
        layout, loss, backend = self._layout, self._loss, self._backend
        self._parametrization = parametrization(layout, backend=backend)
        is_incomplete = data.is_incomplete
        self._incomplete, complete = None, data.codes
        if is_incomplete.any():
            structure = Structure(layout.parents, allow_cycles=True)
            self._incomplete = IncompleteRows(structure, layout, data.codes[:, is_incomplete])
            complete = data.take(~is_incomplete).codes
        order = np.argsort(is_incomplete, kind="stable")  # complete rows first, as in the scores
        self._y, weights = data.y[order], data.weights[order]
        self._share: FloatArray = weights / weights.sum()
        self._complete, y, self._share_there = backend.put(complete, self._y, self._share)
        rows = backend.empty(complete.shape[1], np.intp)
        selected = np.arange(layout.n_tables)
        self._families = *backend.put(*layout.arrays(), selected), missing_code(complete.dtype), rows
        self._scores, self._d_scores = (backend.empty((data.n_samples, data.n_classes), np.float64) for _ in range(2))
        self._losses = backend.empty(data.n_samples, np.float64)
        self._loss_arguments: tuple[Any, ...] | None = None
        if is_built_in(loss):
            evaluate(loss, np.zeros((1, data.n_classes)), np.zeros(1, np.intp))  # raises if there is a single class
            (parameters,) = backend.put(np.array(loss.kernel_parameters()))
            self._loss_arguments = loss.kind, parameters, self._scores, y, self._losses, self._d_scores

    @on_own_device
    def __call__(self, rho: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient at ``rho`` of shape (n_cells,), float64."""
        kernels, n_complete = self._backend.kernels, self._complete.shape[1]
        scores, d_scores = self._scores, self._d_scores
        theta = self._parametrization.forward(*self._backend.put(rho))
        kernels.log_joint(self._complete, 0, theta, *self._families, scores[:n_complete])
        if self._incomplete is not None:
            scores[n_complete:] = self._incomplete.log_joint(theta)
        if self._loss_arguments is not None:
            kernels.loss_rows(*self._loss_arguments)
        else:
            self._losses[:], d_scores[:] = evaluate(self._loss, scores, self._y)
        kernels.weigh_rows(self._share_there, d_scores)
        d_theta = self._backend.empty(self._layout.n_cells, np.float64)
        d_theta.fill(0)
        kernels.log_joint_adjoint(self._complete, 0, d_scores[:n_complete], *self._families, d_theta)
        if self._incomplete is not None:
            d_theta += self._incomplete.log_joint_adjoint(theta, d_scores[n_complete:])
        self._parametrization.pull_back(theta, d_theta, out=d_theta)
        # A BLAS product is not used, because for more than 10,000 rows, its order of summation depends on the number of
        # threads.
        return float((self._backend.get(self._losses) * self._share).sum()), self._backend.get(d_theta)

    @on_own_device
    def theta(self, rho: FloatArray) -> FloatArray:
        """Return the log-probabilities (n_cells,) at ``rho`` (resource-efficient, eq. 9)."""
        return self._backend.get(self._parametrization.forward(*self._backend.put(rho)))


def _refuse_what_only_the_cpu_does(data: EncodedData, loss: Loss) -> None:
    """Raise ValueError for custom losses or missing values, which CUDA does not support."""
    if not is_built_in(loss):
        raise ValueError(
            f"device={data.device!r} supports only built-in losses, got {loss!r}. Use a built-in loss, or device='cpu'."
        )
    data.require_complete(f"device={data.device!r}, unlike device='cpu',")
