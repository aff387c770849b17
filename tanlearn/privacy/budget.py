"""Privacy budgets, which limit the total privacy loss of released counts with noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tanlearn.counts.added_noise import AddedNoise
from tanlearn.estimators.table_counts import TableCounts
from tanlearn.privacy.accounting import gaussian_variance, laplace_deviation
from tanlearn.privacy.noisy_counts import n_changed_counts
from tanlearn.privacy.releases import budget_is_spent, check_seed, make_sampler, read_counts, read_loss, with_noise
from tanlearn.structures.structures import Structure

__all__ = ["PrivacyBudget"]


class PrivacyBudget:
    """Limit of the total privacy loss of one data set. Every release of counts with noise adds to the loss.

    Together, all results that are computed from released counts are (epsilon, delta)-differentially private. For any
    two data sets that differ by one row, which only one of them contains, and any set S of results,

        P(results in S | one data set) <= exp(epsilon) P(results in S | the other) + delta.

    Classifiers that are fitted to released counts, their predictions and their files have the same guarantee. The
    privacy losses of several releases add up. Use one budget for all releases of the same rows.

    Parameters
    ----------
    epsilon : float
        Maximum privacy loss, at least 1e-12. Smaller values protect better: 0.1 gives strong protection, and values
        above 3 give weak protection.
    delta : float, default=0
        Probability with which the loss may exceed epsilon, from 0 to less than 1. Use 0, or a number far below 1
        divided by the number of rows.

    Attributes
    ----------
    epsilon, delta : float
        Limits of the privacy loss.
    releases : list of AddedNoise
        Noise and privacy loss of every release.

    Raises
    ------
    ValueError
        If ``epsilon`` or ``delta`` is out of range.
    TypeError
        If ``epsilon`` or ``delta`` is not a number.

    See Also
    --------
    tanlearn.TableEncoder.declare : Declare categories and cut points without reading rows.
    tanlearn.TableCounts : Counts of rows of raw data.
    tanlearn.ConcentratedBudget : A budget for several releases, with less noise in each release.

    Notes
    -----
    One row changes one class count by 1. It also changes at most one count by 1 in each family, or for each feature and
    each pair of features. With k such changes, the noise of every count is discrete Laplace with scale k / epsilon. If
    delta permits it and the variance is lower, the noise is discrete Gaussian with variance k / (2 rho) instead, where
    rho is the loss of zero-concentrated differential privacy that implies (epsilon, delta). Replacing a row means
    removing one row and adding another, so its loss is twice epsilon.

    The noise is drawn exactly (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy"),
    because the rounding errors of floating-point noise reveal counts (Mironov 2012). Random bits come from the
    operating system.

    Losses are added exactly, as the decimal numbers that Python prints, so three releases with an epsilon of 0.1 fit
    into a budget of 0.3.

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn import NaiveBayesClassifier, PrivacyBudget, TableCounts, TableEncoder
    >>> encoder = TableEncoder().declare({"age": [20, 40, 60], "sex": ["female", "male"]})
    >>> counts = TableCounts.of_encoder(encoder, ["died", "survived"], pairs=False)
    >>> rows = pd.DataFrame({"age": [25, 47] * 100, "sex": ["female", "male"] * 100})
    >>> counts = counts.update(rows, ["survived", "died"] * 100)
    >>> budget = PrivacyBudget(epsilon=1)
    >>> released = budget.release(counts, epsilon=0.8)
    >>> model = NaiveBayesClassifier().from_counts(released)
    >>> budget
    PrivacyBudget(epsilon=1, delta=0, spent_epsilon=0.8, spent_delta=0)
    """

    def __init__(self, epsilon: float, delta: float = 0) -> None:
        self._epsilon, self._delta = read_loss(epsilon, delta)
        self.epsilon, self.delta = epsilon, delta
        self._spent = Fraction(0), Fraction(0)
        self.releases: list[AddedNoise] = []

    @property
    def spent_epsilon(self) -> float:
        """Sum of the epsilons of all losses so far."""
        return float(self._spent[0])

    @property
    def spent_delta(self) -> float:
        """Sum of the deltas of all losses so far."""
        return float(self._spent[1])

    def spend(self, epsilon: float, delta: float = 0) -> None:
        """Record a privacy loss that is caused outside this library, for example by other statistics of the same rows.

        Parameters
        ----------
        epsilon : float
            Privacy loss, at least 1e-12.
        delta : float, default=0
            Probability with which the loss may exceed epsilon.

        Raises
        ------
        ValueError
            If the loss exceeds the remaining budget, or ``epsilon`` or ``delta`` is out of range. The budget is then
            unchanged.
        TypeError
            If ``epsilon`` or ``delta`` is not a real number.
        """
        self._pay(*read_loss(epsilon, delta))

    def release(
        self,
        counts: TableCounts,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        structure: Structure | None = None,
        encoder_is_public: bool = False,
        random_state: Any = None,
    ) -> TableCounts:
        """Return counts with noise, and subtract their privacy loss from the budget.

        Parameters
        ----------
        counts : TableCounts
            Counts of rows without weights. Their categories and cut points must be declared with
            :meth:`~tanlearn.TableEncoder.declare`, not computed from these rows. The counts are not modified. Keep them
            secret.
        epsilon : float, optional
            Privacy loss of this release. By default, the whole remaining budget is spent.
        delta : float, optional
            Probability with which the loss may exceed epsilon. The default is the same fraction of its limit as
            ``epsilon``, or the whole remaining budget if ``epsilon`` is None.
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
            Counts of at least 0, and at least 1 for each class, with a record of the noise in ``noise``. The ranges of
            training values are removed from its encoder. The method ``from_counts`` of classifiers accepts the result
            like other counts.

        Raises
        ------
        ValueError
            If the loss exceeds the budget, the encoder is not declared, rows may have had weights, the counts already
            have noise, or the structure does not match the counts. The budget is then unchanged.
        TypeError
            If ``counts`` is not a TableCounts of pairs or families, or a parameter has the wrong type.

        Warns
        -----
        UserWarning
            If ``random_state`` is set.
        """
        own = read_counts(counts, structure, encoder_is_public)
        check_seed(random_state)
        loss = self._loss(epsilon, delta)
        n_changed = n_changed_counts(own)
        scale = n_changed / loss[0]
        variance = gaussian_variance(n_changed, *loss) if float(loss[1]) else None
        if variance is None or math.sqrt(variance) >= laplace_deviation(scale):
            variance, loss = None, (loss[0], Fraction(0))
        self._pay(*loss)
        sampler = make_sampler(random_state)
        if variance is None:
            noise = AddedNoise("discrete Laplace", laplace_deviation(scale), float(loss[0]), float(loss[1]))
            released = with_noise(counts, own, lambda: sampler.laplace(scale), noise)
        else:
            noise = AddedNoise("discrete Gaussian", math.sqrt(variance), float(loss[0]), float(loss[1]))
            released = with_noise(counts, own, lambda: sampler.gaussian(variance), noise)
        self.releases.append(noise)
        return released

    def _loss(self, epsilon: float | None, delta: float | None) -> tuple[Fraction, Fraction]:
        """Return epsilon and delta of a release, with defaults instead of None."""
        rest = self._epsilon - self._spent[0], self._delta - self._spent[1]
        if epsilon is None:
            if rest[0] <= 0:
                raise budget_is_spent(self.epsilon)
            return rest[0], rest[1] if delta is None else read_loss(1, delta)[1]
        loss = read_loss(epsilon, 0 if delta is None else delta)
        if delta is None:
            loss = loss[0], min(self._delta * loss[0] / self._epsilon, rest[1])
        return loss

    def _pay(self, epsilon: Fraction, delta: Fraction) -> None:
        """Add a loss, or raise ValueError if the total would exceed the budget."""
        limits = self._epsilon, self._delta
        for name, limit, spent, more in zip(("epsilon", "delta"), limits, self._spent, (epsilon, delta), strict=True):
            if spent + more > limit:
                raise ValueError(
                    f"{name} must be at most the remaining budget, {float(limit - spent)} of {float(limit)}, got "
                    f"{float(more)}. Pass a smaller value; a new budget for the same rows would weaken their "
                    f"protection."
                )
        self._spent = self._spent[0] + epsilon, self._spent[1] + delta

    def __repr__(self) -> str:
        spent = f"spent_epsilon={self.spent_epsilon:g}, spent_delta={self.spent_delta:g}"
        return f"PrivacyBudget(epsilon={self.epsilon:g}, delta={self.delta:g}, {spent})"
