"""
Plotting a network
==================

Plot a tree-augmented naive Bayes. The class is a parent of every feature, and each feature has at most one other
parent. Here the tree of cell measurements is learned without an ordering of the features.
"""

from sklearn.datasets import load_breast_cancer

from tanlearn import TANClassifier
from tanlearn.displays import StructureDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.loc[:, [name for name in X if name.startswith("worst")]]
y = y.map({0: "malignant", 1: "benign"})
model = TANClassifier(candidates="order-free", n_epochs=60, random_state=0).fit(X, y)

# %%
# The width of an edge is the mutual information of parent and child, given the class:

display = StructureDisplay.from_estimator(model, class_name="tumour")
display.figure_.suptitle("Measurements of cells and their dependences")

# %%
# The same network as a NetworkX graph, and as a dictionary:

print(sorted(model.to_networkx().edges)[:5])
print(model.describe()["features"][0]["name"], model.describe()["features"][0]["cut_points"])
