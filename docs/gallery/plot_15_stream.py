"""
Training on a stream
====================

Train on batches of rows with ``partial_fit``. Learners based on counts add the counts of each batch, so the final model
equals a model that is fitted to all rows at once. Here, each batch is predicted before the model is trained on it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from tanlearn import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.baselines import ChowLiu

X, y = make_classification(20_000, n_features=15, n_informative=6, n_redundant=5, n_classes=4, random_state=2)
X = np.digitize(X, np.linspace(-2, 2, 6))  # codes, so that all batches have the same intervals
models = {"naive Bayes": NaiveBayesClassifier(), "Chow-Liu tree": BayesNetClassifier(structure=ChowLiu())}
errors = {name: [] for name in models}
portions = np.array_split(np.arange(len(X)), 80)
for number, rows in enumerate(portions):
    for name, model in models.items():
        if number:
            errors[name].append(100 * (1 - model.score(X[rows], y[rows])))
        model.partial_fit(X[rows], y[rows], classes=np.arange(4))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
figure.suptitle("Errors on the next batches over training rows")
n_trained = np.cumsum([len(rows) for rows in portions])[:-1]
for name, color in zip(models, ["#999999", "#0072b2"], strict=True):
    smooth = np.convolve(errors[name], np.ones(5) / 5, mode="valid")
    ax.plot(n_trained[2:-2], smooth, color=color, label=name)
ax.set(xlabel="training rows", ylabel="error on the next batches [%]")
ax.legend()
ax.grid(alpha=0.3)

# %%
# Naive Bayes has few parameters, and its error hardly changes after the first batch. The tree needs a few thousand rows
# to reach its lowest error, and has a clearly lower error than naive Bayes from the second batch on.
