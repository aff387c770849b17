"""
Importances and dependences of a forest
=======================================

Plot the features and pairs of features that a forest uses. The importance of a feature is the increase in out-of-fold
log loss if the feature is left out. Dependences are pairs of features that are informative together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from tanlearn import BayesForestClassifier
from tanlearn.displays import ForestImportanceDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
forest = BayesForestClassifier(n_estimators=12, random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
figure.suptitle("Importances of features, and dependences between them")
display = ForestImportanceDisplay.from_estimator(forest, ax=axes[0])
forest.plot_dependences(X, axes[1])

# %%
# Color intensity and alcohol are the most important features. The importances of ash, malic acid and nonflavanoid
# phenols are negative: if one of these features is left out, the log loss of this forest is slightly lower.
