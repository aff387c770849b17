"""The fused engine against its unfused twin: the same draws, the same trajectory to rounding."""

import copy

import numpy as np
import pytest

from tanlearn import CandidateSets, ConditionalNLL, EncodedData, HingeMargin, Hybrid, JointNLL, Margin, Structure
from tanlearn.candidates import make_candidates
from tanlearn.epochs import State, fused_epoch, is_fusible, plan_epoch, unfused_epoch
from tanlearn.losses import CompiledLoss

LOSSES = [JointNLL(), ConditionalNLL(), HingeMargin(gamma=2), Margin(scale=0.5), Hybrid(trade_off=20, gamma=2)]
N_STATES = [3, 2, 4, 1, 5]


def problem(kind, weighted=False, seed=0, n=230):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in N_STATES], axis=1)
    weight = rng.uniform(0.5, 2, n) if weighted else None
    data = EncodedData.from_codes(X, y, n_states=N_STATES, sample_weight=weight)
    if isinstance(kind, Structure):
        sets = CandidateSets.of_structure(kind)
    else:
        limit = None if kind == "all" else 3
        sets = make_candidates(kind, 5, n_candidates=limit, ordering=None, image_shape=None, rng=rng)
    return data, sets


def run(engine, state, data, loss, n_epochs, seed=1, rates=(0.01, 0.01)):
    rng = np.random.default_rng(seed)
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    losses = []
    for epoch in range(n_epochs):
        plan = plan_epoch(data.n_samples, 50, state.candidates.n_tables, rng)
        losses.append(engine(state, data, weights, loss, plan, rates, 2.0 / (epoch + 1)))
    return losses


def compare(data, sets, loss, n_epochs=3):
    """Both engines from one start; returns the states and the losses."""
    fused = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    unfused = copy.deepcopy(fused)
    return (
        fused,
        unfused,
        run(fused_epoch, fused, data, loss, n_epochs),
        run(unfused_epoch, unfused, data, loss, n_epochs),
    )


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("kind", ["all", "subset", "unconstrained", "order-free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_engines_agree(loss, kind, weighted):
    """The same draws, and after twelve steps of up to 0.01 the same parameters to a hundredth of one step.

    Not closer, because where a gradient is as small as Adam's epsilon, its rounding error moves the step.
    """
    data, sets = problem(kind, weighted)
    start = State(data, sets, "uniform", "float32", np.random.default_rng(0)).theta
    fused, unfused, losses, expected = compare(data, sets, loss)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert np.abs(fused.theta - start).max() > 0.05
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    np.testing.assert_allclose(fused.phi, unfused.phi, atol=1e-5)
    assert np.abs(fused.phi).max() > 0.05
    assert (fused.adam.t, fused.structure_adam.t) == (unfused.adam.t, unfused.structure_adam.t) == (12, 12)


@pytest.mark.parametrize("parents", [[-1] * 5, [-1, 0, 1, 0, 2], [[-1, -1], [0, -1], [0, 1], [1, 2], [3, 0]]])
def test_engines_agree_on_fixed_structures(parents):
    data, sets = problem(Structure(parents))
    fused, unfused, losses, expected = compare(data, sets, Hybrid(trade_off=20, gamma=2))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    assert not fused.phi.any()


def test_fused_parameters_stay_normalised():
    data, sets = problem("order-free")
    state = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    run(fused_epoch, state, data, Hybrid(trade_off=20), 40, rates=(0.1, 0.01))
    normalised = state.parametrization.forward(state.theta)
    np.testing.assert_allclose(state.theta, normalised, atol=2e-5)


def test_wide_tables_use_two_byte_codes():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 300, 200), rng.integers(0, 2, 200)], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, 2, 200), n_states=[300, 2])
    assert data.codes.dtype == np.uint16
    sets = CandidateSets.from_lists([[], [0]])
    fused, unfused, _, _ = compare(data, sets, Hybrid())
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)


def test_only_built_in_losses_in_single_precision_are_fused():
    class Doubled(Hybrid):
        def value_and_gradient(self, scores, y):
            loss, d_scores = super().value_and_gradient(scores, y)
            return 2 * loss, 2 * d_scores

    assert is_fusible(Hybrid(), "float32")
    assert not is_fusible(Hybrid(), "float64")
    assert not is_fusible(Doubled(), "float32")
    assert isinstance(Doubled(), CompiledLoss)


def test_resting_tables_end_where_unresting_ones_do():
    """One candidate is drawn for 280 steps while the others rest from step 200 on; then another one wakes up."""
    data, sets = problem("all")
    fused = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    unfused = copy.deepcopy(fused)
    favourite = np.zeros(sets.n_tables)
    favourite[sets.group[:-1]] = 100.0
    last = np.zeros(sets.n_tables)
    last[sets.group[1:] - 1] = 200.0
    for bias, n_epochs in ((0.0, 2), (favourite, 70), (last, 1)):
        for state, engine in ((fused, fused_epoch), (unfused, unfused_epoch)):
            state.phi += bias
            run(engine, state, data, JointNLL(), n_epochs, rates=(1e-3, 0.0))
        if n_epochs == 70:
            assert (fused.idle > 210).sum() == sets.n_tables - sets.n_features
            resting = np.repeat(fused.idle > 0, np.diff(fused.layout.offset))
            np.testing.assert_allclose(fused.theta[3:][resting], unfused.theta[3:][resting], atol=1e-5)
            assert np.abs(unfused.adam.m[3:][resting]).max() < 1e-9  # what rest leaves out is nothing
    assert (fused.idle[sets.group[1:] - 1] == 0).all()
    np.testing.assert_allclose(fused.theta, unfused.theta, atol=1e-4)
    awake = np.repeat(fused.idle == 0, np.diff(fused.layout.offset))
    np.testing.assert_allclose(fused.adam.m[3:][awake], unfused.adam.m[3:][awake], atol=1e-6)
    np.testing.assert_allclose(fused.adam.v[3:][awake], unfused.adam.v[3:][awake], rtol=1e-3, atol=1e-9)
