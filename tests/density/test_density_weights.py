"""Weights of rows in TANDensity and TANImputer: integers count rows repeatedly, and rows of weight 0 are dropped."""

import numpy as np
import pandas as pd
import pytest

from tanlearn import TANDensity, TANImputer
from tanlearn.density.density import _weighted_quantile
from tanlearn.density.latent_classes import CodedRows, fit_latent_classes
from tanlearn.structures.structures import Structure

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"kind": RNG.choice(["a", "b"], 60), "size": RNG.normal(size=60), "n": RNG.integers(0, 3, 60)})
FRAME["size"] += 4 * (FRAME["kind"] == "a")
FRAME = FRAME.mask(RNG.random(FRAME.shape) < 0.1)
WEIGHTS = RNG.integers(0, 4, 60)
REPEATED = FRAME.loc[FRAME.index.repeat(WEIGHTS)].reset_index(drop=True)


def test_a_density_with_weights_is_that_of_repeated_rows():
    one = TANDensity(n_components=1, contamination=0.13).fit(FRAME, sample_weight=WEIGHTS)
    other = TANDensity(n_components=1, contamination=0.13).fit(REPEATED)
    assert one.structure_ == other.structure_
    np.testing.assert_allclose(one.decision_function(FRAME), other.decision_function(FRAME), rtol=1e-9)
    unweighted = TANDensity(n_components=1, contamination=0.13).fit(FRAME)
    assert abs(one.score_samples(FRAME) - unweighted.score_samples(FRAME)).max() > 0.01
    ones = TANDensity(n_components=1, contamination=0.13).fit(FRAME, sample_weight=np.ones(60))
    np.testing.assert_allclose(ones.decision_function(FRAME), unweighted.decision_function(FRAME), rtol=1e-12)


def test_an_imputer_with_weights_is_that_of_repeated_rows():
    one = TANImputer(n_components=1).fit(FRAME, sample_weight=WEIGHTS).transform(FRAME)
    other = TANImputer(n_components=1).fit(REPEATED).transform(FRAME)
    pd.testing.assert_frame_equal(one, other)


def test_rows_of_weight_zero_are_dropped():
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.5)
    for options in ({"n_components": 2}, {}):
        one, other = (TANDensity(random_state=0, **options) for _ in range(2))
        one.fit(FRAME, sample_weight=weights)
        other.fit(FRAME[weights > 0], sample_weight=weights[weights > 0])
        np.testing.assert_array_equal(one.decision_function(FRAME), other.decision_function(FRAME))
        assert one.candidates_ == other.candidates_


def test_latent_classes_with_weights_are_those_of_repeated_rows():
    codes = RNG.integers(0, 3, (2, 40)).astype(np.uint8)
    codes[RNG.random(codes.shape) < 0.1] = 255
    weights, start = RNG.integers(1, 4, 40), RNG.dirichlet([1, 1], 40)
    rows = CodedRows(codes, np.array([3, 3]), np.array([False, True]), None)
    structure = Structure([-1, 0])
    tables, posterior = fit_latent_classes(structure, rows._replace(weights=weights), start)
    repeated = rows._replace(codes=np.ascontiguousarray(codes.repeat(weights, axis=1)))
    expected, expected_posterior = fit_latent_classes(structure, repeated, start.repeat(weights, axis=0))
    np.testing.assert_allclose(tables.cells, expected.cells, rtol=1e-9)
    np.testing.assert_allclose(posterior.repeat(weights, axis=0), expected_posterior, rtol=1e-9)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.37, 0.5])
def test_weighted_quantiles_are_those_of_repeated_values(fraction):
    values, weights = RNG.normal(size=30), RNG.integers(1, 5, 30)
    expected = np.quantile(values.repeat(weights), fraction)
    assert _weighted_quantile(values, weights, fraction) == pytest.approx(expected)
    assert _weighted_quantile(values, weights / 1000, fraction) == values.min()


def test_invalid_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        TANDensity(n_components=1).fit(FRAME, sample_weight=-np.ones(60))
    with pytest.raises(ValueError, match="sample_weight"):
        TANImputer(n_components=1).fit(FRAME, sample_weight=np.ones(5))
