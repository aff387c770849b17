"""Defaults of gradient learners, compared with fixed settings, on all raw sets of up to 30,000 rows.

    python -m benchmarks.quality.defaults run                     # an hour or two; resumes if interrupted
    python -m benchmarks.quality.defaults run --sets car chess
    python -m benchmarks.quality.defaults report                  # writes defaults.md and defaults_details.md

"Fixed" are the former defaults, before settings were selected on held-out rows: one loss, 100 iterations or epochs, not
calibrated. Each set has five stratified folds, seed 0; letter, satimage and usps are also used in their published form.
To repeat all runs after a change of the learners, remove results/defaults.jsonl and results/defaults.jsonl.xz.
"""

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_by
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
from .verdicts import COLUMNS, DEFAULTS, FIXED, HALVES, LEARNERS, TREES, WORSE, is_clearly_worse, judge, marked, parts
from .verdicts import summary as missed_targets

MOST_ROWS = 30_000
ARROW = " \N{RIGHTWARDS ARROW} "
#: Measures of the table of means, with their decimals and names.
DIGITS, WORDS = {"error": 2, "log_loss": 3}, {"error": "error [%]", "log_loss": "log loss"}
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
    return [ARROW.join(texts.get(learner, "-") for learner in pair) for pair in COLUMNS.values()]


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


def means_table(found, half):
    """Return the mean errors and log losses of fixed settings and defaults, with one row per learner."""
    measures = [(value, part, names) for value in DIGITS for part, names in parts(found, half, LEARNERS).items()]
    measures = [one for one in measures if one[2] and (one[0] == "error" or one[1] == "all sets")]
    rows = [
        [
            short,
            *(
                ARROW.join(f"{mean(found, names, learner, value):.{DIGITS[value]}f}" for learner in pair)
                for value, _, names in measures
            ),
        ]
        for short, pair in COLUMNS.items()
    ]
    header = [f"{WORDS[value]}, {part} ({len(names)})" for value, part, names in measures]
    return markdown_table(["learner", *header], rows) if measures else ""


def summary(found, half, judged):
    """Return the verdicts in sentences."""
    names = parts(found, half, LEARNERS)["all sets"]
    if not names:
        return "Too few data sets are finished for a verdict."
    error = {learner: mean(found, names, learner) for learner in LEARNERS}
    best, tree_ = min(DEFAULTS, key=lambda short: error[DEFAULTS[short]]), min(TREES, key=lambda s: error[TREES[s]])
    pairs = [pair for pair in COLUMNS.values() if len(pair) == 2]
    gains = [error[fixed] - error[default] for fixed, default in pairs]
    n_lower = sum(gain > 0 for gain in gains)
    losses = [max(mean(found, names, pair[k], "log_loss") for pair in pairs) for k in (0, 1)]
    text = f"""On average over {len(names)} raw data sets, {best} has the lowest error of all defaults,
    {error[DEFAULTS[best]]:.2f} %. The best fixed setting for the maximum-likelihood tree, {tree_}, has
    {error[TREES[tree_]]:.2f} %. For {n_lower} of {len(pairs)} learners, the defaults have a lower mean error than the
    fixed setting of the same learner, by at most {max(gains):.2f} points. The highest mean log loss is {losses[0]:.3f}
    nats with fixed settings and {losses[1]:.3f} nats with defaults."""
    worse = {short: judged[1].misses.get(short, 0) for short in DEFAULTS}
    most = max(worse, key=worse.get)
    n_none = sum(not n for n in worse.values())
    text += f""" Compared with the best fixed tree of each data set, {n_none} of {len(worse)} defaults never have a
    clearly higher error; {most} has a clearly higher error on {worse[most]} data sets."""
    letter = found.get("letter", {})
    ratios = [letter[new].seconds / letter[old].seconds for old, new in pairs if letter.keys() >= {old, new}]
    if ratios:
        text += f""" The cost is time: on letter, a fit with defaults takes {min(ratios):.1f} to {max(ratios):.1f} times
        as long as with fixed settings."""
    return paragraph(text)


def method(lines, found):
    """Return how the figures were made, and what they mean."""
    n_published = sum(name.endswith(PUBLISHED) for name in found)
    compared = f"""Fixed settings are 100 iterations or epochs of one loss, without calibration. The loss and the number
    of iterations of defaults are selected on held-out rows. ML, CG-CL, CG-MM, HYB and CrossTuned are parameter learners
    for the maximum-likelihood tree (TAN-CMI). ML has no settings to select, and CrossTuned is `CrossTuned()`. Subset
    and Order-free are gradient TAN. An error is clearly higher than another one if the difference is over {WORSE:g}
    point and over two standard errors of the paired difference."""
    data = f"""The {len(found) - n_published} raw data sets have five stratified folds (seed 0) and keep their missing
    values; {n_published} data sets are discretized and split as in papers. Means are over the raw data sets on which
    all learners are finished. In alphabetical order, the first, third, ... data sets are "{HALVES[0]}", and the others
    are "{HALVES[1]}". Learners have seed 0, and seconds are processor time of one thread. Log losses are in nats."""
    made = made_by(lines, "benchmarks.quality.defaults run", "benchmarks.quality.defaults report")
    return "\n\n".join((paragraph(compared), paragraph(data), made))


def write_report(lines, folder):
    """Write the summary and the page of details."""
    found, half = outcomes(lines), {line["set"]: line["half"] for line in lines}
    if not found:
        raise SystemExit("nothing is finished: the command run does it.")
    judged, lacking = judge(found, half), unfinished(lines, found)
    pairs = f"""Each pair shows the mean with the fixed setting{ARROW}with the default. The number of data sets is in
    brackets."""
    sections = [
        "# Defaults and fixed settings",
        summary(found, half, judged),
        means_table(found, half),
        paragraph(pairs),
        "## Missed targets",
        paragraph("""Each entry is the number of times that a default misses the target, in bold if it is not 0. The
        [details](defaults_details.md) list them, with the errors and log losses of each data set."""),
        missed_targets(judged),
        f"## How it was measured\n\n{method(lines, found)}",
    ]
    write_sections(folder / "defaults.md", sections)
    text = f"""The [summary](defaults.md) contains the main results, and explains data and learners. The first number of
    a pair is the result of the fixed setting, and the second number is the result of the default. Errors are those of
    all test rows. The column \N{PLUS-MINUS SIGN} is the largest standard error of a row. Bold defaults have a clearly
    higher error than the best of the four fixed settings for the maximum-likelihood tree: by over {WORSE:g} point, and
    over two standard errors of the paired difference."""
    sections = [
        "# Defaults and fixed settings: details",
        paragraph(text),
        "## Missed targets",
        *(f"### {one.title}\n\n{one.text}" for one in judged),
        "## Errors in %",
        table(found, half, "error", 2),
        "## Log losses",
        table(found, half, "log_loss", 3),
        f"## Not finished\n\n{lacking}" if lacking else "",
    ]
    write_sections(folder / "defaults_details.md", sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "defaults.jsonl"), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    running.add_argument("--sets", nargs="+", metavar="SET", help="all by default")
    add_choices(running, "--learners", LEARNERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
