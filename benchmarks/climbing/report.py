"""The page of the comparison: when gradient learning beats hill climbing, by how much, and at which cost."""

import numpy as np

from benchmarks.shared.reports import console, folded, joined, markdown_table, paragraph, write_sections
from tanlearn.comparison import Comparison

from .budgets import BUDGETS, budget_curves, draw_budgets, equal_seconds
from .details import details, median, probability, signed
from .learners import CLIMBERS, DISCRIMINATIVE, GRADIENT, OTHERS
from .pictures import draw_pair, draw_ranks
from .tables import MOST_ROWS, TWINS

GROUPS = {"gradient": GRADIENT, "climber": CLIMBERS, "hybrid": DISCRIMINATIVE, "other": OTHERS}
#: The groups that the gradient learners are compared with.
RIVALS = ("climber", "hybrid")
#: Kinds of tables, by their features and classes.
KINDS = {
    "only numeric features": lambda shape: shape.n_categorical == 0,
    "only categorical features": lambda shape: shape.n_categorical == shape.n_features,
    "both kinds of features": lambda shape: 0 < shape.n_categorical < shape.n_features,
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


class Duel:
    """A pair of learners over data sets: differences in percentage points, and data sets with significant ones."""

    def __init__(self, comparison, first, second):
        pair = selected(comparison, (first, second))
        self.first, self.second = first, second
        (test,), tests = pair.signed_ranks(second), pair.paired(second)
        self.n, self.difference, self.p = test.n_datasets, -test.difference, test.p_value
        self.won = [own.dataset for own in tests if own.p_holm < 0.05 and own.difference < 0]
        self.lost = [own.dataset for own in tests if own.p_holm < 0.05 and own.difference > 0]
        (loss,) = pair.signed_ranks(second, "log_loss")
        self.log_loss = loss.difference
        self.seconds = [median(pair, name, "fit_seconds") for name in (first, second)]
        self.times = self.seconds[0] / self.seconds[1] if self.seconds[1] else float("inf")

    @property
    def score(self):
        """Return significantly better / undecided / worse data sets, as text."""
        return f"{len(self.won)} / {self.n - len(self.won) - len(self.lost)} / {len(self.lost)}"

    def row(self):
        """Return the cells of a table."""
        gap, loss = signed(-self.difference, 2), signed(self.log_loss, 3)
        return [self.first, self.second, gap, self.score, probability(self.p), loss, f"{digits(self.times)} x"]


def write(comparison, shapes, folder):
    """Write README.md, details.md and pictures to a folder; ``shapes`` maps names of tables to their shapes."""
    known = [name for names in GROUPS.values() for name in names if name in comparison.learners]
    whole = selected(comparison, known)
    ranked = whole.ranks()
    ranks = dict(zip(ranked.learners, ranked.mean_ranks.tolist(), strict=True))
    best = {group: min((name for name in own if name in ranks), key=ranks.get) for group, own in GROUPS.items()}
    trees = [name for name in GRADIENT if name in ranks and name != "K-tree"]
    best["tree"] = min(trees, key=ranks.get)
    draw_ranks(selected(whole, shown_names(ranks)), folder / "ranks.png")
    draw_pair(selected(whole, (best["tree"], best["climber"])), folder / "pairs.png")
    curves = budget_curves(comparison)
    draw_budgets(curves, folder / "budgets.png")
    sides = ["tree"] if best["tree"] == best["gradient"] else ["tree", "gradient"]
    duels = {(own, other): Duel(whole, best[own], best[other]) for own in sides for other in RIVALS}
    sections = [
        "# Gradient TAN against hill climbing",
        *answers(duels, curves, [kind_duels(whole, best, shapes, other) for other in RIVALS], ranks, best),
        pairs(duels),
        "![Mean ranks by error; bars connect learners without significant differences](ranks.png)",
        "## Kinds of data",
        by_kind(whole, best, shapes),
        "![Errors of gradient TAN and of the best climber, a point for each data set](pairs.png)",
        "## Equal seconds",
        equal_seconds(curves),
        "![Mean errors over the seconds of a fit, by kind of search](budgets.png)",
        "## How it was measured",
        protocol(comparison, whole, ranked),
    ]
    write_sections(folder / "README.md", sections)
    write_sections(folder / "details.md", details(whole, ranked, best, GROUPS))


def selected(comparison, learners):
    """Return the cells of some learners, without data sets that share their rows with another one."""
    return Comparison(cell for cell in comparison.cells if cell.learner in learners and cell.dataset not in TWINS)


def shown_names(ranks):
    """Return the three best learners of each group, naive Bayes, and the tree by conditional information."""
    best = [name for own in GROUPS.values() for name in sorted((n for n in own if n in ranks), key=ranks.get)[:3]]
    return {*best, "NB ML", "TAN-CMI ML"}


def answers(duels, curves, kinds, ranks, best):
    """Return answers to the questions of a reader, each in a paragraph."""
    first, same_training = duels["tree", "climber"], duels["tree", "hybrid"]
    found = [
        paragraph(
            f"**Is gradient TAN more accurate than hill climbing?** {compared(first)} {first.second} has the best "
            f"mean rank of the {len([name for name in CLIMBERS if name in ranks])} hill-climbing learners with "
            "smoothed frequencies as parameters."
        ),
        paragraph(
            "**Is gradient TAN more accurate if both train their parameters in the same way?** "
            f"{compared(same_training)} {same_training.second} has the best mean rank of the classic structures whose "
            "parameters are trained like those of gradient TAN, by a hybrid of likelihood and margin."
        ),
        paragraph(f"**What does it cost?** {costs(first, same_training)} {crossing(curves)}"),
        paragraph(
            f"**On which data is it better?** {exceptions(first, kinds[0])} {exceptions(same_training, kinds[1])}"
        ),
    ]
    if ("gradient", "climber") in duels:
        found.append(
            paragraph(
                "**Is a gradient network with two parents per feature more accurate?** "
                f"{compared(duels['gradient', 'climber'])}"
            )
        )
    leader = min(ranks, key=ranks.get)
    if leader != best["tree"]:
        found.append(
            paragraph(
                f"Of all {len(ranks)} learners, {leader} has the best mean rank ({ranks[leader]:.1f}). The mean rank "
                f"of {best['tree']} is {ranks[best['tree']]:.1f}. Results of [all learners and data sets](details.md) "
                "are on a separate page, and [the table of learners](../../docs/learners/table.md) explains the "
                "names."
            )
        )
    return found


def compared(duel):
    """Return the result of a pair in a few sentences."""
    word = "lower" if duel.difference > 0 else "higher"
    sure, p_value = duel.p < 0.05, "p < 0.001" if duel.p < 0.001 else f"p = {duel.p:.2g}"
    verdict = ("Yes." if duel.difference > 0 else "No.") if sure else "The difference is not significant."
    return (
        f"{verdict} Over {duel.n} data sets, the mean error of {duel.first} is {abs(duel.difference):.2f} percentage "
        f"points {word} than that of {duel.second} ({p_value}). {duel.first} is significantly better on "
        f"{len(duel.won)} data set{'s' * (len(duel.won) != 1)}, and {duel.second} on {len(duel.lost)}."
    )


def costs(*duels):
    """Return the ratios of fitting times, as a sentence."""
    parts = [f"{digits(own.times)} times as long as {own.second} ({own.seconds[1]:.2g} s)" for own in duels]
    first = duels[0]
    return f"In the median over data sets, fitting {first.first} takes {first.seconds[0]:.2g} s, {' and '.join(parts)}."


def digits(ratio):
    """Return a ratio as text with two digits."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def crossing(curves):
    """Return which kind of search has the lowest mean error at the budgets of seconds, as sentences."""
    names = list(curves)
    common = ~np.isnan(np.stack(list(curves.values()))).any(axis=0)
    leaders = {}
    for budget, own, rows in zip(BUDGETS, common, zip(*curves.values(), strict=True), strict=True):
        if own.any():
            means = [row[own].mean() for row in rows]
            leaders.setdefault(names[int(np.argmin(means))], []).append(f"{budget:g} s")
    parts = [f"{name} has the lowest mean error at {joined(budgets)}" for name, budgets in leaders.items()]
    return f"If all kinds of search have the same time for a fit, {', and '.join(parts)}." if parts else ""


def exceptions(duel, kinds):
    """Return the kinds of data and the data sets without a gain, as sentences."""
    without = [f"data with {name} ({-own.difference:+.2f})" for name, own in kinds.items() if own.difference <= 0]
    text = (
        f"On {joined(without)}, its mean error is not lower than that of {duel.second}."
        if without
        else f"Its mean error is lower than that of {duel.second} on all kinds of data below."
    )
    if duel.lost:
        text += f" {duel.second} is significantly better on {joined(sorted(duel.lost))}."
    if duel.won:
        text += f" {duel.first} is significantly better on {joined(sorted(duel.won))}."
    return text


def pairs(duels):
    """Return the table of pairs."""
    text = paragraph(
        "Differences are the mean of the learner minus the mean of its rival, so negative differences favor the "
        'learner. The column "better / undecided / worse" contains numbers of data sets, decided by the resampled '
        "t-test of Nadeau and Bengio at 5 %. The p-values are computed by Wilcoxon's signed-rank test over data "
        "sets. Both rivals were chosen by the same errors, which favors them a little. The last column is the ratio "
        "of the median fitting times."
    )
    header = ["learner", "rival", "error [points]", "better / undecided / worse", "p", "log loss", "time"]
    return f"{text}\n\n{markdown_table(header, [duel.row() for duel in duels.values()], (0, 1))}"


def kind_duels(whole, best, shapes, other):
    """Return the pair of gradient TAN and another learner on each kind of data that has data sets."""
    found = {}
    for kind, fits in KINDS.items():
        own = Comparison(cell for cell in whole.cells if fits(shapes[cell.dataset]))
        if {best["tree"], best[other]} <= set(own.learners):
            found[kind] = Duel(own, best["tree"], best[other])
    return found


def by_kind(whole, best, shapes):
    """Return the table of differences by kinds of data."""
    sides = [kind_duels(whole, best, shapes, other) for other in RIVALS]
    rows = [
        [kind, str(first.n), f"{-first.difference:+.2f}", first.score, f"{-second.difference:+.2f}", second.score]
        for (kind, first), second in zip(sides[0].items(), sides[1].values(), strict=True)
    ]
    text = paragraph(
        f"The table shows the mean error of {best['tree']} minus the mean error of its rival, in percentage points, "
        f"and the numbers of data sets on which {best['tree']} is significantly better / undecided / worse. Negative "
        "differences favor gradient TAN."
    )
    count = "better / undecided / worse"
    header = ["data with", "data sets", f"to {best['climber']}", count, f"to {best['hybrid']}", count]
    return f"{text}\n\n{markdown_table(header, rows)}"


def protocol(comparison, whole, ranked):
    """Return how the figures were measured."""
    cell = comparison.cells[0]
    n_repeats = len({cell.repeat for cell in comparison.cells})
    twins = [name for name in TWINS if name in comparison.datasets]
    text = (
        f"The comparison uses {len(comparison.datasets)} data sets with at most {MOST_ROWS:,} complete rows each, and "
        f"{n_repeats} x {cell.n_folds} folds, which are the same for all learners. The results above include "
        f"{len(whole.datasets)} of the data sets, because {joined(twins)} share their rows with other data sets. "
        "Every fit runs in a process with one thread, which is ended after 60 seconds. The machine had two cores and "
        "was also busy with other work, so times are up to twice as long as on an idle machine. All learners have "
        "their defaults. Gradient learners select their loss on held-out training rows. The results of each fold are "
        "in `benchmarks/climbing/results`."
    )
    if len(ranked.datasets) < len(whole.datasets):
        text += f" Ranks are those of the {len(ranked.datasets)} data sets on which all learners finished."
    commands = console("benchmarks.climbing run --limit 60", "benchmarks.climbing report")
    return "\n\n".join((paragraph(text), folded("Commands and versions", commands, f"Versions: {cell.versions}.")))
