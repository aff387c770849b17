"""
Completing and sampling rows
============================

Complete the lower halves of digits, and sample new digits. A network is a joint distribution, so it can compute the
most probable missing values of a row jointly, and can sample new rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tanlearn import BayesNetClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

X, y = load_digits(return_X_y=True)
model = BayesNetClassifier(structure=ChowLiu(), encoder=TableEncoder(discrete_features=False)).fit(X[:1500], y[:1500])

rows = X[1500:1508]
incomplete = rows.copy()
incomplete[:, 32:] = np.nan
completed, found = model.complete(incomplete)
drawn, classes = model.sample(8, y=model.predict(incomplete), random_state=0)

# %%
# The rows of the plot show, from top to bottom, the images, their upper halves, the completions with their predicted
# classes, and images that are sampled for these classes.

figure, axes = plt.subplots(4, 8, figsize=(9, 4.8), layout="constrained")
figure.suptitle("Eight digits: complete, halved, completed by the model, and sampled")
titles = [y[1500:1508], None, found, classes]
for line, images, title in zip(axes, [rows, incomplete, completed, drawn], titles, strict=True):
    for k, ax in enumerate(line):
        ax.imshow(np.asarray(images[k], float).reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[], facecolor="#f4d9c6")
        if title is not None:
            ax.set_title(str(title[k]), fontsize="small")
for ax, label in zip(axes[:, 0], ["image", "upper half", "completed", "sampled"], strict=True):
    ax.set_ylabel(label, fontsize="small")

# %%
# All completions have the classes of the original images, although only the upper halves were observed. Sampled images
# vary more, because each pixel is drawn at random instead of being the most probable one.
