"""Comparison of learners on the same splits of data sets: errors, times and sizes, with tests of the differences.

A cell is the result of one learner on one fold of one repeat of a data set. :func:`compare` computes the cells, and
:class:`Comparison` stores them.
"""

from tanlearn.comparison.comparison import Comparison
from tanlearn.comparison.means import MeanResult
from tanlearn.comparison.protocol import check_folds
from tanlearn.comparison.results import CellResult
from tanlearn.comparison.running import Progress, compare
from tanlearn.comparison.statistics import EquivalenceTest, PairedTest, Ranks, SignedRanksTest, WinTieLoss

__all__ = [
    "CellResult",
    "Comparison",
    "EquivalenceTest",
    "MeanResult",
    "PairedTest",
    "Progress",
    "Ranks",
    "SignedRanksTest",
    "WinTieLoss",
    "check_folds",
    "compare",
]
