"""
Rules of several features
=========================

Learn the parity of three features with a k-tree. One or two of these features alone contain no information about the
class, so a feature needs two parents to represent the rule. The other five features are noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from tanlearn import ConditionalNLL, KTreeClassifier, NaiveBayesClassifier, TANClassifier
from tanlearn.displays import StructureDisplay

rng = np.random.default_rng(0)
X = rng.integers(0, 2, (3000, 8))
y = X[:, 1] ^ X[:, 4] ^ X[:, 6]

options = {"n_epochs": 60, "loss": ConditionalNLL(), "calibrate": False, "random_state": 0}
models = {
    "naive Bayes": NaiveBayesClassifier(),
    "TAN: one parent": TANClassifier(candidates="order-free", **options),
    "k-tree: two parents": KTreeClassifier(candidates="order-free", **options),
}
errors = [100 * (1 - model.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])) for model in models.values()]

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), width_ratios=(1, 1.6), layout="constrained")
figure.suptitle("A rule of three features: errors, and the k-tree")
bars = axes[0].bar(list(models), errors, color=["#999999", "#56b4e9", "#0072b2"])
axes[0].bar_label(bars, fmt="%.1f %%", padding=3)
axes[0].axhline(50, color="black", linewidth=0.8, linestyle="--")
axes[0].set(ylabel="test error [%]", title="dashed: random guess", ylim=(0, 60))
display = StructureDisplay.from_estimator(models["k-tree: two parents"], weights=None, ax=axes[1])

# %%
# Naive Bayes and the tree are not better than guessing, because pairs of features contain no information about the
# class. The k-tree connects the three features of the rule, and makes no errors.
