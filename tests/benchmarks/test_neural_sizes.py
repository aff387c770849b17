"""Bits and operations of small nets, widths for budgets, and which nets are raced; no training, and so no JAX."""

from collections import Counter
from fractions import Fraction

import pytest
from oracles import nets as oracle
from support.published_folds import DATA, folds

from benchmarks.paper.resource_efficient import __main__ as command
from benchmarks.paper.resource_efficient.neural import plan
from benchmarks.paper.resource_efficient.neural.sizes import (
    CONVOLUTIONAL,
    DENSE,
    MEMORY,
    NAIVE_BAYES,
    ONE_HOT,
    OPERATIONS,
    REAL,
    Net,
    Shape,
    counts,
    padded_width,
    solve_widths,
    target,
)

LETTER, USPS, MNIST = Shape(16, 146, 26), Shape(256, 864, 10, 16), Shape(196, 2579, 10, 14)


def test_a_net_of_letter_counted_by_hand():
    net = Net(DENSE, "relu", REAL, 3, batch_norm=True)
    found = counts(net, LETTER, (64, 64))
    assert found.weights == 16 * 64 + 64 * 64 + 64 * 26 == 6784
    assert (found.norms, found.biases) == (128, 26)
    assert found.parameters == 6784 + 2 * 128 + 26
    assert found.bits(4) == 4 * 6784 + 64 * 128 + 32 * 26 == 36_160  # the 36 kbit of an earlier experiment
    assert found.operations == 6784 + 128 + 26
    plain = counts(Net(DENSE, "relu", REAL, 3, batch_norm=False), LETTER, (64, 64))
    assert (plain.bits(4), plain.operations) == (4 * 6784 + 832, 6784 + 26)


def test_one_hot_rows_pick_a_weight_a_feature():
    found = counts(Net(DENSE, "sign", ONE_HOT, 2, batch_norm=False), LETTER, (10,))
    assert found.weights == 146 * 10 + 10 * 26
    assert found.operations == 16 * 10 + 10 * 26 + 26


def test_images_of_mnist_counted_by_hand():
    one = counts(Net(CONVOLUTIONAL, "relu", REAL, 2, batch_norm=False), MNIST, (5,))
    assert one.weights == 9 * 5 + 7 * 7 * 5 * 10
    assert one.operations == 14 * 14 * 9 * 5 + 7 * 7 * 5 * 10 + 10
    two = counts(Net(CONVOLUTIONAL, "relu", REAL, 3, batch_norm=True), MNIST, (5, 11))
    assert two.weights == 9 * 5 + 9 * 5 * 11 + 3 * 3 * 11 * 10
    assert two.norms == 16
    assert two.operations == 196 * 45 + 49 * 9 * 5 * 11 + 9 * 11 * 10 + 196 * 5 + 49 * 11 + 10


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("n_layers", [2, 3, 4, 5])
@pytest.mark.parametrize("inputs", [REAL, ONE_HOT])
@pytest.mark.parametrize("bits", [1, 3, 8])
def test_widths_of_dense_nets_need_what_there_is(inputs, n_layers, batch_norm, bits):
    net = Net(DENSE, "relu", inputs, n_layers, batch_norm)
    n_inputs = 16 if inputs == REAL else 146
    for multiple in (1, 4, 16):
        amount = 3822 * multiple
        widths = solve_widths(net, bits, LETTER, MEMORY, amount)
        low, high = real_solution(lambda w: oracle.dense_sizes(n_inputs, 26, n_layers, w, bits, batch_norm)[0], amount)
        assert widths == (round((low + high) / 2),) * (n_layers - 1)
        assert (
            counts(net, LETTER, widths).bits(bits)
            == oracle.dense_sizes(n_inputs, 26, n_layers, widths[0], bits, batch_norm)[0]
        )


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("n_layers", [2, 3])
@pytest.mark.parametrize("shape", [USPS, MNIST])
@pytest.mark.parametrize("budget", [MEMORY, OPERATIONS])
def test_channels_need_what_there_is(budget, shape, n_layers, batch_norm):
    net = Net(CONVOLUTIONAL, "sign", REAL, n_layers, batch_norm)
    which = (MEMORY, OPERATIONS).index(budget)
    for amount in (9_000, 80_000, 600_000):
        widths = solve_widths(net, 3, shape, budget, amount)
        low, high = real_solution(
            lambda c: oracle.image_sizes(shape.side, 10, n_layers, c, 3, batch_norm)[which], amount
        )
        assert widths == tuple(round(ratio * (low + high) / 2) for ratio in (1, 2)[: n_layers - 1])


def real_solution(needs, amount):
    """Return bounds of the real width that needs an amount, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if needs(middle) > amount else (middle, high)
    return low, high


def test_budgets_that_hold_no_unit_have_no_net():
    net = Net(DENSE, "relu", ONE_HOT, 2, batch_norm=False)
    assert solve_widths(net, 8, LETTER, MEMORY, 32 * 26) is None  # biases alone
    assert solve_widths(net, 8, LETTER, MEMORY, 32 * 26 + 8 * 172 // 2 - 8) is None  # less than half a unit
    assert solve_widths(net, 8, LETTER, MEMORY, 32 * 26 + 8 * 172 // 2 + 8) == (1,)


def test_budgets_are_those_of_naive_bayes():
    assert target("letter", LETTER, MEMORY, 3) == 3 * 3822
    assert target("usps", USPS, OPERATIONS, 2) == 2 * 10 * 256
    for name, shape in (("letter", LETTER), ("usps", USPS), ("mnist", MNIST)):
        assert NAIVE_BAYES[name] == shape.n_classes * (1 + shape.n_values)
    # The paper's mean numbers of values: 9.1, 3.4, 13.2.
    means = [round(shape.n_values / shape.n_features, 1) for shape in (LETTER, USPS, MNIST)]
    assert means == [9.1, 3.4, 13.2]


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the published folds are not beside the project")
@pytest.mark.parametrize("name", ["letter", "satimage", "usps"])
def test_budgets_are_those_of_the_published_folds(name):
    data = next(folds(name))[0]
    assert NAIVE_BAYES[name] == data.n_classes * (1 + data.n_states.sum())


def test_rooms_hold_widths():
    dense, images = Net(DENSE, "relu", REAL, 2, False), Net(CONVOLUTIONAL, "relu", REAL, 2, False)
    assert [padded_width(dense, width) for width in (1, 8, 9, 13, 16, 17, 25, 344)] == [8, 8, 12, 16, 16, 24, 32, 384]
    assert [padded_width(images, width) for width in (1, 2, 3, 5, 7, 8, 9)] == [1, 2, 3, 5, 7, 8, 12]


def test_the_grid_is_that_of_the_paper():
    lines = list(plan.grid("letter", LETTER, 0))
    assert {line["kind"] for line in lines} == {DENSE}
    found = Counter((line["multiple"], line["inputs"], line["activation"]) for line in lines)
    # 8 bits, 4 depths, with and without normalisation, 2 rates
    assert all(found[multiple, REAL, name] == 128 for multiple in (1, 2, 4, 8) for name in ("relu", "sign"))
    assert found[0.25, ONE_HOT, "relu"] < 128
    few = list(plan.grid("letter", LETTER, 0, multiples=[Fraction(1, 2)]))
    assert {line["multiple"] for line in few} == {0.5}
    images = list(plan.grid("usps", USPS, 0, kinds=[CONVOLUTIONAL]))
    assert {(line["budget"], line["multiple"]) for line in images} == {
        *((MEMORY, float(multiple)) for multiple in (0.25, 0.5, 1, 2, 4)),
        *((OPERATIONS, multiple) for multiple in (2.0, 8.0, 32.0)),
    }
    entered = [{**line, "fold": 1, "part": "validation", "epochs": 1} for line in lines + images]
    assert len({tuple(line[name] for name in plan.KEY) for line in entered}) == len(entered)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--epochs", "0"], "--epochs must be at least 1; got 0."),
        (["--multiples", "1/3"], "--multiples of dense nets are 1/4, 1/2, 1, 2, 4, 8, 16."),
    ],
)
def test_invalid_plans_are_rejected(options, said):
    with pytest.raises(SystemExit, match=said):
        command.main(["run", "neural", "--kinds", "dense", *options])


def test_an_eighth_of_every_race_goes_on():
    assert plan.rungs(500) == [8, 63, 500]
    assert plan.rungs(1) == [1]
    lines = [{**dict.fromkeys(plan.RACE), "multiple": place % 2, "n": place} for place in range(34)]
    errors = [0.5, 0.5, *[0.3] * 10, *[0.2] * 22]
    found = [line["n"] for line in plan.better_share(lines, errors)]
    assert found == [12, 14, 16, 13, 15, 17]


def test_nets_side_by_side_are_alike():
    lines = [{**line, "fold": 1} for line in plan.grid("usps", USPS, 0)]
    found = list(plan.side_by_side(lines))
    assert sorted(id(line) for together in found for line in together) == sorted(map(id, lines))
    for together in found:
        assert len({plan.net_of(line) for line in together}) == 1
        rooms = {tuple(padded_width(plan.net_of(line), width) for width in line["widths"]) for line in together}
        assert len(rooms) == 1
        assert len(together) == 1 or len(together) * rooms.pop()[0] <= plan.UNITS
    assert max(map(len, found)) == 16
