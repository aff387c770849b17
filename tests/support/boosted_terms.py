"""Random boosted terms, as arrays and as dictionaries of the oracle, and rows with missing values."""

import itertools

import numpy as np

from tanlearn.models.boosted_terms import BoostedTerms, Term

#: Five features; the third one has a single value.
N_STATES = [4, 2, 1, 3, 6]
#: Terms with no, one, two, three and four splits; some have a feature twice.
SPLITS = [(), (0,), (3, 0), (4, 1, 4), (2, 1), (1, 3, 4, 0), (4, 4)]


def random_terms(n_classes=3, *, n_states=N_STATES, splits=SPLITS, seed=0):
    """Return the model of random terms; some of their cells have no weight."""
    rng = np.random.default_rng(seed)
    terms = []
    for features in splits:
        sides = [rng.integers(0, 2, n_states[i]).astype(np.uint8) for i in features]
        n_cells = 1 << len(features)
        weights = rng.integers(0, 4, n_cells).astype(float)
        terms.append(Term(np.array(features, np.intp), sides, weights, rng.normal(size=(n_cells, n_classes))))
    log_frequency = np.log(rng.dirichlet(np.full(n_classes, 3.0)))
    return BoostedTerms.of_terms(terms, np.array(n_states, np.intp), log_frequency)


def as_plain(model):
    """Return the terms of a model as dictionaries of the oracle."""
    plain = []
    for term in model.terms():
        cells = {}
        for cell in itertools.product([0, 1], repeat=len(term.features)):
            number = sum(side << s for s, side in enumerate(cell))
            cells[cell] = (float(term.weights[number]), term.values[number].tolist())
        sides = [side.tolist() for side in term.sides]
        plain.append({"features": term.features.tolist(), "sides": sides, "cells": cells})
    return plain


def random_codes(n_rows, *, n_states=N_STATES, missing=0.3, dtype=np.uint8, seed=0):
    """Return codes (n_features, n_rows), and the rows as lists with None for missing values."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, np.array(n_states)[:, np.newaxis], (len(n_states), n_rows))
    is_missing = rng.random(codes.shape) < missing
    codes = np.where(is_missing, np.iinfo(dtype).max, codes).astype(dtype)
    rows = [[None if is_missing[i, r] else int(codes[i, r]) for i in range(len(codes))] for r in range(n_rows)]
    return codes, rows
