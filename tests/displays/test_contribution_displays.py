"""Curves, bars and heat maps are the contributions of the model, at the positions of the raw values."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    Calibration,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TermNetClassifier,
    load,
)
from tanlearn.baselines import WeightedNaiveBayesClassifier
from tanlearn.displays import ContributionDisplay, FeatureValues, PairContributionDisplay
from tanlearn.displays.feature_values import shortened
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=50, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture(scope="module")
def table():
    """Return a frame of categories and numbers with an outlier and missing values, and two classes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["Graz", "Linz", "Wels"], 300, p=[0.5, 0.3, 0.2])})
    X["size"] = rng.normal(size=300)
    X["age"] = rng.integers(20, 60, 300).astype(float)
    product = X["size"] * (X["age"] - 40)
    y = np.where(product + 10 * (X["town"] == "Graz") + rng.normal(size=300) > 3, "yes", "no")
    X.loc[0, "size"] = 50.0
    X.loc[::10, "town"] = None
    return X, y


@pytest.fixture(scope="module")
def terms(table):
    model = TermNetClassifier().fit(*table)
    assert model.structure_.parent[1] == 2 or model.structure_.parent[2] == 1
    return model


@pytest.fixture(scope="module")
def three():
    """Return a model of three classes, with an edge, and its rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice([*"xyz"], 400), "b": rng.choice([*"uv"], 400), "c": rng.normal(size=400)})
    y = (X["a"] == "x").to_numpy() ^ (X["b"] == "u").to_numpy()
    labels = np.where(rng.random(400) < 0.1, 2, y.astype(int))
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5))
    model = BayesNetClassifier(structure=Structure([-1, 0, -1]), encoder=encoder)
    return model.fit(X, np.array(["no", "so", "yes"])[labels]), X


def log_odds(model, X, target):
    """Return the log probability of a class minus the mean of those of the others."""
    log_p, c = model.predict_log_proba(X), model.classes_.tolist().index(target)
    return log_p[:, c] - np.delete(log_p, c, axis=1).mean(axis=1)


def at_rows(model, X, display):
    """Return the contribution of the value of each row."""
    i = [*X].index(display.values.feature)
    return display.contributions[model.encoder_.encode(X)[i], 0]


@pytest.mark.parametrize("target", ["no", "yes"])
def test_curves_and_pairs_add_up_to_the_log_odds(terms, table, ax, target):
    X = table[0].dropna()
    total = np.zeros(len(X))
    for name in X:
        total += at_rows(terms, X, ContributionDisplay.from_estimator(terms, X, name, target=target, ax=ax))
        ax.clear()
    codes = terms.encoder_.encode(X)
    for i, j in [(i, j) for i, j in enumerate(terms.structure_.parent) if j >= 0]:
        pair = PairContributionDisplay.from_estimator(terms, X, (int(i), int(j)), target=target)
        total += pair.contributions[codes[i], codes[j]]
        matplotlib.pyplot.close(pair.figure_)
    difference = log_odds(terms, X, target) - total
    np.testing.assert_allclose(difference, difference.mean(), atol=1e-8)


def test_without_edges_a_curve_is_that_of_explain_around_its_mean(three, ax):
    model, X = three
    shares = model.explain(X)[:, 2]
    for target, c in (("no", 0), ("yes", 2)):
        ax.clear()
        display = ContributionDisplay.from_estimator(model, X, "c", target=target, ax=ax)
        odds = shares[:, c] - np.delete(shares, c, axis=1).mean(axis=1)
        np.testing.assert_allclose(at_rows(model, X, display), odds - odds.mean(), atol=1e-9)
        assert display.against == "the others"
        assert display.standard_errors is None


def test_temperatures_of_calibrations_divide_curves(three, ax):
    model, X = three
    before = ContributionDisplay.from_estimator(model, X, "a", ax=ax).contributions
    calibration, model.calibration_ = model.calibration_, Calibration(temperature=2.5)
    after = ContributionDisplay.from_estimator(model, X, "a", ax=ax).contributions
    model.calibration_ = calibration
    np.testing.assert_allclose(before, 2.5 * after, rtol=1e-12)


def test_numbers_have_steps_at_their_cut_points_with_bands(terms, table, ax):
    X, _ = table
    display = ContributionDisplay.from_estimator(terms, X, "size", ax=ax)
    (curve,) = [patch for patch in ax.patches if hasattr(patch, "get_data") and len(patch.get_data().values) > 3]
    values, edges, _ = curve.get_data()
    np.testing.assert_allclose(values, display.contributions[:, 0])
    np.testing.assert_allclose(edges[1:-1], terms.encoder_.discretizer_.cut_points_[0])
    assert (edges[0], edges[-1]) == (X["size"].min(), 50)
    errors = terms.standard_errors_[1][:, 1]
    corners = ax.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx((values + 2 * errors).max())
    assert corners[:, 1].min() == pytest.approx((values - 2 * errors).min())
    assert display.classes == ["yes"]
    assert "yes against no" in ax.get_ylabel().replace("\n", " ")
    low, high = ax.get_xlim()
    assert low == X["size"].min()
    assert high < 10  # not 50, the outlier
    assert "values from" in ax.get_xlabel()
    assert "to 50" in ax.get_xlabel()


def test_the_histogram_counts_rows_in_the_shown_range(terms, table, ax):
    X, _ = table
    display = ContributionDisplay.from_estimator(terms, X, "size", sample_weight=np.full(300, 2), ax=ax)
    low, high = display.values.shown_range
    counts, edges = display.values.row_counts, display.values.row_edges
    assert counts.sum() == 2 * ((X["size"] >= low) & (X["size"] <= high)).sum() == 2 * 299
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        assert count == 2 * ((X["size"] >= left) & (X["size"] < right)).sum() or right == high
    heights = [bar.get_height() for bar in ax.containers[0]]
    np.testing.assert_allclose(np.array(heights) / max(heights), counts / counts.max())


def test_categories_have_bars_and_error_bars(terms, table, ax):
    X, _ = table
    display = ContributionDisplay.from_estimator(terms, X, "town", ax=ax)
    bars, rows = ax.containers[0], ax.containers[-1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Graz", "Linz", "Wels"]
    np.testing.assert_allclose([bar.get_width() for bar in bars], display.contributions[:, 0])
    counts = [(X["town"] == town).sum() for town in ("Graz", "Linz", "Wels")]
    widths = np.array([bar.get_width() for bar in rows])
    np.testing.assert_allclose(widths / widths[0], np.array(counts) / counts[0])
    segments = ax.collections[0].get_segments()
    lengths = [segment[1, 0] - segment[0, 0] for segment in segments]
    np.testing.assert_allclose(lengths, 4 * terms.standard_errors_[0][:, 1])
    assert display.contributions[0, 0] > 0 > display.contributions[1, 0]
    assert "10.0% of rows missing" in ax.get_xlabel()
    assert ax.get_ylabel() == "town"


def test_the_most_frequent_categories_are_shown(terms, table, ax):
    X, _ = table
    ContributionDisplay.from_estimator(terms, X[X["town"] != "Graz"], "town", most=2, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Linz", "Wels"]
    assert "2 most frequent of 3 values" in ax.get_xlabel()
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        ContributionDisplay.from_estimator(terms, X, "town", most=0, ax=ax)


def test_each_of_several_classes_has_a_curve(three, ax):
    model, X = three
    display = ContributionDisplay.from_estimator(model, X, "a", ax=ax)
    assert display.classes == ["no", "so", "yes"]
    assert len([bars for bars in ax.containers if len(bars) == 3]) == 4  # and that of the rows
    np.testing.assert_allclose(display.contributions.sum(axis=1), 0, atol=1e-12)
    entries = [text.get_text() for text in ax.get_legend().get_texts()]
    assert entries == ["no", "so", "yes", "rows"]
    ax.clear()
    curves = ContributionDisplay.from_estimator(model, X, "c", ax=ax)
    assert [patch.get_label() for patch in ax.patches[:3]] == curves.classes


def test_bands_of_several_classes_share_an_entry_of_the_legend(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    model = TermNetClassifier(max_parents=0).fit(X, np.digitize(X[:, 0] + rng.normal(size=150), [-0.5, 0.5]))
    display = ContributionDisplay.from_estimator(model, X, 0, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [*"012", "± 2 standard errors", "rows"]
    assert display.standard_errors.shape == display.contributions.shape
    ax.figure.canvas.draw()


def test_of_many_classes_seven_are_shown(ax):
    contributions = np.outer([-1, 1], [5, 1, 2, 3, 9, 4, 8, 7, 6])
    for values in (FeatureValues("x", cut_points=[1]), FeatureValues("x", categories=["a", "b"])):
        ax.clear()
        ContributionDisplay(contributions, values, classes=[*"abcdefghi"]).plot(ax)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [*"adefghi"]
        assert "7 of 9 classes, those with the largest range" in ax.get_xlabel().replace("\n", " ")
        shapes = [p.get_facecolor() if values.categories else p.get_edgecolor() for p in ax.patches]
        assert len({*shapes}) == 7


def test_weights_equal_repeated_rows(terms, table, ax):
    X, _ = table
    weight = np.arange(300) % 3
    one = ContributionDisplay.from_estimator(terms, X, "age", sample_weight=weight, ax=ax)
    two = ContributionDisplay.from_estimator(terms, X.iloc[np.repeat(np.arange(300), weight)], "age", ax=ax)
    np.testing.assert_allclose(one.contributions, two.contributions, atol=1e-9)
    np.testing.assert_array_equal(one.values.row_counts, two.values.row_counts)
    unweighted = ContributionDisplay.from_estimator(terms, X, "age", ax=ax)
    assert np.abs(one.contributions - unweighted.contributions).max() > 1e-4


def test_a_constant_feature_and_a_column_without_values_contribute_nothing(ax):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "same": 2.5, "none": [np.nan] * 80})
    model = TermNetClassifier(max_parents=0).fit(X, X["a"] > 0)
    for name in ("same", "none"):
        ax.clear()
        display = ContributionDisplay.from_estimator(model, X, name, ax=ax)
        assert display.contributions.tolist() == [[0.0]]
        assert display.standard_errors.tolist() == [[0.0]]
        ax.figure.canvas.draw()
    assert "100.0% of rows missing" in ax.get_xlabel()


def test_what_has_no_contributions_is_refused(table, terms, ax):
    X, y = table
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5))
    for model in (
        BayesForestClassifier(n_estimators=2, random_state=0),
        BoostedTermsClassifier(max_terms=5, random_state=0),
        WeightedNaiveBayesClassifier(encoder=encoder),
    ):
        with pytest.raises(TypeError, match=rf"must have a single network, .* got {type(model).__name__}"):
            ContributionDisplay.from_estimator(model.fit(X, y), X, "age", ax=ax)
    with pytest.raises(ValueError, match=r"0 to 2 or a column name.*got 'wage'"):
        ContributionDisplay.from_estimator(terms, X, "wage", ax=ax)
    with pytest.raises(ValueError, match=r"target must be one of the classes.*'maybe'"):
        ContributionDisplay.from_estimator(terms, X, "age", target="maybe", ax=ax)
    with pytest.raises(ValueError, match="sample_weight must be non-negative, but is -1"):
        ContributionDisplay.from_estimator(terms, X, "age", sample_weight=-np.ones(300), ax=ax)
    with pytest.raises(ValueError, match="feature names"):
        ContributionDisplay.from_estimator(terms, X[["age", "size", "town"]], "age", ax=ax)
    zeros = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.0)).fit([["a"], ["b"], ["b"]], [0, 1, 1])
    with pytest.raises(ValueError, match="log odds need positive probabilities"):
        ContributionDisplay.from_estimator(zeros, [["a"], ["b"]], 0, ax=ax)
    values = FeatureValues("town", categories=["a", "b"])
    with pytest.raises(ValueError, match=r"contributions must have shape \(2, 1\).*got \(3, 1\)"):
        ContributionDisplay(np.zeros((3, 1)), values, classes=["yes"])
    with pytest.raises(ValueError, match=r"standard_errors must have shape \(2, 1\)"):
        ContributionDisplay(np.zeros((2, 1)), values, classes=["yes"], standard_errors=np.zeros(2))
    with pytest.raises(ValueError, match="contributions must be finite, got inf in row 1"):
        ContributionDisplay([[0.0], [np.inf]], values, classes=["yes"])


def test_displays_can_be_made_without_a_classifier(ax):
    values = FeatureValues("age", cut_points=[30, 60])
    display = ContributionDisplay([[-1], [0], [1]], values, classes=["ill"], against="well").plot(ax)
    assert display.ax_ is ax
    assert ax.get_legend() is None
    assert values.edges.tolist() == [0, 30, 60, 90]
    ax.clear()
    names = FeatureValues("town", categories=["a", "b", "c"])
    ContributionDisplay([[-1], [0], [1]], names, classes=["ill"]).plot(ax, most=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def test_values_of_features_are_validated():
    for wrong in ({}, {"categories": ["a"], "cut_points": [1.0]}):
        with pytest.raises(ValueError, match="exactly one of categories and cut_points of 'x' must be given"):
            FeatureValues("x", **wrong)
    with pytest.raises(ValueError, match=r"cut points of 'x' must be strictly increasing, got \[2.0, 1.0\]"):
        FeatureValues("x", cut_points=[2, 1])
    with pytest.raises(ValueError, match=r"row_counts of 'x' must have shape \(2,\)"):
        FeatureValues("x", categories=["a", "b"], row_counts=[1])
    with pytest.raises(ValueError, match=r"row_counts of 'x' must have shape \(3,\)"):
        FeatureValues("x", cut_points=[1], row_edges=[0, 1, 2, 3], row_counts=[1])
    outside = FeatureValues("x", cut_points=[1, 2, 3], value_range=(5, 5))  # other rows than those of training
    assert (np.diff(outside.edges) > 0).all()
    assert FeatureValues("x", cut_points=[], value_range=(4, 4)).edges.tolist() == [4, 5]


def test_long_names_have_two_lines_and_stay_different():
    long = [f"a category with a very long name that differs at its end {k}" for k in range(3)]
    assert len({*shortened(long)}) == 3
    assert all(len(line) <= 24 for name in shortened(long) for line in name.split("\n"))
    assert all(name.count("\n") == 1 for name in shortened(long))
    assert shortened(["short", "two words"]) == ["short", "two words"]


def test_narrow_figures_have_room_for_labels(terms, table):
    """The picture of a phone: nothing is wider than the figure, and axes keep half of the height."""
    X, _ = table
    long = X.rename(columns={"town": "town of the main residence of the customer"})
    long.iloc[:, 0] = long.iloc[:, 0].map(lambda v: v and f"the municipality of {v} and its surroundings")
    model = TermNetClassifier(max_parents=0).fit(long, table[1])
    for name, one, rows in ((long.columns[0], model, long), ("size", terms, X)):
        figure, axes = matplotlib.pyplot.subplots(figsize=(3.5, 3.2), layout="constrained")
        ContributionDisplay.from_estimator(one, rows, name, ax=axes)
        figure.canvas.draw()
        box, whole = axes.get_tightbbox(), figure.bbox
        assert box.x0 >= 0
        assert box.x1 <= whole.width
        assert axes.get_window_extent().height > 0.5 * whole.height
        matplotlib.pyplot.close(figure)


# ---------------------------------------------------------------------------------------------------------------- pairs


def test_pairs_are_heat_maps_over_raw_values(terms, table, ax):
    X, _ = table
    display = PairContributionDisplay.from_estimator(terms, X, ("size", "age"), ax=ax)
    mesh = ax.collections[0]
    np.testing.assert_allclose(mesh.get_array(), display.contributions.T)
    x, y = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    np.testing.assert_allclose(x[1:-1], terms.encoder_.discretizer_.cut_points_[0])
    np.testing.assert_allclose(y[1:-1], terms.encoder_.discretizer_.cut_points_[1])
    assert mesh.norm.vmin == -mesh.norm.vmax == -np.abs(display.contributions).max()
    assert display.contributions[0, 0] > 0 > display.contributions[-2, 0]
    assert ax.get_ylabel() == "age"
    assert ax.get_xlim()[1] < 10
    ax.clear()
    other = PairContributionDisplay.from_estimator(terms, X, ("age", "size"), ax=ax)
    np.testing.assert_allclose(other.contributions, display.contributions.T, atol=1e-12)


def test_pairs_of_categories_have_numbers(three):
    model, X = three
    display = PairContributionDisplay.from_estimator(model, X, ("a", "b"))
    ax = display.ax_
    assert display.target in ("no", "so")  # contributions to the third class, noise, are smaller
    assert display.against == "the others"
    assert {text.get_text() for text in ax.texts} == {f"{v:+.2f}" for v in display.contributions.ravel()}
    assert [label.get_text() for label in ax.get_xticklabels()] == [*"xyz"]
    assert [label.get_text() for label in ax.get_yticklabels()] == [*"uv"]
    for row, column in itertools.product(range(2), range(3)):
        (text,) = [text for text in ax.texts if text.get_position() == (column, row)]
        assert text.get_text() == f"{display.contributions[column, row]:+.2f}"
    matplotlib.pyplot.close(display.figure_)
    few = PairContributionDisplay.from_estimator(model, X, ("a", "b"), target="yes", most=2)
    assert len(few.ax_.texts) == 4
    assert few.target == "yes"
    assert "2 most frequent of 3 values" in few.ax_.get_xlabel()
    matplotlib.pyplot.close(few.figure_)


def test_combinations_without_rows_are_pale(three, ax):
    model, X = three
    seen = X[~((X["a"] == "x") & (X["b"] == "u"))]
    display = PairContributionDisplay.from_estimator(model, seen, ("a", "b"), ax=ax)
    assert (display.row_counts == 0).tolist() == [[True, False], [False, False], [False, False]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pale: no rows"]
    white = np.ma.getmaskarray(ax.collections[1].get_array())
    np.testing.assert_array_equal(white, display.row_counts.T > 0)
    (text,) = [text for text in ax.texts if text.get_position() == (0, 0)]
    assert text.get_color() == "black"


def test_pairs_without_a_common_table_are_refused(three, ax):
    model, X = three
    with pytest.raises(ValueError, match=r"'a' and 'c' do not.*or another pair: \('a', 'b'\)"):
        PairContributionDisplay.from_estimator(model, X, ("a", "c"), ax=ax)
    naive = NaiveBayesClassifier().fit(X[["a", "b"]], X["c"] > 0)
    with pytest.raises(ValueError, match="the network has no edges"):
        PairContributionDisplay.from_estimator(naive, X[["a", "b"]], ("a", "b"), ax=ax)
    for features in ("ab", ("a",), ("a", "b", "c")):
        with pytest.raises(ValueError, match="features must be two column numbers or names, got"):
            PairContributionDisplay.from_estimator(model, X, features, ax=ax)
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        PairContributionDisplay.from_estimator(model, X, ("a", "b"), most=0, ax=ax)
    first, second = FeatureValues("a", categories=["x", "y"]), FeatureValues("b", cut_points=[1])
    with pytest.raises(ValueError, match=r"row_counts must have shape \(2, 2\)"):
        PairContributionDisplay(np.zeros((2, 2)), first, second, target=1, row_counts=np.zeros(2))
    with pytest.raises(ValueError, match=r"contributions must be finite, got nan at \(0, 1\)"):
        PairContributionDisplay([[0, np.nan], [0, 0]], first, second, target=1)


# ------------------------------------------------------------------------------------------------------ standard errors


def test_standard_errors_are_saved_and_described(terms, tmp_path):
    terms.save(tmp_path / "terms.tan")
    again = load(tmp_path / "terms.tan")
    for one, two in zip(terms.standard_errors_, again.standard_errors_, strict=True):
        np.testing.assert_array_equal(one, two)
    described = json.loads(json.dumps(terms.describe()))["features"]
    for feature, errors in zip(described, terms.standard_errors_, strict=True):
        assert feature["standard_errors"] == errors.tolist()


def test_other_classifiers_have_no_standard_errors(three):
    model, _ = three
    assert "standard_errors" not in model.describe()["features"][0]


# ------------------------------------------------------------------------------------------ category of missing values


@pytest.fixture(scope="module")
def with_missing():
    """Return a classifier of numbers that are missing in class "yes" more often, and its rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["size", "age"])
    y = np.where(X["size"] * X["age"] + rng.normal(size=300) / 2 > 0, "yes", "no")
    X.loc[(y == "yes") & (rng.random(300) < 0.4), "size"] = np.nan
    X.loc[0, "size"] = 50.0
    model = TermNetClassifier().fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [True, False]
    assert (model.structure_.parents >= 0).any()
    return model, X


def test_the_category_of_missing_values_is_the_last_interval(with_missing, ax):
    model, X = with_missing
    display = ContributionDisplay.from_estimator(model, X, "size", ax=ax)
    values, curve = display.values, display.contributions[:, 0]
    assert len(curve) == model.encoder_.n_states_[0] == values.n_values == len(values.edges) - 1
    assert curve[-1] > 1  # evidence for "yes"
    assert (np.diff(values.edges) > 0).all()
    low, high = values.shown_range
    assert high == values.edges[-1]
    assert values.edges[-2] < 10
    assert values.notes()[0].endswith("to 50")  # the outlier is outside of the axis
    assert f"beyond {values.edges[-2]:.4g}: missing values" in values.notes()
    assert f"{X['size'].isna().mean():.1%} of rows missing" in values.notes()
    assert ax.get_xlim() == (low, high)
    assert values.row_counts.sum() == X["size"].between(*values.row_edges[[0, -1]]).sum()
    age = ContributionDisplay.from_estimator(model, X, "age")
    assert not age.values.has_missing_category
    assert len(age.contributions) == model.encoder_.n_states_[1]


def test_heat_maps_have_a_strip_of_missing_values(with_missing, ax):
    model, X = with_missing
    display = PairContributionDisplay.from_estimator(model, X, ("age", "size"), ax=ax)
    assert display.contributions.shape == (model.encoder_.n_states_[1], model.encoder_.n_states_[0])
    assert 0 < display.row_counts[:, -1].max() < X["size"].isna().sum()  # counts of groups of ages
    assert ax.get_ylim()[1] == display.second.edges[-1]
