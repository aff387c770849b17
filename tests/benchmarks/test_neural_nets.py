"""Quantisers, nets and gradients beside plain NumPy, nets that are trained side by side, and the command."""

import importlib
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from oracles import nets as oracle
from support.results_files import appended, cut_after

from benchmarks.paper.resource_efficient import __main__ as command
from benchmarks.paper.resource_efficient.neural import plan
from benchmarks.paper.resource_efficient.neural.sizes import CONVOLUTIONAL, DENSE, MEMORY, ONE_HOT, REAL, Net, Shape
from benchmarks.shared import data
from tanlearn import EncodedData

needed = partial(pytest.importorskip, reason="neural networks need the extra neural: jax and optax")
jax, jnp, _ = map(needed, ("jax", "jax.numpy", "optax"))
network, quantizers, runs, training = (
    importlib.import_module(f"{plan.__package__}.{name}") for name in ("network", "quantizers", "runs", "training")
)

SHAPES = {DENSE: Shape(5, 14, 3), CONVOLUTIONAL: Shape(49, 98, 3, 7)}
WIDTHS, ROOMS = {DENSE: (4, 4), CONVOLUTIONAL: (2, 3)}, {DENSE: (6, 5), CONVOLUTIONAL: (3, 5)}
NETS = [
    Net(kind, activation, REAL, 3, batch_norm)
    for kind in (DENSE, CONVOLUTIONAL)
    for activation in ("relu", "sign")
    for batch_norm in (False, True)
]


@pytest.fixture(scope="module", autouse=True)
def fast_compilation():
    """Leave out optimizations of compiled programs, which take most of the time of tiny trainings."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True)
def float64():
    """Compute in float64, which gradients by differences need."""
    with jax.enable_x64(True):
        yield


class Example:
    """A net with units that are none, rows, and the same net without them for the oracle."""

    def __init__(self, net, bits=3):
        rng = np.random.default_rng(0)
        shape, widths, rooms = SHAPES[net.kind], WIDTHS[net.kind], ROOMS[net.kind]
        parameters, moving, self.masks = network.initial(net, shape, widths, rooms, rng)
        drawn = [rng.uniform(-1.2, 1.2, w.shape) for w in parameters["weights"]]
        parameters["weights"] = drawn
        parameters["biases"] = rng.normal(size=3)
        if net.batch_norm:
            parameters["scale"] = [rng.uniform(0.5, 2, room) for room in rooms]
            parameters["shift"] = [rng.normal(size=room) for room in rooms]
            moving = {
                "mean": [rng.normal(size=room) for room in rooms],
                "inverse_std": [rng.uniform(0.5, 2, room) for room in rooms],
            }
        self.net, self.parameters, self.moving, self.bits, self.widths = net, parameters, moving, bits, widths
        self.steps = quantizers.n_steps(bits)
        self.rows = rng.normal(size=(4, 5) if net.kind == DENSE else (4, 7, 7, 1))
        self.y = np.arange(4) % 3
        self.key = jax.random.key(3)

    @property
    def x(self):
        """The rows as nets take them."""
        return jnp.asarray(np.moveaxis(self.rows, 0, -1) if self.net.kind == DENSE else self.rows.transpose(3, 1, 2, 0))

    def plain_weights(self):
        """Return quantised weights of the units that there are, as the oracle takes them."""
        sizes = [self.rows.shape[-1], *self.widths, 3]
        kept = [
            w[:, :n_in, :n_out] for w, n_in, n_out in zip(self.parameters["weights"], sizes, sizes[1:], strict=False)
        ]
        kept = [oracle.quantize(w, self.bits) for w in kept]
        if self.net.kind == DENSE:
            return [w[0] for w in kept]
        return [*(w.reshape(3, 3, *w.shape[1:]) for w in kept[:-1]), kept[-1].reshape(1, 1, *kept[-1].shape[1:])]

    def noise(self):
        """Return what the signs of every hidden layer are compared with, for the units that there are, rows first."""
        sides = ([], []) if self.net.kind == DENSE else ([7, 7], [3, 3])
        found = []
        for layer, (room, side, width) in enumerate(zip(ROOMS[self.net.kind], sides, self.widths, strict=True)):
            u = jax.random.uniform(jax.random.fold_in(self.key, layer), (room, *side, 4), jnp.float64)
            found.append(np.asarray(u)[:width].transpose(*((1, 0) if self.net.kind == DENSE else (3, 1, 2, 0))))
        return found

    def normalize(self, layer, a, train=False):
        """Return normalised numbers of a layer, rows first."""
        names = ("mean", "inverse_std")
        width = self.widths[layer]
        mean, inverse_std = (self.moving[name][layer][:width] for name in names)
        if train:
            axes = tuple(range(a.ndim - 1))
            mean, inverse_std = a.mean(axis=axes), 1 / np.sqrt(((a - a.mean(axis=axes)) ** 2).mean(axis=axes) + 1e-6)
        scale, shift = (self.parameters[name][layer][:width] for name in ("scale", "shift"))
        return (a - mean) * inverse_std * scale + shift


def test_weights_of_few_bits():
    w = np.array([-7, -1, -0.7, -1 / 3, -0.1, 0, 0.1, 0.4, 0.66, 0.67, 1, 2.5])
    third = 1 / 3
    assert np.asarray(quantizers.quantize(w, 1.0)).tolist() == [-1] * 5 + [1] * 7
    assert np.asarray(quantizers.quantize(w, 3.0)) == pytest.approx(
        [-1, -1, -1, -third, -third, third, third, third, third, 1, 1, 1]
    )
    many = np.random.default_rng(0).uniform(-1.5, 1.5, (9, 11))
    for bits in range(1, 9):
        found = jax.jit(quantizers.quantize)(many, quantizers.n_steps(bits))
        assert np.asarray(found) == pytest.approx(oracle.quantize(many, bits), abs=1e-12)
        assert len(np.unique(np.asarray(found).round(12))) <= 2**bits
    with jax.enable_x64(False):
        found = np.asarray(quantizers.quantize(np.float32(many), np.float32(255)))
    assert found.dtype == np.float32
    assert found == pytest.approx(oracle.quantize(np.float32(many), 8), abs=1e-6)
    assert len(np.unique(found)) <= 256  # not w plus what rounding it takes


def test_gradients_pass_quantizers():
    rng = np.random.default_rng(0)
    w, c = rng.uniform(-2, 2, (2, 30))
    gradient = jax.grad(lambda w: (c * quantizers.quantize(w, 3.0)).sum())(w)
    assert np.asarray(gradient) == pytest.approx(c)
    a, u = rng.normal(size=30), rng.uniform(size=30)
    gradient = jax.grad(lambda a: (c * quantizers.stochastic_sign(a, u)).sum())(a)
    assert np.asarray(gradient) == pytest.approx(c * (1 - np.tanh(a) ** 2))


def test_signs():
    assert np.asarray(quantizers.sign(jnp.array([-2.0, -0.0, 0.0, 1e-9]))).tolist() == [-1, 1, 1, 1]
    found = quantizers.stochastic_sign(
        jnp.array([-1.5, -0.5, -0.5, 0.0, 0.0, 1.0, 3.0]), jnp.array([0.001, 0.25, 0.26, 0.5, 0.51, 1, 1])
    )
    assert np.asarray(found).tolist() == [-1, 1, -1, 1, -1, 1, 1]


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("net", NETS, ids=str)
def test_scores_are_those_of_the_oracle(net, bits):
    example = Example(net, bits)

    def activate(layer, a):
        return np.maximum(a, 0) if net.activation == "relu" else np.where(a >= 0, 1.0, -1.0)

    expected = oracle.scores(
        example.plain_weights(),
        example.parameters["biases"],
        example.rows,
        activate,
        net.batch_norm and example.normalize,
    )
    state = (example.parameters, example.moving, example.masks, example.steps, example.x)
    found, moving = jax.jit(partial(network.forward, net))(*state)
    assert np.asarray(found) == pytest.approx(expected, abs=1e-9)
    assert jax.tree.all(jax.tree.map(np.array_equal, moving, example.moving))


@pytest.mark.parametrize("net", NETS, ids=str)
def test_gradients_are_those_of_differences(net):
    """Quantised weights are moved; signs stay, and tanh moves in their stead; equal maxima share, pair by pair."""
    example = Example(net)
    noise, base = example.noise(), {}
    normalize = net.batch_norm and partial(example.normalize, train=True)

    def activate(layer, a):
        if net.activation == "relu":
            return np.maximum(a, 0)
        signs, tanh = base.setdefault(layer, (np.where(noise[layer] <= (1 + a) / 2, 1.0, -1.0), np.tanh(a)))
        return signs + (np.tanh(a) - tanh)

    def pool(layer, x):
        n_rows, side, _, n_units = x.shape
        half = side // 2
        blocks = x[:, : 2 * half, : 2 * half].reshape(n_rows, half, 2, half, 2, n_units)
        shares = base.setdefault(("pool", layer), shares_of(blocks))
        return (blocks * shares).sum(axis=(2, 4))

    weights, biases = example.plain_weights(), example.parameters["biases"]
    scores = oracle.scores(weights, biases, example.rows, activate, normalize, pool)
    state = (example.parameters, example.moving, example.masks, example.steps, example.x, example.y, example.key)
    found = jax.jit(jax.value_and_grad(partial(training.mean_loss, net), has_aux=True))(*state)
    (loss, moving), gradient = found
    assert loss == pytest.approx(oracle.mean_loss(scores, example.y), rel=1e-9)

    def difference(array, place, h=1e-5):
        losses = []
        for step in (h, -h):
            array[place] += step
            losses.append(
                oracle.mean_loss(oracle.scores(weights, biases, example.rows, activate, normalize, pool), example.y)
            )
            array[place] -= step
        return (losses[0] - losses[1]) / (2 * h)

    rng = np.random.default_rng(1)
    for w, d_w in zip(weights, gradient["weights"], strict=True):
        n_in, n_out = w.shape[-2:]
        d_w = np.asarray(d_w)
        assert not d_w[:, n_in:].any()
        assert not d_w[:, :, n_out:].any()
        d_w = d_w[:, :n_in, :n_out].reshape(w.shape)
        for _ in range(3):
            place = tuple(rng.integers(size) for size in w.shape)
            assert d_w[place] == pytest.approx(difference(w, place), abs=2e-8)
    for name in ("scale", "shift") if net.batch_norm else ():
        for layer, width in enumerate(example.widths):
            assert gradient[name][layer][width - 1] == pytest.approx(
                difference(example.parameters[name][layer], width - 1), abs=2e-8
            )
    assert gradient["biases"][1] == pytest.approx(difference(biases, 1), abs=1e-8)
    assert bool(moving) == net.batch_norm


def shares_of(blocks):
    """Return what share of a maximum every place has: first of two lines, then of two columns."""

    def compare(pairs, axis):
        first, second = np.split(pairs, 2, axis)
        share = (first > second) + 0.5 * (first == second)
        return np.concatenate([share, 1 - share], axis)

    lines = compare(blocks, 2)
    return lines * compare(blocks.max(axis=2, keepdims=True), 4)


def test_moving_means_keep_nine_tenths():
    example = Example(NETS[1])
    state = (example.parameters, example.moving, example.masks, example.steps, example.x, example.key)
    _, moving = jax.jit(partial(network.forward, NETS[1]))(*state)
    a = example.rows @ oracle.quantize(example.parameters["weights"][0][0], example.bits)
    expected = 0.9 * example.moving["mean"][0] + 0.1 * a.mean(axis=0)
    assert np.asarray(moving["mean"][0]) == pytest.approx(expected)
    expected = 0.9 * example.moving["inverse_std"][0] + 0.1 / np.sqrt(a.var(axis=0) + 1e-6)
    assert np.asarray(moving["inverse_std"][0]) == pytest.approx(expected)


@pytest.mark.parametrize("net", [NETS[0], NETS[4]], ids=str)
def test_weights_are_drawn_within_their_bounds(net):
    shape, widths = SHAPES[net.kind], (40, 40)
    parameters, _, masks = network.initial(net, shape, widths, (48, 41), np.random.default_rng(0))
    first, second, last = parameters["weights"]
    fans = [(5, 40), (40, 40), (40, 3)] if net.kind == DENSE else [(9, 360), (360, 360), (40, 3)]
    for w, fan in zip((first, second, last), fans, strict=True):
        bound = np.sqrt(6 / sum(fan))
        assert 0.9 * bound < np.abs(w).max() <= bound
    assert not first[:, :, 40:].any()
    assert not second[:, 40:].any()
    assert [mask.sum() for mask in masks] == [40, 40]


def test_rates_fall_to_a_thousandth():
    rates = training.learning_rates([3e-3, 3e-2], 500)
    assert rates.shape == (500, 2)
    assert rates[0] == pytest.approx([3e-3, 3e-2])
    assert rates[-1] == pytest.approx([3e-6, 3e-5])
    assert rates[1:] / rates[:-1] == pytest.approx(np.full((499, 2), 1e-3 ** (1 / 499)))
    assert training.learning_rates([0.1], 1).tolist() == [[0.1]]


def small_runs(rates, bits=(2, 8)):
    """Return a net, its shape, nets to train side by side, and rows."""
    part = problem("letter").folds[0]
    shape = runs.shape_of(problem("letter"), part.data)
    made = [
        training.Run((6,), n_bits, rate, np.random.default_rng(place))
        for place, (n_bits, rate) in enumerate(zip(bits, rates, strict=True))
    ]
    return Net(DENSE, "relu", ONE_HOT, 2, True), shape, made, part


def test_a_step_is_one_of_adam_and_clips_weights():
    net, shape, made, part = small_runs([0.01, 0.25])
    nets = [network.initial(net, shape, run.widths, [8], run.rng) for run in made]
    before, moving, masks = jax.tree.map(lambda *leaves: np.stack(leaves).astype(float), *nets)
    rng = np.random.default_rng(5)
    before["weights"] = [rng.uniform(-1, 1, w.shape) for w in before["weights"]]
    steps = np.array([quantizers.n_steps(run.bits) for run in made], np.float64)
    optimizer = jax.tree.map(lambda a: np.zeros(a.shape), jax.eval_shape(training.OPTIMIZER.init, before))
    codes, y = training.filled(part.data.codes, part.data.y)
    after, _, _ = training.train_epoch(
        net,
        (jax.tree.map(np.copy, before), moving, optimizer),
        (masks, steps, np.array([0.01, 0.25])),
        (training.make_inputs(net, part.data), codes, y),
        np.arange(100, dtype=np.int32)[np.newaxis],
        jax.random.key(0),
    )
    for old, new in zip(before["weights"], map(np.asarray, after["weights"]), strict=True):
        assert np.abs(new).max() <= 1
        for place, rate in enumerate((0.01, 0.25)):
            way = np.abs(new[place] - old[place])
            moves = way > 1e-9  # Adam's first step is as long as the rate, but where a gradient is as small as epsilon
            assert np.median(way[moves & (np.abs(new[place]) < 1)]) == pytest.approx(rate, rel=1e-3)
            assert way.max() <= rate * 1.001
    assert (np.abs(after["weights"][0][1]) == 1).any()


def test_rates_of_every_net_and_epoch_reach_the_steps(monkeypatch):
    net, shape, made, part = small_runs([0.003, 0.03])
    seen = []

    def watch(net, state, own, *others):
        seen.append(own[2])
        return state

    monkeypatch.setattr(training, "train_epoch", watch)
    training.train(net, shape, made, part, 100, 4, np.random.default_rng(0))
    assert np.array(seen) == pytest.approx(training.learning_rates([0.003, 0.03], 4))


def test_a_net_is_trained_beside_others_as_it_is_alone():
    def wrong_rows(kept):
        net, shape, made, part = small_runs([0.02, 0.01, 0.03], bits=(1, 2, 3))
        wrong = training.train(net, shape, [made[place] for place in kept], part, 100, 2, np.random.default_rng(0))
        return [wrong(part.data.codes[:, row : row + 40], part.data.y[row : row + 40]) for row in range(0, 1200, 40)]

    beside = np.array(wrong_rows([0, 1, 2]))
    assert len({tuple(column) for column in beside.T}) == 3
    for place in (0, 2):
        assert np.array(wrong_rows([place]))[:, 0].tolist() == beside[:, place].tolist()


def test_codes_become_inputs():
    codes = np.array([[0, 1, 2, 1], [1, 1, 1, 1], [0, 1, 0, 1]])
    encoded = EncodedData.from_codes(codes.T, np.array([0, 1, 0, 1]), n_states=[3, 2, 2])
    rows = jnp.asarray(codes.T, jnp.uint8)
    one_hot = Net(DENSE, "relu", ONE_HOT, 2, False)
    found = training.encode(one_hot, training.make_inputs(one_hot, encoded), rows)
    expected = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert np.asarray(found).tolist() == expected
    real = replace(one_hot, inputs=REAL)
    found = np.asarray(training.encode(real, training.make_inputs(real, encoded), rows))
    assert found.mean(axis=1) == pytest.approx(np.zeros(3), abs=1e-6)
    assert found.std(axis=1) == pytest.approx([1, 0, 1], abs=1e-6)
    image = EncodedData.from_codes(np.arange(18).reshape(2, 9) % 5, np.array([0, 1]), n_states=[5] * 9)
    net = Net(CONVOLUTIONAL, "relu", REAL, 2, False)
    found = training.encode(net, (np.zeros(9), np.ones(9)), jnp.asarray(image.codes.T, jnp.uint8))
    assert found.shape == (1, 3, 3, 2)
    assert np.asarray(found)[0, :, :, 0].tolist() == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]


def problem(name):
    """Return a fold of a set: exclusive or, and a feature that says nothing."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1700, 3))
    y = X[:, 0] ^ X[:, 1]
    fold = data.split(EncodedData.from_codes(X, y, n_states=[2, 2, 3]), slice(1200), slice(1200, 1700))
    return data.Problem(name, (fold,))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return where the results of a small plan are, and the command that made them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "load", lambda name, folder: problem(name))
        patch.setattr(plan, "BITS", (2, 4, 8))
        patch.setattr(plan, "ACTIVATIONS", ("relu",))
        patch.setattr(plan, "INPUTS", {DENSE: (ONE_HOT,)})
        patch.setattr(plan, "N_LAYERS", {DENSE: (2,)})
        patch.setattr(plan, "MULTIPLES", {(DENSE, MEMORY): (Fraction(1, 4), Fraction(1))})
        for module in (plan, training):
            patch.setattr(module, "padded_width", lambda net, width: 64)
        patch.setattr(jax, "clear_caches", lambda: None)  # both runs train the same nets
        folder = tmp_path_factory.mktemp("results")

        def run(folder):
            where = ["--results", str(folder), "--sets", "letter", "--budget", "1"]
            with jax.enable_x64(False):
                command.main(["run", "neural", *where, "--epochs", "50", "--multiples", "1/4"])
            return appended(folder / "neural.jsonl")

        yield folder, run(folder), run


def test_heats_and_final(finished):
    lines = finished[1]
    heats = {epochs: [line for line in lines if line["epochs"] == epochs] for epochs in (1, 7, 50)}
    # with and without normalisation, 3 bits, 2 rates; an eighth of 12, and of 2
    assert [len(heats[epochs]) for epochs in (1, 7)] == [12, 2]
    validation, final = heats[50]
    assert (validation["part"], final["part"]) == ("validation", "test")
    assert validation["test_error"] == final["test_error"] == validation["validation_error"] == 0
    assert final["validation_error"] is None
    going_on = {net_of(line) for line in heats[7]}
    chosen = [line["validation_error"] for line in heats[1] if net_of(line) in going_on]
    assert sorted(chosen) == sorted(line["validation_error"] for line in heats[1])[:2]
    best = min(line["validation_error"] for line in heats[7])
    assert best in [line["validation_error"] for line in heats[7] if net_of(line) == net_of(final)]


def net_of(line):
    """Return what tells apart the nets of a race."""
    return line["bits"], line["batch_norm"], line["learning_rate"]


def test_lines_say_what_a_front_needs(finished):
    line = finished[1][0]
    assert line["set"] == "letter"
    assert line["budget"] == "memory"
    assert line["multiple"] == 0.25
    width = line["widths"][0]
    weights = (7 + 2) * width
    norms = width * line["batch_norm"]
    assert line["parameters"] == weights + 2 * norms + 2
    assert line["model_bits"] == line["bits"] * weights + 64 * norms + 64
    assert line["operations"] == 3 * width + 2 * width + norms + 2
    assert abs(line["model_bits"] - 3822 / 4) <= (line["bits"] * (7 + 2) + 64 * line["batch_norm"]) / 2
    assert (line["rows"], line["validation_rows"]) == (500, 240)


def test_a_run_goes_on_to_the_same_results(finished, tmp_path):
    folder, lines, run = finished
    together = len([line for line in lines if line["epochs"] == 1 and line["batch_norm"] == lines[0]["batch_norm"]])
    assert 0 < together < len(lines)
    (tmp_path / "neural.jsonl").write_bytes((folder / "neural.jsonl").read_bytes())
    cut_after(tmp_path / "neural.jsonl", together)
    again = run(tmp_path)
    assert again[:together] == lines[:together]  # with the seconds they took: they were not trained again

    def errors(lines):
        return {runs.key(line): (line["test_error"], line["validation_error"]) for line in lines}

    assert len(again) == len(lines)
    assert errors(again) == errors(lines)


def test_without_jax_the_command_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "load", lambda name, folder: problem(name))
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, runs.__name__)
    with pytest.raises(SystemExit, match=r'pip install ".\[neural\]"'):
        command.main(["run", "neural", "--sets", "letter", "--results", str(tmp_path)])
