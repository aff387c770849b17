"""Pictures of classifiers, in scikit-learn's manner: what is drawn is computed once, and drawn as often as one likes.

In: fitted classifiers, rows. Out: displays with ``plot(ax=None)``, ``ax_`` and ``figure_``.

They ask for Matplotlib: ``pip install "tanlearn[plot]"``.
"""

from tanlearn.displays.explanation import ExplanationDisplay
from tanlearn.displays.importance import ForestImportanceDisplay
from tanlearn.displays.pareto import ParetoDisplay
from tanlearn.displays.reliability import ReliabilityDisplay
from tanlearn.displays.structure import StructureDisplay
from tanlearn.displays.table import TableDisplay
from tanlearn.displays.training import TrainingDisplay

__all__ = [
    "ExplanationDisplay",
    "ForestImportanceDisplay",
    "ParetoDisplay",
    "ReliabilityDisplay",
    "StructureDisplay",
    "TableDisplay",
    "TrainingDisplay",
]
