"""Errors with few labels and many unlabeled rows, on ten raw data sets.

    python -m benchmarks.quality.unlabeled run       # some minutes; resumes if interrupted
    python -m benchmarks.quality.unlabeled report    # writes unlabeled.md
    python -m benchmarks.quality.unlabeled pack

Half of the rows are for training, and 10, 30 or 100 of them have a class, at least one row of each class. Naive Bayes
and the Chow-Liu tree are fitted to labeled rows, by self-training of scikit-learn, and by expectation maximization. All
get the same intervals. LabelSpreading of scikit-learn gets standardized numbers and one-hot categories.
"""

import time
import warnings
from functools import partial

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import folded, joined, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import (
    BayesNetClassifier,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    SemiSupervisedClassifier,
    TableEncoder,
)
from tanlearn.baselines import ChowLiu

#: Tables on which nothing was chosen.
SETS = (
    *("diabetes", "german", "heart", "ionosphere", "led7digit", "mammographic", "satimage", "spambase"),
    *("tic-tac-toe", "vehicle"),
)
#: Tables on which the defaults of SemiSupervisedClassifier were chosen.
CHOSEN_ON = ("breast", "car", "dermatology", "mushroom", "optdigits", "segment", "vote", "waveform-21")
LABELS, N_SPLITS, MOST_ROWS = (10, 30, 100), 5, 2_000
NETWORKS = {
    "naive Bayes": NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)),
    "Chow-Liu tree": BayesNetClassifier(structure=ChowLiu(), encoder=TableEncoder(discrete_features=True)),
}
PLAIN, SELF_TRAINING, ALL_ROWS, OURS = "labeled rows", "self-training", "weight 1", "SemiSupervised"
SPREADING = "LabelSpreading"
METHODS = {
    PLAIN: None,
    SELF_TRAINING: SelfTrainingClassifier,
    ALL_ROWS: partial(SemiSupervisedClassifier, unlabeled_weight=1),
    OURS: SemiSupervisedClassifier,
}
#: Method and network of each column.
COLUMNS = (*((method, network) for network in NETWORKS for method in METHODS), (SPREADING, ""))
FILE = "unlabeled.jsonl"
#: Probabilities below are raised to this, so that one row cannot decide the mean.
LEAST_PROBABILITY = 1e-6
key = line_key("set", "labels", "seed", "method", "network")


def split(name, folder, n_labels, seed):
    """Return training rows, labels with -1 for unlabeled rows, test rows and their classes."""
    X, y = load_table(name, folder)
    y = np.unique(y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    X, y, X_test, y_test = X[:MOST_ROWS], y[:MOST_ROWS], X_test[:MOST_ROWS], y_test[:MOST_ROWS]
    order = np.random.default_rng(seed).permutation(len(y))
    first = order[np.unique(y[order], return_index=True)[1]]  # a row of each class
    rest = order[~np.isin(order, first)]
    labeled = np.concatenate([first, rest])[: max(n_labels, len(first))]
    known = np.full(len(y), -1)
    known[labeled] = y[labeled]
    return X, known, X_test, y_test


def encoded(X, X_test):
    """Return numbers of categories and of five intervals, of which the cut points come from all training rows."""
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5))
    encoder.fit(X, np.arange(len(X)) % 2)  # classes are not used
    return encoder.transform(X), encoder.transform(X_test)


def fitted(method, network, X, known):
    """Return a classifier fitted to rows of which some have a class."""
    if method == SPREADING:
        is_discrete = TableEncoder().fit(X, np.arange(len(X)) % 2).is_discrete_
        columns = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), np.flatnonzero(~is_discrete)),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), np.flatnonzero(is_discrete)),
        )
        return make_pipeline(columns, LabelSpreading(kernel="knn")).fit(X, known)
    if method == PLAIN:
        return NETWORKS[network].fit(X[known >= 0], known[known >= 0])
    return METHODS[method](NETWORKS[network]).fit(X, known)


def measure(name, folder, n_labels, seed, method, network):
    """Return error [%] and log loss of test rows."""
    X, known, X_test, y_test = split(name, folder, n_labels, seed)
    if method != SPREADING:
        X, X_test = encoded(X, X_test)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "invalid value|Found unknown|discretization left|columns have")
        proba = fitted(method, network, X, known).predict_proba(X_test)
    own = np.nan_to_num(proba[np.arange(len(y_test)), y_test])
    return {
        "n_rows": len(X),
        "n_labels": int((known >= 0).sum()),
        "error": float(100 * (proba.argmax(axis=1) != y_test).mean()),
        "log_loss": float(-np.log(np.maximum(own, LEAST_PROBABILITY)).mean()),
        "seconds": time.process_time() - started,
    }


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        for n_labels in LABELS:
            for seed in range(N_SPLITS):
                for method, network in COLUMNS:
                    start = {"set": name, "labels": n_labels, "seed": seed, "method": method, "network": network}
                    if start not in results:
                        found = measure(name, arguments.data, n_labels, seed, method, network)
                        results.append(start | found)
        print(name, flush=True)


def means(lines, names, n_labels, what):
    """Return the means over splits, (n_names, n_columns)."""
    found = {}
    for line in lines:
        found.setdefault((line["set"], line["labels"], line["method"], line["network"]), []).append(line[what])
    return np.array([[np.mean(found[name, n_labels, *column]) for column in COLUMNS] for name in names])


def comparison(values, network):
    """Return the columns of a network: without unlabeled rows, by self-training, always with unlabeled rows, ours."""
    return [values[:, COLUMNS.index((method, network))] for method in METHODS]


def verdict(network, lower, higher):
    """Return the sentence about a network, from the numbers of labels with a lower and with a higher mean error."""
    subject = f"{'the ' * network.endswith('tree')}{network}"
    if not higher:
        return f"Use unlabeled rows with {subject}: its mean error is lower with {joined(lower)} labels."
    raised = f"raise the mean error of {subject} with {joined(higher)} labels"
    return f"Unlabeled rows {raised}" + (f", and lower it with {joined(lower)} labels." if lower else ".")


def findings(lines, names):
    """Return the verdicts in sentences, and the means in a table."""
    sentences, changes, rows, n_best = [], [], [], 0
    for network in NETWORKS:
        lower, higher = [], []
        for n_labels in LABELS:
            errors = comparison(means(lines, names, n_labels, "error"), network)
            losses = [own.mean() for own in comparison(means(lines, names, n_labels, "log_loss"), network)]
            change = errors[-1] - errors[0]
            changes += [(own, name, network, n_labels) for own, name in zip(change, names, strict=True)]
            (lower if change.mean() < 0 else higher).append(str(n_labels))
            n_best += int(np.argmin(losses) == len(METHODS) - 1)
            counts = [str((sign * change > 1).sum()) for sign in (-1, 1)]
            found = [f"{own.mean():.1f}" for own in errors] + [f"{own:.2f}" for own in losses] + counts
            rows.append([network, str(n_labels), *found])
        sentences.append(verdict(network, lower, higher))
    blank = [""] * (len(METHODS) - 1)
    for n_labels in LABELS:
        values = [means(lines, names, n_labels, what)[:, -1].mean() for what in ("error", "log_loss")]
        rows.append([SPREADING, str(n_labels), *blank, f"{values[0]:.1f}", *blank, f"{values[1]:.2f}", "", ""])
    worst, name, network, n_labels = max(changes)
    best, own_name, own_network, own_labels = min(changes)
    yield paragraph(f"""{" ".join(sentences)} These are means over {len(names)} data sets. On single data sets, the
    largest decrease is {-best:.1f} points ({own_name}, {own_network}, {own_labels} labels), and the largest increase
    {worst:.1f} points ({name}, {network}, {n_labels} labels). The mean log loss of `SemiSupervisedClassifier` is the
    lowest of the {len(METHODS)} methods in {n_best} of {len(NETWORKS) * len(LABELS)} rows of the table.
    `SemiSupervisedClassifier` calibrates its probabilities with the labeled rows, whereas the first two methods do not
    calibrate.""")
    titles = [f"{what}, {method}" for what in ("error [%]", "log loss") for method in METHODS]
    header = ["classifier", "labels", *titles, "sets with lower error", "sets with higher error"]
    yield markdown_table(header, rows)
    yield paragraph(f"""The table contains means over {len(names)} data sets. The last two columns are the numbers of
        data sets on which unlabeled rows change the error of the network by more than a point.""")


def write_report(lines, path):
    """Write the report of lines."""
    wanted = len(LABELS) * N_SPLITS * len(COLUMNS)
    names = [name for name in SETS if len([line for line in lines if line["set"] == name]) == wanted]
    if not names:
        raise SystemExit("nothing is finished: the command run does it.")
    sections = ["# Unlabeled rows", *findings(lines, names)]
    header = ["set", "labels", *(f"{network}, {method}".strip(", ") for method, network in COLUMNS)]
    sections.append("## Results per data set")
    for title, what, digits in (("Errors [%]", "error", 1), ("Log losses", "log_loss", 2)):
        rows = [
            [name, str(n_labels), *(f"{value:.{digits}f}" for value in means(lines, [name], n_labels, what)[0])]
            for name in names
            for n_labels in LABELS
        ]
        sections.append(folded(title, markdown_table(header, rows)))
    text = f"""All values are means over {N_SPLITS} random splits into halves of at most {MOST_ROWS:,} rows. Every class
    has at least one labeled row, and the other labeled rows are drawn at random. "{OURS}" is `SemiSupervisedClassifier`
    with defaults, and "{ALL_ROWS}" is the same classifier with `unlabeled_weight=1`. "{PLAIN}" is the network fitted to
    the labeled rows only, and "{SELF_TRAINING}" is the `SelfTrainingClassifier` of scikit-learn with the same network.
    All networks use the same five intervals for numeric columns, with cut points from all training rows. LabelSpreading
    uses the kernel of nearest neighbors, standardized numbers and one-hot encoded categories. Probabilities below
    {LEAST_PROBABILITY:g} count as this value. No setting was chosen with these data sets. The number of iterations, the
    rule for the weight of unlabeled rows, the number of intervals and the calibration were chosen on
    {", ".join(CHOSEN_ON)}."""
    made = made_by(lines, "benchmarks.quality.unlabeled run", "benchmarks.quality.unlabeled report")
    write_sections(path, [*sections, "## How it was measured", paragraph(text), made])


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "unlabeled.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
