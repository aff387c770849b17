"""Critical-difference diagrams: mean ranks, and bars along learners without a significant difference."""

from benchmarks.shared.reports import picture

from .outcomes import MEASURES
from .ranks import apart, cliques, mean_ranks

OURS, PEERS = "#0072b2", "#d55e00"
INCHES = 0.24


def diagram(table):
    """Return mean ranks, columns in their order, and bars as (first, last) positions."""
    ranks = mean_ranks(table)
    order = [int(column) for column in ranks.argsort(kind="stable")]
    bars = [(order.index(some[0]), order.index(some[-1])) for some in cliques(ranks, apart(table))]
    return ranks, order, bars


def draw(path, learners, is_ours, outcomes):
    """Draw diagrams of error and log loss on all sets; our learners have another color than peers.

    The best learner is on top.
    """
    tables = {measure: outcomes.table(learners, measure) for measure in ("error", "log_loss")}
    with picture(path, 5.4 * len(tables), 1 + INCHES * len(learners)) as figure:
        for axes, (measure, table) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
            axes.set_title(f"{MEASURES[measure]}, {len(table)} data sets")
            draw_ranks(axes, learners, is_ours, table)


def draw_ranks(axes, learners, is_ours, table):
    """Draw mean ranks and bars."""
    ranks, order, bars = diagram(table)
    places = range(len(order))
    colors = [OURS if is_ours[column] else PEERS for column in order]
    axes.hlines(places, 1, ranks[order], color="#dddddd", linewidth=1)
    axes.scatter(ranks[order], places, color=colors, zorder=2)
    for place, (first, last) in enumerate(bars):
        x = ranks.max() + 0.02 * len(ranks) * (2 + place)
        axes.plot([x, x], [first - 0.3, last + 0.3], color="#333333", linewidth=3, solid_capstyle="butt")
    axes.set_yticks(places, [learners[column] for column in order])
    for label, color in zip(axes.get_yticklabels(), colors, strict=True):
        label.set_color(color)
    axes.set(xlabel="mean rank", ylim=(len(order) - 0.4, -0.6), xlim=(1, None))
    axes.spines[["top", "right"]].set_visible(False)
