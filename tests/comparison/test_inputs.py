"""Data sets and learners as users pass them."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tanlearn import NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import ChowLiu
from tanlearn.comparison import compare
from tanlearn.comparison.inputs import named_datasets, named_learners
from tanlearn.sources.datasets import Dataset, load_digits

X, Y = load_iris(return_X_y=True)


def test_data_sets_of_all_kinds(tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs tanlearn[frames]")
    frame = pandas.DataFrame({"a": ["x", "y", "x", "y"], "kind": [1, 2, 1, 2], "b": [0.5, None, 1.5, 2]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "t.npz", X=X, y=Y)
    sources = {
        "frame": (frame, "kind"),
        "file": (tmp_path / "t.csv", "kind"),
        "archive": str(tmp_path / "t.npz"),
        "lists": ([["x", 0.5], ["y", None]], [1, 2]),
        "numbers": ([[1, 2], [3, 4.5]], ["a", "b"]),
        "own": load_digits(),
        "name": "wine",
    }
    found = named_datasets(sources)
    assert [dataset.name for dataset in found] == list(sources)
    assert [dataset.X.shape for dataset in found] == [(4, 2), (4, 2), (150, 4), (2, 2), (2, 2), (1797, 64), (178, 13)]
    assert list(found[0].feature_names) == ["a", "b"]
    assert found[0].y.tolist() == found[1].y.tolist() == [1, 2, 1, 2]
    assert found[3].X.tolist() == [["x", 0.5], ["y", None]]
    assert found[4].X.dtype == float


def test_other_frames_are_converted():
    polars = pytest.importorskip("polars", reason="needs tanlearn[frames]")
    frame = polars.DataFrame({"a": [1, 2, 3, 4], "b": ["x", "y", "x", "y"]})
    (dataset,) = named_datasets((frame, "b"))
    assert (dataset.name, dataset.X.shape, dataset.y.tolist()) == ("data", (4, 1), ["x", "y", "x", "y"])
    with pytest.raises(TypeError, match=r"Run it first: pass X\.collect\(\)"):
        named_datasets((frame.lazy(), "b"))


def test_names_of_data_sets():
    assert [one.name for one in named_datasets([(X, Y), "iris", (X, Y)])] == ["data 1", "iris", "data 3"]
    with pytest.raises(ValueError, match=r"two data sets have the name 'iris'\. Pass a dict to give them different"):
        named_datasets(["iris", "iris"])


@pytest.mark.parametrize(
    ("datasets", "error", "message"),
    [
        ("iriss", ValueError, r"got 'iriss'\. Did you mean 'iris'\?"),
        ("absent.npz", FileNotFoundError, r"there is no file absent\.npz"),
        ([], ValueError, "a comparison needs at least one data set"),
        ({}, ValueError, "a comparison needs at least one data set"),
        (X, TypeError, r"a data set must be a name, .* got ndarray\. Pass a list for several data sets"),
        ([X, Y], TypeError, r"a data set must be a name"),
        ((X, Y, Y), TypeError, r"a data set must be a name"),
        ((X[0], Y), ValueError, r"data: X must have shape \(n_samples, n_features\), got \(4,\)"),
        ((X, Y[1:]), ValueError, r"data: X has 150 rows, but y has 149"),
    ],
)
def test_bad_data_sets_are_explained(datasets, error, message):
    with pytest.raises(error, match=message):
        named_datasets(datasets)


def test_a_column_that_does_not_exist_is_named():
    pandas = pytest.importorskip("pandas", reason="needs tanlearn[frames]")
    with pytest.raises(ValueError, match=r"data: there is no column 'kind'\. The columns are: a, b"):
        named_datasets((pandas.DataFrame({"a": [1], "b": [2]}), "kind"))
    with pytest.raises(ValueError, match=r"there is no column 'diagnosys'\. Did you mean 'diagnosis'\?"):
        named_datasets((pandas.DataFrame({"a": [1], "diagnosis": [2]}), "diagnosys"))


def test_errors_of_classes_name_the_data_set():
    with pytest.raises(ValueError, match=r"data set 'second': y .*row 1"):
        compare({"first": (X, Y), "second": ([[1], [2], [3]], ["a", None, "b"])}, "NB ML")


@pytest.mark.parametrize(
    ("learners", "error", "message"),
    [
        ("NB MM", ValueError, "Did you mean 'NB ML'"),
        ([], ValueError, "a comparison needs at least one learner"),
        (
            NaiveBayesClassifier,
            TypeError,
            r"a learner must be an object, got the class NaiveBayesClassifier\. Pass NaiveBayesClassifier\(\)",
        ),
        ([ChowLiu()], TypeError, r"the structure learner ChowLiu\. Pass BayesNetClassifier\(structure=ChowLiu\(\)\)"),
        ({"my tree": ChowLiu()}, TypeError, r"learner my tree\. Pass BayesNetClassifier\(structure=ChowLiu\(\)\)"),
        ([3], TypeError, r"int has no fit and no predict and no get_params"),
        (["NB ML", "nb ml"], ValueError, r"two learners have the name 'NB ML'\. Pass a dict"),
        ([NaiveBayesClassifier(), NaiveBayesClassifier(device="cpu")], ValueError, "two learners have the name 'Naive"),
    ],
)
def test_bad_learners_are_explained(learners, error, message):
    with pytest.raises(error, match=message):
        named_learners(learners)


def test_peers_are_learners():
    learners = {
        "nb": "NB ML",
        "forest": RandomForestClassifier(5),
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "margin": LinearSVC(),
    }
    found = compare("iris", learners, n_folds=2)
    assert (found.learners, found.failures) == (list(learners), [])
    assert compare("iris", learners, n_folds=2).mean().tolist() == found.mean().tolist()  # seeds are set
    margin = [cell for cell in found.cells if cell.learner == "margin"]
    assert {(cell.log_loss, cell.brier, cell.auc, cell.n_parameters) for cell in margin} == {(None,) * 4}
    assert all(cell.error < 20 for cell in found.cells)


def test_seeds_threads_and_encoder_replace_none_only():
    (entry,) = named_learners(TANClassifier())
    made = entry.make(random_state=7, n_jobs=2, encoder=TableEncoder(discrete_features=True))
    assert (made.random_state, made.n_jobs, made.encoder.discrete_features) == (7, 2, True)
    (entry,) = named_learners(TANClassifier(random_state=0, n_jobs=1, encoder=TableEncoder(discrete_features=False)))
    made = entry.make(random_state=7, n_jobs=2, encoder=TableEncoder(discrete_features=True))
    assert (made.random_state, made.n_jobs, made.encoder.discrete_features) == (0, 1, False)
    (entry,) = named_learners(make_pipeline(StandardScaler(), RandomForestClassifier()))
    assert entry.make(random_state=7).get_params()["randomforestclassifier__random_state"] == 7


def test_categories_of_a_data_set_reach_estimators():
    rows = np.array([[0], [10], [20]] * 20)
    y = np.tile([1, 0, 1], 20)  # not a function of any cut point
    table = Dataset("codes", rows, y, ["code"], discrete_features=True)
    found = compare(table, {"name": "NB ML", "estimator": NaiveBayesClassifier()}, n_folds=2)
    assert [cell.error for cell in found.cells] == [0.0] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 0}, r"n_folds must be at least 1 .*got 0"),
        ({"n_repeats": 0}, r"n_repeats must be an integer of at least 1, got 0"),
    ],
)
def test_numbers_out_of_range_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        compare("iris", "NB ML", **options)


def test_own_splits_stand_beside_folds():
    rows = np.arange(150)
    own = Dataset("own", X, Y, list("abcd"), folds=[(rows[::2], rows[1::2])])
    found = compare([own, "iris"], "NB ML", n_folds=3, n_repeats=2)
    assert [(cell.dataset, cell.n_folds, cell.n_test) for cell in found.cells] == [("own", 1, 75)] + [
        ("iris", 3, 50)
    ] * 6
    with pytest.raises(ValueError, match=r"n_repeats must not be set, because own has a predefined split"):
        compare(own, "NB ML", n_repeats=2)
