"""
Few bits
========

Tables of a few bits add up as integers. Training for bits rounds in every step; rounding afterwards is free, and
as good from some bits on.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from tanlearn import Hybrid, TableEncoder, TANClassifier

X, y = load_digits(return_X_y=True)
options = {"encoder": TableEncoder(discrete_features=False), "loss": Hybrid(), "n_epochs": 25, "random_state": 0}
plain = TANClassifier(**options, calibrate=False).fit(X[:1200], y[:1200])
formats = [(3, -2), (3, -1), (3, 0), (3, 1), (3, 3)]
bits = [sum(split) for split in formats]
trained, rounded, sizes = [], [], []
for split in formats:
    model = TANClassifier(**options, calibrate=False, bits=split).fit(X[:1200], y[:1200])
    trained.append(100 * (1 - model.score(X[1200:], y[1200:])))
    rounded.append(100 * (1 - plain.with_bits(split).score(X[1200:], y[1200:])))
    sizes.append(model.size_bits_ / 8 / 1000)

# %%
# Sizes of the tables stand above the curve:

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(bits, rounded, marker="o", color="#d55e00", label="rounded after training")
ax.plot(bits, trained, marker="o", color="#0072b2", label="trained for bits")
floats = 100 * (1 - plain.score(X[1200:], y[1200:]))
ax.axhline(floats, color="black", linewidth=0.8, linestyle="--", label="floating point")
for x, error, size in zip(bits, trained, sizes, strict=True):
    ax.annotate(f"{size:.1f} kB", (x, error), (0, 9), textcoords="offset points", ha="center", fontsize="small")
ax.set(xlabel="bits of a number", ylabel="test error [%]", ylim=0)
ax.legend()
ax.grid(alpha=0.3)
