"""Data and oracles of searches by decomposable scores."""

from functools import cache

import numpy as np
from oracles import family_scores as naive

from tanlearn import EncodedData


def rows_of(data):
    """Return the rows with the class as last column, -1 for a missing value."""
    codes = data.codes.T.astype(int)
    return np.column_stack([np.where(codes == np.iinfo(data.codes.dtype).max, -1, codes), data.y]).tolist()


def random_data(seed, n=80, n_states=(2, 2, 2, 2), n_classes=2, missing=0.0, weight=None):
    """Return rows whose features depend on each other in a random way."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.zeros((n, len(n_states)), int)
    for i, k in enumerate(n_states):
        drawn = rng.integers(0, k, n)
        copied = X[:, rng.integers(0, i)] if i else y
        X[:, i] = np.where(rng.random(n) < 0.4, (copied + y * rng.integers(0, 2)) % k, drawn)
    X[rng.random(X.shape) < missing] = -1
    weights = None if weight is None else rng.integers(0, 4, n)
    return EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weights)


def naive_score(data, score):
    """Return the function from the parents of all features to the score, from the rows."""
    rows, weights = rows_of(data), data.weights.tolist()
    n_states, root = (*data.n_states.tolist(), data.n_classes), data.n_features
    family = cache(lambda child, given: naive.family_score(rows, weights, child, given, root, n_states, score))
    of_class = family(root, ())
    return lambda parents: of_class + sum(family(i, tuple(sorted(given))) for i, given in enumerate(parents))


def parents_of(structure):
    """Return the parents of each feature."""
    return [tuple(row[row >= 0].tolist()) for row in structure.parents]


def replayed(history, parents):
    """Yield the parents of all features and the score after each step."""
    parents = [tuple(given) for given in parents]
    for number, change in enumerate(history):
        parents[change.child] = change.parents
        if number + 1 == len(history) or history[number + 1].step > change.step:
            yield list(parents), change.score
