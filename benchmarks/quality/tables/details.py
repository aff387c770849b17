"""The page of details: all ranks, all pairs of learners, times and sizes, and the results of each data set."""

import csv

import numpy as np

from benchmarks.shared.reports import markdown_table, paragraph, write_sections

from .duels import duels, great_losses
from .learners import LEARNERS
from .outcomes import MEASURES, PARTS
from .rankings import DIGITS, pools, ranking, ranking_by_area, unlimited
from .sets import HALF
from .time_plot import finished_lines
from .verdicts import WORSE

FIGURES = {"error": "Errors in %", "log_loss": "Log losses in nats", "brier": "Brier scores"}
COLUMNS = ("set", "group", "rows", "learner", "error", "log_loss", "brier", "calibration_error", "fit_seconds")


def costs(outcomes, learners):
    """Return mean seconds, microseconds per row and sizes over the common sets."""
    common, rows = outcomes.common(learners), []
    for learner in learners:
        lines = finished_lines(outcomes, learner, common)
        fit, wall, n_bytes = (
            np.mean([line[what] for line in lines]) for what in ("fit_seconds", "fit_wall", "n_bytes")
        )
        n_rows = sum(line["n_test"] for line in lines)
        predict, passed = (
            1e6 * sum(line[what] for line in lines) / n_rows for what in ("predict_seconds", "predict_wall")
        )
        rows.append([learner, f"{fit:.3f}", f"{wall:.3f}", f"{predict:.1f}", f"{passed:.1f}", f"{n_bytes / 1e6:.2f}"])
    return markdown_table(
        ["learner", "fit [s]", "wall clock", "predict, per row [µs]", "wall clock", "size [MB]"], rows
    )


def everything(outcomes, value, digits):
    """Return one row per data set, with its lowest value in bold."""
    rows = []
    for name in (*outcomes.sets, *outcomes.published):
        found = {one: value(name, one) for one in outcomes.learners if outcomes.seeds(name, [one])}
        line, half = outcomes.lines(name, next(iter(found)))[0], HALF.get(name, "")
        rows.append([name, half[:1], f"{line['n_train'] + line['n_test']:,}", *figures(outcomes, found, digits)])
    return rows


def means(outcomes, learners, measure, digits):
    """Return rows of means over the common sets, of all of them and of each group."""
    rows = []
    for part in PARTS:
        table = outcomes.table(learners, measure, part)
        if len(table):
            found = dict(zip(learners, table.mean(axis=0), strict=True))
            rows.append(
                [f"mean, {part}", "", f"{len(table)} set{'s' * (len(table) > 1)}", *figures(outcomes, found, digits)]
            )
    return rows


def figures(outcomes, found, digits):
    """Return one cell per learner, with the lowest in bold."""
    texts = {one: "fails" if np.isinf(number) else f"{number:.{digits}f}" for one, number in found.items()}
    low = f"{min(found.values()):.{digits}f}"
    cells = (texts.get(one, "-") for one in outcomes.learners)
    return [f"**{text}**" if text == low else text for text in cells]


def unfinished(outcomes):
    """Return failed and unfinished learners in words."""
    said = [f"{learner} fails on {name}: {why}" for (name, learner), why in sorted(outcomes.failures.items())]
    for learner in LEARNERS:
        n_sets = len(outcomes.common([learner]))
        if n_sets < len(outcomes.sets) and LEARNERS[learner].most_rows is None:
            said.append(f"{learner}: {n_sets} of {len(outcomes.sets)} sets")
    return "\n".join(f"- {one}" for one in said)


def sections(outcomes, kept_apart):
    """Yield the sections."""
    found = pools(outcomes)
    yield "# Comparison with other libraries: details"
    yield paragraph("""The [summary](tables.md) contains the main results, and explains data, learners and measures. The
    results of each data set are also in [a CSV file](tables.csv).""")
    for title, learners in found.items():
        yield f"## Mean ranks: {title[0].lower()}{title[1:]}\n\n{ranking(outcomes, learners)}"
    for group, where in ((outcomes, ""), (kept_apart, ", data sets kept apart")):
        areas = ranking_by_area(group)
        yield f"## Mean ranks: areas under the ROC curve{where}\n\n{areas}" if areas else ""
    yield "## Wins, draws and losses"
    yield paragraph("""Each entry compares a learner of tanlearn (row) with a peer (column) by the numbers of data sets
    won / undecided / lost. A difference counts if a t-test at 5 %, corrected for overlapping training parts (Nadeau,
    Bengio 2003), is significant over folds and seeds. The numbers of data sets with a lower and a higher mean are in
    brackets.""")
    for measure, title in MEASURES.items():
        yield f"### By {title}\n\n{duels(outcomes, measure)}"
    yield f"## Data sets with errors over {WORSE:g} points above those of a random forest"
    yield great_losses(outcomes)
    for title, learners in found.items():
        yield f"## Time and size: {title[0].lower()}{title[1:]}, means over {len(outcomes.common(learners))} sets"
        yield costs(outcomes, learners)
    header = ["set", "c/h", "rows", *outcomes.learners]
    for measure, title in FIGURES.items():
        rows = everything(
            outcomes, lambda name, one, measure=measure: outcomes.mean(name, one, measure), DIGITS[measure]
        )
        yield f"## {title}"
        yield markdown_table(
            header, [*rows, *means(outcomes, unlimited(outcomes), measure, DIGITS[measure])], left=(0, 1)
        )
    yield "## Calibration errors in points"
    yield markdown_table(header, everything(outcomes, outcomes.calibration, 2), left=(0, 1))
    missing = unfinished(outcomes)
    yield f"## Not finished\n\n{missing}" if missing else ""


def write_csv(outcomes, group, path):
    """Append the means of each data set and learner to a CSV file; failures have empty fields."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        for name in (*outcomes.sets, *outcomes.published):
            for learner in (one for one in outcomes.learners if outcomes.seeds(name, [one])):
                line, values = outcomes.lines(name, learner)[0], [""] * 5
                if (name, learner) not in outcomes.failures:
                    mean = {what: outcomes.mean(name, learner, what) for what in (*MEASURES, "fit_seconds")}
                    mean["calibration"] = outcomes.calibration(name, learner)
                    order = (*MEASURES, "calibration", "fit_seconds")
                    values = [f"{mean[what]:.4f}" for what in order]
                writer.writerow([name, group(name), line["n_train"] + line["n_test"], learner, *values])


def write_details(outcomes, kept_apart, folder):
    """Write the page of details, and the CSV file with the results of all data sets."""
    path = folder / "tables.csv"
    path.unlink(missing_ok=True)
    write_csv(outcomes, lambda name: HALF.get(name, "published"), path)
    write_csv(kept_apart, lambda name: "kept apart", path)
    write_sections(folder / "tables_details.md", sections(outcomes, kept_apart))
