"""Coverage and size of prediction sets, without and with rows held back, on twenty raw data sets.

    pip install -e ".[peers]"
    python -m benchmarks.quality.prediction_sets run       # some minutes; resumes if interrupted
    python -m benchmarks.quality.prediction_sets report    # writes prediction_sets.md
    python -m benchmarks.quality.prediction_sets pack

Half of the rows of each random stratified split is for training. `ConformalClassifier` fits its classifier to all of
them. MAPIE's `SplitConformalClassifier` holds a fifth back for calibration; it is given the same classifier.
"""

import time

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import BayesNetClassifier, ConformalClassifier, TermNetClassifier
from tanlearn.baselines import ChowLiu

#: Tables of 300 to 5,000 rows, of numbers, of categories, and of both.
SETS = (
    *("australian", "balance-scale", "breast", "car", "chess", "churn", "cleve", "cmc", "diabetes", "flare"),
    *("german", "ionosphere", "mofn-3-7-10", "segment", "spambase", "tic-tac-toe", "vehicle", "vote", "waveform-21"),
    "yeast",
)
COVERAGE, N_SPLITS, CALIBRATION = 0.9, 3, 0.2
LEARNERS = {
    "Chow-Liu tree": BayesNetClassifier(structure=ChowLiu()),
    "network of terms": TermNetClassifier(),
}
OURS, HELD_BACK = "all rows", "a fifth held back"
FILE = "prediction_sets.jsonl"
key = line_key("set", "learner", "method", "seed")


def ours(learner, X, y, X_test, seed):
    """Return sets of all rows of the training part, in the columns of sorted classes."""
    model = ConformalClassifier(learner, random_state=seed).fit(X, y)
    return model.predict_set(X_test, COVERAGE, allow_empty=True)


def held_back(learner, X, y, X_test, seed):
    """Return the sets of MAPIE, which holds rows back."""
    from mapie.classification import SplitConformalClassifier

    X, X_other, y, y_other = train_test_split(X, y, test_size=CALIBRATION, stratify=y, random_state=seed)
    model = SplitConformalClassifier(learner.fit(X, y), COVERAGE).conformalize(X_other, y_other)
    return model.predict_set(X_test)[1][:, :, 0]


METHODS = {OURS: ours, HELD_BACK: held_back}


def load(name, folder):
    """Return rows and integer classes, without classes of fewer than 20 rows."""
    X, y = load_table(name, folder)
    _, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(sizes[codes] >= 20)
    return X[rows], np.unique(codes[rows], return_inverse=True)[1]


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        X, y = load(name, arguments.data)
        for seed in range(N_SPLITS):
            parts = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
            for learner in LEARNERS:
                for method in METHODS:
                    start = {"set": name, "learner": learner, "method": method, "seed": seed}
                    if start not in results:
                        results.append(start | measure(LEARNERS[learner], METHODS[method], *parts, seed))
        print(name, flush=True)


def measure(learner, sets_of, X, X_test, y, y_test, seed):
    """Return coverage and mean size of the sets of test rows."""
    started = time.process_time()
    sets = sets_of(learner, X, y, X_test, seed)
    return {
        "n_rows": len(X),
        "coverage": float(sets[np.arange(len(sets)), y_test].mean()),
        "size": float(sets.sum(axis=1).mean()),
        "seconds": time.process_time() - started,
    }


def mean(lines, name, learner, method, what):
    """Return the mean over splits."""
    wanted = name, learner, method
    return float(np.mean([line[what] for line in lines if (line["set"], line["learner"], line["method"]) == wanted]))


def findings(lines, names):
    """Return the verdicts in sentences."""
    for learner in LEARNERS:
        coverage = np.array([[mean(lines, name, learner, method, "coverage") for method in METHODS] for name in names])
        size = np.array([[mean(lines, name, learner, method, "size") for method in METHODS] for name in names])
        within = (np.abs(coverage - COVERAGE) <= 0.02).sum(axis=0)
        smaller = int((size[:, 0] < size[:, 1]).sum())
        low, high = 100 * coverage[:, 0].min(), 100 * coverage[:, 0].max()
        yield paragraph(f"""With the {learner}, the sets of `ConformalClassifier` contain the true class in
        {100 * coverage[:, 0].mean():.1f} % of the rows, as a mean over {len(names)} data sets. On single data sets,
        this coverage is {low:.1f} to {high:.1f} %, and it is within two points of the required {100 * COVERAGE:.0f} %
        on {within[0]} data sets. If a fifth of the training rows is used for calibration only, the mean coverage is
        {100 * coverage[:, 1].mean():.1f} %, and it is within two points on {within[1]} data sets. The sets of
        `ConformalClassifier` are smaller on {smaller} data sets, with {size[:, 0].mean():.2f} instead of
        {size[:, 1].mean():.2f} classes on average.""")


def write_report(lines, path):
    """Write the report of lines."""
    names = [name for name in SETS if len([line for line in lines if line["set"] == name]) == 4 * N_SPLITS]
    if not names:
        raise SystemExit("nothing is finished: the command run does it.")
    header = ["set", "training rows"]
    rows = [[name, str(next(line["n_rows"] for line in lines if line["set"] == name))] for name in names]
    for learner in LEARNERS:
        for what, title, digits in (("coverage", "coverage [%]", 1), ("size", "classes per set", 2)):
            for method in METHODS:
                header.append(f"{learner}, {title}, {method}")
                factor = 100 if what == "coverage" else 1
                for name, row in zip(names, rows, strict=True):
                    row.append(f"{factor * mean(lines, name, learner, method, what):.{digits}f}")
    text = f"""The table contains means over {N_SPLITS} random splits. Half of the rows are used for training. "{OURS}"
    is `ConformalClassifier` with ten folds. "{HELD_BACK}" is `SplitConformalClassifier` of MAPIE with the same
    classifier: {100 * CALIBRATION:.0f} % of the training rows are used for calibration only. Both methods keep empty
    sets. Classes with fewer than 20 rows are left out. No setting was chosen with these data sets."""
    made = made_by(lines, "benchmarks.quality.prediction_sets run", "benchmarks.quality.prediction_sets report")
    sections = ["# Prediction sets", *findings(lines, names), markdown_table(header, rows)]
    sections += ["## How it was measured", paragraph(text), made]
    write_sections(path, sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "prediction_sets.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
