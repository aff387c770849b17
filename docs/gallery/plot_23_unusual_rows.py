"""
Unusual rows and values
=======================

Find the most unusual images of digits, without labels, and the pixels that are surprising given all others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tanlearn import QuantileDiscretizer, TableEncoder, TANDensity

X, y = load_digits(return_X_y=True)
encoder = TableEncoder(discrete_features=False, discretizer=QuantileDiscretizer(max_bins=8))
density = TANDensity(n_components=4, encoder=encoder, random_state=0).fit(X)

scores = density.score_samples(X)
order = np.argsort(scores)
unusual, usual = order[:8], order[-8:]
surprises = density.surprises(X[unusual])

# %%
# The rows of the plot show, from top to bottom, the eight most usual images, the eight most unusual images, and the
# surprise of each pixel of the unusual images.

figure, axes = plt.subplots(3, 8, figsize=(9, 3.9), layout="constrained")
figure.suptitle("Usual and unusual digits, and the surprise of each pixel")
for line, images, style in zip(
    axes,
    [X[usual], X[unusual], surprises],
    [{"cmap": "gray_r", "vmin": 0, "vmax": 16}] * 2 + [{"cmap": "Oranges", "vmin": 0, "vmax": 6}],
    strict=True,
):
    for ax, image in zip(line, images, strict=True):
        shown = ax.imshow(image.reshape(8, 8), **style)
        ax.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=axes[2], label="nats", ticks=[0, 6])
for ax, label in zip(axes[:, 0], ["usual", "unusual", "surprise"], strict=True):
    ax.set_ylabel(label, fontsize="small")
for ax, row in zip(axes[1], unusual, strict=True):
    ax.set_title(str(y[row]), fontsize="small")

# %%
# The numbers above the unusual images are their classes. Images can also be sampled from the density:

figure, axes = plt.subplots(1, 8, figsize=(9, 1.6), layout="constrained")
figure.suptitle("Sampled digits")
for ax, image in zip(axes, density.sample(8, random_state=0).astype(float), strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.set(xticks=[], yticks=[])

# %%
# The eight most usual images are all ones. The unusual images have strokes in unusual positions, where the surprise of
# the pixels is large. Most sampled images can be recognized as digits.
