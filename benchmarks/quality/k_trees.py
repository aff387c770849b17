"""Gradient k-trees, compared with trees and KDB-2, on raw data sets and on letter, satimage and usps as in papers.

    python -m benchmarks.quality.k_trees run                     # some hours; resumes if interrupted
    python -m benchmarks.quality.k_trees run --sets car chess
    python -m benchmarks.quality.k_trees report                  # writes k_trees.md and k_trees_details.md
    python -m benchmarks.quality.k_trees pack

To repeat all runs after a change of the learners, remove results/k_trees.jsonl and results/k_trees.jsonl.xz.
"""

from statistics import median

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import decimals, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_by
from tanlearn import BackOffRidge, BayesNetClassifier, KTreeClassifier, MaximumLikelihood, TANClassifier
from tanlearn.baselines import KDependence

from .outcomes import first_cells, first_header, mean, outcomes, paired
from .runs import LOST, PUBLISHED, key, run_set

#: Four sets on which dense CPTs overfit, others with noise, numbers, missing values, pixels or many classes, and small
#: ones with added missing values.
SETS = (
    *("tic-tac-toe", "car", "chess", "krkopt"),
    *("german", "vehicle", "cmc", "segment", "crx", "soybean-large", "hepatitis", "digits"),
    *(f"{name}{LOST}" for name in ("glass", "balance-scale", "lymphography", "dermatology", "vehicle", "heart")),
    *(f"{name}{PUBLISHED}" for name in ("satimage", "letter", "usps")),
)
LEARNERS = {
    "k-tree": KTreeClassifier(random_state=0),
    "TAN Subset": TANClassifier(random_state=0),
    "TAN Order-free": TANClassifier(candidates="order-free", random_state=0),
    "KDB-2 ML": BayesNetClassifier(structure=KDependence(k=2), parameters=MaximumLikelihood()),
    "KDB-2 back-off": BayesNetClassifier(structure=KDependence(k=2), parameters=BackOffRidge()),
}
#: Learners that the k-tree is compared with in sentences.
RIVALS = ("TAN Order-free", "KDB-2 back-off")
#: Standard errors of the paired difference beyond which a difference is clear.
CLEAR = 2.0
#: Decimals of the means.
DIGITS = {"error": 2, "log_loss": 3, "seconds": 1}


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / "k_trees.jsonl", key)
    for name in arguments.sets:
        run_set(results, name, {learner: LEARNERS[learner] for learner in arguments.learners}, arguments.data)


def table(found, value, digits):
    """Return one row per data set and one column per learner, with the lowest error in bold."""
    rows = []
    for name in sorted(found, key=SETS.index):
        row = found[name]
        best = min(getattr(outcome, value) for outcome in row.values())
        cells = []
        for learner in LEARNERS:
            number = getattr(row[learner], value) if learner in row else None
            text = decimals(number, digits, missing="-")
            cells.append(f"**{text}**" if number == best and value != "seconds" else text)
        rows.append([*first_cells(name, row, value), *cells])
    return markdown_table([*first_header(value), *LEARNERS], rows)


def summary_table(found):
    """Return one row per learner: means over the data sets that all have finished, and numbers of lowest values."""
    names = whole(found)
    rows = []
    for learner in LEARNERS:
        means = [f"{mean(found, names, learner, value):.{digits}f}" for value, digits in DIGITS.items()]
        lowest = [
            f"{sum(getattr(found[name][learner], value) == lowest_of(found[name], value) for name in names)}"
            for value in ("error", "log_loss")
        ]
        rows.append([learner, *means[:2], *lowest, means[2]])
    header = ["learner", "mean error [%]", "mean log loss", "lowest error on", "lowest log loss on", "mean seconds"]
    return markdown_table(header, rows)


def whole(found):
    """Return the data sets that all learners have finished."""
    return [name for name in sorted(found, key=SETS.index) if found[name].keys() >= LEARNERS.keys()]


def lowest_of(row, value):
    """Return the lowest value of all learners on a data set."""
    return min(getattr(outcome, value) for outcome in row.values())


def clear(found, names, own, other):
    """Return the data sets on which the error of a learner is clearly lower, and clearly higher, than another's."""
    compared = {name: paired(found[name][own], found[name][other]) for name in names}
    return tuple(
        [name for name, (points, error) in compared.items() if sign * points > CLEAR * error] for sign in (-1, 1)
    )


def summary(found):
    """Return the verdicts in sentences."""
    names = whole(found)
    if not names:
        return "No data set is finished yet."
    own, *others = LEARNERS
    n_lowest = {
        value: sum(getattr(found[name][own], value) == lowest_of(found[name], value) for name in names)
        for value in ("error", "log_loss")
    }
    means = {learner: mean(found, names, learner) for learner in LEARNERS}
    second = min(others, key=means.get)
    text = f"""The {own} has the lowest error on {n_lowest["error"]} and the lowest log loss on {n_lowest["log_loss"]}
    of {len(names)} data sets. Its mean error is {means[own]:.2f} %; the best other learner, {second}, has
    {means[second]:.2f} %."""
    for other in RIVALS:
        less, more = clear(found, names, own, other)
        lost = f" ({', '.join(more)})" if more else ""
        text += f""" Relative to {other}, the error of the {own} is clearly lower on {len(less)} data sets and clearly
        higher on {len(more)}{lost}."""
    ratios = {
        other: median(found[name][own].seconds / found[name][other].seconds for name in names) for other in RIVALS
    }
    slow = " and ".join(f"{ratio:.0f} times as long as {other}" for other, ratio in ratios.items())
    most = max(names, key=lambda name: found[name][own].seconds)
    text += f""" The cost is time: a fit takes {slow} in the median, and {found[most][own].seconds:.0f} s at most
    ({most})."""
    return paragraph(text)


def write_report(lines, folder):
    """Write the summary and the page of details."""
    found = outcomes(lines)
    if not found:
        raise SystemExit("nothing is finished: the command run does it.")
    compared = f"""A difference is clear if it exceeds {CLEAR:g} standard errors of the paired difference. Each learner
    is a single network with its defaults and seed 0. KDB-2 has two parents per feature, selected by information, and
    smoothed frequencies or `BackOffRidge()`. Raw data sets have five stratified folds (seed 0) and keep their missing
    values. In data sets with *5 % lost*, one value in twenty is missing. Data sets named *published* are discretized
    and split as in papers. Seconds are processor time of one thread."""
    made = made_by(lines, "benchmarks.quality.k_trees run", "benchmarks.quality.k_trees report")
    sections = ["# Gradient k-trees", summary(found)]
    sections += [summary_table(found) if whole(found) else ""]
    sections += ["Errors, log losses and seconds per data set are on [a separate page](k_trees_details.md)."]
    sections += ["## How it was measured", paragraph(compared), made]
    write_sections(folder / "k_trees.md", sections)
    text = """The [summary](k_trees.md) contains the main results, and explains data and learners. The column
    \N{PLUS-MINUS SIGN} is the largest standard error of a row, and the lowest value is in bold."""
    sections = ["# Gradient k-trees: details", paragraph(text)]
    sections += ["## Errors in %", table(found, "error", 2)]
    sections += ["## Log losses in nats", table(found, "log_loss", 3)]
    sections += ["## Seconds per fit, in processor time of one thread", table(found, "seconds", 1)]
    write_sections(folder / "k_trees_details.md", sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "k_trees.jsonl"), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    add_choices(running, "--learners", LEARNERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
