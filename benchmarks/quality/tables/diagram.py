"""Critical-difference diagrams: mean ranks, and bars along learners that cannot be told apart."""

from benchmarks.paper.shared.report_parts import picture

from .outcomes import MEASURES
from .ranks import apart, cliques, mean_ranks

OURS, PEERS = "#0072b2", "#d55e00"
INCHES = 0.24


def diagram(table):
    """Return mean ranks, columns in their order, and bars as (first place, last place)."""
    ranks = mean_ranks(table)
    order = [int(column) for column in ranks.argsort(kind="stable")]
    bars = [(order.index(some[0]), order.index(some[-1])) for some in cliques(ranks, apart(table))]
    return ranks, order, bars


def draw(path, learners, is_ours, tables):
    """Draw a panel a measure: the best learner on top, ours in another colour than peers."""
    with picture(path, 5.6 * len(tables), 1.2 + INCHES * len(learners)) as figure:
        for axes, (measure, table) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
            ranks, order, bars = diagram(table)
            places = range(len(order))
            colours = [OURS if is_ours[column] else PEERS for column in order]
            axes.hlines(places, 1, ranks[order], color="#dddddd", linewidth=1)
            axes.scatter(ranks[order], places, color=colours, zorder=2)
            for place, (first, last) in enumerate(bars):
                x = ranks.max() + 0.5 + 0.35 * place
                axes.plot([x, x], [first - 0.3, last + 0.3], color="#333333", linewidth=3, solid_capstyle="butt")
            axes.set_yticks(places, [learners[column] for column in order])
            for label, colour in zip(axes.get_yticklabels(), colours, strict=True):
                label.set_color(colour)
            axes.set(xlabel="mean rank", title=MEASURES[measure], ylim=(len(order) - 0.4, -0.6), xlim=(1, None))
            axes.spines[["top", "right"]].set_visible(False)
