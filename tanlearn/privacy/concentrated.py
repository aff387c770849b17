"""Privacy budgets in which losses are added as zero-concentrated differential privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from tanlearn.counts.added_noise import AddedNoise
from tanlearn.estimators.table_counts import TableCounts
from tanlearn.privacy.accounting import largest_rho, least_epsilon, variance_of_rho
from tanlearn.privacy.noisy_counts import n_changed_counts
from tanlearn.privacy.releases import budget_is_spent, check_seed, make_sampler, read_counts, read_loss, with_noise
from tanlearn.structures.structures import Structure

__all__ = ["ConcentratedBudget"]


class ConcentratedBudget:
    """Limit of the privacy loss of one data set for several releases of counts with discrete Gaussian noise.

    Together, all releases are (epsilon, delta)-differentially private, as with :class:`~tanlearn.PrivacyBudget`. Losses
    are added as zero-concentrated differential privacy (zCDP). If there are many columns and several releases, this
    requires less noise than adding epsilons and deltas.

    Parameters
    ----------
    epsilon : float
        Maximum privacy loss of all releases together, at least 1e-12.
    delta : float
        Probability with which the loss may exceed epsilon, above 0 and below 1. Use a number far below 1 divided by the
        number of rows.

    Attributes
    ----------
    epsilon, delta : float
        The limits.
    releases : list of AddedNoise
        Noise of every release. The recorded epsilon is that of the release alone, for the delta of the budget.

    Raises
    ------
    ValueError
        If ``epsilon`` or ``delta`` is out of range.
    TypeError
        If ``epsilon`` or ``delta`` is not a number.

    See Also
    --------
    tanlearn.PrivacyBudget : A budget for one release, or without delta.

    Notes
    -----
    Let D and D' be any two data sets that differ by one row, which only one of them contains. A release is rho-zCDP if
    the Renyi divergence of order alpha between its results for D and for D' is at most rho alpha for all alpha > 1. The
    losses rho of several releases add up, even if a release depends on the results of earlier ones (Bun and Steinke
    2016, lemma 2.3). If one row changes k counts by 1, discrete Gaussian noise on the counts is rho-zCDP with

        rho = k / (2 variance)                  (Canonne, Kamath and Steinke 2020, theorem 14),

    and rho-zCDP implies (epsilon, delta)-differential privacy for every epsilon, with

        delta = min over alpha > 1 of exp((alpha - 1) (alpha rho - epsilon)) / (alpha - 1) (1 - 1 / alpha)^alpha

    (corollary 13). The budget is the largest rho for which this delta does not exceed the given delta. If the budget is
    divided equally between two releases, the noise has about half the variance of discrete Gaussian noise with a
    :class:`~tanlearn.PrivacyBudget`. If one row changes few counts, discrete Laplace noise can have a lower variance
    still.

    Examples
    --------
    >>> from tanlearn import ConcentratedBudget, TableCounts, TableEncoder
    >>> encoder = TableEncoder().declare({"age": [20, 40, 60], "sex": ["female", "male"]})
    >>> counts = TableCounts.of_encoder(encoder, ["died", "survived"])
    >>> budget = ConcentratedBudget(epsilon=1, delta=1e-6)
    >>> first, second = budget.release(counts, part=0.3), budget.release(counts)
    >>> [round(noise.standard_deviation, 1) for noise in budget.releases]
    [16.5, 10.8]
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        loss = read_loss(epsilon, delta)
        if not loss[1]:
            raise ValueError("delta must be above 0, got 0. Pass 1e-6, for example, or use PrivacyBudget.")
        self.epsilon, self.delta = epsilon, delta
        self._rho = Fraction(largest_rho(float(loss[0]), float(loss[1])))
        self._spent = Fraction(0)
        self.releases: list[AddedNoise] = []

    @property
    def rho(self) -> float:
        """Limit of the total loss, in terms of zero-concentrated differential privacy."""
        return float(self._rho)

    @property
    def spent_rho(self) -> float:
        """Sum of all losses so far."""
        return float(self._spent)

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all losses so far together, for the delta of the budget."""
        return self._epsilon_of(self._spent)

    def spend(self, rho: float) -> None:
        """Record a privacy loss that is caused outside this library, for example by other statistics of the same rows.

        Parameters
        ----------
        rho : float
            Privacy loss, above 0. A statistic that is (epsilon, 0)-differentially private has a loss of at most epsilon
            ** 2 / 2.

        Raises
        ------
        ValueError
            If ``rho`` exceeds the remaining budget or is out of range. The budget is then unchanged.
        TypeError
            If ``rho`` is not a number.
        """
        self._pay(_positive(rho, "rho"))

    def release(
        self,
        counts: TableCounts,
        *,
        part: float | None = None,
        structure: Structure | None = None,
        encoder_is_public: bool = False,
        random_state: Any = None,
    ) -> TableCounts:
        """Return counts with discrete Gaussian noise, and subtract their privacy loss from the budget.

        Parameters
        ----------
        counts : TableCounts
            Counts of rows, as in :meth:`~tanlearn.PrivacyBudget.release`.
        part : float, optional
            Fraction of the total rho to spend, above 0 and at most 1. By default, the whole remaining budget is spent.
        structure : Structure, optional
            If a structure is given, only the counts of its families are released. They need less noise than the counts
            of all pairs. The structure must not be learned from the same rows, except from released counts.
        encoder_is_public : bool, default=False
            Pass True to confirm that undeclared categories and cut points were fitted to public data, not to the
            counted rows.
        random_state : int, optional
            Seed that makes the noise reproducible. Use it only in tests: anyone with the seed can subtract the noise,
            so there is no privacy guarantee.

        Returns
        -------
        TableCounts
            Counts of at least 0, and at least 1 for each class, with a record of the noise in ``noise``.

        Raises
        ------
        ValueError
            If the loss exceeds the budget, or the counts cannot be protected (see
            :meth:`~tanlearn.PrivacyBudget.release`). The budget is then unchanged.
        TypeError
            If ``counts`` is not a TableCounts of pairs or families, or a parameter has the wrong type.

        Warns
        -----
        UserWarning
            If ``random_state`` is set.
        """
        own = read_counts(counts, structure, encoder_is_public)
        check_seed(random_state)
        rho = self._rho - self._spent if part is None else _positive(part, "part") * self._rho
        if rho <= 0:
            raise budget_is_spent(self.epsilon)
        variance = variance_of_rho(n_changed_counts(own), rho)
        self._pay(rho)
        noise = AddedNoise("discrete Gaussian", math.sqrt(variance), self._epsilon_of(rho), float(self.delta))
        sampler = make_sampler(random_state)
        released = with_noise(counts, own, lambda: sampler.gaussian(variance), noise)
        self.releases.append(noise)
        return released

    def _epsilon_of(self, rho: Fraction) -> float:
        """Return the epsilon of a loss for the delta of the budget, limited to the epsilon of the budget."""
        if rho >= self._rho:
            return float(self.epsilon)
        return least_epsilon(float(rho), float(self.delta)) if rho else 0.0

    def _pay(self, rho: Fraction) -> None:
        """Add a loss, or raise ValueError if the total would exceed the budget."""
        rest = self._rho - self._spent
        if rho > rest:
            raise ValueError(
                f"rho must be at most the remaining budget, {float(rest):.3g} of {self.rho:.3g} "
                f"(part={float(rest / self._rho):.3g}), got {float(rho):.3g}. Pass a smaller value; a new budget "
                f"for the same rows would weaken their protection."
            )
        self._spent += rho

    def __repr__(self) -> str:
        loss = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"ConcentratedBudget({loss}, rho={self.rho:.3g}, spent_rho={self.spent_rho:.3g})"


def _positive(value: Any, name: str) -> Fraction:
    """Return a positive finite number as a fraction, converted from its decimal representation."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be finite and positive, got {value}.")
    return Fraction(value) if isinstance(value, Integral | Fraction) else Fraction(repr(float(value)))
