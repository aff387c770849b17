"""Figure 1 of differentiable TAN from a training on letter: four stages of structure learning.

    python -m benchmarks.paper.differentiable_tan.stages    # trains for a few seconds, then draws the figure

The paper draws its figure by hand. Here, TAN All is trained on the first six features of letter that have several
values, with the epochs, a learning rate and the initial values of the paper. The width of an edge is its probability.
"""

import json
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.data import BATCH_SIZES, published_folds
from benchmarks.shared.reports import paragraph, picture
from tanlearn import Candidates, GradientTraining, Hybrid, TableEncoder, TANClassifier

RESULTS = Path(__file__).parent / "results" / "stages.json"
PATH = Path(__file__).parent / "figures" / "figure1.png"
NAME, N_FEATURES, N_EPOCHS = "letter", 6, 500
LOSS = Hybrid(trade_off=100.0, gamma=3.0, eta=10.0)


def estimator():
    """Return the classifier of the figure."""
    training = GradientTraining(
        learning_rate=0.03,
        structure_learning_rate=1e-3,
        temperature=(10.0, 0.1),
        init="uniform",
        batch_size=BATCH_SIZES[NAME],
    )
    return TANClassifier(
        candidates=Candidates("all", ordering=range(N_FEATURES)),
        loss=LOSS,
        training=training,
        n_epochs=N_EPOCHS,
        calibrate=False,
        encoder=TableEncoder(discrete_features=True),
        random_state=0,
    )


def measure(folder):
    """Return the probabilities of the parents of each feature after training, and the parents of the structure."""
    x, y, _, _ = next(published_folds(folder / "discretized" / f"{NAME}.npz"))
    several = [i for i in range(x.shape[1]) if len(np.unique(x[:, i])) > 1]
    model = estimator().fit(x[:, several[:N_FEATURES]], y)
    probabilities = [
        {str(parent): round(float(p), 4) for parent, p in own.items()} for own in model.structure_probabilities_
    ]
    return {"probabilities": probabilities, "parents": model.structure_.parent.tolist()}


def stages(found):
    """Return title and edges (parent, child, probability) of the four diagrams; the class is a parent of all."""
    learned = [
        (int(parent), child, p)
        for child, own in enumerate(found["probabilities"])
        for parent, p in own.items()
        if int(parent) >= 0
    ]
    initial = [(parent, child, 1 / len(found["probabilities"][child])) for parent, child, _ in learned]
    selected = [(parent, child, 1.0) for child, parent in enumerate(found["parents"]) if parent >= 0]
    return {
        "(a) naive Bayes": [],
        "(b) initial probabilities": initial,
        "(c) probabilities after learning": learned,
        "(d) most probable parents": selected,
    }


def draw(found, path):
    """Draw the four stages."""
    from matplotlib.patches import FancyArrowPatch

    with picture(path, 9.8, 5.4) as figure:
        for axes, (title, edges) in zip(figure.subplots(2, 2).flat, stages(found).items(), strict=True):
            axes.set(title=title, xlim=(-0.6, N_FEATURES - 0.4), ylim=(-1.4, 1.7))
            axes.axis("off")
            middle = (N_FEATURES - 1) / 2
            for child in range(N_FEATURES):
                arrow = FancyArrowPatch(
                    (middle, -1.1),
                    (child, 0),
                    arrowstyle="-|>",
                    mutation_scale=8,
                    shrinkA=12,
                    shrinkB=12,
                    color="#bbbbbb",
                )
                axes.add_patch(arrow)
            for parent, child, p in edges:
                bend = f"arc3,rad={-0.55 if child - parent > 1 else -0.3}"
                style = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 11, "shrinkB": 11, "color": "#0072b2"}
                line = {"linewidth": 0.2 + 3 * p, "alpha": 0.15 + 0.85 * p}
                axes.add_patch(FancyArrowPatch((parent, 0), (child, 0), connectionstyle=bend, **style, **line))
            circle = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"}
            for x, y, name in [(middle, -1.1, "C"), *((i, 0, f"$X_{i + 1}$") for i in range(N_FEATURES))]:
                axes.text(x, y, name, ha="center", va="center", bbox=circle, zorder=3)


def stages_section(found):
    """Return the section on figure 1, or an empty string without results."""
    if not found:
        return ""
    most = {child: max(own.values()) for child, own in enumerate(found["probabilities"]) if len(own) > 1}
    text = paragraph(
        f"""The figure shows structure learning on the first {N_FEATURES} features of {NAME} that have several values.
        Figure 1 of the paper is a sketch of the same stages. (a) Naive Bayes. (b) Initially, all candidate parents of a
        feature are equally probable. (c) After {N_EPOCHS} epochs, the most probable parents have probabilities from
        {min(most.values()):.2f} to {max(most.values()):.2f}. (d) They are selected. Command:
        `python -m benchmarks.paper.differentiable_tan.stages`."""
    )
    return f"## Figure 1: four stages\n\n{text}\n\n![Figure 1: four stages of structure learning](figures/{PATH.name})"


def read():
    """Return the stored probabilities, or None."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None


def main(argv=None):
    """Train, store the probabilities, and draw the figure."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args(argv)
    found = measure(arguments.data)
    RESULTS.write_text(json.dumps(found) + "\n", encoding="utf-8")
    draw(found, PATH)


if __name__ == "__main__":
    main()
