"""Settings and results of gradient training."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.models.quantization import FixedPoint
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.training.history import EpochReport

__all__ = ["TrainingOutcome", "TrainingSettings"]


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of gradient training. The defaults are the protocol of differentiable TAN, section 4.2."""

    learning_rate: float = 3e-2  # initial Adam rate of the CPTs, which decays exponentially to a thousandth
    structure_learning_rate: float = 1e-3  # constant Adam rate of the structure logits
    n_epochs: int = 500  # number of passes over the data
    batch_size: int = 100  # number of rows per step; the last partial batch of an epoch is dropped
    # softmax temperature of the first and the last epoch, with exponential decay in between
    temperature: tuple[float, float] = (10.0, 0.1)
    init: str = "uniform"  # rho from U(-0.1, 0.1), or "maximum-likelihood": log frequencies with alpha = 1
    dtype: str = "float32"  # type of parameters and scores during training
    patience: int | None = None  # number of epochs without a lower validation error after which training stops
    # format of the resulting log-probabilities; scores in training are computed from rounded log-probabilities ([RE]
    # eq. 11)
    fixed_point: FixedPoint | None = None
    # Penalty per CPT entry in the structure loss ([RE] eq. 17), in nats per entry and row. Losses are
    # means over rows here and sums in the paper, whose lambda is ``n_samples size_weight``.
    size_weight: float = 0.0
    # Whether to train terms whose sums are CPTs with up to two parents (gradient k-trees). If so, ``init`` and
    # ``size_weight`` are ignored.
    terms: bool = False

    def schedule(self, start: float, stop: float) -> FloatArray:
        """Return values (n_epochs,) that change exponentially from start to stop (differentiable TAN, section 4.2)."""
        return np.geomspace(start, stop, self.n_epochs) if self.n_epochs > 1 else np.array([start])


@dataclass(frozen=True)
class TrainingOutcome:
    """Result of a gradient training."""

    structure: Structure  # most probable structure
    tables: Tables  # CPTs of the structure, float64
    # for each feature, a dictionary from candidate parents (-1 for none) to probabilities
    probabilities: list[dict[int, float]]
    history: list[EpochReport] = field(repr=False)  # one report per epoch
    # Log-probabilities (n_cells,) of all candidate CPTs and structure logits (n_tables,) after the last epoch, from
    # which another training of the same candidates can start.
    parameters: tuple[FloatArray, FloatArray] = field(repr=False)
