"""One suite for every loss, the user's own among them, and a few tests for what only one loss promises."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from oracles import losses as naive_losses
from sklearn.base import clone

from tanlearn.training import losses as losses_module
from tanlearn.training.losses import ConditionalNLL, HingeMargin, Hybrid, JointNLL, Margin, SoftHybrid, require_loss

INF = np.inf


class ExpectedError:
    """A user's own loss: one minus the probability of the true class."""

    def value_and_gradient(self, scores, y):
        top = scores.max(axis=1, keepdims=True)
        shifted = np.subtract(scores, top, out=np.zeros_like(scores), where=scores != top)
        p = np.exp(shifted)
        p /= p.sum(axis=1, keepdims=True)
        true = np.eye(scores.shape[1], dtype=scores.dtype)[y]
        p_true = (p * true).sum(axis=1)
        return 1 - p_true, p_true[:, np.newaxis] * (p - true)


def of_margin(oracle, *parameters):
    return lambda scores, label: oracle(scores, label, *parameters)


# name: loss, oracle, largest slope (the unit in which errors are counted)
LOSSES = {
    "joint": (JointNLL(), naive_losses.joint_nll, 1),
    "conditional": (ConditionalNLL(), naive_losses.conditional_nll, 1),
    "hinge": (HingeMargin(), of_margin(naive_losses.hinge_margin, 1.0, 10.0), 1),
    "hinge, wide and soft": (HingeMargin(gamma=5, eta=1), of_margin(naive_losses.hinge_margin, 5.0, 1.0), 1),
    "margin": (Margin(), of_margin(naive_losses.smooth_margin, 0.02, 0.5, 10.0), 0.02),
    "margin, steep": (
        Margin(scale=0.5, kappa=0.1, eta=5),
        of_margin(naive_losses.smooth_margin, 0.5, 0.1, 5.0),
        0.5,
    ),
    "hybrid": (Hybrid(trade_off=100, gamma=1), of_margin(naive_losses.hybrid, 100.0, 1.0, 10.0), 101),
    "hybrid without margin": (Hybrid(trade_off=0), of_margin(naive_losses.hybrid, 0.0, 1.0, 10.0), 1),
    "soft hybrid": (SoftHybrid(trade_off=100, gamma=1), of_margin(naive_losses.soft_hybrid, 100.0, 1.0, 1.0), 101),
    "user's own": (ExpectedError(), naive_losses.expected_error, 0.25),
}
SHIFT_INVARIANT = [name for name in LOSSES if "joint" not in name and "hybrid" not in name]
BUILT_IN = [name for name in LOSSES if name != "user's own"]


@pytest.fixture(params=LOSSES)
def name(request):
    return request.param


@pytest.fixture
def loss(name):
    return LOSSES[name][0]


@pytest.fixture(params=[2, 3, 26])
def problem(request):
    """Return scores and classes; rows differ in spread, so that some margins are met and some are not."""
    rng = np.random.default_rng(request.param)
    scores = rng.normal(size=(60, request.param)) * rng.choice([0.3, 3.0, 30.0], size=(60, 1)) - 50
    return scores, rng.integers(0, request.param, 60)


def log(*probabilities):
    return np.log(np.array([probabilities]))


# The true class is the first one. Margins are log 2 (rival 1/4) and log 4 - log(2)/eta (two rivals of 1/8).
HAND_COMPUTED = [
    (JointNLL(), (0.5, 0.25), 0.6931471805599453, (-1, 0)),
    (ConditionalNLL(), (0.5, 0.125, 0.125), 0.4054651081081644, (-1 / 3, 1 / 6, 1 / 6)),
    (HingeMargin(gamma=1, eta=10), (0.5, 0.25), 0.3068528194400547, (-1, 1)),
    (HingeMargin(gamma=2, eta=10), (0.5, 0.125, 0.125), 0.6830203569361040, (-1, 0.5, 0.5)),
    (HingeMargin(gamma=0.5, eta=10), (0.5, 0.25), 0.0, (0, 0)),
    (Margin(scale=1, kappa=0.1), (0.5, 0.25), -0.7931471805599453, (-1, 1)),
    (Margin(scale=0.1, kappa=0.5), (0.5, 0.25), -0.5669124529864036, (-0.0930685281944005, 0.0930685281944005)),
    (Margin(scale=2, kappa=0.1), (0.5, 0.25), -1.0, (0, 0)),
    (Hybrid(trade_off=10, gamma=1), (0.5, 0.25), 3.7616753749604923, (-11, 10)),
    (Hybrid(trade_off=10, gamma=0.5), (0.5, 0.25), 0.6931471805599453, (-1, 0)),
    (ExpectedError(), (0.6, 0.2), 0.25, (-0.1875, 0.1875)),
]


@pytest.mark.parametrize(("loss", "probabilities", "value", "gradient"), HAND_COMPUTED)
def test_hand_computed_points(loss, probabilities, value, gradient):
    values, d_scores = loss.value_and_gradient(log(*probabilities), np.array([0]))
    np.testing.assert_allclose(values, [value], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(d_scores, [gradient], rtol=1e-13, atol=1e-15)


def test_equals_oracle(name, loss, problem):
    scores, y = problem
    values, d_scores = loss.value_and_gradient(scores, y)
    assert values.shape == y.shape
    assert d_scores.shape == scores.shape
    expected = [LOSSES[name][1](row, label) for row, label in zip(scores, y, strict=True)]
    np.testing.assert_allclose(values, [value for value, _ in expected], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(d_scores, [gradient for _, gradient in expected], rtol=1e-11, atol=1e-12)


def test_gradient_equals_finite_differences(name, loss, problem):
    scores, y = problem
    if isinstance(loss, HingeMargin | Hybrid):  # they have a kink where the margin is gamma
        margins = [naive_losses.margin(row, c, loss.eta) for row, c in zip(scores, y, strict=True)]
        away = np.abs(np.array(margins) - loss.gamma) > 1e-3
        assert away.mean() > 0.9
        scores, y = scores[away], y[away]
    d_scores = loss.value_and_gradient(scores, y)[1]
    step = 1e-5
    for c in range(scores.shape[1]):
        nudge = np.zeros_like(scores)
        nudge[:, c] = step
        above, below = (loss.value_and_gradient(scores + sign * nudge, y)[0] for sign in (1, -1))
        np.testing.assert_allclose(d_scores[:, c], (above - below) / (2 * step), atol=1e-7 * LOSSES[name][2])


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
def test_discriminative_losses_ignore_what_all_classes_share(name, problem):
    scores, y = problem
    loss = LOSSES[name][0]
    values, d_scores = loss.value_and_gradient(scores, y)
    shifted, d_shifted = loss.value_and_gradient(scores + 7, y)
    np.testing.assert_allclose(values, shifted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(d_scores, d_shifted, atol=1e-12)
    np.testing.assert_allclose(d_scores.sum(axis=1), 0, atol=1e-14)


def test_weights_are_repeated_rows(loss, problem):
    scores, y = problem
    weights = np.random.default_rng(0).integers(0, 4, y.size)
    values, d_scores = loss.value_and_gradient(scores, y)
    repeated, d_repeated = loss.value_and_gradient(np.repeat(scores, weights, axis=0), np.repeat(y, weights))
    assert weights @ values == pytest.approx(repeated.sum())
    np.testing.assert_allclose(weights @ d_scores, d_repeated.sum(axis=0), rtol=1e-10, atol=1e-12)


def test_relabelling_classes_permutes_columns(loss, problem):
    scores, y = problem
    order = np.random.default_rng(1).permutation(scores.shape[1])
    values, d_scores = loss.value_and_gradient(scores, y)
    relabelled, d_relabelled = loss.value_and_gradient(scores[:, order], np.argsort(order)[y])
    np.testing.assert_allclose(relabelled, values, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(d_relabelled, d_scores[:, order], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shift", [0, -30000])
def test_float32_agrees_with_float64(name, loss, problem, shift):
    scores, y = problem
    scores = (scores + shift).astype(np.float32)
    values, d_scores = loss.value_and_gradient(scores, y)
    expected, d_expected = loss.value_and_gradient(scores.astype(np.float64), y)
    assert values.dtype == d_scores.dtype == np.float32
    assert expected.dtype == d_expected.dtype == np.float64
    # A difference of scores is rounded once, relative to the spread of the row, and counts slope times; the
    # parameters and the value itself are rounded too. In the gradient eta <= 10 sharpens the rounding.
    eps, slope, spread = np.finfo(np.float32).eps, LOSSES[name][2], np.ptp(scores, axis=1).astype(np.float64)
    np.testing.assert_array_less(np.abs(values - expected), 2 * eps * (1 + slope * spread + np.abs(expected)))
    np.testing.assert_array_less(np.abs(d_scores - d_expected), 16 * eps * slope)


# Scores of one row of class 0, then for each loss the value and the gradient that the module promises.
EXTREME = {
    "true class impossible": (
        (-INF, -1.0, -1.0),
        {
            "joint": (INF, (-1, 0, 0)),
            "conditional": (INF, (-1, 0.5, 0.5)),
            "hinge": (INF, (-1, 0.5, 0.5)),
            "margin": (INF, (-0.02, 0.01, 0.01)),
            "hybrid": (INF, (-101, 50, 50)),
            "hybrid without margin": (INF, (-1, 0, 0)),
            "user's own": (1, (0, 0, 0)),
        },
    ),
    "true class and one other impossible": (
        (-INF, -1.0, -INF),
        {
            "joint": (INF, (-1, 0, 0)),
            "conditional": (INF, (-1, 1, 0)),
            "hinge": (INF, (-1, 1, 0)),
            "margin": (INF, (-0.02, 0.02, 0)),
            "hybrid": (INF, (-101, 100, 0)),
            "user's own": (1, (0, 0, 0)),
        },
    ),
    "all others impossible": (
        (-2.0, -INF, -INF),
        {
            "joint": (2, (-1, 0, 0)),
            "conditional": (0, (0, 0, 0)),
            "hinge": (0, (0, 0, 0)),
            "hinge, wide and soft": (0, (0, 0, 0)),
            "margin": (-1, (0, 0, 0)),
            "hybrid": (2, (-1, 0, 0)),
            "user's own": (0, (0, 0, 0)),
        },
    ),
    "all impossible": (
        (-INF, -INF, -INF),
        {
            "joint": (INF, (-1, 0, 0)),
            "conditional": (np.log(3), (-2 / 3, 1 / 3, 1 / 3)),
            "hinge": (1 + np.log(2) / 10, (-1, 0.5, 0.5)),
            "hinge, wide and soft": (5 + np.log(2), (-1, 0.5, 0.5)),
            "hybrid": (INF, (-101, 50, 50)),
            "user's own": (2 / 3, (-2 / 9, 1 / 9, 1 / 9)),
        },
    ),
    "far below what float32 can exponentiate": (
        (-30000.0, -30000.5, -31000.0),
        {
            "joint": (30000, (-1, 0, 0)),
            "conditional": (0.47407698, (-0.37754067, 0.37754067, 0)),
            "hinge": (0.5, (-1, 1, 0)),
            "margin": (-0.50995, (-0.0198, 0.0198, 0)),
            "hybrid": (30050, (-101, 100, 0)),
            "user's own": (0.37754067, (-0.23500371, 0.23500371, 0)),
        },
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case, (_, outcomes) in EXTREME.items() for name in outcomes]
)
def test_extreme_scores_have_the_stated_outcome(case, name, dtype):
    row, outcomes = EXTREME[case]
    value, gradient = outcomes[name]
    values, d_scores = LOSSES[name][0].value_and_gradient(np.array([row], dtype), np.array([0]))
    np.testing.assert_allclose(values, [value], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(d_scores, [gradient], rtol=1e-6, atol=1e-12)


def test_no_pattern_of_impossible_classes_gives_nan(loss):
    patterns = np.array(np.meshgrid(*[[-INF, -30000.0, -1.0]] * 3)).reshape(3, -1).T
    for label in range(3):
        values, d_scores = loss.value_and_gradient(patterns, np.full(len(patterns), label))
        assert not np.isnan(values).any()
        assert np.isfinite(d_scores).all()


def test_layout_and_integer_type_do_not_matter(loss, problem):
    scores, y = problem
    values, d_scores = loss.value_and_gradient(scores, y)
    wide = np.repeat(scores, 2, axis=1)
    for same in (np.asfortranarray(scores), wide[:, ::2]):
        again, d_again = loss.value_and_gradient(same, y.astype(np.int32))
        np.testing.assert_allclose(again, values, rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(d_again, d_scores, rtol=1e-15, atol=1e-15)


def test_inputs_are_left_alone_and_no_rows_are_fine(loss, problem):
    scores, y = (array.copy() for array in problem)
    loss.value_and_gradient(scores, y)
    np.testing.assert_array_equal(scores, problem[0])
    np.testing.assert_array_equal(y, problem[1])
    values, d_scores = loss.value_and_gradient(scores[:0], y[:0])
    assert values.shape == (0,)
    assert d_scores.shape == (0, scores.shape[1])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda loss: clone(loss, safe=False)])
def test_copies_compute_the_same(loss, problem, duplicate):
    for again in (duplicate(loss), pickle.loads(pickle.dumps(loss))):
        for expected, found in zip(loss.value_and_gradient(*problem), again.value_and_gradient(*problem), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_documented_defaults_are_those_of_the_signature(loss):
    documented = re.findall(r"^(\w+) : float, default=(.*)$", inspect.getdoc(type(loss)) or "", flags=re.MULTILINE)
    signature = inspect.signature(type(loss)).parameters
    assert [(name, repr(parameter.default)) for name, parameter in signature.items()] == documented


def test_check_loss_returns_the_loss(loss):
    assert require_loss(loss) is loss


# ------------------------------------------------------------------------------ what single losses promise


def test_hybrid_is_the_sum_of_its_parts(problem):
    nll, d_nll = JointNLL().value_and_gradient(*problem)
    hinge, d_hinge = HingeMargin(gamma=2, eta=5).value_and_gradient(*problem)
    values, d_scores = Hybrid(trade_off=30, gamma=2, eta=5).value_and_gradient(*problem)
    np.testing.assert_allclose(values, nll + 30 * hinge, rtol=1e-14)
    np.testing.assert_allclose(d_scores, d_nll + 30 * d_hinge, rtol=1e-13, atol=1e-14)


def test_conditional_nll_is_smallest_at_the_true_frequencies():
    p = np.array([0.5, 0.3, 0.2])
    scores = np.tile(np.log(p) - 4, (3, 1))
    d_scores = ConditionalNLL().value_and_gradient(scores, np.arange(3))[1]
    np.testing.assert_allclose(p @ d_scores, 0, atol=1e-16)


def test_large_eta_is_the_maximum_and_small_kappa_the_hinge(problem):
    scores, y = problem
    rivals = scores.copy()
    rivals[np.arange(y.size), y] = -INF
    margins = scores[np.arange(y.size), y] - rivals.max(axis=1)
    values = HingeMargin(gamma=2, eta=1e6).value_and_gradient(scores, y)[0]
    np.testing.assert_allclose(values, np.maximum(0, 2 - margins), atol=1e-5)
    values = Margin(scale=0.5, kappa=1e-6, eta=1e6).value_and_gradient(scores, y)[0]
    np.testing.assert_allclose(values, -np.minimum(1, 0.5 * margins), atol=1e-5)


def test_smooth_hinge_joins_its_pieces_smoothly():
    kappa = 0.2
    for joint in (1 - 2 * kappa, 1.0):
        d = joint + np.array([-1e-9, 1e-9])
        scores = np.stack([d, np.zeros(2)], axis=1)
        values, d_scores = Margin(scale=1, kappa=kappa).value_and_gradient(scores, np.zeros(2, np.intp))
        assert abs(values[1] - values[0]) < 1e-8
        assert np.abs(d_scores[1] - d_scores[0]).max() < 1e-8


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("name", BUILT_IN)
def test_nan_scores_give_nan(name, position):
    scores = np.array([[-1.0, -2.0]])
    scores[0, position] = np.nan
    assert np.isnan(LOSSES[name][0].value_and_gradient(scores, np.array([position]))[0]).all()


def test_repr_shows_what_differs_from_the_default():
    assert repr(Hybrid()) == "Hybrid()"
    assert repr(Hybrid(trade_off=10, eta=10.0)) == "Hybrid(trade_off=10)"
    assert Margin(kappa=0.1).get_params() == {"scale": 0.02, "kappa": 0.1, "eta": 10.0}


def test_kernel_parameters_name_kind_and_places():
    assert JointNLL().kernel_parameters() == ConditionalNLL().kernel_parameters() == (0, 0, 0)
    assert HingeMargin(gamma=2, eta=3).kernel_parameters() == (0, 2, 3)
    assert Margin(scale=1, kappa=2, eta=3).kernel_parameters() == (1, 2, 3)
    assert Hybrid(trade_off=1, gamma=2, eta=3).kernel_parameters() == (1, 2, 3)
    kinds = [loss.kind for loss in (JointNLL, ConditionalNLL, HingeMargin, Margin, Hybrid, SoftHybrid)]
    assert sorted(kinds) == [0, 1, 2, 3, 4, 5]


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("cls", "parameter", "value"),
    [
        (HingeMargin, "gamma", -0.1),
        (HingeMargin, "gamma", np.nan),
        (HingeMargin, "eta", 0),
        (Margin, "scale", 0),
        (Margin, "kappa", -0.1),
        (Margin, "kappa", 0),
        (Margin, "eta", np.inf),
        (Hybrid, "trade_off", -1),
        (Hybrid, "gamma", "large"),
        (Hybrid, "eta", None),
    ],
)
def test_illegal_parameters_are_named(cls, parameter, value):
    message = rf"The '{parameter}' parameter of {cls.__name__} must be a float .* Got {value!r} instead"
    illegal = cls(**{parameter: value})
    with pytest.raises(ValueError, match=message):
        require_loss(illegal)
    legal = cls()
    legal.value_and_gradient(np.zeros((1, 2)), np.array([0]))
    legal.set_params(**{parameter: value})
    for bad in (illegal, legal):
        with pytest.raises(ValueError, match=message):
            bad.value_and_gradient(np.zeros((1, 2)), np.array([0]))


def test_parameters_are_checked_once_and_not_in_every_call(monkeypatch):
    calls = []
    monkeypatch.setattr(Hybrid, "_validate_params", lambda self: calls.append(self))
    loss = Hybrid(gamma=0.987654321)  # parameters that nobody has checked yet
    for _ in range(3):
        loss.value_and_gradient(np.zeros((1, 2)), np.array([0]))
    assert calls == [loss]


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize(
    ("scores", "y", "error", "message"),
    [
        (np.zeros(3), np.zeros(3, int), ValueError, r"shape \(n_samples, n_classes\).*got \(3,\) and \(3,\)"),
        (np.zeros((3, 1)), np.zeros(3, int), ValueError, "at least two classes"),
        (np.zeros((3, 2)), np.zeros(2, int), ValueError, r"got \(3, 2\) and \(2,\)"),
        (np.zeros((3, 2), int), np.zeros(3, int), TypeError, "scores must be float32 or float64, got int64"),
        (np.zeros((3, 2)), np.zeros(3), TypeError, "integer class codes, starting at 0, but its dtype is float64"),
        (np.zeros((3, 2)), np.array([0, 1, 2]), ValueError, r"y\[2\] is 2, but scores have 2 classes \(0..1\)"),
        (np.zeros((3, 2)), np.array([0, -1, 5]), ValueError, r"y\[1\] is -1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, scores, y, error, message):
    with pytest.raises(error, match=message):
        LOSSES[name][0].value_and_gradient(scores, y)


def test_check_loss_says_what_is_missing():
    message = "loss must be an object, got the string 'hybrid'. Pass a loss of tanlearn, such as ConditionalNLL()"
    with pytest.raises(TypeError, match=re.escape(message)):
        require_loss("hybrid")
    message = "a loss must have the method value_and_gradient(scores, y), but 3 does not have it."
    with pytest.raises(TypeError, match=re.escape(message)):
        require_loss(3)


def test_check_loss_refuses_a_class():
    with pytest.raises(TypeError, match=r"got the class Hybrid. Pass Hybrid\(\) instead"):
        require_loss(Hybrid)


def test_every_built_in_loss_is_in_the_suite():
    tested = {type(loss) for loss, _, _ in LOSSES.values()}
    built_in = set(losses_module.CompiledLoss.__subclasses__())
    assert built_in == tested - {ExpectedError}
    assert {cls.__name__ for cls in built_in} <= set(losses_module.__all__)
