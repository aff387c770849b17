"""The sets of the comparison: raw ones in folds, published parts as they are, and the two groups of raw ones."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import archives
from benchmarks.shared.data import load_table
from benchmarks.shared.mnist import N_TRAIN, block_means, load_mnist
from tanlearn import TableEncoder

from ..defaults import halves
from ..runs import PUBLISHED, load, stratified_folds

SEEDS = (0, 1)
#: Largest number of rows; larger sets are replaced by a stratified random sample.
MOST_ROWS = 50_000
#: Fixed, so that a new set does not move others to the other group.
RAW = (
    *("adult", "ann-thyroid", "australian", "balance-scale", "breast", "car", "chess", "churn", "cleve", "cmc"),
    *("corral", "crx", "dermatology", "diabetes", "flare", "german", "glass", "glass2", "heart", "hepatitis"),
    *("ionosphere", "iris", "kddcup99-10pct", "krkopt", "led24", "letter", "lymphography", "mnist", "mofn-3-7-10"),
    *("mushroom", "optdigits", "page-blocks", "pima", "satimage", "segment", "shuttle", "sleep", "soybean-large"),
    *("spambase", "tic-tac-toe", "usps", "vehicle", "vote", "waveform-21", "waveform-40", "wine-quality-white"),
    "yeast",
)
#: Sets kept apart: no setting and no learner was chosen with them, and the report ranks learners on them separately.
LATER = (
    *("bands", "bfi", "cells", "colon", "gss-abortion", "hayes-roth", "hpc-data", "led7digit", "loanapp"),
    *("loans-full-schema", "mammographic", "monk-2", "movement-libras", "nmes1988", "resumenames", "ring", "saheart"),
    *("smokeban", "stackoverflow", "tae", "titanic", "wvs"),
)
#: Sets that share rows or their distribution with another set, whose group they have.
TWINS = {"crx": "australian", "pima": "diabetes", "glass2": "glass", "heart": "cleve", "waveform-40": "waveform-21"}
PARTS = tuple(f"{name}{PUBLISHED}" for name in ("letter", "satimage", "usps", "mnist"))

_ALTERNATING = halves(RAW)
HALF = {name: _ALTERNATING[TWINS.get(name, name)] for name in RAW}


@dataclass(frozen=True, eq=False)
class Table:
    """A data set: a frame if columns are categorical, or an array; classes; row numbers of training and test parts.

    Our learners use ``encoder``, or their own if it is None.
    """

    X: object
    y: np.ndarray
    is_categorical: np.ndarray
    folds: list
    encoder: TableEncoder | None = None


def cells(folder):
    """Return rows times features of every available raw set."""
    found = {}
    for path in archives(folder / "raw"):
        with np.load(path) as file:
            found[path.stem] = min(len(file["y"]), MOST_ROWS) * len(file["is_categorical"])
    return found


def frame(X, is_categorical):
    """Return a frame with categorical columns."""
    import pandas as pd

    def categories(column):
        is_known = ~np.isnan(column)
        values, codes = np.unique(column[is_known], return_inverse=True)
        places = np.full(len(column), -1)
        places[is_known] = codes
        return pd.Categorical.from_codes(places, values.astype(int))

    columns = {str(j): categories(X[:, j]) if is_categorical[j] else X[:, j] for j in range(X.shape[1])}
    return pd.DataFrame(columns)


def load_part(name, folder):
    """Return a published part, with numeric features for learners that distinguish them from categories."""
    if name == f"mnist{PUBLISHED}":
        X, y = load_mnist(folder, block_means)
        rows = np.arange(len(y))
        folds, encoder = [(rows[:N_TRAIN], rows[N_TRAIN:])], None
    else:
        X, y, folds, encoder = load(name, folder)
    return Table(X, y, np.zeros(X.shape[1], bool), list(folds), encoder)


def load_set(name, folder, seed):
    """Return a data set with the folds of a seed."""
    if name.endswith(PUBLISHED):
        return load_part(name, folder)
    X, y = load_table(name, folder)
    with np.load(folder / "raw" / f"{name}.npz") as file:
        is_categorical = file["is_categorical"]
    if len(y) > MOST_ROWS:
        rows, _ = train_test_split(np.arange(len(y)), train_size=MOST_ROWS, stratify=y, random_state=0)
        X, y = X[np.sort(rows)], y[np.sort(rows)]
    if is_categorical.any():
        X = frame(X, is_categorical)
    return Table(X, y, is_categorical, stratified_folds(X, y, seed))
