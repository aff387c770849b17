"""The objective of a fixed structure on a device: the rows stay there, only parameters and gradients travel."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels._cuda import cupy, launch, to_device
from tanlearn.kernels.cuda import twins as gpu
from tanlearn.network.tables import TableLayout
from tanlearn.training.losses import CompiledLoss, Loss, evaluate, is_built_in

__all__ = ["DeviceObjective"]


class DeviceObjective:
    """What :class:`~tanlearn.training.objectives.Objective` computes, by CUDA kernels; two evaluations are equal.

    Parameters
    ----------
    layout : TableLayout
        One table a feature.
    data : EncodedData
        Complete rows.
    loss : Loss
        A built-in one.

    Raises
    ------
    ValueError
        If the loss is the user's own, or a value is missing: both are for ``device="cpu"``. If a parameter of the loss
        is out of range, or there is one class only.
    """

    def __init__(self, layout: TableLayout, data: EncodedData, loss: Loss) -> None:
        if not (isinstance(loss, CompiledLoss) and is_built_in(loss)):
            raise ValueError(
                f"device='cuda' computes built-in losses only, got {loss!r}. Use one of those, or device='cpu'."
            )
        evaluate(loss, np.zeros((1, data.n_classes)), np.zeros(1, np.intp))  # refuses what it does on the CPU
        data.require_complete("device='cuda', unlike device='cpu',")
        weights = data.weights
        self._share: FloatArray = weights / weights.sum()
        self._kind, self._n_classes = loss.kind, data.n_classes
        parameters, (n_values, offset) = np.array(loss.kernel_parameters()), layout.groups()
        self._y, self._parameters, self._device_share = to_device(data.y, parameters, self._share)
        self._n_values, self._offset, self._all_groups = to_device(n_values, offset, np.arange(len(n_values)))
        self._codes, *tables, selected = to_device(data.codes, *layout.arrays(), np.arange(layout.n_tables))
        self._families = *tables, selected, missing_code(data.codes.dtype), None
        self._theta, self._d_theta = (cupy().empty(layout.n_cells, np.float64) for _ in range(2))
        self._scores, self._d_scores = (cupy().empty((data.n_samples, data.n_classes), np.float64) for _ in range(2))
        self._losses = cupy().empty(data.n_samples, np.float64)

    def __call__(self, rho: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient at ``rho`` of shape (n_cells,), float64."""
        theta, d_theta, d_scores = self._theta, self._d_theta, self._d_scores
        self._normalize(rho)
        gpu.log_joint(self._codes, 0, theta, *(*self._families, self._scores))
        gpu.loss_rows(self._kind, self._parameters, self._scores, self._y, self._losses, d_scores)
        launch(("objective",), "weigh_rows", d_scores.size, self._device_share, self._n_classes, d_scores)
        d_theta.fill(0)
        gpu.log_joint_adjoint(self._codes, 0, d_scores, *(*self._families, d_theta))
        gpu.normalize_adjoint(theta, d_theta, self._all_groups, self._n_values, self._offset, None, d_theta)
        return float((self._losses.get() * self._share).sum()), d_theta.get()

    def theta(self, rho: FloatArray) -> FloatArray:
        """Return the log-probabilities at ``rho``, as :meth:`tanlearn.training.objectives.Objective.theta` does.

        Parameters
        ----------
        rho : ndarray of shape (n_cells,), float64
            Unnormalised log-parameters, finite.

        Returns
        -------
        ndarray of shape (n_cells,), float64
        """
        self._normalize(rho)
        theta: FloatArray = self._theta.get()
        return theta

    def _normalize(self, rho: FloatArray) -> None:
        """Write the log-probabilities at ``rho``."""
        (device_rho,) = to_device(rho)
        gpu.normalize(device_rho, self._n_values, self._offset, None, self._theta)
