"""MDLPDiscretizer: the oracle's cuts, weights as repetitions, and what must not change them."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import discretize as naive
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import MDLPDiscretizer, QuantileDiscretizer
from tanlearn.encoding.cut_points import CutPointDiscretizer

DATA = Path(__file__).parents[2].parent / "shared" / "data"
MISSING = 255


@parametrize_with_checks([MDLPDiscretizer()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def cuts_of(x, y, weight=None):
    return MDLPDiscretizer().fit(np.asarray(x, dtype=float)[:, None], y, weight).cut_points_[0].tolist()


def oracle(x, y, weight):
    return [(low + high) / 2 for low, high in naive.mdlp_cuts(x, y, weight)]


def random_table(seed, n_classes=3):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    x = rng.integers(0, int(rng.integers(1, 14)), n).astype(float)
    y = np.where(rng.random(n) < 0.7, x // 4, rng.integers(0, n_classes, n)).astype(int) % n_classes
    y[:2] = 0, 1
    x[rng.random(n) < 0.1] = np.nan
    return rng, x, y


@pytest.mark.parametrize("seed", range(60))
def test_cuts_equal_oracle(seed):
    rng, x, y = random_table(seed)
    weight = (np.ones(len(x)), rng.integers(0, 4, len(x)), rng.choice([0.1, 0.5, 2.3], len(x)))[seed % 3]
    weight[:2] = 1
    assert cuts_of(x, y, weight) == oracle(x, y, weight)


def test_the_random_tables_do_have_cuts():
    n_cuts = [len(cuts_of(x, y)) for _, x, y in map(random_table, range(60))]
    assert {0, 1, 2} <= set(n_cuts)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([5, 5, 5, 5], [0, 1, 0, 1]),
        ([1, 2, 3, 4], [0, 1, 2, 3]),
        ([1, np.nan, np.nan, np.nan], [0, 1, 0, 1]),
        ([np.nan] * 4, [0, 1, 0, 1]),
        ([1, 2, np.nan, np.nan], [0, 0, 1, 1]),
    ],
    ids=["one value", "one row per class", "one value that is not missing", "all missing", "one class present"],
)
def test_degenerate_features_equal_oracle(x, y):
    x = np.array(x, dtype=float)
    assert cuts_of(x, y) == oracle(x, y, np.ones(4))


def test_feature_without_a_cut_has_one_state():
    discretizer = MDLPDiscretizer().fit([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan]], [0, 1, 0])
    assert discretizer.n_states_.tolist() == [1, 1]
    assert discretizer.transform([[9.0, 3.0], [np.nan, np.nan]]).tolist() == [[0, 0], [MISSING, MISSING]]


def test_value_equal_to_a_cut_belongs_to_the_left():
    discretizer = MDLPDiscretizer().fit([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], [0, 0, 0, 1, 1, 1])
    assert discretizer.cut_points_[0].tolist() == [0.5]
    just_above = np.nextafter(0.5, 1)
    assert discretizer.transform([[-9.0], [0.5], [just_above], [9.0]])[:, 0].tolist() == [0, 0, 1, 1]


def test_lowest_of_equal_cuts_wins():
    assert cuts_of(np.repeat([1, 2, 3], 20), np.repeat([0, 1, 0], 20)) == [1.5, 2.5]
    # Three rows of class 1 in the middle pay for one of two mirrored cuts only.
    x, y = np.repeat([1, 2, 3], [9, 3, 9]), np.repeat([0, 1, 0], [9, 3, 9])
    assert cuts_of(x, y) == oracle(x, y, np.ones(21))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(1.0, 0.0), 1.0),
        (-1.7e308, 1.7e308),
        (0.0, 5e-324),
        (5e-324, 1e-323),
        (-5e-324, 0.0),
    ],
)
def test_cut_separates_neighbours_however_close_or_far(low, high):
    x, y = np.repeat([low, high], 5)[:, None], np.repeat([0, 1], 5)
    assert MDLPDiscretizer().fit(x, y).transform(x)[:, 0].tolist() == y.tolist()


def test_float32_table_is_cut_between_its_values():
    low = np.float32(0.1)
    x = np.repeat(np.array([low, np.nextafter(low, np.float32(1))]), 5)[:, None]
    y = np.repeat([0, 1], 5)
    assert x.dtype == np.float32
    assert MDLPDiscretizer().fit(x, y).transform(x)[:, 0].tolist() == y.tolist()


tables = (
    st.integers(2, 4)
    .flatmap(
        lambda n_classes: st.lists(
            st.tuples(st.integers(-6, 6), st.integers(0, n_classes - 1), st.integers(1, 4)), min_size=2, max_size=40
        )
    )
    .filter(lambda rows: len({label for _, label, _ in rows}) > 1)
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(tables)
def test_weights_are_repetitions(rows):
    x, y, weight = map(np.array, zip(*rows, strict=True))
    expected = cuts_of(np.repeat(x, weight), np.repeat(y, weight))
    assert cuts_of(x, y, weight) == expected
    assert cuts_of(x, y, weight.astype(float)) == expected
    absent = np.concatenate([weight, np.zeros(3, int)])
    assert cuts_of([*x, -9, 0, 9], [*y, 0, 1, 7], absent) == expected


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows, random):
    x, y, weight = map(np.array, zip(*rows, strict=True))
    order = list(range(len(rows)))
    random.shuffle(order)
    assert cuts_of(x[order], y[order], weight[order]) == cuts_of(x, y, weight)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables, st.sampled_from([lambda x: x**3 + 5, np.exp, lambda x: 1e6 * x]))
def test_increasing_transformation_gives_the_same_codes(rows, increasing):
    x, y, _ = map(np.array, zip(*rows, strict=True))
    plain, bent = (MDLPDiscretizer().fit_transform(z[:, None], y) for z in (x, increasing(x.astype(float))))
    np.testing.assert_array_equal(plain, bent)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(tables)
def test_names_of_classes_do_not_matter(rows):
    x, y, _ = map(np.array, zip(*rows, strict=True))
    assert cuts_of(x, np.array(["d", "a", "c", "b"])[y]) == cuts_of(x, y)


def test_threads_do_not_change_the_cuts():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = y[:, None] + rng.normal(size=(300, 7))
    one, two = (MDLPDiscretizer(n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert [cuts.tolist() for cuts in one.cut_points_] == [cuts.tolist() for cuts in two.cut_points_]
    assert one.n_states_.max() > 1


def test_tables_of_every_kind_give_the_same_cuts():
    x, y = [1, 2, 3, 10, 11, 12, None], [0, 0, 0, 1, 1, 1, 0]
    for table in (
        [[value] for value in x],
        np.array(x, dtype=object)[:, None],
        pd.DataFrame({"x": x}),
        pd.DataFrame({"x": pd.Series(x, dtype="Int64")}),
        pl.DataFrame({"x": x}),
    ):
        discretizer = MDLPDiscretizer().fit(table, y)
        assert discretizer.cut_points_[0].tolist() == [6.5]
        assert discretizer.transform(table)[:, 0].tolist() == [0, 0, 0, 1, 1, 1, MISSING]


def test_more_than_255_states_take_two_bytes():
    y = np.repeat(np.arange(300), 30)
    codes = MDLPDiscretizer().fit_transform(y[:, None].astype(float), y)
    assert codes.dtype == np.uint16
    np.testing.assert_array_equal(codes[:, 0], y)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["a", "b"], "column 0 holds str, but only numbers can be discretized"),
        ([1, "b"], "holds int .*and str"),
    ],
)
def test_column_that_holds_no_numbers_is_an_error(column, words):
    with pytest.raises(TypeError, match=words):
        MDLPDiscretizer().fit([[value] for value in column], [0, 1])


def test_bad_parameters_and_use_before_fit_are_named():
    with pytest.raises(ValueError, match="'n_jobs' parameter of MDLPDiscretizer must be"):
        MDLPDiscretizer(n_jobs="all").fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(NotFittedError, match="MDLPDiscretizer"):
        MDLPDiscretizer().transform([[1.0]])


def test_tags_say_what_it_takes():
    tags = get_tags(MDLPDiscretizer())
    assert tags.target_tags.required
    assert tags.input_tags.allow_nan
    assert tags.transformer_tags.preserves_dtype == []


def test_declared_categories_are_not_discretised():
    table = pd.DataFrame({"size": pd.Series([1, 2], dtype="category")})
    with pytest.raises(TypeError, match=r"column 'size' holds declared categories.*discrete_features"):
        MDLPDiscretizer().fit(table, [0, 1])


on_real_data = pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")


@pytest.mark.data
@on_real_data
@pytest.mark.parametrize("name", ["letter", "satimage"])
def test_every_published_cut_is_accepted_again(name):
    """The best cut of all is the best of the published ones, so their tables must keep every state."""
    published = np.load(DATA / "discretized" / f"{name}.npz")
    for fold in range(1, int(published["n_folds"]) + 1):
        codes, y = published[f"x_tr_fold{fold}"], published[f"t_tr_fold{fold}"]
        n_states = MDLPDiscretizer(n_jobs=2).fit(codes, y).n_states_
        assert n_states.tolist() == codes.max(axis=0).tolist()


@pytest.mark.data
@on_real_data
@pytest.mark.parametrize(("name", "n_train"), [("letter", 13_342), ("satimage", 5_153), ("usps", 7_340)])
def test_mean_number_of_states_is_the_published_one(name, n_train):
    """The published rows are unknown, so another random part of the same size is compared."""
    raw, published = (np.load(DATA / part / f"{name}.npz") for part in ("raw", "discretized"))
    rows = np.random.default_rng(0).permutation(len(raw["y"]))[:n_train]
    n_states = MDLPDiscretizer(n_jobs=2).fit(raw["X"][rows], raw["y"][rows]).n_states_
    assert n_states.mean() == pytest.approx(published["x_tr_fold1"].max(axis=0).mean(), rel=0.06)


DISCRETIZERS = [MDLPDiscretizer(), QuantileDiscretizer(max_bins=4)]


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda own: type(own).__name__)
def test_rows_of_weight_zero_may_hold_anything(discretizer):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=80), np.arange(80) % 2
    x += 3 * y
    X, labels, weights = [[value] for value in x.tolist()], y.tolist(), [1] * 80
    expected = clone(discretizer).fit(X, labels)
    assert len(expected.cut_points_[0]) > 0
    for bad in (np.inf, "no number", 1e300):
        found = clone(discretizer).fit([*X, [bad]], [*labels, 1], [*weights, 0])
        assert found.cut_points_[0].tolist() == expected.cut_points_[0].tolist()
    with pytest.raises(ValueError, match="contains infinity: inf in row 80"):
        clone(discretizer).fit([*X, [np.inf]], [*labels, 1], [*weights, 1])


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda own: type(own).__name__)
def test_columns_without_numbers_are_missing_or_refused(discretizer):
    X = np.column_stack([np.arange(40.0), np.arange(40) % 7])
    fitted = clone(discretizer).fit(X, np.arange(40) > 20)
    known = fitted.transform(X[:2])
    table = pd.DataFrame({0: pd.Series([None, None], dtype=object), 1: X[:2, 1]}).to_numpy()
    found = fitted.transform(table)
    assert found[:, 0].tolist() == [255, 255]
    assert found[:, 1].tolist() == known[:, 1].tolist()
    with pytest.raises(TypeError, match=r"X column 0 holds str, such as .* in row \d+, but held numbers in fit"):
        fitted.transform([["a", 1.0], ["b", 2.0]])


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda own: type(own).__name__)
def test_restored_discretizers_have_the_cut_points_that_they_are_given(discretizer):
    found = clone(discretizer).restore([np.array([1.5, 2.5]), np.empty(0)])
    assert (found.n_features_in_, found.n_states_.tolist(), found.n_states_.dtype) == (2, [3, 1], np.intp)
    assert found.transform([[1.5, 7.0], [2.0, -7.0], [3.0, np.nan]]).tolist() == [[0, 0], [1, 0], [2, 255]]
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2 features"):
        found.transform([[1.0]])


def test_discretizers_of_ones_own_say_how_cut_points_are_found():
    class Own(CutPointDiscretizer):
        n_jobs = None

    with pytest.raises(NotImplementedError, match="Own"):
        Own().fit([[1.0], [2.0]], [0, 1])
