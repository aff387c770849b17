"""Branch and bound: its optimum and its bounds against enumeration, its limits, and what becomes of its tables."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import parameters as naive_parameters
from sklearn.datasets import load_iris

from tanlearn import (
    BayesNetClassifier,
    EncodedData,
    FixedPoint,
    IntegerBranchAndBound,
    IntegerTables,
    MaximumLikelihood,
    StochasticGradient,
    Structure,
    load,
    round_tables,
)
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.parameters import branch_and_bound, integer_margin
from tanlearn.parameters.held_out_selection import FittedTables
from tanlearn.parameters.integer_margin import Bound, IntegerMargin
from tanlearn.structures.table_layout import TableLayout

RNG = np.random.default_rng(0)
#: Parents, values, classes, bits: 64 to 16,384 tables.
SHAPES = {
    "naive Bayes": ([-1, -1], [2, 2], 2, 1),
    "tree": ([-1, 0], [2, 2], 2, 1),
    "two bits": ([-1], [2], 2, 2),
    "three classes": ([-1], [3], 3, 1),
}
#: Where HiGHS searches, and where boxes are relaxed here.
SEARCHES = {"HiGHS": 20_000, "boxes": 0}


def random_data(shape, seed, n=14, whole=True):
    _, n_states, n_classes, _ = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    weight = rng.integers(0, 4, n) if whole else rng.random(n)
    y = np.where(rng.random(n) < 0.6, X[:, 0] % n_classes, rng.integers(0, n_classes, n))
    weight[0] += 1
    return EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight)


def hinge(magnitudes, data, parents, margin):
    rows = data.codes.T, data.y, data.weights
    given = Structure(parents).parents
    return naive_parameters.hinge(magnitudes, *rows, given, data.n_states, data.n_classes, margin)


def problem_of(shape, data, margin):
    parents, _, _, bits = SHAPES[shape]
    layout = TableLayout.of_parents(Structure(parents).parents, data.n_states, data.n_classes)
    return IntegerMargin(layout, data, margin, 2**bits - 1)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_the_optimum_is_that_of_enumeration(shape, search, seed, margin, whole):
    parents, _, _, bits = SHAPES[shape]
    data = random_data(shape, seed, whole=whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_margin, "LARGEST_PROGRAMME", SEARCHES[search])
        learner = IntegerBranchAndBound(bits=(bits, 0), margin=margin, max_nodes=None)
        tables = learner.fit(Structure(parents), data, RNG)
    n_cells, total = tables.n_cells, data.weights.sum()
    least = hinge(naive_parameters.grid([0] * n_cells, [2**bits - 1] * n_cells), data, parents, margin).min()
    assert learner.converged_
    assert learner.gap_ == 0
    assert learner.objective_ == pytest.approx(least / total, rel=1e-5, abs=1e-9)
    assert hinge(tables.magnitudes.astype(int), data, parents, margin)[0] == pytest.approx(learner.objective_ * total)


def test_the_point_that_reduced_costs_leave_of_a_box_is_kept(monkeypatch):
    """The box contains two points, and the relaxation returns the worse one."""
    data = random_data("naive Bayes", 4)
    problem = problem_of("naive Bayes", data, 2)
    points = naive_parameters.grid([0] * 10, [1] * 10).astype(np.int64)
    values = hinge(points, data, [-1, -1], 2)
    best = points[values.argmin()]
    neighbors = np.abs(best - np.eye(10, dtype=np.int64))
    worse = neighbors[hinge(neighbors, data, [-1, -1], 2).argmax()]
    start = points[np.where(values > values.min(), values, np.inf).argmin()]
    assert problem.value(best) < problem.value(start) < problem.value(worse)
    search = branch_and_bound._Search(problem, start)
    lower, upper = np.minimum(best, worse), np.maximum(best, worse)
    search._heap, search.n_nodes = [(0.0, 0, lower, upper, worse.astype(float))], 1
    found = problem.relax(lower, upper, worse)._replace(magnitudes=worse.astype(float))
    monkeypatch.setattr(IntegerMargin, "relax", lambda *_, **__: found)
    monkeypatch.setattr(IntegerMargin, "descend", lambda self, magnitudes, *_, **__: magnitudes)
    search.split_box(bool)
    np.testing.assert_array_equal(search.best, best)
    assert search.state(1.0) == (values.min(), values.min(), 0.0)


def test_a_box_is_cut_at_the_cell_that_is_furthest_from_a_whole_number():
    lower, upper = np.array([2, 0, 0, 1]), np.array([2, 3, 3, 2])  # the first cell has one value left

    def cut(magnitudes, gradient):
        return branch_and_bound._cut(Bound(0.0, np.array(gradient), np.array(magnitudes)), lower, upper)

    assert cut([2.0, 0.2, 1.4, 1.3], [9.0, 9.0, -1.0, 9.0]) == (2, 1)
    assert cut([2.0, 0.2, 1.4, 1.5], [9.0, 9.0, -1.0, 9.0]) == (3, 1)
    # At an integer point, the bound depends most on the range of this cell.
    assert cut([2.0, 3.0, 2.0, 1.0], [99.0, 2.0, -1.0, 7.0]) == (3, 1)
    assert cut([2.0, 3.0, 2.0, 1.0], [99.0, -3.0, 1.0, 7.0]) == (1, 2)
    assert cut([2.0, 0.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]) == (1, 0)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([0, 1, 5, 60]))
def test_no_point_of_a_box_is_below_its_bound(shape, seed, margin, n_iter):
    parents, _, _, bits = SHAPES[shape]
    data, rng = random_data(shape, seed), np.random.default_rng(seed)
    problem = problem_of(shape, data, margin)
    sides = np.sort(rng.integers(0, 2**bits, (2, problem.layout.n_cells)), axis=0)
    least = hinge(naive_parameters.grid(*sides), data, parents, margin).min()
    found = problem.relax(*sides, rng.uniform(0, 3, problem.layout.n_cells), n_iter=n_iter)
    assert (sides[0] <= found.magnitudes).all()
    assert (found.magnitudes <= sides[1]).all()
    # Any multipliers do, however far from the best.
    n = len(problem.weight)
    multipliers = rng.dirichlet(np.ones(data.n_classes), n) * (rng.random(n) * problem.weight)[:, np.newaxis]
    value, _ = problem.bound(multipliers, *sides)
    assert max(found.value, value) <= least


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_the_bound_of_the_whole_range_is_near_the_relaxed_optimum(seed, margin, whole):
    """Of the linear programme, without whole numbers, by HiGHS."""
    from scipy.optimize import linprog

    problem = problem_of("tree", random_data("tree", seed, whole=whole), margin)
    objective, matrix, right = problem.programme()
    n_cells = problem.layout.n_cells
    sides = np.zeros(n_cells), np.full(n_cells, problem.largest)
    box = [(0, problem.largest)] * n_cells + [(0, None)] * len(problem.weight)
    exact = linprog(objective, A_ub=matrix, b_ub=right, bounds=box).fun
    found = problem.relax(*sides, sides[1] / 2)
    assert found.value <= exact + 1e-9
    assert found.value >= exact - 0.05 * margin * problem.weight.sum()


@pytest.mark.parametrize(
    ("weights", "unit"),
    [([2, 4, 6], 2.0), ([2, 3, 4], 0.0), ([0.5, 1.5, 2.0], 0.5), ([3, 3, 3], 3.0), ([0.3, 0.5, 0.9], 0.0)],
)
def test_values_of_integers_are_multiples_of_the_unit(weights, unit):
    """Otherwise a bound that is rounded up to the next multiple could cut off the optimum."""
    data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 0], n_states=[2], sample_weight=weights)
    layout = TableLayout.of_parents(Structure([-1]).parents, data.n_states, data.n_classes)
    problem = IntegerMargin(layout, data, 3, 3)
    assert problem.unit == unit
    values = np.unique(hinge(naive_parameters.grid([0] * 6, [3] * 6), data, [-1], 3).round(9))
    if unit:
        np.testing.assert_allclose(values / unit, np.rint(values / unit))
    for value, before in zip(values, [0.0, *values[:-1]], strict=True):
        for bound in (value, value - 1e-9, (value + before) / 2):
            assert bound - 1e-6 <= problem.next_value(bound) <= value + 1e-6
    assert problem.next_value(2.5) == (unit * np.ceil(2.5 / unit) if unit else 2.5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_highs_solves_the_whole_programme(shape, seed):
    parents, _, n_classes, bits = SHAPES[shape]
    data = random_data(shape, seed, n=25)
    problem = problem_of(shape, data, 3)
    n_cells, largest = problem.layout.n_cells, 2**bits - 1
    found, bound, _ = problem.solve(None, np.inf)
    least = hinge(naive_parameters.grid([0] * n_cells, [largest] * n_cells), data, parents, 3).min()
    assert found.dtype == np.int64
    assert 0 <= found.min() <= found.max() <= largest
    assert hinge(found, data, parents, 3)[0] == pytest.approx(least)
    assert bound == pytest.approx(least, rel=1e-6)
    objective, matrix, right = problem.programme()
    point = np.random.default_rng(seed).integers(0, largest + 1, n_cells)
    slack = (matrix[:, :n_cells] @ point - right).reshape(len(problem.weight), n_classes - 1)
    assert objective[n_cells:] @ np.maximum(0, slack.max(axis=1)) == pytest.approx(hinge(point, data, parents, 3)[0])


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((None, np.inf), {}), ((7, np.inf), {"node_limit": 7}), ((None, 3.5), {"time_limit": 3.5})],
)
def test_highs_has_the_limits_of_the_search_and_no_gap(limits, expected, monkeypatch):
    """Small programs are solved before a limit, so that only what HiGHS is given shows it."""
    given, milp = [], scipy.optimize.milp

    def recorded(*args, options, **others):
        given.append(dict(options))
        return milp(*args, options=options, **others)

    monkeypatch.setattr("scipy.optimize.milp", recorded)
    problem_of("tree", random_data("tree", 0), 3).solve(*limits)
    assert given == [{"mip_rel_gap": 0.0, **expected}]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_programme_is_small_by_its_numbers_that_may_not_be_zero(shape, monkeypatch):
    """Cells that both classes of a margin share cancel, so that the matrix has at most so many."""
    problem = problem_of(shape, random_data(shape, 0), 3)
    margins = problem.programme()[1].shape[0]
    numbers = margins * 2 * (len(SHAPES[shape][0]) + 1)
    assert problem.programme()[1].nnz - margins <= numbers
    for largest, expected in ((numbers, True), (numbers - 1, False)):
        monkeypatch.setattr(integer_margin, "LARGEST_PROGRAMME", largest)
        assert problem.is_small is expected


def test_a_late_relaxation_ends_with_a_bound_that_holds():
    data, calls = random_data("tree", 0), []
    problem = problem_of("tree", data, 3)
    sides = np.zeros(problem.layout.n_cells, int), np.ones(problem.layout.n_cells, int)
    found = problem.relax(*sides, sides[1] / 2, is_late=lambda: calls.append(1) or True)
    assert len(calls) == len(integer_margin.SHARPNESS)  # one iteration each
    least = hinge(naive_parameters.grid(sides[0], sides[1]), data, [-1, 0], 3).min()
    assert found.value <= least


@pytest.mark.parametrize("shape", SHAPES)
def test_descent_ends_where_no_cell_improves(shape):
    parents, _, _, bits = SHAPES[shape]
    data = random_data(shape, 3)
    problem = problem_of(shape, data, 3)
    n_cells, largest = problem.layout.n_cells, 2**bits - 1
    sides = np.zeros(n_cells, int), np.full(n_cells, largest)
    start = np.random.default_rng(1).integers(0, largest + 1, n_cells)
    found = problem.descend(start, *sides)
    value = hinge(found, data, parents, 3)[0]
    assert value < hinge(start, data, parents, 3)[0]
    assert problem.value(found) == pytest.approx(value)
    for cell in range(n_cells):
        others = np.repeat(found[np.newaxis], largest + 1, axis=0)
        others[:, cell] = np.arange(largest + 1)
        assert hinge(others, data, parents, 3).min() >= value - 1e-9
    np.testing.assert_array_equal(problem.descend(start, *sides, is_late=lambda: True), start)


def hard_data(n=250):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, n)
    X = np.where(rng.random((n, 6)) < 0.45, y[:, np.newaxis], rng.integers(0, 3, (n, 6)))
    return EncodedData.from_codes(X, y, n_states=[3] * 6, n_classes=3)


def limited(**settings):
    learner = IntegerBranchAndBound(bits=(2, 0), margin=4, **settings)
    return learner, learner.fit(Structure([-1, 0, 0, 1, 1, 2]), hard_data(), RNG)


@pytest.mark.parametrize("largest", [0, 20_000])
def test_a_node_limit_ends_the_search_the_same_way_every_time(monkeypatch, largest):
    monkeypatch.setattr(integer_margin, "LARGEST_PROGRAMME", largest)
    (learner, tables), (again, same) = (limited(max_nodes=4) for _ in range(2))
    np.testing.assert_array_equal(tables.packed, same.packed)
    assert (learner.objective_, learner.bound_, learner.history_) == (again.objective_, again.bound_, again.history_)
    assert learner.n_nodes_ == learner.n_iter_ <= 5
    assert 0 <= learner.bound_ <= learner.objective_
    assert learner.gap_ == pytest.approx((learner.objective_ - learner.bound_) / learner.objective_)
    losses = [iteration.loss for iteration in learner.history_]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == learner.objective_


def test_more_nodes_are_no_worse(monkeypatch):
    monkeypatch.setattr(integer_margin, "LARGEST_PROGRAMME", 0)
    few, many = (limited(max_nodes=n)[0] for n in (1, 12))
    assert not many.converged_
    assert len(many.history_) == 13
    assert many.objective_ <= few.objective_
    assert many.bound_ >= few.bound_ > 0
    assert many.gap_ < 1


def test_without_time_the_start_is_rounded():
    learner, tables = limited(time_limit=1e-9)
    start = MaximumLikelihood().fit(Structure([-1, 0, 0, 1, 1, 2]), hard_data(), RNG)
    np.testing.assert_array_equal(tables.packed, round_tables(start, FixedPoint(2, 0)).packed)
    assert (learner.n_nodes_, learner.bound_, learner.gap_, learner.converged_) == (0, 0.0, 1.0, False)


def test_highs_may_find_nothing_in_its_time():
    problem = problem_of("tree", random_data("tree", 0), 3)
    found, bound, n_nodes = problem.solve(None, 1e-12)
    if found is not None:
        pytest.skip("the HiGHS of this SciPy finds something before it looks at the clock")
    assert (bound, n_nodes) == (0.0, 0)


def test_an_interrupted_search_keeps_what_it_has(monkeypatch):
    monkeypatch.setattr(integer_margin, "LARGEST_PROGRAMME", 0)
    expected, _ = limited(max_nodes=2)
    relax, calls = IntegerMargin.relax, []

    def interrupted(self, *args, **settings):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return relax(self, *args, **settings)

    monkeypatch.setattr(IntegerMargin, "relax", interrupted)
    with pytest.warns(UserWarning, match="interrupted in node 3, so the best CPTs so far are returned"):
        learner, _ = limited(max_nodes=50)
    assert (learner.objective_, learner.bound_, learner.n_nodes_) == (expected.objective_, expected.bound_, 2)
    assert not learner.converged_


def test_weight_two_is_the_row_twice_and_weight_zero_none():
    weight = np.random.default_rng(3).integers(0, 3, 250)
    once = hard_data()
    weighted = EncodedData.from_codes(once.codes.T, once.y, n_states=once.n_states, sample_weight=weight)
    found = []
    for data in (weighted, once.take(np.repeat(np.arange(250), weight))):
        learner = IntegerBranchAndBound(bits=(1, 0), margin=2, max_nodes=3)
        found.append((learner.fit(Structure([-1] * 6), data, RNG).magnitudes.tolist(), learner.objective_))
    assert found[0] == found[1]


def test_a_start_is_not_made_worse():
    data, structure = hard_data(), Structure([-1, 0, 0, 1, 1, 2])
    start = StochasticGradient(bits=(2, 0), n_epochs=5, calibrate=False)
    before = start.fit(structure, data, np.random.default_rng(1)).magnitudes.astype(int)
    learner = IntegerBranchAndBound(bits=(2, 0), margin=4, start=start, max_nodes=1)
    learner.fit(structure, data, np.random.default_rng(1))
    begun = hinge(before, data, [-1, 0, 0, 1, 1, 2], 4)[0] / 250
    assert learner.history_[0].loss == pytest.approx(begun)
    assert learner.objective_ < begun


def test_cells_without_rows_keep_the_numbers_of_the_start():
    data = EncodedData.from_codes([[0], [1], [0], [1]], [0, 1, 0, 1], n_states=[3], n_classes=2)
    tables = IntegerBranchAndBound(bits=(3, 0), margin=2).fit(Structure([-1]), data, RNG)
    start = round_tables(MaximumLikelihood().fit(Structure([-1]), data, RNG), FixedPoint(3, 0))
    np.testing.assert_array_equal(tables[0][2], start[0][2])


def test_a_start_may_be_any_object_that_fits_tables():
    structure = Structure([-1, 0, 0, 1, 1, 2])
    layout = TableLayout.of_parents(structure.parents, hard_data().n_states, 3)
    given = Tables(layout, -np.random.default_rng(0).integers(0, 4, layout.n_cells).astype(float))
    learner = IntegerBranchAndBound(bits=(2, 0), margin=4, start=FittedTables(given), time_limit=1e-9)
    np.testing.assert_array_equal(learner.fit(structure, hard_data(), RNG).magnitudes, -given.cells)


@pytest.mark.parametrize(("max_nodes", "time_limit"), [(2, None), (7, 90.0)])
def test_highs_searches_the_nodes_and_the_time_that_are_left(monkeypatch, max_nodes, time_limit):
    solve, asked = IntegerMargin.solve, []

    def keep(self, n, seconds):
        asked.append((n, seconds))
        return solve(self, n, seconds)

    monkeypatch.setattr(IntegerMargin, "solve", keep)
    monkeypatch.setattr(branch_and_bound, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    data = random_data("three classes", 4)
    learner = IntegerBranchAndBound(bits=(1, 0), margin=3, max_nodes=max_nodes, time_limit=time_limit)
    learner.fit(Structure([-1]), data, RNG)
    assert asked == [(max_nodes - 1, np.inf if time_limit is None else 90.0)]


def test_progress_is_told(capsys):
    learner, _ = limited(max_nodes=3, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(learner.history_)  # every step, and the end
    assert lines[0].startswith("better: mean hinge ")
    assert lines[-1].startswith("optimal: " if learner.converged_ else "ended by a limit: ")
    assert f"gap {learner.gap_:.2%}, {learner.n_nodes_} nodes" in lines[-1]
    limited(max_nodes=3)
    assert capsys.readouterr().out == ""


def test_of_nodes_without_better_tables_only_the_end_is_told(monkeypatch, capsys):
    monkeypatch.setattr(integer_margin, "LARGEST_PROGRAMME", 0)
    learner, _ = limited(max_nodes=4, verbose=1)
    found = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    n_better = np.count_nonzero(np.diff([iteration.loss for iteration in learner.history_]))
    assert 0 < n_better < 4
    assert found == ["better"] * n_better + ["ended by a limit"]


def test_an_estimator_keeps_tables_of_few_bits(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = BayesNetClassifier(structure=Structure([-1, 0, 0, 2]), parameters=IntegerBranchAndBound(margin=3)).fit(X, y)
    assert isinstance(model.tables_, IntegerTables)
    assert model.tables_.bits == (2, 0)
    assert model.score(X, y) > 0.95
    model.save(tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    np.testing.assert_array_equal(loaded.tables_.packed, model.tables_.packed)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.export_c(tmp_path / "model.h", name="iris")
    assert "iris_predict" in (tmp_path / "model.h").read_text()


def test_two_bits_err_less_than_rounded_ones():
    rng = np.random.default_rng(7)
    data = hard_data(600)
    train, test = data.take(np.arange(600) < 400), data.take(np.arange(600) >= 400)
    structure = Structure([-1] * 6)
    ways = {
        "rounded": round_tables(MaximumLikelihood().fit(structure, train, rng), FixedPoint(1, 0)),
        "searched": IntegerBranchAndBound(bits=(1, 0), margin=2, max_nodes=5).fit(structure, train, rng),
    }
    errors = {
        way: (log_joint(tables, structure, test.codes).argmax(axis=1) != test.y).mean() for way, tables in ways.items()
    }
    assert errors["searched"] < errors["rounded"]


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (IntegerBranchAndBound(bits=(2, 0, 1)), "tuple of integer and fraction bits, such as .2, 0., got .2, 0, 1."),
        (IntegerBranchAndBound(bits=(20, 0)), "must be from 1 to 16"),
        (IntegerBranchAndBound(bits=2), "'bits' parameter of IntegerBranchAndBound"),
        (IntegerBranchAndBound(margin=0), "'margin' parameter of IntegerBranchAndBound"),
        (IntegerBranchAndBound(max_nodes=0), "'max_nodes' parameter of IntegerBranchAndBound"),
        (IntegerBranchAndBound(time_limit=0), "'time_limit' parameter of IntegerBranchAndBound"),
    ],
)
def test_bad_parameters_are_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(Structure([-1, 0]), random_data("tree", 0), RNG)


def test_what_has_no_margins_is_refused():
    with pytest.raises(ValueError, match=r"complete rows only.*feature 1 in row 0"):
        IntegerBranchAndBound().fit(Structure([-1, -1]), EncodedData.from_codes([[0, -1], [1, 1]], [0, 1]), RNG)
    with pytest.raises(ValueError, match="at least 2 classes"):
        IntegerBranchAndBound().fit(Structure([-1]), EncodedData.from_codes([[0], [1]], [0, 0], n_classes=1), RNG)
