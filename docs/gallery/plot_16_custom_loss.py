"""
Custom losses
=============

Train with your own loss: any object that maps scores to a loss and its gradient. In this loss, a missed malignant
tumor costs twenty times as much as a false alarm.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import ConfusionMatrixDisplay

from tanlearn import ConditionalNLL, TANClassifier
from tanlearn.checks import check_loss


class CostlyErrors:
    """Conditional likelihood with a weight for each class."""

    def __init__(self, weights):
        self.weights = np.asarray(weights, float)

    def value_and_gradient(self, scores, y):
        """Return the loss of each row, and its gradient with respect to the scores."""
        rows, weight = np.arange(len(y)), self.weights[y]
        d_scores = softmax(scores, axis=1)
        d_scores[rows, y] -= 1
        return -weight * log_softmax(scores, axis=1)[rows, y], weight[:, np.newaxis] * d_scores


check_loss(CostlyErrors([1, 20]), n_classes=2)  # compares the gradient with finite differences

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.filter(like="error")  # variation among the cells of a patient: the least informative features
y = y.map({0: "malignant", 1: "benign"})  # in sorted order, benign is first
losses = {"conditional likelihood": ConditionalNLL(), "costs": CostlyErrors([1, 20])}

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
figure.suptitle("Confusion matrices of two losses")
for ax, (name, loss) in zip(axes, losses.items(), strict=True):
    model = TANClassifier(loss=loss, n_epochs=60, calibrate=False, random_state=0).fit(X[::2], y[::2])
    ConfusionMatrixDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax, colorbar=False, cmap="Blues")
    ax.set_title(f"trained for {name}")

# %%
# The second model misses 20 instead of 32 malignant tumors, and raises 33 instead of 11 false alarms. For most tasks, a
# threshold on the probabilities has the same effect and is simpler (:doc:`/guide/imbalance`).
