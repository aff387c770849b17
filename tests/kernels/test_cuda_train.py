"""Whole epochs on the device against the fused engine of the CPU, and its noise against NumPy's generator."""

import copy

import numpy as np
import pytest
from support import host_cuda

from tanlearn import CandidateSets, EncodedData, FixedPoint, Hybrid, JointNLL, Margin, Structure
from tanlearn.kernels._cuda import cupy
from tanlearn.kernels.cuda.train import Epoch
from tanlearn.training.cuda_population import CudaPopulation
from tanlearn.training.engines import FusedEngine
from tanlearn.training.noise_streams import skip_uniform
from tanlearn.training.tan_state import State, plan_epoch

N_STATES = [3, 2, 4]
SETS = {
    "choice": CandidateSets.from_lists([[], [0], [0, 1]]),
    "trees": CandidateSets.from_lists([[1, 2], [0, 2], [0]]),
    "fixed": CandidateSets.from_lists([[], [], []]),
}


@pytest.fixture(autouse=True, params=["warps", "blocks"])
def teams(request, monkeypatch):
    """Let warps process samples and CPTs, or whole blocks, as they do for many features and long rows.

    With blocks, the three steps of an epoch are two graphs of two steps.
    """
    many = request.param == "blocks"
    monkeypatch.setattr("tanlearn.kernels.cuda.train.STEPS_PER_BLOCK", 2 if many else 64)
    monkeypatch.setattr("tanlearn.kernels.cuda.train._MANY_FEATURES", 0 if many else np.inf)
    monkeypatch.setattr("tanlearn.training.cuda_population._LONG_ROW", 0 if many else np.inf)
    return request.param


def make_data(n=30, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.stack([(y + rng.integers(0, k, n)) % k for k in N_STATES], axis=1)
    weight = rng.uniform(0.5, 2, n)
    return EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=n_classes, sample_weight=weight)


def make_states(data):
    """Four runs that differ in all that runs may differ in."""
    options = [{}, {"fixed_point": FixedPoint(2, 1)}, {"size_weight": 0.05}, {}]
    kinds = ["choice", "trees", "trees", "fixed"]
    return [
        State(data, SETS[kind], "uniform", "float32", np.random.default_rng(run), **option)
        for run, (kind, option) in enumerate(zip(kinds, options, strict=True))
    ]


LOSSES = [Hybrid(trade_off=5), Margin(scale=0.5), Hybrid(trade_off=20), JointNLL()]
RATES = [(0.02, 0.01), (0.01, 0.02), (0.03, 0.01), (0.01, 0.01)]


def train(data, states, n_epochs=3, device="cuda", skip=None):
    """Train on the device from fixed seeds; return the population and the losses of every epoch."""
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    population = CudaPopulation(states, data, weights, LOSSES, 8)
    rngs = [np.random.default_rng(10 + run) for run in range(len(states))]
    losses = []
    for epoch in range(n_epochs):
        plans = [plan_epoch(30, 8, len(s.phi), rng, device) for s, rng in zip(states, rngs, strict=True)]
        if skip is not None and epoch:
            plans[skip] = None
        population.start_epoch(plans, RATES, [1.0 / (epoch + 1)] * len(states))
        losses.append(population.finish_epoch())
    for run in range(len(states)):
        population.pull(run)
    return population, np.array(losses)


def snapshot(states):
    return [(state.theta.copy(), state.phi.copy()) for state in states]


@pytest.mark.parametrize("n_classes", [3, 33, 71])
def test_epochs_are_those_of_the_cpu(backend, n_classes):
    """To a hundredth of a step of up to 0.03; noise is drawn on the device, from where the generator stands.

    With 71 classes, warps add the gradients of the longest CPTs in global memory.
    """
    data = make_data(n_classes=n_classes)
    states = make_states(data)
    twins = copy.deepcopy(states)
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    _, losses = train(data, states)
    for run, (state, twin) in enumerate(zip(states, twins, strict=True)):
        engine, rng = FusedEngine(twin, data, weights, LOSSES[run], 8), np.random.default_rng(10 + run)
        for epoch in range(3):
            expected = engine.epoch(plan_epoch(30, 8, len(twin.phi), rng), RATES[run], 1.0 / (epoch + 1))
            np.testing.assert_allclose(losses[epoch, run], expected, rtol=1e-5)
        np.testing.assert_allclose(state.theta, twin.theta, atol=3e-4)
        np.testing.assert_allclose(state.phi, twin.phi, atol=1e-4)


def test_epochs_of_other_shapes_are_those_of_the_cpu(backend, monkeypatch):
    """More features than a warp has groups of lanes, more tables than lanes, two parents, and long undrawn tables."""
    monkeypatch.setattr("tanlearn.training.engines.DECAY_STEPS", 3)
    monkeypatch.setattr("tanlearn.training.cuda_population.DECAY_STEPS", 3)
    rng = np.random.default_rng(0)
    d, n_states = 19, [2, 3] * 9 + [4]
    y = rng.integers(0, 2, 41)
    X = np.stack([(y + rng.integers(0, k, 41)) % k for k in n_states], axis=1)
    data = EncodedData.from_codes(X, y, n_states=n_states)
    parents = np.full((d, 2), -1)
    parents[2:, 0], parents[2:, 1] = np.arange(d - 2), np.arange(1, d - 1)
    before = [list(range(max(0, i - 3), i)) for i in range(d)]
    others = [[(i + step) % d for step in (1, 2, 5)] for i in range(d)]
    sets = [CandidateSets.from_lists(before), CandidateSets.from_lists(others)]
    sets.append(CandidateSets.of_structure(Structure(parents)))
    options = [{}, {}, {"fixed_point": FixedPoint(2, 1)}]
    for chosen, option in zip(sets, options, strict=True):
        twins = [State(data, chosen, "uniform", "float32", np.random.default_rng(1), **option) for _ in range(2)]
        weights = np.ones(41, np.float32)
        engine = FusedEngine(twins[0], data, weights, LOSSES[0], 9)
        population = CudaPopulation(twins[1:], data, weights, LOSSES[:1], 9)
        plan = plan_epoch(41, 9, len(twins[0].phi), np.random.default_rng(2))
        for temperature in (3.0, 0.3):
            expected = engine.epoch(plan, RATES[0], temperature)
            population.start_epoch([plan], RATES[:1], [temperature])
            np.testing.assert_allclose(population.finish_epoch(), [expected], rtol=1e-5)
        population.pull(0)
        np.testing.assert_allclose(twins[1].theta, twins[0].theta, atol=3e-4)
        np.testing.assert_allclose(twins[1].phi, twins[0].phi, atol=1e-4)


@pytest.mark.parametrize(("d", "steps"), [(256, (1, 2, 5)), (257, (1, 2, 5)), (65, range(1, 65)), (70, range(1, 70))])
def test_trees_of_many_features_are_those_of_the_cpu(backend, d, steps):
    """Shared memory holds the nodes of 256 features and 4,352 edges, slightly more than those between 65 features."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 12)
    data = EncodedData.from_codes((y[:, None] + rng.integers(0, 2, (12, d))) % 2, y, n_states=[2] * d)
    sets = CandidateSets.from_lists([[(i + step) % d for step in steps] for i in range(d)])
    twins = [State(data, sets, "uniform", "float32", np.random.default_rng(1)) for _ in range(2)]
    weights, plan = np.ones(12, np.float32), plan_epoch(12, 6, len(twins[0].phi), np.random.default_rng(2))
    expected = FusedEngine(twins[0], data, weights, LOSSES[3], 6).epoch(plan, RATES[0], 1.0)
    population = CudaPopulation(twins[1:], data, weights, LOSSES[3:], 6)
    population.start_epoch([plan], RATES[:1], [1.0])
    np.testing.assert_allclose(population.finish_epoch(), [expected], rtol=1e-5)
    np.testing.assert_array_equal(population._scratch.selected.get(), twins[0].selected)


def test_epochs_repeat_to_the_last_bit_whatever_the_order_of_threads(backend, monkeypatch):
    data = make_data()
    found = []
    for order in ("forwards", "forwards", "backwards", 3):
        monkeypatch.setattr(host_cuda.RawKernel, "order", order)
        states = make_states(data)
        train(data, states)
        found.append(snapshot(states))
    for other in found[1:]:
        np.testing.assert_equal(other, found[0])


def test_noise_of_the_host_and_of_the_device_is_the_same(backend):
    """The same model to the last bit, whether uniform numbers are sent or drawn there."""
    data = make_data()
    here, there = make_states(data), make_states(data)
    train(data, here, device="cpu")
    train(data, there, device="cuda")
    np.testing.assert_equal(snapshot(here), snapshot(there))


def test_a_run_is_the_same_alone_and_among_others(backend):
    data = make_data()
    together = make_states(data)
    train(data, together)
    alone = make_states(data)[1]
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    population, rng = CudaPopulation([alone], data, weights, LOSSES[1:2], 8), np.random.default_rng(11)
    for epoch in range(3):
        population.start_epoch([plan_epoch(30, 8, len(alone.phi), rng, "cuda")], RATES[1:2], [1.0 / (epoch + 1)])
        population.finish_epoch()
    population.pull(0)
    np.testing.assert_equal(snapshot([alone]), snapshot(together[1:2]))


def test_a_run_without_a_plan_is_left_alone(backend):
    """And one that diverges leaves the others alone."""
    data = make_data()
    states, undisturbed, once = make_states(data), make_states(data), make_states(data)
    _, losses = train(data, states, skip=1)
    train(data, undisturbed)
    train(data, once, n_epochs=1)
    np.testing.assert_equal(snapshot(states[1:2]), snapshot(once[1:2]))
    np.testing.assert_equal(snapshot(states[2:]), snapshot(undisturbed[2:]))
    assert np.isnan(losses[1:, 1]).all()
    for cell in (1, 5):  # of the prior, and of a table
        broken = make_states(data)
        broken[0].theta[cell] = np.nan
        _, losses = train(data, broken)
        assert np.isnan(losses[:, 0]).all()
        np.testing.assert_equal(snapshot(broken[1:]), snapshot(undisturbed[1:]))


def test_a_run_whose_logits_are_lost_stays_in_its_tables(backend):
    """All lanes must take the same table where no comparison tells them which."""
    data = make_data()
    states, undisturbed = make_states(data), make_states(data)
    train(data, undisturbed, n_epochs=1)
    states[0].phi[:] = states[1].phi[:] = np.nan
    population, losses = train(data, states, n_epochs=1)
    np.testing.assert_equal(snapshot(states[2:]), snapshot(undisturbed[2:]))
    assert np.isfinite(losses[0, 2:]).all()
    offset, selected = population.problem.offset.get(), population._scratch.selected.get()
    ends = population._scratch.start.get().max(axis=1) + data.n_classes
    np.testing.assert_array_equal(population._scratch.begin.get(), offset[selected])
    assert (ends <= offset[selected + 1] - offset[selected]).all()


def test_noise_is_sent_only_where_the_device_cannot_draw_it(backend, monkeypatch):
    """Not for runs that are over, either."""
    data = make_data()
    rngs = [np.random.default_rng(0), np.random.Generator(np.random.MT19937(0))]
    states = make_states(data)[:2]
    population = CudaPopulation(states, data, np.ones(30, np.float32), LOSSES[:2], 8)
    plans = [plan_epoch(30, 8, len(s.phi), rng, "cuda") for s, rng in zip(states, rngs, strict=True)]
    sent = []
    monkeypatch.setattr(population, "_launch", lambda: sent.append(population._steps.uniform.get().copy()))
    for chosen in ([plans[0], None], plans):
        population.start_epoch(chosen, RATES[:2], [1.0, 1.0])
    n_first = len(states[0].phi)
    assert not np.array_equal(sent[0][:, n_first:], plans[1].noise)
    np.testing.assert_array_equal(sent[1][:, n_first:], plans[1].noise)


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_uniform_numbers_are_the_generators_own(backend, n):
    """Numbers of two steps, with and without half a word held from before."""
    data, sets = make_data(n=n + 1), CandidateSets.from_lists([[], [0], []])
    for held in (False, True):
        rng, twin = np.random.default_rng(n), np.random.default_rng(n)
        if held:
            assert rng.random(dtype=np.float32) == twin.random(dtype=np.float32)
        state = State(data, sets, "maximum-likelihood", "float32", rng)
        population = CudaPopulation([state], data, np.ones(n + 1, np.float32), [JointNLL()], 1)
        plan, expected = plan_epoch(n + 1, 1, 4, rng, "cuda"), plan_epoch(n + 1, 1, 4, twin)
        population.start_epoch([plan], [(0.01, 0.01)], [1.0])
        population.finish_epoch()
        np.testing.assert_array_equal(plan.order, expected.order)
        size = population.problem.block_steps  # the device holds the numbers of the last block of the n + 1 steps
        first = n // size * size
        np.testing.assert_array_equal(population._steps.uniform.get()[: n + 1 - first], expected.noise[first:])
        assert rng.bit_generator.state == twin.bit_generator.state


def test_skipping_leaves_the_generator_where_drawing_does():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    for n in (1, 1, 2, 3, 1, 8, 5):
        state, start = rng.bit_generator.state, skip_uniform(rng, n)
        assert start.state_high * 2**64 + start.state_low == state["state"]["state"]
        assert start.increment_high * 2**64 + start.increment_low == state["state"]["inc"]
        assert (start.is_held, start.held) == (state["has_uint32"], state["uinteger"])
        twin.random(n, dtype=np.float32)
        assert rng.bit_generator.state == twin.bit_generator.state
    other = np.random.Generator(np.random.MT19937(0))
    before = other.bit_generator.state["state"]["pos"]
    assert skip_uniform(other, 5) is None
    assert other.bit_generator.state["state"]["pos"] == before


def test_blocks_of_steps_are_one_graph(backend, monkeypatch, teams):
    """The kernels of a block are launched one by one once, without an active run, and then captured."""
    calls, run_block = [], Epoch.run_block
    monkeypatch.setattr(Epoch, "run_block", lambda epoch: [calls.append(epoch.n_blocks), run_block(epoch)])
    data = make_data()
    train(data, make_states(data), n_epochs=4)
    assert calls == ([2, 2] if teams == "blocks" else [1, 1])
    assert cupy().cuda.Stream
