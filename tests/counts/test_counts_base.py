"""Laws of all kinds of counts: sums are exact in any order, and counts of other rows are refused."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.forests import learn

from tanlearn import EncodedData, PairCounts, Structure
from tanlearn.baselines.row_counts import RowCounts
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.counts_base import Counts, check_counts, sum_dtype
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.files.counts import describe_counts, restore_counts
from tanlearn.files.values import Reader, Writer
from tanlearn.forest.forest_counts import ForestCounts
from tanlearn.structures.table_layout import TableLayout

N = 60
TREE = Structure([-1, 0, 1])


def rows(n_states=3, n_classes=2, seed=0, weights="integer"):
    """Return rows with missing values; all values and classes occur."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, n_states, (N, 3))
    codes[:n_states] = np.arange(n_states)[:, np.newaxis]
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, N - n_classes))
    sample_weight = {None: None, "integer": rng.integers(0, 3, N), "real": rng.random(N)}[weights]
    return EncodedData.from_codes(codes, y, sample_weight=sample_weight)


def families(data, structure=TREE):
    return FamilyCounts(TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))


def contexts(data, structure=TREE):
    return ContextCounts(structure.parents, data.n_states, data.n_classes)


def forest(data, n_members=2):
    return ForestCounts(learn(data, weights=None, n_members=n_members))


KINDS = {
    "pairs": lambda data: PairCounts(data.n_states, data.n_classes),
    "families": families,
    "contexts": contexts,
    "forest": forest,
    "rows": lambda data: RowCounts(data.n_states, data.n_classes),
}
EMPTY = {name: new(rows()) for name, new in KINDS.items()}
every_kind = pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)


def count(empty, data, part=slice(None), **options):
    return empty.empty().update(data.take(np.arange(N)[part]), **options)


def test_every_kind_is_tested():
    assert {type(empty) for empty in EMPTY.values()} == set(Counts.__subclasses__())


@every_kind
@pytest.mark.parametrize("weights", [None, "integer"])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 99))
def test_sums_do_not_depend_on_partition_or_order(empty, weights, seed):
    data = rows(weights=weights)
    part = np.random.default_rng(seed).integers(0, 3, N)
    one, two, three = (count(empty, data, part == number) for number in range(3))
    whole = count(empty, data)
    assert whole.dtype == np.int64
    assert empty.empty().merge(two).merge(one) == empty.empty().merge(one).merge(two)
    assert deepcopy(one).merge(deepcopy(two).merge(three)) == deepcopy(one).merge(two).merge(three) == whole
    assert empty.empty().update(data.take(part != 1)).update(data.take(part == 1)) == whole
    assert count(empty, data, part == 1) == two, "counts that are added stay as they are"
    assert count(empty, data, n_jobs=2) == whole


@every_kind
def test_real_weights_convert_the_sum_to_float(empty):
    data = rows(weights="real")
    total = count(empty, rows(), slice(30)).merge(count(empty, data, slice(30, None)))
    assert total.dtype == np.float64
    expected = np.bincount(rows().y[:30], rows().weights[:30], 2) + np.bincount(data.y[30:], data.weights[30:], 2)
    np.testing.assert_allclose(total.class_counts, expected, rtol=1e-12)


@every_kind
def test_empty_counts_are_neutral(empty):
    whole = count(empty, rows())
    assert whole.empty().merge(whole) == deepcopy(whole).merge(whole.empty()) == whole
    assert whole.empty() == empty != whole
    assert not empty.class_counts.any()


@every_kind
def test_class_counts_and_schema_are_those_of_the_rows(empty):
    data = rows()
    whole = count(empty, data)
    np.testing.assert_array_equal(whole.class_counts, np.bincount(data.y, data.weights))
    np.testing.assert_array_equal(whole.n_states, data.n_states)
    assert (whole.n_classes, whole.n_features) == (2, 3)
    weight = data.weights.sum()
    assert repr(whole) == f"{type(whole).__name__}(n_features=3, n_classes=2, weight={weight}, dtype=int64)"


@every_kind
def test_equal_counts_have_the_same_kind_schema_and_arrays(empty):
    whole = count(empty, rows())
    assert whole == count(empty, rows())
    assert whole != count(empty, rows(), slice(N - 1))
    assert whole != whole.state()
    assert all(whole != count(other, rows()) for other in EMPTY.values() if other is not empty)
    with pytest.raises(TypeError, match="unhashable"):
        hash(whole)


@every_kind
@pytest.mark.parametrize("weights", ["integer", "real", "none of the rows"])
def test_state_restores_equal_counts(empty, weights):
    whole = empty if weights == "none of the rows" else count(empty, rows(weights=weights))
    again = type(whole).from_state(deepcopy(whole.state()), whole.n_states, whole.n_classes)
    assert again == whole
    assert again.dtype == whole.dtype
    assert again.merge(whole) == deepcopy(whole).merge(whole)


@every_kind
def test_incomplete_and_forged_states_are_refused(empty):
    whole = count(empty, rows())
    for name, value in whole.state().items():
        without = {key: own for key, own in whole.state().items() if key != name}
        with pytest.raises(ValueError, match="expected an object with the keys"):
            type(whole).from_state(without, whole.n_states, whole.n_classes)
        if isinstance(value, np.ndarray):
            for forged in (value[:-1], value.astype(np.float32), -value.astype(value.dtype)):
                if not np.array_equal(forged, value) or forged.dtype != value.dtype:
                    with pytest.raises(ValueError, match=r"\w"):
                        type(whole).from_state({**without, name: forged}, whole.n_states, whole.n_classes)


@every_kind
def test_files_contain_the_kinds_that_have_a_name(empty):
    writer, whole = Writer(), count(empty, rows())
    if empty.kind is None:
        with pytest.raises(
            TypeError, match=f"but not {type(empty).__name__}. Save the model that was fitted to these counts"
        ):
            describe_counts(writer, whole, "counts")
    else:
        found = describe_counts(writer, whole, "counts")
        assert found["kind"] == ("CountState" if type(empty) is PairCounts else type(empty).__name__)
        reader = Reader(writer.arrays)
        assert restore_counts(reader, found["kind"], found["counts"], whole.n_states, whole.n_classes) == whole
        reader.finish()


@every_kind
@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (rows(n_states=4), r"n_states\[0\] is 3 here and 4 there"),
        (rows(n_classes=3), "n_classes is 2 here and 3 there"),
        (EncodedData.from_codes([[0], [2]], [0, 1]), r"n_states has shape \(3,\) here and \(1,\) there"),
    ],
    ids=["values", "classes", "features"],
)
def test_rows_of_another_schema_are_refused(empty, other, difference):
    whole = count(empty, rows())
    message = f"counts can be added only if features, classes and contexts are the same, but {difference}. Encode"
    with pytest.raises(ValueError, match=message):
        whole.update(other)
    if other.n_features == 3:
        new = next(KINDS[name] for name, own in EMPTY.items() if own is empty)
        with pytest.raises(ValueError, match=message):
            whole.merge(new(other))
    assert whole == count(empty, rows())


@every_kind
def test_counts_of_another_kind_are_refused(empty):
    whole, other = count(empty, rows()), next(own for own in EMPTY.values() if own is not empty)
    with pytest.raises(TypeError, match=f"counts of type {type(whole).__name__} and {type(other).__name__}"):
        whole.merge(other)
    assert whole == count(empty, rows())


@pytest.mark.parametrize(
    ("new", "differing", "difference"),
    [
        (families, Structure([-1, -1, 1]), r"parents\[1, 0\] is 0 here and -1 there"),
        (contexts, Structure([-1, -1, 1]), r"parents\[1, 0\] is 0 here and -1 there"),
        (forest, 3, "n_networks is 2 here and 3 there"),
    ],
    ids=["families", "contexts", "forest"],
)
def test_counts_in_other_contexts_are_refused(new, differing, difference):
    whole, other = new(rows()).update(rows()), new(rows(), differing)
    with pytest.raises(ValueError, match=difference):
        whole.merge(other)
    assert whole != other
    assert whole == new(rows()).update(rows())


@every_kind
def test_integer_weights_that_overflow_are_refused(empty):
    data = rows()
    heavy = EncodedData(data.codes[:, :2], data.n_states, data.y[:2], 2, np.full(2, 2**61))
    counts = empty.empty().update(heavy)
    for add in (lambda: counts.update(heavy), lambda: counts.merge(empty.empty().update(heavy))):
        with pytest.raises(ValueError, match=f"sum of integer weights must be at most {2**63 - 1}, got {2**63}"):
            add()
    assert counts == empty.empty().update(heavy)


def test_sum_of_integers_and_real_numbers_is_real():
    largest = np.array([2**63 - 1])
    assert sum_dtype(largest, np.zeros(1, np.int64)) == np.int64
    assert sum_dtype(largest, np.ones(1)) == np.float64


@pytest.mark.parametrize("counts", [None, np.ones(2, np.int32), np.ones(3), np.array([1, -1]), np.array([1, np.nan])])
def test_stored_counts_are_nonnegative_numbers(counts):
    with pytest.raises(ValueError, match=r"^cells "):
        check_counts("cells", counts, (2,))
