"""
Learning curves
===============

Plot the error of several learners over the number of training rows. ``LearningCurveDisplay`` of scikit-learn plots one
learner; pass the same axes for all of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.model_selection import LearningCurveDisplay, StratifiedKFold

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, QuantileDiscretizer, TableEncoder
from tanlearn.baselines import ChowLiu, KDependence

X, y = load_digits(return_X_y=True)
encoder = TableEncoder(discrete_features=False, discretizer=QuantileDiscretizer(max_bins=4))
learners = {
    "naive Bayes": NaiveBayesClassifier(encoder=encoder),
    "Chow-Liu tree": BayesNetClassifier(structure=ChowLiu(), encoder=encoder),
    "2-dependence": BayesNetClassifier(structure=KDependence(k=2), encoder=encoder),
}
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
figure.suptitle("Errors on digits over the number of training rows")
options = {
    "train_sizes": np.geomspace(0.05, 1, 6),
    "cv": StratifiedKFold(5, shuffle=True, random_state=0),
    "scoring": make_scorer(zero_one_loss, greater_is_better=False),  # the error, which the display negates again
    "negate_score": True,
    "score_name": "test error",
    "score_type": "test",
}
for (name, learner), marker in zip(learners.items(), "os^", strict=True):
    styles = {"line_kw": {"marker": marker}, "fill_between_kw": {"alpha": 0.15}}
    display = LearningCurveDisplay.from_estimator(learner, X, y, ax=ax, **styles, **options)
    display.lines_[0].set_label(name)
ax.set(xscale="log", xlabel="training rows", ylabel="test error")
ax.grid(alpha=0.3)
ax.legend()

# %%
# Naive Bayes has the lowest error with up to 150 rows. With 400 rows or more, both networks with edges are more
# accurate. The curves still decrease at the end, so more rows would lower the errors further.
