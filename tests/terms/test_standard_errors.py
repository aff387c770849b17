"""Standard errors of curves: against the inverse of a Hessian by finite differences of a sum over rows.

With edges, against the normal posterior of a curve whose prior covariance is summed term by term.
"""

import math

import numpy as np
import pytest
from oracles import contributions as purification
from oracles import term_nets as naive
from support.term_networks import IS_ORDERED, N_STATES, random_rows

from tanlearn import EncodedData
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.search import log_softmax
from tanlearn.terms.standard_errors import curve_errors
from tanlearn.training.losses import ConditionalNLL

FEATURES = [1, 3, 2, 4]  # three and two ordered values, a single one, five categories
NO_EDGES, EDGES = np.full((4, 1), -1), np.array([[-1], [0], [-1], [0]])
RIDGES = (0.5, 0.25, 2.0, 1.0)
KINDS = "own groups", "own smooth", "edge groups", "edge smooth"


def counts(rng, n_samples):
    return rng.integers(1, 4, n_samples)


def build(n_classes, *, missing=0.0, weights=None, n_samples=40, parents=NO_EDGES):
    """Return rows, the parameters of a fit, its probabilities, and the standard errors."""
    X, y, weight, data = random_rows(n_samples, n_classes, missing=missing, weights=weights, features=FEATURES)
    fit = TermFit(TermBasis(Resolutions(data), TermStructure(parents)), data, ConditionalNLL())
    x = fit.minimize(fit.start, RIDGES, max_iter=2000, tol=1e-9).x
    p = np.exp(log_softmax(fit.scores(x, data)))
    return X, y, weight, x, p, curve_errors(fit.basis, data, p, RIDGES)


def features_of(X, weight):
    """Return the features in the oracle, and the weights of their values."""
    n_states = [N_STATES[i] for i in FEATURES]
    weights = [naive.value_weights(X, weight, n_states, i) for i in range(len(FEATURES))]
    return [naive.Feature(w, IS_ORDERED[i]) for w, i in zip(weights, FEATURES, strict=True)], weights


def second_differences(function, at, directions, step=2e-3):
    """Return the matrix of second derivatives of a function along pairs of directions."""
    n = len(directions)
    found = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            a, b = step * directions[i], step * directions[j]
            corners = function(at + a + b) - function(at + a - b) - function(at - a + b) + function(at - a - b)
            found[i, j] = found[j, i] = corners / (4 * step**2)
    return found


def expected_errors(X, y, weight, x, n_classes, feature, target, *, free=False):
    """Return the standard errors of a feature: the class prior and the terms of the feature vary, all others do not.

    With ``free``, those of all classes vary on their own, otherwise that of the class against the mean of the others.
    """
    features, weights = features_of(X, weight)
    ridges = dict(zip(KINDS, RIDGES, strict=True))
    own = naive.own_terms(features[feature])
    if not own:
        return np.zeros(1)
    first = sum(len(naive.own_terms(one)) for one in features[:feature])
    positions = [0, *(n_classes * (1 + first + t) for t in range(len(own)))]
    shift = np.array([1 - 1 / n_classes if c == target else -1 / n_classes for c in range(n_classes)])
    directions = []
    for position in positions:
        for one in np.eye(n_classes) if free else [shift]:
            direction = np.zeros(len(x))
            direction[position : position + n_classes] = one
            directions.append(direction)

    def objective(parameters):
        return naive.penalized_loss(parameters.tolist(), n_classes, X, y, weight, [], features, ridges)

    # The sum of a prior over the classes changes nothing, so the pseudo-inverse leaves it out.
    covariance = np.linalg.pinv(second_differences(objective, x, directions), rcond=1e-6, hermitian=True)
    share = np.array(weights[feature]) / sum(weights[feature])
    curves = np.array([f for _, f in own]).T
    curves = np.hstack([np.zeros((len(curves), 1)), curves - (share[:, np.newaxis] * curves).sum(axis=0)])
    if free:
        odds = np.array([1 if c == target else -1 / (n_classes - 1) for c in range(n_classes)])
        curves = np.kron(curves, odds)
    return np.sqrt(np.einsum("vi,ij,vj->v", curves, covariance, curves))


CASES = pytest.mark.parametrize(
    ("missing", "weights"), [(0.0, None), (0.3, None), (0.2, counts)], ids=["complete", "missing", "weights"]
)


@CASES
def test_errors_of_two_classes_are_those_of_the_full_hessian(missing, weights):
    X, y, weight, x, _, errors = build(2, missing=missing, weights=weights)
    for feature, found in enumerate(errors):
        expected = expected_errors(X, y, weight, x, 2, feature, 1, free=True)
        np.testing.assert_allclose(found[:, 1], expected, rtol=1e-3, atol=1e-9)
        np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-12)
    assert [found.shape for found in errors] == [(N_STATES[i], 2) for i in FEATURES]
    assert errors[0].min() > 0.1
    assert not errors[2].any()


@CASES
def test_errors_of_a_class_hold_the_odds_among_the_others_fixed(missing, weights):
    X, y, weight, x, _, errors = build(3, missing=missing, weights=weights)
    for feature, found in enumerate(errors):
        for c in range(3):
            expected = expected_errors(X, y, weight, x, 3, feature, c)
            np.testing.assert_allclose(found[:, c], expected, rtol=1e-3, atol=1e-9)


def posterior_errors(X, weight, p, feature):
    """Return the standard errors of a curve with a normal prior, whose values add to the log odds of the rows."""
    features, weights = features_of(X, weight)
    ridges, n = dict(zip(KINDS, RIDGES, strict=True)), features[feature].n_states
    curves = [(kind, np.array(f)) for kind, f in naive.own_terms(features[feature])]
    for edge in [(1, 0), (3, 0)]:
        if feature in edge:
            sizes = [features[i].n_states for i in edge]
            counts = purification.frequencies([[row[i] for i in edge] for row in X], weight, sizes)
            for kind, f in naive.edge_terms(*(features[i] for i in edge)):
                table = np.array([[f[a, b] for b in range(sizes[1])] for a in range(sizes[0])])
                curves.append((kind, purification.purified(table, counts)[(edge.index(feature),)]))
    prior = sum(2 / ridges[kind] * np.outer(f, f) for kind, f in curves)  # of the difference of two terms
    precision = np.zeros((n + 1, n + 1))  # of the class prior and the curve
    precision[1:, 1:] = np.linalg.inv(prior)
    for row, w, one in zip(X, weight, p, strict=True):
        adds = np.zeros(n + 1)
        adds[0] = 1
        if row[feature] >= 0:
            adds[1 + row[feature]] = 1
        precision += w * one[1] * one[0] * np.outer(adds, adds)
    share = np.array(weights[feature]) / sum(weights[feature])
    center = np.hstack([np.zeros((n, 1)), np.eye(n) - share])
    return np.sqrt(np.diag(center @ np.linalg.inv(precision) @ center.T))


@CASES
@pytest.mark.parametrize("feature", [0, 1, 3])
def test_errors_contain_the_part_of_the_edges(feature, missing, weights):
    X, _, weight, _, p, errors = build(2, missing=missing, weights=weights, parents=EDGES)
    np.testing.assert_allclose(errors[feature][:, 1], posterior_errors(X, weight, p, feature), rtol=1e-6)


def test_errors_of_many_ordered_values_some_with_hardly_any_weight():
    """Groups of 4, 8, 16 and 32 values add to the terms of 40 values; all are in the covariance of the prior."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 40, (300, 1)), rng.integers(0, 2, 300)
    weight = np.where(X[:, 0] % 8 == 7, 1e-12, 2.0)
    data = EncodedData.from_codes(X, y, n_states=[40], sample_weight=weight, is_ordered=True)
    p = rng.dirichlet(np.ones(2), 300)
    found = curve_errors(TermBasis(Resolutions(data), TermStructure.empty(1)), data, p, RIDGES)[0]
    of_values = np.array(naive.value_weights(X.tolist(), weight.tolist(), [40], 0))
    ridges = dict(zip(KINDS, RIDGES, strict=True))
    prior = sum(2 / ridges[kind] * np.outer(f, f) for kind, f in naive.own_terms(naive.Feature(of_values, True)))
    precision = np.zeros((41, 41))  # of the class prior and the curve
    precision[1:, 1:] = np.linalg.inv(prior)
    for value, w, one in zip(X[:, 0], weight, p, strict=True):
        adds = np.eye(41)[0] + np.eye(41)[1 + value]
        precision += w * one[1] * one[0] * np.outer(adds, adds)
    center = np.hstack([np.zeros((40, 1)), np.eye(40) - of_values / of_values.sum()])
    expected = np.sqrt(np.diag(center @ np.linalg.inv(precision) @ center.T))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-6)


def test_edges_carry_the_uncertainty_if_the_ridge_of_own_terms_is_large():
    """Such a ridge makes the own terms of a feature certain, but its curve is also a part of its edges."""
    data = random_rows(400, 2, features=FEATURES)[-1]
    p = np.full((400, 2), 0.5)
    found = []
    for parents, ridge in ((EDGES, 1e3), (NO_EDGES, 1e3)):
        basis = TermBasis(Resolutions(data), TermStructure(parents))
        found.append(curve_errors(basis, data, p, (ridge, ridge, 0.5, 0.5)))
    assert found[1][3].max() < 0.1
    rows_alone = 1 / np.sqrt(np.bincount(data.codes[3], minlength=5) / 4)
    assert (found[0][3][:, 1] > 0.6 * rows_alone).all()


def test_errors_fall_with_the_square_root_of_the_rows():
    """In the limit of many rows, where the ridge has no effect."""
    few, many = (build(2, n_samples=n)[-1][1] for n in (4000, 16000))
    np.testing.assert_allclose(few / many, 2, rtol=0.05)


def test_a_value_without_rows_has_the_error_of_its_prior():
    """The variance of the odds of a term is 2 / ridge. Those of the four others have the mean of four such terms:
    many rows determine their differences, but not how much of their sum belongs to the class prior."""
    data = random_rows(4000, 2, features=[4])[-1]
    data.codes[0][data.codes[0] == 2] = 1
    fit = TermFit(TermBasis(Resolutions(data), TermStructure.empty(1)), data, ConditionalNLL())
    found = curve_errors(fit.basis, data, np.full((4000, 2), 0.5), RIDGES)[0]
    assert found[2, 1] == pytest.approx(math.sqrt(2 / RIDGES[0] * (1 + 1 / 4)), rel=0.01)
    assert found[[0, 1, 3, 4]].max() < 0.2


@pytest.mark.parametrize("light", [1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("n_values", [2, 3, 12])
def test_if_one_value_has_almost_all_weight_errors_are_finite(n_values, light):
    """The variance of its contribution, relative to the mean over the rows, is about 0."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, n_values, (300, 1)), rng.integers(0, 2, 300)
    weight = np.where(X[:, 0] == 0, 2.0, light)
    data = EncodedData.from_codes(X, y, n_states=[n_values], sample_weight=weight)
    basis = TermBasis(Resolutions(data), TermStructure.empty(1))
    found = curve_errors(basis, data, np.full((300, 2), 0.5), RIDGES)[0]
    assert np.isfinite(found).all()
    assert found[0].max() < 1e-4
    assert found[1:].min() > 1


def test_certain_predictions_have_the_errors_of_the_prior():
    """If all probabilities are 0 or 1, rows have no information on the odds; nothing is divided by zero."""
    for feature in (4, 1):
        _, y, _, data = random_rows(50, 2, features=[feature])
        fit = TermFit(TermBasis(Resolutions(data), TermStructure.empty(1)), data, ConditionalNLL())
        found = curve_errors(fit.basis, data, np.eye(2)[y], RIDGES)[0]
        assert np.isfinite(found).all()
        assert found.max() > math.sqrt(2 / RIDGES[0]) * 0.7
