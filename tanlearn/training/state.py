"""What gradient TAN learns, tables and structure logits of all candidates, and what an epoch is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels._lanes import LANES
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.quantization import FixedPoint, round_tables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.training.noise_streams import NoiseStream, skip_uniform
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.structure_state import StructureState

__all__ = ["Plan", "State", "plan_epoch"]


class Plan(NamedTuple):
    """All that is random in an epoch."""

    # (n_steps, batch_size): Numbers of the rows of every batch; each occurs once, and those of a last partial batch
    # do not
    order: IntArray
    # (n_steps, n_tables): Uniform in [0, 1), for the Gumbel noise of :meth:`State.perturb`; or where these numbers
    # begin, for who draws them by itself
    noise: FloatArray | NoiseStream


def plan_epoch(n_samples: int, batch_size: int, n_tables: int, rng: np.random.Generator, device: str = "cpu") -> Plan:
    """Draw all that is random in an epoch, so that all engines can be handed the same; noise is drawn on its device."""
    size = int(min(batch_size, n_samples))  # a NumPy integer is no step of a generator's stream
    n_steps = n_samples // size
    order = rng.permutation(n_samples)[: n_steps * size].reshape(n_steps, size)
    start = skip_uniform(rng, n_steps * n_tables) if device == "cuda" else None
    return Plan(order, rng.random((n_steps, n_tables), dtype=np.float32) if start is None else start)


class State(StructureState):
    """Tables and structure logits while they are learnt.

    With ``fixed_point`` the scores are those of rounded tables, and so are the tables of the outcome; gradients go
    straight through the rounding ([RE] eq. 8).

    Shapes: cells: (n_cells + LANES,); phi: (n_tables,); selected: (n_features,).
    """

    def __init__(
        self,
        data: EncodedData,
        candidates: CandidateSets,
        init: str,
        dtype: str,
        rng: np.random.Generator,
        fixed_point: FixedPoint | None = None,
        size_weight: float = 0.0,
    ) -> None:
        super().__init__(data, candidates, LANES, dtype)
        self.fixed_point = fixed_point  # The format that log-probabilities are rounded to
        self.layout.check_device(data.device)
        if init == "maximum-likelihood":
            rho = np.log(self.count(self.layout, data) + 1.0)
        else:
            rho = rng.uniform(-0.1, 0.1, self.layout.n_cells)
        Normalized(self.layout, dtype).forward(rho.astype(dtype), out=self.theta)
        # (n_tables,): Of every table, in nats a row; empty where nothing has one
        self.price: FloatArray = float(size_weight) * np.diff(self.layout.offset) if size_weight > 0 else np.empty(0)

    def scoring_cells(self) -> FloatArray:
        """Return what rows are scored with: theta, or theta rounded ([RE] eq. 11).

        Shapes: result: (n_cells,).
        """
        return self.theta if self.fixed_point is None else self.fixed_point.round(self.theta).astype(self.theta.dtype)

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure that is drawn without noise, and its tables."""
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        layout = self.layout.select(selected)
        rho = self.layout.select_cells(self.theta, selected).astype(np.float64)
        tables = Tables(layout, Normalized(layout).forward(rho))
        if self.fixed_point is not None:
            tables = round_tables(tables, self.fixed_point)
        return self.candidates.structure(selected), tables
