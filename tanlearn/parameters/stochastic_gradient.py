"""Parameter learning on mini-batches for a fixed structure."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.calibration import Calibration
from tanlearn.models.tables import Tables
from tanlearn.parameters.held_out_selection import choose, held_out_parts
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure
from tanlearn.training.few_bits import train_in_bits
from tanlearn.training.history import EpochReport
from tanlearn.training.losses import Hybrid, Loss, require_loss
from tanlearn.training.parent_dropout import with_alternatives, with_fixed_logits
from tanlearn.training.settings import TrainingSettings

__all__ = ["StochasticGradient"]


class StochasticGradient(BaseEstimator):
    """Training by Adam on mini-batches for a fixed structure, that is, gradient TAN without structure learning.

    Parameters
    ----------
    loss : Loss, optional
        Any loss. The default is ``Hybrid()``.
    learning_rate : float, default=0.01
        Initial learning rate of Adam. It decays exponentially to a thousandth of this value.
    n_epochs : int, default=100
        Number of passes over the data.
    batch_size : int, default=100
        Number of rows per step.
    init : {"uniform", "maximum-likelihood"}, default="maximum-likelihood"
        Initialization of the parameters.
    dtype : {"float32", "float64"}, default="float32"
        Type of the parameters during training.
    parent_dropout : float, default=0.0
        Probability, at most 0.5, that the parents of a feature are replaced in a step, by no parent or by one of eight
        random features that precede it. Values of 0.3 to 0.5 reduce overfitting in long trainings with large margins.
        For example, the error of the maximum-likelihood tree on letter is 8.7 % instead of 9.7 %. During training, CPTs
        take up to ten times as much memory, and a step takes a third longer.
    bits : int or tuple of (int, int), optional
        Number of bits per parameter, or integer and fraction bits, of fixed-point CPTs (resource-efficient BNs, III),
        as for :class:`~tanlearn.TANClassifier`.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on held-out rows: cross-validation folds, or one fifth of the
        rows of large data. The final CPTs are fitted to all rows.
    verbose : int, default=0
        If 1, the selected split of ``bits`` and the errors of all splits are printed.

    Attributes
    ----------
    n_iter_ : int
        Number of trained epochs.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    history_ : list of EpochReport
        One report per epoch, as for :class:`~tanlearn.TANClassifier`. Its ``loss`` is the mean of the losses before
        each step of the epoch.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import Hybrid, NaiveBayesClassifier, StochasticGradient
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = StochasticGradient(loss=Hybrid(trade_off=100, gamma=1), learning_rate=0.1)
    >>> bool(NaiveBayesClassifier(parameters=learner, random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    #: Loss used if ``loss`` is None.
    default_loss: ClassVar[Callable[[], Loss]] = Hybrid
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": "no_validation",  # type: ignore[dict-item]
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"uniform", "maximum-likelihood"})],
        "dtype": [StrOptions({"float32", "float64"})],
        "parent_dropout": [Interval(Real, 0, 0.5, closed="both")],
        "bits": "no_validation",  # type: ignore[dict-item]
        "calibrate": ["boolean"],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    n_iter_: int
    calibration_: Calibration
    history_: list[EpochReport]

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        learning_rate: float = 0.01,
        n_epochs: int = 100,
        batch_size: int = 100,
        init: str = "maximum-likelihood",
        dtype: str = "float32",
        parent_dropout: float = 0.0,
        bits: Any = None,
        calibrate: bool = True,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.init = init
        self.dtype = dtype
        self.parent_dropout = parent_dropout
        self.bits = bits
        self.calibrate = calibrate
        self.verbose = verbose

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows; missing values are marginalized.
        rng : numpy.random.Generator
            Random generator for the initialization and the order of the rows.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If missing values cannot be marginalized, because the parents form a cycle or a row would take more than 1e9
            operations (or ``TANLEARN_MAX_ROW_OPERATIONS``). The error is also raised if the parents form a cycle and
            ``parent_dropout`` is not 0.
        FloatingPointError
            If training diverges.
        """
        self._validate_params()
        settings = TrainingSettings(
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            init=self.init,
            dtype=self.dtype,
        )
        loss = require_loss(type(self).default_loss() if self.loss is None else self.loss)
        sets, start = CandidateSets.of_structure(structure), None
        if self.parent_dropout:
            sets, phi = with_alternatives(structure, self.parent_dropout, rng)
            settings, start = with_fixed_logits(settings), (None, phi)
        outcome = train_in_bits(self.bits, data, sets, loss, settings, rng, start=start, verbose=self.verbose)
        self.history_, self.n_iter_, self.calibration_ = outcome.history, len(outcome.history), Calibration()
        parts = held_out_parts(data) if self.calibrate else []
        if parts:
            learner = copy(self).set_params(calibrate=False, verbose=0)
            self.calibration_ = choose([learner], structure, parts).calibration
        return outcome.tables
