"""Decomposable scores of networks: log marginal likelihoods and penalized log likelihoods of families.

The score of a network is the sum of the scores of its families. Let n_xh be the total weight of the rows in which the
child has value x and the context is h (the values of all its parents, including the class); n_h the sum over x; r the
number of values of the child; q the number of contexts; and N the total weight of all rows. Every score of a family is
a sum over its counts n_xh, minus a sum over the counts n_h of its contexts, minus a penalty. Counts of 0 contribute
nothing, so only the counts that occur are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.kernels.mathematics import log, log_all

__all__ = ["AIC", "BIC", "FAMILY_SCORES", "K2", "BDeu", "FamilyScore", "LogLikelihood", "make_score"]


class FamilyScore(Protocol):
    """Score of a family, as a sum over its counts; all numbers of cells are floats, because they may be huge."""

    def of_cells(self, counts: AnyArray, n_cells: float) -> FloatArray:
        """Return the terms for the counts n_xh above 0, given ``n_cells`` = r q. Shape: (n_counts,)."""
        ...

    def of_contexts(self, counts: AnyArray, n_contexts: float, n_values: int) -> FloatArray:
        """Return the terms for the counts n_h above 0, given ``n_contexts`` = q. Shape: (n_counts,)."""
        ...

    def penalty(self, weight: float) -> float:
        """Return the penalty of each of the (r - 1) q free parameters, given the weight N of all rows."""
        ...


@dataclass(frozen=True)
class BDeu:
    """Log marginal likelihood under Dirichlet priors of an equivalent sample size a (Heckerman et al. 1995).

    sum_xh log G(n_xh + a/rq) / G(a/rq) - sum_h log G(n_h + a/q) / G(a/q), where G is the gamma function.
    """

    equivalent_sample_size: float = 1.0

    def of_cells(self, counts: AnyArray, n_cells: float) -> FloatArray:
        """Return the terms for the counts n_xh above 0. Shape: (n_counts,)."""
        return _log_rising(counts, self.equivalent_sample_size / n_cells)

    def of_contexts(self, counts: AnyArray, n_contexts: float, n_values: int) -> FloatArray:
        """Return the terms for the counts n_h above 0. Shape: (n_counts,)."""
        return _log_rising(counts, self.equivalent_sample_size / n_contexts)

    def penalty(self, weight: float) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True)
class K2:
    """Log marginal likelihood under uniform priors (Cooper, Herskovits 1992).

    sum_xh log n_xh! - sum_h log (n_h + r - 1)! / (r - 1)!
    """

    def of_cells(self, counts: AnyArray, n_cells: float) -> FloatArray:
        """Return the terms for the counts n_xh above 0. Shape: (n_counts,)."""
        return _log_rising(counts, 1.0)

    def of_contexts(self, counts: AnyArray, n_contexts: float, n_values: int) -> FloatArray:
        """Return the terms for the counts n_h above 0. Shape: (n_counts,)."""
        return _log_rising(counts, float(n_values))

    def penalty(self, weight: float) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True)
class LogLikelihood:
    """Maximum log likelihood, sum_xh n_xh log n_xh / n_h, without a penalty."""

    def of_cells(self, counts: AnyArray, n_cells: float) -> FloatArray:
        """Return the terms for the counts n_xh above 0. Shape: (n_counts,)."""
        return _xlogx(counts)

    def of_contexts(self, counts: AnyArray, n_contexts: float, n_values: int) -> FloatArray:
        """Return the terms for the counts n_h above 0. Shape: (n_counts,)."""
        return _xlogx(counts)

    def penalty(self, weight: float) -> float:
        """Return 0."""
        return 0.0


class BIC(LogLikelihood):
    """Maximum log likelihood minus log(N) / 2 per free parameter (Schwarz 1978), the negative description length."""

    def penalty(self, weight: float) -> float:
        """Return log(N) / 2, at least 0."""
        return float(log(max(weight, 1.0))) / 2


class AIC(LogLikelihood):
    """Maximum log likelihood minus 1 per free parameter (Akaike 1974)."""

    def penalty(self, weight: float) -> float:
        """Return 1."""
        return 1.0


#: Names of decomposable scores, and their classes.
FAMILY_SCORES = {"aic": AIC, "bdeu": BDeu, "bic": BIC, "k2": K2, "log-likelihood": LogLikelihood}


def make_score(name: str, equivalent_sample_size: float) -> FamilyScore:
    """Return the score with a name; only BDeu has an equivalent sample size."""
    return BDeu(equivalent_sample_size) if name == "bdeu" else FAMILY_SCORES[name]()


def _log_rising(counts: AnyArray, start: float) -> FloatArray:
    """Return log G(n + start) / G(start) of each count n."""
    from scipy.special import gammaln

    terms: FloatArray = gammaln(counts + start)
    terms -= math.lgamma(start)
    return terms


def _xlogx(counts: AnyArray) -> FloatArray:
    """Return n log n of each count n above 0."""
    terms = np.empty(len(counts))
    log_all(counts.astype(np.float64), terms)
    return terms * counts
