"""
Completing and sampling rows
============================

Complete the lower half of digits, and sample new digits. A network is a joint distribution. It finds the most
probable missing values of a row jointly, and draws new rows.
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
# From top to bottom: the images, their upper halves, the completions with their classes, and images sampled for the
# same classes.

figure, axes = plt.subplots(4, 8, figsize=(9, 4.8), layout="constrained")
figure.suptitle("Eight digits: complete, halved, completed by the model, and sampled")
titles = [y[1500:1508], None, found, classes]
for line, images, title in zip(axes, [rows, lost, completed, drawn], titles, strict=True):
    for k, ax in enumerate(line):
        ax.imshow(np.asarray(images[k], float).reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[], facecolor="#f4d9c6")
        if title is not None:
            ax.set_title(str(title[k]), fontsize="small")
for ax, label in zip(axes[:, 0], ["image", "upper half", "completed", "sampled"], strict=True):
    ax.set_ylabel(label, fontsize="small")
