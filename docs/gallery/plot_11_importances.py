"""
What a forest has learnt
========================

Importances are what left-out rows lose without a feature; dependences say which features are read together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from tanlearn import BayesForestClassifier
from tanlearn.displays import ForestImportanceDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
forest = BayesForestClassifier(n_estimators=12, random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
figure.suptitle("What a forest leans on: features, and pairs of them")
display = ForestImportanceDisplay.from_estimator(forest, ax=axes[0])
forest.plot_dependences(X, axes[1])
