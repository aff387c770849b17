"""A forest is not worse than simpler models by more than chance allows, whatever the number of classes and the noise.

A model that was selected because its log loss of n out-of-fold rows was lower may have a higher one of new rows. Let s
be the standard deviation, over rows, of the difference of two models' log losses. Where the expected difference is 0,
the mean of m new rows exceeds that of n rows by more than 3 s sqrt(1 / n + 1 / m) in one of 700 cases. The mean over
all tables is allowed to be 3 of its standard errors above 0.
"""

import numpy as np
import pytest

from tanlearn import BayesForestClassifier

N_TABLES, N_TEST = 30, 3000
#: Standard errors of a difference that chance allows.
ALLOWED = 3.0
#: Number of classes, and standard deviation of the noise where the signal has 1 (or no signal).
N_CLASSES = np.geomspace(2, 30.5, 10).astype(int)
NOISE = (0.2, 1.5, np.inf)


def draw_table(seed):
    """Return codes and classes of training rows and of test rows."""
    rng = np.random.default_rng(seed)
    n_classes, noise = int(N_CLASSES[seed % 10]), NOISE[seed // 10]
    n_train, d, n_values = int(rng.integers(150, 400)), int(rng.integers(2, 6)), int(rng.integers(2, 9))
    n = n_train + N_TEST
    if seed % 3 == 0:  # classes are intervals of a number, and all columns are this number and noise
        number = rng.normal(size=n)
        y = np.searchsorted(np.quantile(number, np.arange(1, n_classes) / n_classes), number)
        signal = np.tile(number[:, np.newaxis], d)
    else:  # classes are points, of equal frequency or not
        y = rng.choice(n_classes, size=n, p=rng.dirichlet(np.full(n_classes, 20.0 if seed % 3 == 1 else 0.7)))
        signal = rng.normal(size=(n_classes, d))[y]
    X = rng.normal(size=(n, d)) * min(noise, 1.0) + (0 if np.isinf(noise) else signal / max(noise, 1.0))
    X = np.searchsorted(np.quantile(X, np.arange(1, n_values) / n_values), X).astype(float)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def log_losses(seed):
    """Return the number of training rows, and log losses of test rows by model."""
    X, y, X_test, y_test = draw_table(seed)
    known = np.isin(y_test, y)
    X_test, y_test = X_test[known], y_test[known]
    own = np.searchsorted(np.unique(y), y_test)
    frequencies = (np.unique(y, return_counts=True)[1] + 1) / (len(y) + len(np.unique(y)))
    found = {"class frequencies": -np.log(frequencies[own])}
    for weights in ("auto", "shared", None):
        model = BayesForestClassifier(n_estimators=3, weights=weights, random_state=seed).fit(X, y)
        found[weights] = -model.predict_log_proba(X_test)[np.arange(len(own)), own]
    return len(y), found


@pytest.fixture(scope="module")
def tables():
    """Return log losses of all tables."""
    return [log_losses(seed) for seed in range(N_TABLES)]


@pytest.mark.parametrize("other", ["class frequencies", "shared", None])
def test_a_default_forest_is_worse_than_no_simpler_model_by_more_than_chance_allows(tables, other):
    excess, variance, bars = [], [], []
    for n_train, losses in tables:
        difference = losses["auto"] - losses[other]
        excess.append(difference.mean())
        variance.append(difference.var() * (1 / n_train + 1 / len(difference)))
        bars.append(ALLOWED * np.sqrt(variance[-1]) + 1e-9)  # and rounding
    assert (np.array(excess) <= bars).all()
    assert np.mean(excess) <= ALLOWED * np.sqrt(np.mean(variance) / N_TABLES)


def test_forests_find_what_there_is(tables):
    gains = [(losses["class frequencies"] - losses["auto"]).mean() for _, losses in tables]
    assert min(gains[:10]) > 0.1  # little noise
    assert np.mean(gains[10:20]) > 0.05
    assert max(map(abs, gains[20:])) < 0.05  # nothing but noise
