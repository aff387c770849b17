"""``device="cuda"`` of the estimators: predictions are those of the CPU, and what cannot be done there is refused."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from oracles import networks as naive
from sklearn.base import clone

from tanlearn import (
    BayesNetClassifier,
    ConjugateGradient,
    EncodedData,
    ExpectationMaximization,
    GradientTraining,
    MaximumLikelihood,
    NaiveBayesClassifier,
    StochasticGradient,
    Structure,
    TableEncoder,
    TANClassifier,
    load,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, SimulatedAnnealing
from tanlearn.models import log_joint, upward_pass
from tanlearn.models.tables import Tables
from tanlearn.structures.table_layout import TableLayout

EPS = np.finfo(np.float64).eps
CODES = {"encoder": TableEncoder(discrete_features=True)}
TWO_PARENTS = Structure([[-1, -1], [0, -1], [1, 0], [2, 1]])
ESTIMATORS = {
    "naive Bayes": NaiveBayesClassifier(**CODES),
    "tree": BayesNetClassifier(structure=ChowLiu(), **CODES),
    "two parents": BayesNetClassifier(structure=TWO_PARENTS, **CODES),
    "AODE": AODEClassifier(**CODES),
    "gradient": TANClassifier(n_epochs=2, training=GradientTraining(batch_size=50), random_state=0, **CODES),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
_FITTED = {}


def random_table(n=200, n_states=(2, 3, 4, 2), n_classes=3, missing=0.0, seed=0):
    """Return rows of codes, of which features and classes depend on each other, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = np.stack([(y + rng.integers(0, 1 + k // 2, n)) % k for k in n_states], axis=1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def fitted(name):
    """Return one of the estimators, fitted once on the CPU."""
    if name not in _FITTED:
        _FITTED[name] = clone(ESTIMATORS[name]).fit(*random_table())
    return clone_fitted(_FITTED[name])


def clone_fitted(model):
    """Return a copy whose parameters can be set without harm."""
    twin = clone(model)
    vars(twin).update({key: value for key, value in vars(model).items() if key not in model.get_params(deep=False)})
    return twin


def both(model, X):
    """Return log p(y, x) of the CPU and of the device."""
    expected = model.set_params(device="cpu").predict_joint_log_proba(X)
    return expected, model.set_params(device="cuda").predict_joint_log_proba(X)


def assert_close(found, expected, n_terms):
    """Compare within so many roundings of numbers of that size."""
    np.testing.assert_allclose(found, expected, rtol=n_terms * EPS, atol=n_terms * EPS)


@pytest.mark.parametrize("n", [1, 200])
@every_estimator
def test_complete_rows_get_the_scores_of_the_cpu(backend, name, n):
    expected, found = both(fitted(name), random_table(seed=1)[0][:n])
    if name == "AODE":
        assert_close(found, expected, 100)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 200])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "two parents"])
def test_rows_with_gaps_get_the_scores_of_the_cpu(backend, name, n):
    X = random_table(missing=0.4, seed=2)[0]
    X[0] = [np.nan, 1, np.nan, 0]
    expected, found = both(fitted(name), X[:n])
    assert_close(found, expected, 100)
    if name != "AODE":
        complete = ~np.isnan(X[:n]).any(axis=1)
        np.testing.assert_array_equal(found[complete], expected[complete])


@every_estimator
def test_blocks_of_rows_change_nothing(backend, monkeypatch, name):
    model, X = fitted(name).set_params(device="cuda"), random_table(missing=0.2, seed=3)[0]
    X = X[~np.isnan(X).any(axis=1)] if name == "two parents" else X
    whole = model.predict_joint_log_proba(X)
    monkeypatch.setattr(upward_pass, "_DEVICE_BYTES", 2000)
    assert len(upward_pass.device_blocks(len(X), 28)) > 1
    np.testing.assert_array_equal(model.predict_joint_log_proba(X), whole)


def test_blocks_hold_every_row_once():
    blocks = upward_pass.device_blocks(2**28, 300)
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    assert (blocks[0].start, blocks[-1].stop) == (0, 2**28)
    assert all(0 < 300 * (block.stop - block.start) <= 2**28 for block in blocks)
    assert upward_pass.device_blocks(2, 2**30) == [slice(0, 1), slice(1, 2)]


@pytest.mark.parametrize("bits", [(3, 1), (4, 7), (0, 16)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rounded_tables_are_added_up_as_integers(backend, bits, missing):
    X = random_table(missing=missing, seed=4)[0]
    model = fitted("tree").with_bits(bits)
    expected, found = both(model, X)
    complete = ~np.isnan(X).any(axis=1)
    np.testing.assert_array_equal(found[complete], expected[complete])
    assert_close(found, expected, 100)
    assert_close(model.score_samples(X), model.set_params(device="cpu").score_samples(X), 100)
    layout = model.tables_.layout
    arguments = layout.child, layout.parents, layout.n_states, layout.n_classes, range(4)
    sums = naive.log_joint(X[complete].astype(int), model.tables_.magnitudes.astype(int), *arguments)
    np.testing.assert_array_equal(found[complete], -sums * model.tables_.fixed_point.step)


@pytest.mark.parametrize("estimator", [BayesNetClassifier(structure=ChowLiu(), **CODES), AODEClassifier(**CODES)])
def test_more_classes_than_lanes_and_codes_of_two_bytes(backend, estimator):
    """300 values of a feature, 40 classes."""
    X, y = random_table(n=600, n_states=(300, 3), n_classes=40)
    X[:, 0] = np.arange(600) % 300
    model = clone(estimator).fit(X, y)
    assert model.encoder_.n_states_.tolist() == [300, 3]
    X[::3, 0] = X[1::4, 1] = np.nan
    expected, found = both(model, X[:100])
    assert_close(found, expected, 100)


@pytest.mark.parametrize("missing", [0.1, 0.6])
def test_extreme_tables_of_a_tree_with_a_hub(backend, missing):
    """Products that underflow turn into logarithms where they do so on the CPU."""
    rng = np.random.default_rng(1)
    structure = Structure([-1, *(rng.integers(0, i) for i in range(1, 40)), *[3] * 40])
    data = EncodedData.from_codes(rng.integers(0, 4, (60, 80)), rng.integers(0, 3, 60))
    tables = MaximumLikelihood(alpha=1e-60).fit(structure, data, rng)
    codes = np.where(rng.random(data.codes.shape) < missing, 255, data.codes).astype(np.uint8)
    expected, found = (log_joint.log_joint(tables, structure, codes, device=device) for device in ("cpu", "cuda"))
    assert_close(found, expected, 80)
    assert expected.min() < -2000


def test_a_hub_whose_values_trail_by_far(backend):
    """Nothing but the hub is missing; 900 children, some for one of its values and some for the other."""
    n_for, n_against = 500, 400
    structure = Structure([-1] + [0] * (n_for + n_against))
    layout = TableLayout.of_parents(structure.parents, np.full(901, 2), 2)
    for low in (1e-40, 1e-320):
        agreeing = np.repeat(np.log([1.0, low, low, 1.0]), 2)  # [child][hub][class]
        tables = Tables(layout, np.concatenate([np.log(np.full(6, 0.5)), *[agreeing] * (n_for + n_against)]))
        codes = np.repeat([255, 0, 1], [1, n_for, n_against]).astype(np.uint8)[:, np.newaxis]
        expected = 2 * np.log(0.5) + np.logaddexp(n_against * np.log(low), n_for * np.log(low))
        scores = log_joint.log_joint(tables, structure, codes, device="cuda")
        np.testing.assert_allclose(scores, [[expected, expected]], rtol=1e-10)


def test_a_product_of_many_messages_does_not_underflow(backend):
    """Thirty missing features, each with an observed child of probability 1e-40."""
    structure = Structure(np.stack([np.full(30, -1), np.arange(0, 60, 2)], axis=1).ravel())
    layout = TableLayout.of_parents(structure.parents, np.full(60, 2), 2)
    root, child = np.log(np.full(4, 0.5)), np.log(np.repeat([1e-40, 1.0], 4))
    tables = Tables(layout, np.concatenate([np.log([0.5, 0.5]), *[root, child] * 30]))
    codes = np.tile(np.array([255, 0], np.uint8), 30)[:, np.newaxis]
    scores = log_joint.log_joint(tables, structure, codes, device="cuda")
    assert_close(scores, [[np.log(0.5) + 30 * np.log(1e-40)] * 2], 60)


def test_two_parents_and_gaps_are_refused(backend):
    model = fitted("two parents").set_params(device="cuda")
    rule = (
        r"row 1 lacks feature 2 .* device='cuda' can marginalize .* in trees only, and feature 2 has several .*\. Use "
        r"device='cpu'"
    )
    with pytest.raises(ValueError, match=rule):
        model.predict([[0, 0, 0, 0], [0, 0, np.nan, 0]])
    assert model.set_params(device="cpu").predict([[0, 0, np.nan, 0]]).shape == (1,)


def test_more_than_two_parents_are_refused(backend):
    structure = Structure([[-1] * 3, [0, -1, -1], [1, 0, -1], [2, 1, 0]])
    model, (X, y) = BayesNetClassifier(structure=structure, **CODES), random_table()
    rule = r"device='cuda' supports at most 2 augmenting parents .* feature 3 has 3\. Use device='cpu'"
    with pytest.raises(ValueError, match=rule):
        clone(model).set_params(device="cuda").fit(X, y)
    for parameters in (ConjugateGradient(max_iter=1), StochasticGradient(n_epochs=1)):
        with pytest.raises(ValueError, match=rule):
            clone(model).set_params(device="cuda", parameters=parameters).fit(X, y)
    with pytest.raises(ValueError, match=rule):
        model.fit(X, y).set_params(device="cuda").predict(X)


@every_estimator
def test_classes_and_probabilities_follow(backend, name):
    model, X = fitted(name), random_table(seed=5)[0]
    expected = model.predict(X), model.predict_proba(X), model.score_samples(X)
    model.set_params(device="cuda")
    np.testing.assert_array_equal(model.predict(X), expected[0])
    assert_close(model.predict_proba(X), expected[1], 100)
    assert_close(model.score_samples(X), expected[2], 100)


def test_learners_are_told_where_to_work(backend, monkeypatch):
    X, y = random_table()
    data = EncodedData.from_codes(X.astype(int), y)
    seen = []
    monkeypatch.setattr(NaiveBayesClassifier, "_learn", lambda self, *given: seen.extend(given[:2]))
    NaiveBayesClassifier(device="cuda").fit(X, y)
    NaiveBayesClassifier(device="cuda").fit_encoded(data, data)
    NaiveBayesClassifier().fit_encoded(replace(data, device="cuda"))
    assert [part if part is None else part.device for part in seen] == ["cuda", None, "cuda", "cuda", "cpu", None]
    assert data.device == "cpu"


@pytest.mark.parametrize("name", ["naive Bayes", "tree", "two parents", "AODE"])
def test_counting_on_the_device_makes_the_same_model(backend, name):
    X, y = random_table(missing=0.1)
    expected = clone(ESTIMATORS[name]).fit(X, y).predict_joint_log_proba(X[:20])
    model = clone(ESTIMATORS[name]).set_params(device="cuda")
    whole, chunks = clone(model).fit(X, y), clone(model)
    for rows in (slice(None, 100), slice(100, None)):
        chunks.partial_fit(X[rows], y[rows], classes=np.unique(y))
    for found in (whole, chunks):
        np.testing.assert_array_equal(found.set_params(device="cpu").predict_joint_log_proba(X[:20]), expected)


def test_learners_without_kernels_are_refused_before_anything_is_learnt(backend):
    for learners in ({"parameters": ExpectationMaximization()}, {"structure": SimulatedAnnealing()}):
        model = BayesNetClassifier(device="cuda", **learners)
        with pytest.raises(ValueError, match=r"supports only device='cpu', got device='cuda'"):
            model.fit(*random_table())
        assert not hasattr(model, "tables_")
    with pytest.raises(ValueError, match="supports only device='cpu'"):
        NaiveBayesClassifier(parameters=ExpectationMaximization(), device="cuda").fit(*random_table())


@every_estimator
def test_a_model_of_the_device_loads_where_there_is_none(monkeypatch, tmp_path, name):
    model, X = fitted(name), random_table()[0][:5]
    expected = model.predict_proba(X)
    model.set_params(device="cuda").save(tmp_path / "model.tan")
    monkeypatch.setitem(sys.modules, "cupy", None)
    found = load(tmp_path / "model.tan")
    assert found.device == "cuda"
    with pytest.raises(ImportError, match=r"tanlearn\[cuda12\].*or use device='cpu'"):
        found.predict(X)
    np.testing.assert_array_equal(found.set_params(device="cpu").predict_proba(X), expected)


@every_estimator
def test_a_model_keeps_the_number_of_its_device(backend, tmp_path, name):
    """In files and clones, and predictions are those of another device, to the last bit."""
    if backend == "cuda":
        pytest.skip("there may be one device only")
    X = random_table()[0][:7]
    model = fitted(name).set_params(device="cuda")
    expected = model.predict_proba(X)
    model.set_params(device="cuda:1").save(tmp_path / "model.tan")
    found = load(tmp_path / "model.tan")
    assert found.device == clone(found).device == "cuda:1"
    np.testing.assert_array_equal(found.predict_proba(X), expected)
    message = r"device='cuda:2' does not exist. CuPy finds 2 NVIDIA device\(s\), numbered from 0. Use a number below 2"
    with pytest.raises(RuntimeError, match=message):
        found.set_params(device="cuda:2").predict(X)
    with pytest.raises(RuntimeError, match=message):
        clone(found).fit(*random_table())
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda', or 'cuda:' .* got 'cuda:x'"):
        clone(found).set_params(device="cuda:x").fit(*random_table())


@every_estimator
def test_a_device_that_is_not_there_is_said_before_anything_is_done(monkeypatch, name):
    estimator, data = clone(ESTIMATORS[name]).set_params(device="cuda"), EncodedData.from_codes([[0], [1]], [0, 1])
    nothing = None  # as X and y: they are not looked at
    methods = [lambda: estimator.fit(nothing, nothing), lambda: estimator.fit_encoded(data)]
    if name != "gradient":
        methods.append(lambda: estimator.partial_fit(nothing, nothing))

    def fail():
        raise OSError("no driver")

    without_driver = ModuleType("cupy")
    without_driver.cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=fail))
    for method in methods:
        monkeypatch.setitem(sys.modules, "cupy", None)
        with pytest.raises(ImportError, match=r"device='cuda' needs CuPy: pip install 'tanlearn\[cuda12\]'"):
            method()
        monkeypatch.setitem(sys.modules, "cupy", without_driver)
        with pytest.raises(RuntimeError, match=r"no NVIDIA device \(no driver\)\. Use device='cpu'"):
            method()
        monkeypatch.setattr(without_driver.cuda.runtime, "getDeviceCount", lambda: 0)
        with pytest.raises(RuntimeError, match=r"no NVIDIA device\. Use device='cpu'"):
            method()
        monkeypatch.setattr(without_driver.cuda.runtime, "getDeviceCount", fail)


@every_estimator
def test_an_unknown_device_is_refused(name):
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda', or 'cuda:' and .* got 'gpu'"):
        clone(ESTIMATORS[name]).set_params(device="gpu").fit(*random_table())
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda', or 'cuda:' and .* got 'gpu'"):
        fitted(name).set_params(device="gpu").predict(random_table()[0])


def test_generation_stays_on_the_cpu(backend, monkeypatch):
    model, X = fitted("two parents"), random_table(missing=0.3)[0]
    expected = model.explain(X), *model.complete(X), *model.sample(5, random_state=0)
    model.set_params(device="cuda")
    for found, wanted in zip(
        (model.explain(X), *model.complete(X), *model.sample(5, random_state=0)), expected, strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
