"""Bayesian network with a single structure: the model of naive Bayes, TAN, k-trees and other single networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.log_joint import log_evidence, log_joint
from tanlearn.models.model import Model
from tanlearn.models.new_values import log_joint_of_new_values
from tanlearn.models.quantization import FixedPoint, IntegerTables
from tanlearn.models.tables import Tables
from tanlearn.models.term_tables import TermTables
from tanlearn.structures.structures import Structure, read_structure
from tanlearn.structures.table_layout import TableLayout, n_table_cells

__all__ = ["BayesNet", "restore_tables"]


@dataclass(frozen=True, eq=False)
class BayesNet(Model):
    """Structure and CPTs of one network: dense, rounded to few bits, or sparse counts that back off."""

    structure: Structure
    tables: Tables

    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""
        return self.tables.layout.n_states

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.tables.n_parameters

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute log p(class, observed features) of each row, with missing values marginalized."""
        return log_joint(self.tables, self.structure, codes, n_jobs=n_jobs, device=device)

    def row_scorer(self) -> Callable[[IntArray], FloatArray]:
        """Return a function that computes the log joint of a row of codes."""
        return self.tables.row_scorer(self.structure, lambda column: self.log_joint(column, n_jobs=1)[0])

    def with_log_prior(self, log_prior: FloatArray) -> BayesNet:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""
        return replace(self, tables=self.tables.with_log_prior(log_prior))

    def log_joint_without_features(self) -> FloatArray:
        """Return the log prior, or the marginalized scores if the CPTs are not normalized."""
        if self.tables.is_normalized or not self.structure.is_acyclic:
            return self.tables.log_prior
        return super().log_joint_without_features()

    def log_normalizer(self, *, device: str = "cpu") -> float:
        """Return 0 for normalized CPTs, otherwise the log of the sum over all rows and classes."""
        if self.tables.is_normalized:
            return 0.0
        nothing = self._codes_without_features()
        return float(log_evidence(log_joint(self.tables, self.structure, nothing, is_exact=True, device=device))[0])

    def log_joint_of_new_values(
        self, codes: Codes, is_unseen: AnyArray, *, n_jobs: int | None = None, device: str = "cpu"
    ) -> FloatArray:
        """Compute the log joint of rows with unseen values, exactly if the CPTs are dense."""
        rule: dict[str, Any] = {"n_jobs": n_jobs, "device": device}
        if self.tables.is_dense and is_unseen.any():
            return log_joint_of_new_values(self.tables, self.structure, codes, is_unseen, **rule)
        return super().log_joint_of_new_values(codes, is_unseen, **rule)

    def least_log_probabilities(self) -> FloatArray:
        """Return lower bounds of the log probabilities of all values. Shape: (n_features, n_classes)."""
        return self.tables.least_log_probabilities()

    def write_to(self, writer: Any) -> Any:
        """Call the method ``network`` of an export, and return its result."""
        return writer.network(self)

    def to_state(self) -> dict[str, Any]:
        """Return ``structure``, and the fields of the CPTs."""
        return {"structure": self.structure, **self.tables.to_state()}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> BayesNet:
        """Restore a network from the output of :meth:`to_state`; raise ValueError for inconsistent values."""
        state = dict(state)
        bits, back_off, terms, normalized = (
            state.pop(name, None) for name in ("bits", "back_off", "terms", "normalized")
        )
        structure, cells = fields(state, "structure", "cells")
        if back_off is not None:
            return cls(structure, _restore_back_off(structure, n_states, n_classes, cells, back_off))
        if terms is not None:
            layout = _layout_of(structure, n_states, n_classes)
            return cls(structure, TermTables.of_state(layout, cells, terms, is_normalized=normalized is not False))
        fixed_point = None if bits is None else FixedPoint(*bits)
        rule = normalized is not False
        return cls(structure, restore_tables(structure, n_states, n_classes, cells, fixed_point, is_normalized=rule))


def restore_tables(
    structure: Any,
    n_states: IntArray,
    n_classes: int,
    cells: Any,
    fixed_point: FixedPoint | None = None,
    *,
    is_normalized: bool = True,
) -> Tables:
    """Build the CPTs of a structure from values of a file; inconsistent values raise ValueError.

    ``cells`` are float64 log probabilities of shape (n_cells,), or packed uint8 magnitudes if ``fixed_point`` is given.
    ``is_normalized`` states whether the probabilities of float64 cells sum to one.
    """
    structure = read_structure(structure, len(n_states))
    n_cells = n_table_cells(structure.parents, n_states, n_classes)
    if fixed_point is not None:
        check_array("cells", cells, np.uint8, (-(-n_cells * fixed_point.n_bits // 8),))
        layout = TableLayout.of_parents(structure.parents, n_states, n_classes)
        return IntegerTables(layout, fixed_point.unpack(cells, n_cells), fixed_point)
    check_array("cells", cells, np.float64, (n_cells,))
    return Tables(TableLayout.of_parents(structure.parents, n_states, n_classes), cells, is_normalized)


def _layout_of(structure: Any, n_states: IntArray, n_classes: int) -> TableLayout:
    """Return the layout of the CPTs of a structure from a file."""
    return TableLayout.of_parents(read_structure(structure, len(n_states)).parents, n_states, n_classes)


def _restore_back_off(structure: Any, n_states: IntArray, n_classes: int, log_prior: Any, state: Any) -> BackOffTables:
    """Build back-off CPTs from the ``back_off`` state of :meth:`BackOffTables.to_state`; check all values of a file."""
    state = dict(state) if type(state) is dict else {}
    own = {name: state.pop(name, None) for name in ("class_counts", "n_entries", "values", "counts")}
    m, level_counts = fields(state, "concentrations", "level_counts")
    contexts = ContextCounts.from_state({"structure": structure, **own}, n_states, n_classes)
    check_array("cells", log_prior, np.float64, (n_classes,))
    depth = int((contexts.parents >= 0).sum(axis=1).max())
    check_array("concentrations", m, np.float64, (1 + depth,))
    if not (m > 0).all():
        raise ValueError("concentrations must be positive.")
    if level_counts is None:
        return BackOffTables(contexts, m, log_prior)
    tables = BackOffTables(contexts, m, log_prior)  # built to get the number of entries of each level
    sizes = [len(family.counts) for family in tables.families]
    check_array("level_counts", level_counts, np.float64, (sum(sizes),))
    if not (level_counts > 0).all():
        raise ValueError("level_counts must be positive.")
    return BackOffTables(contexts, m, log_prior, counts=np.split(level_counts, np.cumsum(sizes)[:-1]))
