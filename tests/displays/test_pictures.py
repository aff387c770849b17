"""What displays draw is what the model says: bars, edges, cells and curves, and pixels of rendered pictures."""

import builtins

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_wine

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    Candidates,
    ConditionalNLL,
    GradientTraining,
    JointNLL,
    KTreeClassifier,
    NaiveBayesClassifier,
    Structure,
    TANClassifier,
)
from tanlearn.displays import (
    ExplanationDisplay,
    ForestImportanceDisplay,
    ParetoDisplay,
    ReliabilityDisplay,
    StructureDisplay,
    TableDisplay,
    TrainingDisplay,
)
from tanlearn.displays.structure import edge_information

matplotlib = pytest.importorskip("matplotlib")
NAMES = ["town", "size", "age", "job"]
STRUCTURE = Structure([-1, 0, 0, 1])


@pytest.fixture
def ax():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=50)
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["Graz", "Linz", "Wels"], 300)})
    X["size"] = rng.normal(size=300) + (X["town"] == "Graz")
    X["age"] = rng.choice(["young", "old"], 300)
    X["job"] = rng.choice(["a", "b"], 300)
    y = np.where((X["size"] > 0.5) ^ (rng.random(300) < 0.1), "yes", "no")
    X.loc[::7, "age"] = None
    return X, y


@pytest.fixture(scope="module")
def model(table):
    return BayesNetClassifier(structure=STRUCTURE).fit(*table)


def pixels(ax):
    """Return a rendered figure in blocks of 10 pixels, so that edges of letters and lines do not matter."""
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].astype(float)
    return image.reshape(20, 10, 30, 10, 3).mean(axis=(1, 3))


def test_explanations_are_bars_that_add_up_to_the_log_odds(model, table, ax):
    X, _ = table
    for row in range(8):
        ax.clear()
        display = ExplanationDisplay.from_estimator(model, X[row : row + 1], most=2, ax=ax)
        log_p = np.sort(model.predict_log_proba(X[row : row + 1])[0])
        lengths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(lengths[:-1], [length for _, length in display.bars_])
        assert sum(lengths[:-1]) == pytest.approx(log_p[1] - log_p[0], abs=1e-9)
        assert lengths[-1] == pytest.approx(sum(lengths[:-1]))
        assert len(display.bars_) == 4  # frequencies, two features, the others
        starts = [bar.get_x() for bar in ax.patches][:-1]
        np.testing.assert_allclose(starts, np.cumsum([0, *lengths[:-2]]), atol=1e-9)
        assert abs(lengths[1]) >= abs(lengths[2])
        assert display.target == model.predict(X[row : row + 1])[0]
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown[0] == "class frequencies"
    assert shown[3:] == ["2 other features", "log odds"]


def test_explanations_of_calibrated_models_agree_with_their_probabilities(table, ax):
    X, y = table
    model = TANClassifier(n_epochs=5, random_state=0).fit(X, y)
    assert model.calibration_.temperature != 1
    display = ExplanationDisplay.from_estimator(model, X[3:4], target="no", against="yes", ax=ax)
    log_p = model.predict_log_proba(X[3:4])[0]
    assert display.shares.sum() == pytest.approx(log_p[0] - log_p[1], abs=1e-9)
    forest = BayesForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    display = ExplanationDisplay.from_estimator(forest, X[3:4], target="no", ax=ax)
    log_p = forest.predict_log_proba(X[3:4])[0]
    assert display.shares.sum() == pytest.approx(log_p[0] - log_p[1], abs=1e-9)


def test_labels_of_explanations_tell_values(model, table, ax):
    X, _ = table
    display = ExplanationDisplay.from_estimator(model, X[7:8], ax=ax)
    assert display.labels == [
        f"town = {X.loc[7, 'town']}",
        f"size = {X.loc[7, 'size']:.4g}",
        "age = missing",
        f"job = {X.loc[7, 'job']}",
    ]
    assert ExplanationDisplay.from_estimator(model, pl.from_pandas(X[7:8]), ax=ax).labels == display.labels
    numbers = NaiveBayesClassifier().fit([[0.5], [1.5]], [0, 1])
    assert ExplanationDisplay.from_estimator(numbers, np.array([[1.5]]), ax=ax).labels == ["x0 = 1.5"]


def test_what_cannot_be_explained_is_refused(model, table, ax):
    X, _ = table
    with pytest.raises(ValueError, match=r"one row.*got 2"):
        ExplanationDisplay.from_estimator(model, X[:2], ax=ax)
    with pytest.raises(ValueError, match=r"target must be one of the classes.*'maybe'"):
        ExplanationDisplay.from_estimator(model, X[:1], target="maybe", ax=ax)
    with pytest.raises(ValueError, match=r"different classes, but both are 'no'"):
        ExplanationDisplay.from_estimator(model, X[:1], target="no", against="no", ax=ax)
    with pytest.raises(ValueError, match="most must be at least 1"):
        ExplanationDisplay.from_estimator(model, X[:1], most=0, ax=ax)
    with pytest.raises(ValueError, match="probability 0"):
        ExplanationDisplay(np.array([np.inf, 0.0]), ["x"], target=0, against=1)
    with pytest.raises(ValueError, match="one fewer"):
        ExplanationDisplay(np.zeros(3), ["x"], target=0, against=1)
    with pytest.raises(TypeError, match="no explain"):
        ExplanationDisplay.from_estimator(object(), X[:1], ax=ax)


def edges(ax):
    """Return from where to where the arrows of a picture lead."""
    arrows = [text for text in ax.texts if not text.get_text() and hasattr(text, "arrow_patch")]
    return {(tuple(np.round(arrow.xyann, 6)), tuple(np.round(arrow.xy, 6))) for arrow in arrows}


def test_structures_are_drawn_with_all_edges_and_names(model, ax):
    display = StructureDisplay.from_estimator(model, class_name="sold", ax=ax)
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert {*NAMES, "sold"} <= set(places)
    wanted = {(places["town"], places["size"]), (places["town"], places["age"]), (places["size"], places["job"])}
    drawn = edges(ax)
    assert len(drawn) == 4  # and that of the class
    assert {(tuple(np.round(a, 6)), tuple(np.round(b, 6))) for a, b in wanted} < drawn
    of_edges, _ = edge_information(model.structure_, model.tables_)
    strongest = np.unravel_index(of_edges.argmax(), of_edges.shape)
    assert display._widths()[strongest] == pytest.approx(3.0)
    again = display.plot(ax)
    assert again is display
    assert display.figure_ is ax.figure


def test_information_of_edges_is_that_of_a_table_written_out():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (60, 3)), rng.integers(0, 2, 60)
    model = BayesNetClassifier(structure=Structure([-1, 0, 1])).fit(X, y)
    of_edges, of_features = edge_information(model.structure_, model.tables_)
    prior = np.exp(model.tables_.log_prior)
    first, second, third = (np.exp(np.asarray(model.tables_[i])) for i in range(3))
    joint = np.einsum("c,ac,bac,dbc->abdc", prior, first, second, third)

    def given_class(p):  # of a, b and the class
        p_class, p_a, p_b = p.sum((0, 1)), p.sum(1), p.sum(0)
        return sum(
            p[a, b, c] * np.log(p[a, b, c] * p_class[c] / p_a[a, c] / p_b[b, c]) for a, b, c in np.ndindex(p.shape)
        )

    np.testing.assert_allclose(of_edges[1:, 0], [given_class(joint.sum(2)), given_class(joint.sum(0))], rtol=1e-9)
    third_and_class = joint.sum((0, 1))
    outer = third_and_class.sum(1, keepdims=True) * third_and_class.sum(0)
    assert of_features[2] == pytest.approx((third_and_class * np.log(third_and_class / outer)).sum())


def test_two_parents_have_two_edges_of_the_probability_of_both(ax):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 4))
    options = {"n_epochs": 3, "loss": ConditionalNLL(), "calibrate": False, "random_state": 0}
    model = KTreeClassifier(candidates=Candidates("all", ordering=range(4)), **options).fit(
        X, X[:, 0] ^ X[:, 1] ^ X[:, 2]
    )
    display = StructureDisplay.from_estimator(model, ax=ax)
    assert len(edges(ax)) == model.structure_.n_edges + 1
    two = np.flatnonzero((model.structure_.parents >= 0).all(axis=1))
    assert two.size
    for i in two:
        parents = tuple(model.structure_.parents[i].tolist())
        assert set(display.weights[i]) == {model.structure_probabilities_[i][parents]}
    assert not (display.weights[model.structure_.parents < 0]).any()
    with pytest.raises(ValueError, match="cannot show weights='information'"):
        StructureDisplay.from_estimator(model, weights="information", ax=ax)


def test_pixels_have_arcs_and_shades(ax):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.integers(0, 2, (200, 6))
    X[:, 4] = y
    model = BayesNetClassifier(structure=Structure([-1, 0, 1, 0, -1, 4])).fit(X, y)
    StructureDisplay.from_estimator(model, image_shape=(2, 3), ax=ax)
    assert edges(ax) == {((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 0), (0, 1)), ((1, 1), (2, 1))}
    shades = ax.images[0].get_array()
    assert shades.shape == (2, 3)
    assert shades.argmax() == 4
    with pytest.raises(ValueError, match=r"6 pixels, one per feature, got \(2, 2\)"):
        StructureDisplay.from_estimator(model, image_shape=(2, 2), ax=ax)


def test_large_structures_have_dots_and_few_names(ax):
    parent = np.r_[-1, np.arange(199) // 3]
    StructureDisplay(Structure(parent)).plot(ax)
    assert len(ax.collections[0].get_offsets()) == 200
    assert 10 <= sum(bool(text.get_text()) for text in ax.texts) <= 20


def test_what_is_no_picture_of_a_structure_is_refused(model, ax):
    with pytest.raises(ValueError, match="cycle"):
        StructureDisplay(Structure([1, 0], allow_cycles=True))
    with pytest.raises(ValueError, match="feature_names must contain 4 names"):
        StructureDisplay(STRUCTURE, feature_names=["a"])
    with pytest.raises(ValueError, match=r"shape of structure.parents, \(4, 2\)"):
        StructureDisplay(STRUCTURE, weights=np.ones(4))
    with pytest.raises(ValueError, match=r"relevance must have shape \(4,\)"):
        StructureDisplay(STRUCTURE, relevance=np.ones(3))
    with pytest.raises(ValueError, match="weights must be one of"):
        StructureDisplay.from_estimator(model, weights="thick", ax=ax)
    with pytest.raises(ValueError, match="cannot show weights='probability'"):
        StructureDisplay.from_estimator(model, weights="probability", ax=ax)
    with pytest.raises(TypeError, match="no structure_"):
        StructureDisplay.from_estimator(NaiveBayesClassifier(), ax=ax)


def test_tables_show_probabilities_with_names(model, ax):
    display = TableDisplay.from_estimator(model, "size", ax=ax)
    assert display.columns == [f"{c}, {town}" for town in ("Graz", "Linz", "Wels") for c in ("no", "yes")]
    assert len(display.values) == 2
    np.testing.assert_allclose(display.table, np.exp(np.asarray(model.tables_[1])).reshape(2, 6), rtol=1e-9)
    np.testing.assert_allclose(ax.images[0].get_array(), display.table)
    assert ax.get_xlabel() == "given class, town"
    assert [label.get_text() for label in ax.get_yticklabels()] == display.values
    numbers = {text.get_text() for text in ax.texts}
    assert f"{display.table[0, 0]:.2f}" in numbers
    with pytest.raises(ValueError, match=r"0 to 3 or a column name.*got 'wage'"):
        TableDisplay.from_estimator(model, "wage", ax=ax)
    with pytest.raises(ValueError, match="got -1"):
        TableDisplay.from_estimator(model, -1, ax=ax)
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        TableDisplay(np.ones((2, 2)), ["a"], ["b", "c"], feature="x")
    with pytest.raises(TypeError, match="no tables_"):
        TableDisplay.from_estimator(NaiveBayesClassifier(), 0, ax=ax)


def test_scores_are_drawn_against_the_mean_of_the_classes(ax):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 3))
    options = {"n_epochs": 2, "loss": ConditionalNLL(), "calibrate": False, "random_state": 0}
    model = KTreeClassifier(**options).fit(X, X[:, 0])
    display = TableDisplay.from_estimator(model, 0, ax=ax)
    assert not display.is_normalized
    by_class = display.table.reshape(2, -1, 2)
    np.testing.assert_allclose(by_class.sum(axis=-1), 0, atol=1e-9)


def test_training_has_a_curve_for_everything_that_is_reported(table):
    training = GradientTraining(validation_fraction=0.2)
    model = TANClassifier(loss=JointNLL(), n_epochs=4, training=training, random_state=0).fit(*table)
    display = TrainingDisplay.from_estimator(model)
    curves = [axes.lines[0].get_xydata()[:, 1] for axes in display.axes_]
    np.testing.assert_allclose(curves[0], [report.loss for report in model.history_])
    np.testing.assert_allclose(curves[1], [report.structure_entropy for report in model.history_])
    np.testing.assert_allclose(curves[2], [100 * report.validation_error for report in model.history_])
    matplotlib.pyplot.close(display.figure_)
    model = TANClassifier(loss=JointNLL(), n_epochs=2, random_state=0).fit(*table)
    display = TrainingDisplay.from_estimator(model)
    assert len(display.axes_) == 2
    with pytest.raises(ValueError, match="axes must contain 2 axes"):
        display.plot(display.axes_[:1])
    matplotlib.pyplot.close(display.figure_)
    with pytest.raises(ValueError, match="at least one epoch"):
        TrainingDisplay([])
    with pytest.raises(TypeError, match="no history_"):
        TrainingDisplay.from_estimator(NaiveBayesClassifier().fit(*table))


def test_reliability_counts_by_bins(ax):
    confidence = np.array([0.55, 0.58, 0.95, 0.97, 1.0])
    display = ReliabilityDisplay(confidence, np.array([True, False, True, True, False]), n_bins=10)
    wanted = 2 / 5 * abs(0.565 - 0.5) + 3 / 5 * abs(np.mean([0.95, 0.97, 1.0]) - 2 / 3)
    assert display.error_ == pytest.approx(wanted)
    display.plot(ax)
    curve = ax.lines[1].get_xydata()
    np.testing.assert_allclose(curve, [[0.565, 0.5], [np.mean([0.95, 0.97, 1.0]), 2 / 3]])
    assert np.isnan(display.error_before_)
    with pytest.raises(ValueError, match="n_bins"):
        ReliabilityDisplay(confidence, confidence > 0, n_bins=0)
    with pytest.raises(ValueError, match="same length"):
        ReliabilityDisplay(confidence, confidence[1:] > 0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        ReliabilityDisplay(confidence * 2, confidence > 0)


def test_reliability_of_a_model_is_with_and_without_calibration(ax):
    X, y = load_wine(return_X_y=True)
    model = TANClassifier(n_epochs=3, random_state=0).fit(X[::2], y[::2])
    display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax)
    p = model.predict_proba(X[1::2])
    np.testing.assert_allclose(display.confidence, p.max(axis=1))
    assert (display.is_right == (model.predict(X[1::2]) == y[1::2])).all()
    joint = np.exp(model.predict_joint_log_proba(X[1::2]))
    np.testing.assert_allclose(display.before, joint.max(axis=1) / joint.sum(axis=1), rtol=1e-6)
    assert display.error_before_ >= 0
    with pytest.raises(ValueError, match=r"y holds 3 in row .*, which is not among the classes: 0, 1, 2"):
        ReliabilityDisplay.from_estimator(model, X, y + 1, ax=ax)


def test_fronts_and_importances(ax):
    display = ParetoDisplay(np.array([1e3, 2e3, 4e3]), np.array([0.3, 0.35, 0.1]), np.array([0, 2])).plot(ax)
    np.testing.assert_allclose(display.ax_.lines[0].get_xydata(), [[1e3, 30], [4e3, 10]])
    with pytest.raises(ValueError, match="equal shapes"):
        ParetoDisplay(np.ones(2), np.ones(3), np.array([0]))
    ax.clear()
    ForestImportanceDisplay(np.array([0.1, 0.4]), ["a", "b"]).plot(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    with pytest.raises(ValueError, match="feature_names must contain 2 names"):
        ForestImportanceDisplay(np.ones(2), ["a"])
    with pytest.raises(TypeError, match="no feature_importances_"):
        ForestImportanceDisplay.from_estimator(object())


def test_rendered_bars_are_where_plain_rectangles_are(ax):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    display = ExplanationDisplay(np.array([1.5, -0.5, 0.4]), ["a", "b"], target="x", against="y").plot(ax)
    figure = Figure(figsize=(6, 4), dpi=50)
    FigureCanvasAgg(figure)
    plain = figure.subplots()
    plain.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    colours = ["#0072b2", "#0072b2", "#d55e00", "#333333"]
    for y, (start, end) in enumerate([(0, 0.4), (0.4, 1.9), (1.9, 1.4), (0, 1.4)]):
        plain.fill_between([start, end], y - 0.325, y + 0.325, color=colours[y], linewidth=0)
    for one in (ax, plain):
        one.set_position([0.2, 0.2, 0.7, 0.6])
        one.axis("off")
        one.set_title("")
    for text in list(ax.texts):
        text.remove()
    assert display.bars_[1] == ("a", 1.5)
    assert np.abs(pixels(ax) - pixels(plain)).mean() < 2  # of 255: thin lines between bars remain
    ax.patches[1].set_width(0.7)
    assert np.abs(pixels(ax) - pixels(plain)).mean() > 2


def test_without_matplotlib_the_remedy_is_reported(model, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"tanlearn\[plot\]"):
        StructureDisplay.from_estimator(model)
