"""Terms trained by losses with the joint likelihood: objective and gradient against enumeration, and the minimum."""

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import IS_ORDERED, N_STATES, random_rows

from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.joint_fitting import JointTermFit, build_fit, joint_frequencies
from tanlearn.terms.search import log_softmax
from tanlearn.training.losses import ConditionalNLL, JointNLL, Margin, SoftHybrid

FEATURES = [1, 4, 0]
EDGES = [(1, 0), (2, 1)]
TREE = TermStructure(np.array([[-1], [0], [1]]))
EMPTY = TermStructure.empty(3)
RIDGES = (0.5, 0.25, 2.0, 1.0, 4.0)
LOSSES = [JointNLL(), SoftHybrid(trade_off=3), SoftHybrid(trade_off=0.5, gamma=2.0, eta=3.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def counts(rng, n_samples):
    return rng.integers(0, 4, n_samples)


CASES = pytest.mark.parametrize(
    ("n_classes", "missing", "weights"),
    [(2, 0.0, None), (3, 0.3, counts)],
    ids=["2 classes", "3 classes, missing, weights"],
)


def build(n_samples=40, n_classes=2, *, missing=0.0, weights=None, network=TREE, loss=LOSSES[1]):
    X, y, weight, data = random_rows(n_samples, n_classes, missing=missing, weights=weights, features=FEATURES)
    return X, y, weight, data, build_fit(TermBasis(Resolutions(data), network), data, loss)


def solve(fit, start=None, ridges=RIDGES):
    outcome = fit.minimize(fit.start if start is None else start, ridges, max_iter=5000, tol=1e-10)
    assert outcome.grad_norm < 1e-2
    return outcome.x


def n_terms(fit):
    """Return the number of parameters that are the prior or terms."""
    return fit.n_classes * (1 + len(fit.basis.kinds))


@CASES
@every_loss
@pytest.mark.parametrize("network", [TREE, EMPTY], ids=["tree", "no edges"])
def test_mean_loss_equals_enumeration_and_its_gradient_is_exact(n_classes, missing, weights, loss, network):
    X, y, weight, _, fit = build(n_classes=n_classes, missing=missing, weights=weights, loss=loss, network=network)
    n_states, ordered = [N_STATES[i] for i in FEATURES], [IS_ORDERED[i] for i in FEATURES]
    features = [naive.Feature(naive.value_weights(X, weight, n_states, i), one) for i, one in enumerate(ordered)]
    rng = np.random.default_rng(1)
    x = rng.normal(size=len(fit.start))
    settings = {"trade_off": 0.0, "gamma": 0.0, "eta": 1.0} | loss.get_params()

    def expected(parameters):
        parts = parameters[: n_terms(fit)], parameters[n_terms(fit) :]
        return naive.mean_hybrid_loss(*parts, n_classes, X, y, weight, network.edges, features, **settings)

    value, gradient = fit._mean_loss(x)
    assert value == pytest.approx(expected(x), rel=1e-9)
    for _ in range(3):
        direction, step = rng.normal(size=len(x)), 1e-5
        slope = (expected(x + step * direction) - expected(x - step * direction)) / (2 * step)
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-7)


@every_loss
def test_only_terms_have_a_penalty(loss):
    """At the minimum, the gradient of the loss cancels that of the penalty, in units of the sum of both likelihoods."""
    fit = build(n_classes=3, missing=0.2, loss=loss)[-1]
    x = solve(fit)
    _, gradient = fit._mean_loss(x)
    unit = 1 + getattr(loss, "trade_off", 0)
    weights = np.zeros(len(x))
    weights[3 : n_terms(fit)] = unit * np.repeat(np.array(RIDGES)[fit.basis.kinds], 3)
    np.testing.assert_allclose(40 * gradient, -weights * x, atol=2e-3)


@every_loss
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_mean_loss_is_convex(loss, missing):
    fit = build(n_classes=3, missing=missing, loss=loss)[-1]
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0):
        a, b = rng.normal(0, scale, (2, len(fit.start)))
        (low, slope), (left, _), (right, _) = fit._mean_loss((a + b) / 2), fit._mean_loss(a), fit._mean_loss(b)
        assert low < (left + right) / 2
        assert right > low + float((slope * (b - a)).sum()) / 2


@every_loss
def test_the_minimum_does_not_depend_on_the_start(loss):
    _, _, _, data, fit = build(missing=0.3, loss=loss)
    one = solve(fit)
    two = solve(fit, fit.start + np.random.default_rng(3).normal(size=len(fit.start)))
    np.testing.assert_allclose(log_softmax(fit.scores(one, data)), log_softmax(fit.scores(two, data)), atol=1e-3)


def test_maximum_likelihood_without_penalty_has_the_frequencies_of_values_and_classes():
    """Without edges, this is naive Bayes, with one more row whose features and class are independent."""
    _, _, _, data = random_rows(200, 2, features=[1, 4])
    fit = build_fit(TermBasis(Resolutions(data), TermStructure.empty(2)), data, JointNLL())
    found = log_softmax(fit.scores(solve(fit, ridges=(1e-3,) * 5), data))
    p_class = (np.bincount(data.y) + 1 / 2) / 201
    scores = np.log(p_class)
    for column, codes, n_states in zip(fit.basis.columns, data.codes, data.n_states.tolist(), strict=True):
        frequencies = joint_frequencies(column, data, p_class)
        counted = np.transpose([np.bincount(codes[data.y == c], minlength=n_states) for c in range(2)])
        one_more = (counted.sum(axis=1, keepdims=True) + 1 / n_states) / 201
        np.testing.assert_allclose(frequencies, (counted + one_more / 2) / 201, rtol=1e-9)
        scores = scores + np.log(frequencies / p_class)[codes]
    np.testing.assert_allclose(found, log_softmax(scores), atol=1e-3)


def test_a_large_trade_off_is_conditional_likelihood():
    _, _, _, data, likelihood = build(loss=ConditionalNLL())
    hybrid = build(loss=SoftHybrid(trade_off=1e5))[-1]
    one, two = likelihood.scores(solve(likelihood), data), hybrid.scores(solve(hybrid), data)
    np.testing.assert_allclose(log_softmax(one), log_softmax(two), atol=5e-3)


@every_loss
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weights_equal_repeated_rows(loss, missing):
    _, _, weight, data, fit = build(missing=missing, weights=counts, loss=loss)
    repeated = data.take(np.repeat(np.arange(40), weight))
    repeated = type(data)(repeated.codes, repeated.n_states, repeated.y, 2, None, is_ordered=repeated.is_ordered)
    other = build_fit(TermBasis(Resolutions(repeated), TREE), repeated, loss)
    np.testing.assert_allclose(other.start, fit.start, atol=1e-9)
    x = np.random.default_rng(4).normal(size=len(fit.start))
    (one, d_one), (two, d_two) = fit._mean_loss(x), other._mean_loss(x)
    assert one == pytest.approx(two, rel=1e-10)
    np.testing.assert_allclose(d_one, d_two, rtol=1e-8, atol=1e-10)


def test_light_weights_count_as_whole_rows():
    fit, lighter = build()[-1], build(weights=lambda rng, n: np.full(n, 2.0**-10))[-1]
    x = np.random.default_rng(4).normal(size=len(fit.start))
    assert fit._mean_loss(x)[0] == pytest.approx(lighter._mean_loss(x)[0], rel=1e-10)


def test_a_class_without_rows_has_finite_parameters():
    """The additional row keeps the prior of a class that is absent from a fold finite."""
    _, _, _, data = random_rows(40, 2, features=FEATURES)
    data = type(data)(data.codes, data.n_states, data.y, 3, None, is_ordered=data.is_ordered)
    fit = build_fit(TermBasis(Resolutions(data), TREE), data, LOSSES[0])
    assert np.abs(solve(fit)).max() < 30


@every_loss
def test_warm_starts_contain_the_network_without_edges(loss):
    _, _, _, data, small = build(network=EMPTY, loss=loss)
    large = build(loss=loss)[-1]
    x = np.random.default_rng(7).normal(size=len(small.start))
    start = large.warm_start(x)
    np.testing.assert_allclose(large.scores(start, data), small.scores(x, data), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(start[n_terms(large) :][: small._n_own_cells], x[n_terms(small) :])
    np.testing.assert_array_equal(
        start[n_terms(large) + small._n_own_cells :], large.start[n_terms(large) + small._n_own_cells :]
    )


@pytest.mark.parametrize("loss", [ConditionalNLL(), Margin()], ids=str)
def test_other_losses_have_no_row_terms(loss):
    assert type(build(loss=loss)[-1]) is TermFit
    assert type(build()[-1]) is JointTermFit


def test_warm_starts_from_other_edges_contain_curves_only():
    other = build(network=TermStructure(np.array([[1], [-1], [-1]])))[-1]
    fit = build()[-1]
    x = np.random.default_rng(7).normal(size=len(other.start))
    start, n_own = fit.warm_start(x), fit._n_own_parameters
    np.testing.assert_array_equal(start[:n_own], x[:n_own])
    np.testing.assert_array_equal(start[n_own:], fit.start[n_own:])


def test_curves_of_monotone_features_are_in_order():
    _, _, _, data, _ = build(200, weights=None)
    fit = build_fit(TermBasis(Resolutions(data, np.array([1, 0, -1])), EMPTY), data, LOSSES[1])
    curves = fit.prior_and_cells(fit.minimize(fit.start, RIDGES, max_iter=100, tol=1e-6).x)[1]
    for i, direction in ((0, 1), (2, -1)):
        assert np.diff(direction * (curves[i][:, 1] - curves[i][:, 0])).min() > -1e-9
