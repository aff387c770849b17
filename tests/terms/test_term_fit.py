"""Training of terms: the objective against a sum over rows, its gradient by finite differences, and its minimum."""

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import IS_ORDERED, N_STATES, random_rows

from tanlearn.terms import fitting
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.search import LEAST_GAIN, HeldOutSearch, log_softmax
from tanlearn.training.losses import ConditionalNLL, Margin
from tanlearn.training.optimizers import OptimizeOutcome

FEATURES = [1, 3, 0]
PARENTS = np.array([[-1, -1], [0, -1], [1, 0]])
NETWORK = TermStructure(PARENTS, ((2, 1, 0),))
FAMILIES = [(1, 0), (2, 1), (2, 0), (2, 1, 0)]
RIDGES = (0.5, 0.25, 2.0, 1.0, 4.0)
CONDITIONAL = ConditionalNLL()
KINDS = "own groups", "own smooth", "edge groups", "edge smooth", "triple groups"


def counts(rng, n_samples):
    return rng.integers(0, 4, n_samples)


def build(n_samples=40, n_classes=2, *, missing=0.0, weights=None, network=NETWORK, loss=CONDITIONAL):
    X, y, weight, data = random_rows(n_samples, n_classes, missing=missing, weights=weights, features=FEATURES)
    return X, y, weight, data, TermFit(TermBasis(Resolutions(data), network), data, loss)


def objective_of(fit, monkeypatch, ridges=RIDGES):
    """Return the function that is minimized, of terms that are multiplied by the roots of their ridges."""
    found = []

    def capture(fun, x0, **_):
        found.append(fun)
        return OptimizeOutcome(x0, 0.0, 0.0, 0, True, "", [])

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "minimize_without_bounds", capture)
        fit.minimize(fit.start, ridges, max_iter=1, tol=0.0)
    return found[0]


def solve(fit, start=None, ridges=RIDGES):
    outcome = fit.minimize(fit.start if start is None else start, ridges, max_iter=3000, tol=1e-10)
    assert outcome.grad_norm < 1e-3
    return outcome.x


MARGINS = [Margin(), Margin(scale=0.3, kappa=0.2, eta=2.0), Margin(scale=2.0, kappa=0.05, eta=1.0)]
CASES = pytest.mark.parametrize(
    ("n_classes", "missing", "weights"),
    [(2, 0.0, None), (5, 0.0, None), (2, 0.3, None), (2, 0.0, counts), (5, 0.3, counts)],
    ids=["2 classes", "5 classes", "missing", "weights", "5 classes, missing, weights"],
)


@CASES
@pytest.mark.parametrize("loss", [CONDITIONAL, *MARGINS], ids=str)
def test_objective_is_a_sum_over_rows_and_its_gradient_is_exact(n_classes, missing, weights, loss, monkeypatch):
    X, y, weight, _, fit = build(n_classes=n_classes, missing=missing, weights=weights, loss=loss)
    objective = objective_of(fit, monkeypatch)
    n_states, ordered = [N_STATES[i] for i in FEATURES], [IS_ORDERED[i] for i in FEATURES]
    features = [naive.Feature(naive.value_weights(X, weight, n_states, i), one) for i, one in enumerate(ordered)]
    ridges = dict(zip(KINDS, RIDGES, strict=True))
    rng = np.random.default_rng(1)
    x = rng.normal(size=len(fit.start))
    factor = 1.0 if loss is CONDITIONAL else loss.scale**2
    weights = np.append(np.ones(n_classes), np.repeat(np.array(RIDGES)[fit.basis.kinds], n_classes))
    roots = np.sqrt(factor * weights)

    def expected(scaled):
        arguments = scaled / roots, n_classes, X, y, weight, FAMILIES, features, ridges
        if loss is CONDITIONAL:
            return naive.penalized_loss(*arguments)
        return naive.penalized_margin_loss(*arguments, loss.scale, loss.kappa, loss.eta)

    value, gradient = objective(x)
    assert value == pytest.approx(expected(x), rel=1e-10)
    for _ in range(6):
        direction, step = rng.normal(size=len(x)), 1e-5
        slope = (expected(x + step * direction) - expected(x - step * direction)) / (2 * step)
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-6, abs=1e-5)


@CASES
@pytest.mark.parametrize("loss", [CONDITIONAL, *MARGINS], ids=str)
def test_objective_is_convex(n_classes, missing, weights, loss, monkeypatch):
    fit = build(n_classes=n_classes, missing=missing, weights=weights, loss=loss)[-1]
    objective = objective_of(fit, monkeypatch)
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0):
        a, b = rng.normal(0, scale, (2, len(fit.start)))
        (low, slope), (left, _), (right, _) = objective((a + b) / 2), objective(a), objective(b)
        assert low < (left + right) / 2
        assert right > low + float((slope * (b - a)).sum()) / 2


@CASES
def test_the_minimum_does_not_depend_on_the_start(n_classes, missing, weights):
    _, _, _, data, fit = build(n_classes=n_classes, missing=missing, weights=weights)
    one = solve(fit)
    two = solve(fit, np.random.default_rng(3).normal(size=len(fit.start)))
    np.testing.assert_allclose(one[n_classes:], two[n_classes:], atol=1e-4)
    np.testing.assert_allclose(log_softmax(fit.scores(one, data)), log_softmax(fit.scores(two, data)), atol=1e-4)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weights_equal_repeated_rows(missing, monkeypatch):
    _, _, weight, data, fit = build(missing=missing, weights=counts)
    repeated = data.take(np.repeat(np.arange(40), weight))
    repeated = type(data)(repeated.codes, repeated.n_states, repeated.y, 2, None, is_ordered=repeated.is_ordered)
    other = TermFit(TermBasis(Resolutions(repeated), NETWORK), repeated, ConditionalNLL())
    np.testing.assert_allclose(other.start, fit.start, atol=1e-12)
    x = np.random.default_rng(4).normal(size=len(fit.start))
    (one, d_one), (two, d_two) = (objective_of(each, monkeypatch)(x) for each in (fit, other))
    assert one == pytest.approx(two, rel=1e-10)
    np.testing.assert_allclose(d_one, d_two, rtol=1e-8, atol=1e-9)


def test_light_weights_count_as_whole_rows(monkeypatch):
    """Weights with a mean below 1 are divided by it, so that ridges mean the same."""
    fit = build()[-1]
    lighter = build(weights=lambda rng, n: np.full(n, 2.0**-10))[-1]
    x = np.random.default_rng(4).normal(size=len(fit.start))
    (one, d_one), (two, d_two) = (objective_of(each, monkeypatch)(x) for each in (fit, lighter))
    assert one == pytest.approx(two, rel=1e-10)
    np.testing.assert_allclose(d_one, d_two, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_large_ridge_leaves_the_class_frequencies(n_classes):
    _, y, weight, data, fit = build(n_classes=n_classes, weights=counts)
    x = solve(fit, np.random.default_rng(5).normal(size=len(fit.start)), (1e6,) * 5)
    assert np.abs(x[n_classes:]).max() < 1e-3
    frequencies = np.bincount(y, weight) / np.sum(weight)
    np.testing.assert_allclose(np.exp(log_softmax(fit.scores(x, data)))[0], frequencies, atol=1e-3)


@pytest.mark.parametrize("kind", range(5))
def test_each_ridge_shrinks_its_own_kind(kind):
    fit = build()[-1]
    ridges = tuple(1e4 if k == kind else 0.5 for k in range(5))
    sizes = np.abs(solve(fit, ridges=ridges)[2:].reshape(-1, 2)).max(axis=1)
    assert sizes[fit.basis.kinds == kind].max() < 0.01
    for other in set(range(5)) - {kind}:
        assert sizes[fit.basis.kinds == other].max() > 0.05


def test_history_is_the_mean_loss_per_row():
    fit = build(weights=counts)[-1]
    outcome = fit.minimize(fit.start, RIDGES, max_iter=50, tol=1e-6)
    losses = [one.loss for one in outcome.history]
    assert losses[-1] == pytest.approx(outcome.fun / float(fit._total))
    assert 0.5 < losses[0] < 1
    assert np.diff(losses).max() <= 1e-12


def test_scores_are_those_of_prior_and_cells():
    _, _, _, data, fit = build(missing=0.3)
    x = np.random.default_rng(6).normal(size=len(fit.start))
    prior, values = fit.prior_and_cells(x)
    expected = np.tile(prior, (40, 1))
    for cells, codes in zip(values, fit.basis.encode(data.codes), strict=True):
        expected[codes < len(cells)] += cells[codes[codes < len(cells)]]
    np.testing.assert_allclose(fit.scores(x, data), expected, rtol=1e-12, atol=1e-12)


def test_warm_starts_have_the_same_scores(monkeypatch):
    """A network with edges begins with the terms of features; those of edges are zero."""
    _, _, _, data, small = build(network=TermStructure.empty(3))
    large = build()[-1]
    x = np.random.default_rng(7).normal(size=len(small.start))
    start = large.warm_start(x)
    np.testing.assert_allclose(large.scores(start, data), small.scores(x, data), rtol=1e-12, atol=1e-12)
    one, two = (objective_of(fit, monkeypatch)(at)[0] for fit, at in ((small, x), (large, start)))
    assert one == pytest.approx(two, rel=1e-12)


# ------------------------------------------------------------------------------------------------ search of ridges


def folds(n_samples=120, weights=None):
    _, _, _, data = random_rows(n_samples, 2, weights=weights, features=FEATURES)
    fold = np.arange(n_samples) % 3
    parts = [data.split(fold == k) for k in range(3)]
    return parts, [Resolutions(rest) for rest, _ in parts]


def search(n_jobs=None, network=NETWORK, **options):
    parts, resolutions = folds(**options)
    return HeldOutSearch(parts, resolutions, [network] * 3, ConditionalNLL(), n_jobs=n_jobs), parts


def test_held_out_loss_is_the_weighted_mean_over_folds():
    found, parts = search(weights=lambda rng, n: rng.integers(1, 4, n))
    loss = found.loss(RIDGES)
    total = weight = 0.0
    for (_, held_out), scores in zip(parts, found.results[RIDGES].scores, strict=True):
        for row, label, w in zip(scores.tolist(), held_out.y.tolist(), held_out.weights.tolist(), strict=True):
            total += w * (naive.log_sum(row) - row[label])
            weight += w
    assert loss == pytest.approx(total / weight, rel=1e-12)


@pytest.mark.parametrize("moves", [((0,), (1,), (2,), (3,), (4,)), ((2,), (0, 1, 2, 3))], ids=["single", "together"])
def test_climbing_ends_where_no_neighbor_is_better(moves):
    found, _ = search()
    start = (1.0, 1.0, 4.0, 1.0, 4.0)
    ridges = found.climb(start, moves)
    best = found.loss(ridges)
    assert best < found.loss(start)
    # A ridge is changed only for a gain of LEAST_GAIN. With exact minima, the best of 43 losses is 0.7074 here, and the
    # loss at the end of the climb 0.7080.
    assert best * (1 - LEAST_GAIN) <= min(one.loss for one in found.results.values()) <= best
    for kinds in moves:
        for factor in (0.25, 4.0):
            neighbor = tuple(one * factor if k in kinds else one for k, one in enumerate(ridges))
            neighbor = tuple(min(max(one, 4.0**-3), 4.0**5) for one in neighbor)
            assert neighbor == ridges or found.loss(neighbor) >= best * (1 - 1e-3) - 1e-9


def test_threads_change_nothing():
    one, two = search(n_jobs=1)[0], search(n_jobs=2)[0]
    assert one.climb((1.0,) * 5, ((0,), (2,))) == two.climb((1.0,) * 5, ((0,), (2,)))
    assert one.results.keys() == two.results.keys()
    for ridges, result in one.results.items():
        assert result.loss == two.results[ridges].loss
        for a, b in zip(result.parameters, two.results[ridges].parameters, strict=True):
            np.testing.assert_array_equal(a, b)


def test_log_softmax_of_large_scores_is_finite():
    found = log_softmax(np.array([[1e4, 0.0, -1e4], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(found, [[0, -1e4, -2e4], [-np.log(3)] * 3], rtol=1e-12)
