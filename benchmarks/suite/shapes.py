"""Generated data for the benchmarks, so that they need no files."""

import numpy as np

from tanlearn import EncodedData

#: Upper limit of the rows of every generated data set. Tests lower it, so that each benchmark runs in a moment.
MAX_ROWS = None

#: rows, values of every feature, classes, batch size of the published protocol
SHAPES = {
    "letter": (13_342, [5, 1, 5, 3, 4, 13, 14, 13, 13, 14, 14, 13, 9, 9, 8, 8], 26, 100),
    "satimage": (5_151, [11, 12] * 18, 6, 50),
    "usps": (7_340, ([3, 4, 3, 4, 3] * 52)[:256], 10, 100),
    "mnist": (46_667, [13] * 196, 10, 250),
}


def n_rows(n_samples):
    """Return a number of rows, or the limit that a test has set."""
    return n_samples if MAX_ROWS is None else min(n_samples, MAX_ROWS)


def make(name, n_samples=None):
    """Return data in which every feature depends a little on the class and on the feature before."""
    rows, n_states, n_classes, _ = SHAPES[name]
    n_samples = n_rows(rows if n_samples is None else n_samples)
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_samples)
    columns, before = [], y
    for k in n_states:
        noise = rng.integers(0, k, n_samples)
        columns.append(np.where(rng.random(n_samples) < 0.5, (y + before) % k, noise))
        before = columns[-1]
    return EncodedData.from_codes(np.stack(columns, axis=1), y, n_states=n_states, n_classes=n_classes)


def make_wide(n_samples, n_features, n_states):
    """Return many columns of integers, a third of each copied from an earlier column, and classes."""
    n_samples = n_rows(n_samples)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_samples)
    X = np.empty((n_samples, n_features), np.uint8)
    for i in range(n_features):
        skewed = (n_states * rng.random(n_samples) ** 2).astype(np.uint8)
        earlier = X[:, rng.integers(i)] if i else skewed
        X[:, i] = np.where(rng.random(n_samples) < 1 / 3, earlier, (skewed + y * (i % 7 == 0)) % n_states)
    return X, y


def make_mixed(n_samples, seed):
    """Return four categorical and four numeric columns of one table, and three classes.

    Each categorical column depends on the class and on the column before. Each numeric column depends on one
    categorical column, and every second one also on the class. Naive Bayes errs on 30 % of the rows, a tree on 15 %.
    """
    n_samples = n_rows(n_samples)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_samples)
    columns, before = [], y
    for n_categories in (3, 4, 5, 4):
        noise = rng.integers(0, n_categories, n_samples)
        before = np.where(rng.random(n_samples) < 0.5, (y + before) % n_categories, noise)
        columns.append(before.astype(float))
    columns += [rng.normal(0.7 * y * (j % 2) + 0.8 * columns[j]) for j in range(4)]
    return np.stack(columns, axis=1), y


def make_mixed_rows(n_samples, n_features):
    """Return an object array of strings and numbers, column by column in turn, and three classes."""
    n_samples = n_rows(n_samples)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_samples)
    X = np.empty((n_samples, n_features), dtype=object)
    for j in range(n_features):
        if j % 2:
            X[:, j] = (y + rng.normal(size=n_samples) * (1 + j / 4)).tolist()
        else:
            X[:, j] = np.array(list("abcdef"), dtype=object)[(y + rng.integers(0, 4, n_samples)) % 6]
    return X, y
