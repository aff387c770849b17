"""The effective sample size, and the warning about weights that do not look like counts."""

import warnings

import numpy as np
import pytest

from tanlearn import NaiveBayesClassifier, scale_weights
from tanlearn.encoding.weights import WeightSums, effective_size, warn_of_weights

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 60)
X = np.where(RNG.random((60, 2)) < 0.8, Y[:, np.newaxis], 1 - Y[:, np.newaxis])


@pytest.mark.parametrize(
    "weights", [[10, 10, 10], [1, 0, 2, 5], RNG.exponential(size=50), [1e-30, 3e-30], [1e90, 2e90]]
)
def test_scaled_weights_add_up_to_the_effective_sample_size(weights):
    weights = np.asarray(weights, np.float64)
    scaled = scale_weights(weights)
    unit = weights / weights.max()
    kish = sum(unit) ** 2 / sum(w * w for w in unit)
    assert scaled.sum() == pytest.approx(kish)
    assert effective_size(unit) == pytest.approx(kish)
    np.testing.assert_allclose(scaled / scaled.max(), unit)
    np.testing.assert_allclose(scale_weights(1000 * scaled), scaled)  # their scale says nothing


@pytest.mark.parametrize("weights", [[0, 0], [-1, 2], [np.nan, 1], ["a", "b"], 3, None])
def test_what_is_no_weight_is_refused(weights):
    with pytest.raises((ValueError, TypeError)):
        scale_weights(weights)


def silent(weights, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_weights(WeightSums().update(weights, len(weights)), weights, y)


def test_counts_are_no_reason_to_warn():
    silent(np.ones(50))
    silent(np.bincount(RNG.integers(0, 500, 500), minlength=500))  # a bootstrap sample
    silent(RNG.permutation([1, 2, 3, 4, 5] * 10))
    silent(RNG.uniform(0.5, 1.5, 100))
    silent(np.array([0, 0, 1]))
    silent(np.full(60, 8))  # 8 times the effective sample size
    silent(np.repeat([1.5, 2.5], [50, 30]))  # 2 times
    silent(np.full(60, 0.5))  # half of it


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (
            np.full(60, 10),
            r"adds up to 600 for 60 rows.* is 60\. .*overstate.*scale_weights.*If they are counts, ignore",
        ),
        (np.append(np.full(59, 8), 9), "overstate.*If they are counts, ignore"),
        (np.append(np.repeat([1.5, 2.5], [37, 22]), 2.75), "overstate"),
        (np.append(np.full(59, 0.5), 0.4375), "understate"),
        (RNG.integers(1e4, 1e6, 60), "overstate"),
        (np.exp(2 * RNG.normal(size=60)), "overstate"),
        (np.full(60, 1 / 60), r"adds up to 1 for 60 rows.* understate.*scale_weights\(sample_weight\)\.$"),
        (np.where(Y, 26.0, 0.5), "overstate.*depend only on the class belong in class_weight"),
    ],
)
def test_weights_that_do_not_look_like_counts_are_pointed_out_once(weights, words):
    for learn in (
        lambda w: NaiveBayesClassifier().fit(X, Y, w),
        lambda w: NaiveBayesClassifier().partial_fit(X, Y, [0, 1], w),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learn(weights)
        told = [str(warning.message) for warning in caught if "sample_weight adds up" in str(warning.message)]
        assert len(told) == 1
        with pytest.warns(UserWarning, match=words):
            raise_again(told[0])
    silent(scale_weights(weights))


def raise_again(message):
    warnings.warn(message, UserWarning, stacklevel=2)


def test_batches_are_examined_together():
    batches = [(X[:30], Y[:30], np.full(30, 10)), (X[30:], Y[30:], np.full(30, 10))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NaiveBayesClassifier().fit_batches(batches)
    assert sum("adds up to 600 for 60 rows" in str(warning.message) for warning in caught) == 1
