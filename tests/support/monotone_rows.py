"""Rows whose classes depend on some columns in one direction, for tests of monotone columns."""

import numpy as np
import pandas as pd

from tanlearn import EncodedData


def draw_rows(seed, n_states, n, *, missing=0.0):
    """Return rows whose classes depend on features 0 and 2 in the right direction, except for one value each."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    odds = 2 * X[:, 0] - 5 * (X[:, 0] == 2) - 1.5 * X[:, 2] + 4 * (X[:, 2] == 3) + 1.5 * (X[:, 1] * X[:, 3] - 2)
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    X[rng.random(X.shape) < missing] = -1
    options = {"n_states": n_states, "n_classes": 2, "is_ordered": np.array([True, False, True, False, True])}
    return EncodedData.from_codes(X, y, sample_weight=rng.choice([0.5, 1.0, 3.0], n), **options)


def passengers(n=300, *, missing=0.1):
    """Return passengers whose survival rises with the fare and falls with age, and class labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(1, 80, n), "fare": rng.exponential(30, n), "port": rng.choice(list("CQS"), n)})
    odds = 0.02 * X["fare"] - 0.03 * X["age"] + 1.0 * (X["port"] == "C")
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "survived", "died")
    return X.mask(rng.random(X.shape) < missing), y
