"""Settings of gradient training that several classifiers share."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn.training.history import EpochReport

__all__ = ["GradientTraining"]


class GradientTraining(BaseEstimator):
    """Settings of gradient training, which are passed as ``training`` to gradient classifiers.

    Parameters
    ----------
    learning_rate : float, optional
        Initial Adam learning rate of the parameters. It decays exponentially to a thousandth of this value. The default
        is 0.01, or 0.1 if the default ``n_epochs`` of :class:`~tanlearn.TANClassifier` exceeds 100 on a small data set.
    structure_learning_rate : float, default=0.01
        Constant Adam learning rate of the structure logits. :class:`~tanlearn.KTreeClassifier` changes the logits in
        every fourth step, with three times this rate.
    batch_size : int, default=100
        Number of rows per step. The last partial batch of an epoch is dropped.
    temperature : tuple of (float, float), default=(1.0, 0.1)
        Softmax temperature in the first and the last epoch.
    init : {"uniform", "maximum-likelihood"}, default="maximum-likelihood"
        Initial CPTs: random from U(-0.1, 0.1), or smoothed frequencies. :class:`~tanlearn.KTreeClassifier` supports
        only the default.
    dtype : {"float32", "float64"}, default="float32"
        Type of the parameters during training. The fitted CPTs are float64, or integers with ``bits``.
        :class:`~tanlearn.KTreeClassifier` supports only the default.
    validation_fraction : float, optional
        Fraction of the rows of each class that is held out before categories and cut points are fitted. The parameters
        of the epoch with the lowest validation error are kept.
    patience : int, optional
        Number of epochs without a lower validation error after which training stops. It requires
        ``validation_fraction``.
    callback : callable, optional
        Function that is called with an :class:`~tanlearn.EpochReport` after every epoch of the final training. If it
        returns a true value, the training stops. Selection on held-out rows is then still performed.
    checkpoint : str or path, optional
        File for the state of the training, so that an interrupted ``fit`` can be resumed. Another ``fit`` with the same
        rows, parameters and integer ``random_state`` continues from the file. It gives the same model as uninterrupted
        training, bit for bit. If the training in the file is finished, ``fit`` skips the epochs. A training that was
        stopped by ``callback`` counts as unfinished.

        The file is written before the first epoch and at the end, even after Ctrl-C or an error, but not after SIGTERM
        or SIGKILL. In between, it is written at the end of an epoch if ten seconds, and 50 times the duration of the
        last write, have passed since the last write.

        A file of a different training raises an error. Use a separate file for each training and process, and no file
        in cross-validation, because two processes would overwrite each other's epochs. Custom losses are identified by
        their names and attributes, not by their code.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import GradientTraining, TANClassifier
    >>> model = TANClassifier(n_epochs=3, training=GradientTraining(learning_rate=0.1, batch_size=20), random_state=0)
    >>> model.fit(*load_iris(return_X_y=True)).history_[0].learning_rate
    0.1
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [None, Interval(Real, 0, None, closed="neither")],
        "structure_learning_rate": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "temperature": [tuple, list],
        "init": [StrOptions({"uniform", "maximum-likelihood"})],
        "dtype": [StrOptions({"float32", "float64"})],
        "validation_fraction": [None, Interval(Real, 0, 1, closed="neither")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "callback": [None, callable],
        "checkpoint": [None, str, os.PathLike],
    }

    def __init__(
        self,
        *,
        learning_rate: float | None = None,
        structure_learning_rate: float = 0.01,
        batch_size: int = 100,
        temperature: tuple[float, float] = (1.0, 0.1),
        init: str = "maximum-likelihood",
        dtype: str = "float32",
        validation_fraction: float | None = None,
        patience: int | None = None,
        callback: Callable[[EpochReport], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.structure_learning_rate = structure_learning_rate
        self.batch_size = batch_size
        self.temperature = temperature
        self.init = init
        self.dtype = dtype
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.callback = callback
        self.checkpoint = checkpoint

    def _validate_params(self) -> None:
        """Validate the parameters."""
        super()._validate_params()
        numbers = all(isinstance(t, (int, float, np.number)) and 0 < t < np.inf for t in self.temperature)
        if len(self.temperature) != 2 or not numbers:
            raise ValueError(
                f"temperature must contain two positive numbers, for the first and the last epoch, got "
                f"{self.temperature}."
            )
