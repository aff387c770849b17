"""Parameters of gradient TAN for all candidates, and the random numbers for an epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._lanes import LANES
from tanlearn.models.quantization import FixedPoint, round_tables
from tanlearn.models.tables import Tables
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure
from tanlearn.training.noise_streams import NoiseStream, skip_uniform
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.structure_state import StructureState

__all__ = ["Plan", "State", "plan_epoch"]


class Plan(NamedTuple):
    """Random numbers for an epoch."""

    # (n_steps, batch_size) row indices of each batch. Each row occurs at most once, and there is no partial batch.
    order: IntArray
    # (n_steps, n_tables) uniform in [0, 1), for the Gumbel noise of :meth:`State.perturb`; or the position in the
    # generator's stream, for engines that draw the numbers themselves
    noise: FloatArray | NoiseStream


def plan_epoch(n_samples: int, batch_size: int, n_tables: int, rng: np.random.Generator, device: str = "cpu") -> Plan:
    """Draw the random numbers for an epoch, which are the same for all engines.

    For device "cuda" and a PCG64 generator, the noise is a :class:`~tanlearn.training.noise_streams.NoiseStream`, from
    which the device draws. ``rng`` always advances as if the noise had been drawn. ``n_samples`` and ``batch_size`` are
    at least 1.
    """
    size = int(min(batch_size, n_samples))  # advance() of the generator needs a Python integer
    n_steps = n_samples // size
    order = rng.permutation(n_samples)[: n_steps * size].reshape(n_steps, size)
    start = skip_uniform(rng, n_steps * n_tables) if device == "cuda" else None
    return Plan(order, rng.random((n_steps, n_tables), dtype=np.float32) if start is None else start)


class State(StructureState):
    """CPTs and structure logits of all candidates during training.

    If ``fixed_point`` is set, scores and the resulting CPTs use rounded log-probabilities, and gradients are passed
    straight through the rounding ([RE] eq. 8). ``cells`` contains normalized log-probabilities and has shape (n_cells +
    LANES,), with padding because kernels read whole vector registers. ``init`` is "uniform" or "maximum-likelihood".
    ``size_weight`` is the penalty, in nats per CPT entry and row ([RE] eq. 17).
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
        self.fixed_point = fixed_point  # format of rounded log-probabilities
        self.layout.check_device(data.device)
        if init == "maximum-likelihood":
            rho = np.log(self.count(self.layout, data) + 1.0)
        else:
            rho = rng.uniform(-0.1, 0.1, self.layout.n_cells)
        Normalized(self.layout, dtype).forward(rho.astype(dtype), out=self.theta)
        # (n_tables,) penalty on each CPT in nats per row, or empty without penalties
        self.size_penalty: FloatArray = np.empty(0)
        if size_weight > 0:
            self.size_penalty = float(size_weight) * np.diff(self.layout.offset)

    def scoring_cells(self) -> FloatArray:
        """Return the log-probabilities (n_cells,) for scores: theta itself, or a rounded copy ([RE] eq. 11)."""
        return self.theta if self.fixed_point is None else self.fixed_point.round(self.theta).astype(self.theta.dtype)

    def features_at_zero(self) -> IntArray:
        """Return the features with several values and candidates whose CPTs are all zero after rounding.

        The scores of a row are then equal for all candidates, so the structure has no gradient.
        """
        is_used = np.append(0, np.cumsum(self.scoring_cells() != 0))  # number of nonzero cells before each cell
        offset, group = self.layout.offset, self.candidates.group
        first, last = offset[group[:-1]], offset[group[1:]]
        is_chosen = (np.diff(group) > 1) & (self.layout.n_states > 1)
        return np.flatnonzero(is_chosen & (is_used[first] == is_used[last])).astype(np.intp)

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure that is drawn without noise, and its CPTs, normalized or rounded to ``fixed_point``."""
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        layout = self.layout.select(selected)
        rho = self.layout.select_cells(self.theta, selected).astype(np.float64)
        tables = Tables(layout, Normalized(layout).forward(rho))
        if self.fixed_point is not None:
            tables = round_tables(tables, self.fixed_point)
        return self.candidates.structure(selected), tables
