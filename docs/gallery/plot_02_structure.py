"""
Dependences between measurements
================================

Plot which measurements of cell nuclei depend on each other. The class is a parent of every feature, and each feature
has at most one other parent. ``ChowLiu`` learns the tree with the largest sum of mutual information between features
and their parents, given the class.
"""

from sklearn.datasets import load_breast_cancer

from tanlearn import BayesNetClassifier
from tanlearn.baselines import ChowLiu
from tanlearn.displays import StructureDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.filter(like="worst").rename(columns=lambda name: name.removeprefix("worst "))
y = y.map({0: "malignant", 1: "benign"})
model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)

# %%
# The width of an edge shows the mutual information between parent and child, given the class:

display = StructureDisplay.from_estimator(model, class_name="tumor")
display.figure_.suptitle("Measurements of cell nuclei and their dependences")

# %%
# The network can also be converted to a NetworkX graph or to a dictionary:

print([edge for edge in model.to_networkx().edges if "class" not in edge][:3])
print(model.describe()["features"][0]["name"], model.describe()["features"][0]["cut_points"])

# %%
# The strongest dependences connect perimeter, radius and area, and the three measures of concavity and compactness. A
# Chow-Liu tree contains the strongest dependences, whether or not they help to predict the class. The tree of a
# ``TANClassifier`` has another meaning: its edges help to separate the classes, and may be weak dependences.
