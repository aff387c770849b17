"""Parent dropout and the candidates of HybridCV, for the most likely tree, on all raw sets of up to 10,000 rows.

    python -m benchmarks.quality.parent_dropout run                     # an hour; resumes if interrupted
    python -m benchmarks.quality.parent_dropout run --sets car chess
    python -m benchmarks.quality.parent_dropout report                  # writes parent_dropout.md and its details

Sets, folds and halves are those of benchmarks.quality.defaults; settings were chosen on one half. letter, satimage and
usps are also used in their published form.
"""

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, read
from benchmarks.shared.versions import made_by
from tanlearn import BayesNetClassifier, HybridCV, SoftHybrid, StochasticGradient
from tanlearn.baselines import ChowLiu
from tanlearn.parameters.hybrid_cv import default_learners

from . import defaults
from .outcomes import mean, outcomes, paired
from .runs import key, run_set, sizes
from .verdicts import HALVES, parts

MOST_ROWS = 10_000
#: Standard errors of the paired difference beyond which a difference is clear.
CLEAR = 2.0


def long(parent_dropout):
    """Return a long training with margins, which overfits without regularization."""
    return StochasticGradient(
        loss=SoftHybrid(trade_off=100, gamma=10),
        learning_rate=0.03,
        n_epochs=300,
        parent_dropout=parent_dropout,
        calibrate=False,
    )


PARAMETERS = {
    "long": long(0.0),
    "long, 0.15": long(0.15),
    "long, 0.3": long(0.3),
    "long, 0.5": long(0.5),
    "HybridCV": HybridCV(),
    "HybridCV and long, 0.3": HybridCV(learners=[*default_learners(), long(0.3)]),
}
#: Compared settings: with dropout, and without.
PAIRS = (("long, 0.3", "long"), ("HybridCV and long, 0.3", "HybridCV"))
SUBJECTS = ("Parent dropout of 0.3 in long trainings", "The same training as another candidate of HybridCV")


def run(arguments):
    """Run everything that is not finished, small sets first."""
    results = Results(arguments.results / "parent_dropout.jsonl", key)
    n_rows = {name: n for name, n in sizes(arguments.data).items() if n <= defaults.MOST_ROWS}
    half = defaults.halves(n_rows)
    some = sorted((name for name in n_rows if n_rows[name] <= MOST_ROWS), key=n_rows.get)
    models = {
        name: BayesNetClassifier(structure=ChowLiu(), parameters=PARAMETERS[name], random_state=0)
        for name in arguments.learners
    }
    for name in arguments.sets or [*some, *defaults.PUBLISHED_SETS]:
        run_set(results, name, models, arguments.data, half=half.get(name))


def table(found, value, digits):
    """Return one row per data set."""
    rows = []
    for name, row in found.items():
        texts = [f"{getattr(row[one], value):.{digits}f}" if one in row else "" for one in PARAMETERS]
        rows.append([name, f"{next(iter(row.values())).n_rows:,}", *texts])
    return markdown_table(["set", "rows", *PARAMETERS], rows)


def means(found, half):
    """Return one row per learner with its means over the raw data sets on which all are finished."""
    found_parts = {part: names for part, names in parts(found, half, tuple(PARAMETERS)).items() if names}
    rows = [
        [
            one,
            *(f"{mean(found, names, one):.2f}" for names in found_parts.values()),
            *(f"{mean(found, names, one, 'seconds'):.2f}" for names in found_parts.values()),
        ]
        for one in PARAMETERS
    ]
    titles = [f"{part} ({len(names)})" for part, names in found_parts.items()]
    header = ["parameters", *(f"error [%], {one}" for one in titles), *(f"seconds, {one}" for one in titles)]
    return markdown_table(header, rows) if found_parts else ""


def clear(found, names, ours, without):
    """Return the data sets with a clearly lower and a clearly higher error, with the difference in points."""
    compared = {name: paired(found[name][ours], found[name][without]) for name in names}
    return tuple(
        {name: points for name, (points, error) in compared.items() if sign * points > CLEAR * error}
        for sign in (-1, 1)
    )


def summary(found, half):
    """Return the verdicts in sentences."""
    text = []
    for (ours, without), subject in zip(PAIRS, SUBJECTS, strict=True):
        names = parts(found, half, (ours, without))["all sets"]
        if not names:
            continue
        less, more = clear(found, names, ours, without)
        before, after = (mean(found, names, one) for one in (without, ours))
        ratio = mean(found, names, ours, "seconds") / mean(found, names, without, "seconds")
        text.append(
            f"{subject} clearly lowers the error on {len(less)} of {len(names)} data sets and clearly raises it on "
            f"{len(more)}. The mean error changes from {before:.2f} to {after:.2f} %, and a fit takes {ratio:.1f} "
            "times as long."
        )
    names = parts(found, half, tuple(PARAMETERS))["all sets"]
    if names:
        best = min(PARAMETERS, key=lambda one: mean(found, names, one))
        text.append(f"The lowest mean error of all settings is {mean(found, names, best):.2f} % ({best}).")
    return paragraph(" ".join(text) or "No data set is finished yet.")


def verdicts(found, half):
    """Return for every pair on how many sets dropout has clearly fewer or more errors."""
    sentences = []
    for ours, without in PAIRS:
        for part, names in parts(found, half, (ours, without)).items():
            less, more = clear(found, names, ours, without)
            if names:
                listed = ", ".join(f"{name} {points:+.2f}" for name, points in {**less, **more}.items())
                sentences.append(
                    f"*{ours}* relative to *{without}*, {part}: a clearly lower error on {len(less)} of {len(names)} "
                    f"data sets and a clearly higher error on {len(more)}{f' ({listed} points)' if listed else ''}."
                )
    return "\n".join(f"- {sentence}" for sentence in sentences)


def write_report(lines, folder):
    """Write the summary and the page of details."""
    found, half = outcomes(lines), {line["set"]: line["half"] for line in lines}
    if not found:
        raise SystemExit("nothing is finished: the command run does it.")
    compared = f"""All learners fit the maximum-likelihood tree (Chow and Liu). *long* is `{
        " ".join(repr(PARAMETERS["long"]).split())
    }`. *0.15*, *0.3* and *0.5* are its parent_dropout. The selection of HybridCV uses held-out rows of the training
    part."""
    how = f"""Raw data sets with up to {MOST_ROWS:,} rows have five folds, and three data sets are split as in papers. A
    difference is clear if it exceeds {CLEAR:g} standard errors of the paired difference. Means are over raw data sets:
    "{HALVES[0]}" are the first, third, ... in alphabetical order, "{HALVES[1]}" the others. Seconds are processor time
    of one thread."""
    made = made_by(lines, "benchmarks.quality.parent_dropout run", "benchmarks.quality.parent_dropout report")
    sections = [
        "# Parent dropout",
        summary(found, half),
        means(found, half),
        "Errors and seconds per data set are on [a separate page](parent_dropout_details.md).",
        "## How it was measured",
        *map(paragraph, (compared, how)),
        made,
    ]
    write_sections(folder / "parent_dropout.md", sections)
    sections = [
        "# Parent dropout: details",
        "The [summary](parent_dropout.md) contains the main results, and explains data and learners.",
        verdicts(found, half),
        "## Errors in %",
        table(found, "error", 2),
        "## Processor seconds per fit",
        table(found, "seconds", 2),
    ]
    write_sections(folder / "parent_dropout_details.md", sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "parent_dropout.jsonl"), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    running.add_argument("--sets", nargs="+", metavar="SET", help="all by default")
    add_choices(running, "--learners", PARAMETERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
