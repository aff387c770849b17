"""Hierarchical smoothing and its Dirichlet form: what they choose, and whole classifiers of them, from fit to file."""

import json

import numpy as np
import pandas as pd
import pytest
from oracles import back_off as naive
from support.seen_contexts import N_STATES, STRUCTURE, table

from tanlearn import BayesNetClassifier, EncodedData, HierarchicalDirichlet, HierarchicalSmoothing, Structure, load
from tanlearn._memory import TableMemoryError
from tanlearn.baselines import KDependence
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.parameters import check_learner_device, hierarchical_dirichlet

RNG = np.random.default_rng(0)
LEARNERS = {"smoothing": HierarchicalSmoothing(sparse=True), "dirichlet": HierarchicalDirichlet(sparse=True)}


def frame(n=300, seed=0):
    """Return rows of strings, numbers and codes, some of them missing, and classes that hang on three at a time."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 3, (n, 4)).astype(float), columns=list("abcd"))
    y = (X["a"] + X["b"] + X["c"]).astype(int) % 3
    X["word"] = np.array(["x", "y", "z"], dtype=object)[rng.integers(0, 3, n)]
    return X.mask(rng.random(X.shape) < 0.02), np.array(["low", "middle", "high"])[y]


def model(parameters):
    """Return a classifier of many parents."""
    return BayesNetClassifier(structure=KDependence(k=3), parameters=parameters, random_state=0)


@pytest.mark.parametrize("m", [0.7, [1.0, 0.5, 2.0, 3]])
def test_named_weights_are_taken(m):
    data = table(80, 0.1)
    learner = HierarchicalSmoothing(m=m, sparse=True)
    tables = learner.fit(STRUCTURE, data, RNG)
    assert learner.m_.tolist() == (m if isinstance(m, list) else [m] * 4)
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist()
    prior = (np.bincount(data.y, minlength=3) + 1) / 83
    families = [[j for j in row if j >= 0] for row in STRUCTURE.parents.tolist()]
    complete = table(10, 0, seed=1).codes
    for row, scores in zip(complete.T.tolist(), log_joint(tables, STRUCTURE, complete), strict=True):
        expected = naive.log_joint(row, X, data.y.tolist(), [1] * 80, families, prior, N_STATES, learner.m_)
        np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize("m", [[1.0, 2.0], [[1.0] * 4], ["a"] * 4, [1.0, 1.0, 0.0, 1.0], [1.0, 1.0, np.inf, 1.0]])
def test_other_weights_are_refused(m):
    with pytest.raises(ValueError, match="m must be"):
        HierarchicalSmoothing(m=m).fit(STRUCTURE, table(20), RNG)
    with pytest.raises(ValueError, match="'m' parameter of HierarchicalSmoothing must be"):
        HierarchicalSmoothing(m=0).fit(STRUCTURE, table(20), RNG)


def test_there_is_a_weight_for_no_parent_and_for_each_number_of_parents():
    fork = Structure([-1, 0, 0, 0])
    learner = HierarchicalSmoothing(m=[1.0, 2.0])
    learner.fit(fork, table(20), RNG)
    assert learner.m_.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="a positive number, or 2 positive numbers"):
        HierarchicalSmoothing(m=[1.0] * 4).fit(fork, table(20), RNG)


def test_few_rows_of_a_context_call_for_more_smoothing():
    """Noise in the parents: their levels are smoothed most; a function of them: least."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, (400, 3)), rng.integers(0, 2, 400)
    structure = Structure([[-1, -1], [-1, -1], [0, 1]])
    learnt = BayesNetClassifier(structure=structure, parameters=HierarchicalSmoothing()).fit(X, y).parameters_
    X[:, 2] = (X[:, 0] + X[:, 1] + y) % 4
    function = BayesNetClassifier(structure=structure, parameters=HierarchicalSmoothing()).fit(X, y).parameters_
    assert learnt.m_[2] >= 10 > 1 >= function.m_[2]
    assert function.error_ < 0.01 < 0.4 < learnt.error_
    assert function.log_loss_ < 0.1


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("n_iter", [1, 2, 7])
def test_concentrations_and_tables_are_those_of_the_restaurants(n_iter, weights):
    data, complete = table(60, 0.1, weights), table(12, 0, seed=1).codes
    learner = HierarchicalDirichlet(n_iter=n_iter, sparse=True)
    tables = learner.fit(STRUCTURE, data, RNG)
    X, y = np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist(), data.y.tolist()
    families = [[j for j in row if j >= 0] for row in STRUCTURE.parents.tolist()]
    c, counts = naive.concentrations(X, y, data.weights.tolist(), families, N_STATES.tolist(), n_iter, (1e-3, 1e4))
    np.testing.assert_allclose(learner.concentrations_, c, rtol=1e-9)
    assert tables.concentrations.tolist() == learner.concentrations_.tolist()
    of_class = np.bincount(data.y, data.weights, 3) + 1
    for row, scores in zip(complete.T.tolist(), log_joint(tables, STRUCTURE, complete), strict=True):
        for label, score in enumerate(scores):
            chances = [
                naive.of_counts(counts[i], [row[j] for j in parents], row[i], label, N_STATES[i], c)
                for i, parents in enumerate(families)
            ]
            expected = np.log(of_class[label] / of_class.sum()) + np.log(chances).sum()
            assert score == pytest.approx(expected, rel=1e-9)
    for i in range(4):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1, rtol=1e-12)


def test_concentrations_are_bounded_and_levels_without_rows_keep_one(monkeypatch):
    """A function of its parent needs no smoothing; a parent that does not matter asks for as much as there is."""
    x, noise, y = np.arange(1200) % 3, np.arange(1200) // 3 % 2, np.arange(1200) // 6 % 2
    monkeypatch.setattr(hierarchical_dirichlet, "_SMALLEST", 0.05)
    monkeypatch.setattr(hierarchical_dirichlet, "_LARGEST", 50.0)
    for parent, expected in ((x, 0.05), (noise, 50.0), (np.full(1200, -1), 1.0)):
        data = EncodedData.from_codes(np.stack([parent, x], axis=1), y, n_states=[3, 3])
        learner = HierarchicalDirichlet(n_iter=300)
        learner.fit(Structure([-1, 0]), data, RNG)
        assert learner.concentrations_.shape == (2,)  # one a level, from no parent to one
        assert learner.concentrations_[1] == expected


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_tables_are_dense_if_they_are_small_and_the_same(learner):
    data, complete = table(80, 0.1), table(30, 0, seed=1).codes
    sparse = learner.fit(STRUCTURE, data, RNG)
    dense = type(learner)(sparse="auto").fit(STRUCTURE, data, RNG)
    assert type(sparse) is BackOffTables
    assert type(dense) is Tables
    np.testing.assert_allclose(
        log_joint(sparse, STRUCTURE, complete), log_joint(dense, STRUCTURE, complete), rtol=1e-13
    )
    X, structure = np.tile(np.arange(300), (4, 1)).T.astype(str), Structure([[-1] * 3] * 3 + [[0, 1, 2]])
    wide = BayesNetClassifier(structure=structure, parameters=type(learner)(sparse=False))
    with pytest.raises(TableMemoryError, match="feature 3 given feature 0 and feature 1 and feature 2"):
        wide.fit(X, np.arange(300) % 2)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_threads_change_nothing(learner):
    data = table(300, 0.1)
    one, two = (type(learner)(sparse=True, n_jobs=n).fit(STRUCTURE, data, RNG) for n in (1, 2))
    assert np.array_equal(log_joint(one, STRUCTURE, data.codes), log_joint(two, STRUCTURE, data.codes))
    assert one.concentrations.tolist() == two.concentrations.tolist()


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_whole_classifier(learner, tmp_path):
    X, y = frame()
    fitted = model(learner).fit(X, y)
    assert isinstance(fitted.tables_, BackOffTables)
    assert fitted.score(X, y) > 0.9
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for method in ("predict_log_proba", "score_samples", "explain"):
        assert np.array_equal(getattr(again, method)(X), getattr(fitted, method)(X))
    np.testing.assert_allclose(fitted.explain(X).sum(axis=1), fitted.predict_joint_log_proba(X), rtol=1e-9, atol=1e-12)
    completed = again.complete(X)[0]
    assert completed.equals(fitted.complete(X)[0])
    assert not completed.isna().any().any()
    drawn, classes = fitted.sample(2000, random_state=1)
    assert np.mean(fitted.predict(pd.DataFrame(drawn, columns=X.columns)) == classes) > 0.8
    even = fitted.with_class_prior([1 / 3] * 3)
    np.testing.assert_allclose(np.exp(even.tables_.log_prior), 1 / 3)
    assert fitted.to_networkx().number_of_edges() == 5 + fitted.structure_.n_edges
    predictor = fitted.row_predictor()
    rows = X.head(40)
    assert [predictor.predict(row) for row in rows.itertuples(index=False, name=None)] == fitted.predict(rows).tolist()
    assert predictor.predict_codes(fitted.encoder_.encode(rows)[:, 3]) == fitted.predict(rows)[3]
    with pytest.raises(ValueError, match=r"the code of feature 2 must be below 3, its number of values, .* got 17"):
        predictor.predict_codes([0, 0, 17, 0, 0])
    assert fitted.size_bits_ == 32 * fitted.tables_.n_cells
    assert fitted.n_parameters_ == fitted.tables_.n_cells - 1
    assert fitted.with_bits((3, 3)).score(X, y) > 0.85
    with pytest.raises(ValueError, match="device='cuda' has no kernels"):
        fitted.tables_.check_device("cuda")
    with pytest.raises(ValueError, match="supports only device='cpu'"):
        check_learner_device(learner, "cuda")


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_description_tells_what_probabilities_follow_from(learner):
    X, y = frame()
    X = X.fillna({"word": "x"}).fillna(0)
    fitted = model(learner).fit(X, y)
    told = json.loads(json.dumps(fitted.describe()))
    codes = fitted.encoder_.encode(X)
    number = {feature["name"]: i for i, feature in enumerate(told["features"])}
    for row in codes.T[:10].tolist():
        scores = np.log(told["class_probabilities"])
        for i, feature in enumerate(told["features"]):
            assert feature["probabilities"] is None
            p = np.full(3, 1 / len(feature["categories"]))
            parents = [row[number[name]] for name in feature["parents"]]
            for j, level in enumerate(feature["back_off"]):
                n, total = np.zeros(3), np.zeros(3)
                for *context, state, c, count in level["counts"]:
                    if context == parents[:j]:
                        total[c] += count
                        n[c] += count * (state == row[i])
                p = np.where(total > 0, (n + level["m"] * p) / (total + level["m"]), p)
            scores += np.log(p)
        found = log_joint(fitted.tables_, fitted.structure_, np.array([row], codes.dtype).T.copy())[0]
        np.testing.assert_allclose(found, scores, rtol=1e-10)


def test_damaged_files_are_refused(tmp_path):
    data = table(60, 0.2)
    tables = HierarchicalDirichlet(sparse=True).fit(STRUCTURE, data, RNG)
    state = tables.to_state()
    good = state["back_off"]

    def restored(**changed):
        content = {"structure": STRUCTURE, **state, "back_off": {**good, **changed}}
        return BayesNet.from_state(content, data.n_states, 3).tables

    assert np.array_equal(restored().cells, tables.cells)
    values, counts = good["values"], good["counts"]
    swapped = values.copy()
    swapped[:4] = values[2:4].tolist() + values[:2].tolist()
    far = values.copy()
    far[0] = 9
    open_again = values.copy()
    open_again[-5:-2] = [4, 0, 0]  # the first parent is missing, and the second is not
    for changed, message in (
        ({"concentrations": good["concentrations"] * 0}, "concentrations must be positive"),
        ({"concentrations": good["concentrations"][1:]}, "concentrations must have type float64"),
        ({"counts": counts[1:]}, "counts must have type int64"),
        ({"counts": counts.astype(np.float32)}, "counts must be int64 or float64"),
        ({"counts": counts * 0}, "a value or a count of feature 0 is out of range"),
        ({"class_counts": -good["class_counts"]}, "class_counts must not be negative"),
        ({"values": swapped}, "the entries of feature 0 must be sorted and distinct"),
        ({"values": far}, "a value or a count of feature 0 is out of range"),
        ({"values": open_again}, "a value or a count of feature 3 is out of range"),
        ({"n_entries": -good["n_entries"]}, "n_entries must be nonnegative integers"),
        ({"level_counts": good["level_counts"][1:]}, "level_counts must have type float64"),
        ({"level_counts": -good["level_counts"]}, "level_counts must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            restored(**changed)
    with pytest.raises(ValueError, match="the structure must have 4 features"):
        BayesNet.from_state({"structure": Structure([-1]), **state}, data.n_states, 3)
