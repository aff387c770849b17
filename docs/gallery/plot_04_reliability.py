"""
Calibrated probabilities
========================

Compare predicted probabilities with accuracies on handwritten digits. On the diagonal, predictions with a probability
of 80 % are correct in 80 % of the cases. Half of the rows are held out for the plots.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from tanlearn import BayesForestClassifier, NaiveBayesClassifier, TANClassifier
from tanlearn.displays import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 2, stratify=y, random_state=0)
models = {
    "naive Bayes": NaiveBayesClassifier(),
    "gradient TAN": TANClassifier(random_state=0),
    "BayesForest": BayesForestClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}

figure, axes = plt.subplots(2, 2, figsize=(9, 12), layout="constrained")
figure.suptitle("Handwritten digits: accuracy over predicted probability")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    ReliabilityDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(name)
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name}: accuracy {model.score(X_test, y_test):.3f}, log loss {loss:.3f}")

# %%
# Naive Bayes is overconfident, because neighboring pixels share evidence, which it counts twice. The random forest is
# as accurate as BayesForest, but underconfident: predictions with a probability of 70 % are nearly always correct.
# Gradient TAN fits a temperature to held-out rows, and BayesForest fits its weights to out-of-fold predictions. Both
# have small calibration errors. Bins far from 1 contain few rows. The log loss of the random forest is over three times
# as high as the log loss of BayesForest.
