"""Model whose class scores are a sum of many small tables, each over a few splits of feature values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.kernels import boosting as kernels
from tanlearn.models.model import Model

__all__ = ["BoostedTerms", "Term"]

#: Number of rows per block of a thread.
_BLOCK = 1024


class Term(NamedTuple):
    """Table with values for each cell, a combination of sides of splits. Bit s of its number is the side of split s."""

    features: IntArray  # (n_splits,), possibly one feature several times
    sides: list[AnyArray]  # 0 or 1 for each value of the feature of each split, (n_states,) uint8
    weights: FloatArray  # (2^n_splits,) sum of the variances of the training rows
    values: FloatArray  # (2^n_splits, n_classes)


@dataclass(frozen=True, eq=False)
class BoostedTerms(Model):
    """Sum of terms: ``score(x, y) = log P(y) + sum_t values[t, cell_t(x), y]``.

    If a row lacks a value that a term needs, the term contributes the mean over all cells that agree with the other
    values of the row. Cells are weighted by the sum of the variances p (1 - p) of the classes of their training rows.
    """

    n_states: IntArray  # (n_features,)
    features: IntArray  # (n_terms, most splits), -1 for none
    sides: AnyArray  # of all splits in order, uint8
    weights: FloatArray  # (n_terms, n_cells)
    values: FloatArray  # (n_terms, n_cells, n_classes)
    log_prior: FloatArray  # (n_classes,)
    log_frequency: FloatArray  # (n_classes,) log class frequencies in training
    starts: IntArray = field(init=False, repr=False)  # (n_terms, most splits), first entry of ``sides``

    @classmethod
    def of_terms(cls, terms: Sequence[Term], n_states: IntArray, log_frequency: FloatArray) -> BoostedTerms:
        """Return a model that consists of the given terms, with the class frequencies as prior."""
        width = max((len(term.features) for term in terms), default=1)
        features = np.full((len(terms), width), -1, np.intp)
        weights = np.zeros((len(terms), 1 << width))
        values = np.zeros((len(terms), 1 << width, len(log_frequency)))
        for t, term in enumerate(terms):
            features[t, : len(term.features)] = term.features
            weights[t, : len(term.weights)] = term.weights
            values[t, : len(term.values)] = term.values
        sides = [side for term in terms for side in term.sides]
        flat: AnyArray = np.concatenate([np.empty(0, np.uint8), *sides])
        return cls(n_states, features, flat, weights, values, log_frequency, log_frequency)

    def __post_init__(self) -> None:
        """Compute the start of the sides of each split."""
        sizes = np.where(self.features >= 0, self.n_states[self.features], 0)
        starts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        object.__setattr__(self, "starts", starts)

    def terms(self) -> list[Term]:
        """Return the terms one by one."""
        found = []
        for features, starts, weights, values in zip(
            self.features, self.starts, self.weights, self.values, strict=True
        ):
            n_splits = int((features >= 0).sum())
            own = features[:n_splits]
            ends = zip(starts.tolist(), self.n_states[own].tolist(), strict=False)
            sides = [self.sides[start : start + size] for start, size in ends]
            found.append(Term(own, sides, weights[: 1 << n_splits], values[: 1 << n_splits]))
        return found

    def on_finer_values(self, groups: Sequence[IntArray]) -> BoostedTerms:
        """Return the model for finer values of features; ``groups`` (n_finer,) maps finer values to values."""
        terms = [
            term._replace(sides=[side[groups[i]] for i, side in zip(term.features.tolist(), term.sides, strict=True)])
            for term in self.terms()
        ]
        n_states = np.array([len(own) for own in groups], np.intp)
        return replace(BoostedTerms.of_terms(terms, n_states, self.log_frequency), log_prior=self.log_prior)

    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""
        return self.n_states

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: n_classes - 1 for each cell of each term, and for the class prior."""
        n_cells = int((1 << (self.features >= 0).sum(axis=1)).sum())
        return (n_cells + 1) * (len(self.log_prior) - 1)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute class scores (n_rows, n_classes), which are log probabilities up to a constant of the row.

        Only the device "cpu" is supported.
        """
        scores = np.tile(self.log_prior, (codes.shape[1], 1))

        def add(first: int, last: int) -> None:
            self.add_terms(codes, scores[first:last], first)

        in_blocks(add, codes.shape[1], _BLOCK, n_jobs)
        return scores

    def add_terms(self, codes: Codes, scores: FloatArray, first: int = 0) -> None:
        """Add the values of all terms to scores (any, n_classes) of the rows ``first``, ``first + 1``, ... in place."""
        kernels.add_terms(codes, first, *self._arrays(), scores)

    def row_scorer(self) -> Callable[[IntArray], FloatArray]:
        """Return a function that computes the scores of a row of codes."""
        dtype, arrays, prior = codes_dtype(int(self.n_states.max())), self._arrays(), self.log_prior

        def score(row: IntArray) -> FloatArray:
            scores = prior[np.newaxis].copy()
            kernels.add_terms(row.astype(dtype)[:, np.newaxis], 0, *arrays, scores)
            return scores[0]

        return score

    def _arrays(self) -> tuple[IntArray, IntArray, IntArray, AnyArray, FloatArray, FloatArray]:
        """Return the arguments of the kernel that describe the terms."""
        return self.n_states, self.features, self.starts, self.sides, self.weights, self.values

    def with_log_prior(self, log_prior: FloatArray) -> BoostedTerms:
        """Return a copy that uses ``log_prior`` (n_classes,) instead of the log class frequencies in training."""
        return replace(self, log_prior=np.array(log_prior, np.float64))

    def write_to(self, writer: Any) -> Any:
        """Call the method ``boosted_terms`` of an export, and return its result."""
        return writer.boosted_terms(self)

    def to_state(self) -> dict[str, Any]:
        """Return the fields without copying arrays."""
        names = ("features", "sides", "weights", "values", "log_prior", "log_frequency")
        return {name: getattr(self, name) for name in names} | {"features": self.features.astype(np.int64)}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> BoostedTerms:
        """Restore a model from the output of :meth:`to_state`; raise ValueError for invalid values."""
        names = ("features", "sides", "weights", "values", "log_prior", "log_frequency")
        features, sides, weights, values, log_prior, log_frequency = fields(state, *names)
        n_terms, width = features.shape if isinstance(features, np.ndarray) and features.ndim == 2 else (0, 1)
        check_array("features", features, np.int64, (n_terms, width))
        is_used = features >= 0
        if (
            width > 8
            or (features < -1).any()
            or (features >= len(n_states)).any()
            or (is_used[:, 1:] & ~is_used[:, :-1]).any()
        ):
            raise ValueError("features must contain at most 8 positions per term, with -1 only after them.")
        size = int(np.where(is_used, n_states[features], 0).sum())
        if (check_array("sides", sides, np.uint8, (size,)) > 1).any():
            raise ValueError("sides must be 0 or 1.")
        check_array("weights", weights, np.float64, (n_terms, 1 << width))
        check_array("values", values, np.float64, (n_terms, 1 << width, n_classes))
        if not (np.isfinite(weights) & (weights >= 0)).all() or not np.isfinite(values).all():
            raise ValueError("weights must be finite and nonnegative, and values must be finite.")
        if not (check_array("log_prior", log_prior, np.float64, (n_classes,)) > -np.inf).any():  # -inf: a prior of 0
            raise ValueError("log_prior must leave at least one possible class.")
        if np.isneginf(check_array("log_frequency", log_frequency, np.float64, (n_classes,))).any():
            raise ValueError("log_frequency must be finite.")
        return cls(n_states, features.astype(np.intp), sides, weights, values, log_prior, log_frequency)
