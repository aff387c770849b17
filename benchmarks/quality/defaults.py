"""Defaults of gradient learners beside fixed settings, on all raw sets of up to 30,000 rows.

    python -m benchmarks.quality.defaults run                     # an hour or two; goes on where it stopped
    python -m benchmarks.quality.defaults run --sets car chess
    python -m benchmarks.quality.defaults report                  # writes defaults.md from what is finished

"Fixed" are the former defaults, before settings were selected on held-out rows: one loss, 100 iterations or epochs, not
calibrated. Each set has five stratified folds, seed 0; letter, satimage and usps are also used in their published form.
To repeat all runs after a change of the learners, remove results/defaults.jsonl and results/defaults.jsonl.xz.
"""

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_with
from tanlearn import (
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    Hybrid,
    Margin,
    StochasticGradient,
    TANClassifier,
)
from tanlearn.baselines import LEARNERS as REGISTRY
from tanlearn.baselines import ChowLiu

from .outcomes import first_cells, first_header, mean, outcomes
from .runs import PUBLISHED, key, run_set, sizes
from .verdicts import COLUMNS, DEFAULTS, FIXED, HALVES, LEARNERS, WORSE, is_clearly_worse, judge, marked, parts, summary

MOST_ROWS = 30_000
PUBLISHED_SETS = [f"{name}{PUBLISHED}" for name in ("letter", "satimage", "usps")]


def tree(parameters):
    """Return the most likely tree with parameters of some kind."""
    return BayesNetClassifier(structure=ChowLiu(), parameters=parameters, random_state=0)


def gradient(loss):
    """Return conjugate gradient with its former default of 100 iterations."""
    return ConjugateGradient(loss=loss, max_iter=100, calibrate=False)


FIXED_MODELS = {
    "TAN-CMI CG-CL": tree(gradient(ConditionalNLL())),
    "TAN-CMI CG-MM": tree(gradient(Margin())),
    "TAN-CMI HYB": tree(StochasticGradient(calibrate=False)),
    "TAN Subset HYB": TANClassifier(loss=Hybrid(), calibrate=False, random_state=0),
    "TAN Order-free HYB": TANClassifier(candidates="order-free", loss=Hybrid(), calibrate=False, random_state=0),
}


def model(learner):
    """Return an unfitted classifier by its name in the results."""
    if learner == "TAN-CMI CrossTuned":
        return tree(CrossTuned())
    if learner.endswith(FIXED):
        return FIXED_MODELS[learner.removesuffix(FIXED)]
    return REGISTRY[learner].make(random_state=0)


def halves(names):
    """Return the half of every data set: in alphabetical order, every second one is held out."""
    return {name: HALVES[place % 2] for place, name in enumerate(sorted(names))}


def run(arguments):
    """Run everything that is not finished, small sets first."""
    results = Results(arguments.results / "defaults.jsonl", key)
    n_rows = {name: n for name, n in sizes(arguments.data).items() if n <= MOST_ROWS}
    half = halves(n_rows)
    sets = arguments.sets or [*sorted(n_rows, key=n_rows.get), *PUBLISHED_SETS]
    models = {learner: model(learner) for learner in arguments.learners}
    for name in sets:
        run_set(results, name, models, arguments.data, half=half.get(name))


def beside(texts):
    """Return the cells of a row: fixed setting and default, with an arrow between."""
    return [" \N{RIGHTWARDS ARROW} ".join(texts.get(learner, "-") for learner in pair) for pair in COLUMNS.values()]


def table(found, half, value, digits):
    """Return one row per data set, and means over those on which all learners are finished."""
    is_error = value == "error"
    rows = []
    for name, row in found.items():
        texts = {learner: f"{getattr(outcome, value):.{digits}f}" for learner, outcome in row.items()}
        for learner in set(DEFAULTS.values()) & texts.keys():
            texts[learner] = marked(texts[learner], is_error and is_clearly_worse(row, learner))
        rows.append([*first_cells(name, row, value), *beside(texts)])
    for part, names in parts(found, half, LEARNERS).items():
        if names:
            texts = {learner: f"{mean(found, names, learner, value):.{digits}f}" for learner in LEARNERS}
            n_sets = f"{len(names)} set{'s' * (len(names) > 1)}"
            rows.append([f"mean, {part}", n_sets, *([""] if is_error else []), *beside(texts)])
    return markdown_table([*first_header(value), *COLUMNS], rows)


def unfinished(lines, found):
    """Return the unfinished and failed learners in words."""
    lacking = {name: [learner for learner in LEARNERS if learner not in row] for name, row in found.items()}
    said = [f"{name} lacks {', '.join(absent)}" for name, absent in lacking.items() if absent]
    failed = {f"{line['learner']} fails on {line['set']}: {line['failure']}" for line in lines if "failure" in line}
    return "\n".join(f"- {one}" for one in [*said, *sorted(failed)])


def introduction(lines, found):
    """Return how the figures were made, and what they mean."""
    n_published = sum(name.endswith(PUBLISHED) for name in found)
    compared = """This page compares the defaults of gradient learners with fixed settings. The first number of a pair
    is the fixed setting: 100 iterations or epochs of one loss, without calibration. The second number is the default,
    whose loss and number of iterations are selected on held-out rows. ML to CrossTuned are parameters of the
    maximum-likelihood tree (TAN-CMI). ML has no settings to select, and CrossTuned is `CrossTuned()`. Subset and
    Order-free are gradient TAN."""
    means = f"""Errors are those of all test rows. The column \N{PLUS-MINUS SIGN} is the largest standard error of a
    row. Bold defaults have a clearly higher error than the best of the four fixed settings for the maximum-likelihood
    tree: by over {WORSE:g} point, and over two standard errors of the paired difference. Log losses are in nats. Means
    are over raw data sets on which all learners are finished: "{HALVES[0]}" are the first, third, ... in alphabetical
    order, "{HALVES[1]}" the others."""
    made = f"""The {len(found) - n_published} raw data sets have five stratified folds (seed 0) and keep their missing
    values; {n_published} data sets are discretized and split as in papers. Learners have seed 0, and seconds are
    processor time of one thread. Made by `python -m benchmarks.quality.defaults run`, then `report`, with
    {made_with(lines)}."""
    return "\n\n".join(paragraph(text) for text in (compared, means, made))


def write_report(lines, path):
    """Write the report of lines."""
    found, half = outcomes(lines), {line["set"]: line["half"] for line in lines}
    judged, lacking = judge(found, half), unfinished(lines, found)
    sections = [
        "# Defaults and fixed settings",
        introduction(lines, found),
        "## Missed targets",
        "Number of missed targets of each default, by section. Misses are bold.",
        summary(judged),
        *(f"### {one.title}\n\n{one.text}" for one in judged),
        "## Errors in %",
        table(found, half, "error", 2),
        "## Log losses",
        table(found, half, "log_loss", 3),
        f"## Not finished\n\n{lacking}" if lacking else "",
    ]
    write_sections(path, sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "defaults.jsonl"), arguments.output / "defaults.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    running.add_argument("--sets", nargs="+", metavar="SET", help="by default all of them")
    add_choices(running, "--learners", LEARNERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
