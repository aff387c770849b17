"""Results of a comparison, with tests for differences between learners."""

from __future__ import annotations

import numpy as np

from tanlearn._rank_tests import critical_difference, friedman_test, ranks_of, with_ties
from tanlearn._typing import FloatArray
from tanlearn.comparison.report import REPORT_FORMATS, write_report
from tanlearn.comparison.results import find_measure
from tanlearn.comparison.statistics import (
    EquivalenceTest,
    PairedTest,
    Ranks,
    SignedRanksTest,
    WinTieLoss,
    corrected_t_test,
    equivalence_probabilities,
    holm,
    signed_ranks_p,
)
from tanlearn.comparison.stored_cells import StoredCells

__all__ = ["Comparison"]


class Comparison(StoredCells):
    """Results of several learners on the same splits of data sets.

    Comparisons are returned by :func:`tanlearn.comparison.compare`, or read from a file by :meth:`load`.

    Parameters
    ----------
    cells : iterable of CellResult
        Finished cells, one for each data set, learner, repeat and fold.

    Attributes
    ----------
    cells : tuple of CellResult
        The cells.
    datasets, learners : list of str
        Names of the data sets and learners, in the order of the cells.

    Examples
    --------
    >>> from tanlearn.comparison import Comparison, compare
    >>> comparison = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3)
    >>> comparison.save("results.csv")
    >>> Comparison.load("results.csv")
    Comparison(2 data sets, 2 learners, 12 cells)
    >>> comparison.failures
    []
    """

    def paired(self, reference: str, measure: str = "error") -> list[PairedTest]:
        """Compare all learners with one learner on each data set, with the corrected resampled t-test.

        The t-test of Nadeau and Bengio (2003) takes the overlap of the training sets into account: with J splits, the
        variance of the mean difference is (1/J + n_test/n_train) times the variance of the differences.

        Parameters
        ----------
        reference : str
            Name of the learner with which all others are compared.
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.

        Returns
        -------
        list of PairedTest
            One test per data set and learner. Data sets on which the two learners have fewer than two common splits are
            left out.

        Raises
        ------
        ValueError
            If there is no such learner or measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> (test,) = compare("wine", ["NB ML", "TAN-CMI ML"], n_repeats=2).paired("NB ML")
        >>> test.first, test.second, test.n_splits, round(test.difference, 1), bool(test.p_value > 0.05)
        ('TAN-CMI ML', 'NB ML', 10, 2.0, True)
        """
        base, which = self._number(reference), find_measure(measure)
        found = []
        for dataset in self.datasets:
            values = self.values(dataset, which.name)
            others = [i for i in range(len(self.learners)) if i != base and _n_pairs(values[[i, base]]) > 1]
            tests = [self._test(dataset, values[i] - values[base]) for i in others]
            adjusted = holm(np.array([p for p, _ in tests]))
            for i, (p, width), p_holm in zip(others, tests, adjusted.tolist(), strict=True):
                difference = float(np.nanmean(values[i] - values[base]))
                names, n_splits = (self.learners[i], reference), _n_pairs(values[[i, base]])
                interval = difference - width, difference + width
                found.append(PairedTest(dataset, *names, n_splits, difference, *interval, p, p_holm))
        return found

    def best(self, measure: str = "error", alpha: float = 0.05) -> dict[str, list[str]]:
        """Find the learners that are not significantly worse than the best learner, on each data set.

        The learner with the best mean is compared with every other learner by the corrected resampled t-test. The
        p-values are corrected by Holm's method.

        Parameters
        ----------
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.
        alpha : float, default=0.05
            Significance level.

        Returns
        -------
        dict of str to list of str
            For each data set, the names of these learners, starting with the best mean. The list is empty for a data
            set with a single split, because no test is possible.

        Raises
        ------
        ValueError
            If there is no such measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare("digits", ["NB ML", "TAN-CMI ML", "AODE"]).best()
        {'digits': ['AODE']}
        """
        which = find_measure(measure)
        found: dict[str, list[str]] = {}
        for dataset, means in zip(self.datasets, self.mean(which.name), strict=True):
            order = [i for i in np.argsort(which.better(means), kind="stable").tolist() if not np.isnan(means[i])]
            values = self.values(dataset, which.name)
            if not order or values.shape[1] < 2:
                found[dataset] = []
                continue
            p = holm(np.array([self._test(dataset, values[i] - values[order[0]])[0] for i in order[1:]]))
            found[dataset] = [
                self.learners[i] for i, own in zip(order, [1.0, *p.tolist()], strict=True) if own >= alpha
            ]
        return found

    def signed_ranks(self, reference: str, measure: str = "error") -> list[SignedRanksTest]:
        """Compare all learners with one learner over the data sets, with Wilcoxon's signed-rank test.

        The p-values are computed by :func:`scipy.stats.wilcoxon` and corrected by Holm's method (Demsar 2006).

        Parameters
        ----------
        reference : str
            Name of the learner with which all others are compared.
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.

        Returns
        -------
        list of SignedRanksTest
            One test per learner. A learner is left out if it shares no complete data set with the reference.

        Raises
        ------
        ValueError
            If there is no such learner or measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3).signed_ranks("NB ML")[0].n_datasets
        2
        """
        found = self._differences(reference, measure)
        p_values = np.array([signed_ranks_p(differences) for _, differences in found])
        return [
            SignedRanksTest(learner, reference, len(differences), float(differences.mean()), float(p), float(p_holm))
            for (learner, differences), p, p_holm in zip(found, p_values, holm(p_values), strict=True)
        ]

    def equivalence(self, reference: str, rope: float | None = None, measure: str = "error") -> list[EquivalenceTest]:
        """Compute the probabilities that learners are better than, equal to, or worse than one learner.

        The probabilities are for a new data set. They are computed by the Bayesian signed-ranks test of baycomp
        (Benavoli et al. 2017). With fewer than six data sets, the probabilities are far too close to 0 and 1, and
        reports leave them out.

        Parameters
        ----------
        reference : str
            Name of the learner with which all others are compared.
        rope : float, optional
            Largest difference that counts as equal, in units of the measure. The default is one percentage point for
            errors; 0.01 for log loss, Brier score and AUC; and 0 for times and sizes.
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.

        Returns
        -------
        list of EquivalenceTest
            One test per learner. A learner is left out if it shares no complete data set with the reference.

        Raises
        ------
        ImportError
            If baycomp is not installed.
        ValueError
            If there is no such learner or measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> (test,) = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3).equivalence("NB ML")
        >>> round(test.better + test.equal + test.worse, 6)
        1.0
        """
        which = find_measure(measure)
        rope = which.rope if rope is None else rope
        found = []
        for learner, differences in self._differences(reference, measure):
            outcome = equivalence_probabilities(which.better(differences), rope)
            found.append(EquivalenceTest(learner, reference, len(differences), rope, *outcome))
        return found

    def ranks(self, measure: str = "error", alpha: float = 0.05) -> Ranks:
        """Rank the learners over the data sets, with Friedman's and Nemenyi's tests.

        Parameters
        ----------
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.
        alpha : float, default=0.05
            Significance level of the critical difference.

        Returns
        -------
        Ranks

        Raises
        ------
        ValueError
            If fewer than two learners are complete on at least one data set, or if these learners are all complete on
            fewer than two data sets.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> ranks = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML", "AODE"], n_folds=3).ranks()
        >>> ranks.mean_ranks
        array([1.5, 2.5, 2. ])
        >>> round(ranks.critical_difference, 2)
        2.34
        """
        which = find_measure(measure)
        values = which.better(self.mean(which.name))
        is_ranked = np.logical_not(np.isnan(values).all(axis=0))
        is_complete = np.logical_not(np.isnan(values[:, is_ranked]).any(axis=1))
        if is_complete.sum() < 2 or is_ranked.sum() < 2:
            raise ValueError(
                f"ranks need at least two learners, and two data sets on which all learners have finished every "
                f"split. There are {is_ranked.sum()} learner(s) with results, and {is_complete.sum()} of "
                f"{len(self.datasets)} data sets are complete. Add data sets, or leave out learners that have failed."
            )
        values = with_ties(values[np.ix_(is_complete, is_ranked)])
        return Ranks(
            [name for name, own in zip(self.learners, is_ranked, strict=True) if own],
            ranks_of(values).mean(axis=0),
            [name for name, own in zip(self.datasets, is_complete, strict=True) if own],
            [name for name, own in zip(self.datasets, is_complete, strict=True) if not own],
            *friedman_test(values),
            alpha,
            critical_difference(len(values), values.shape[1], alpha),
            values,
            [name for name, own in zip(self.learners, is_ranked, strict=True) if not own],
        )

    def win_tie_loss(self, measure: str = "error", alpha: float | None = 0.05) -> WinTieLoss:
        """Count wins, ties and losses of learners against each other over the data sets.

        Parameters
        ----------
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.
        alpha : float or None, default=0.05
            Significance level of the t-test on each data set (see :meth:`paired`), after Holm's correction for all
            learners that are compared with the learner of the column. Data sets with a single split are ties. If None,
            means are compared without a test.

        Returns
        -------
        WinTieLoss

        Raises
        ------
        ValueError
            If there is no such measure.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> comparison = compare(["digits", "wine"], ["NB ML", "AODE"], n_folds=3)
        >>> comparison.win_tie_loss().wins
        array([[0, 0],
               [1, 0]])
        """
        which, n = find_measure(measure), len(self.learners)
        wins, ties, losses = (np.zeros((n, n), np.intp) for _ in range(3))
        values = {dataset: self.values(dataset, which.name) for dataset in self.datasets}
        for j, reference in enumerate(self.learners):
            tests = [] if alpha is None else self.paired(reference, which.name)
            differ = {(test.dataset, test.first) for test in tests if alpha is not None and test.p_holm < alpha}
            for i, learner in enumerate(self.learners):
                for dataset, own in values.items():
                    if i != j and _n_pairs(own[[i, j]]):
                        mean = np.nanmean(which.better(own[i] - own[j]))
                        is_tie = mean == 0 or (alpha is not None and (dataset, learner) not in differ)
                        wins[i, j] += mean < 0 and not is_tie
                        ties[i, j] += is_tie
                        losses[i, j] += mean > 0 and not is_tie
        return WinTieLoss(list(self.learners), wins, ties, losses)

    def report(
        self,
        measure: str = "error",
        *,
        reference: str | None = None,
        alpha: float = 0.05,
        rope: float | None = None,
        format: str = "markdown",
    ) -> str:
        """Write a report with a table of means, tests on single data sets and over all data sets, and costs.

        Parameters
        ----------
        measure : str, default="error"
            Field of :class:`~tanlearn.comparison.CellResult`.
        reference : str, optional
            Learner with which all others are compared. The default is the learner with the best mean rank.
        alpha : float, default=0.05
            Significance level.
        rope : float, optional
            Largest difference that counts as equal in the Bayesian test, in units of the measure (see
            :meth:`equivalence`).
        format : {"markdown", "latex", "csv"}, default="markdown"
            Markdown, LaTeX tables for the package booktabs, or comma-separated values. The latter have one row per data
            set and learner, with the mean, the standard deviation, whether the learner is among the best, and the
            fields of the :class:`~tanlearn.comparison.PairedTest` against the reference.

        Returns
        -------
        str
            The report. Means in bold are not significantly worse than the best mean (see :meth:`best`).

        Raises
        ------
        ValueError
            If there are no cells, or no such learner, measure or format.

        Examples
        --------
        >>> from tanlearn.comparison import compare
        >>> print(compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3).report())
        # Comparison of 2 learners on 2 data sets
        ...
        """
        if not self.cells:
            raise ValueError("a report needs finished cells, but there are none. Run the comparison first.")
        if reference is not None:
            self._number(reference)
        if format not in REPORT_FORMATS:
            raise ValueError(f"format must be one of {', '.join(map(repr, REPORT_FORMATS))}, got {format!r}.")
        return write_report(self, find_measure(measure), reference, alpha, rope, format)

    def _test(self, dataset: str, differences: FloatArray) -> tuple[float, float]:
        """Return the p-value and the half width of the interval for differences over splits, or NaN without a test."""
        cells = self._of[dataset]
        test_share = sum(cell.n_test for cell in cells) / sum(cell.n_train for cell in cells)
        return corrected_t_test(differences[~np.isnan(differences)], test_share)

    def _differences(self, reference: str, measure: str) -> list[tuple[str, FloatArray]]:
        """Return, for each learner, the differences from the reference on the data sets on which both are complete."""
        base, means = self._number(reference), self.mean(measure)
        found = [(learner, means[:, i] - means[:, base]) for i, learner in enumerate(self.learners) if i != base]
        return [(learner, own[~np.isnan(own)]) for learner, own in found if not np.isnan(own).all()]


def _n_pairs(values: FloatArray) -> int:
    """Return the number of splits in which two learners both have a value."""
    return int((~np.isnan(values).any(axis=0)).sum())
