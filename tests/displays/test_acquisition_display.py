"""Curves of errors over observed features: what is drawn is what the curve contains."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tanlearn import BayesForestClassifier, NaiveBayesClassifier
from tanlearn.displays import AcquisitionCurveDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=50)
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return NaiveBayesClassifier().fit(X[::2], y[::2]), X[1::2], y[1::2]


COSTS = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(("x", "label"), [("features", "observed features"), ("cost", "mean cost")])
@pytest.mark.parametrize(("measure", "scale"), [("error", 100), ("log_loss", 1)])
def test_lines_are_the_curves(iris, ax, x, label, measure, scale):
    options = {"x": x, "measure": measure, "costs": COSTS, "random_state": 1}
    display = AcquisitionCurveDisplay.from_estimator(*iris, ax=ax, **options)
    curve = display.curve
    values, of_all = (
        (curve.errors, curve.error_of_all) if measure == "error" else (curve.log_losses, curve.log_loss_of_all)
    )
    assert sorted(display.lines_) == ["adaptive", "all", "fixed", "random"]
    for order, numbers in values.items():
        positions, heights = display.lines_[order].get_data()
        np.testing.assert_allclose(heights, scale * numbers)
        np.testing.assert_allclose(positions, curve.costs[order] if x == "cost" else np.arange(5))
    assert display.lines_["all"].get_ydata()[0] == pytest.approx(scale * of_all)
    assert label in ax.get_xlabel()
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown[:3] == ["best next feature of each row", "best fixed order", "random order"]
    assert shown[3].startswith("all features: ")
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_random_orders_may_be_left_out(iris, ax):
    display = AcquisitionCurveDisplay.from_estimator(*iris, ax=ax, n_random=0, n_features=2)
    assert len(ax.lines) == 3
    assert len(display.lines_["fixed"].get_xdata()) == 3


def test_invalid_arguments_are_refused(iris, ax):
    curve = iris[0].acquisition_curve(*iris[1:], n_random=0)
    with pytest.raises(ValueError, match="x must be 'features' or 'cost', got 'costs'"):
        AcquisitionCurveDisplay(curve).plot(ax, x="costs")
    with pytest.raises(ValueError, match="measure must be 'error' or 'log_loss', got 'auc'"):
        AcquisitionCurveDisplay(curve).plot(ax, measure="auc")
    with pytest.raises(TypeError, match="BayesForestClassifier has no acquisition_curve"):
        AcquisitionCurveDisplay.from_estimator(BayesForestClassifier(), *iris[1:])
