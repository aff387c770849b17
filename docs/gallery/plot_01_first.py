"""
First classifiers
=================

Fit three models to handwritten digits: naive Bayes, which only counts values; a tree whose structure and parameters are
trained by gradient; and a forest of networks. ``fit`` discretizes numeric columns and accepts missing values.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tanlearn import BayesForestClassifier, NaiveBayesClassifier, TANClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)

models = {
    "naive Bayes": NaiveBayesClassifier(),
    "TAN, by gradient": TANClassifier(n_epochs=30, random_state=0),
    "BayesForest": BayesForestClassifier(n_estimators=12, random_state=0),
}
errors = {name: 100 * (1 - model.fit(X_train, y_train).score(X_test, y_test)) for name, model in models.items()}

# %%
# The plot shows the test errors on a third of the rows, which are not used for training:

figure, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
figure.suptitle("Handwritten digits: test errors of three models")
bars = ax.barh(list(errors), list(errors.values()), color=["#999999", "#56b4e9", "#0072b2"])
ax.bar_label(bars, fmt="%.1f %%", padding=4)
ax.invert_yaxis()
ax.set(xlabel="test error [%]", xlim=(0, 1.15 * max(errors.values())))
ax.spines[["top", "right"]].set_visible(False)

# %%
# All models are scikit-learn estimators. Use them in pipelines, ``cross_val_score`` and ``GridSearchCV``, and predict
# probabilities:

print(models["TAN, by gradient"].predict_proba(X_test[:2]).round(3))

# %%
# Naive Bayes has an error of 10.5 %, because it counts the evidence of neighboring pixels as if they were independent.
# The tree (3.7 %) and the forest (3.2 %) represent dependences between pixels. The tree is uncertain about the first
# image and nearly certain about the second one.
