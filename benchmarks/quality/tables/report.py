"""The report: verdicts, mean ranks with their diagrams, duels, times and sizes, and all sets."""

import numpy as np

from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.versions import made_with

from . import peers
from .diagram import draw
from .learners import ENSEMBLE, FEW_ROWS, FOREST, LEARNERS, NUMBERED, RANDOM_FOREST
from .outcomes import MEASURES, PARTS, Outcomes
from .ranks import differences, friedman, is_clear, mean_ranks
from .sets import HALF, LATER, MOST_ROWS, TWINS
from .tuning import LEAST, MOST_TREES, PATIENCE
from .verdicts import WORSE, in_words, judge, losses

#: A learner takes part in ranks when it has finished this share of the sets that anyone has finished.
SHARE = 0.8
DIGITS = {"error": 2, "log_loss": 3, "brier": 3}
FIGURES = {"error": "Errors in %", "log_loss": "Log losses in nats", "brier": "Brier scores"}


def taking_part(outcomes, is_meant):
    """Return the learners of a kind that have finished most sets."""
    n_sets = len(outcomes.sets)
    wanted = [name for name in outcomes.learners if is_meant(LEARNERS[name])]
    return [name for name in wanted if len(outcomes.common([name])) >= SHARE * n_sets]


def pools(outcomes):
    """Return the groups of learners that are ranked together, by the name of a picture and a title."""
    unlimited = taking_part(outcomes, lambda one: one.most_rows is None)
    defaults = [name for name in unlimited if not LEARNERS[name].is_tuned]
    limited = [name for name in outcomes.learners if LEARNERS[name].most_rows is not None]
    found = {
        ("tables", "All learners"): unlimited,
        ("tables_defaults", "Learners of tanlearn and peers with defaults"): defaults,
    }
    if limited:
        found["tables_small", f"With {' and '.join(limited)}, on its data sets"] = [*unlimited, *limited]
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
    said = f"""Means over the {len(tables["error", PARTS[0]])} data sets ({sizes}) that all of these learners have
    finished. The p-values of Friedman's test are {chance}."""
    return f"{paragraph(said)}\n\n{markdown_table(header, rows)}"


def ranking_apart(outcomes):
    """Return mean ranks and means of learners on the data sets kept apart, the best log loss first."""
    learners = taking_part(outcomes, lambda one: True)
    tables = {measure: outcomes.table(learners, measure) for measure in MEASURES}
    ranks = {measure: mean_ranks(table) for measure, table in tables.items()}
    rows = []
    for column in ranks["log_loss"].argsort(kind="stable"):
        cells = []
        for measure, table in tables.items():
            for found, digits in ((ranks[measure], 2), (table.mean(axis=0), DIGITS[measure])):
                text = f"{found[column]:.{digits}f}"
                cells.append(f"**{text}**" if found[column] == found.min() else text)
        rows.append([learners[column], *cells])
    header = ["learner", *(text for title in MEASURES.values() for text in (f"rank by {title}", f"mean {title}"))]
    said = f"""No setting and no learner was chosen with these data sets, which were added after the others. Ranks and
    means are those of the {len(outcomes.common(learners))} of {len(LATER)} data sets that all of these learners have
    finished."""
    return f"{paragraph(said)}\n\n{markdown_table(header, rows)}"


def duel(outcomes, own, peer, measure, part="all sets"):
    """Return clear wins, draws and clear losses of a learner, and the numbers of sets with lower and higher means."""
    counts, lower, higher = [0, 0, 0], 0, 0
    for name, seeds in outcomes.common([own, peer], part).items():
        if {(name, own), (name, peer)} & outcomes.failures.keys():
            found, clear = differences(*(np.array([outcomes.mean(name, one, measure)]) for one in (own, peer))), True
        else:
            pair = [outcomes.lines(name, one, seeds) for one in (own, peer)]
            found = differences(*(np.array([line[measure] for line in lines]) for lines in pair))
            clear = is_clear(found, [line["n_test"] / line["n_train"] for line in pair[0]])
        sign = np.sign(np.round(found.mean(), 9))
        lower, higher = lower + (sign < 0), higher + (sign > 0)
        counts[1 + int(sign) if clear else 1] += 1
    return f"{counts[0]}/{counts[1]}/{counts[2]} ({lower}:{higher})" if sum(counts) else "-"


def duels(outcomes, measure):
    """Return the table of our learners against every peer, on all sets and each group."""
    others = [name for name in outcomes.learners if not LEARNERS[name].is_ours]
    rows = [
        [own if part == PARTS[0] else part, *(duel(outcomes, own, peer, measure, part) for peer in others)]
        for own in outcomes.learners
        if LEARNERS[own].is_ours
        for part in PARTS
    ]
    return markdown_table(["learner", *others], rows) if rows and others else ""


def great_losses(outcomes):
    """Return the sets on which our errors are over WORSE points above a random forest's, by group."""
    items = []
    for learner in (name for name in outcomes.learners if LEARNERS[name].is_ours):
        for part in PARTS[1:]:
            found, n_sets = losses(outcomes, learner, part), len(outcomes.common([learner, RANDOM_FOREST], part))
            if n_sets:
                items.append(paragraph(f"- {learner}, {part}: {len(found)} of {n_sets} sets. {in_words(found)}"))
    return "\n".join(items)


def costs(outcomes, learners):
    """Return mean seconds, microseconds per row and sizes over the common sets."""
    common, rows = outcomes.common(learners), []
    for learner in learners:
        lines = [
            line
            for name, seeds in common.items()
            if (name, learner) not in outcomes.failures
            for line in outcomes.lines(name, learner, seeds)
        ]
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


def introduction(lines, outcomes):
    """Return how figures were made, and what they mean."""
    jobs = " or ".join(str(n) for n in sorted({line["jobs"] for line in lines}))
    seeds = " and ".join(str(seed) for seed in sorted({line["seed"] for line in lines}))
    data = f"""This page compares tanlearn with other libraries on {len(outcomes.sets)} raw data sets. Each has five
    stratified folds, with seeds {seeds}, as far as finished. For data sets of more than {MOST_ROWS:,} rows, a
    stratified random sample of this size is used. Another {len(outcomes.published)} data sets are discretized, split or
    reduced as in papers; no mean and no rank includes them."""
    measures = f"""Results of a data set are means over its folds. Means and ranks use the data sets and seeds that all
    compared learners have finished. A learner that fails on a data set is ranked last there. Log losses are in nats,
    with probabilities of at least {LEAST:g}. The Brier score is the sum over classes of squared differences. The
    calibration error uses ten bins of the highest probability. Times are processor seconds of all threads, and
    wall-clock seconds on a shared machine. The number of threads is {jobs}. Sizes are bytes of uncompressed pickles."""
    twins = ", ".join(f"{name} with {twin}" for name, twin in TWINS.items())
    groups = f"""Settings of tanlearn were chosen on one group of data sets ("chosen on" or c). Results are reported for
    both groups. In alphabetical order, every second data set is held out ("held out" or h). Data sets that share rows
    or their generating distribution are in the same group ({twins})."""
    looked = f"""{FOREST}, {ENSEMBLE} and networks of terms are exceptions. Settings of {FOREST} were evaluated on folds
    1 and 2 of seed 0 of data sets of both groups, of up to 8,124 rows; those of the other two on folds 1 to 3 of seed 0
    of data sets of both groups. The other folds were not used."""
    return "\n\n".join(paragraph(text) for text in (data, measures, groups, looked))


def how_peers_are_run():
    """Return the encodings of the peers, and the settings they choose among."""
    plain = f"""Random forests have {peers.N_TREES} trees. Columns of up to {peers.MOST_COLUMNS} categories are one-hot
    encoded for them. "{NUMBERED}" uses integer codes instead, and equals the random forest on data without categories.
    Boosting receives categories as such. Missing values are kept, and are a category in categorical columns. CatBoost
    and EBM (InterpretML's explainable boosting machine) receive categories as strings. For logistic regression and
    support vector machines missing values are replaced by medians, with an indicator column, and all numbers are
    standardized."""
    grids = {
        "forests": f"leaves of {peers.LEAVES} rows, {peers.SHARES} of the features per split, one-hot or integer "
        f"categories, with {peers.N_CHEAPER} trees during the selection",
        **{
            name: ", ".join(f"{what.removeprefix('model__')} {some}" for what, some in g.items())
            for name, g in peers.GRIDS.items()
        },
    }
    tuned = f"""Settings of tuned learners are selected by log loss on three folds of the training part: {
        "; ".join(f"{name}: {grid}" for name, grid in grids.items())
    }. Boosting has up to {MOST_TREES} trees per class. It stops if {
        PATIENCE
    } more trees do not lower the log loss of the held-out fold. The final model has the mean number of trees of the
    three folds. The support vector machine has radial basis functions and runs on up to {FEW_ROWS:,} training rows. A
    logistic regression on its held-out scores provides the probabilities."""
    return f"{paragraph(plain)}\n\n{paragraph(tuned)}"


def unfinished(outcomes):
    """Return failed and unfinished learners in words."""
    said = [f"{learner} fails on {name}: {why}" for (name, learner), why in sorted(outcomes.failures.items())]
    for learner in LEARNERS:
        n_sets = len(outcomes.common([learner]))
        if n_sets < len(outcomes.sets) and LEARNERS[learner].most_rows is None:
            said.append(f"{learner}: {n_sets} of {len(outcomes.sets)} sets")
    return "\n".join(f"- {one}" for one in said)


def sections(lines, outcomes, judged, folder):
    """Yield the sections, and draw their pictures."""
    yield from ("# Comparison with other libraries", introduction(lines, outcomes), how_peers_are_run())
    yield paragraph(f"Made by `python -m benchmarks.quality.tables run`, then `report`, with {made_with(lines)}.")
    found = pools(outcomes)
    unlimited = taking_part(outcomes, lambda one: one.most_rows is None)
    verdicts = [one.row() for one in judge(outcomes, unlimited, judged)]
    yield f"## Targets for {judged}"
    yield markdown_table(["target", "data sets", "result", "met"], verdicts, left=range(4))
    for (picture, title), learners in found.items():
        yield f"## Mean ranks: {title[0].lower()}{title[1:]}"
        yield ranking(outcomes, learners)
        yield f"![Mean ranks of learners; bars connect learners without significant differences]({picture}.png)"
        draw(folder / f"{picture}.png", learners, [LEARNERS[name].is_ours for name in learners], outcomes)
    if found:
        said = """Learners of tanlearn are blue in the plots. A bar connects learners of which no two differ
        significantly by Wilcoxon's signed-rank test at 5 %, with Holm's correction for all pairs."""
        yield paragraph(said)
    kept_apart = Outcomes([line for line in lines if line["set"] in LATER])
    if kept_apart.sets:
        yield f"## Mean ranks: data sets kept apart\n\n{ranking_apart(kept_apart)}"
    yield "## Wins, draws and losses"
    said = """Each entry compares a learner of tanlearn (row) with a peer (column): data sets won / undecided / lost. A
    difference counts if a t-test at 5 %, corrected for overlapping training parts (Nadeau, Bengio 2003), is significant
    over folds and seeds. The numbers of data sets with a lower and a higher mean are in brackets."""
    yield paragraph(said)
    for measure, title in MEASURES.items():
        yield f"### By {title}\n\n{duels(outcomes, measure)}"
    yield f"## Data sets with errors over {WORSE:g} points above those of a random forest"
    yield great_losses(outcomes)
    for (_, title), learners in found.items():
        yield f"## Time and size: {title[0].lower()}{title[1:]}, means over {len(outcomes.common(learners))} sets"
        yield costs(outcomes, learners)
    header = ["set", "c/h", "rows", *outcomes.learners]
    for measure, title in FIGURES.items():
        rows = everything(
            outcomes, lambda name, one, measure=measure: outcomes.mean(name, one, measure), DIGITS[measure]
        )
        yield f"## {title}"
        yield markdown_table(header, [*rows, *means(outcomes, unlimited, measure, DIGITS[measure])], left=(0, 1))
    yield "## Calibration errors in points"
    yield markdown_table(header, everything(outcomes, outcomes.calibration, 2), left=(0, 1))
    lacking = unfinished(outcomes)
    yield f"## Not finished\n\n{lacking}" if lacking else ""


def write_report(lines, judged, folder):
    """Write the report of lines, with verdicts on one learner, and its pictures."""
    outcomes = Outcomes([line for line in lines if line["set"] not in LATER])
    if not outcomes.sets:
        raise SystemExit("nothing is finished: the command run does it.")
    write_sections(folder / "tables.md", sections(lines, outcomes, judged, folder))
