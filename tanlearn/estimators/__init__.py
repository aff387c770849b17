"""The scikit-learn classifiers.

The classifiers are fitted to raw rows and class labels (``fit``, ``partial_fit``, ``fit_batches``) or to counts
(``from_counts``). They predict classes and probabilities of raw rows, and they describe, plot and save the fitted
model.
"""

from typing import TYPE_CHECKING

from tanlearn._lazy_names import lazy_names

if TYPE_CHECKING:
    from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier, StructureLearner
    from tanlearn.estimators.classifier import Classifier
    from tanlearn.estimators.gradient_tan import TANClassifier
    from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BayesNetClassifier": "tanlearn.estimators.bayes_net_classifier",
            "Classifier": "tanlearn.estimators.classifier",
            "NaiveBayesClassifier": "tanlearn.estimators.naive_bayes",
            "StructureLearner": "tanlearn.estimators.bayes_net_classifier",
            "TANClassifier": "tanlearn.estimators.gradient_tan",
        },
    )

__all__ = [
    "BayesNetClassifier",
    "Classifier",
    "NaiveBayesClassifier",
    "StructureLearner",
    "TANClassifier",
]
