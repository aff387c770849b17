"""Plots of classifiers and their results, similar to scikit-learn's displays.

A display computes the plotted values once. Its method ``plot(ax=None)`` can be called any number of times. The method
sets the attributes ``ax_`` and ``figure_``. Displays need Matplotlib: ``pip install "tanlearn[plot]"``.
"""

from tanlearn.displays.acquisition import AcquisitionCurveDisplay
from tanlearn.displays.comparison import CriticalDifferenceDisplay, PairedErrorsDisplay
from tanlearn.displays.contribution import ContributionDisplay
from tanlearn.displays.convergence import ConvergenceDisplay
from tanlearn.displays.explanation import ExplanationDisplay
from tanlearn.displays.feature_values import FeatureValues
from tanlearn.displays.forest import ForestImportanceDisplay
from tanlearn.displays.pair_contribution import PairContributionDisplay
from tanlearn.displays.pareto import ParetoDisplay
from tanlearn.displays.reliability import ReliabilityDisplay
from tanlearn.displays.structure import StructureDisplay
from tanlearn.displays.table import TableDisplay
from tanlearn.displays.training import TrainingDisplay

__all__ = [
    "AcquisitionCurveDisplay",
    "ContributionDisplay",
    "ConvergenceDisplay",
    "CriticalDifferenceDisplay",
    "ExplanationDisplay",
    "FeatureValues",
    "ForestImportanceDisplay",
    "PairContributionDisplay",
    "PairedErrorsDisplay",
    "ParetoDisplay",
    "ReliabilityDisplay",
    "StructureDisplay",
    "TableDisplay",
    "TrainingDisplay",
]
