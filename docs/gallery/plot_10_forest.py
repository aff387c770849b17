"""
BayesForest and other learners
==============================

Compare a ``BayesForestClassifier`` with a random forest, gradient boosting and logistic regression, all with their
defaults. Errors and log losses are means over five folds of three small, numeric data sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tanlearn import BayesForestClassifier

tables = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
}
models = {
    "BayesForest": BayesForestClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "gradient boosting": HistGradientBoostingClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
scores = {
    (table, name): cross_validate(model, *rows, scoring=("accuracy", "neg_log_loss"), cv=5)
    for table, rows in tables.items()
    for name, model in models.items()
}

figure, axes = plt.subplots(2, 1, figsize=(7, 7), layout="constrained")
figure.suptitle("Three data sets: errors and log losses of four learners")
positions = np.arange(len(tables))
for k, (name, color) in enumerate(zip(models, ["#0072b2", "#999999", "#009e73", "#d55e00"], strict=True)):
    errors = [100 * (1 - scores[table, name]["test_accuracy"].mean()) for table in tables]
    losses = [-scores[table, name]["test_neg_log_loss"].mean() for table in tables]
    axes[0].bar(positions + 0.2 * (k - 1.5), errors, 0.18, color=color, label=name)
    axes[1].bar(positions + 0.2 * (k - 1.5), losses, 0.18, color=color)
axes[0].set(ylabel="error [%]", xticks=positions, xticklabels=tables)
axes[1].set(ylabel="log loss [nats]", xticks=positions, xticklabels=tables)
axes[0].legend()

# %%
# None of the learners is the best on all three data sets. BayesForest has the lowest log loss on breast cancer. On
# iris, the random forest is better in both measures. On wine, whose classes are nearly linear, logistic regression is
# clearly better than BayesForest (an error of 1.7 instead of 4.5 %). Three small data sets cannot rank learners: see
# the :doc:`comparison on 39 data sets </benchmarks/tables>`, which includes tuned learners, times and significance
# tests.
