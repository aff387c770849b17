"""Boosted terms at random, with cells that no training row has, and with a feature in several splits."""

import numpy as np

from tanlearn.models.boosted_terms import BoostedTerms, Term


def random_terms(n_states, n_classes, *, n_splits, seed=0):
    """Return a model with a term for each of the numbers of splits."""
    rng = np.random.default_rng(seed)
    n_states = np.array(n_states, np.intp)
    terms = []
    for n in n_splits:
        features = rng.integers(0, len(n_states), n)
        sides = [rng.integers(0, 2, n_states[i]).astype(np.uint8) for i in features]
        weights = rng.integers(0, 4, 1 << n).astype(float)
        weights[rng.random(1 << n) < 0.4] = 0.0
        terms.append(Term(features, sides, weights, rng.normal(size=(1 << n, n_classes))))
    return BoostedTerms.of_terms(terms, n_states, np.log(rng.dirichlet(np.ones(n_classes))))
