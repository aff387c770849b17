"""A category for missing values: codes against an oracle, decoding, weights, summaries, folds and columns."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanlearn import EncodedData, MDLPDiscretizer, QuantileDiscretizer, TableEncoder
from tanlearn.encoding.missing_values import depend_on_class
from tanlearn.encoding.raw_numbers import RawNumbers
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns

X = [["a", 1.5], [None, 2.0], ["b", None], ["a", 3.0], ["b", 10.0], [None, 11.0], ["a", None], ["b", 12.0]]
Y = [0, 0, 0, 0, 1, 1, 1, 1]


def code_of(value, values, cuts):
    """Code of a value by hand, given the training values and the cut points (None for categories); None if unknown."""
    known = [one for one in values if one is not None]
    has_category = known and len(known) < len(values)
    n_values = len(set(known)) if cuts is None else len(cuts) + 1
    if value is None:
        return n_values if has_category else None
    if cuts is None:
        return sorted(set(known)).index(value) if value in known else None
    return sum(value > cut for cut in cuts)


@st.composite
def tables(draw):
    """Draw training rows and new rows of strings and numbers, with missing and unseen values."""
    strings, numbers = st.sampled_from(["a", "b", "c", None]), st.sampled_from([0.5, 1.5, 2.25, 3.0, 8.0, None])
    row = st.tuples(strings, numbers)
    new = st.tuples(st.sampled_from(["a", "c", "unseen", None]), numbers)
    return draw(st.lists(row, min_size=2, max_size=20)), draw(st.lists(new, min_size=1, max_size=8))


@given(tables())
def test_codes_are_those_of_the_oracle(drawn):
    rows, new = drawn
    encoder = TableEncoder(
        discrete_features=[0], discretizer=QuantileDiscretizer(max_bins=3), handle_missing="category"
    )
    encoder.fit([list(row) for row in rows], [0, 1] + [0] * (len(rows) - 2))
    (cuts,) = encoder.discretizer_.cut_points_
    found, unknown = encoder.encode([list(row) for row in new]), 255
    for j, own in enumerate((None, cuts.tolist())):
        values = [row[j] for row in rows]
        expected = [code_of(row[j], values, own) for row in new]
        assert found[j].tolist() == [unknown if code is None else code for code in expected]
        present = [value for value in values if value is not None]
        assert encoder.has_missing_category_[j] == (0 < len(present) < len(values))
        n_values = max(len(set(present)), 1) if own is None else len(own) + 1
        assert encoder.n_states_[j] == n_values + encoder.has_missing_category_[j]
    missing = [[row[j] is None for j in range(2)] for row in new]
    floats = encoder.transform([list(row) for row in new])
    assert (~np.isnan(floats[missing]) == np.tile(encoder.has_missing_category_, (len(new), 1))[missing]).all()


def test_fit_transform_and_decoding():
    encoder = TableEncoder(handle_missing="category").fit(X, Y)
    assert encoder.n_states_.tolist() == [3, 3]
    assert encoder.categories_[0].tolist() == ["a", "b"]
    assert encoder.typical_values_[1].tolist() == pytest.approx([6.5 / 3, 11.0])
    codes = encoder.encode(X)
    assert codes.tolist() == [[0, 2, 1, 0, 1, 2, 0, 1], [0, 0, 2, 0, 1, 1, 2, 1]]
    np.testing.assert_array_equal(TableEncoder(handle_missing="category").fit_transform(X, Y), codes.T)
    decoded = encoder.inverse_transform(encoder.transform(X))
    np.testing.assert_array_equal(encoder.decode(codes), decoded)
    assert decoded[:, 0].tolist() == [row[0] for row in X]
    assert [value is None for value in decoded[:, 1]] == [row[1] is None for row in X]
    assert encoder.decode(np.array([[255], [255]], np.uint8)).tolist() == [[None, None]]


def test_other_settings_marginalize():
    for how in (None, "marginalize"):
        encoder = TableEncoder(handle_missing=how).fit(X, Y)
        assert encoder.n_states_.tolist() == [2, 2]
        assert not encoder.has_missing_category_.any()
        assert encoder.encode([[None, None]]).tolist() == [[255], [255]]
    with pytest.raises(ValueError, match="'handle_missing' parameter"):
        TableEncoder(handle_missing="impute").fit(X, Y)


def test_unseen_categories_are_not_missing():
    encoder = TableEncoder(handle_missing="category").fit(X, Y)
    assert encoder.encode([["zebra", 1.0], [None, 1.0]])[0].tolist() == [255, 2]
    with pytest.raises(ValueError, match="'zebra' in row 0, which was not seen"):
        encoder.encode([["zebra", 1.0], [None, 1.0]], handle_unknown="error")
    assert encoder.encode([[None, 1.0]], handle_unknown="error")[0].tolist() == [2]
    with pytest.warns(UserWarning, match="no value in 1 column"):
        found = encoder.encode([["zebra", 1.0]] * 12 + [[None, 1.0]])
    assert found[0].tolist() == [255] * 12 + [2]
    check = encoder.check_rows([["zebra", None], [None, 1.0]])
    assert [(one.n_missing, one.n_unseen) for one in check.columns] == [(1, 1), (1, 0)]


@pytest.mark.parametrize("kind", [list, np.array])
def test_integers_with_missing_values(kind):
    """Numbers with few values are categories; in an array, they are floats."""
    rows = kind([[3.0, 0.0], [np.nan, 1.0], [7.0, 0.0], [3.0, 1.0]])
    encoder = TableEncoder(handle_missing="category").fit(rows, [0, 1, 0, 1])
    assert encoder.encode(kind([[7.0, np.nan], [np.nan, 1.0], [4.0, 0.0]])).tolist() == [[1, 2, 255], [255, 1, 0]]


def test_frames_with_declared_categories():
    pd = pytest.importorskip("pandas")
    sizes = pd.Categorical(["s", None, "l", "s"], categories=["s", "m", "l"], ordered=True)
    frame = pd.DataFrame({"size": sizes, "n": pd.array([1, 2, None, 1], dtype="Int64")})
    encoder = TableEncoder(handle_missing="category").fit(frame, [0, 1, 0, 1])
    assert encoder.encode(frame).tolist() == [[0, 3, 2, 0], [0, 1, 2, 0]]
    assert encoder.n_states_.tolist() == [4, 3]


def test_a_column_without_values_has_no_category():
    encoder = TableEncoder(handle_missing="category").fit([[None, 1], [None, 2]], [0, 1])
    assert encoder.has_missing_category_.tolist() == [False, False]
    assert encoder.encode([[None, 1], ["new", 2]]).tolist() == [[255, 255], [0, 1]]


@pytest.mark.parametrize("rows", [[None, 1.0], ["a", None], [None, None]])
def test_rows_of_weight_zero_do_not_count(rows):
    complete = [["a", 1.0], ["b", 9.0], ["a", 2.0], ["b", 8.0]]
    encoder = TableEncoder(handle_missing="category").fit([*complete, rows], [0, 1, 0, 1, 0], [1, 1, 1, 1, 0])
    assert not encoder.has_missing_category_.any()
    light = TableEncoder(handle_missing="category").fit([*complete, rows], [0, 1, 0, 1, 0], [1, 1, 1, 1, 1e-12])
    assert light.has_missing_category_.tolist() == [value is None for value in rows]


# ----------------------------------------------------------------------------------- columns that depend on the class


def likelihood(n_missing, n_present):
    """Probability of a sequence of rows under a rate with the prior Beta(1/2, 1/2), row by row."""
    p = Fraction(1)
    for n_same, n in ((n_missing, 0), (n_present, n_missing)):
        for k in range(n_same):
            p *= (k + Fraction(1, 2)) / (n + k + 1)
    return p


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=4))
def test_rates_per_class_are_compared_exactly(counts):
    counts = [*counts, (1, 1)]
    by_class = math.prod(likelihood(*own) for own in counts)
    together = likelihood(*(sum(side) for side in zip(*counts, strict=True)))
    missing, present = np.array(counts, float).T
    if by_class != together:
        assert depend_on_class(missing, missing + present) == (by_class > together)


def rows_with_missing(seed=0):
    """Return columns of strings: missing in class 1 more often, missing at random, complete, and without values."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(200) % 2)
    rows = [["a", "b", "c", None] for _ in y]
    for row, label, one, two in zip(rows, y, *rng.random((2, 200)), strict=True):
        row[0] = None if one < 0.1 + 0.2 * label else row[0]
        row[1] = None if two < 0.3 else row[1]
    return rows, y


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_depend_on_the_class_get_a_category(seed):
    rows, y = rows_with_missing(seed)
    encoder = TableEncoder(handle_missing="auto").fit(rows, y)
    assert encoder.has_missing_category_.tolist() == [True, False, False, False]
    assert encoder.encode([[None, None, None, None]])[:, 0].tolist() == [1, 255, 255, 255]


def test_weights_count_as_rows_and_light_rows_as_whole_ones():
    rows = [["a"], [None]] * 3 + [["a"]] * 5 + [[None]]  # 3 of 6 are missing in one class, 1 of 6 in the other
    y = [1] * 6 + [0] * 6

    def has_category(X, classes, weights=None):
        return TableEncoder(handle_missing="auto").fit(X, classes, weights).has_missing_category_.tolist()

    assert has_category(rows, y) == [False]
    for weight in (1e-3, 1e-90):
        assert has_category(rows, y, np.full(12, weight)) == [False]
    assert has_category(rows * 12, y * 12) == [True]
    assert has_category(rows, y, np.full(12, 12)) == [True]


@pytest.mark.parametrize("factor", [None, 3, 0.1])
def test_summaries_select_the_same_columns(factor):
    rows, y = rows_with_missing()
    weights = None if factor is None else np.full(200, factor)
    summary = TableSummary().update(read_columns(rows), y, weights)
    expected = TableEncoder(handle_missing="auto").fit(rows, y, weights)
    found = summary.fit_encoder(TableEncoder(handle_missing="auto"))
    assert expected.has_missing_category_.tolist() == found.has_missing_category_.tolist()
    assert expected.has_missing_category_[[0, 2, 3]].tolist() == [True, False, False]


@pytest.mark.parametrize("weights", [None, [1, 2, 0, 4, 1, 3, 1, 1], [0.1, 0.3, 0.7, 1.1, 0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("exact", [False, True])
def test_summaries_of_batches_give_the_same_encoder(weights, exact):
    rows = [[*row, None, 3] for row in X]
    expected = TableEncoder(handle_missing="category").fit(rows, Y, weights)
    summary = TableSummary(exact=exact)
    for part in (slice(0, 3), slice(3, 8)):
        own = None if weights is None else weights[part]
        summary.merge(TableSummary(exact=exact).update(read_columns(rows[part]), Y[part], own))
    for one in (summary, TableSummary.from_bytes(summary.to_bytes())):
        found = one.fit_encoder(TableEncoder(handle_missing="category"))
        np.testing.assert_array_equal(found.has_missing_category_, expected.has_missing_category_)
        np.testing.assert_array_equal(found.n_states_, expected.n_states_)
        np.testing.assert_array_equal(found.encode(rows), expected.encode(rows))
    assert expected.has_missing_category_.tolist() == [True, True, False, False]


def test_too_many_categories_with_that_of_missing_values():
    """Of codes from 0 to 65,534, the last one would be that of missing values."""
    strings = [f"{i}" for i in range(65_535)]
    y = np.arange(65_535) % 2
    assert TableEncoder(handle_missing="category", discrete_features=True).fit([[s] for s in strings], y)
    rows = [[s] for s in [*strings, None]]
    with pytest.raises(ValueError, match="X column 0 has 65536 categories, more than 65535"):
        TableEncoder(handle_missing="category", discrete_features=True).fit(rows, np.append(y, 0))
    summary = TableSummary().update(read_columns(rows), np.append(y, 0))
    with pytest.raises(ValueError, match="X column 0 has 65536 categories, more than 65535"):
        summary.fit_encoder(TableEncoder(handle_missing="category", discrete_features=True))
    found = TableEncoder(handle_missing="category", discrete_features=True).fit(rows[1:], np.append(y, 0)[1:])
    assert found.encode([[None], ["1"], ["new"]]).tolist() == [[65_534, 0, 65_535]]


def test_255_categories_need_two_bytes():
    rows = [[f"{i:03}"] for i in range(255)] + [[None]]
    found = TableEncoder(handle_missing="category").fit(rows, np.arange(256) % 2).encode(rows)
    assert found.dtype == np.uint16
    assert found.tolist() == [list(range(256))]


def test_folds_keep_the_category():
    """Cut points of a fold are fitted to its training rows, and the last code stays that of missing values."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 200))
    y = (x[0] > 0).astype(np.intp) + (x[0] > 1) + 3 * (x[1] > 0)
    x[0, rng.random(200) < 0.2] = np.nan
    encoder = TableEncoder(handle_missing="category", discrete_features=False).fit(x.T, y)
    raw = RawNumbers(tuple(x), np.arange(2), MDLPDiscretizer())
    data = EncodedData(
        encoder.encode(x.T), encoder.n_states_, y, 6, raw=raw, has_missing_category=encoder.has_missing_category_
    )
    assert encoder.has_missing_category_.tolist() == [True, False]
    held_out = np.arange(200) < 180  # 20 rows have other cut points
    rest, held = data.split(held_out)
    own = MDLPDiscretizer().fit(x.T[180:], y[180:])
    expected = own.transform(x.T).T.astype(int)
    assert own.n_states_[0] != encoder.n_states_[0] - 1
    expected[0, np.isnan(x[0])] = own.n_states_[0]
    assert rest.n_states.tolist() == held.n_states.tolist() == [own.n_states_[0] + 1, own.n_states_[1]]
    np.testing.assert_array_equal(rest.codes, expected[:, 180:])
    np.testing.assert_array_equal(held.codes, expected[:, :180])
    for part in (rest, held):
        assert part.has_missing_category.tolist() == [True, False]


def test_selected_columns_keep_their_category():
    data = EncodedData.from_codes([[0, 1, 2]], [0], n_states=[2, 2, 3], has_missing_category=[True, False, True])
    assert data.take_features([2, 1]).has_missing_category.tolist() == [True, False]
    assert data.take([0]).has_missing_category.tolist() == [True, False, True]
    assert EncodedData.from_codes([[0, 1]], [0]).take_features([0]).has_missing_category is None
    with pytest.raises(ValueError, match="has_missing_category must be True, False, or a mask"):
        EncodedData.from_codes([[0, 1]], [0], has_missing_category=[1, 0])
    with pytest.raises(ValueError, match="has_missing_category is True for feature 1, which has a single value"):
        EncodedData.from_codes([[1, 0]], [0], has_missing_category=True)
