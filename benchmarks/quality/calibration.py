"""Calibration of predicted probabilities, with and without a scale fitted to held-out rows.

    python -m benchmarks.quality.calibration    # two minutes; writes calibration.md and calibration.png

A third of the rows of each stratified split is held out. Confidence is the probability of the predicted class. The
expected calibration error (ECE) puts confidences into ten bins of equal width, and averages the difference of mean
confidence and accuracy of the bins over rows. It is never 0, so the table also has the ECE that a model with the same,
true confidences would have by chance. The digits are bundled; the other data sets must be beside the project.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import DATA, command_line
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import markdown_table, paragraph, picture, write_sections
from benchmarks.shared.versions import VERSIONS, made_with
from tanlearn import BayesNetClassifier, Hybrid, StochasticGradient, TANClassifier
from tanlearn.baselines import ChowLiu

from .runs import calibration_error, confidence_bins

HERE = Path(__file__).parent
SETS = ("digits", "german", "satimage")
HEADER = [
    "set",
    "learner",
    "calibrated",
    "error [%]",
    "confidence [%]",
    "ECE [%]",
    "by chance",
    "log loss",
    "Brier score",
]
N_CHANCES = 200
#: Smallest number of rows of a bin that is drawn.
FEWEST = 20
COLORS = ("#0072b2", "#d55e00", "#009e73")


def models(calibrate, seed):
    """Return unfitted classifiers by name."""
    common = {"calibrate": calibrate, "random_state": seed}
    tree = BayesNetClassifier(
        structure=ChowLiu(), parameters=StochasticGradient(calibrate=calibrate), random_state=seed
    )
    return {
        "TAN-CMI HYB, fixed loss": tree,
        "TAN Order-free HYB, fixed loss": TANClassifier(candidates="order-free", loss=Hybrid(), **common),
        "TANClassifier()": TANClassifier(**common),
    }


def chance_error(confidence, rng):
    """Return the mean calibration error of draws in which the confidences are true."""
    draws = [rng.random(len(confidence)) < confidence for _ in range(N_CHANCES)]
    return float(np.mean([calibration_error(confidence_bins(confidence, draw)) for draw in draws]))


def measure(model, X, y, seed):
    """Return the bins of confidence of a split, and the figures of the table."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    log_p = model.fit(X, y).predict_log_proba(X_test)
    is_true = y_test[:, np.newaxis] == model.classes_
    confidence, right = np.exp(log_p.max(axis=1)), is_true[np.arange(len(log_p)), log_p.argmax(axis=1)]
    bins = confidence_bins(confidence, right)
    chance = chance_error(confidence, np.random.default_rng(seed))
    shares = [1 - right.mean(), confidence.mean(), calibration_error(bins), chance]
    brier = np.sum((np.exp(log_p) - is_true) ** 2, axis=1).mean()
    return bins, [*(100 * share for share in shares), -log_p[is_true].mean(), brier]


def measure_set(X, y, seeds):
    """Return the bins of all splits, and one row of figures per split, by learner and calibration."""
    found = {}
    for name in models(True, 0):
        for calibrate in (False, True):
            splits = [measure(models(calibrate, seed)[name], X, y, seed) for seed in seeds]
            bins, figures = zip(*splits, strict=True)
            found[name, calibrate] = np.sum(bins, axis=0), np.array(figures)
    return found


def rows(name, found):
    """Yield the rows of a set in the table: means over splits."""
    for (learner, calibrate), (_, figures) in found.items():
        *shares, loss, brier = figures.mean(axis=0)
        numbers = [*(f"{share:.2f}" for share in shares), f"{loss:.3f}", f"{brier:.3f}"]
        yield [name, learner, "yes" if calibrate else "no", *numbers]


def verdict(found):
    """Return in how many splits calibration lowers ECE and log loss, by learner."""
    lines = []
    for learner in models(True, 0):
        before, after = (np.concatenate([row[learner, when][1] for row in found.values()]) for when in (False, True))
        n_ece, n_loss = (np.count_nonzero(after[:, k] < before[:, k]) for k in (2, 4))
        lines.append(f"- {learner}: a lower ECE in {n_ece} of {len(after)} splits, a lower log loss in {n_loss}.")
    return "\n".join(lines)


def draw_reliability(found, path):
    """Draw the accuracy of bins over their mean confidence, one diagram per data set."""
    with picture(path, 5 * len(found), 4.8) as figure:
        for axes, (name, row) in zip(np.ravel(figure.subplots(1, len(found))), found.items(), strict=True):
            axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
            for place, ((learner, calibrate), (bins, _)) in enumerate(row.items()):
                n, confidence, right = bins[:, bins[0] >= FEWEST]
                style = {"linestyle": "-" if calibrate else ":", "marker": "o" if calibrate else "x"}
                label = f"{learner}{', calibrated' if calibrate else ''}"
                axes.plot(confidence / n, right / n, color=COLORS[place // 2], label=label, **style)
            axes.set(xlabel="mean confidence", ylabel="accuracy", title=name, xlim=(0, 1.02), ylim=(0, 1.02))
        axes.legend(fontsize="small", loc="upper left")


def write_report(found, n_splits, folder):
    """Write the table and the picture."""
    made = f"""Made by `python -m benchmarks.quality.calibration`, with {made_with([{"versions": VERSIONS}])}: means
    over {n_splits} stratified splits, a third of the rows held out. Confidence is the probability of the predicted
    class; the expected calibration error (ECE) is taken in ten bins of it, and "by chance" is what a model of these
    confidences would show if they were true. Of a calibrated model, held-out rows of the training part have found a
    scale by which scores become probabilities; its classes are the same."""
    drawn = f"""In the picture, rows of all splits are together: below the line a model is more confident than right.
    Dotted is without calibration. Bins of fewer than {FEWEST} rows are left out."""
    sections = [
        "# Calibration",
        paragraph(made),
        markdown_table(HEADER, [row for name, one in found.items() for row in rows(name, one)], left=(0, 1, 2)),
        f"Calibrated, beside itself without:\n\n{verdict(found)}",
        "![Accuracy over confidence](calibration.png)",
        paragraph(drawn),
    ]
    draw_reliability(found, folder / "calibration.png")
    write_sections(folder / "calibration.md", sections)


def main(argv=None):
    """Measure all available data sets, and write the report."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET", help="by default digits, german, satimage")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5), help="of the splits")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=HERE, help="folder of calibration.md and calibration.png")
    arguments = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message="discretization left|no value in")
    found = {}
    for name in arguments.sets:
        if name == "digits" or arguments.data.exists():
            found[name] = measure_set(*load_table(name, arguments.data), arguments.seeds)
            print(*(" | ".join(row) for row in rows(name, found[name])), sep="\n", flush=True)
    write_report(found, len(arguments.seeds), arguments.output)


if __name__ == "__main__":
    main()
