"""Weighted sum of the log posteriors of a forest, a network and boosted terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization
from tanlearn.forest.interpretation import explain, normalized_contributions
from tanlearn.forest.pooling import pooled
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.boosted_contributions import explain_terms
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.explanation import explain as explain_network
from tanlearn.models.log_joint import log_posterior
from tanlearn.models.model import Model

__all__ = ["Ensemble", "merged_values"]


@dataclass(frozen=True, eq=False)
class Ensemble(Model):
    """Ensemble of a forest, a network and boosted terms. The network merges the intervals of the other two models.

    The log posterior is the normalized weighted sum of the log posteriors of the three models, plus the shift.
    """

    forest: Forest
    network: BayesNet
    boosting: BoostedTerms
    discretization: Discretization  # values of the network
    weights: FloatArray  # (3,) of forest, network and boosted terms, nonnegative
    shift: FloatArray  # (n_classes,) added to log probabilities if class frequencies differ from training

    def coarse_values(self) -> list[IntArray]:
        """Return the value in the network for each value of the encoder, (n_states,) per feature."""
        return [
            own[:-1].astype(np.intp) for own in np.split(self.discretization.merged, self.discretization.start[1:-1])
        ]

    def numbers_of_values(self) -> IntArray:
        """Return the number of values per feature before intervals are merged. Shape: (n_features,)."""
        return self.forest.numbers_of_values()

    @property
    def n_parameters(self) -> int:
        """Number of parameters of all models, and their weights."""
        parts = self.forest, self.network, self.boosting
        return sum(part.n_parameters for part in parts) + len(self.weights)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute unnormalized log probabilities of the classes; only the device "cpu" is supported.

        Shapes: codes: (n_features, n_rows), of the encoder; result: (n_rows, n_classes).
        """
        rule: dict[str, Any] = {"n_jobs": n_jobs, "device": device}
        log_p = np.zeros((len(self.weights), codes.shape[1], len(self.shift)))
        if self.weights[0]:
            log_p[0] = self.forest.log_joint(codes, **rule)
        if self.weights[1]:
            log_p[1] = log_posterior(self.network.log_joint(self.discretization.encode(codes), **rule))
        if self.weights[2]:
            log_p[2] = log_posterior(self.boosting.log_joint(codes, **rule))
        return pooled(log_p, self.weights) + self.shift

    def row_scorer(self) -> Callable[[IntArray], FloatArray]:
        """Return a function that computes the log joint of a row of codes from a copy of the forest."""
        of_forest = self.forest.row_scorer() if self.weights[0] else None
        of_network = self.network.row_scorer() if self.weights[1] else None
        of_boosting = self.boosting.row_scorer() if self.weights[2] else None
        values, start, n_values = self.discretization.merged, self.discretization.start[:-1], self.numbers_of_values()

        def score(row: IntArray) -> FloatArray:
            log_p = np.zeros((len(self.weights), 1, len(self.shift)))
            if of_forest is not None:
                log_p[0] = of_forest(row)
            if of_network is not None:
                codes = values[start + np.minimum(row, n_values)].astype(np.intp)
                log_p[1] = log_posterior(of_network(codes)[np.newaxis])
            if of_boosting is not None:
                log_p[2] = log_posterior(of_boosting(row)[np.newaxis])
            return pooled(log_p, self.weights)[0] + self.shift

        return score

    def explain(self, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
        """Split the log probabilities of each row into contributions of its features, for each class.

        The contributions of the three models are multiplied by their weights and added. The normalization is divided
        among the features as in :func:`tanlearn.forest.interpretation.explain`. The last entry is the log probability
        without features. Rows with missing values raise ValueError if CPTs of the network are not normalized.

        Shapes: codes: (n_features, n_rows); result: (n_rows, n_features + 1, n_classes).
        """
        total = np.zeros((codes.shape[1], len(codes) + 1, len(self.shift)))
        if self.weights[0]:
            total += self.weights[0] * explain(self.forest, codes, n_jobs=n_jobs)
        if self.weights[1]:
            tables, structure = self.network.tables, self.network.structure
            of_network = explain_network(tables, structure, self.discretization.encode(codes), n_jobs=n_jobs)
            total += self.weights[1] * of_network
        if self.weights[2]:
            total += self.weights[2] * explain_terms(self.boosting, codes)
        found = normalized_contributions(total)
        found[:, -1] += self.shift
        return found

    def with_log_prior(self, log_prior: FloatArray) -> Ensemble:
        """Return a copy that uses ``log_prior`` (n_classes,) instead of the log class frequencies in training."""
        return replace(self, shift=log_prior - self.forest.log_frequency)

    def parts(self) -> list[tuple[float, Model]]:
        """Return the weight and the model of each part, without parts of weight 0."""
        pairs = zip(self.weights.tolist(), (self.forest, self.network, self.boosting), strict=True)
        return [(weight, part) for weight, part in pairs if weight]

    def write_to(self, writer: Any) -> Any:
        """Call the method ``ensemble`` of an export, and return its result."""
        return writer.ensemble(self)

    def to_state(self) -> dict[str, Any]:
        """Return the fields; names of the models' fields have a prefix."""
        return {
            **{f"forest_{name}": value for name, value in self.forest.to_state().items()},
            **{f"network_{name}": value for name, value in self.network.to_state().items()},
            **{f"boosting_{name}": value for name, value in self.boosting.to_state().items()},
            "merged": self.discretization.merged.astype(np.uint16),
            "weights": self.weights,
            "shift": self.shift,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Ensemble:
        """Restore an ensemble from the output of :meth:`to_state`; raise ValueError for invalid values.

        Files of version 0.2 may have no boosted terms, and two weights.
        """
        prefixes = "forest_", "network_", "boosting_"
        of_forest, of_network, of_boosting = (
            {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
            for prefix in prefixes
        )
        own = {name: value for name, value in state.items() if not name.startswith(prefixes)}
        merged, weights, shift = fields(own, "merged", "weights", "shift")
        discretization = _read_discretization(merged, n_states)
        forest = Forest.from_state(of_forest, n_states, n_classes)
        network = BayesNet.from_state(of_network, discretization.n_states, n_classes)
        if of_boosting:
            boosting = BoostedTerms.from_state(of_boosting, n_states, n_classes)
        else:
            boosting = BoostedTerms.of_terms([], n_states, forest.log_frequency)
            weights = np.append(check_array("weights", weights, np.float64, (2,)), 0.0)
        check_array("weights", weights, np.float64, (3,))
        if not (weights >= 0).all() or not weights.any():
            raise ValueError("weights must be nonnegative, and at least one must be positive.")
        if not (check_array("shift", shift, np.float64, (n_classes,)) > -np.inf).any():  # -inf for a prior of 0
            raise ValueError("shift must leave at least one possible class.")
        return cls(forest, network, boosting, discretization, weights, shift)


def merged_values(groups: list[IntArray]) -> Discretization:
    """Return the discretization that merges the values of each feature into groups. Missing values stay missing."""
    n_states = np.array([int(own.max()) + 1 for own in groups], np.intp)
    dtype = codes_dtype(int(n_states.max()))
    merged = np.concatenate([np.append(own, missing_code(dtype)) for own in groups]).astype(dtype)
    return Discretization(merged, np.append(0, np.cumsum([len(own) + 1 for own in groups])), n_states)


def _read_discretization(merged: Any, n_states: IntArray) -> Discretization:
    """Restore the merged values of a file. Raise ValueError for values that do not increase by steps of at most one."""
    check_array("merged", merged, np.uint16, (int((n_states + 1).sum()),))
    groups = [own[:-1].astype(np.intp) for own in np.split(merged, np.cumsum(n_states + 1)[:-1])]
    if any(own[0] != 0 or not np.isin(np.diff(own), (0, 1)).all() for own in groups):
        raise ValueError("merged must begin with 0 for each feature, and increase by 0 or 1 from value to value.")
    return merged_values(groups)
