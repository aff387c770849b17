"""
Accuracy within a size budget
=============================

Find the most accurate classifier within a size budget. ``pareto_search`` trains trees with several numbers of bits and
size penalties. A tree is dropped if another tree is at least as good in error, size and number of operations, and
better in one of them.
"""

from sklearn.datasets import load_digits

from tanlearn import TableEncoder, TANClassifier, pareto_search
from tanlearn.displays import ParetoDisplay

X, y = load_digits(return_X_y=True)
estimator = TANClassifier(encoder=TableEncoder(discrete_features=False), n_epochs=12, calibrate=False)
front = pareto_search(estimator, X, y, bits=(None, 2, 4), size_weight=(0.0, 1e-3, 1e-2), random_state=0)

display = ParetoDisplay.from_estimator(front)
display.figure_.suptitle("Errors of classifiers over the size of their CPTs")

# %%
# ``best_within`` returns the most accurate classifier with CPTs of at most 4 kB, which can be exported with
# ``export_c``:

model = front.best_within(size_bits=8 * 4000)
print(model, model.size_bits_ / 8, "bytes")

# %%
# The selected tree has two bits per CPT entry and takes 2 kB. Its held-out error is 7.5 %. The best tree with
# floating-point CPTs has an error of 5.8 %, but takes more than ten times as much memory.
