"""Data and oracles of the wrapper searches."""

import numpy as np
import pytest
from oracles import wrapper as naive_wrapper

from tanlearn import EncodedData, MaximumLikelihood, Structure
from tanlearn.baselines.structure_scores import StructureScorer
from tanlearn.encoding.splits import validation_masks

SCORES = ("accuracy", "margin", "conditional-likelihood")
VALIDATIONS = (None, 0.3, 3)
SMOOTHINGS = (MaximumLikelihood(), MaximumLikelihood(alpha=0, epsilon=1e-5))


def random_data(seed=0, n=50, n_states=(2, 3, 2, 3), n_classes=3, weight=None):
    """Features of which some copy others, and a class that depends on two of them together."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    copied = rng.random(n) < 0.5
    X[copied, -1] = X[copied, 0] % n_states[-1]
    y = np.where(rng.random(n) < 0.6, (X[:, 0] + X[:, 1]) % n_classes, rng.integers(0, n_classes, n))
    if weight is not None:
        weight = rng.uniform(0.1, 1, n) if weight == "real" else rng.integers(1, 4, n)
    return EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight)


def scorer_of(data, score="accuracy", validation=None, smoothing=SMOOTHINGS[0], initial=None, seed=0, gamma=1.25):
    return StructureScorer(
        data,
        score=score,
        gamma=gamma,
        validation=validation,
        smoothing=smoothing,
        initial=Structure.naive_bayes(data.n_features) if initial is None else initial,
        rng=np.random.default_rng(seed),
    )


def fold_rows(data, validation, seed=0):
    """The rows that a search with this seed holds out, fold by fold; None for the training rows themselves."""
    if validation is None:
        return None
    rng = np.random.default_rng(seed)
    return [np.flatnonzero(rows).tolist() for rows in validation_masks(data.y, data.n_classes, validation, rng)]


def naive_score(data, score, validation=None, smoothing=SMOOTHINGS[0], gamma=1.25):
    """Return a function from parents to their score, computed from the rows."""
    rows = np.column_stack([data.codes.T.astype(int), data.y]).tolist()
    folds = fold_rows(data, validation)

    def of_parents(parents):
        return naive_wrapper.structure_score(
            [[j for j in given if j >= 0] for given in parents],
            rows,
            data.weights.tolist(),
            [*data.n_states.tolist(), data.n_classes],
            score=score,
            gamma=gamma,
            folds=folds,
            alpha=smoothing.alpha,
            epsilon=smoothing.epsilon,
        )

    return of_parents


def varied_data(seed, weight=None):
    """Two to four classes, four or five features of two or three values, 40 to 70 rows."""
    n_states = np.random.default_rng(seed).integers(2, 4, 4 + seed % 2)
    return random_data(seed, 40 + 10 * (seed % 4), tuple(n_states.tolist()), 2 + seed % 3, weight)


def learn(search, data):
    """Return the parents, and child, parents, score and step of each change."""
    structure = search.learn(data, np.random.default_rng(0))
    assert structure == search.structure_
    return structure.parent.tolist(), plain(search.history_)


def naive_learn(oracle, data, score, validation=None, parents=None, **options):
    """Return what a search over raw rows finds, its scores to twelve digits, after the edges that it starts with."""
    initial = [()] * data.n_features if parents is None else [(j,) if j >= 0 else () for j in parents]
    score_of = naive_score(data, score, validation, **options)
    start = [(child, own, score_of(initial), 0) for child, own in enumerate(initial) if own]
    found, history = oracle(initial, score_of)
    return [own[0] if own else -1 for own in found], nearly(start + history, 1e-12)


def plain(history):
    """Return child, parents, score and step of each change, as oracles write them."""
    return [(change.child, change.parents, change.score, change.step) for change in history]


def nearly(history, rel):
    """Return a history that equals others whose scores differ by rounding."""
    return [(child, parents, pytest.approx(score, rel=rel), step) for child, parents, score, step in history]
