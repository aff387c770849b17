"""
Calibrated probabilities
========================

Compare predicted probabilities with observed frequencies. Naive Bayes is overconfident, because it counts evidence
twice that features share. Learners that hold rows out scale their scores to calibrated probabilities. A forest
weights its networks by out-of-fold predictions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from tanlearn import BayesForestClassifier, NaiveBayesClassifier, TANClassifier
from tanlearn.displays import ReliabilityDisplay

X, y = make_classification(4000, n_features=12, n_informative=5, n_redundant=6, flip_y=0.1, random_state=0)
models = {
    "naive Bayes": NaiveBayesClassifier(),
    "TAN, by gradient": TANClassifier(n_epochs=30, random_state=0),
    "BayesForest": BayesForestClassifier(n_estimators=12, random_state=0),
}

figure, axes = plt.subplots(1, 3, figsize=(13, 6.1), layout="constrained")
figure.suptitle("Accuracy over predicted probability")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X[:2000], y[:2000])
    ReliabilityDisplay.from_estimator(model, X[2000:], y[2000:], ax=ax)
    ax.set_title(name)
