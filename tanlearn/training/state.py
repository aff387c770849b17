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
    """All that is random in an epoch.

    Parameters
    ----------
    order : ndarray of shape (n_steps, batch_size), int64
        Numbers of the rows of every batch; each occurs once, and those of a last partial batch do not.
    noise : ndarray of shape (n_steps, n_tables), float32, or NoiseStream
        Uniform in [0, 1), for the Gumbel noise of :meth:`State.perturb`; or where these numbers begin, for who draws
        them by itself.
    """

    order: IntArray
    noise: FloatArray | NoiseStream


def plan_epoch(n_samples: int, batch_size: int, n_tables: int, rng: np.random.Generator, device: str = "cpu") -> Plan:
    """Draw all that is random in an epoch, so that all engines can be handed the same; noise is drawn on its device.

    Parameters
    ----------
    n_samples : int
        Rows, at least 1.
    batch_size : int
        Rows a step, at least 1; all of them, if there are fewer.
    n_tables : int
        Candidate tables, of which each gets a number a step.
    rng : numpy.random.Generator
        Left as it is after drawing, wherever that is done.
    device : {"cpu", "cuda"}, default="cpu"
        Where the noise is drawn.

    Returns
    -------
    Plan
        For "cuda" the noise is a :class:`~tanlearn.training.noise_streams.NoiseStream`, unless the generator is no
        PCG64.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.training.state import plan_epoch
    >>> order, noise = plan_epoch(10, 4, 3, np.random.default_rng(0))
    >>> order.shape, noise.shape  # two rows are left out
    ((2, 4), (2, 3))
    """
    size = int(min(batch_size, n_samples))  # a NumPy integer is no step of a generator's stream
    n_steps = n_samples // size
    order = rng.permutation(n_samples)[: n_steps * size].reshape(n_steps, size)
    start = skip_uniform(rng, n_steps * n_tables) if device == "cuda" else None
    return Plan(order, rng.random((n_steps, n_tables), dtype=np.float32) if start is None else start)


class State(StructureState):
    """Tables and structure logits while they are learnt.

    With ``fixed_point`` the scores are those of rounded tables, and so are the tables of the outcome; gradients go
    straight through the rounding ([RE] eq. 8).

    Parameters
    ----------
    data : EncodedData
        Rows; families that miss something are not counted.
    candidates : CandidateSets
        What every feature may choose from.
    init : {"uniform", "maximum-likelihood"}
        Start of the parameters.
    dtype : {"float32", "float64"}
        Their type.
    rng : numpy.random.Generator
        Where a random start comes from.
    fixed_point : FixedPoint, optional
        The format that log-probabilities are rounded to.
    size_weight : float, default=0.0
        Price of a cell in the structure's part of the loss, in nats a cell and row ([RE] eq. 17; losses are means).

    Attributes
    ----------
    cells : ndarray of shape (n_cells + LANES,)
        Normalised log-probabilities of all tables. Kernels read rows as whole vector registers; the slack is what they
        may read behind the last.
    phi : ndarray of shape (n_tables,), float64
        Structure logits.
    price : ndarray of shape (n_tables,)
        Of every table, in nats a row; empty where nothing has one.
    selected : ndarray of shape (n_features,), intp
        The tables last drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import CandidateSets, EncodedData
    >>> from tanlearn.training.state import State
    >>> data, rng = EncodedData.from_codes([[0, 0], [1, 1], [1, 0]], [0, 1, 1]), np.random.default_rng(0)
    >>> state = State(data, CandidateSets.from_lists([[], [0]]), "maximum-likelihood", "float32", rng)
    >>> state.draw(state.perturb(np.array([0.0, 0.0, 0.5]))).tolist()  # table 2 is that of feature 1 given feature 0
    [0, 2]
    >>> state.probabilities()
    [{-1: 1.0}, {-1: 0.5, 0: 0.5}]
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
        self.fixed_point = fixed_point
        self.layout.check_device(data.device)
        if init == "maximum-likelihood":
            rho = np.log(self.count(self.layout, data) + 1.0)
        else:
            rho = rng.uniform(-0.1, 0.1, self.layout.n_cells)
        Normalized(self.layout, dtype).forward(rho.astype(dtype), out=self.theta)
        self.price: FloatArray = float(size_weight) * np.diff(self.layout.offset) if size_weight > 0 else np.empty(0)

    def scoring_cells(self) -> FloatArray:
        """Return what rows are scored with: theta, or theta rounded ([RE] eq. 11).

        Returns
        -------
        ndarray of shape (n_cells,)
            Without ``fixed_point`` theta itself, and no copy.
        """
        return self.theta if self.fixed_point is None else self.fixed_point.round(self.theta).astype(self.theta.dtype)

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure that is drawn without noise, and its tables.

        Returns
        -------
        structure : Structure
        tables : Tables
            Normalised in float64; of ``fixed_point``, if there is one,
            :class:`~tanlearn.network.quantization.IntegerTables`.
        """
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        layout = self.layout.select(selected)
        rho = self.layout.select_cells(self.theta, selected).astype(np.float64)
        tables = Tables(layout, Normalized(layout).forward(rho))
        if self.fixed_point is not None:
            tables = round_tables(tables, self.fixed_point)
        return self.candidates.structure(selected), tables
