"""The comparison on all tables: sets and groups, what is measured, and that runs go on where they were stopped."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.svm import SVC
from support.results_files import appended, cut_after

from benchmarks import DATA
from benchmarks.quality.tables import fits, learners, peers, run, sets, tuning
from benchmarks.quality.tables.__main__ import main
from benchmarks.quality.tables.learners import LEARNERS, Learner
from benchmarks.quality.tables.time_plot import SIZE, position_names

SKLEARN = [name for name, learner in LEARNERS.items() if learner.package is None and not learner.is_ours]


@pytest.fixture
def folder(tmp_path):
    """Return a folder of sets: numbers, and categories with a gap and a number; and a published part."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = np.stack([np.where(rng.random(90) < 0.8, y, 0), rng.integers(0, 3, 90), rng.normal(size=90)], axis=1)
    missing = np.zeros(X.shape, bool)
    missing[4, 1] = missing[7, 2] = True
    (tmp_path / "raw").mkdir()
    (tmp_path / "discretized").mkdir()
    is_categorical = np.array([True, True, False])
    np.savez(tmp_path / "raw" / "car.npz", X=X, y=y, missing=missing, is_categorical=is_categorical)
    np.savez(tmp_path / "raw" / "iris.npz", X=X[:60, ::2], y=y[:60], is_categorical=np.zeros(2, bool))
    parts = {"x_tr": X[:60, :2], "t_tr": y[:60], "x_te": X[60:, :2], "t_te": y[60:]}
    parts = {f"{name}_fold1": part.astype(int) + 1 * (name[0] == "x") for name, part in parts.items()}
    np.savez(tmp_path / "discretized" / "letter.npz", n_folds=1, **parts)
    return tmp_path


def simple_table(X, y):
    rows = np.arange(len(y))
    return sets.Table(X, y, np.zeros(X.shape[1], bool), [(rows[::2], rows[1::2])])


def test_sets_know_their_categories_and_gaps(folder):
    table = sets.load_set("car", folder, 1)
    assert table.X.dtypes.astype(str).tolist() == ["category", "category", "float64"]
    assert np.argwhere(table.X.isna()).tolist() == [[4, 1], [7, 2]]
    assert table.X["1"].cat.categories.tolist() == [0, 1, 2]
    others = sets.load_set("car", folder, 0)
    assert [len(test) for _, test in table.folds] == [18] * 5
    assert not np.array_equal(table.folds[0][1], others.folds[0][1])
    assert isinstance(sets.load_set("iris", folder, 0).X, np.ndarray)
    part = sets.load_set("letter, published", folder, 0)
    assert [(len(train), len(test)) for train, test in part.folds] == [(60, 30)]
    assert part.encoder.discrete_features is True
    assert sets.cells(folder) == {"car": 270, "iris": 120}


def test_large_sets_are_sampled_by_class(folder, monkeypatch):
    monkeypatch.setattr(sets, "MOST_ROWS", 45)
    tables = [sets.load_set("car", folder, seed) for seed in (0, 1)]
    assert np.bincount(tables[0].y).tolist() == [15, 15, 15]
    assert tables[0].X.equals(tables[1].X)
    assert sets.cells(folder)["car"] == 45 * 3


def test_groups_are_every_second_set_and_twins_stay_together():
    assert list(sets.RAW) == sorted(sets.RAW)
    assert all(sets.HALF[name] == sets.HALF[twin] for name, twin in sets.TWINS.items())
    plain = [sets.HALF[name] for name in sets.RAW if name not in sets.TWINS]
    assert abs(plain.count("chosen on") - plain.count("held out")) <= 3
    assert (sets.HALF["adult"], sets.HALF["ann-thyroid"]) == ("chosen on", "held out")


@pytest.mark.data
def test_every_raw_set_is_named_and_mnist_is_shrunk():
    if not DATA.exists():
        pytest.skip("the published sets are not beside the project")
    assert set(sets.cells(DATA)) == {*sets.RAW, *sets.LATER}
    table = sets.load_set("mnist, published", DATA, 0)
    assert (table.X.shape, [len(part) for part in table.folds[0]]) == ((70_000, 196), [60_000, 10_000])


def test_measures_are_those_of_scikit_learn():
    X, y = make_classification(200, n_informative=4, n_classes=3, random_state=0)
    table = simple_table(X, y + 5)
    found = fits.measure(LogisticRegression(), table, *table.folds[0], 1)
    model = LogisticRegression().fit(X[::2], y[::2])
    p, y_test = model.predict_proba(X[1::2]), y[1::2]
    assert found["error"] == pytest.approx(100 - 100 * model.score(X[1::2], y_test))
    assert found["log_loss"] == pytest.approx(log_loss(y_test, p))
    assert found["brier"] == pytest.approx(np.mean(np.sum((p - np.eye(3)[y_test]) ** 2, axis=1)))
    assert found["auc"] == pytest.approx(roc_auc_score(y_test, p, multi_class="ovr"))
    assert np.sum(found["bins"][0]) == 100
    assert min(found[f"{what}_{how}"] for what in ("fit", "predict") for how in ("seconds", "wall")) >= 0


def test_classes_without_training_rows_cost_the_least_probability():
    X, y = np.zeros((6, 1)), np.array([3, 4, 3, 7, 4, 3])
    table = sets.Table(X, y, np.zeros(1, bool), [])
    found = fits.measure(DummyClassifier(strategy="prior"), table, np.array([0, 1, 2, 4]), np.array([3, 5]), 1)
    assert found["error"] == 50.0
    assert found["log_loss"] == pytest.approx(-(np.log(0.5) + np.log(tuning.LEAST)) / 2)
    assert found["brier"] == pytest.approx((0.5 + 1.5) / 2)
    assert found["auc"] == 0.5  # all scores are equal


def test_areas_need_test_rows_of_two_classes():
    p = np.array([[0.7, 0.3], [0.4, 0.6]])
    assert fits.area_under_roc(p, np.array([2, 5]), np.array([2, 2])) is None
    assert fits.area_under_roc(p, np.array([2, 5]), np.array([2, 9])) == 1.0  # a class without training rows


def test_probabilities_that_are_no_numbers_are_refused():
    class Broken(DummyClassifier):
        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    table = simple_table(np.zeros((8, 1)), np.arange(8) // 2 % 2)
    line = run.attempt(Broken(), table, 1, 1)
    assert line["failure"] == "ValueError: probabilities are not finite."
    assert (line["n_train"], line["n_test"]) == (4, 4)


def test_sizes_are_those_of_pickles():
    import pickle

    model = LogisticRegression().fit(np.arange(8).reshape(8, 1), np.arange(8) % 2)
    assert fits.pickled_size(model) == len(pickle.dumps(model, protocol=5))


def test_tuned_models_take_what_has_the_lowest_log_loss():
    X, y = make_classification(150, n_features=5, flip_y=0.4, random_state=0)
    model = tuning.Tuned(LogisticRegression(), {"C": [1e-3, 1e3], "max_iter": [200]}, {"C": 1.0}).fit(X, y)
    losses = {}
    for C in (1e-3, 1e3):
        folds = tuning.inner_folds(X, y, 0)
        parts = [(LogisticRegression(C=C, max_iter=200).fit(X[a], y[a]).predict_proba(X[b]), y[b]) for a, b in folds]
        losses[C] = np.mean([log_loss(y_test, p) for p, y_test in parts])
    assert model.best_params_ == {"C": min(losses, key=losses.get), "max_iter": 200}
    assert model.best_params_["C"] == model.best_estimator_.C
    assert fits.settings(model) == f"C={model.best_params_['C']!r}, max_iter=200"


class Growing(DummyClassifier):
    """Boosting whose best number of trees is told by its setting."""

    def __init__(self, best=1, trees=7):
        super().__init__()
        self.best, self.trees = best, trees


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_early_stopping_takes_the_mean_number_of_trees_of_the_best_setting():
    seen = []

    def until(model, X, y, X_held_out, y_held_out):
        seen.append((model.trees, len(X), len(X_held_out), sorted(set(y)), sorted(set(y_held_out))))
        return model.best + len(seen) % 3, abs(model.best - 20)

    y = np.array([0, 2] * 9 + [1])  # one row of class 1: in no training part of the fold that leaves it out
    model = tuning.EarlyStopped(Growing(), {"best": [10, 20, 30]}, until, "trees").fit(np.zeros((19, 1)), y)
    assert model.best_params_ == {"best": 20, "trees": 21}
    assert (model.best_estimator_.trees, model.classes_.tolist()) == (21, [0, 1, 2])
    assert {one[0] for one in seen} == {tuning.MOST_TREES}
    assert all(set(held_out) <= set(train) == set(range(len(train))) for *_, train, held_out in seen)
    assert len(seen) == 9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vector_machines_know_their_probabilities(n_classes):
    X, y = make_classification(240, n_informative=4, n_classes=n_classes, flip_y=0.3, random_state=1)
    model = tuning.CalibratedSVC({"C": [1.0, 100.0], "gamma": ["scale"]}).fit(X[:160], y[:160])
    p = model.predict_proba(X[160:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    prior = np.bincount(y[:160]) / 160
    assert log_loss(y[160:], p) < log_loss(y[160:], np.tile(prior, (80, 1)))
    assert model.best_params_["C"] == 1.0
    scores = SVC(C=1.0).fit(X[:160], y[:160]).decision_function(X[160:])
    np.testing.assert_allclose(model._scores(model.best_estimator_, X[160:]).squeeze(), scores)


def test_scores_of_a_class_that_a_fold_lacks_are_the_lowest():
    model = tuning.CalibratedSVC({})
    model.classes_ = np.arange(3)
    X = np.arange(8.0).reshape(8, 1)
    scores = model._scores(SVC().fit(X, np.array([0, 2] * 4)), X)
    assert scores.shape == (8, 3)
    assert (scores[:, 1] < scores[:, [0, 2]].min(axis=1)).all()


@pytest.mark.filterwarnings("ignore:Found unknown categories")  # of a gap that one part has
@pytest.mark.parametrize("name", SKLEARN)
def test_peers_learn_from_categories_and_gaps(folder, monkeypatch, name):
    monkeypatch.setattr(peers, "N_TREES", 3)
    monkeypatch.setattr(peers, "N_CHEAPER", 2)
    monkeypatch.setattr(peers, "LEAVES", [1])
    monkeypatch.setattr(tuning, "MOST_TREES", 3)
    for which in ("car", "iris"):
        table = sets.load_set(which, folder, 0)
        line = run.attempt(LEARNERS[name].make(table, 0, 1), table, 1, 1)
        assert line.get("failure") is None
        assert (line["chosen"] != "") == LEARNERS[name].is_tuned
        assert line["error"] < 67  # of three classes


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # since LightGBM 4.7
@pytest.mark.filterwarnings("ignore:Missing values detected")  # by plots of EBM
@pytest.mark.parametrize("name", [name for name, learner in LEARNERS.items() if learner.package is not None])
def test_boosting_from_elsewhere_learns_from_categories_and_gaps(folder, monkeypatch, name):
    if not LEARNERS[name].is_installed:
        pytest.skip(f'{LEARNERS[name].package} is not installed: pip install -e ".[peers]"')
    test_peers_learn_from_categories_and_gaps(folder, monkeypatch, name)


@pytest.mark.parametrize("name", [learners.FOREST, learners.UNWEIGHTED])
def test_forests_are_those_of_the_registry(folder, name):
    table = sets.load_set("iris", folder, 0)
    model = LEARNERS[name].make(table, 3, 1)
    assert (model.weights, model.random_state) == ("auto" if name == learners.FOREST else None, 3)
    assert LEARNERS[name].is_ours
    assert "failure" not in run.attempt(model.set_params(n_estimators=2), table, 1, 1)


def test_columns_of_many_categories_are_numbered_for_forests(folder, monkeypatch):
    table = sets.load_set("car", folder, 0)
    steps = {name: columns for name, _, columns in peers.for_trees(table).transformers}
    assert steps == {"few": [0, 1], "many": []}
    assert peers.for_trees(table).fit_transform(table.X).shape == (90, 3 + 4 + 1)  # a gap is a category
    assert peers.for_trees(table, is_numbered=True).fit_transform(table.X).shape == (90, 3)
    monkeypatch.setattr(peers, "MOST_COLUMNS", 2)
    assert {name: columns for name, _, columns in peers.for_trees(table).transformers} == {"few": [], "many": [0, 1]}


def test_boosting_does_not_hold_out_rows_of_a_class_that_has_one(folder):
    table = sets.load_set("iris", folder, 0)
    assert peers.hist_gradient_boosting(table, 0, 1).early_stopping == "auto"
    rare = sets.Table(table.X, np.r_[table.y[:-1], 9], table.is_categorical, table.folds)
    assert peers.hist_gradient_boosting(rare, 0, 1).early_stopping is False


def test_learners_are_run_where_they_are_meant_to(folder):
    categories, numbers = (sets.load_set(name, folder, 0) for name in ("car", "iris"))
    assert LEARNERS[learners.NUMBERED].is_run_on(categories)
    assert not LEARNERS[learners.NUMBERED].is_run_on(numbers)
    assert Learner("few", None, 0, most_rows=72).is_run_on(categories)
    assert not Learner("few", None, 0, most_rows=71).is_run_on(categories)


def test_cheap_learners_and_small_sets_go_first():
    some = [LEARNERS[name] for name in ("SVM, tuned", "TAN Subset HYB", "AODE", "LogisticRegression")]
    steps = run.plan(["car", "letter, published", "iris"], [0, 1], some, {"car": 9, "iris": 5, "letter": 7})
    short = [(seed, name, [one.name for one in group]) for seed, name, group in steps]
    assert short[:5] == [
        (0, "iris", ["AODE", "LogisticRegression"]),
        (0, "car", ["AODE", "LogisticRegression"]),
        (0, "letter, published", ["AODE", "LogisticRegression"]),
        (1, "iris", ["AODE", "LogisticRegression"]),
        (1, "car", ["AODE", "LogisticRegression"]),
    ]
    assert [group for *_, group in short[5:]] == [["TAN Subset HYB"]] * 5 + [["SVM, tuned"]] * 5


def test_runs_go_on_and_stop_in_time(folder, capsys):
    path = folder / "results" / "tables.jsonl"
    asked = ["run", "--data", str(folder), "--results", str(path.parent), "--sets", "car", "letter, published"]
    asked += ["--jobs", "1", "--learners", "NB ML", "LogisticRegression"]
    main([*asked, "--folds", "1", "2"])
    first = appended(path)
    keys = [run.key(line) for line in first]
    assert keys == [
        *(("car", 0, fold, name) for name in ("NB ML", "LogisticRegression") for fold in (1, 2)),
        *(("letter, published", 0, 1, name) for name in ("NB ML", "LogisticRegression")),
        *(("car", 1, fold, name) for name in ("NB ML", "LogisticRegression") for fold in (1, 2)),
    ]
    line = first[0]
    assert (line["n_folds"], line["n_train"], line["n_test"], line["jobs"]) == (5, 72, 18, 1)
    assert (line["n_features"], line["n_categorical"]) == (3, 2)
    assert "scikit-learn 1" in line["versions"]
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 10
    assert said[0].startswith("[1/3] car, seed 0, fold 1, NB ML: ")
    main([*asked, "--time-limit", "-1"])
    assert capsys.readouterr().out == "stopped after -1 s; the same command goes on\n"
    cut_after(path, len(first) - 1)
    main([*asked, "--seeds", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 7  # three folds of naive Bayes, four of the other
    assert len({run.key(line) for line in appended(path)}) == 16


def test_absent_peers_are_named(folder, monkeypatch, capsys):
    gone = Learner("Gone", None, 0, package="no_such_package")
    monkeypatch.setitem(LEARNERS, "Gone", gone)
    main(["run", "--data", str(folder), "--results", str(folder), "--sets", "iris", "--learners", "Gone"])
    assert capsys.readouterr().out == 'Gone is left out: no no_such_package here (pip install -e ".[peers]")\n'


def test_names_cover_no_other_names_points_or_edges():
    width = SIZE[0]
    points = {"first": (100, 200), "beside": (110, 200), "right edge": (width - 5, 80), "left edge": (5, 40)}
    found = position_names(points, list(points))
    assert found == {"first": ("right", 0), "beside": ("left", 0), "right edge": ("right", 0), "left edge": ("left", 0)}
    crowd = {name: (150, y) for name, y in zip("abcd", (100, 98, 96, 94), strict=True)}
    assert len(set(position_names(crowd, list(crowd)).values())) == 4
