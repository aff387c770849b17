"""Tables of a few bits: the format, integer predictions, what is summed out and drawn, training and files."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elimination as naive_elimination
from oracles import networks as naive
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError

import tanlearn
from tanlearn import (
    BayesNetClassifier,
    CandidateSets,
    EncodedData,
    FixedPoint,
    GradientTraining,
    Hybrid,
    IntegerTables,
    JointNLL,
    NaiveBayesClassifier,
    StochasticGradient,
    Structure,
    TableEncoder,
    TANClassifier,
    round_tables,
    size_path,
)
from tanlearn.baselines import ChowLiu
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.log_joint import log_joint
from tanlearn.models.sampling import sample
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.few_bits import best_split, read_bits
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
QUICK = {"n_epochs": 4, "training": GradientTraining(batch_size=30), "random_state": 0}
formats = st.builds(lambda n, integer: FixedPoint(integer, n - integer), st.integers(1, 16), st.integers(-4, 20))


def random_tables(parents, n_states, n_classes, fixed_point, seed=0):
    """Return a structure and rounded tables, normalised before."""
    rng = np.random.default_rng(seed)
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.array(n_states), n_classes)
    return structure, IntegerTables(layout, rng.integers(0, 2**fixed_point.n_bits, layout.n_cells), fixed_point)


@given(formats, st.lists(st.floats(-1e6, 0), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rounding_is_to_the_nearest_number(fixed_point, theta):
    magnitudes = fixed_point.encode(theta)
    assert (magnitudes < 2**fixed_point.n_bits).all()
    found = fixed_point.round(theta)
    np.testing.assert_array_equal(found, fixed_point.decode(magnitudes))
    inside = np.array(theta) >= -fixed_point.largest
    assert (np.abs(found - theta)[inside] <= fixed_point.step / 2).all()
    assert (found[~inside] == -fixed_point.largest).all()
    if fixed_point.n_bits <= 6:
        expected = [naive.round_to_bits(t, fixed_point.integer_bits, fixed_point.fraction_bits) for t in theta]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fraction_bits", [-3, 0, 2])
def test_halves_are_rounded_to_the_even_neighbour(fraction_bits):
    fixed_point = FixedPoint(4 - fraction_bits, fraction_bits)
    halves = -np.array([0.5, 1.5, 2.5, 3.5, 4.5, 14.5, 15.5]) * fixed_point.step
    assert fixed_point.encode(halves).tolist() == [0, 2, 2, 4, 4, 14, 15]


@given(formats, st.integers(0, 2**32 - 1), st.integers(1, 40))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_magnitudes_take_no_more_bits_than_they_have(fixed_point, seed, n):
    magnitudes = np.random.default_rng(seed).integers(0, 2**fixed_point.n_bits, n)
    packed = fixed_point.pack(magnitudes)
    assert packed.nbytes == -(-n * fixed_point.n_bits // 8)
    np.testing.assert_array_equal(fixed_point.unpack(packed, n), magnitudes)
    digits = "".join(format(m, f"0{fixed_point.n_bits}b") for m in magnitudes.tolist())
    assert packed.tolist() == [int(digits[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(digits), 8)]


@pytest.mark.parametrize(("n_bits", "dtype"), [(1, np.uint8), (8, np.uint8), (9, np.uint16), (16, np.uint16)])
def test_magnitudes_take_one_byte_up_to_8_bits(n_bits, dtype):
    fixed_point = FixedPoint(n_bits, 0)
    magnitudes = fixed_point.encode([0.0, 1.0 - 2.0**n_bits])
    assert magnitudes.dtype == dtype
    unpacked = fixed_point.unpack(fixed_point.pack(magnitudes), 2)
    assert unpacked.dtype == dtype
    assert unpacked.tolist() == magnitudes.tolist() == [0, 2**n_bits - 1]


def test_formats_hold_numbers_of_python():
    fixed_point = FixedPoint(np.int8(7), np.int8(9))
    assert (type(fixed_point.integer_bits), type(fixed_point.fraction_bits)) == (int, int)
    assert fixed_point == FixedPoint(7, 9)
    assert fixed_point.largest == 128 - 2**-9


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        ((0, 0), "must be from 1 to 16"),
        ((9, 8), "got 9 and 8"),
        ((2.0, 1), r"integer_bits must be an integer, got 2\.0"),
        ((True, 1), "integer_bits must be an integer, got True"),
        ((70, -65), "fraction_bits from -60 to 60"),
    ],
)
def test_formats_that_are_none_are_refused(bits, message):
    with pytest.raises(ValueError, match=message):
        FixedPoint(*bits)


@pytest.mark.parametrize("bits", [0, 17, 2.5, "4", (3,), (1, 2, 3), True, [[1], 2]])
def test_bits_that_are_none_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        TANClassifier(bits=bits, **QUICK).fit(X_IRIS, Y_IRIS)


def test_tables_check_their_magnitudes():
    layout = TableLayout.of_parents(np.array([[-1, -1]]), np.array([2]), 2)
    for magnitudes, message in (
        ([1, 2, 3], "must be 6 integers, one per CPT entry"),
        ([0.5] * 6, "must be 6 integers"),
        ([4] * 6, r"2 bits must be from 0 to 3, got 4\.\.4"),
        ([-1] * 6, r"got -1\.\.-1"),
    ):
        with pytest.raises(ValueError, match=message):
            IntegerTables(layout, magnitudes, FixedPoint(1, 1))


@pytest.mark.parametrize("bits", [(3, 5), (1, 0), (6, -4), (4, 12)])
def test_predictions_of_complete_rows_are_sums_of_integers(bits):
    structure, tables = random_tables([-1, 0, 1, 1], [2, 3, 2, 4], 3, FixedPoint(*bits))
    X = np.stack([np.random.default_rng(1).integers(0, k, 50) for k in (2, 3, 2, 4)], axis=1)
    scores = log_joint(tables, structure, X.T.astype(np.uint8))
    arguments = range(4), structure.parents, [2, 3, 2, 4], 3, range(4)
    sums = naive.log_joint(X.tolist(), tables.magnitudes.tolist(), *arguments)
    np.testing.assert_array_equal(scores, -np.array(sums) * tables.fixed_point.step)
    assert tables.sum_dtype is np.int32


def test_many_wide_numbers_do_not_overflow():
    n_features = 2**15
    layout = TableLayout.of_parents(np.full((n_features, 2), -1), np.ones(n_features, int), 2)
    tables = IntegerTables(layout, np.full(layout.n_cells, 2**16 - 1), FixedPoint(16, 0))
    scores = log_joint(tables, Structure.naive_bayes(n_features), np.zeros((n_features, 1), np.uint8))
    assert scores.tolist() == [[-(2**15 + 1) * (2**16 - 1.0)] * 2]


def test_a_tie_goes_to_the_first_class():
    model = NaiveBayesClassifier().fit([["a"], ["b"]] * 4, ["yes", "no"] * 4)
    blunt = model.with_bits((1, 0))
    cells = blunt.tables_.cells.copy()
    assert len(set(cells[:2])) == 1
    structure, tables = blunt.structure_, IntegerTables(blunt.tables_.layout, np.zeros(6, int), FixedPoint(1, 0))
    blunt.model_ = BayesNet(structure, tables)
    assert blunt.predict([["a"], ["b"]]).tolist() == ["no", "no"]


@pytest.mark.parametrize("parents", [[-1, -1, -1], [-1, 0, 1], [[-1, -1], [0, -1], [0, 1]]])
def test_missing_features_are_summed_out_of_tables_that_are_not_normalised(parents):
    n_states, n_classes = [2, 3, 2], 2
    structure, tables = random_tables(parents, n_states, n_classes, FixedPoint(2, 2))
    rng = np.random.default_rng(1)
    X = np.where(rng.random((30, 3)) < 0.5, -1, np.stack([rng.integers(0, k, 30) for k in n_states], axis=1))
    X[0] = -1
    codes = np.where(X < 0, 255, X).T.astype(np.uint8)
    expected = [naive_elimination.log_joint(x, tables.cells, structure.parents, n_states, n_classes) for x in X]
    np.testing.assert_allclose(log_joint(tables, structure, codes), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("y", [None, 1])
def test_rows_are_drawn_from_the_joint_distribution_of_rounded_tables(y):
    n_states, n_classes, n = [2, 3], 2, 20_000
    structure, tables = random_tables([-1, 0], n_states, n_classes, FixedPoint(1, 2), seed=3)
    given_classes = None if y is None else np.full(n, y)
    codes, classes = sample(tables, structure, n, np.random.default_rng(0), y=given_classes)
    joint = {}
    for x in naive_elimination.completions([-1, -1], n_states):
        scores = naive_elimination.log_joint(x, tables.cells, structure.parents, n_states, n_classes)
        joint |= {(*x, c): np.exp(scores[c]) for c in range(n_classes) if y in (None, c)}
    total = sum(joint.values())
    for (a, b, c), weight in joint.items():
        share = ((codes[0] == a) & (codes[1] == b) & (classes == c)).mean()
        assert share == pytest.approx(weight / total, abs=4.5 * 0.5 / np.sqrt(n))


def test_probabilities_of_rows_add_up_to_one():
    X = [[a, b] for a in "xyz" for b in "uv"]
    model = BayesNetClassifier(structure=ChowLiu()).fit(X * 2, ["no", "yes", "no", "no", "yes", "yes"] * 2)
    small = model.with_bits((1, 1))
    assert np.exp(small.predict_joint_log_proba(X)).sum() != pytest.approx(1, abs=0.01)
    assert np.exp(small.score_samples(X)).sum() == pytest.approx(1)
    assert np.exp(small.score_samples([[None, "u"], [None, "v"]])).sum() == pytest.approx(1)
    np.testing.assert_allclose(small.predict_proba(X).sum(axis=1), 1)


def test_complete_rows_are_explained_and_others_refused():
    model = BayesNetClassifier(structure=ChowLiu()).fit(X_IRIS, Y_IRIS).with_bits((3, 2))
    np.testing.assert_array_equal(model.explain(X_IRIS).sum(axis=1), model.predict_joint_log_proba(X_IRIS))
    X = X_IRIS[:3].copy()
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="row 1 lacks a feature, but CPTs that are not normalized"):
        model.explain(X)
    completed, _ = model.complete(X)
    assert np.isfinite(completed.astype(float)).all()


def test_a_class_prior_is_rounded_too():
    model = NaiveBayesClassifier().fit(X_IRIS, Y_IRIS).with_bits((3, 2))
    shifted = model.with_class_prior([0.8, 0.1, 0.1])
    assert isinstance(shifted.tables_, IntegerTables)
    assert shifted.tables_.log_prior.tolist() == [-0.25, -2.25, -2.25]
    assert model.tables_.log_prior.tolist() == [-1.0] * 3


def test_a_class_that_the_format_cannot_rule_out_is_refused():
    model = NaiveBayesClassifier().fit(X_IRIS, Y_IRIS)
    for prior in ([1, 0, 0], [0.999, 0.0005, 0.0005]):
        with pytest.raises(
            ValueError, match=r"class 1 \(numbered from 0 to 2\) has probability .*Use more integer bits"
        ):
            model.with_bits((3, -1)).with_class_prior(prior)
    rest = np.exp(-6.5)  # the format's lowest number is -6, and this is rounded to it
    assert model.with_bits((3, -1)).with_class_prior([1 - 2 * rest, rest, rest]).tables_.log_prior.tolist() == [
        0,
        -6,
        -6,
    ]
    with pytest.raises(
        ValueError,
        match=r"represent the logarithm of 0, but class 1 \(numbered from 0 to 2\) has probability 0\. Give it a",
    ):
        NaiveBayesClassifier(class_prior=[1, 0, 0]).fit(X_IRIS, Y_IRIS).with_bits((3, 1))
    with pytest.raises(ValueError, match="has probability 0"):
        TANClassifier(bits=(1, 1), class_prior=[1, 0, 0], **QUICK).fit(X_IRIS, Y_IRIS)
    with pytest.raises(ValueError, match="theta must contain log probabilities, got nan"):
        FixedPoint(3, 1).encode([np.nan])


def test_a_rounded_classifier_keeps_no_counts():
    model = NaiveBayesClassifier().partial_fit(X_IRIS, Y_IRIS, classes=[0, 1, 2])
    rounded = model.with_bits((3, 1))
    with pytest.raises(ValueError, match="counts"):
        rounded.partial_fit(X_IRIS, Y_IRIS)
    model.partial_fit(X_IRIS, Y_IRIS)


def test_with_bits_rounds_a_copy_and_chooses_the_split_with_the_fewest_errors():
    model = BayesNetClassifier(structure=ChowLiu()).fit(X_IRIS, Y_IRIS)
    before = model.tables_
    small = model.with_bits(3, X_IRIS, Y_IRIS)
    assert model.tables_ is before
    assert small.size_bits_ == 3 * before.layout.n_cells
    assert model.size_bits_ == 32 * before.layout.n_cells
    assert small.n_operations_ == model.n_operations_ == 12
    rates = [model.with_bits((integer, 3 - integer)).score(X_IRIS, Y_IRIS) for integer in range(1, 7)]
    assert small.score(X_IRIS, Y_IRIS) == max(rates)
    assert small.tables_.fixed_point.integer_bits == 1 + int(np.argmax(rates))
    with pytest.raises(ValueError, match=r"bits=3 is the total of .* bits\. Pass X and y .* bits=\(1, 2\)"):
        model.with_bits(3)
    with pytest.raises(ValueError, match="got None"):
        model.with_bits(None)
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().with_bits((3, 2))


def test_training_for_one_bit_beats_rounding():
    X, y = load_digits(return_X_y=True)
    X, y, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]
    # The same loss for both: without one, that of floats would be chosen. Seeds 0 to 5 gain 28 to 41 points.
    options = {"candidates": "order-free", "loss": Hybrid(), "n_epochs": 15, "random_state": 0}
    rounded = TANClassifier(**options).fit(X, y).with_bits((4, -3)).score(X_test, y_test)
    trained = TANClassifier(bits=(4, -3), **options).fit(X, y)
    assert trained.tables_.fixed_point == FixedPoint(4, -3)
    assert trained.score(X_test, y_test) > rounded + 0.2


@pytest.mark.filterwarnings("ignore:bits=.* rounds all initial")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_split_is_searched(n_jobs):
    model = TANClassifier(bits=2, n_jobs=n_jobs, **QUICK).fit(X_IRIS, Y_IRIS)
    trained = [TANClassifier(bits=(integer, 2 - integer), **QUICK).fit(X_IRIS, Y_IRIS) for integer in range(1, 7)]
    best = min(trained, key=lambda m: (1 - m.score(X_IRIS, Y_IRIS), m.history_[-1].loss))
    assert model.tables_.fixed_point == best.tables_.fixed_point
    np.testing.assert_array_equal(model.tables_.packed, best.tables_.packed)


def test_of_equally_good_splits_the_one_with_the_lowest_last_loss_is_kept():
    data = EncodedData.from_codes([[0], [1]], [0, 1])
    sets, settings = CandidateSets.from_lists([[]]), TrainingSettings(n_epochs=2, batch_size=2)
    outcome = train(data, sets, Hybrid(), settings, np.random.default_rng(0))

    def with_losses(*losses):
        reports = zip(outcome.history, losses, strict=True)
        return replace(outcome, history=[replace(report, loss=loss) for report, loss in reports])

    outcomes = [with_losses(1.0, 3.0), with_losses(3.0, 1.0), with_losses(0.0, 2.0)]
    assert best_split(outcomes, data) is outcomes[1]
    with pytest.raises(FloatingPointError, match="diverged"):
        best_split([*outcomes, FloatingPointError("diverged")], data)


def test_the_split_is_chosen_on_held_out_rows(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "tanlearn.training.few_bits.error_rate", lambda structure, tables, rows: asked.append(rows) or 0.0
    )
    model = TANClassifier(bits=2, calibrate=False, **QUICK).set_params(training__validation_fraction=0.2)
    model.fit(X_IRIS, Y_IRIS)
    assert {rows.n_samples for rows in asked} == {30}


@pytest.mark.parametrize("fraction", [None, 0.2])
def test_the_split_chosen_is_told_with_all_that_it_was_chosen_from(capsys, fraction):
    training = GradientTraining(batch_size=30, validation_fraction=fraction)
    options = {**QUICK, "training": training, "calibrate": False}
    model = TANClassifier(bits=2, verbose=1, **options).fit(X_IRIS, Y_IRIS)
    lines = capsys.readouterr().out.splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith("2 bits: ")]
    integer, fraction_bits = model.tables_.bits
    where = "training" if fraction is None else "validation"
    assert lines[start] == (
        f"2 bits: {integer} integer and {fraction_bits} fraction bits chosen, "
        f"which have the lowest error on {where} rows (ties are broken by the loss):"
    )
    splits = lines[start + 1 : start + 7]
    assert [line.split(":")[0] for line in splits] == [f"  ({k}, {2 - k})" for k in range(1, 7)]
    assert [line for line in splits if line.endswith(", chosen")] == [splits[integer - 1]]
    assert f", loss {model.history_[-1].loss:.4g}, chosen" in splits[integer - 1]
    if fraction is None:
        assert f"error {1 - model.score(X_IRIS, Y_IRIS):.2%}" in splits[integer - 1]
    TANClassifier(bits=(1, 1), verbose=1, **options).fit(X_IRIS, Y_IRIS)  # nothing was chosen
    assert " bits chosen" not in capsys.readouterr().out


def test_a_fixed_structure_tells_its_split_once(capsys):
    learner = StochasticGradient(bits=2, n_epochs=2, verbose=1)
    model = NaiveBayesClassifier(parameters=learner, random_state=0).fit(X_IRIS, Y_IRIS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith(f"2 bits: {model.tables_.bits[0]} integer and {model.tables_.bits[1]} fraction bits")


@pytest.mark.parametrize("n", [200, 1600])
def test_a_price_is_in_nats_a_cell_and_row(n):
    """A copy of a feature, known by an edge, saves log 2 nats a row and costs 4 more cells, however many rows."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, n)
    data = EncodedData.from_codes(np.stack([x, x], axis=1), rng.integers(0, 2, n))
    edges = []
    for price in (0.8 * np.log(2) / 4, 1.2 * np.log(2) / 4):
        model = TANClassifier(
            candidates=[[], [0]],
            loss=JointNLL(),
            size_weight=price,
            training=GradientTraining(structure_learning_rate=0.1, batch_size=100),
            n_epochs=100,
            calibrate=False,
            random_state=0,
        )
        edges.append(model.fit_encoded(data).structure_.parent.tolist())
    assert edges == [[-1, 0], [-1, -1]]


def test_other_losses_types_gaps_and_fixed_structures_train_for_few_bits():
    X = X_IRIS.copy()
    X[::5, 1] = np.nan
    options = {"bits": (3, 1), **QUICK}
    for model, table in (
        (TANClassifier(**options).set_params(training__dtype="float64"), X_IRIS),
        (TANClassifier(candidates="order-free", **options), X),
        (NaiveBayesClassifier(parameters=StochasticGradient(bits=(3, 1), n_epochs=5), random_state=0), X_IRIS),
        (BayesNetClassifier(structure=ChowLiu(), parameters=StochasticGradient(bits=4, n_epochs=2)), X),
    ):
        fitted = clone(model).fit(table, Y_IRIS)
        assert isinstance(fitted.tables_, IntegerTables)
        assert fitted.tables_.fixed_point.n_bits == 4
        assert fitted.score(table, Y_IRIS) > 0.85


def test_a_checkpoint_is_of_one_split(tmp_path):
    path = tmp_path / "training"
    with pytest.raises(ValueError, match=r"bits=4 trains 6 splits.*bits=\(3, 1\)"):
        TANClassifier(bits=4, **QUICK).set_params(training__checkpoint=path).fit(X_IRIS, Y_IRIS)
    model = TANClassifier(bits=(3, 1), **QUICK).set_params(training__validation_fraction=0.2)
    whole = clone(model).fit(X_IRIS, Y_IRIS)
    model.set_params(training__checkpoint=path)
    clone(model).set_params(training__callback=lambda report: report.epoch == 2).fit(X_IRIS, Y_IRIS)
    resumed = clone(model).fit(X_IRIS, Y_IRIS)
    assert isinstance(resumed.tables_, IntegerTables)
    np.testing.assert_array_equal(resumed.tables_.packed, whole.tables_.packed)
    with pytest.raises(ValueError, match="the settings, the seed"):
        model.set_params(bits=(2, 2)).fit(X_IRIS, Y_IRIS)


def test_files_and_pickles_keep_integers(tmp_path):
    model = TANClassifier(bits=(2, 1), **QUICK).fit(X_IRIS, Y_IRIS)
    model.save(tmp_path / "model")
    model.predict(X_IRIS)  # unpacks
    for again in (tanlearn.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert isinstance(again.tables_, IntegerTables)
        assert again.tables_.fixed_point == FixedPoint(2, 1)
        np.testing.assert_array_equal(again.tables_.packed, model.tables_.packed)
        np.testing.assert_array_equal(again.predict_proba(X_IRIS), model.predict_proba(X_IRIS))
    assert "magnitudes" not in pickle.loads(pickle.dumps(model.tables_)).__dict__


def test_models_of_one_structure_report_sizes():
    model = NaiveBayesClassifier().fit([["a", "u"], ["b", "v"], ["b", "w"]], [0, 1, 1])
    assert (model.n_parameters_, model.size_bits_, model.n_operations_) == (7, 32 * (2 + 4 + 6), 4)


def test_a_price_leads_from_a_tree_to_naive_bayes():
    X, y = load_digits(return_X_y=True)
    weights = (0.0, 1e-4, 1e-3, 1e-1)
    pixels = TableEncoder(discrete_features=False)
    model = TANClassifier(loss=Hybrid(), encoder=pixels, n_epochs=20, random_state=0)
    sizes = [clone(model).set_params(size_weight=weight).fit(X[:900], y[:900]).size_bits_ for weight in weights]
    assert sorted(sizes, reverse=True) == sizes
    n_states = clone(model).fit(X[:900], y[:900]).encoder_.n_states_
    assert sizes[-1] == 32 * 10 * (1 + n_states.sum()) < sizes[1] < sizes[0]


def test_read_bits_knows_its_formats():
    assert read_bits(None) == [None]
    assert [found.integer_bits for found in read_bits(np.int64(3))] == [1, 2, 3, 4, 5, 6]
    assert read_bits([3, -1]) == [FixedPoint(3, -1)]


def test_rounding_keeps_the_layout():
    data = EncodedData.from_codes([[0, 1], [1, 0]], [0, 1])
    tables = NaiveBayesClassifier().fit_encoded(data).tables_
    small = round_tables(tables, FixedPoint(4, 4))
    np.testing.assert_allclose(small.cells, tables.cells, atol=2**-5)
    assert small.layout is tables.layout
    assert not small.is_normalized
    assert tables.is_normalized


def test_a_warm_start_goes_on_with_another_price():
    X, y = load_digits(return_X_y=True)
    model = TANClassifier(warm_start=True, n_epochs=20, random_state=0).fit(X[:900], y[:900])
    cold = clone(model).set_params(warm_start=False).fit(X[:900], y[:900])
    np.testing.assert_array_equal(model.tables_.cells, cold.tables_.cells)
    size = model.size_bits_
    model.set_params(size_weight=0.3, n_epochs=5).fit(X[:900], y[:900])
    assert model.size_bits_ < size
    assert model.score(X[900:], y[900:]) > 0.85
    colder = clone(model).set_params(warm_start=False).fit(X[:900], y[:900])
    assert model.history_[0].loss < colder.history_[0].loss
    for table, classes, options in (
        (X[:900, :50], y[:900], {}),
        (X[:900, ::-1], y[:900], {}),
        (X[:900], y[:900], {"random_state": 1}),
        (X[:900], y[:900] + 1, {}),
    ):
        with pytest.raises(ValueError, match="warm_start requires the same"):
            copy.copy(model).set_params(**options).fit(table, classes)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_path_of_prices_is_a_chain_of_warm_starts(n_jobs):
    base = TANClassifier(n_epochs=8)
    models = size_path(base, X_IRIS, Y_IRIS, [0, 0.1, 5], random_states=[0, 1], n_jobs=n_jobs)
    assert [(model.size_weight, model.random_state) for model in models] == [
        (w, s) for s in (0, 1) for w in (0, 0.1, 5)
    ]
    assert (base.n_epochs, base.warm_start) == (8, False)
    step = clone(base).set_params(warm_start=True, random_state=1).fit(X_IRIS, Y_IRIS)
    for model, weight in zip(models[3:], (0, 0.1, 5), strict=True):
        if weight:
            step.set_params(size_weight=weight, n_epochs=2).fit(X_IRIS, Y_IRIS)
        np.testing.assert_array_equal(model.tables_.cells, step.tables_.cells)
        assert not model.warm_start
        assert not hasattr(model, "_start")
    for weights, seeds, message in (
        ([], [0], "must each contain at least one number"),
        ([0], [], "must each contain at least one number"),
        ([0], [None], "random_states must contain one integer per path"),
    ):
        with pytest.raises(ValueError, match=message):
            size_path(base, X_IRIS, Y_IRIS, weights, random_states=seeds)
    with pytest.raises(ValueError, match="a checkpoint can store only one training"):
        size_path(clone(base).set_params(training__checkpoint="path"), X_IRIS, Y_IRIS, [0])
