"""
Which pixels depend on each other?
==================================

Features of images are pixels. Chow and Liu's tree, learnt by counting, links pixels that tell most about each
other where the digit is known: nearly all of them are neighbours, though nobody has told it where pixels are.
"""

from sklearn.datasets import load_digits

from tanlearn import BayesNetClassifier, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.displays import StructureDisplay

X, y = load_digits(return_X_y=True)
model = BayesNetClassifier(structure=ChowLiu(), encoder=TableEncoder(discrete_features=False)).fit(X, y)

display = StructureDisplay.from_estimator(model, image_shape=(8, 8))
display.figure_.suptitle("Handwritten digits: every pixel and its parent")
