"""Plot of mean ranks by log loss over mean fitting times: all learners, and the data sets kept apart."""

from itertools import pairwise

import numpy as np

from benchmarks.shared.reports import picture

from .diagram import OURS, PEERS
from .learners import LEARNERS
from .ranks import mean_ranks

#: Learners with a name in the plot of all learners; the others are points.
NAMED = {
    *("BayesEnsemble", "BayesForest", "Terms, tree", "Terms, 5 parents", "TAN Subset HYB", "TAN-CMI ML", "NB ML"),
    *(
        "RandomForest",
        "BoostedTerms",
        "RandomForest, tuned",
        "LightGBM",
        "LightGBM, tuned",
        "XGBoost, tuned",
        "LogisticRegression",
    ),
}
#: Learners whose name is on the left of their point.
ON_THE_LEFT = {
    *("Terms, tree", "Terms, no edges", "BayesForest", "BoostedTerms", "TAN Subset HYB", "CatBoost", "LightGBM"),
}

#: Fraction of the range of ranks below which the names of two learners would overlap.
LINE = 0.025


def finished_lines(outcomes, learner, common):
    """Return the lines of a learner on the common data sets on which it does not fail."""
    return [
        line
        for name, seeds in common.items()
        if (name, learner) not in outcomes.failures
        for line in outcomes.lines(name, learner, seeds)
    ]


def mean_fit_seconds(outcomes, learner, common):
    """Return the mean processor seconds of a fit over the common data sets."""
    return float(np.mean([line["fit_seconds"] for line in finished_lines(outcomes, learner, common)]))


def draw_times(path, groups):
    """Draw one plot per group: a title with outcomes, learners and the learners that have a name."""
    with picture(path, 4.9 * len(groups), 4.6) as figure:
        grid = figure.subplots(1, len(groups), squeeze=False).flat
        for axes, (title, group) in zip(grid, groups.items(), strict=True):
            draw_group(axes, *group)
            axes.set(title=title, xlabel="mean processor time of a fit [s]", ylabel="mean rank by log loss")


def label_heights(ranks):
    """Return how far the names of learners are above their points, in points; those of close ranks move apart."""
    order, heights = sorted(ranks, key=ranks.get), dict.fromkeys(ranks, 0)
    close = LINE * (max(ranks.values()) - min(ranks.values()))
    for better, worse in pairwise(order):
        if ranks[worse] - ranks[better] < close:
            heights[better] += 4
            heights[worse] -= 4
    return heights


def draw_group(axes, outcomes, learners, named):
    """Draw one point per learner, the best ranks on top."""
    common = outcomes.common(learners)
    seconds = [mean_fit_seconds(outcomes, learner, common) for learner in learners]
    ranks = mean_ranks(outcomes.table(learners, "log_loss"))
    heights = label_heights({learner: rank for learner, rank in zip(learners, ranks, strict=True) if learner in named})
    for learner, x, rank in zip(learners, seconds, ranks, strict=True):
        color = OURS if LEARNERS[learner].is_ours else PEERS
        axes.scatter(x, rank, color=color, s=28 if learner in named else 9)
        if learner in named:
            offset, side = (-5, "right") if learner in ON_THE_LEFT else (5, "left")
            style = {"color": color, "fontsize": 8, "ha": side, "va": "center"}
            axes.annotate(learner, (x, rank), (offset, heights[learner]), textcoords="offset points", **style)
    axes.set(xscale="log", xlim=(min(seconds) / 3, 12 * max(seconds)))
    axes.invert_yaxis()
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
