"""
BayesForest beside other learners
=================================

Compare ``BayesForestClassifier`` with a random forest and logistic regression. It needs no tuning and no
preprocessing. Errors and log losses are means over five folds of four small data sets, of which two are nearly
linear.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tanlearn import BayesForestClassifier

tables = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "noisy": make_classification(600, n_features=10, n_informative=4, flip_y=0.2, random_state=3),
}
models = {
    "BayesForest": BayesForestClassifier(n_estimators=8, random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
scores = {
    (table, name): cross_validate(model, *rows, scoring=("accuracy", "neg_log_loss"), cv=5)
    for table, rows in tables.items()
    for name, model in models.items()
}

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
figure.suptitle("Four data sets: errors and log losses of three learners")
places = np.arange(len(tables))
for k, (name, colour) in enumerate(zip(models, ["#0072b2", "#999999", "#d55e00"], strict=True)):
    errors = [100 * (1 - scores[table, name]["test_accuracy"].mean()) for table in tables]
    losses = [-scores[table, name]["test_neg_log_loss"].mean() for table in tables]
    axes[0].bar(places + 0.27 * (k - 1), errors, 0.25, color=colour, label=name)
    axes[1].bar(places + 0.27 * (k - 1), losses, 0.25, color=colour)
axes[0].set(ylabel="error [%]", xticks=places, xticklabels=tables)
axes[1].set(ylabel="log loss [nats]", xticks=places, xticklabels=tables)
axes[0].legend()
