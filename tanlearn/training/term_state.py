"""Parameters of gradient k-trees: structure logits, and terms whose sums are unnormalized CPTs.

The terms are initialized such that every structure that can be drawn is a normalized network. Their sums are smoothed
log frequencies. CPTs with two parents back off to the product of the CPTs with one parent, and these back off to the
CPT without parents. Training therefore starts from a good model, and rare combinations of parent values start from the
estimate of single parents.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._lanes import LANES, padded
from tanlearn.models.quantization import FixedPoint, round_tables
from tanlearn.models.tables import Tables
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.structure_state import StructureState

__all__ = ["TermState"]

#: Pseudo-count, in rows, of the back-off distribution at initialization. For pseudo-counts of 5, 20, 100 and 500, the
#: held-out error was 9.4, 9.0, 8.5 and 8.7 % on letter, 3.2, 3.2, 3.3 and 4.1 % on usps, and equal on satimage.
BACK_OFF = 100.0
#: Pseudo-count, in rows, of the marginal frequency of a value when the final CPTs are rescaled (``_weights``).
FREQUENCY = 5.0


class TermState(StructureState):
    """Terms and structure logits of all candidates during training.

    ``cells`` (n_cells + slack,), float32, contains the class prior, all terms, and zeros. There is one term per
    candidate, with the size of its CPT. The candidates of a feature must be no parent, single parents, and pairs of
    these parents. Otherwise, ValueError is raised. Raises TableMemoryError if the terms do not fit into memory.
    """

    has_pairs: ClassVar[bool] = True

    def __init__(self, data: EncodedData, candidates: CandidateSets, fixed_point: FixedPoint | None = None) -> None:
        super().__init__(data, candidates, padded(data.n_classes) + LANES)
        self.members = candidates.members  # (n_tables, 2) terms of the single parents of each pair, -1 for none
        self.fixed_point = fixed_point  # format of rounded sums of terms
        self._data = data  # families with a missing value are not counted
        self._start(data)

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure that is drawn without noise, and its unnormalized CPTs (sums of its terms) in float64.

        If the same constant is added to a row of a CPT for all classes, the posterior of a complete row does not
        change. The constants are chosen such that, given the parents, the frequency of each value over all classes
        matches the data. This improves the marginalization of missing values. Without it, the error on letter with a
        fifth of the values missing was 16.6 instead of 16.2 %.
        """
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        structure = self.candidates.structure(selected)
        layout, n_classes = self.layout.select(selected), self._data.n_classes
        prior = self.theta[:n_classes].astype(np.float64)
        prior -= np.log(np.exp(prior - prior.max()).sum()) + prior.max()
        cells, counts = [prior], self.count(layout, self._data)
        for i, t in enumerate(selected.tolist()):
            total = self._total(t, layout.shape(i))
            cells.append((total + _weights(total, _table(layout, counts, i), prior)).ravel())
        tables = Tables(layout, np.concatenate(cells), is_normalized=False)
        return structure, tables if self.fixed_point is None else round_tables(tables, self.fixed_point)

    def _total(self, t: int, shape: tuple[int, ...]) -> FloatArray:
        """Return the sum of the terms of a candidate: its own, one per single parent, and the term without parents."""
        first = int(self.candidates.group[self.layout.child[t]])
        total: FloatArray = np.zeros(shape)
        total += _spread(self._term(first), shape, ())
        if t != first:
            total += self._term(t)
        for axis, q in enumerate(self.members[t].tolist()):
            if q >= 0:
                total += _spread(self._term(q), shape, (axis + 1,))
        return total

    def _term(self, t: int) -> FloatArray:
        """Return a view of a term. Shape: (values, parent values ..., classes)."""
        return _table(self.layout, self.theta, t)

    def _start(self, data: EncodedData) -> None:
        """Initialize the terms with smoothed log frequencies."""
        layout, counts = self.layout, self.count(self.layout, data)
        states, parents = layout.n_states.tolist(), layout.parents.tolist()
        self.theta[: data.n_classes] = np.log((counts[: data.n_classes] + 1) / (counts[: data.n_classes] + 1).sum())
        for i, first in enumerate(self.candidates.group[:-1].tolist()):
            alone = _table(layout, counts, first) + 1.0
            log_alone = np.log(alone / alone.sum(axis=0))
            self._term(first)[...] = log_alone
            # differences between the log probabilities of the CPTs with a single parent and log_alone
            differences: dict[int, FloatArray] = {}
            for t in range(first + 1, int(self.candidates.group[i + 1])):
                sizes = [states[j] for j in parents[t] if j >= 0]
                shape = (states[i], *sizes, layout.n_classes)
                own = slice(layout.offset[t], layout.offset[t + 1])
                base = log_alone.reshape(states[i], *[1] * len(sizes), layout.n_classes)
                members = [q for q in self.members[t].tolist() if q >= 0]
                for axis, q in enumerate(members):
                    ones = [size if axis == k else 1 for k, size in enumerate(sizes)]
                    base = base + differences[q].reshape(states[i], *ones, layout.n_classes)
                back_off = np.exp(base)
                back_off = back_off / back_off.sum(axis=0)
                found = counts[own].reshape(shape) + BACK_OFF * back_off
                difference = np.log(found / found.sum(axis=0)) - base
                self.theta[own] = difference.ravel()
                if not members:
                    differences[t] = difference


def _table(layout: TableLayout, cells: AnyArray, t: int) -> AnyArray:
    """Return a CPT of the layout as a view of the cells, in the shape of the CPT."""
    return cells[layout.offset[t] : layout.offset[t + 1]].reshape(layout.shape(t))


def _spread(term: FloatArray, shape: tuple[int, ...], axes: tuple[int, ...]) -> FloatArray:
    """Return a view of a term, broadcast to a shape with more parents. ``axes`` are the axes of its own parents."""
    absent = tuple(axis for axis in range(1, len(shape) - 1) if axis not in axes)
    return np.broadcast_to(np.expand_dims(term, absent), shape)


def _weights(total: FloatArray, counts: AnyArray, log_prior: FloatArray) -> FloatArray:
    """Return log factors (values, parents ..., 1) with which value frequencies over all classes match the data."""
    of_values = counts.sum(axis=tuple(range(1, counts.ndim)), dtype=np.float64) + 1.0
    back_off = (of_values / of_values.sum()).reshape([-1] + [1] * (counts.ndim - 2))
    of_parents = counts.sum(axis=0, dtype=np.float64) + np.exp(log_prior)
    log_classes = np.log(of_parents / of_parents.sum(axis=-1, keepdims=True))
    found = counts.sum(axis=-1, dtype=np.float64)
    wanted = np.log((found + FREQUENCY * back_off) / (found.sum(axis=0) + FREQUENCY))
    scores = total + log_classes
    top = scores.max(axis=-1, keepdims=True)
    weights: FloatArray = wanted[..., np.newaxis] - top - np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
    return weights
