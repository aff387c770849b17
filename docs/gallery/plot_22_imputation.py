"""
Imputation without a class
==========================

Fill in lost pixels of digits, without their classes: half of the pixels of each image are missing, in the images that
the imputer is fitted to and in the new ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tanlearn import QuantileDiscretizer, TableEncoder, TANImputer

X, y = load_digits(return_X_y=True)
is_lost = np.random.default_rng(0).random(X.shape) < 0.5
lost = np.where(is_lost, np.nan, X)
encoder = TableEncoder(discrete_features=False, discretizer=QuantileDiscretizer(max_bins=8))
imputer = TANImputer(n_components=4, encoder=encoder, random_state=0).fit(lost[:1500])

means = imputer.transform(lost[1500:])
one, other = imputer.draw(lost[1500:], 2, random_state=0)

# %%
# From top to bottom: images, the pixels that are left, their expected values, and two draws. Draws differ where the
# observed pixels leave several possibilities.

figure, axes = plt.subplots(5, 8, figsize=(9, 6), layout="constrained")
figure.suptitle("Eight digits: complete, with half of the pixels lost, and imputed")
for line, images in zip(axes, [X[1500:], lost[1500:], means, one, other], strict=True):
    for ax, image in zip(line, images[:8], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[], facecolor="#f4d9c6")
for ax, label in zip(axes[:, 0], ["image", "left", "mean", "draw", "another draw"], strict=True):
    ax.set_ylabel(label, fontsize="small")

# %%
# The mean has the smallest squared error. A draw has twice its squared error, if the probabilities are right: it is as
# far from the mean as the true value.

guesses = {"mean of the column": np.nanmean(lost[:1500], axis=0), "expected value": means, "draw": one}
for name, guess in guesses.items():
    difference = (np.broadcast_to(guess, means.shape) - X[1500:])[is_lost[1500:]]
    print(f"{name}: root mean squared error {np.sqrt((difference**2).mean()):.2f}")
