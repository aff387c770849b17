"""A table whose names, categories and missing values are difficult for exports, and models of it."""

import numpy as np
import pandas as pd

LABELS = ["it's", 'no "pe"', "select"]


def odd_table(n_rows, seed, *, missing=0.0):
    """Return a frame of numbers, strings, booleans and integers, some missing, and the classes of its rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    first = np.round(rng.normal(size=n_rows) + y, 1)
    second = first + rng.normal(size=n_rows)
    words = np.array(["o'hara", 'a"b', "where", "x; -- y", "Größe"], object)
    columns = {
        'a"b': first,
        "o'hara": second,
        "select": words[(rng.integers(0, 5, n_rows) + (second > 1)) % 5],
        "Group By": rng.random(n_rows) < 0.3 + 0.2 * y,
        "x-y": rng.integers(0, 5, n_rows) + y,
    }
    X = pd.DataFrame(columns)
    if missing:
        X = X.astype(object).where(rng.random(X.shape) >= missing, None)
        X[['a"b', "o'hara", "x-y"]] = X[['a"b', "o'hara", "x-y"]].astype(float)
    return X, np.array(LABELS, object)[y]


def rows_of(X):
    """Return the rows of a frame as lists, None where a value is missing."""
    rows = X.astype(object).to_numpy().tolist()
    return [[None if value is None or value != value else value for value in row] for row in rows]
