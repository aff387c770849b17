"""The table of learners on the site: every learner of the registry on five sets of different kinds.

    python -m benchmarks.quality.learners_table run       # ten minutes; resumes if interrupted
    python -m benchmarks.quality.learners_table report    # writes the table into docs/learners/table.md
    python -m benchmarks.quality.learners_table pack

Each data set has five stratified folds. Learners have their defaults, seed 0 and one thread. To repeat all runs after a
change of the learners, remove results/learners_table.jsonl and results/learners_table.jsonl.xz."""

import numpy as np

from benchmarks import ROOT
from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_by
from tanlearn.baselines import LEARNERS

from .outcomes import outcomes
from .runs import key, run_set

GAPS = "crx"
#: Five sets, and what they stand for.
SETS = {"segment": "numbers", "car": "categories", "german": "noise", "digits": "images", GAPS: "missing values"}
#: A learner that solves a program of the size of the table, and the sets on which that takes minutes.
CONVEX, TOO_LARGE = "NB CVX-MM", ("digits",)
BEGIN, END = "<!-- learners:begin -->\n", "<!-- learners:end -->"


def learners(name):
    """Return the names of the learners that run on a set."""
    return [learner for learner in LEARNERS if learner != CONVEX or name not in TOO_LARGE]


def cell(outcome, is_best):
    """Return error and log loss of a learner on a set."""
    if outcome is None:
        return "-"
    error = f"{outcome.error:.2f}"
    return f"{f'**{error}**' if is_best else error} / {outcome.log_loss:.3f}"


def table(found):
    """Return the table: one row per learner, with the lowest error of each column in bold."""
    best = {name: min(outcome.error for outcome in found[name].values()) for name in SETS}
    header = ["learner", "method", "references"]
    for name, kind in SETS.items():
        spread = min(found[name].values(), key=lambda outcome: outcome.error).standard_error
        header.append(f"{name}<br>{kind}<br>\N{PLUS-MINUS SIGN} {spread:.2f}")
    rows = []
    for learner, entry in LEARNERS.items():
        own = {name: found[name].get(learner) for name in SETS}
        cells = [cell(outcome, outcome is not None and outcome.error == best[name]) for name, outcome in own.items()]
        seconds = np.mean([outcome.seconds for outcome in own.values() if outcome is not None])
        rows.append([learner, entry.description, entry.citation, *cells, f"{seconds:.2f}"])
    return markdown_table([*header, "fit [s]"], rows, left=range(3))


def explanation(lines, found):
    """Return how the table was made, and how to read it."""
    n_rows = ", ".join(f"{name} ({next(iter(found[name].values())).n_rows:,})" for name in SETS)
    failures = [line for line in lines if "failure" in line and line["set"] != GAPS]
    sets_of = {}  # failure -> learner -> data sets
    for line in failures:
        reason = line["failure"].split(". ")[0].split("; got ")[0]
        sets_of.setdefault((line["learner"], reason), []).append(line["set"])
    failed = [
        paragraph(f"- {learner} on {', '.join(sorted({*sets}))} ({reason}).")
        for (learner, reason), sets in sorted(sets_of.items())
    ]
    texts = [
        """Each entry is the test error in % and the log loss in nats, in five stratified folds. The lowest error of a
        data set is in bold, and its standard error is below the name of the data set. A difference of two or three
        standard errors may be due to chance. The ranking of the learners depends on the data set ([defaults on all data
        sets](../../benchmarks/quality/defaults.md)).""",
        f"""An entry is a dash if the learner needs complete rows ({GAPS} has missing values), takes minutes ({CONVEX}
        on {" and ".join(TOO_LARGE)}) or fails{":" if failed else "."}""",
        f"""All learners have their defaults and seed 0. The data sets have these numbers of rows: {n_rows}. Times are
        means of fits, in seconds of processor time of one thread.""",
    ]
    first, dashes, how = map(paragraph, texts)
    made = made_by(lines, "benchmarks.quality.learners_table")
    return "\n\n".join(filter(None, [first, dashes, "\n".join(failed), how, made]))


def with_table(text, table):
    """Return the text with the table between the markers."""
    before, found_begin, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found_begin and found_end):
        raise ValueError(f"the page must hold the lines {BEGIN.strip()} and {END}, in this order.")
    return f"{before}{BEGIN}{table}{END}{after}"


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / "learners_table.jsonl", key)
    for name in arguments.sets:
        models = {learner: LEARNERS[learner].make(random_state=0) for learner in learners(name)}
        run_set(results, name, models, arguments.data)


def report(arguments):
    """Rewrite the page if everything is finished."""
    lines = read(arguments.results / "learners_table.jsonl")
    found = outcomes(lines)
    failed = {(line["set"], line["learner"]) for line in lines if "failure" in line}
    open_ = [
        f"{learner} on {name}"
        for name in SETS
        for learner in learners(name)
        if learner not in found.get(name, {}) and (name, learner) not in failed
    ]
    if open_:
        raise SystemExit(f"not finished: {', '.join(open_)}. The command run does what is missing.")
    path = arguments.output / "table.md"
    text = f"{table(found)}\n\n{explanation(lines, found)}\n"
    path.write_text(with_table(path.read_text(encoding="utf-8"), text), encoding="utf-8")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, output=ROOT / "docs" / "learners")
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
