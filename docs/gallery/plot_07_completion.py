"""
Filling in what is missing
==========================

A network is a joint distribution: it finds the most probable values of what a row misses, all together, and draws
new rows. Here the lower half of digits is lost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tanlearn import BayesNetClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

X, y = load_digits(return_X_y=True)
model = BayesNetClassifier(structure=ChowLiu(), encoder=TableEncoder(discrete_features=False)).fit(X[:1500], y[:1500])

rows = X[1500:1508]
lost = rows.copy()
lost[:, 32:] = np.nan
completed, found = model.complete(lost)
drawn, classes = model.sample(8, y=model.predict(lost), random_state=0)

# %%
# From above: the images, what is left of them, the completions (with the classes that go with them), and images
# drawn for the same classes.

figure, axes = plt.subplots(4, 8, figsize=(9, 4.8), layout="constrained")
figure.suptitle("Eight digits: whole, halved, completed by the model, and drawn from it")
titles = [y[1500:1508], None, found, classes]
for line, images, title in zip(axes, [rows, lost, completed, drawn], titles, strict=True):
    for k, ax in enumerate(line):
        ax.imshow(np.asarray(images[k], float).reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[], facecolor="#f4d9c6")
        if title is not None:
            ax.set_title(str(title[k]), fontsize="small")
for ax, label in zip(axes[:, 0], ["image", "lower half lost", "completed", "drawn"], strict=True):
    ax.set_ylabel(label, fontsize="small")
