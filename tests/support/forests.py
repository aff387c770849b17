"""Small forests, and views of rows that are made by hand."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import softmax

from tanlearn import EncodedData
from tanlearn.forest.forest_network import DrawSettings
from tanlearn.forest.learning import ForestSettings, fit_forest_weights, grow_forest
from tanlearn.forest.out_of_fold import OutOfFold

DRAWS = DrawSettings(n_cuts=(2, 4), max_parents=3, min_candidates=0)


def make(n=200, d=5, n_classes=3, seed=0, gaps=0.0, weights=None):
    """Return rows whose class depends on two features together."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (n, d))
    y = (codes[:, 0] // 4 + codes[:, -1] // 6) % n_classes
    y = np.where(rng.random(n) < 0.1, rng.integers(0, n_classes, n), y)
    codes = np.where(rng.random((n, d)) < gaps, -1, codes)
    return EncodedData.from_codes(codes, y, n_states=[12] * d, n_classes=n_classes, sample_weight=weights)


def learn_forest(data, is_ordered, settings, rng, **options):
    """Grow a forest, and fit its weights to out-of-fold predictions."""
    return fit_forest(data, is_ordered, settings, rng, **options).forest


def fit_forest(data, is_ordered, settings, rng, **options):
    """Grow a forest, fit its weights, and return it with its out-of-fold predictions."""
    grown = grow_forest(data, is_ordered, settings, rng, n_jobs=options.get("n_jobs"))
    return fit_forest_weights(data, is_ordered, settings, grown, rng, **options)


def with_true_classes(own_p, y, n_classes=3):
    """Return probabilities (n_rows, n_classes) of which those of the true classes are given, and the rest are equal."""
    p = np.tile(np.maximum(1 - own_p, 1e-9)[:, np.newaxis] / (n_classes - 1), n_classes)
    p[np.arange(len(y)), y] = own_p
    return p


def learn(data, n_jobs=None, seed=0, **settings):
    """Return a small forest; codes of feature 2 have no order."""
    settings = ForestSettings(**{"n_members": 3, "draws": DRAWS, "n_folds": 3, **settings})
    return learn_forest(data, np.arange(data.n_features) != 2, settings, np.random.default_rng(seed), n_jobs=n_jobs)


def mixed_table():
    """Return numbers, categories and gaps, and a class of them."""
    rng = np.random.default_rng(0)
    n = 240
    X = pd.DataFrame(
        {"size": rng.normal(size=n), "town": rng.choice(["Graz", "Linz", "Wien"], n), "age": rng.random(n)}
    )
    y = np.where((X["size"] > 0) ^ (X["town"] == "Graz"), "yes", "no")
    X.loc[rng.random(n) < 0.1, "town"] = None
    return X, y


@dataclass(frozen=True)
class Gains:
    """What twins say of rows, as numbers: gains [member, feature, level, row, class], log_prior [row, class]."""

    data: EncodedData
    gains: np.ndarray
    log_prior: np.ndarray

    @property
    def n_members(self):
        return len(self.gains)

    @property
    def n_levels(self):
        return self.gains.shape[2]

    def base(self, rows):
        return self.log_prior[rows]

    def level_scores(self, rows):
        return self.gains[:, :, :, rows].sum(axis=1).mean(axis=0)

    def level_probabilities(self, rows):
        totals = np.cumsum(self.gains[:, :, :, rows].sum(axis=1), axis=1) + self.log_prior[rows]
        return softmax(totals, axis=3).mean(axis=0)

    def feature_scores(self, rows, level_weight):
        return np.tensordot(level_weight, self.gains[:, :, :, rows], (0, 2)).mean(axis=0)

    def family_scores(self, rows, level_weight, likeliest, shares):
        found = np.tensordot(level_weight, self.gains[:, :, :, rows], (0, 2)).reshape(
            -1, len(rows), self.data.n_classes
        )
        own = found if likeliest is None else np.take_along_axis(found, likeliest[np.newaxis], axis=2)
        rest = [] if shares is None else [(found * shares).sum(axis=2, keepdims=True)]
        return np.concatenate([own, *rest], axis=2).astype(np.float32)

    def total_scores(self, rows, weights):
        return np.tensordot(weights, self.gains[:, :, :, rows], 3)


def draw_views(seed, *, n=150, n_members=2, d=3, n_levels=3, n_classes=3, n_folds=3, is_nested=True, signal=1.0):
    """Return views of random numbers, whose levels, features and families say more or less of the classes.

    What inner twins say are other numbers. Rows have weights, and those of low weight are of other classes.
    """
    rng = np.random.default_rng(seed)
    gains = rng.normal(size=(n_members, d, n_levels, n, n_classes))
    log_prior = np.log(rng.dirichlet(np.full(n_classes, 20.0), n))
    of_family = signal * rng.uniform(-0.3, 1.2, (n_members, d, 1)) * rng.uniform(0.2, 1.0, n_levels)
    total = np.tensordot(of_family, gains, 3) + log_prior
    weight = rng.choice([0.2, 0.5, 2.0], n)
    y = (np.where(weight[:, np.newaxis] > 0.2, total, -0.5 * total) + rng.gumbel(size=total.shape)).argmax(axis=1)
    data = EncodedData.from_codes(np.zeros((n, d), int), y, n_states=[1] * d, n_classes=n_classes, sample_weight=weight)

    def other():
        noise = np.log(rng.dirichlet(np.full(n_classes, 20.0), n))
        return Gains(data, gains + rng.normal(size=gains.shape), noise)

    inner = [other() for _ in range(n_folds)] if is_nested else []
    fold, rows = rng.permutation(np.arange(n) % n_folds), rng.permutation(n)
    return OutOfFold(Gains(data, gains, log_prior), inner, fold, rows)
