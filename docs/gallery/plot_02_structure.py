"""
Reading a network
=================

A tree-augmented naive Bayes is a network that can be looked at: the class is a parent of every feature, and every
feature has at most one other as a parent. Here it is learnt without an ordering of the features, from measurements
of cells.
"""

from sklearn.datasets import load_breast_cancer

from tanlearn import TANClassifier
from tanlearn.displays import StructureDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.loc[:, [name for name in X if name.startswith("worst")]]
y = y.map({0: "malignant", 1: "benign"})
model = TANClassifier(candidates="order-free", n_epochs=60, random_state=0).fit(X, y)

# %%
# Edges are as wide as child and parent tell about each other once the class is known:

display = StructureDisplay.from_estimator(model, class_name="tumour")
display.figure_.suptitle("Measurements of cells, and which of them depend on each other")

# %%
# The same network as a NetworkX graph, and as text:

print(sorted(model.to_networkx().edges)[:5])
print(model.describe()["features"][0]["name"], model.describe()["features"][0]["cut_points"])
