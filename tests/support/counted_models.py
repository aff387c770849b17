"""Fit whatever learns by counting and print what it is, for comparison with another CPU: `python counted_models.py`."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from tanlearn import BayesForestClassifier, BayesNetClassifier, MaximumLikelihood, NaiveBayesClassifier
from tanlearn.baselines import (
    LEARNERS,
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    KDependence,
    OrderSearch,
    SimulatedAnnealing,
)

#: Learners of the registry that count: frequencies as parameters, whatever the structure.
#: TAN-SA-MM would take longer than all others, TAN-BB-MM supports few features, and a multinet has many structures.
COUNTING = [
    name
    for name in LEARNERS
    if name.endswith((" ML", "DE")) and name not in ("TAN-SA-MM ML", "TAN-BB-MM ML", "Multinet ML")
]
#: Settings that the registry has no learner for. 20,000 steps of annealing would take longer than all the rest.
OTHERS = {
    "annealing, few steps": lambda: BayesNetClassifier(structure=SimulatedAnnealing(n_steps=500), random_state=0),
    "naive Bayes, epsilon": lambda: NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0, epsilon=1e-5)),
    "Chow-Liu, BIC": lambda: BayesNetClassifier(structure=ChowLiu(penalty="bic")),
    "KDB, threshold": lambda: BayesNetClassifier(structure=KDependence(k=2, threshold=0.01)),
    "priors": lambda: NaiveBayesClassifier(class_prior=[0.2, 0.3, 0.5]),
    "AODE, priors": lambda: AODEClassifier(class_prior=[0.2, 0.3, 0.5]),
    "A2DE, priors": lambda: AnDEClassifier(class_prior=[0.2, 0.3, 0.5], subsumption=True),
    "forest, unweighted": lambda: BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
    "OMI, likelihood": lambda: BayesNetClassifier(structure=OrderSearch(score="conditional-likelihood")),
}


def tables() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield names, tables, classes and weights: numbers, categories, ties, constants, copies."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X[:400, 2:62:4], y[:400], None
    yield "iris", *load_iris(return_X_y=True), None
    X, y = load_wine(return_X_y=True)
    yield "wine, weighted", X, y, np.random.default_rng(1).integers(0, 3, len(y))
    weight = np.random.default_rng(2).random(len(y))
    yield "wine, real weights", X.round(1), y, 2 * weight / weight.sum()  # MDL cuts from a total of 2 on
    rng = np.random.default_rng(0)
    for seed in range(3):
        x = rng.integers(0, 3, (60, 4))
        x[:, 3] = 2 - x[:, 0]  # a copy with other names
        X = np.column_stack([x, np.zeros(60, int), x[:, 1], rng.permutation(60) % 2])
        yield f"ties {seed}", X, rng.integers(0, 3, 60), None


def digest(*arrays: Any) -> str:
    """Return a short name of the bits of some arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def describe(model: Any, X: Any) -> dict[str, Any]:
    """Return a model's states and parents, the bits of its tables and log joints, and what it predicts.

    Of whole rows, and of rows with gaps; of a forest the members alone.
    """
    holes = X.astype(object)
    holes[np.random.default_rng(2).random(X.shape) < 0.2] = None
    found: dict[str, Any] = {"states": model.encoder_.n_states_.tolist()}
    if hasattr(model, "forest_"):  # members are counted; how much they count is trained
        tables = [member.tables for member in model.forest_.members]
        found["parents"] = [own.parents.tolist() for own in tables]
        found["tables"] = digest(*[part for own in tables for part in (own.n_states, *own.trie, own.gain, own.unseen)])
        return found
    if isinstance(model, AnDEClassifier):
        found["rows"] = digest(model.ensemble_.counts.codes, model.ensemble_.counts.weights)
    elif hasattr(model, "ensemble_"):
        found["tables"] = digest(model.ensemble_.log_parent, model.ensemble_.log_child)
    else:
        found["parents"] = model.structure_.parents.tolist()
        found["tables"] = digest(model.tables_.cells)
    for name, rows in (("whole", X), ("with gaps", holes)):
        found[f"log joint, {name}"] = digest(model.model_.log_joint(model.encoder_.encode(rows)))
        found[f"predictions, {name}"] = model.predict(rows).tolist()
    return found


def main() -> None:
    """Print a line of JSON for every table and learner."""
    for table, X, y, weight in tables():
        for name in [*COUNTING, *OTHERS]:
            if "priors" in name and len(np.unique(y)) != 3:
                continue
            model = OTHERS[name]() if name in OTHERS else LEARNERS[name].make(random_state=0)
            model.fit(X, y, sample_weight=weight)
            sys.stdout.write(json.dumps([table, name, describe(model, X)]) + "\n")


if __name__ == "__main__":
    main()
