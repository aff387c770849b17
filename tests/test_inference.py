"""Prediction: blocks, threads, missing features, impossible samples."""

import naive
import numpy as np
import pytest

from tanlearn import EncodedData, MaximumLikelihood, Structure
from tanlearn.inference import log_joint, log_posterior

RNG = np.random.default_rng(0)


def model(parent, n=1500, n_states=(2, 3, 4), n_classes=3, allow_cycles=False):
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, n_classes, n), n_states=n_states)
    structure = Structure(parent, allow_cycles=allow_cycles)
    return MaximumLikelihood(alpha=1).fit(structure, data, RNG), structure, data


def test_complete_rows_equal_oracle():
    tables, structure, data = model([-1, 0, 1])
    layout = tables.layout
    expected = naive.log_joint(
        data.codes.T[:20], tables.cells, layout.child, layout.parents, layout.n_states, 3, range(3)
    )
    np.testing.assert_allclose(log_joint(tables, structure, data.codes)[:20], expected, rtol=1e-13)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_blocks_and_threads_change_nothing(missing):
    tables, structure, data = model([-1, 0, 1])
    codes = np.where(RNG.random(data.codes.shape) < missing, 255, data.codes).astype(np.uint8)
    whole = log_joint(tables, structure, codes, n_jobs=1)
    np.testing.assert_array_equal(log_joint(tables, structure, codes, n_jobs=2), whole)
    for first, last in ((0, 1), (500, 777), (1499, 1500)):
        part = np.ascontiguousarray(codes[:, first:last])
        np.testing.assert_array_equal(log_joint(tables, structure, part), whole[first:last])


def test_missing_features_are_summed_out():
    tables, structure, _ = model([1, 2, -1])
    samples = [[-1, 2, 3], [1, -1, 0], [-1, -1, 2], [0, 1, -1], [-1, -1, -1]]
    codes = np.where(np.array(samples) < 0, 255, samples).T.astype(np.uint8).copy()
    arrays = [tables[i] for i in range(3)]
    expected = [naive.marginal_scores(sample, tables.log_prior, arrays, [1, 2, -1], [2, 3, 4]) for sample in samples]
    scores = log_joint(tables, structure, codes)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    np.testing.assert_allclose(scores[-1], tables.log_prior, rtol=1e-12)  # nothing known: the prior


def test_scores_over_all_values_of_a_missing_feature_sum_to_its_score():
    tables, structure, _ = model([-1, 0, 1])
    values = np.array([[0, 0, 0], [0, 1, 2], [3, 3, 3]], np.uint8)
    known = log_joint(tables, structure, values)
    unknown = log_joint(tables, structure, np.array([[0], [255], [3]], np.uint8))
    np.testing.assert_allclose(np.logaddexp.reduce(known, axis=0), unknown[0], rtol=1e-12)


def test_a_cyclic_scorer_cannot_sum_out():
    tables, structure, data = model([1, 0, -1], allow_cycles=True)
    assert np.isfinite(log_joint(tables, structure, data.codes)).all()
    with pytest.raises(ValueError, match=r"row 1 misses feature 0 .* this structure has a cycle.*Impute"):
        log_joint(tables, structure, np.array([[0, 255], [0, 0], [0, 0]], np.uint8))


def test_two_parents_cannot_be_summed_out_yet_and_say_so():
    tables, structure, data = model([[-1, -1], [0, -1], [0, 1]])
    assert np.isfinite(log_joint(tables, structure, data.codes)).all()
    with pytest.raises(ValueError, match=r"row 0 misses feature 0 .*two augmenting parents"):
        log_joint(tables, structure, np.array([[255], [0], [0]], np.uint8))


@pytest.mark.parametrize("n_features", [1500, 20_000])
def test_thousands_of_features_stay_finite_and_normalised(n_features):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (20, n_features))
    data = EncodedData.from_codes(X, np.arange(20) % 2)
    structure = Structure.naive_bayes(n_features)
    tables = MaximumLikelihood(alpha=1).fit(structure, data, RNG)
    posterior = np.exp(log_posterior(log_joint(tables, structure, data.codes)))
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)


def test_posterior_of_extreme_scores():
    scores = np.array([[0, 0.0], [-1e5, -1e5 - 1], [-np.inf, -3], [-np.inf, -np.inf]])
    p = np.exp(log_posterior(scores))
    np.testing.assert_allclose(p, [[0.5, 0.5], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)], [0, 1], [0.5, 0.5]])
