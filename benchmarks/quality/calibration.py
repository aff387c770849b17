"""Calibration of predicted probabilities, with and without a scale fitted to held-out rows.

    python -m benchmarks.quality.calibration run       # two minutes; resumes if interrupted
    python -m benchmarks.quality.calibration report    # writes calibration.md and calibration.png
    python -m benchmarks.quality.calibration pack

A third of the rows of each stratified split is held out. Confidence is the probability of the predicted class. The
expected calibration error (ECE) puts confidences into ten bins of equal width, and averages the difference of mean
confidence and accuracy of the bins over rows. The ECE is never 0, so the table also contains the ECE that a calibrated
model with the same confidences would have by chance. The digits are part of scikit-learn, and the other data sets must
be in a folder next to the project. To repeat all runs after a change of the learners, remove results/calibration.jsonl
and results/calibration.jsonl.xz."""

import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.shared.command import execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import markdown_table, paragraph, picture, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import BayesNetClassifier, Hybrid, StochasticGradient, TANClassifier
from tanlearn.baselines import ChowLiu

from .runs import calibration_error, confidence_bins

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
#: Decimals of the measures, in the order of the table.
DIGITS = {"error": 2, "confidence": 2, "ece": 2, "chance": 2, "log_loss": 3, "brier": 3}
N_CHANCES = 200
#: Smallest number of rows of a bin that is drawn.
FEWEST = 20
COLORS = ("#0072b2", "#d55e00", "#009e73")
key = line_key("set", "learner", "calibrated", "seed")


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
    """Return the bins of confidence of a split, and its measures by name."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    log_p = model.fit(X, y).predict_log_proba(X_test)
    is_true = y_test[:, np.newaxis] == model.classes_
    confidence, right = np.exp(log_p.max(axis=1)), is_true[np.arange(len(log_p)), log_p.argmax(axis=1)]
    bins = confidence_bins(confidence, right)
    found = {
        "error": 100 * (1 - right.mean()),
        "confidence": 100 * confidence.mean(),
        "ece": 100 * calibration_error(bins),
        "chance": 100 * chance_error(confidence, np.random.default_rng(seed)),
        "log_loss": -log_p[is_true].mean(),
        "brier": np.sum((np.exp(log_p) - is_true) ** 2, axis=1).mean(),
    }
    return {"bins": bins.round(6).tolist(), **{what: float(value) for what, value in found.items()}}


def run(arguments):
    """Measure everything that is not finished on the available data sets."""
    results = Results(arguments.results / "calibration.jsonl", key)
    warnings.filterwarnings("ignore", message="discretization left|no value in")
    for name in arguments.sets:
        if name != "digits" and not arguments.data.exists():
            continue
        X, y = load_table(name, arguments.data)
        todo = results.missing(
            {"set": name, "learner": learner, "calibrated": calibrated, "seed": seed}
            for learner in models(True, 0)
            for calibrated in (False, True)
            for seed in arguments.seeds
        )
        for start in todo:
            model = models(start["calibrated"], start["seed"])[start["learner"]]
            line = results.append({**start, **measure(model, X, y, start["seed"])})
            print(f"{name}, {start['learner']}, split {start['seed']}: ECE {line['ece']:.2f} %", flush=True)


def cells(lines):
    """Return the lines of all splits by data set, learner and calibration, in the order of the report."""
    order = {learner: position for position, learner in enumerate(models(True, 0))}
    found = {}
    for line in sorted(lines, key=lambda line: (line["set"], order[line["learner"]], line["calibrated"], line["seed"])):
        found.setdefault((line["set"], line["learner"], line["calibrated"]), []).append(line)
    return found


def mean(lines, what):
    """Return the mean of a measure over lines."""
    return float(np.mean([line[what] for line in lines]))


def rows(found):
    """Return the rows of the table: means over splits."""
    return [
        [name, learner, "yes" if calibrated else "no", *(f"{mean(some, w):.{d}f}" for w, d in DIGITS.items())]
        for (name, learner, calibrated), some in found.items()
    ]


def compared(found, learners):
    """Return pairs of lines of the same split, without and with calibration."""
    return [
        pair
        for (name, learner, calibrated), some in found.items()
        if not calibrated and learner in learners
        for pair in zip(some, found[name, learner, True], strict=True)
    ]


def summary(found):
    """Return the verdicts in sentences."""
    learners = list(dict.fromkeys(learner for _, learner, _ in found))
    sets = list(dict.fromkeys(name for name, *_ in found))
    judged, pairs = learners[-1], compared(found, learners)
    before, after = zip(*compared(found, [judged]), strict=True)
    n_ece, n_loss = (sum(b[what] < a[what] for a, b in pairs) for what in ("ece", "log_loss"))
    worst = max((cell for cell in found if cell[2]), key=lambda cell: mean(found[cell], "ece"))
    changed = sum(round(a["error"], 6) != round(b["error"], 6) for a, b in pairs)
    classes = "The errors are equal" if not changed else f"The error changes in {changed} splits"
    return paragraph(
        f"""Calibration lowers the expected calibration error (ECE) of {judged} from {mean(before, "ece"):.1f} to
        {mean(after, "ece"):.1f} percentage points, as a mean over {len(sets)} data sets ({", ".join(sets)}). If the
        same confidences were exactly calibrated, the ECE would be {mean(after, "chance"):.1f} points by chance. The
        mean log loss decreases from {mean(before, "log_loss"):.3f} to {mean(after, "log_loss"):.3f} nats. Over all
        {len(learners)} learners, calibration lowers the ECE in {n_ece} and the log loss in {n_loss} of {len(pairs)}
        splits. {classes}. The largest remaining ECE is {mean(found[worst], "ece"):.1f} points ({worst[1]} on
        {worst[0]})."""
    )


def draw_reliability(found, path):
    """Draw the accuracy of bins over their mean confidence, one diagram per data set."""
    sets = list(dict.fromkeys(name for name, *_ in found))
    colors = dict(zip(models(True, 0), COLORS, strict=True))
    with picture(path, 5 * len(sets), 4.8) as figure:
        for axes, name in zip(np.ravel(figure.subplots(1, len(sets))), sets, strict=True):
            axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
            for (_, learner, calibrated), some in ((cell, lines) for cell, lines in found.items() if cell[0] == name):
                bins = np.sum([line["bins"] for line in some], axis=0)
                n, confidence, right = bins[:, bins[0] >= FEWEST]
                style = {"linestyle": "-" if calibrated else ":", "marker": "o" if calibrated else "x"}
                label = f"{learner}{', calibrated' if calibrated else ''}"
                axes.plot(confidence / n, right / n, color=colors[learner], label=label, **style)
            axes.set(xlabel="mean confidence", ylabel="accuracy", title=name, xlim=(0, 1.02), ylim=(0, 1.02))
        axes.legend(fontsize="small", loc="upper left")


def write_report(lines, folder):
    """Write the page and its picture."""
    if not lines:
        raise SystemExit("nothing is finished: the command run does it.")
    found = cells(lines)
    drawn = f"""The plot shows the accuracy over the confidence for the rows of all splits. Models below the diagonal
    are overconfident. Dotted lines are models without calibration. Bins with fewer than {FEWEST} rows are left out."""
    measured = f"""Each entry is a mean over {max(map(len, found.values()))} stratified splits, with a third of the rows
    held out. The confidence is the probability of the predicted class. The ECE is the mean difference between
    confidence and accuracy in ten bins of the confidence. The column "by chance" is the ECE of a calibrated model with
    the same confidences. Calibration multiplies the log probabilities by a scale that is fitted to held-out rows of the
    training part, which leaves the predicted classes unchanged."""
    made = made_by(lines, "benchmarks.quality.calibration run", "benchmarks.quality.calibration report")
    sections = [
        "# Calibration",
        summary(found),
        "![Accuracy over confidence](calibration.png)",
        paragraph(drawn),
        "## Results per data set",
        markdown_table(HEADER, rows(found), left=(0, 1, 2)),
        "## How it was measured",
        paragraph(measured),
        made,
    ]
    draw_reliability(found, folder / "calibration.png")
    write_sections(folder / "calibration.md", sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "calibration.jsonl"), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    running.add_argument("--sets", nargs="+", default=SETS, metavar="SET", help="by default digits, german, satimage")
    running.add_argument("--seeds", type=int, nargs="+", default=range(5), help="of the splits")
    execute(parser, argv)


if __name__ == "__main__":
    main()
