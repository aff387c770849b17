"""
Comparison over data sets
=========================

Compare learners over many data sets. The critical difference diagram shows which mean ranks differ significantly, and
the scatter plot shows the errors of two learners on each data set.
"""

from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, QuantileDiscretizer, TableEncoder
from tanlearn.baselines import ChowLiu, KDependence, OrderSearch, RandomTree
from tanlearn.comparison import compare
from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay

datasets = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
}
for seed in range(13):
    options = {"n_informative": 4 + seed % 4, "n_redundant": 3, "n_clusters_per_class": 2, "class_sep": 0.6 + seed / 10}
    datasets[f"generated {seed}"] = make_classification(600, 12, **options, n_classes=3, random_state=seed)

encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=6))
structures = {
    "random tree": RandomTree(),
    "Chow-Liu tree": ChowLiu(),
    "2-dependence": KDependence(k=2),
    "order search": OrderSearch(),
}
learners = {"naive Bayes": NaiveBayesClassifier(encoder=encoder)}
for name, structure in structures.items():
    learners[name] = BayesNetClassifier(structure=structure, encoder=encoder, random_state=0)

comparison = compare(datasets, learners, n_folds=3)
display = CriticalDifferenceDisplay(comparison).plot()
display.figure_.suptitle("Mean ranks of five learners")

# %%
# A bar connects learners whose mean ranks do not differ significantly. The next plot compares two learners on each data
# set. The Chow-Liu tree has the lower error on the data sets whose points are below the diagonal.

display = PairedErrorsDisplay(comparison.errors(["naive Bayes", "Chow-Liu tree"])).plot()
display.figure_.suptitle("Errors of two learners on 16 data sets")

# %%
# Order search and the Chow-Liu tree have the best mean ranks (2.0 and 2.3), and are significantly better than a random
# tree (4.2). Naive Bayes (3.5) is not significantly worse than the best learners, although the Chow-Liu tree has a
# lower error on 12 of 16 data sets: more data sets would be needed to show a significant difference.
