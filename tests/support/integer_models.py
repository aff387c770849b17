"""Classifiers of random integers, of any structure."""

import numpy as np
from support.boosted_terms import random_terms

from tanlearn import BayesNetClassifier, BoostedTermsClassifier, IntegerTables, Structure, TableEncoder
from tanlearn.models.bayes_net import BayesNet
from tanlearn.structures.table_layout import TableLayout


def random_model(rng, n_states, n_classes, parents, fixed_point, ties=False):
    """Return a classifier of random tables, fitted to rows that hold every category."""
    rows = np.stack([np.arange(max(*n_states, 2 * n_classes)) % k for k in n_states], axis=1)
    structure = Structure(parents, allow_cycles=True)
    y = np.arange(len(rows)) % n_classes
    model = BayesNetClassifier(structure=structure, encoder=TableEncoder(discrete_features=True)).fit(rows, y)
    layout = TableLayout.of_parents(structure.parents, np.array(n_states), n_classes)
    largest = 2**fixed_point.n_bits - 1
    magnitudes = rng.integers(0, largest, layout.n_cells, endpoint=True)
    if ties:
        magnitudes = np.where(rng.random(layout.n_cells) < 0.9, largest, magnitudes)
    model.model_ = BayesNet(model.structure_, IntegerTables(layout, magnitudes, fixed_point))
    return model


def random_parents(rng, n_features, n_parents):
    """Return parents of features, some without any; earlier ones, or any if there may be cycles."""
    parents = np.full((n_features, max(n_parents, 1)), -1)
    for i in range(n_features):
        others = [j for j in range(n_features) if j != i]
        given = rng.permutation(others)[: rng.integers(0, n_parents, endpoint=True)]
        parents[i, : len(given)] = given
    return parents


def random_boosted_terms(seed, n_states, n_classes, splits=((0,), (3, 0), (4, 1, 4), (2, 1), (1, 3, 4, 0, 2), ())):
    """Return a classifier of random terms, fitted to rows that hold every category."""
    rows = np.stack([np.arange(max(*n_states, 2 * n_classes)) % k for k in n_states], axis=1)
    encoder = TableEncoder(discrete_features=True)
    model = BoostedTermsClassifier(max_terms=1, encoder=encoder, random_state=0).fit(
        rows, np.arange(len(rows)) % n_classes
    )
    model.model_ = random_terms(n_classes, n_states=n_states, splits=splits, seed=seed)
    return model
