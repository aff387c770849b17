"""Kernels of averaged n-dependence estimators against loops over estimators."""

import itertools

import numpy as np
import pytest
from oracles import ande as naive

from tanlearn import EncodedData
from tanlearn.baselines.n_dependence import NDependenceEnsemble
from tanlearn.baselines.row_counts import RowCounts
from tanlearn.kernels import ande
from tanlearn.kernels._lanes import LANES

N_STATES, N_CLASSES = [2, 3, 2, 2], 2


def random_rows(seed, n, missing=0.0, n_classes=N_CLASSES):
    """Rows with the class in the last column; -1 is missing."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return np.column_stack([X, rng.integers(0, n_classes, n)])


def ensemble(XY, weight=None, n=2, n_classes=N_CLASSES, **options):
    data = EncodedData.from_codes(XY[:, :-1], XY[:, -1], n_states=N_STATES, n_classes=n_classes, sample_weight=weight)
    settings = {"m": 0.7, "min_count": 1, "subsumption": False, **options}
    return NDependenceEnsemble(
        RowCounts(data.n_states, n_classes).update(data), n, np.arange(len(N_STATES)), **settings
    )


def codes_of(X):
    return np.where(X == -1, 255, X).astype(np.uint8).T.copy()


def training_rows(model):
    """Return the distinct rows with -1 for missing, the class last, and their weights."""
    counts = model.counts
    X = np.where(counts.codes == 255, -1, counts.codes.astype(int)).T
    return np.column_stack([X, counts.y]), counts.weights


@pytest.mark.parametrize("min_count", [0, 7])
def test_rows_are_parted_by_feature_after_feature(min_count):
    model, query = ensemble(random_rows(0, 60, 0.2)), random_rows(1, 8, 0.2)[:, :-1]
    training, codes = model._training, codes_of(query)
    parts, _ = model._scratch(2, len(query))
    XY, weight = training_rows(model)
    for level, i in enumerate((1, 3)):
        ande.part_rows(training.rows.codes[i], codes[i], 255, training.weight, min_count, level, parts)
        assert (parts.of_value == -1).all()
        own, questions = naive.parted(XY, (1, 3)[: level + 1]), naive.parted(query, (1, 3)[: level + 1])
        expected = {
            tuple(rows): own.get(values, [])
            for values, rows in questions.items()
            if sum(weight[r] for r in own.get(values, [])) >= min_count
        }
        found = {}
        for k in range(parts.number[level + 1]):
            rows = parts.query[level + 1, slice(*parts.first_query[level + 1, k : k + 2])]
            found[tuple(rows.tolist())] = parts.rows[level + 1, slice(*parts.first[level + 1, k : k + 2])].tolist()
        assert found == expected
    assert min_count == 0 or 0 < len(expected) < len(questions)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_part_is_counted_and_cleared(missing):
    model = ensemble(random_rows(2, 40, missing), np.random.default_rng(3).uniform(0.5, 2, 40))
    training = model._training
    _, space = model._scratch(0, 1)
    XY, weight = training_rows(model)
    for rows in (np.arange(0), np.array([0, 2]), np.arange(len(XY))):
        ande.count_part(rows, training, space.counts, space.observed_weight)
        table, own, own_weight = space.counts.reshape(-1, N_CLASSES), XY[rows], weight[rows]
        for i, c in itertools.product(range(4), range(N_CLASSES)):
            for v in range(N_STATES[i]):
                expected = naive.weight_of(own, own_weight, {i: v, 4: c})
                assert table[training.start[i] + v, c] == pytest.approx(expected, abs=1e-12)
            known = naive.weight_of(own, own_weight, {i: -1, 4: c})
            assert space.observed_weight[training.observed_row[i], c] == pytest.approx(known, abs=1e-12)
        ande.clear_part(rows, training, N_CLASSES, space.counts)
        assert not space.counts.any()


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_products_are_mantissas_and_exponents(chunk):
    """Ten factors of 1e-30 in float32, two of another size, and classes beyond one register."""
    width, children = 2 * LANES, np.arange(10)
    probability = np.full(12 * width, 1e-30 if chunk == 1 else 1e-5, np.float32)
    probability[width : 2 * width] = 0.75
    values = np.array([0, 1, 1, *range(2, 9)], np.int32)
    mantissas, exponents = np.empty(width, np.float32), np.empty(width, np.float32)
    ande.multiply(values, children, chunk, probability, mantissas, exponents)
    expected = 8 * np.log(np.float64(probability[0])) + 2 * np.log(0.75)
    np.testing.assert_allclose(np.log(mantissas) + np.log(2) * exponents.astype(float), expected, rtol=1e-6)
    assert (mantissas >= 0.5).all()
    assert (mantissas < 1).all()


def test_powers_of_two_end_in_zero():
    for e, power in ((0, 1.0), (-1, 0.5), (-1022, 2.0**-1022), (-1023, 0.0), (-5000, 0.0)):
        assert ande.power_of_two(e) == power


def test_sums_take_terms_of_any_size_in_any_order():
    """Beside 2^-5000, 2^-5001 counts and 2^-9000 does not."""
    for order in itertools.permutations([-5000, -5001, -9000]):
        total, top = np.zeros(1), np.full(1, -(2**30), np.int32)
        for e in order:
            ande.add_scaled(np.array([3.0]), np.array([e], np.float32), total, top)
        assert total[0] * 2.0 ** (top[0] + 5000) == 4.5
        others, summed = np.array([[1.0]]), np.array([2])
        ande.merge_sums(
            others, np.array([[-4999]], np.int32), np.array([5]), total[np.newaxis], top[np.newaxis], summed
        )
        assert total[0] * 2.0 ** (top[0] + 5000) == 6.5
        assert summed[0] == 7


@pytest.mark.parametrize("prior", [None, [0.9, 0.1]])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "min_count"), [(0, 1), (1, 1), (2, 0), (2, 3), (3, 1), (4, 1)])
def test_sum_of_joints_equals_oracle(n, min_count, missing, prior):
    prior = None if prior is None else np.array(prior)
    model = ensemble(random_rows(4, 20, missing), n=n, min_count=min_count, prior=prior)
    query = random_rows(5, 5, missing)[:, :-1]
    XY, weight = training_rows(model)
    sets = list(itertools.combinations(range(4), n))
    codes = codes_of(query)
    rows = ande.Rows(codes, model._values(codes))
    total, exponents = np.zeros((5, N_CLASSES)), np.full((5, N_CLASSES), -(2**30), np.int32)
    n_summed = np.zeros(5, np.intp)
    estimators = np.array(sets, np.intp).reshape(len(sets), n)
    ande.sum_joint(estimators, model._training, rows, *model._scratch(n, 5), total, exponents, n_summed)
    for t, sample in enumerate(query):
        own = [
            s
            for s in sets
            if all(sample[i] != -1 for i in s)
            and (n == 0 or naive.weight_of(XY, weight, {i: sample[i] for i in s}) >= min_count)
        ]
        assert n_summed[t] == len(own)
        for c in range(N_CLASSES):
            joint = sum(naive.n_dependence(XY, weight, N_STATES, N_CLASSES, 0.7, s, sample, c, prior) for s in own)
            assert total[t, c] * 2.0 ** exponents[t, c] == pytest.approx(joint, rel=2e-6)


def test_many_rows_at_once_fill_all_probabilities():
    """More rows than values, and more classes than a register has lanes."""
    n_classes = LANES + 2
    model = ensemble(random_rows(6, 60, n_classes=n_classes), n_classes=n_classes, n=1)
    query = np.repeat(random_rows(7, 3)[:, :-1], 9, axis=0)
    codes = codes_of(query)
    total, exponents = np.zeros((27, n_classes)), np.full((27, n_classes), -(2**30), np.int32)
    rows = ande.Rows(codes, model._values(codes))
    scratch, n_summed = model._scratch(1, 27), np.zeros(27, np.intp)
    ande.sum_joint(np.arange(4)[:, np.newaxis], model._training, rows, *scratch, total, exponents, n_summed)
    XY, weight = training_rows(model)
    for t in (0, 9, 18):
        expected = np.array(naive.ande(XY, weight, N_STATES, n_classes, 1, 0.7, 1, query[t])) * n_summed[t]
        np.testing.assert_allclose(total[t] * 2.0 ** exponents[t], expected, rtol=2e-6)


@pytest.mark.parametrize("least", [1, 3])
def test_implied_values_are_found_and_dropped(least):
    """Column 1 follows from column 0, columns 2 and 3 from each other; column 4 misses something."""
    X = np.array(
        [[0, 0, 0, 1, 0], [1, 0, 1, 0, 0], [2, 1, 0, 1, -1], [2, 1, 1, 0, 0], [0, 0, 1, 0, 1], [2, 1, 1, -1, 1]]
    )
    weight, start, n_values = np.array([1.0, 1, 1, 2, 1, 0.5]), np.array([0, 3, 5, 7, 9]), 11
    values = np.where(X == -1, n_values, X + start).astype(np.int32)
    implied = np.full((n_values, 5), n_values, np.int32)
    ande.find_implied(values, weight, least, np.empty(n_values), implied)
    query = np.array(list(itertools.product(*([-1, 0, 1, 2][:k] for k in (4, 3, 3, 3, 3)))))
    query_values = np.where(query == -1, n_values, query + start).astype(np.int32)
    is_dropped = np.ones(query.shape, bool)
    ande.drop_implied(query_values, implied, is_dropped)
    expected = np.array([naive.without_implied(X, weight, sample, least) for sample in query])
    np.testing.assert_array_equal(np.where(is_dropped, -1, query), expected)
    assert (expected != query).any(axis=0).tolist() == [False, True, True, least == 1, least == 1]
