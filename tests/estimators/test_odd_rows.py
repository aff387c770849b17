"""score_samples finds odd rows: with unseen categories, with numbers out of range, and with permuted columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from tanlearn import (
    BayesNetClassifier,
    HierarchicalSmoothing,
    InexactMarginalizationWarning,
    KTreeClassifier,
    MaximumLikelihood,
    NaiveBayesClassifier,
    PairCounts,
    TableCounts,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
    load,
    read_bif,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu, KDependence

MODELS = [
    NaiveBayesClassifier(),
    BayesNetClassifier(structure=ChowLiu()),
    BayesNetClassifier(structure=KDependence(k=2)),
    BayesNetClassifier(structure=KDependence(k=2), parameters=MaximumLikelihood(alpha=0)),
    BayesNetClassifier(structure=KDependence(k=3), parameters=HierarchicalSmoothing()),
    TANClassifier(n_epochs=3, random_state=0),
    KTreeClassifier(n_epochs=3, random_state=0),
    TermNetClassifier(),
    AODEClassifier(),
    AnDEClassifier(n=2),
]


def towns(n=300, seed=0):
    """Six dependent columns of categories, one of which is constant, and classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    first = y + rng.integers(0, 3, n)
    columns = {"a": first, "b": (first + (rng.random(n) < 0.2)) % 4, "c": rng.integers(0, 2, n)}
    columns["d"] = (columns["b"] + columns["c"]) % 3
    columns["e"] = np.where(rng.random(n) < 0.02, 9, columns["a"])  # 9 is rare
    columns["f"] = np.zeros(n, int)
    return pd.DataFrame({name: np.char.add("v", v.astype(str)) for name, v in columns.items()}, dtype=object), y


X, Y = towns()
ROWS = towns(40, seed=1)[0]


@pytest.fixture(params=MODELS, ids=lambda model: repr(model)[:90], scope="module")
def model(request):
    return request.param.fit(X, Y)


@pytest.mark.filterwarnings("ignore:no value in 1 column")
@pytest.mark.filterwarnings("ignore:no value in 6 column")
def test_an_unseen_category_costs_at_least_as_much_as_any_seen_one(model):
    for name in X:
        unseen = model.score_samples(ROWS.assign(**{name: "elsewhere"}))
        seen = [model.score_samples(ROWS.assign(**{name: value})) for value in sorted(set(X[name]))]
        least = np.min(seen, axis=0)  # without smoothing, some rows are impossible
        assert (unseen <= np.where(least > -np.inf, least, np.max(seen, axis=0)) + 1e-9).all()
        assert (unseen < np.max(seen, axis=0)).all()
        if hasattr(model, "tables_"):  # ensembles average over fewer networks where a value is missing
            assert (model.score_samples(ROWS.assign(**{name: None})) >= np.max(seen, axis=0) - 1e-9).all()
        np.testing.assert_array_equal(
            model.predict_proba(ROWS.assign(**{name: "elsewhere"})), model.predict_proba(ROWS.assign(**{name: None}))
        )
    strangers = ROWS.assign(**dict.fromkeys(X, "elsewhere"))
    assert model.score_samples(strangers).max() < model.score_samples(X).min()


def test_scores_do_not_depend_on_other_rows(model):
    rows = ROWS.mask(np.random.default_rng(0).random(ROWS.shape) < 0.2, "elsewhere")
    whole = model.score_samples(rows)
    np.testing.assert_array_equal(model.score_samples(rows.iloc[7:9]), whole[7:9])
    assert (whole < model.score_samples(ROWS) - 0.1)[(rows == "elsewhere").any(axis=1)].mean() > 0.9


def test_warnings_of_score_samples_and_predict_proba_name_the_same_rows(monkeypatch):
    model = BayesNetClassifier(structure=KDependence(k=2)).fit(X, Y)
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "1")
    parents = model.structure_.parents
    (child, *_) = np.flatnonzero(parents[:, 1] >= 0).tolist()
    rows = ROWS.iloc[:10].copy()
    rows.iloc[7, parents[child]] = None
    leaf = next(i for i in range(len(parents)) if i not in parents)
    rows.iloc[0, leaf] = "elsewhere"  # predict_proba takes it as missing, which is exact for a feature without children
    for score in (model.predict_proba, model.score_samples):
        with pytest.warns(InexactMarginalizationWarning, match="the scores of row 7 are approximate") as caught:
            score(rows)
        assert len(caught) == 1


def numbers(n=400, seed=0):
    """Two columns of numbers, one of them constant, and a category."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return pd.DataFrame({"x": y + rng.normal(size=n), "same": np.full(n, 0.5), "k": np.array(["a", "b"])[y]}), y


def test_the_log_probability_falls_with_the_distance_from_the_training_range():
    frame, y = numbers()
    model = NaiveBayesClassifier().fit(frame, y)
    x, cuts = frame["x"], model.encoder_.discretizer_.cut_points_[0]
    assert len(cuts) > 0
    below, above = x[x <= cuts[0]].mean(), x[x > cuts[-1]].mean()
    for edge, sign, mean, scale in ((x.min(), -1, below, cuts[0] - below), (x.max(), 1, above, above - cuts[-1])):
        numbers_ = edge + sign * np.array([0.0, 1e-6, 1.0, 5.0, 1e4, 1e300])
        rows = pd.DataFrame({"x": numbers_, "same": 0.5, "k": "a"})
        found = model.score_samples(rows)
        np.testing.assert_allclose(found[0] - found[1:], np.abs(numbers_[1:] - mean) / scale, rtol=1e-9)
        np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(rows.iloc[[0] * 6]))
    inside = pd.DataFrame({"x": [x.min(), x.max(), None], "same": 0.5, "k": "a"})
    expected = np.exp(model.predict_joint_log_proba(inside)).sum(axis=1)
    np.testing.assert_allclose(np.exp(model.score_samples(inside)), expected)


def test_a_column_of_one_interval_has_the_scale_of_a_uniform_distribution():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.uniform(2, 4, 300), "k": np.array(["a", "b"])[rng.integers(0, 2, 300)]})
    with pytest.warns(UserWarning, match="noise"):
        model = NaiveBayesClassifier().fit(frame, np.arange(300) % 2)
    assert model.encoder_.n_states_.tolist() == [1, 2]
    low, high = frame["noise"].min(), frame["noise"].max()
    found = model.score_samples(pd.DataFrame({"noise": [3.0, low - 1, high + 2], "k": "a"}))
    deviation = (high - low) / np.sqrt(12)
    middle = (low + high) / 2
    expected = [(middle - (low - 1)) / deviation, (high + 2 - middle) / deviation]
    np.testing.assert_allclose(found[0] - found[1:], expected, rtol=1e-9)


def test_discretizers_without_cut_points_have_the_scale_of_a_uniform_distribution():
    frame, y = numbers()
    encoder = TableEncoder(discretizer=WithoutCutPoints())
    model = NaiveBayesClassifier(encoder=encoder).fit(frame[["x", "k"]], y)
    low, high = frame["x"].min(), frame["x"].max()
    found = model.score_samples(pd.DataFrame({"x": [high, high + 2], "k": "a"}))
    expected = (high + 2 - (low + high) / 2) / ((high - low) / np.sqrt(12))
    assert found[0] - found[1] == pytest.approx(expected)


class WithoutCutPoints(BaseEstimator):
    """Two intervals, divided at 0."""

    def fit(self, X, y, sample_weight=None):
        self.n_states_ = np.full(X.shape[1], 2)
        return self

    def transform(self, X):
        return np.where(np.isnan(X), 255, X > 0).astype(np.uint8)


def test_another_number_in_a_constant_column_is_like_an_unseen_category():
    frame, y = numbers()
    model = NaiveBayesClassifier().fit(frame, y)
    rows = pd.DataFrame({"x": 0.0, "same": [0.5, 0.7, -1e9, None], "k": "a"})
    usual, other, far, missing = model.score_samples(rows)
    assert usual == pytest.approx(missing)
    assert other == far
    rare = frame["x"].quantile(0.999)
    assert other < usual - 1
    assert other < model.score_samples(pd.DataFrame({"x": [rare], "same": 0.5, "k": "a"}))[0]


def test_numbers_of_later_chunks_are_in_the_training_range():
    frame, y = numbers()
    frame.loc[300, "x"], frame.loc[301, "x"] = 50.0, np.nan
    model = NaiveBayesClassifier()
    model.partial_fit(frame[:200], y[:200], classes=[0, 1])
    twin = model.with_class_prior([0.5, 0.5])
    before = model.encoder_.value_ranges_
    model.partial_fit(frame[200:], y[200:])
    assert model.encoder_.value_ranges_ == [(frame["x"].min(), 50.0), (0.5, 0.5), None]
    assert twin.encoder_.value_ranges_ == before
    rows = pd.DataFrame({"x": [49.0, 51.0], "same": 0.5, "k": "a"})
    inside, outside = model.score_samples(rows)
    assert inside == pytest.approx(np.logaddexp.reduce(model.predict_joint_log_proba(rows)[0]))
    assert outside < inside - 10


def test_counts_of_parts_have_the_range_of_all_parts():
    frame, y = numbers()
    encoder = TableEncoder().fit(frame[:200], y[:200])
    parts = [TableCounts(PairCounts(encoder.n_states_, 2), encoder=encoder, classes=[0, 1]) for _ in range(2)]
    parts[0].update(frame[:200], y[:200])
    parts[1].update(frame[200:].assign(x=frame["x"][200:] + 20), y[200:])
    parts[0].merge(parts[1])
    low, high = frame["x"][:200].min(), frame["x"][200:].max() + 20
    assert parts[0].encoder.value_ranges_ == [(low, high), (0.5, 0.5), None]
    assert encoder.value_ranges_[0] == (low, frame["x"][:200].max())


def test_a_file_keeps_the_scores_of_odd_rows(tmp_path):
    frame, y = numbers()
    model = BayesNetClassifier(structure=ChowLiu()).fit(frame, y)
    rows = pd.DataFrame({"x": [0.0, 99.0, 0.0], "same": [0.5, 0.5, 3.0], "k": ["a", "a", "elsewhere"]})
    expected = model.score_samples(rows)
    assert expected[0] > max(expected[1:])
    model.save(tmp_path / "model.tan")
    np.testing.assert_array_equal(load(tmp_path / "model.tan").score_samples(rows), expected)


def test_networks_of_other_programs_have_no_ranges_but_unseen_states(tmp_path):
    text = """network rain { }
    variable class { type discrete [ 2 ] { yes, no }; }
    variable grass { type discrete [ 2 ] { wet, dry }; }
    probability ( class ) { table 0.25, 0.75; }
    probability ( grass | class ) { (yes) 1, 0; (no) 0.5, 0.5; }"""
    (tmp_path / "rain.bif").write_text(text)
    model = read_bif(tmp_path / "rain.bif", handle_unknown="missing")
    rows = pd.DataFrame({"grass": ["wet", "dry", "green", None]})
    wet, dry, unseen, missing = np.exp(model.score_samples(rows))
    assert (wet, dry, missing) == pytest.approx((0.625, 0.375, 1))
    assert unseen == pytest.approx(1 / 3)  # less than dry; no value of this network is rare


@pytest.mark.filterwarnings("ignore:no value in")
@pytest.mark.parametrize("model", MODELS[:3] + MODELS[4:5] + MODELS[8:], ids=lambda model: repr(model)[:90])
def test_odd_rows_score_less_than_held_out_ordinary_rows(model):
    """Shifted, unseen and permuted rows of breast cancer, with its last column as three categories."""
    values, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(values[:, [0, 1, 2, 3, 4, 5, 6, 20, 21, 22]], columns=list("abcdefghij"))
    frame["j"] = pd.qcut(frame["j"], 3, labels=["small", "medium", "large"]).astype(object)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(frame))
    train, held_out = frame.iloc[order[:380]], frame.iloc[order[380:]]
    model.fit(train, y[order[:380]])
    deviation = train.iloc[:, :9].std()
    shifted, slightly, permuted = held_out.copy(), held_out.copy(), held_out.copy()
    shifted.iloc[:, :9] += 4 * deviation
    slightly["c"] = train["c"].max() + 3 * deviation["c"]  # one number of ten
    for name in frame:
        permuted[name] = rng.permutation(held_out[name].to_numpy())
    ordinary = model.score_samples(held_out)
    is_odd = np.repeat([0, 1], len(held_out))
    found = {}
    odd = {"shifted": shifted, "one far": slightly, "unseen": held_out.assign(j="huge"), "permuted": permuted}
    for kind, rows in odd.items():
        found[kind] = roc_auc_score(is_odd, -np.append(ordinary, model.score_samples(rows)))
    bars = {"shifted": 0.85, "one far": 0.95, "unseen": 0.8, "permuted": 0.8}
    assert all(found[kind] > bar for kind, bar in bars.items()), found
