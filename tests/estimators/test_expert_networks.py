"""Networks of experts as prior knowledge: updates by rows against the posterior mean from raw frequencies."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import HybridCV, NaiveBayesClassifier, load, read_bif, read_xmlbif, save, write_bif, write_xmlbif

EXPERT = """network survival { }
variable survived { type discrete [ 2 ] { yes, no }; }
variable sex { type discrete [ 2 ] { male, female }; }
variable pclass { type discrete [ 3 ] { first, second, third }; }
probability ( survived ) { table 0.4, 0.6; }
probability ( pclass | survived ) { (yes) 0.5, 0.3, 0.2; (no) 0.2, 0.2, 0.6; }
probability ( sex | survived, pclass ) {
  (yes, first) 0.3, 0.7; (no, first) 0.9, 0.1;
  (yes, second) 0.2, 0.8; (no, second) 0.9, 0.1;
  (yes, third) 0.5, 0.5; (no, third) 1.0, 0.0;
}
"""
P_CLASS = {"yes": 0.4, "no": 0.6}
P_PCLASS = {"yes": {"first": 0.5, "second": 0.3, "third": 0.2}, "no": {"first": 0.2, "second": 0.2, "third": 0.6}}
P_MALE = {("yes", "first"): 0.3, ("yes", "second"): 0.2, ("yes", "third"): 0.5} | {
    ("no", "first"): 0.9,
    ("no", "second"): 0.9,
    ("no", "third"): 1.0,
}


@pytest.fixture
def path(tmp_path):
    """Return the path of the expert's network."""
    file = tmp_path / "expert.bif"
    file.write_text(EXPERT)
    return file


def passengers(seed, n=40, missing=0.0):
    """Return random passengers with their classes and weights."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"sex": rng.choice(["male", "female"], n), "pclass": rng.choice(["first", "third"], n)})
    X = X.where(rng.random(X.shape) >= missing, None)
    return X, rng.choice(["yes", "no"], n), rng.integers(1, 4, n)


def posterior_mean(X, y, weight, s):
    """Return log p(class, sex, pclass) of all combinations, from loops over the rows."""
    rows = list(zip(X["sex"], X["pclass"], y, weight, strict=True))
    count = lambda meets: sum(w for *row, w in rows if meets(*row))  # noqa: E731
    scores = {}
    for sex in ("male", "female"):
        for pclass in ("first", "second", "third"):
            for c in ("yes", "no"):
                p = (count(lambda a, b, k: k == c) + s * P_CLASS[c]) / (count(lambda a, b, k: True) + s)  # noqa: B023
                n = count(lambda a, b, k: k == c and isinstance(b, str))  # noqa: B023
                p *= (count(lambda a, b, k: (b, k) == (pclass, c)) + s * P_PCLASS[c][pclass]) / (n + s)  # noqa: B023
                male = P_MALE[c, pclass]
                n = count(lambda a, b, k: (b, k) == (pclass, c) and isinstance(a, str))  # noqa: B023
                own = count(lambda a, b, k: (a, b, k) == (sex, pclass, c))  # noqa: B023
                p *= (own + s * (male if sex == "male" else 1 - male)) / (n + s)
                scores[sex, pclass, c] = p
    return scores


@pytest.mark.parametrize("size", [1, 20.5])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_updates_are_posterior_means(path, size, missing):
    model = read_bif(path, class_name="survived", equivalent_sample_size=size)
    X, y, weight = passengers(0, missing=missing)
    for part in (slice(0, 15), slice(15, None)):  # in batches, and in another order of the columns
        model.partial_fit(X[part][model.feature_names_in_], y[part], sample_weight=weight[part])
    for (sex, pclass, c), p in posterior_mean(X, y, weight, size).items():
        row = pd.DataFrame([{"sex": sex, "pclass": pclass}])[model.feature_names_in_]
        with np.errstate(divide="ignore"):
            expected = np.log(p)
        found = model.predict_joint_log_proba(row)[0, model.classes_.tolist().index(c)]
        assert found == pytest.approx(expected, abs=1e-12)


def test_without_rows_the_network_is_that_of_the_file(path):
    model, plain = (
        read_bif(path, class_name="survived", equivalent_sample_size=5),
        read_bif(path, class_name="survived"),
    )
    assert np.array_equal(model.tables_.cells, plain.tables_.cells)
    with pytest.raises(ValueError, match="partial_fit adds rows to counts, but"):
        plain.partial_fit(passengers(0)[0][plain.feature_names_in_], passengers(0)[1])


def test_a_large_sample_size_keeps_the_network_and_a_small_one_the_frequencies(path):
    X, y, _ = passengers(1, 200)
    found = {}
    for size in (1e-9, 1e9):
        model = read_bif(path, class_name="survived", equivalent_sample_size=size)
        model.partial_fit(X[model.feature_names_in_], y)
        found[size] = np.exp(model.tables_.log_prior)
    assert found[1e9] == pytest.approx([0.6, 0.4])
    assert found[1e-9] == pytest.approx([np.mean(y == "no"), np.mean(y == "yes")])


def test_xml_files_copies_and_model_files(tmp_path, path):
    X, y, _ = passengers(2)
    expert = read_bif(path, class_name="survived")
    write_xmlbif(expert, tmp_path / "expert.bifxml")
    first = read_bif(path, class_name="survived", equivalent_sample_size=10)
    second = read_xmlbif(tmp_path / "expert.bifxml", class_name="survived", equivalent_sample_size=10)
    for model in (first, second):
        model.partial_fit(X[model.feature_names_in_], y)
    assert second.tables_.cells == pytest.approx(first.tables_.cells, abs=1e-12)
    save(first, tmp_path / "model.tan", counts=True)
    loaded = load(tmp_path / "model.tan").partial_fit(X[first.feature_names_in_], y)
    assert np.array_equal(loaded.tables_.cells, first.partial_fit(X[first.feature_names_in_], y).tables_.cells)
    assert clone(first).fit(X, y).n_features_in_ == 2
    write_bif(first, tmp_path / "updated.bif")
    again = read_bif(tmp_path / "updated.bif", class_name="survived")
    assert np.array_equal(again.tables_.cells, first.tables_.cells)


def test_invalid_arguments_are_refused(tmp_path, path):
    for size in (0, -1.0, np.inf, np.nan, "10"):
        with pytest.raises(ValueError, match="equivalent_sample_size must be a positive number of rows, got"):
            read_bif(path, class_name="survived", equivalent_sample_size=size)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (200, 4)), rng.integers(0, 2, 200)
    X[:, 0] ^= y ^ (rng.random(200) < 0.3)
    X[:, 1] = X[:, 0]
    calibrated = NaiveBayesClassifier(parameters=HybridCV(), random_state=0).fit(X, y)
    assert calibrated.calibration_.temperature != 1
    write_bif(calibrated, tmp_path / "calibrated.bif")
    with pytest.raises(ValueError, match="the probabilities of the network are calibrated, so rows cannot"):
        read_bif(tmp_path / "calibrated.bif", equivalent_sample_size=10)
