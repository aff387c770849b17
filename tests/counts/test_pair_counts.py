"""PairCounts: exact whatever the partition."""

import io
import itertools
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import networks as naive

import tanlearn
from tanlearn import EncodedData, NaiveBayesClassifier, PairCounts
from tanlearn.counts.added_noise import AddedNoise
from tanlearn.encoding.stored_values import read_arrays, read_format

N_STATES = [2, 3, 4]


def random_data(seed, n=60, weight=None):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in N_STATES], axis=1)
    weights = {None: None, "integer": rng.integers(0, 4, n), "real": rng.uniform(0, 2, n)}[weight]
    return EncodedData.from_codes(X, rng.integers(0, 3, n), n_states=N_STATES, n_classes=3, sample_weight=weights)


def state(data, **options):
    return PairCounts(data.n_states, data.n_classes).update(data, **options)


def naive_pair(data, i, j):
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    start = naive.offsets([i], [[j]], N_STATES, 3)[0]
    counts = naive.count_cells(X, data.y, data.weights, [i], [[j]], N_STATES, 3)
    return counts[start:].reshape(N_STATES[i], N_STATES[j], 3)


@pytest.mark.parametrize("weight", [None, "integer"])
def test_counts_equal_oracle(weight):
    data = random_data(0, weight=weight)
    counted = state(data)
    assert counted.dtype == np.int64
    for i in range(3):
        for j in range(3):
            if i != j:
                np.testing.assert_array_equal(counted.pair(i, j), naive_pair(data, i, j))
    present = data.codes[1] != 255
    for c in range(3):
        assert counted.class_counts[c] == data.weights[data.y == c].sum()
        rows = present & (data.y == c) & (data.codes[1] == 2)
        assert counted.feature(1)[2, c] == data.weights[rows].sum()


COUNT_BY_ITSELF, COUNT_IN_WORDS = 0, 10**9


def counted_at(cost, data, monkeypatch, block=2**16, **options):
    """Return the state when a sample is taken to cost so much: what is cheaper is counted so."""
    monkeypatch.setattr("tanlearn.counts.packing.WORDS_A_SAMPLE", cost)
    monkeypatch.setattr("tanlearn.counts.pair_counts._BLOCK", block)
    monkeypatch.setattr("tanlearn.counts.packing._WORTH_A_THREAD", 1)
    return state(data, **options)


@given(
    n_states=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    n_classes=st.integers(1, 4),
    n=st.integers(1, 300),
    n_jobs=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_counting_in_words_equals_counting_by_itself(n_states, n_classes, n, n_jobs, seed):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in n_states], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, n_classes, n), n_states=n_states, n_classes=n_classes)
    with pytest.MonkeyPatch.context() as patch:
        by_itself = counted_at(COUNT_BY_ITSELF, data, patch)
        for cost in (COUNT_IN_WORDS, 2):  # at 2 some features are counted in words and some are not
            assert counted_at(cost, data, patch, n_jobs=n_jobs).to_bytes() == by_itself.to_bytes()
            assert counted_at(cost, data, patch, block=97, n_jobs=n_jobs) == by_itself


@pytest.mark.parametrize("sizes", [(127, 129), (128, 1), (129, 129), (256, 257)])
def test_classes_that_just_fill_their_words_are_counted_in_words(sizes, monkeypatch):
    """Two words, 128 rows, are taken at a time."""
    y = np.repeat([0, 1], sizes)
    X = np.random.default_rng(0).integers(0, 2, (len(y), 3))
    data = EncodedData.from_codes(X, y, n_states=[2, 2, 2])
    counted = counted_at(COUNT_IN_WORDS, data, monkeypatch)
    assert counted == counted_at(COUNT_BY_ITSELF, data, monkeypatch)
    for c, size in enumerate(sizes):
        assert counted.pair(2, 1)[:, :, c].sum() == size


@pytest.mark.parametrize("cost", [COUNT_BY_ITSELF, COUNT_IN_WORDS])
def test_both_ways_of_counting_equal_oracle(cost, monkeypatch):
    data = random_data(7, n=150)
    counted = counted_at(cost, data, monkeypatch)
    for i, j in itertools.permutations(range(3), 2):
        np.testing.assert_array_equal(counted.pair(i, j), naive_pair(data, i, j))


@pytest.mark.parametrize("weight", ["integer", "real"])
def test_weighted_rows_are_counted_by_themselves(weight, monkeypatch):
    data = random_data(8, weight=weight)
    counted = counted_at(COUNT_IN_WORDS, data, monkeypatch)
    np.testing.assert_allclose(counted.pair(2, 1), naive_pair(data, 2, 1), rtol=1e-13)


@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 3))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_any_partition_merges_to_the_same_bytes(cuts, seed):
    data = random_data(seed, weight="integer")
    edges = [0, *sorted(cuts), 60]
    merged = PairCounts(N_STATES, 3)
    for first, last in reversed(list(itertools.pairwise(edges))):
        if last > first:
            merged.merge(state(data.take(np.arange(first, last))))
    assert merged.to_bytes() == state(data).to_bytes()


@given(st.sets(st.integers(0, 59)), st.integers(0, 99), st.sampled_from([None, "integer"]))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_total_minus_any_fold_is_the_rest(fold, seed, weight):
    data = random_data(seed, weight=weight)
    inside = np.isin(np.arange(60), list(fold))
    assert state(data).subtract(state(data.take(inside))).to_bytes() == state(data.take(~inside)).to_bytes()


@given(st.lists(st.integers(0, 4), min_size=60, max_size=60), st.integers(0, 99))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_weights_are_repetitions(weights, seed):
    data = random_data(seed)
    weighted = replace(data, sample_weight=np.array(weights))
    assert state(weighted).to_bytes() == state(data.take(np.repeat(np.arange(60), weights))).to_bytes()


def test_subtracting_rows_that_are_not_there_changes_nothing():
    small, large = state(random_data(1, n=5)), state(random_data(1, n=60))
    before = small.to_bytes()
    with pytest.raises(ValueError, match="negative counts"):
        small.subtract(large)
    assert small.to_bytes() == before


def test_real_weights_turn_counts_into_floats():
    data = random_data(2, weight="real")
    counted = state(random_data(2)).merge(state(data))
    assert counted.dtype == np.float64
    assert counted.class_counts.sum() == pytest.approx(60 + data.weights.sum())
    assert state(data).subtract(state(data)).class_counts.sum() == 0


def test_threads_change_nothing(monkeypatch):
    data = random_data(3)
    monkeypatch.setattr("tanlearn.counts.packing._WORTH_A_THREAD", 1)
    assert state(data, n_jobs=2) == state(data, n_jobs=1)
    one, two = (state(data).conditional_mutual_information(n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_information_matrix_equals_oracle_with_entropies_on_the_diagonal():
    data = random_data(4)
    information = state(data).conditional_mutual_information()
    np.testing.assert_array_equal(information, information.T)
    assert information[2, 0] == pytest.approx(naive.conditional_mutual_information(naive_pair(data, 2, 0)))
    p = state(data).feature(0) / state(data).feature(0).sum()
    assert information[0, 0] == pytest.approx(-(p * np.log(p / p.sum(axis=0))).sum())


@pytest.mark.parametrize("weight", [None, "integer", "real"])
def test_information_about_the_class_equals_oracle(weight):
    counted = state(random_data(4, weight=weight))
    expected = [naive.conditional_mutual_information(counted.feature(i)[:, :, np.newaxis]) for i in range(3)]
    np.testing.assert_allclose(counted.mutual_information(), expected, rtol=1e-9)
    assert PairCounts(N_STATES, 3).mutual_information().tolist() == [0, 0, 0]


def test_feature_that_is_the_class_tells_its_entropy_and_a_constant_one_nothing():
    y = np.array([0, 1, 1, 2, 2, 2, 2, 2])
    data = EncodedData.from_codes(np.stack([2 - y, np.zeros(8, int)], axis=1), y)
    p = np.array([1, 2, 5]) / 8
    np.testing.assert_allclose(state(data).mutual_information(), [-(p * np.log(p)).sum(), 0], rtol=1e-14)


def test_information_does_not_depend_on_the_unit_of_the_weights():
    data = random_data(4, weight="real")
    small = EncodedData(data.codes, data.n_states, data.y, 3, data.weights * 1e-6)
    one, other = (state(batch).conditional_mutual_information() for batch in (data, small))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_bytes_round_trip_and_refuse_damage():
    counted = state(random_data(5, weight="real"))
    data = counted.to_bytes()
    assert PairCounts.from_bytes(data) == counted
    for broken in (b"", b"PK\x03\x04", data[:-30], data[: len(data) // 2], b"x" * 100):
        with pytest.raises(ValueError, match="bytes are not a valid PairCounts"):
            PairCounts.from_bytes(broken)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_is_found_or_changes_nothing(seed):
    counted = PairCounts([2, 3], 2).update(EncodedData.from_codes([[0, 2], [1, 1], [0, 0]], [0, 1, 1]))
    sound, rng = counted.to_bytes(), np.random.default_rng(seed)
    found = 0
    for _ in range(200):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        if rng.random() < 0.2:
            del damaged[rng.integers(len(sound)) :]
        try:
            state = PairCounts.from_bytes(bytes(damaged))
        except ValueError:
            found += 1
        else:
            assert (state, state.n_classes, state.dtype) == (counted, 2, np.int64)
    assert found > 100


FIELDS = {
    "tanlearn_counts": 1,
    "n_states": np.array([2, 3]),
    "n_classes": 2,
    "cells": np.zeros(12, np.int64),
    "pairs": np.zeros(12, np.int64),
}


def archive(save=np.savez, **fields):
    buffer = io.BytesIO()
    save(buffer, **fields)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tanlearn_counts": -3}, "format is not a positive integer"),
        ({"tanlearn_counts": 1.0}, "format is not a positive integer"),
        ({"n_states": np.array([2.7, 3.2])}, r"must be integers of at least 1, got n_states \[2\.7, 3\.2\]"),
        ({"n_states": np.array([2, 0])}, r"got n_states \[2, 0\]"),
        ({"n_states": np.array([2**62, 2**62])}, "but the limit is"),
        ({"n_states": np.array([2**20, 2**20])}, "do not fit"),
        ({"n_classes": 2.5}, r"got n_classes 2\.5"),
        ({"n_classes": np.array([2])}, r"got n_classes \[2\]"),
        ({"n_classes": 3}, "do not fit"),
        ({"pairs": np.zeros((2, 6), np.int64)}, "do not fit"),
        ({"cells": np.full(12, -1)}, "negative or not finite"),
        ({"cells": np.zeros(12), "pairs": np.full(12, np.nan)}, "negative or not finite"),
        ({"cells": np.zeros(12)}, "neither int64 nor float64, but float64 and int64"),
        ({"cells": np.zeros(12, np.int32), "pairs": np.zeros(12, np.int32)}, "neither int64 nor float64"),
    ],
)
def test_sound_archive_of_something_else_is_refused(change, words):
    assert PairCounts.from_bytes(archive(**FIELDS)) == PairCounts([2, 3], 2)
    with pytest.raises(ValueError, match=f"PairCounts: .*{words}"):
        PairCounts.from_bytes(archive(**FIELDS | change))


def test_archive_that_zipfile_cannot_or_should_not_open_is_refused():
    with pytest.raises(ValueError, match=r"PairCounts: .*compressed"):
        PairCounts.from_bytes(archive(np.savez_compressed, **FIELDS))
    sound = archive(**FIELDS)
    entry = sound.index(b"PK\x01\x02")
    for place, value, error in ((entry + 6, 99, NotImplementedError), (entry + 8, 1, RuntimeError)):
        damaged = bytearray(sound)
        damaged[place] = value  # the version that is needed to open the member; the flag that it is encrypted
        with pytest.raises(ValueError, match="bytes are not a valid PairCounts") as caught:
            PairCounts.from_bytes(bytes(damaged))
        assert isinstance(caught.value.__cause__, error)


def test_header_that_asks_for_more_memory_than_there_is_refused():
    members = {name: archive(np.save, arr=field) for name, field in FIELDS.items()}
    header = b"(12,), }" + b" " * 18
    assert header in members["cells"]
    members["cells"] = members["cells"].replace(header, b"(1000000000000000000,), }".ljust(len(header)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    with pytest.raises(ValueError, match="bytes are not a valid PairCounts"):
        PairCounts.from_bytes(buffer.getvalue())


def test_bytes_of_a_newer_format_are_refused():
    with pytest.raises(ValueError, match="format 3, but this version reads formats up to 2: upgrade"):
        PairCounts.from_bytes(archive(**FIELDS | {"tanlearn_counts": 3}))


def test_bytes_contain_the_records_of_noise():
    counted = state(random_data(5))
    assert read_format(read_arrays(counted.to_bytes())["tanlearn_counts"]) == 1  # earlier versions read exact counts
    counted.noise = AddedNoise("discrete Laplace", 2.5, 1.0, 0.0), AddedNoise("discrete Gaussian", 1.0, 0.5, 1e-6)
    data = counted.to_bytes()
    assert read_format(read_arrays(data)["tanlearn_counts"]) == 2
    restored = PairCounts.from_bytes(data)
    assert restored.noise == counted.noise
    assert restored == counted
    with pytest.raises(ValueError, match="counts with noise for privacy cannot be updated"):
        restored.update(random_data(5))


NOISE = {"noise_mechanisms": np.array(["discrete Laplace"]), "noise_amounts": np.array([[2.0, 1.0, 0.0]])}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise_mechanisms": np.array([], "<U3")}, "no mechanism"),
        ({"noise_mechanisms": np.array([1.0])}, "mechanism of noise must be a string"),
        ({"noise_amounts": np.ones((2, 3))}, r"noise_amounts must have type float64 and shape \(1, 3\)"),
        ({"noise_amounts": np.array([[2.0, np.nan, 0.0]])}, "noise_amounts contains nan or inf"),
        ({"noise_amounts": np.array([[2.0, -np.inf, 0.0]])}, "finite numbers"),
    ],
)
def test_invalid_records_of_noise_are_refused(change, words):
    noisy = FIELDS | {"tanlearn_counts": 2} | NOISE
    assert PairCounts.from_bytes(archive(**noisy)).noise == (AddedNoise("discrete Laplace", 2.0, 1.0, 0.0),)
    with pytest.raises(ValueError, match=f"PairCounts: .*{words}"):
        PairCounts.from_bytes(archive(**noisy | change))
    with pytest.raises(ValueError, match="PairCounts: 'noise_mechanisms'"):
        PairCounts.from_bytes(archive(**FIELDS | {"tanlearn_counts": 2}))


def test_other_tables_are_refused():
    with pytest.raises(ValueError, match="n_classes is 2 here and 3 there"):
        PairCounts([2, 3, 4], 2).subtract(PairCounts([2, 3, 4], 3))
    with pytest.raises(ValueError, match="different features, got 1 twice"):
        PairCounts([2, 3], 2).pair(1, 1)
    with pytest.raises(ValueError, match="at least one feature"):
        PairCounts([], 2)
    with pytest.raises(ValueError, match=r"must be integers of at least 1, got n_states \[2\.7\]"):
        PairCounts([2.7], 2)
    with pytest.raises(ValueError, match=r"got n_classes 2\.5"):
        PairCounts([2], 2.5)


@pytest.mark.parametrize("feature", [-1, 3])
def test_feature_that_is_not_there_is_named(feature):
    counted = state(random_data(0))
    for look_up in (counted.feature, lambda i: counted.pair(i, 0), lambda i: counted.pair(0, i)):
        with pytest.raises(IndexError, match=f"no feature {feature}: features are numbered from 0 to 2"):
            look_up(feature)


def test_tables_refuse_a_feature_that_is_not_there_and_can_be_looped_over():
    model = NaiveBayesClassifier().fit([["a", "x"], ["b", "y"], ["b", "z"]], [0, 1, 1])
    for feature in (-1, 2):
        with pytest.raises(IndexError, match=f"feature must be from 0 to 1, got {feature}"):
            model.tables_[feature]
        with pytest.raises(IndexError, match=f"from 0 to 1, got {feature}"):
            model.tables_.probabilities(feature)
    assert [table.shape for table in model.tables_] == [(2, 2), (3, 2)]


def test_states_of_other_values_or_pairs_differ():
    assert PairCounts([2, 3], 2) != PairCounts([3, 2], 2)  # the number of counts is the same, and all are 0
    counted, only_pairs = state(random_data(0)), state(random_data(0))
    only_pairs.pair(1, 0)[0, 0, 0] += 1
    assert counted != only_pairs


def test_more_weight_than_there_is_cannot_be_subtracted():
    data = EncodedData.from_codes([[0], [1]], [0, 1], sample_weight=[1.5, 1.0])
    heavy = EncodedData.from_codes([[0], [1]], [0, 1], sample_weight=[5.5, 1.0])
    counts, more = (PairCounts(data.n_states, 2).update(one) for one in (data, heavy))
    before = counts.cells.copy()
    with pytest.raises(ValueError, match="subtract would leave negative counts"):
        counts.subtract(more)
    assert (counts.cells == before).all()


@pytest.mark.parametrize("is_first", [True, False])
def test_counts_with_noise_are_not_subtracted(is_first):
    data = EncodedData.from_codes([[0, 1], [1, 0]], [0, 1])
    counts, part = (PairCounts(data.n_states, 2).update(data) for _ in range(2))
    (counts if is_first else part).noise = (AddedNoise("discrete Laplace", 2.5, 1.0, 0.0),)
    before = counts.cells.copy()
    with pytest.raises(ValueError, match="counts with noise cannot be subtracted"):
        counts.subtract(part)
    assert (counts.cells == before).all()


def test_restored_counts_share_nothing_with_what_they_were_restored_from():
    data = EncodedData.from_codes([[0], [1]], [0, 1])
    counts = PairCounts(data.n_states, 2).update(data)
    restored = PairCounts.from_state(counts.state(), counts.n_states, counts.n_classes)
    restored.merge(counts)
    assert counts.class_counts.tolist() == [1, 1]
    assert restored.class_counts.tolist() == [2, 2]


def test_restore_is_deprecated():
    data = EncodedData.from_codes([[0], [1]], [0, 1])
    counts = PairCounts(data.n_states, 2).update(data)
    with pytest.warns(FutureWarning, match=r"will be removed in version 0\.4: use PairCounts\.from_state"):
        assert PairCounts.restore(counts.n_states, 2, counts.cells, counts.pairs) == counts


def test_the_former_name_is_deprecated():
    with pytest.warns(FutureWarning, match=r"CountState was renamed to PairCounts\. .* will be removed in"):
        assert tanlearn.CountState is PairCounts
