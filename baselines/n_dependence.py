"""AnDE on encoded data: an ensemble of all n-dependence estimators that stores rows instead of CPTs.

CPTs of all sets of n + 1 features would be numerous and mostly empty: on letter, 13,342 rows fill 5.7 million of the
298 million entries of A3DE. No CPT is therefore stored. In prediction, training rows and predicted rows are grouped by
their super-parent values and counted within each group (:mod:`tanlearn.kernels.ande`). This takes 2.8 s for 6,658 rows.
Sorted keys of the joint values that occur would take 69 MB, 2.8 s to build and 10.2 s to look up; counting with bit
sets would take 10.7 s.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.kernels import ande as kernels
from tanlearn.kernels._lanes import padded
from tanlearn.kernels.mathematics import exp_all, log_all
from tanlearn.models.model import Model

from .row_counts import RowCounts, distinct_columns

__all__ = ["NDependenceEnsemble"]

#: Minimum weight of a value for it to imply another value with which it always occurs (Zheng and Webb 2006).
SUBSUMED_FROM = 100
#: Number of groups of estimators, which are summed separately and then added in order. The result does not depend on
#: the number of threads; at most this many threads are used.
_N_GROUPS = 16
#: Maximum number of sums per group, 12 bytes each: 200 MB for all groups.
_SUMS = 2**20
#: Largest negative power of two of a product of probabilities that float32 represents without underflow.
_EXPONENTS = 125
_LN2 = 0.6931471805599453


@dataclass(frozen=True, eq=False)
class NDependenceEnsemble(Model):
    """Ensemble of all n-dependence estimators over a set of super-parents."""

    counts: RowCounts  # the training rows
    n: int  # number of super-parents per estimator
    super_parents: IntArray  # (n_super_parents,) features that may be super-parents, in increasing order
    m: float  # weight of the uniform distribution in each estimate, above 0
    min_count: float  # minimum weight of the rows with the super-parents' values
    subsumption: bool  # whether to ignore values that another value of the row implies
    prior: FloatArray | None = None  # (n_classes,) class probabilities; None for class frequencies

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of the CPTs of all estimators, which are never stored."""
        n_states, n_classes = self.counts.n_states.tolist(), self.counts.n_classes
        inside = [n_states[i] for i in self.super_parents]
        n = min(self.n, len(inside))
        cells = [1] + [0] * (n + 1)  # [s]: number of joint values of all sets of s super-parents (symmetric polynomial)
        for k in inside:
            for size in range(n + 1, 0, -1):
                cells[size] += k * cells[size - 1]
        outside = sum(n_states) - len(n_states) - sum(inside) + len(inside)
        children = (n + 1) * cells[n + 1] - (len(inside) - n) * cells[n] + cells[n] * outside
        return n_classes * (cells[n] + children) - math.comb(len(inside), n)

    def least_log_probabilities(self) -> FloatArray:
        """Return a lower bound of the log probabilities of each feature. Shape: (n_features, n_classes).

        The bound is the estimate for a value that no row contains, if all rows of the class have the super-parents'
        values.
        """
        counts = self.counts
        n_rows = np.bincount(counts.y, counts.weights, counts.n_classes)
        least: FloatArray = _log(self.m / counts.n_states[:, np.newaxis] / (n_rows + self.m))
        return least

    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""
        return self.counts.n_states

    def with_log_prior(self, log_prior: FloatArray) -> NDependenceEnsemble:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""
        prior = np.empty_like(log_prior)
        exp_all(log_prior, prior)
        return replace(self, prior=prior)

    def to_state(self) -> dict[str, Any]:
        """Return the values that a file stores."""
        return {
            **self.counts.state(),
            "super_parents": self.super_parents.astype(np.int32),
            "settings": np.array([self.n, self.m, self.min_count, self.subsumption], np.float64),
            "prior": np.empty(0) if self.prior is None else self.prior,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> NDependenceEnsemble:
        """Restore the estimators from the output of :meth:`to_state`; raise ValueError for inconsistent values."""
        names = ("codes", "y", "weights", "super_parents", "settings", "prior")
        codes, y, weights, super_parents, settings, prior = fields(state, *names)
        counts = RowCounts.from_state({"codes": codes, "y": y, "weights": weights}, n_states, n_classes)
        if not len(counts.y):
            raise ValueError("codes must contain at least one row.")
        shape = (0,) if isinstance(prior, np.ndarray) and prior.size == 0 else (counts.n_classes,)
        if (check_array("prior", prior, np.float64, shape) < 0).any():
            raise ValueError("prior must not be negative.")
        inside = check_array("super_parents", super_parents, np.int32, (np.size(super_parents),)).astype(np.intp)
        if len(inside) == 0 or (np.diff(inside) < 1).any() or inside[0] < 0 or inside[-1] >= len(counts.n_states):
            raise ValueError("super_parents must be one or more feature indices in increasing order.")
        n, m, min_count, subsumption = check_array("settings", settings, np.float64, (4,)).tolist()
        if n not in (2, 3) or not m > 0 or not min_count >= 0 or subsumption not in (0, 1):
            raise ValueError("in settings, n must be 2 or 3, m above 0, min_count at least 0, and subsumption 0 or 1.")
        return cls(counts, int(n), inside, m, min_count, bool(subsumption), prior if prior.size else None)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Return the log of p(class, observed features), averaged over the estimators that qualify for each row.

        Only the device "cpu" is supported.

        Shapes: codes: (n_features, n_samples), feature-major; result: (n_samples, n_classes).
        """
        if codes.shape[1] == 0:
            return np.empty((0, self.counts.n_classes))
        first, inverse = distinct_columns([*codes])
        size = max(1, _SUMS // self.counts.n_classes)
        blocks = [codes[:, first[k : k + size]] for k in range(0, len(first), size)]
        return np.concatenate([self._log_joint(block, n_jobs) for block in blocks])[inverse]

    def _log_joint(self, codes: Codes, n_jobs: int | None) -> FloatArray:
        """Return the log joint of a block of distinct rows.

        Rows without a qualifying set of n super-parents use sets of n - 1, and so on.
        """
        values = self._values(codes)
        if self.subsumption:
            is_dropped = np.empty(values.shape, np.bool_)
            kernels.drop_implied(values, self._implied, is_dropped)
            codes = np.where(is_dropped.T, missing_code(codes.dtype), codes).astype(codes.dtype)
            values[is_dropped] = self.counts.n_states.sum()
        scores, left = np.empty((len(values), self.counts.n_classes)), np.arange(len(values))
        for n in range(min(self.n, len(self.super_parents)), -1, -1):
            rows = kernels.Rows(np.ascontiguousarray(codes[:, left]), values[left])
            log_sum, n_summed = self._log_sum(n, rows, n_jobs)
            scores[left] = log_sum - _log(np.maximum(n_summed, 1))[:, np.newaxis]
            left = left[n_summed == 0]
            if len(left) == 0:
                break
        return scores

    def _log_sum(self, n: int, query: kernels.Rows, n_jobs: int | None) -> tuple[FloatArray, IntArray]:
        """Return the log of the sum over the estimators with n super-parents, and how many qualify for each row."""
        sets = itertools.combinations(self.super_parents.tolist(), n)
        number = math.comb(len(self.super_parents), n)
        estimators = np.fromiter(itertools.chain.from_iterable(sets), np.intp, n * number).reshape(number, n)

        def work(group: AnyArray) -> _Sums:
            own = _Sums.nothing(len(query.values), self.counts.n_classes)
            kernels.sum_joint(group, self._training, query, *self._scratch(n, len(query.values)), *own)
            return own

        first, *others = in_threads(work, np.array_split(estimators, _N_GROUPS), n_jobs)
        for other in others:
            kernels.merge_sums(*other, *first)
        return _log(first.total) + _LN2 * first.exponents, first.n_summed

    @cached_property
    def _start(self) -> IntArray:
        """Offset of the first value of each feature in the consecutive numbering of all values."""
        return np.cumsum(self.counts.n_states) - self.counts.n_states

    def _values(self, codes: Codes) -> AnyArray:
        """Return the value numbers of each row. Shape: (n_samples, n_features).

        The values of all features are numbered consecutively; a missing value gets the number after the last.
        """
        rows = codes.T
        values = rows + self._start.astype(np.int32)
        values[rows == missing_code(codes.dtype)] = self.counts.n_states.sum()
        return np.ascontiguousarray(values)

    @cached_property
    def _training(self) -> kernels.TrainingRows:
        """The training rows, smoothing parameters and patterns of missing values, in the form that the kernels use."""
        counts, missing = self.counts, missing_code(self.counts.codes.dtype)
        weight = counts.weights.astype(np.float64)
        is_observed = counts.codes != missing
        has_missing = ~is_observed.all(axis=1)
        first, pattern = distinct_columns((*is_observed[has_missing], np.zeros(len(weight), bool)))
        pattern_weight = np.zeros((len(first), counts.n_classes))
        np.add.at(pattern_weight, (pattern, counts.y), weight)
        least = max(self.m / counts.n_states.max() / (weight.sum() + self.m), kernels.LEAST)
        return kernels.TrainingRows(
            rows=kernels.Rows(counts.codes, self._values(counts.codes)),
            y=counts.y,
            weight=weight,
            n_states=counts.n_states,
            start=self._start,
            missing=missing,
            observed_row=np.where(has_missing, np.cumsum(has_missing), 0),
            patterns=np.ascontiguousarray(is_observed[:, first].T),
            pattern_weight=pattern_weight,
            prior=np.empty(0) if self.prior is None else self.prior,
            m=float(self.m),
            min_count=float(self.min_count),
            chunk=_EXPONENTS // max(1 - math.frexp(least)[1], 1),
        )

    @cached_property
    def _implied(self) -> AnyArray:
        """Number of the value of each feature that each value implies, or n_values; shape (n_values, n_features)."""
        n_values, values = int(self.counts.n_states.sum()), self._training.rows.values
        implied = np.full((n_values, len(self.counts.n_states)), n_values, np.int32)
        kernels.find_implied(values, self._training.weight, SUBSUMED_FROM, np.empty(n_values), implied)
        return implied

    def _scratch(self, n: int, n_query: int) -> tuple[kernels.Parts, kernels.Workspace]:
        """Return the work arrays of one thread, with all rows in one part."""
        training, n_classes, n_features = self._training, self.counts.n_classes, len(self.counts.n_states)
        n_rows, n_values, width = len(training.y), int(self.counts.n_states.sum()) + 1, padded(n_classes)
        parts = kernels.Parts(
            rows=np.empty((n + 1, n_rows), np.int32),
            query=np.empty((n + 1, n_query), np.int32),
            first=np.zeros((n + 1, n_query + 1), np.intp),
            first_query=np.zeros((n + 1, n_query + 1), np.intp),
            number=np.ones(n + 1, np.intp),
            of_value=np.full(self.counts.n_states.max(), -1, np.intp),
            value=np.empty(n_query, np.intp),
            training_size=np.empty(n_query, np.intp),
            query_size=np.empty(n_query, np.intp),
            weight=np.empty(n_query),
        )
        for rows, first in ((parts.rows, parts.first), (parts.query, parts.first_query)):
            rows[0] = np.arange(rows.shape[1])
            first[0, 1] = rows.shape[1]
        probability = np.zeros(n_values * width, np.float32)
        probability[-width:] = 1
        space = kernels.Workspace(
            counts=np.zeros(n_values * n_classes),
            observed_weight=np.empty((training.observed_row.max() + 1, n_classes)),
            probability=probability,
            filled=np.zeros(n_values, np.intp),
            children=np.empty(n_features, np.intp),
            scale=np.empty(n_classes),
            base=np.empty(n_classes),
            mantissas=np.empty(width, np.float32),
            exponents=np.empty(width, np.float32),
            terms=np.empty(n_classes),
        )
        return parts, space


class _Sums(NamedTuple):
    """Sums over estimators: total * 2**exponents, and the number of summed estimators of each row."""

    total: FloatArray  # (n_rows, n_classes)
    exponents: AnyArray  # (n_rows, n_classes) int32
    n_summed: IntArray  # (n_rows,)

    @classmethod
    def nothing(cls, n_rows: int, n_classes: int) -> _Sums:
        """Return the sums of no estimators."""
        lowest = np.full((n_rows, n_classes), np.iinfo(np.int32).min // 2, np.int32)
        return cls(np.zeros((n_rows, n_classes)), lowest, np.zeros(n_rows, np.intp))


def _log(x: AnyArray) -> FloatArray:
    """Return natural logarithms that are bit-identical on all CPUs."""
    logarithm = np.empty(x.shape)
    log_all(x.ravel().astype(np.float64), logarithm.ravel())
    return logarithm
