"""Branch and bound: its optimum and its bounds against enumeration, its limits, and what becomes of its tables."""

import numpy as np
import pytest
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
from tanlearn.network.inference import log_joint
from tanlearn.network.table_layout import TableLayout
from tanlearn.parameters import integer_margin
from tanlearn.parameters.integer_margin import IntegerMargin

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
    assert learner.history_ == sorted(learner.history_, reverse=True)
    assert learner.history_[-1] == learner.objective_


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
    with pytest.warns(UserWarning, match="interrupted in node 3: the best CPTs so far are returned"):
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
    assert learner.history_[0] == pytest.approx(begun)
    assert learner.objective_ < begun


def test_cells_without_rows_keep_the_numbers_of_the_start():
    data = EncodedData.from_codes([[0], [1], [0], [1]], [0, 1, 0, 1], n_states=[3], n_classes=2)
    tables = IntegerBranchAndBound(bits=(3, 0), margin=2).fit(Structure([-1]), data, RNG)
    start = round_tables(MaximumLikelihood().fit(Structure([-1]), data, RNG), FixedPoint(3, 0))
    np.testing.assert_array_equal(tables[0][2], start[0][2])


def test_progress_is_told(capsys):
    learner, _ = limited(max_nodes=3, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(learner.history_)  # every step, and the end
    assert lines[0].startswith("better: mean hinge ")
    assert lines[-1].startswith("optimal: " if learner.converged_ else "ended by a limit: ")
    assert f"gap {learner.gap_:.2%}, {learner.n_nodes_} nodes" in lines[-1]
    limited(max_nodes=3)
    assert capsys.readouterr().out == ""


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
        (IntegerBranchAndBound(bits=(20, 0)), "must add up to 1 to 16"),
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
