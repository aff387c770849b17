"""
CPTs and training
=================

Plot one CPT of a network, and its training. A CPT contains the probabilities of the values of a feature, given its
parent and the class. During training, the loss decreases and the selection of parents becomes more certain.
"""

from sklearn.datasets import load_breast_cancer

from tanlearn import GradientTraining, Hybrid, TANClassifier
from tanlearn.displays import TableDisplay, TrainingDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.loc[:, [name for name in X if name.startswith("worst")]]
y = y.map({0: "malignant", 1: "benign"})
settings = GradientTraining(structure_learning_rate=0.03, validation_fraction=0.3)
options = {"loss": Hybrid(), "n_epochs": 80, "training": settings, "random_state": 1}
model = TANClassifier(candidates="order-free", **options).fit(X, y)

child = next(i for i, row in enumerate(model.structure_.parents) if row[0] >= 0)
table = TableDisplay.from_estimator(model, child)
table.figure_.suptitle("A conditional probability table as a heat map")

# %%

training = TrainingDisplay.from_estimator(model)
training.figure_.suptitle("Training by epoch")

# %%
# The entropy measures the uncertainty about the parents. It decreases during the whole training, but not to 0, so a
# longer training may still change the structure. The validation error changes little after the first epochs.
