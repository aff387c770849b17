"""Tests for differences between learners, on one data set and over several data sets.

[D] Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
[NB] Nadeau, Bengio: Inference for the generalization error. Machine Learning 52, 2003.
[B] Benavoli, Corani, Demsar, Zaffalon: Time for a change: a tutorial for comparing multiple classifiers through
Bayesian analysis. JMLR 18, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tanlearn._rank_tests import nemenyi_test, with_ties
from tanlearn._typing import FloatArray, IntArray

__all__ = [
    "EquivalenceTest",
    "PairedTest",
    "Ranks",
    "SignedRanksTest",
    "WinTieLoss",
    "corrected_t_test",
    "equivalence_probabilities",
    "holm",
    "require",
    "signed_ranks_p",
]

#: Number of posterior samples. The standard error of the probabilities is then at most 0.4 percentage points.
N_SAMPLES = 20_000


@dataclass(frozen=True)
class PairedTest:
    """Corrected resampled t-test of two learners on one data set.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    first, second : str
        Names of the learners.
    n_splits : int
        Number of splits in which both learners have a value of the measure.
    difference : float
        Mean of the first learner minus mean of the second learner, in units of the measure.
    low, high : float
        95 % confidence interval for the difference.
    p_value : float
        Two-sided p-value for the hypothesis of equal means.
    p_holm : float
        The p-value after Holm's correction for all learners that are compared with ``second`` on the data set.
    """

    dataset: str
    first: str
    second: str
    n_splits: int
    difference: float
    low: float
    high: float
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class SignedRanksTest:
    """Wilcoxon signed-ranks test of two learners over data sets.

    Parameters
    ----------
    first, second : str
        Names of the learners.
    n_datasets : int
        Number of data sets on which both learners are complete.
    difference : float
        Mean of the first learner minus mean of the second learner, averaged over the data sets, in units of the
        measure.
    p_value : float
        Two-sided p-value.
    p_holm : float
        The p-value after Holm's correction for all learners that are compared with ``second``.
    """

    first: str
    second: str
    n_datasets: int
    difference: float
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class EquivalenceTest:
    """Bayesian signed-ranks test of two learners over data sets, with a region of practical equivalence.

    Parameters
    ----------
    first, second : str
        Names of the learners.
    n_datasets : int
        Number of data sets on which both learners are complete.
    rope : float
        Largest difference that counts as equal, in units of the measure.
    better, equal, worse : float
        Posterior probabilities that the first learner is better than, practically equal to, and worse than the second.
    """

    first: str
    second: str
    n_datasets: int
    rope: float
    better: float
    equal: float
    worse: float


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean ranks of learners over data sets, with the Friedman test and the critical difference of Nemenyi.

    Parameters
    ----------
    learners : list of str
        Names of the learners.
    mean_ranks : ndarray of shape (n_learners,)
        Mean rank of each learner. Rank 1 is best, and tied learners share the mean of their ranks.
    datasets, left_out : list of str
        Names of the data sets on which learners are ranked, and of the data sets that are left out because a ranked
        learner is not complete.
    chi2, p_value : float
        Friedman's statistic, corrected for ties, and the p-value of its correction by Iman and Davenport ([D], section
        3.2.2); NaN for two learners.
    alpha, critical_difference : float
        Significance level, and the difference above which two mean ranks differ significantly.
    values : ndarray of shape (n_datasets, n_learners)
        Means that are ranked. AUC is negated, so that smaller values are better.
    learners_left_out : list of str
        Names of the learners that are not ranked, because they are not complete on any data set.
    """

    learners: list[str]
    mean_ranks: FloatArray
    datasets: list[str]
    left_out: list[str]
    chi2: float
    p_value: float
    alpha: float
    critical_difference: float
    values: FloatArray = field(repr=False)
    learners_left_out: list[str] = field(default_factory=list)

    def nemenyi(self) -> FloatArray:
        """Compute the p-values of Nemenyi's test for all pairs of learners.

        Returns
        -------
        ndarray of shape (n_learners, n_learners)

        Raises
        ------
        ImportError
            If scikit-posthocs is not installed.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> ranks = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML", "AODE"], n_folds=3).ranks()
        >>> bool(ranks.nemenyi().min() > 0.05)  # two data sets are too few for a conclusion
        True
        """
        return nemenyi_test(self.values)


@dataclass(frozen=True, eq=False)
class WinTieLoss:
    """Wins, ties and losses of learners against each other, counted over data sets.

    Parameters
    ----------
    learners : list of str
        Names of the learners.
    wins, ties, losses : ndarray of shape (n_learners, n_learners)
        Number of data sets on which the learner of the row is better than, not different from, and worse than the
        learner of the column.
    """

    learners: list[str]
    wins: IntArray
    ties: IntArray
    losses: IntArray


def require(module: str, what: str) -> Any:
    """Import a package of the extra ``compare``, or raise ImportError with the command that installs it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.replace("_", "-")
        raise ImportError(f'{what} needs {name}. Install it with: pip install "tanlearn[compare]"') from error


def corrected_t_test(differences: FloatArray, test_share: float) -> tuple[float, float]:
    """Return the two-sided p-value and the half width of the 95 % interval for a mean difference over splits.

    The variance of the mean of J differences is (1/J + n_test/n_train) times their variance, because training sets
    overlap ([NB], section 6). ``test_share`` is n_test/n_train.
    """
    from scipy.stats import t as student

    n = len(differences)
    variance = (1.0 / n + test_share) * float(np.var(differences, ddof=1))
    mean = float(np.mean(differences))
    if np.ptp(differences) == 0.0:
        return float(mean == 0.0), 0.0
    scale = float(np.sqrt(variance))
    return float(2.0 * student.sf(abs(mean) / scale, n - 1)), float(student.ppf(0.975, n - 1)) * scale


def holm(p_values: FloatArray) -> FloatArray:
    """Return p-values after Holm's step-down correction."""
    order = np.argsort(p_values, kind="stable")
    n = len(order)
    found = np.empty(n)
    found[order] = np.maximum.accumulate(p_values[order] * np.arange(n, 0, -1)).clip(max=1.0)
    return found


def signed_ranks_p(differences: FloatArray) -> float:
    """Return the p-value of Wilcoxon's test. The ranks of zero differences are divided evenly ([D], section 3.1.3)."""
    from scipy.stats import wilcoxon

    differences = with_ties(differences)
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="zsplit").pvalue)


def equivalence_probabilities(differences: FloatArray, rope: float) -> tuple[float, float, float]:
    """Return the posterior probabilities of a negative, a small and a positive difference ([B], section 4.2)."""
    baycomp = require("baycomp", "the Bayesian signed-ranks test")
    options = {"rope": rope, "nsamples": N_SAMPLES, "random_state": 0}
    found = baycomp.SignedRankTest.probs(differences, np.zeros(len(differences)), **options)
    # "Left" is the probability that the first argument, the differences, exceeds zero by more than the rope.
    positive, small, negative = found if rope > 0 else (found[0], 0.0, found[1])
    return float(negative), float(small), float(positive)
