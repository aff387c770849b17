"""
Counting, or learning to tell classes apart
===========================================

Frequencies are best guesses of a distribution; parameters that are learnt by conditional likelihood or by margin
tell classes apart, which is another aim: where features share evidence, as here, they err less.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from tanlearn import ConditionalNLL, ConjugateGradient, Margin, MaximumLikelihood, NaiveBayesClassifier

X, y = make_classification(9000, n_features=16, n_informative=6, n_redundant=6, n_classes=3, random_state=1)
learners = {
    "frequencies": MaximumLikelihood(),
    "conditional likelihood": ConjugateGradient(loss=ConditionalNLL(), max_iter=60, calibrate=False),
    "margin": ConjugateGradient(loss=Margin(), max_iter=60, calibrate=False),
}
sizes = np.array([60, 120, 250, 500, 1000, 2000, 4000])
errors = {name: [] for name in learners}
for size in sizes:
    for name, learner in learners.items():
        model = NaiveBayesClassifier(parameters=learner).fit(X[:size], y[:size])
        errors[name].append(100 * (1 - model.score(X[4000:], y[4000:])))

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
figure.suptitle("Test errors over training rows: counted, and trained")
for name, colour in zip(errors, ["#999999", "#0072b2", "#d55e00"], strict=True):
    ax.plot(sizes, errors[name], marker="o", color=colour, label=f"naive Bayes, {name}")
ax.set(xscale="log", xlabel="training rows", ylabel="test error [%]")
ax.legend()
ax.grid(alpha=0.3)
