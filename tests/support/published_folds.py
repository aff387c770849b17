"""The published folds, where they are available."""

import benchmarks
from benchmarks.shared.data import n_values, published_folds
from tanlearn import EncodedData

DATA = benchmarks.DATA / "discretized"


def folds(name):
    """Yield training and test data of every fold; the number of values is that of both parts."""
    for x, y, x_test, y_test in published_folds(DATA / f"{name}.npz"):
        n_states = n_values(x, x_test)
        yield tuple(EncodedData.from_codes(a, b, n_states=n_states) for a, b in ((x, y), (x_test, y_test)))
