"""The scikit-learn classifiers.

The classifiers are fitted to raw rows and class labels (``fit``, ``partial_fit``, ``fit_batches``) or to counts
(``from_counts``). They predict classes and probabilities of raw rows, and they describe, plot and save the fitted
model.
"""

from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier, StructureLearner
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.estimators.naive_bayes import NaiveBayesClassifier

__all__ = ["BayesNetClassifier", "Classifier", "NaiveBayesClassifier", "StructureLearner", "TANClassifier"]
