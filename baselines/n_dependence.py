"""The average of all n-dependence estimators on encoded data, which keeps rows in place of tables.

Tables of all sets of n + 1 features are many, and nearly empty: of the 298 million cells of A3DE on letter, its 13,342
rows fill 5.7 million. So nothing is tabulated. Rows are parted by super-parents when they are needed, together with
those that are asked about, and counted part by part (:mod:`tanlearn.kernels.ande`): 2.8 s for 6,658 rows, where sorted
keys of what occurs take 69 MB, 2.8 s to make and 10.2 s to look up, and sets of bits 10.7 s to count.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import ande as kernels
from tanlearn.kernels._lanes import padded
from tanlearn.kernels.mathematics import log_all

from .row_counts import RowCounts, distinct_columns

__all__ = ["NDependenceEnsemble"]

#: Weight from which on a value that never comes without another implies it (Zheng and Webb 2006).
SUBSUMED_FROM = 100
#: Shares of the estimators, with sums of their own that are added in order: as many threads have work, and the sums do
#: not depend on them.
_SHARES = 16
#: Sums of a share, 12 bytes each: 200 MB for all of them.
_SUMS = 2**20
#: Powers of two that a product of probabilities in float32 has room for, beside a mantissa.
_EXPONENTS = 125
_LN2 = 0.6931471805599453


@dataclass(frozen=True, eq=False)
class NDependenceEnsemble:
    """All n-dependence estimators over some super-parents."""

    counts: RowCounts  # The rows
    n: int  # Super-parents of an estimator
    super_parents: IntArray  # (n_super_parents,): Features that may be one, in rising order
    m: float  # Weight of the uniform distribution in every estimate, above 0
    min_count: float  # Least weight of the rows with the super-parents' values
    subsumption: bool  # Whether values that another value of the row implies are left out
    prior: FloatArray | None = None  # (n_classes,): Probabilities of the classes, in place of those of the rows

    @property
    def n_parameters(self) -> int:
        """Free parameters of the tables that the estimators would have: of every distribution, one follows."""
        n_states, n_classes = self.counts.n_states.tolist(), self.counts.n_classes
        inside = [n_states[i] for i in self.super_parents]
        n = min(self.n, len(inside))
        cells = [1] + [0] * (n + 1)  # sums over all sets of 0, 1, ... super-parents of the products of their values
        for k in inside:
            for size in range(n + 1, 0, -1):
                cells[size] += k * cells[size - 1]
        outside = sum(n_states) - len(n_states) - sum(inside) + len(inside)
        children = (n + 1) * cells[n + 1] - (len(inside) - n) * cells[n] + cells[n] * outside
        return n_classes * (cells[n] + children) - math.comb(len(inside), n)

    def least_log_probabilities(self) -> FloatArray:
        """Return a lower bound of the log-probabilities of all values of a feature, given each class.

        Shapes: result: (n_features, n_classes).
        """
        counts = self.counts
        n_rows = np.bincount(counts.y, counts.weights, counts.n_classes)
        least: FloatArray = _log(self.m / counts.n_states[:, np.newaxis] / (n_rows + self.m))
        return least

    def with_prior(self, prior: FloatArray) -> NDependenceEnsemble:
        """Return the ensemble with other class probabilities.

        Shapes: prior: (n_classes,).
        """
        return replace(self, prior=prior)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
        """Return the log of the mean of p(class, observed features) over the estimators that have a say on a row.

        Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
        """
        if codes.shape[1] == 0:
            return np.empty((0, self.counts.n_classes))
        first, inverse = distinct_columns([*codes])
        size = max(1, _SUMS // self.counts.n_classes)
        blocks = [codes[:, first[k : k + size]] for k in range(0, len(first), size)]
        return np.concatenate([self._log_joint(block, n_jobs) for block in blocks])[inverse]

    def _log_joint(self, codes: Codes, n_jobs: int | None) -> FloatArray:
        """Return the log joint of a block: of the rows that no estimator has a say on, that with one parent less."""
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

    def _log_sum(self, n: int, asked: kernels.Rows, n_jobs: int | None) -> tuple[FloatArray, IntArray]:
        """Return the log of the sum over the estimators with n super-parents, and how many have a say."""
        sets = itertools.combinations(self.super_parents.tolist(), n)
        number = math.comb(len(self.super_parents), n)
        estimators = np.fromiter(itertools.chain.from_iterable(sets), np.intp, n * number).reshape(number, n)

        def work(share: AnyArray) -> _Sums:
            own = _Sums.nothing(len(asked.values), self.counts.n_classes)
            kernels.sum_joint(share, self._learnt, asked, *self._scratch(n, len(asked.values)), *own)
            return own

        first, *others = in_threads(work, np.array_split(estimators, _SHARES), n_jobs)
        for other in others:
            kernels.merge_sums(*other, *first)
        return _log(first.total) + _LN2 * first.exponents, first.n_summed

    @cached_property
    def _start(self) -> IntArray:
        """Number of the first value of every feature."""
        return np.cumsum(self.counts.n_states) - self.counts.n_states

    def _values(self, codes: Codes) -> AnyArray:
        """Return numbers of values, row by row, where those of all features are numbered through."""
        rows = codes.T
        values = rows + self._start.astype(np.int32)
        values[rows == missing_code(codes.dtype)] = self.counts.n_states.sum()
        return np.ascontiguousarray(values)

    @cached_property
    def _learnt(self) -> kernels.Learnt:
        """The rows, their smoothing, and what they miss, as kernels take them."""
        counts, missing = self.counts, missing_code(self.counts.codes.dtype)
        weight = counts.weights.astype(np.float64)
        is_known = counts.codes != missing
        has_gaps = ~is_known.all(axis=1)
        first, pattern = distinct_columns((*is_known[has_gaps], np.zeros(len(weight), bool)))
        pattern_weight = np.zeros((len(first), counts.n_classes))
        np.add.at(pattern_weight, (pattern, counts.y), weight)
        least = max(self.m / counts.n_states.max() / (weight.sum() + self.m), kernels.LEAST)
        return kernels.Learnt(
            rows=kernels.Rows(counts.codes, self._values(counts.codes)),
            y=counts.y,
            weight=weight,
            n_states=counts.n_states,
            start=self._start,
            missing=missing,
            known_row=np.where(has_gaps, np.cumsum(has_gaps), 0),
            patterns=np.ascontiguousarray(is_known[:, first].T),
            pattern_weight=pattern_weight,
            prior=np.empty(0) if self.prior is None else self.prior,
            m=float(self.m),
            min_count=float(self.min_count),
            chunk=_EXPONENTS // max(1 - math.frexp(least)[1], 1),
        )

    @cached_property
    def _implied(self) -> AnyArray:
        """The value of every feature that every value implies."""
        n_values, values = int(self.counts.n_states.sum()), self._learnt.rows.values
        implied = np.full((n_values, len(self.counts.n_states)), n_values, np.int32)
        kernels.find_implied(values, self._learnt.weight, SUBSUMED_FROM, np.empty(n_values), implied)
        return implied

    def _scratch(self, n: int, n_asked: int) -> tuple[kernels.Parts, kernels.Workspace]:
        """Return arrays for one thread, with all rows in one part."""
        learnt, n_classes, n_features = self._learnt, self.counts.n_classes, len(self.counts.n_states)
        n_rows, n_values, width = len(learnt.y), int(self.counts.n_states.sum()) + 1, padded(n_classes)
        parts = kernels.Parts(
            rows=np.empty((n + 1, n_rows), np.int32),
            asked=np.empty((n + 1, n_asked), np.int32),
            first=np.zeros((n + 1, n_asked + 1), np.intp),
            first_asked=np.zeros((n + 1, n_asked + 1), np.intp),
            number=np.ones(n + 1, np.intp),
            of_value=np.full(self.counts.n_states.max(), -1, np.intp),
            value=np.empty(n_asked, np.intp),
            size=np.empty(n_asked, np.intp),
            size_asked=np.empty(n_asked, np.intp),
            weight=np.empty(n_asked),
        )
        for rows, first in ((parts.rows, parts.first), (parts.asked, parts.first_asked)):
            rows[0] = np.arange(rows.shape[1])
            first[0, 1] = rows.shape[1]
        probability = np.zeros(n_values * width, np.float32)
        probability[-width:] = 1
        space = kernels.Workspace(
            counts=np.zeros(n_values * n_classes),
            known=np.empty((learnt.known_row.max() + 1, n_classes)),
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
    """What estimators add up to: total * 2^exponents, of so many."""

    total: FloatArray
    exponents: AnyArray
    n_summed: IntArray

    @classmethod
    def nothing(cls, n_rows: int, n_classes: int) -> _Sums:
        """Return sums of no estimator."""
        lowest = np.full((n_rows, n_classes), np.iinfo(np.int32).min // 2, np.int32)
        return cls(np.zeros((n_rows, n_classes)), lowest, np.zeros(n_rows, np.intp))


def _log(x: AnyArray) -> FloatArray:
    """Return logarithms that all CPUs agree on."""
    logarithm = np.empty(x.shape)
    log_all(x.ravel().astype(np.float64), logarithm.ravel())
    return logarithm
