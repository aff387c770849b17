"""Gradient k-trees beside trees and KDB-2, on raw sets and on letter, satimage and usps as papers have them.

    python -m benchmarks.quality.k_trees run                     # some hours; goes on where it stopped
    python -m benchmarks.quality.k_trees run --sets car chess
    python -m benchmarks.quality.k_trees report                  # writes k_trees.md from what is finished
    python -m benchmarks.quality.k_trees pack

To repeat all runs after a change of the learners, remove results/k_trees.jsonl and results/k_trees.jsonl.xz.
"""

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import decimals, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_with
from tanlearn import BackOffRidge, BayesNetClassifier, KTreeClassifier, MaximumLikelihood, TANClassifier
from tanlearn.baselines import KDependence

from .outcomes import first_cells, first_header, outcomes
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


def write_report(lines, path):
    """Write the report of lines."""
    found = outcomes(lines)
    compared = """This page compares gradient k-trees with trees and KDB-2, each a single network with its defaults and
    seed 0. KDB-2 has two parents per feature, selected by information, and smoothed frequencies or `BackOffRidge()`."""
    made = f"""Raw data sets have five stratified folds (seed 0) and keep their missing values. In data sets with *5 %
    lost*, one value in twenty is missing. Three data sets are the published parts. The column \N{PLUS-MINUS SIGN} is
    the largest standard error of a row, and the lowest value is in bold. Made by `python -m benchmarks.quality.k_trees
    run`, then `report`, with {made_with(lines)}."""
    sections = ["# Gradient k-trees", paragraph(compared), paragraph(made)]
    sections += ["## Errors in %", table(found, "error", 2)]
    sections += ["## Log losses in nats", table(found, "log_loss", 3)]
    sections += ["## Seconds per fit, in processor time of one thread", table(found, "seconds", 1)]
    write_sections(path, sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "k_trees.jsonl"), arguments.output / "k_trees.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    add_choices(running, "--learners", LEARNERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
