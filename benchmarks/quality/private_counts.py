"""Errors of naive Bayes and trees from counts with noise for privacy, over epsilon, on five large raw data sets.

    python -m benchmarks.quality.private_counts run       # some minutes; resumes if interrupted
    python -m benchmarks.quality.private_counts report    # writes private_counts.md
    python -m benchmarks.quality.private_counts pack

A third of the rows is for testing. A thousand other rows count as public: they determine categories and cut points and
are not used otherwise. All other rows are counted, and the counts get noise. Trees are learned in one release, of the
counts of all pairs, or in two: a part of the budget for the structure, and the rest for the counts of its families.
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import folded, joined, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import (
    BayesNetClassifier,
    MaximumLikelihood,
    NaiveBayesClassifier,
    PrivacyBudget,
    Structure,
    TableCounts,
    TableEncoder,
)
from tanlearn.baselines import ChowLiu

#: Tables on which nothing was chosen.
SETS = ("adult", "gss-abortion", "letter", "shuttle", "sleep")
#: Tables on which the pseudo-count, the part for the structure and the kind of cut points were chosen.
CHOSEN_ON = ("ann-thyroid", "churn", "mushroom", "page-blocks", "satimage", "smokeban", "waveform-21")
EPSILONS, DELTAS, N_SEEDS, N_PUBLIC = (0.1, 0.3, 1.0, 3.0, 10.0), (0.0, 1e-6), 5, 1_000
#: Part of epsilon for the structure of a tree in two releases.
STRUCTURE_PART = 0.3
BAYES, ONE, TWO = "naive Bayes", "tree, one release", "tree, two releases"
METHODS = (BAYES, ONE, TWO)
#: Without noise.
TREE, ALL_ROWS, FREQUENT = "tree", "naive Bayes, cut points of all rows", "most frequent class"
UNPROTECTED = (BAYES, TREE, ALL_ROWS, FREQUENT)
FILE = "private_counts.jsonl"
#: Probabilities below are raised to this, so that one row cannot decide the mean.
LEAST_PROBABILITY = 1e-6
key = line_key("set", "seed", "epsilon", "delta", "method")


class Problem:
    """Counts of the private rows of a split, and its test rows."""

    def __init__(self, name, folder, seed):
        X, y = load_table(name, folder)
        y = np.unique(y, return_inverse=True)[1]
        with np.load(folder / "raw" / f"{name}.npz") as file:
            is_categorical = file["is_categorical"].astype(bool)
        X, self.X_test, y, self.y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
        encoder = TableEncoder(discrete_features=is_categorical).fit(X[:N_PUBLIC], y[:N_PUBLIC])
        self.X, self.y, self.is_categorical = X[N_PUBLIC:], y[N_PUBLIC:], is_categorical
        self.counts = TableCounts.of_encoder(encoder, list(range(int(y.max()) + 1))).update(self.X, self.y)

    def measure(self, model):
        """Return error [%] and log loss of test rows."""
        proba = model.predict_proba(self.X_test)
        column = np.searchsorted(model.classes_, self.y_test)
        own = proba[np.arange(len(self.y_test)), column]
        return {
            "n_rows": len(self.X),
            "error": float(100 * (model.classes_[proba.argmax(axis=1)] != self.y_test).mean()),
            "log_loss": float(-np.log(np.maximum(own, LEAST_PROBABILITY)).mean()),
        }

    def unprotected(self, method):
        """Return the measures of a method without noise."""
        if method == FREQUENT:
            frequencies = np.bincount(self.y) / len(self.y)
            own = np.maximum(frequencies[self.y_test], LEAST_PROBABILITY)
            error = float(100 * (self.y_test != frequencies.argmax()).mean())
            return {"n_rows": len(self.X), "error": error, "log_loss": float(-np.log(own).mean())}
        if method == ALL_ROWS:
            encoder = TableEncoder(discrete_features=self.is_categorical)
            return self.measure(NaiveBayesClassifier(encoder=encoder).fit(self.X, self.y))
        return self.measure((NaiveBayesClassifier() if method == BAYES else tree()).from_counts(self.counts))

    def protected(self, method, epsilon, delta, seed):
        """Return the measures of a method with noise."""
        budget = PrivacyBudget(epsilon, delta)
        if method == ONE:
            return self.measure(
                fitted(ChowLiu(), budget.release(self.counts, encoder_is_public=True, random_state=seed))
            )
        structure = Structure.naive_bayes(self.counts.counts.n_features)
        if method == TWO:
            first = budget.release(
                self.counts, epsilon=STRUCTURE_PART * epsilon, encoder_is_public=True, random_state=seed
            )
            structure = tree().from_counts(first).structure_
        released = budget.release(self.counts, structure=structure, encoder_is_public=True, random_state=seed + 1)
        return self.measure(fitted(structure, released))


def tree():
    """Return an unfitted tree."""
    return BayesNetClassifier(structure=ChowLiu())


def fitted(structure, released):
    """Return a network fitted to counts with noise, smoothed in proportion to the noise."""
    alpha = max(1.0, released.noise[0].standard_deviation / 3)
    return BayesNetClassifier(structure=structure, parameters=MaximumLikelihood(alpha=alpha)).from_counts(released)


def starts(name, seed):
    """Yield the keys of all lines of a split."""
    for method in UNPROTECTED:
        yield {"set": name, "seed": seed, "epsilon": None, "delta": None, "method": method}
    for epsilon in EPSILONS:
        for delta in DELTAS:
            for method in METHODS:
                yield {"set": name, "seed": seed, "epsilon": epsilon, "delta": delta, "method": method}


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        for seed in range(N_SEEDS):
            missing = results.missing(starts(name, seed))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "random_state repeats|.*categories that were not|discretization left")
                problem = Problem(name, arguments.data, seed) if missing else None
                for start in missing:
                    started = time.process_time()
                    if start["epsilon"] is None:
                        found = problem.unprotected(start["method"])
                    else:
                        found = problem.protected(start["method"], start["epsilon"], start["delta"], 2 * seed)
                    results.append(start | found | {"seconds": time.process_time() - started})
        print(name, flush=True)


class Table:
    """Means of finished lines over splits, and over data sets."""

    def __init__(self, lines, names):
        self.names, self.values = names, {}
        for line in lines:
            start = line["set"], line["epsilon"], line["delta"], line["method"]
            self.values.setdefault(start, []).append(line)

    def of_sets(self, what, method, epsilon=None, delta=None):
        """Return the mean over splits for each data set, shape (n_sets,)."""
        found = [self.values[name, epsilon, delta, method] for name in self.names]
        return np.array([np.mean([line[what] for line in lines]) for lines in found])

    def row(self, what, epsilon, delta):
        """Return the means of all methods for a loss, or without noise, shape (n_methods, n_sets)."""
        methods = (BAYES, TREE, TREE) if epsilon is None else METHODS
        return np.array([self.of_sets(what, method, epsilon, delta) for method in methods])


LOSSES = (*((epsilon, delta) for epsilon in EPSILONS for delta in DELTAS), (None, None))


def loss_cells(epsilon, delta):
    """Return the cells of a privacy loss."""
    return ["no noise", ""] if epsilon is None else [f"{epsilon:g}", f"{delta:g}"]


def advice(table, delta):
    """Return which classifier to use at each epsilon."""
    trees = [e for e in EPSILONS if better_tree(table, e, delta)]
    bayes = [e for e in EPSILONS if e not in trees]
    sentences = []
    if bayes:
        sentences.append(f"Use naive Bayes at epsilon {joined([f'{e:g}' for e in bayes])}.")
    if trees:
        sentences.append(
            f"At epsilon {joined([f'{e:g}' for e in trees])}, use a tree in two releases: it has a lower mean error "
            f"and a lower mean log loss than naive Bayes."
        )
    return " ".join(sentences)


def cost_of_noise(table, delta):
    """Return the cost of noise for naive Bayes, and the number of data sets with a better tree."""
    exact = table.of_sets("error", BAYES)
    growth = {e: (table.of_sets("error", BAYES, e, delta) - exact).mean() for e in EPSILONS}
    costs = joined([f"{round(growth[e], 1) + 0.0:.1f}" for e in EPSILONS])
    better = joined([str(wins(table, e, delta)) for e in EPSILONS])
    epsilons = joined([f"{e:g}" for e in EPSILONS])
    return (
        f"At epsilon {epsilons} with delta {delta:g}, noise raises the mean error of naive Bayes by {costs} points. "
        f"The tree in two releases has a lower log loss than naive Bayes on {better} of {len(table.names)} data sets."
    )


def better_tree(table, epsilon, delta):
    """Return whether a tree in two releases has a lower mean error and a lower mean log loss than naive Bayes."""
    found = [table.row(what, epsilon, delta).mean(axis=1) for what in ("error", "log_loss")]
    return all(own[METHODS.index(TWO)] < own[METHODS.index(BAYES)] for own in found)


def wins(table, epsilon, delta):
    """Return the number of data sets on which a tree in two releases has a lower log loss than naive Bayes."""
    own = table.row("log_loss", epsilon, delta)
    return int((own[METHODS.index(TWO)] < own[METHODS.index(BAYES)]).sum())


def of_set(table, name):
    """Return the sentence about a data set."""
    k = table.names.index(name)

    def error(method, epsilon=None):
        return f"{table.of_sets('error', method, epsilon, None if epsilon is None else DELTAS[-1])[k]:.1f}"

    low, middle = EPSILONS[0], 1.0
    return (
        f"On {name}, the error of naive Bayes is {error(BAYES, low)} % at epsilon {low:g}, {error(BAYES, middle)} % at "
        f"epsilon {middle:g} and {error(BAYES)} % without noise. The error of the tree is {error(TWO, low)} %, "
        f"{error(TWO, middle)} % and {error(TREE)} %. Predicting the most frequent class has an error of "
        f"{error(FREQUENT)} %, and naive Bayes without noise, with cut points of all rows, one of {error(ALL_ROWS)} %."
    )


def write_report(lines, path):
    """Write the report of lines."""
    wanted = sum(1 for seed in range(N_SEEDS) for _ in starts("", seed))
    names = [name for name in SETS if len([line for line in lines if line["set"] == name]) == wanted]
    if not names:
        raise SystemExit("nothing is finished: the command run does it.")
    table = Table(lines, names)
    titles = [f"{what}, {method}" for what in ("error [%]", "log loss") for method in METHODS]
    rows = [
        [
            *loss_cells(epsilon, delta),
            *(f"{own:.1f}" for own in table.row("error", epsilon, delta).mean(axis=1)),
            *(f"{own:.3f}" for own in table.row("log_loss", epsilon, delta).mean(axis=1)),
            "" if epsilon is None else str(wins(table, epsilon, delta)),
        ]
        for epsilon, delta in LOSSES
    ]
    sections = ["# Private counts", paragraph(advice(table, DELTAS[-1]))]
    sections.append(paragraph(f"The table shows means over {len(names)} data sets and {N_SEEDS} random splits:"))
    sections.append(markdown_table(["epsilon", "delta", *titles, "sets with a better tree"], rows))
    found = [
        """The last column is the number of data sets on which a tree in two releases has a lower log loss than
    naive Bayes.""",
        cost_of_noise(table, DELTAS[-1]),
        *([of_set(table, "adult")] if "adult" in names else []),
    ]
    sections.append("\n".join(f"- {paragraph(text, 2)}" for text in found))
    sections.append("## Results per data set")
    for title, what, digits in (("Errors [%]", "error", 1), ("Log losses", "log_loss", 3)):
        rows = []
        for k, name in enumerate(names):
            for epsilon, delta in LOSSES:
                found = table.row(what, epsilon, delta)[:, k]
                rows.append([name, *loss_cells(epsilon, delta), *(f"{own:.{digits}f}" for own in found)])
        sections.append(folded(title, markdown_table(["set", "epsilon", "delta", *METHODS], rows)))
    rows = []
    for k, name in enumerate(names):
        own = [f"{table.of_sets('error', method)[k]:.1f}" for method in (FREQUENT, BAYES, ALL_ROWS, TREE)]
        rows.append([name, f"{table.of_sets('n_rows', BAYES)[k]:,.0f}", *own])
    header = ["set", "counted rows", FREQUENT, BAYES, ALL_ROWS, TREE]
    sections.append(folded("Errors without noise [%]", markdown_table(header, rows)))
    text = f"""A third of the rows of each split is used for testing. Another {N_PUBLIC:,} rows are regarded as public,
    and are used for categories and default cut points. The remaining rows are counted. With a delta of 0, the noise is
    discrete Laplace noise. With another delta, it is discrete Laplace or Gaussian noise, whichever has the lower
    variance. The noise is drawn with a seed, so that results can be repeated. Counts that are released with a seed have
    no guarantee. No setting was chosen with these data sets. The pseudo-count, the part for the structure and the kind
    of cut points were chosen on {joined(list(CHOSEN_ON))}. Probabilities below {LEAST_PROBABILITY:g} count as this
    value."""
    methods = [
        f"""*{ONE}*: all pairs are released. The Chow-Liu tree and its parameters are learned from them.""",
        f"""*{TWO}*: all pairs are released with {100 * STRUCTURE_PART:.0f} % of epsilon, and the structure is learned
        from them. The counts of the families of the structure are released with the rest of epsilon.""",
        f"""*{ALL_ROWS}*: the default cut points are computed from the counted rows.""",
        """The pseudo-count `alpha` of `MaximumLikelihood` is a third of the standard deviation of the noise, and at
        least 1.""",
    ]
    methods = "\n".join(f"- {paragraph(one, 2)}" for one in methods)
    made = made_by(lines, "benchmarks.quality.private_counts run", "benchmarks.quality.private_counts report")
    write_sections(path, [*sections, "## How it was measured", paragraph(text), methods, made])


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "private_counts.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
