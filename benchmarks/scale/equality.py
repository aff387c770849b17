"""Comparison of models of batches and partitions with those of the whole table.

    python -m benchmarks.scale.equality

Every learner is fitted to three tables in memory, in batches, and in partitions of Dask. Parts have random sizes, and
some of many are empty. Probabilities of all rows are compared.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine

import tanlearn
import tanlearn.dask
from benchmarks.shared.reports import markdown_table
from tanlearn.baselines import (
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    KDependence,
    SelectiveKDependenceClassifier,
)

LEARNERS = {
    "naive Bayes": tanlearn.NaiveBayesClassifier(),
    "Chow-Liu": tanlearn.BayesNetClassifier(structure=ChowLiu()),
    "KDB-1": tanlearn.BayesNetClassifier(structure=KDependence(k=1)),
    "KDB-2": tanlearn.BayesNetClassifier(structure=KDependence(k=2)),
    "KDB-3, hierarchical smoothing": tanlearn.BayesNetClassifier(
        structure=KDependence(k=3), parameters=tanlearn.HierarchicalSmoothing(sparse=True)
    ),
    "KDB-3, hierarchical Dirichlet": tanlearn.BayesNetClassifier(
        structure=KDependence(k=3), parameters=tanlearn.HierarchicalDirichlet(n_iter=20)
    ),
    "selective KDB": SelectiveKDependenceClassifier(max_k=3),
    "AODE": AODEClassifier(),
    "A2DE": AnDEClassifier(n=2),
    "forest, unweighted": tanlearn.BayesForestClassifier(n_estimators=8, weights=None, random_state=0),
}
PARTS = 1, 2, 7, 64


def main() -> None:
    """Print a table: the largest difference of a probability, by learner and way of learning."""
    warnings.simplefilter("ignore")
    rows = []
    for name, learner in LEARNERS.items():
        differences = [[*_differences(learner, *table)] for table in _tables()]
        worst = [max(column) for column in zip(*differences, strict=True)]
        rows.append([name, *("-" if np.isnan(one) else "equal" if one == 0 else f"{one:.1e}" for one in worst)])
    header = ["learner", *(f"{n} batches" for n in PARTS), *(f"{n} partitions" for n in PARTS)]
    print(markdown_table(header, rows))


def _tables() -> list[tuple[pd.DataFrame, pd.Series, pd.Series]]:
    """Return mixed columns with missing values and integer weights, few numbers, and many columns."""
    rng, n = np.random.default_rng(0), 3000
    town, number = rng.choice(["Graz", "Linz", "Wien"], n), rng.normal(size=n).round(2)
    y = np.where((number > 0.2) ^ (town == "Wien") ^ (rng.random(n) < 0.1), "yes", "no")
    mixed = pd.DataFrame({"number": number, "town": town, "rooms": rng.integers(1, 6, n), "area": rng.random(n)})
    mixed["area"] += y == "yes"
    mixed.loc[rng.random(n) < 0.1, ["town", "number"]] = None
    found = [(mixed, pd.Series(y), pd.Series(rng.integers(0, 3, n)))]
    for load in (load_wine, load_digits):
        X, y = load(return_X_y=True, as_frame=True)
        X = X[X.columns[X.nunique() > 1][:20]]
        found.append((X, y, pd.Series(np.ones(len(y), np.int64))))
    return found


def _differences(learner: Any, X: pd.DataFrame, y: pd.Series, weight: pd.Series) -> list[float]:
    """Return the largest differences of the probabilities of parts from those of the whole table."""
    whole = clone(learner).fit(X, y, weight).predict_proba(X)
    found = []
    for n_parts in PARTS:
        batches = [(X[a:b], y[a:b], weight[a:b]) for a, b in _edges(len(X), n_parts)]
        found.append(np.abs(clone(learner).fit_batches(batches).predict_proba(X) - whole).max())
    twin = getattr(tanlearn.dask, type(learner).__name__, None)
    frame = X.assign(_class=y, _weight=weight)
    for n_parts in PARTS:
        if twin is None:
            found.append(np.nan)
            continue
        parts = [dask.delayed(frame[a:b]) for a, b in _edges(len(X), n_parts)]
        rows = dd.from_delayed(parts, meta=frame[:0], verify_meta=False)
        model = twin(**learner.get_params(deep=False)).fit(rows, "_class", "_weight")
        found.append(np.abs(model.to_local().predict_proba(X) - whole).max())
    return found


def _edges(n_rows: int, n_parts: int) -> list[tuple[int, int]]:
    """Return the bounds of parts of random size; of many parts, some are empty."""
    inner = np.sort(np.random.default_rng(n_parts).integers(0, n_rows + 1, n_parts - 1))
    inner[: n_parts // 4] = 0
    return list(itertools.pairwise([0, *inner.tolist(), n_rows]))


if __name__ == "__main__":
    main()
