"""The report of the comparison: who wins, by how much, at which cost, and on which kinds of tables."""

import numpy as np

from benchmarks.shared.reports import decimals, markdown_table, paragraph, picture, write_sections
from tanlearn.comparison import Comparison
from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay

from .learners import BUDGETED, CLIMBERS, DISCRIMINATIVE, GRADIENT, OTHERS
from .tables import TWINS

#: Seconds of a fit in the comparison of equal budgets.
BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0)
STYLES = dict(zip(BUDGETED, (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^")), strict=True))
GROUPS = {"gradient": GRADIENT, "climber": CLIMBERS, "hybrid": DISCRIMINATIVE, "other": OTHERS}
#: Kinds of tables, by their features and classes.
KINDS = {
    "all": lambda shape: True,
    "numeric features only": lambda shape: shape.n_categorical == 0,
    "categorical features only": lambda shape: shape.n_categorical == shape.n_features,
    "both": lambda shape: 0 < shape.n_categorical < shape.n_features,
    "five or more classes": lambda shape: shape.n_classes >= 5,
    "fewer than 500 training rows": lambda shape: shape.n_train < 500,
    "20 features or more": lambda shape: shape.n_features >= 20,
}


class Shape:
    """Size and kinds of features of a table."""

    def __init__(self, dataset, n_train):
        kinds = np.broadcast_to(np.asarray(dataset.discrete_features), dataset.X.shape[1:])
        self.n_features, self.n_categorical = dataset.X.shape[1], int(kinds.sum())
        self.n_classes, self.n_train = len(np.unique(dataset.y)), n_train


def write(comparison, shapes, folder):
    """Write README.md and its pictures to a folder; ``shapes`` maps names of tables to their shapes."""
    known = [name for names in GROUPS.values() for name in names if name in comparison.learners]
    whole = selected(comparison, known)
    ranked = whole.ranks()
    ranks = dict(zip(ranked.learners, ranked.mean_ranks.tolist(), strict=True))
    best = {group: min((n for n in own if n in ranks), key=ranks.get) for group, own in GROUPS.items()}
    draw_ranks(whole, ranks, folder / "ranks.png")
    draw_pair(whole, best, folder / "pairs.png")
    curves = budget_curves(comparison)
    draw_budgets(curves, folder / "budgets.png")
    sections = [
        "# Gradient TAN against hill climbing",
        *findings(whole, ranks, best),
        "![Mean ranks, with bars between learners that do not differ significantly](ranks.png)",
        protocol(comparison, whole),
        "## All learners",
        paragraph(
            f"Differences, wins and losses are those to {best['gradient']}. A win is a data set with a significantly "
            "lower error by the resampled t-test of Nadeau and Bengio, after Holm's correction over learners (5 %). "
            "The p-values are of Wilcoxon's signed ranks over the data sets, after Holm's correction. Seconds are "
            "medians over the data sets of the mean time of a fit. Evaluations are medians of the structures that a "
            "search scored, or of the epochs of a training."
        ),
        all_learners(whole, ranks, best["gradient"]),
        "## Kinds of data",
        by_kind(whole, best, shapes),
        "![Errors of the best gradient learner and the best climber](pairs.png)",
        "## Equal seconds",
        equal_seconds(curves),
        "![Mean error over the seconds of a fit](budgets.png)",
        *failures(whole),
    ]
    write_sections(folder / "README.md", sections)


def selected(comparison, learners):
    """Return the cells of some learners, without data sets that share their rows with another one."""
    return Comparison(cell for cell in comparison.cells if cell.learner in learners and cell.dataset not in TWINS)


def verdict(comparison, first, second, measure="error"):
    """Return the difference of two learners over the data sets in one sentence."""
    pair = selected(comparison, (first, second))
    (test,) = pair.signed_ranks(second, measure)
    table = pair.win_tie_loss(measure)
    i, j = table.learners.index(first), table.learners.index(second)
    wins, ties, losses = (int(counts[i, j]) for counts in (table.wins, table.ties, table.losses))
    what, unit = {"error": ("a mean error", " percent points"), "log_loss": ("a mean log loss", "")}[measure]
    word = "lower" if test.difference < 0 else "higher"
    return (
        f"{first} has {what} that is {abs(test.difference):.2f}{unit} {word} than that of {second}, over "
        f"{test.n_datasets} data sets (p = {test.p_value:.2g}). It is significantly better on {wins}, worse on "
        f"{losses}, and undecided on {ties} of them."
    )


def findings(whole, ranks, best):
    """Return the answers in sentences."""
    gradient, climber, hybrid = best["gradient"], best["climber"], best["hybrid"]
    seconds = {name: median(whole, name, "fit_seconds") for name in (gradient, climber, hybrid)}
    loss = whole.mean("log_loss")
    columns = [whole.learners.index(name) for name in (gradient, climber, hybrid)]
    losses = np.nanmean(loss[:, columns], axis=0)
    return [
        paragraph(
            f"Of {len(ranks)} learners, {min(ranks, key=ranks.get)} has the best mean rank. Of the climbers with "
            f"maximum-likelihood parameters, {climber} ranks best; of the classic structures with parameters of the "
            f"hybrid loss, {hybrid}; of the gradient learners, {gradient}. The best of {len(CLIMBERS)} climbers was "
            f"chosen by the same errors, which favours it a little."
        ),
        paragraph(verdict(whole, gradient, climber)),
        paragraph(verdict(whole, gradient, hybrid)),
        paragraph(
            f"Mean log loss: {gradient} {losses[0]:.3f}, {climber} {losses[1]:.3f}, {hybrid} {losses[2]:.3f}. Median "
            f"seconds of a fit: {seconds[gradient]:.2f}, {seconds[climber]:.2f}, {seconds[hybrid]:.2f}."
        ),
    ]


def protocol(comparison, whole):
    """Return how the figures were measured."""
    cell = comparison.cells[0]
    n_repeats = len({cell.repeat for cell in comparison.cells})
    return paragraph(
        f"{len(comparison.datasets)} tables, at most 2,500 complete rows of each, {n_repeats} x {cell.n_folds} folds, "
        f"the same for all learners; {len(whole.datasets)} of the tables count, because {', '.join(TWINS)} share their "
        f"rows with another one. Every fit runs in its own process with one thread. Defaults of all learners; gradient "
        f"learners select their loss on held-out training rows. {cell.versions}. Computed by `python -m "
        f"benchmarks.climbing run` and `report`."
    )


def median(comparison, learner, field):
    """Return the median over data sets of a mean field of a learner; None if it has none."""
    means = []
    for dataset in comparison.datasets:
        cells = [c for c in comparison.cells if (c.dataset, c.learner) == (dataset, learner)]
        values = [getattr(cell, field) for cell in cells if getattr(cell, field) is not None]
        if values:
            means.append(np.mean(values))
    return float(np.median(means)) if means else None


def all_learners(whole, ranks, reference):
    """Return the table of all learners, best mean rank first."""
    tests = {test.first: test for test in whole.signed_ranks(reference)}
    table, means, loss = whole.win_tie_loss(), whole.mean("error"), whole.mean("log_loss")
    base = table.learners.index(reference)
    rows = []
    for name in sorted(ranks, key=ranks.get):
        i, test = table.learners.index(name), tests.get(name)
        rows.append(
            [
                name,
                f"{ranks[name]:.1f}",
                f"{np.nanmean(means[:, i]):.2f}",
                f"{np.nanmean(loss[:, i]):.3f}",
                *(["", "", ""] if test is None else difference(test, table, i, base)),
                decimals(median(whole, name, "fit_seconds"), 2),
                decimals(median(whole, name, "n_evaluations"), 0),
            ]
        )
    header = [
        "learner",
        "mean rank",
        "error [%]",
        "log loss",
        "difference",
        "wins : losses",
        "p",
        "seconds",
        "evaluations",
    ]
    return markdown_table(header, rows)


def difference(test, table, i, base):
    """Return the cells of a learner that compare it with the reference."""
    return [f"{test.difference:+.2f}", f"{table.wins[i, base]} : {table.losses[i, base]}", f"{test.p_holm:.2g}"]


def by_kind(whole, best, shapes):
    """Return the table of differences by kinds of tables."""
    gradient, climber, hybrid = best["gradient"], best["climber"], best["hybrid"]
    rows = []
    for kind, fits in KINDS.items():
        own = Comparison(c for c in selected(whole, (gradient, climber, hybrid)).cells if fits(shapes[c.dataset]))
        if not own.cells:
            continue
        cells = [kind, str(len(own.datasets))]
        table, means = own.win_tie_loss(), own.mean("error")
        number = own.learners.index
        for other in (climber, hybrid):
            gap = np.nanmean(means[:, number(gradient)] - means[:, number(other)])
            wins, losses = (counts[number(gradient), number(other)] for counts in (table.wins, table.losses))
            cells += [f"{gap:+.2f}", f"{wins} : {losses}"]
        rows.append(cells)
    header = ["tables", "number", f"to {climber}", "wins : losses", f"to {hybrid}", "wins : losses"]
    text = paragraph(
        f"Mean error of {gradient} minus that of the other learner, in percent points, and the numbers of data sets on "
        f"which {gradient} is significantly better and worse. Negative differences favour gradient learning."
    )
    return f"{text}\n\n{markdown_table(header, rows)}"


def budget_curves(comparison):
    """Return the mean error of each kind of search at each budget, over the data sets that all kinds finish in time.

    On each data set, the most expensive setting counts whose mean fit takes at most the budget. Nothing is chosen by
    the error.
    """
    means, seconds = comparison.mean("error"), comparison.mean("fit_seconds")
    rows = [i for i, name in enumerate(comparison.datasets) if name not in TWINS]
    curves = {kind: np.full((len(BUDGETS), len(rows)), np.nan) for kind in BUDGETED}
    for kind, settings in BUDGETED.items():
        columns = [comparison.learners.index(name) for name in settings if name in comparison.learners]
        for b, budget in enumerate(BUDGETS):
            for k, row in enumerate(rows):
                fitting = [column for column in columns if seconds[row, column] <= budget]
                if fitting:
                    most = max(fitting, key=lambda column, row=row: seconds[row, column])
                    curves[kind][b, k] = means[row, most]
    return curves


def equal_seconds(curves):
    """Return the table of mean errors at equal budgets, over the tables on which all kinds have a setting in time."""
    common = ~np.isnan(np.stack(list(curves.values()))).any(axis=0)
    rows = []
    for b, budget in enumerate(BUDGETS):
        own = common[b]
        values = [decimals(curve[b, own].mean() if own.any() else None) for curve in curves.values()]
        rows.append([f"{budget:g}", str(int(own.sum())), *values])
    text = paragraph(
        "Each kind of search uses, on each table, its most expensive setting whose fit takes at most the budget. "
        "Nothing is chosen by errors. Mean error in percent over the tables on which all three kinds have "
        "such a setting."
    )
    return f"{text}\n\n{markdown_table(['seconds of a fit', 'tables', *curves], rows)}"


def failures(whole):
    """Return the failed cells by learner and reason, as a section."""
    found = {}
    for cell in whole.failures:
        found.setdefault((cell.learner, cell.failure), set()).add(cell.dataset)
    if not found:
        return []
    lines = [f"- {learner}: {reason} ({', '.join(sorted(sets))})" for (learner, reason), sets in found.items()]
    return ["## Failures", "\n".join(lines)]


def draw_ranks(whole, ranks, path):
    """Draw the critical difference diagram of the best learners of each group and of naive Bayes."""
    shown = []
    for own in GROUPS.values():
        shown += sorted((name for name in own if name in ranks), key=ranks.get)[:3]
    own = selected(whole, {*shown, "NB ML", "TAN-CMI ML"})
    errors = own.mean("error")
    complete = ~np.isnan(errors).any(axis=1)
    with picture(path, 8, 4) as figure:
        table = dict(zip(own.learners, errors[complete].T, strict=True))
        CriticalDifferenceDisplay(table).plot(figure.subplots())


def draw_pair(whole, best, path):
    """Draw the errors of the best gradient learner and the best climber."""
    pair = selected(whole, (best["gradient"], best["climber"]))
    errors = pair.mean("error")
    complete = ~np.isnan(errors).any(axis=1)
    names = [name for name, own in zip(pair.datasets, complete, strict=True) if own]
    with picture(path, 5, 5) as figure:
        table = dict(zip(pair.learners, errors[complete].T, strict=True))
        PairedErrorsDisplay(table, datasets=names).plot(figure.subplots())


def draw_budgets(curves, path):
    """Draw the mean errors over the budgets, on the data sets that all kinds finish in the smallest budget."""
    common = ~np.isnan(np.stack(list(curves.values()))[:, 0]).any(axis=0)
    with picture(path, 6, 4) as figure:
        ax = figure.subplots()
        for kind, curve in curves.items():
            color, marker = STYLES[kind]
            ax.plot(BUDGETS, curve[:, common].mean(axis=1), color=color, marker=marker, label=kind)
        ax.set(xscale="log", xlabel="seconds of a fit", ylabel=f"mean error over {common.sum()} tables [%]")
        ax.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
        ax.minorticks_off()
        ax.legend(frameon=False)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
