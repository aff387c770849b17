"""Learners on frames whose columns are permuted: ties are broken by names, not by the order of the columns."""

import numpy as np
import pandas as pd
import pytest

from tanlearn import BayesNetClassifier
from tanlearn.baselines import LEARNERS, ChowLiu

ORDERS = (
    ["alpha", "beta", "charlie", "delta", "echo", "foxtrot", "golf"],
    ["golf", "foxtrot", "echo", "delta", "charlie", "beta", "alpha"],
    ["golf", "alpha", "foxtrot", "echo", "charlie", "delta", "beta"],
)
#: Learners whose probabilities depend on the order of the columns, and why.
DEPENDENT = {
    "TAN-CMI": "The root is the first column, as in the published results.",
    "TAN-RO-CR": "The ordering is drawn as feature indices.",
    "TAN-SA-MM": "Every step draws feature indices.",
    "TAN Random": "Parents are drawn as feature indices.",
    "TAN Subset": "Candidates are drawn as feature indices.",
    "TAN All": "The ordering of the candidates is drawn as feature indices.",
    "TAN Order-free": "Trees are drawn feature by feature during training.",
    "Pseudo-TAN": "Parents are drawn feature by feature during training.",
    "K-tree": "Candidates are drawn as feature indices.",
    "BayesForest": "Orderings and candidates are drawn as feature indices.",
    "BayesEnsemble": "It contains a forest.",
}
#: Iterative training amplifies the rounding of sums over features, so only the structure is compared.
TRAINED = ("CG-CL", "CG-MM", "CVX-MM", "HYB", "WANBIA CL", "WANBIA MSE")
INDEPENDENT = [name for name in LEARNERS if not any(name.startswith(own) for own in DEPENDENT)]


def tied_frame(seed):
    """Return copies of columns, a recoded column, a constant, and equal one-dimensional tables."""
    rng = np.random.default_rng(seed)
    n = 120
    y = rng.integers(0, 3, n)
    a = (y + rng.integers(0, 2, n)) % 3
    b = rng.integers(0, 2, n)
    c = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    columns = {"delta": a, "alpha": b, "echo": c, "beta": c, "golf": 1 - b, "charlie": rng.integers(0, 2, n)}
    return pd.DataFrame({**columns, "foxtrot": np.zeros(n, int)}).astype(str), y


def edges_of(model):
    """Return the augmenting edges, by name."""
    names = model.feature_names_in_
    return {(names[j], names[i]) for i, given in enumerate(model.structure_.parents) for j in given if j >= 0}


@pytest.mark.parametrize("name", [name for name in INDEPENDENT if not name.endswith(TRAINED)])
def test_probabilities_do_not_depend_on_the_order_of_columns(name):
    for seed in range(2):
        X, y = tied_frame(seed)
        models = [LEARNERS[name].make(random_state=0).fit(X[order], y) for order in ORDERS]
        first, *others = (model.predict_proba(X[order]) for model, order in zip(models, ORDERS, strict=True))
        for other in others:
            np.testing.assert_allclose(other, first, atol=1e-6)


@pytest.mark.parametrize("structure", ["TAN-OMI-CR ML", "TAN-CR ML", "TAN-OMI-MM ML", "KDB-2 ML"])
def test_structures_do_not_depend_on_the_order_of_columns(structure):
    """The structures of trained learners are those of these."""
    X, y = tied_frame(0)
    first, *others = (edges_of(LEARNERS[structure].make(random_state=0).fit(X[order], y)) for order in ORDERS)
    assert first
    assert all(other == first for other in others)


@pytest.mark.parametrize("penalty", [None, "bic"])
@pytest.mark.parametrize("missing", [False, True])
def test_chow_liu_trees_do_not_depend_on_the_order_of_columns(penalty, missing):
    X, y = tied_frame(3)
    if missing:
        X = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.1)
    models = [BayesNetClassifier(structure=ChowLiu(penalty=penalty)).fit(X[order], y) for order in ORDERS]
    models += [
        BayesNetClassifier(structure=ChowLiu(penalty=penalty)).partial_fit(X[order], y, classes=[0, 1, 2])
        for order in ORDERS
    ]
    assert edges_of(models[0])
    for model in models:
        assert edges_of(model) == edges_of(models[0])
        expected = models[0].predict_proba(X[ORDERS[0]])
        np.testing.assert_allclose(model.predict_proba(X[model.feature_names_in_]), expected, atol=1e-12)


def test_an_explicit_root_is_a_column_number():
    X, y = tied_frame(0)
    for order in ORDERS:
        model = BayesNetClassifier(structure=ChowLiu(root=0)).fit(X[order], y)
        assert (model.structure_.parents[0] == -1).all()


def test_every_listed_learner_exists():
    assert all(any(name.startswith(own) for name in LEARNERS) for own in DEPENDENT)
