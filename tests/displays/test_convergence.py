"""Curves along histories: the drawn points are those of the entries."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from tanlearn import (
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    GradientTraining,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import GreedySearch, ParentChange, SimulatedAnnealing
from tanlearn.displays import ConvergenceDisplay
from tanlearn.displays.styles import learner_styles

pytest.importorskip("matplotlib")

SEARCH = [
    ParentChange(k, (k + 1,), score, 2 * k + 1, 10 * k + 5, 0.5 * k) for k, score in enumerate([-3.0, -1.0, -2.0])
]
TRAINING = [ParentChange(0, (), score, k + 1, k + 1, 0.1 * k) for k, score in enumerate([0.1, 0.3])]


@pytest.fixture
def axes():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=50)
    FigureCanvasAgg(figure)
    return list(figure.subplots(2, 1))


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:200, :6], y[:200], X[200:400, :6], y[200:400]


def points(line):
    return line.get_xydata().tolist()


def test_scores_of_one_learner_are_drawn_as_they_are(axes):
    for x, positions in [("seconds", [0, 0.5, 1]), ("n_evaluations", [5, 15, 25]), ("step", [1, 3, 5])]:
        axes[0].clear()
        display = ConvergenceDisplay({"greedy": SEARCH}, x=x).plot(axes)
        assert display.axes_ == axes[:1]
        (line,) = axes[0].lines
        assert points(line) == [list(point) for point in zip(positions, [-3, -1, -2], strict=True)]
        assert line.get_drawstyle() == "steps-post"
        assert axes[0].get_ylabel() == "score"
        assert axes[0].get_xscale() == "linear"


def test_scores_of_several_learners_are_scaled_unless_they_share_an_objective(axes):
    histories = {"greedy": SEARCH, "gradient": TRAINING, "constant": SEARCH[:1]}
    display = ConvergenceDisplay(histories, x="step").plot(axes)
    scaled = [line.get_ydata().tolist() for line in axes[0].lines]
    assert scaled == [[0, 1, 0.5], [0, 1], [1]]
    assert axes[0].get_ylabel() == "score,\nscaled to its range"
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == [*histories]
    np.testing.assert_allclose(display.curves()["greedy"], [[1, 3, 5], [0, 1, 0.5]])
    axes[0].clear()
    ConvergenceDisplay(histories, x="step", share_score=True).plot(axes)
    assert [line.get_ydata().tolist() for line in axes[0].lines] == [[-3, -1, -2], [0.1, 0.3], [-3]]
    assert axes[0].get_ylabel() == "score"


def test_the_axis_is_logarithmic_where_learners_end_far_apart(axes):
    fast = [ParentChange(0, (), 0.0, 1, 1, 0.01)]
    for slow, scale in [(25, "log"), (20, "linear")]:
        other = [ParentChange(0, (), 0.0, 1, slow, 0.2)]
        ConvergenceDisplay({"fast": fast, "slow": other}, x="n_evaluations").plot(axes)
        assert axes[0].get_xscale() == scale


def test_errors_are_drawn_in_percent_with_the_fitted_classifier_at_the_end(axes):
    errors = {"greedy": [(SEARCH[0], 0.25), (SEARCH[1], 0.125)]}
    final = {"greedy": 0.0625, "naive Bayes": 0.5}
    display = ConvergenceDisplay(
        {"greedy": SEARCH, "naive Bayes": []}, errors=errors, final_errors=final, x="step"
    ).plot(axes)
    assert display.axes_ == axes
    along, end, line = axes[1].lines
    assert points(along) == [[1, 25], [3, 12.5]]
    assert points(end) == [[5, 12.5], [5, 6.25]]
    assert set(line.get_ydata()) == {50}
    assert axes[1].get_ylabel() == "held-out error [%]"
    legend = axes[0].get_legend().legend_handles
    assert [handle.get_marker() for handle in legend] == ["o", ""]  # a learner without a search has no end


def test_figures_explain_scores_curves_and_markers(axes):
    errors = {"greedy": [(SEARCH[0], 0.25), (SEARCH[1], 0.125)]}
    final = {"greedy": 0.0625}
    ConvergenceDisplay({"greedy": SEARCH}, errors=errors, final_errors=final, objectives={"greedy": "margin"}).plot(
        axes
    )
    assert axes[0].get_title() == "greedy"
    assert axes[0].get_ylabel() == "score\n(margin)"
    assert axes[0].get_legend() is None
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == [
        "intermediate models",
        "fitted classifier",
    ]
    histories, same = {"greedy": SEARCH, "gradient": TRAINING}, {"greedy": "margin", "gradient": "margin"}
    axes[0].clear()
    ConvergenceDisplay(histories, objectives=same).plot(axes)
    assert axes[0].get_ylabel() == "score\n(margin),\nscaled to its range"
    axes[0].clear()
    ConvergenceDisplay(histories, objectives=same | {"gradient": "minus JointNLL"}).plot(axes)
    assert axes[0].get_ylabel() == "score,\nscaled to its range"
    legend = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert legend == ["greedy\n(margin)", "gradient\n(minus JointNLL)"]
    assert axes[0].get_title() == ""


def test_learners_without_any_search_are_lines_alone(axes):
    display = ConvergenceDisplay({"naive Bayes": [], "forest": []}, final_errors={"naive Bayes": 0.1, "forest": 0.05})
    assert display.plot(axes).axes_ == axes[:1]
    assert [set(line.get_ydata()) for line in axes[0].lines] == [{10}, {5}]


def test_curves_of_classifiers_are_their_histories_and_errors(rows, axes):
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=4))
    models = {
        "greedy": BayesNetClassifier(structure=GreedySearch(score="margin"), encoder=encoder),
        "annealing": BayesNetClassifier(
            structure=SimulatedAnnealing(n_steps=60), parameters=ConjugateGradient(max_iter=3), encoder=encoder
        ),
        "gradient": TANClassifier(loss=ConditionalNLL(), n_epochs=4, calibrate=False, encoder=encoder),
        "naive Bayes": NaiveBayesClassifier(encoder=encoder),
    }
    for model in models.values():
        model.set_params(random_state=0).fit(*rows[:2])
    models["forest"] = RandomForestClassifier(5, random_state=0).fit(*rows[:2])
    display = ConvergenceDisplay.from_estimators(models, *rows, x="step", axes=axes)
    assert list(display.histories) == [
        "greedy",
        "annealing, structure",
        "annealing, parameters",
        "gradient",
        "naive Bayes",
        "forest",
    ]
    assert display.histories["greedy"] == models["greedy"].structure_learner_.history_
    assert display.histories["annealing, parameters"] == models["annealing"].parameters_.history_
    assert display.histories["gradient"] == models["gradient"].history_
    assert display.errors["greedy"] == models["greedy"].learning_errors(*rows)["structure"]
    assert display.errors["gradient"] == models["gradient"].learning_errors(*rows)["training"]
    assert set(display.errors) == {"greedy", "annealing, structure", "gradient"}
    assert display.objectives == {
        "greedy": "margin",
        "annealing, structure": "margin",
        "annealing, parameters": "minus the loss",
        "gradient": "minus ConditionalNLL",
    }
    expected = {name: 1 - model.score(*rows[2:]) for name, model in models.items()}
    expected["annealing, parameters"] = expected.pop("annealing")
    assert display.final_errors == pytest.approx(expected)


def test_without_test_rows_the_errors_are_those_of_validation_rows(rows, axes):
    training = GradientTraining(validation_fraction=0.3)
    model = TANClassifier(loss=ConditionalNLL(), n_epochs=4, training=training, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # of columns with a single interval
        model.fit(*rows[:2])
    ConvergenceDisplay.from_estimator(model, axes=axes)
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), [100 * r.validation_error for r in model.history_])
    np.testing.assert_allclose(axes[0].lines[0].get_xydata(), [[r.seconds, -r.loss] for r in model.history_])
    assert axes[1].get_ylabel() == "validation error [%]"
    search = BayesNetClassifier(structure=GreedySearch(score="margin")).fit(rows[0].round(), rows[1])
    assert ConvergenceDisplay.from_estimator(search, axes=axes).axes_ == axes[:1]


def test_styles_of_ten_learners_differ():
    styles = learner_styles(map(str, range(21)))
    assert len({(style["color"], style["linestyle"]) for style in styles.values()}) == 21
    assert len({style["marker"] for style in list(styles.values())[:7]}) == 7


def test_what_cannot_be_drawn_is_refused(rows, axes):
    with pytest.raises(ValueError, match=r"x must be one of 'seconds', 'n_evaluations', 'step', got 'epoch'"):
        ConvergenceDisplay({"greedy": SEARCH}, x="epoch")
    with pytest.raises(ValueError, match="there are no learners"):
        ConvergenceDisplay({})
    with pytest.raises(ValueError, match="'naive Bayes', 'TAN' has neither"):
        ConvergenceDisplay({"naive Bayes": [], "greedy": SEARCH, "TAN": []})
    with pytest.raises(ValueError, match="learners with a history, but 'other' has none"):
        ConvergenceDisplay({"greedy": SEARCH}, errors={"other": [(SEARCH[0], 0.1)]})
    with pytest.raises(ValueError, match=r"from 0 to 1, got 12\.5 for 'greedy'"):
        ConvergenceDisplay({"greedy": SEARCH}, final_errors={"greedy": 12.5})
    display = ConvergenceDisplay({"greedy": SEARCH}, final_errors={"greedy": 0.1})
    with pytest.raises(ValueError, match="axes must contain 2 axes"):
        display.plot(axes[:1])
    model = NaiveBayesClassifier().fit(rows[0].round(), rows[1])
    with pytest.raises(ValueError, match="X_test and y_test are missing"):
        ConvergenceDisplay.from_estimator(model, *rows[:2])
    with pytest.raises(ValueError, match="'NaiveBayesClassifier' has neither"):
        ConvergenceDisplay.from_estimator(model)
