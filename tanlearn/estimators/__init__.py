"""The scikit-learn classifiers.

In: raw rows and classes (``fit``, ``partial_fit``), raw rows (``predict`` and its kin). Out: classes, probabilities,
and whatever else a fitted model tells, draws, or writes.
"""

from tanlearn.estimators.base import Classifier
from tanlearn.estimators.composed import BayesNetClassifier, NaiveBayesClassifier, StructureLearner
from tanlearn.estimators.gradient_tan import TANClassifier

__all__ = ["BayesNetClassifier", "Classifier", "NaiveBayesClassifier", "StructureLearner", "TANClassifier"]
