"""What a training by gradient is told, and what it tells: settings, a report an epoch, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.network.quantization import FixedPoint
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["EpochReport", "TrainingOutcome", "TrainingSettings"]


@dataclass(frozen=True)
class TrainingSettings:
    """How to train; the defaults are the protocol of differentiable TAN, section 4.2."""

    learning_rate: float = 3e-2  # Adam's rate for the tables at the start; it falls exponentially to a thousandth
    structure_learning_rate: float = 1e-3  # Adam's rate for the structure logits, not decayed
    n_epochs: int = 500  # Passes over the data
    batch_size: int = 100  # Rows a step; the last partial batch of an epoch is dropped
    # Softmax temperature of the first and last epoch, exponential in between
    temperature: tuple[float, float] = (10.0, 0.1)
    init: str = "uniform"  # Start of ``rho``: from U(-0.1, 0.1), or at the smoothed (alpha = 1) log-frequencies
    dtype: str = "float32"  # Type of parameters and scores while training
    patience: int | None = None  # With validation data: stop after that many epochs without a better validation error
    # The format of the outcome's log-probabilities. Scores in training are those of rounded ones ([RE] eq. 11).
    fixed_point: FixedPoint | None = None
    # Price of a cell of the tables, in the loss that the structure is learnt by ([RE] eq. 17), in nats a cell and
    # row: losses are means over rows, those of the paper sums, whose lambda is ``n_samples size_weight``.
    size_weight: float = 0.0
    # Learn terms that add up to tables of up to two parents (gradient k-trees) in place of tables. They have a start
    # of their own, so ``init`` is of no account, nor is ``size_weight``.
    terms: bool = False

    def schedule(self, start: float, stop: float) -> FloatArray:
        """Return one value an epoch, exponentially from ``start`` to ``stop`` (differentiable TAN, section 4.2).

        Shapes: result: (n_epochs,).
        """
        return np.geomspace(start, stop, self.n_epochs) if self.n_epochs > 1 else np.array([start])


@dataclass(frozen=True)
class EpochReport:
    """What a callback is told after every epoch.

    Parameters
    ----------
    epoch : int
        Number of the epoch, from 1.
    n_epochs : int
        Number of epochs planned.
    loss : float
        Mean training loss of the drawn structures over the epoch.
    learning_rate : float
        Rate of the tables in the epoch.
    temperature : float
        Softmax temperature in the epoch.
    structure_entropy : float
        Mean entropy of the features' candidate distributions, in nats; 0 means that all is decided.
    validation_error : float or None
        Share of validation rows that the most probable structure gets wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import TANClassifier
    >>> model = TANClassifier(n_epochs=3, random_state=0).fit(*load_iris(return_X_y=True))
    >>> [report.epoch for report in model.history_]
    [1, 2, 3]
    """

    epoch: int
    n_epochs: int
    loss: float
    learning_rate: float
    temperature: float
    structure_entropy: float
    validation_error: float | None


@dataclass(frozen=True)
class TrainingOutcome:
    """What training leaves behind."""

    structure: Structure  # The most probable structure
    tables: Tables  # Its tables, float64
    # For every feature the softmax of its candidates' logits, by parent (-1 for none)
    probabilities: list[dict[int, float]]
    history: list[EpochReport] = field(repr=False)  # One report an epoch
    # Log-probabilities of all candidates' tables, shape (n_cells,), and structure logits, shape (n_tables,), as the
    # last epoch left them: where another training of the same candidates may start
    parameters: tuple[FloatArray, FloatArray] = field(repr=False)
