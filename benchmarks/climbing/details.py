"""The second page of the comparison: all learners, all data sets, and failures."""

from operator import itemgetter

import numpy as np

from benchmarks.shared.reports import decimals, markdown_table, paragraph


def details(whole, ranked, best, groups):
    """Return the sections of the page; ``best`` names the best learner of each group."""
    return [
        "# Gradient TAN against hill climbing: all learners and data sets",
        "The [first page](README.md) summarizes the results.",
        "## Learners",
        all_learners(whole, ranked, best["tree"], groups),
        "## Data sets",
        all_datasets(whole, list(dict.fromkeys(best[k] for k in ("tree", "gradient", "climber", "hybrid", "other")))),
        *failures(whole),
    ]


def median(comparison, learner, field):
    """Return the median over data sets of a mean field of a learner; None if it has none."""
    found = {}
    for cell in comparison.cells:
        if cell.learner == learner and getattr(cell, field) is not None:
            found.setdefault(cell.dataset, []).append(getattr(cell, field))
    return float(np.median([np.mean(values) for values in found.values()])) if found else None


def all_learners(whole, ranked, reference, groups):
    """Return the table of all learners, the best mean rank first."""
    tests = {test.first: test for test in whole.signed_ranks(reference)}
    losses = {test.first: test for test in whole.signed_ranks(reference, "log_loss")}
    table = whole.win_tie_loss()
    base = table.learners.index(reference)
    group_of = {name: group for group, own in groups.items() for name in own}
    rows = []
    for rank, name in sorted(zip(ranked.mean_ranks.tolist(), ranked.learners, strict=True)):
        i, seconds = table.learners.index(name), median(whole, name, "fit_seconds")
        compared = ["", "", "", "", ""]
        if name != reference:
            test, counts = tests[name], (table.wins, table.ties, table.losses)
            score = " / ".join(str(count[i, base]) for count in counts)
            compared = [str(test.n_datasets), signed(test.difference, 2), score, probability(test.p_holm)]
            compared.append(signed(losses[name].difference, 3))
        evaluations = median(whole, name, "n_evaluations")
        count = "" if evaluations is None else f"{evaluations:,.0f}"
        rows.append([name, group_of[name], f"{rank:.1f}", *compared, decimals(seconds, 3), count])
    text = paragraph(
        f"The table shows mean ranks by error over the {len(ranked.datasets)} data sets on which all learners "
        f"finished. Differences to {reference} are means over the data sets on which both learners finished. Negative "
        'differences favor the learner in the row. The column "better / undecided / worse" contains numbers of data '
        "sets, decided by the resampled t-test of Nadeau and Bengio at 5 %, after Holm's correction for all learners "
        "in the table. The p-values are computed by Wilcoxon's signed-rank test, with the same correction. Seconds "
        "are medians over data sets of the mean time of a fit. Evaluations are medians of the number of structures "
        "that a search scored, or of the number of epochs of a training."
    )
    header = ["learner", "group", "mean rank", "data sets", "error [points]", "better / undecided / worse", "p"]
    return f"{text}\n\n{markdown_table([*header, 'log loss', 'seconds', 'evaluations'], rows, (0, 1))}"


def all_datasets(whole, learners):
    """Return the table of mean errors on each data set; the significantly best learners are bold."""
    means = whole.mean("error")
    best = whole.__class__(cell for cell in whole.cells if cell.learner in learners).best()
    columns = [whole.learners.index(name) for name in learners]
    rows = []
    for name, row in sorted(zip(whole.datasets, means, strict=True), key=itemgetter(0)):
        cells = [(learner, row[column]) for learner, column in zip(learners, columns, strict=True)]
        rows.append([name, *(error(value, learner in best[name]) for learner, value in cells)])
    text = paragraph(
        "The table shows mean errors in percent. Errors in bold are not significantly worse than the lowest error of "
        "the data set (resampled t-test at 5 %, after Holm's correction)."
    )
    return f"{text}\n\n{markdown_table(['data set', *learners], rows)}"


def signed(value, digits):
    """Return a difference as text with a sign, +0 if it is rounded to 0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def probability(p):
    """Return a p-value as text."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def error(value, is_best):
    """Return a mean error as text; "-" if folds are missing."""
    if np.isnan(value):
        return "-"
    return f"**{value:.2f}**" if is_best else f"{value:.2f}"


def failures(whole):
    """Return the failed cells by learner and reason, as a section."""
    found = {}
    for cell in whole.failures:
        found.setdefault((cell.learner, cell.failure), set()).add(cell.dataset)
    if not found:
        return []
    rows = [[learner, reason, ", ".join(sorted(sets))] for (learner, reason), sets in found.items()]
    return ["## Failures", markdown_table(["learner", "reason", "data sets"], rows, (0, 1, 2))]
