"""
Contributions, Shapley values and permutation importance
========================================================

Compare the contributions of a network of terms with Shapley values, which packages such as SHAP estimate for any kind
of model. Six features have only 64 subsets, so the Shapley values are computed exactly here.
"""

from itertools import combinations
from math import comb

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from tanlearn import TermNetClassifier

data = load_breast_cancer(as_frame=True)
columns = ["mean radius", "mean area", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]
X, y = data.data[columns], data.target.map({0: "malignant", 1: "benign"})
X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
model = TermNetClassifier(max_parents=0).fit(X, y)
rows, background = X_test[:60].to_numpy(), X[::10].to_numpy()


def log_odds(values):
    """Return the log odds of a malignant tumor."""
    log_p = model.predict_log_proba(pd.DataFrame(values, columns=columns))
    return log_p[:, 1] - log_p[:, 0]


def value(subset):
    """Return the mean log odds of each row, with the features outside of the subset from the background rows."""
    mixed = np.repeat(background[None], len(rows), axis=0)
    mixed[:, :, subset] = rows[:, None, subset]
    return log_odds(mixed.reshape(-1, len(columns))).reshape(len(rows), -1).mean(axis=1)


def shapley_values():
    """Return the Shapley value of each row and feature, by enumeration of all subsets."""
    n = len(columns)
    subsets = [subset for size in range(n + 1) for subset in combinations(range(n), size)]
    values = {subset: value(list(subset)) for subset in subsets}
    found = np.zeros((len(rows), n))
    for subset in subsets:
        for feature in set(range(n)) - {*subset}:
            gain = values[tuple(sorted((*subset, feature)))] - values[subset]
            found[:, feature] += gain / (n * comb(n - 1, len(subset)))
    return found


def contributions(values):
    """Return the contributions of the features to the log odds of a malignant tumor."""
    return model.explain(pd.DataFrame(values, columns=columns), against="benign")[:, :-1, 1]


shapley = shapley_values()
own = contributions(rows) - contributions(background).mean(axis=0)
print(f"largest difference of a contribution and a Shapley value: {abs(own - shapley).max():.1e}")
permuted = permutation_importance(model, X_test, y_test, scoring="neg_log_loss", n_repeats=20, random_state=0)

figure, axes = plt.subplots(2, 1, figsize=(6, 7.5), layout="constrained")
figure.suptitle("Breast cancer: contributions, Shapley values and importances")
for number, name in enumerate(columns):
    axes[0].scatter(shapley[:, number], own[:, number], s=14, label=name)
axes[0].axline((0, 0), slope=1, color="#999999", zorder=0)
axes[0].set(xlabel="Shapley value (log odds)", ylabel="contribution (log odds)")
axes[0].legend(fontsize="small")
positions = np.arange(len(columns))
for shift, label, values in (
    (-0.2, "mean absolute contribution", abs(own).mean(axis=0)),
    (0.2, "permutation importance", permuted.importances_mean),
):
    axes[1].barh(positions + shift, 100 * values / values.sum(), 0.4, label=label)
axes[1].set(yticks=positions, yticklabels=columns, xlabel="percent of the sum over the features")
axes[1].invert_yaxis()
axes[1].legend(fontsize="small")

# %%
# The contributions of a network without edges are equal to the Shapley values, up to rounding, once their mean over the
# background rows is subtracted. ``explain`` needs one pass over the rows. Enumeration evaluates the model for all 64
# subsets. For models with many features, SHAP draws some of the subsets at random.
#
# If two features are connected by an edge, ``explain`` adds their joint effect to the child, and Shapley values divide
# it between both.
#
# Permutation importance answers another question: by how much does the log loss on test rows increase if the values of
# a feature are permuted? The area is most important by both measures. The smoothness contributes as much to the
# predictions as the radius, but a permutation of its values increases the log loss less than half as much.
