"""
Curves of features and heat maps of pairs
=========================================

Plot what a network of terms has learned about each feature: a curve over the values of a numeric feature, bars for
categories, and a heat map for two features that interact.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from tanlearn import TermNetClassifier
from tanlearn.displays import ContributionDisplay, PairContributionDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
model = TermNetClassifier(max_parents=0).fit(X, y)

figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
figure.suptitle("Contributions of four features to the log odds of a malignant tumor")
for ax, feature in zip(axes.flat, ["worst area", "worst texture", "worst concave points", "area error"], strict=True):
    ContributionDisplay.from_estimator(model, X, feature, target="malignant", ax=ax)

# %%
# The log odds of a row are a constant plus one number from each curve. If the number is above 0, the value is evidence
# for the class. The band is wide where there are few rows, and where other features already determine the class.
#
# In the next data set, the effect of the load of a machine depends on its temperature, and neither has an effect alone.

rng = np.random.default_rng(0)
machines = pd.DataFrame({"temperature": rng.normal(20, 6, 1500), "load": rng.gamma(4, 20, 1500)})
machines["site"] = rng.choice(["Graz", "Linz", "Wels", "Wien"], 1500, p=[0.4, 0.3, 0.1, 0.2])
log_odds = (machines["temperature"] - 20) * (machines["load"] - 75) / 100 + 1.5 * (machines["site"] == "Linz")
fails = np.where(rng.random(1500) < 1 / (1 + np.exp(-log_odds)), "fails", "runs")
model = TermNetClassifier().fit(machines, fails)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
figure.suptitle("Contribution of the site, and of temperature and load together, to the log odds of a failure")
ContributionDisplay.from_estimator(model, machines, "site", target="fails", ax=axes[0])
pair = ("temperature", "load")
display = PairContributionDisplay.from_estimator(model, machines, pair, target="fails", ax=axes[1])

# %%
# Machines tend to fail if load and temperature are both low or both high. The displays work with all classifiers that
# have a single network. Only plots of a :class:`~tanlearn.TermNetClassifier` have bands.
