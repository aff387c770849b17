"""Plot of mean ranks by log loss over mean fitting times: all learners, and the data sets kept apart."""

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
#: Size of the axes, mean width of a letter and height of a line, in points.
SIZE, LETTER, LINE = np.array([290.0, 275.0]), 4.5, 10.0
#: Positions of a name beside its point in points, the preferred ones first: side, and height of its center.
POSITIONS = [(side, height) for height in (0, 6, -6, 11, -11) for side in ("left", "right")]


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


def position_names(points, named):
    """Return the position of the name of each learner, so that names cover few other names, points and edges.

    ``points`` are positions in points of the page, by learner. Names are positioned from the top to the bottom.
    """
    beside = [(-1000.0, 0.0, -1000.0, 1000.0), (SIZE[0], SIZE[0] + 1000, -1000.0, 1000.0)]
    taken, found = [*beside, *((x - 5, x + 5, y - 5, y + 5) for x, y in points.values())], {}
    for learner in sorted(named, key=lambda name: -points[name][1]):
        x, y = points[learner]
        width = LETTER * len(learner)
        boxes = {
            (side, height): (*((x + 5, x + 5 + width) if side == "left" else (x - 5 - width, x - 5)), y + height)
            for side, height in POSITIONS
        }
        boxes = {position: (a, b, c - LINE / 2, c + LINE / 2) for position, (a, b, c) in boxes.items()}
        best = min(boxes, key=lambda position: sum(_overlap(boxes[position], other) for other in taken))
        found[learner] = best
        taken.append(boxes[best])
    return found


def _overlap(one, other):
    """Return the common area of two boxes (left, right, bottom, top)."""
    width = min(one[1], other[1]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[2], other[2])
    return max(width, 0) * max(height, 0)


def draw_group(axes, outcomes, learners, named):
    """Draw one point per learner, the best ranks on top."""
    common = outcomes.common(learners)
    seconds = [mean_fit_seconds(outcomes, learner, common) for learner in learners]
    ranks = mean_ranks(outcomes.table(learners, "log_loss"))
    limits = min(seconds) / 3, 12 * max(seconds)
    x = np.log(np.divide(seconds, limits[0])) / np.log(limits[1] / limits[0])
    y = (ranks.max() - ranks) / (ranks.max() - ranks.min() or 1)
    points = dict(zip(learners, np.column_stack([x, y]) * SIZE, strict=True))
    positions = position_names(points, [learner for learner in learners if learner in named])
    for learner, fit, rank in zip(learners, seconds, ranks, strict=True):
        color = OURS if LEARNERS[learner].is_ours else PEERS
        axes.scatter(fit, rank, color=color, s=28 if learner in named else 9)
        if learner in named:
            side, height = positions[learner]
            style = {"color": color, "fontsize": 8, "ha": side, "va": "center"}
            offset = 5 if side == "left" else -5
            axes.annotate(learner, (fit, rank), (offset, height), textcoords="offset points", **style)
    axes.set(xscale="log", xlim=limits)
    axes.invert_yaxis()
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
