"""Mean ranks of learners over data sets, for pools of learners that have finished the same sets."""

from benchmarks.shared.reports import folded, joined, markdown_table, paragraph

from .learners import LEARNERS
from .outcomes import MEASURES, PARTS
from .ranks import friedman, mean_ranks
from .sets import LATER

#: A learner takes part in ranks when it has finished this fraction of the sets that any learner has finished.
FRACTION = 0.8
#: Those that have finished fewer, but at least this fraction, are ranked on the sets that they have finished.
LOWER_FRACTION = 0.5
DIGITS = {"error": 2, "log_loss": 3, "brier": 3}


def taking_part(outcomes, is_meant, fraction=FRACTION):
    """Return the learners of a kind that have finished most sets."""
    n_sets = len(outcomes.sets)
    wanted = [name for name in outcomes.learners if is_meant(LEARNERS[name])]
    return [name for name in wanted if len(outcomes.common([name])) >= fraction * n_sets]


def unlimited(outcomes):
    """Return the learners without a limit of rows that have finished most sets."""
    return taking_part(outcomes, lambda one: one.most_rows is None)


def slow(outcomes, others):
    """Return the learners that have finished fewer sets than the others, but at least half."""
    some = taking_part(outcomes, lambda one: one.most_rows is None and not one.stand_in, LOWER_FRACTION)
    return [name for name in some if name not in others]


def pools(outcomes):
    """Return the groups of learners that are ranked together, by title."""
    everyone = unlimited(outcomes)
    defaults = [name for name in everyone if not LEARNERS[name].is_tuned]
    found = {"All learners": everyone, "Learners of tanlearn and peers with defaults": defaults}
    limited = [name for name in outcomes.learners if LEARNERS[name].most_rows is not None]
    for more in (slow(outcomes, everyone), limited):
        if more:
            found[f"With {joined(more)}, on {'its' if len(more) == 1 else 'their'} data sets"] = [*everyone, *more]
    known, kept = [], {}
    for title, learners in found.items():
        if len(learners) > 2 and learners not in known and len(outcomes.common(learners)) > 1:
            known.append(learners)
            kept[title] = learners
    return kept


def ranking(outcomes, learners):
    """Return the table of mean ranks, the best log loss first: all measures, on all sets and each group."""
    tables = {(m, part): outcomes.table(learners, m, part) for m in MEASURES for part in PARTS}
    ranks = {which: mean_ranks(table) if len(table) else None for which, table in tables.items()}
    rows = []
    for column in ranks["log_loss", "all sets"].argsort(kind="stable"):
        cells = []
        for found in ranks.values():
            text = "-" if found is None else f"{found[column]:.2f}"
            cells.append(f"**{text}**" if found is not None and found[column] == found.min() else text)
        rows.append([learners[column], *cells])
    header = ["learner", *(f"{MEASURES[m]}, {part}" if part == PARTS[0] else part for m, part in tables)]
    sizes = ", ".join(f"{len(tables['error', part])} {part}" for part in PARTS[1:])
    chance = ", ".join(f"{friedman(tables[m, PARTS[0]]):.2g} for {MEASURES[m]}" for m in MEASURES)
    text = f"""The table shows mean ranks over the {len(tables["error", PARTS[0]])} data sets ({sizes}) that all of
    these learners have finished. The p-values of Friedman's test are {chance}."""
    return f"{paragraph(text)}\n\n{markdown_table(header, rows)}"


def ranks_and_means(outcomes, learners, n_best=None):
    """Return the table of mean ranks and means of all measures, the best log loss first."""
    tables = {measure: outcomes.table(learners, measure) for measure in MEASURES}
    ranks = {measure: mean_ranks(table) for measure, table in tables.items()}
    rows = []
    for column in ranks["log_loss"].argsort(kind="stable")[:n_best]:
        cells = []
        for measure, table in tables.items():
            for found, digits in ((ranks[measure], 2), (table.mean(axis=0), DIGITS[measure])):
                text = f"{found[column]:.{digits}f}"
                cells.append(f"**{text}**" if found[column] == found.min() else text)
        rows.append([learners[column], *cells])
    header = ["learner", *(text for title in MEASURES.values() for text in (f"rank by {title}", f"mean {title}"))]
    return markdown_table(header, rows)


def ranking_apart(outcomes, n_best):
    """Return mean ranks and means of learners on the data sets kept apart, with those after the best folded."""
    learners = taking_part(outcomes, lambda one: True)
    text = f"""These data sets were added after the others, and were not used to choose any setting or learner. Ranks
    and means are those of the {len(outcomes.common(learners))} of {len(LATER)} data sets that all learners in the table
    have finished."""
    best = ranks_and_means(outcomes, learners, n_best)
    rest = folded(f"All {len(learners)} learners", ranks_and_means(outcomes, learners))
    return "\n\n".join([paragraph(text), best, *([rest] if len(learners) > n_best else [])])


def ranking_by_area(outcomes):
    """Return mean ranks and means of the areas under ROC curves, or nothing for few learners or sets."""
    measured = outcomes.with_areas()
    learners = taking_part(measured, lambda one: True)
    areas = measured.table(learners, "auc")
    if len(learners) < 2 or len(areas) < LOWER_FRACTION * len(outcomes.sets):
        return ""
    ranks, means = mean_ranks(-areas), areas.mean(axis=0)
    rows = []
    for column in ranks.argsort(kind="stable"):
        cells = [
            (f"{ranks[column]:.2f}", ranks[column] == ranks.min()),
            (f"{means[column]:.4f}", means[column] == means.max()),
        ]
        rows.append([learners[column], *(f"**{text}**" if is_best else text for text, is_best in cells)])
    text = f"""The table shows means over the {len(areas)} data sets for which areas of all these learners are
    available. The area for a data set is the mean over its classes, each against all others. Higher areas and lower
    ranks are better."""
    return f"{paragraph(text)}\n\n{markdown_table(['learner', 'mean rank', 'mean area'], rows)}"
