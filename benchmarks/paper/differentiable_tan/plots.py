"""Figures 2 and 3 of differentiable TAN: test errors over the trade-off, with the lower convex hull of every color."""

import numpy as np
from scipy.spatial import ConvexHull

from benchmarks.shared.reports import picture

from .cells import CELLS

FAMILIES = {cell.name: cell.family for cell in CELLS}
#: The colors of Okabe and Ito, which suit color-blind readers, with gray instead of their yellow, which is too faint
#: for thin lines; then brown and wine.
COLORS = ("#999999", "#e69f00", "#56b4e9", "#009e73", "#000000", "#cc79a7", "#0072b2", "#d55e00", "#7a4b1e", "#882255")


def draw_figures(runs, folder, subsets=()):
    """Draw figure 2 of every data set, and figure 3; return the paths. ``subsets`` are the runs of subsets.py."""
    families = list(dict.fromkeys(cell.family for cell in CELLS if cell.has_trade_off))
    pictures = [folder / f"figure2-{name}.png" for name in runs] + [folder / "figure3.png"]
    for path, (name, found) in zip(pictures, runs.items(), strict=False):
        with picture(path, 8, 5) as figure:
            grouped = groups(found, families, lambda run: FAMILIES[run.cell])
            draw_groups(figure.subplots(), f"{name}: test error of every run", grouped)
    with picture(pictures[-1], 9.8, 7.4) as figure:
        for axes, (title, grouped) in zip(figure.subplots(2, 2).flat, figure_3(runs, subsets).items(), strict=True):
            draw_groups(axes, title, grouped)
    return pictures


def figure_3(runs, subsets=()):
    """Return the points of the four diagrams of figure 3."""
    heuristic = [run for run in runs.get("mnist", []) if FAMILIES[run.cell] == "TAN Heuristic"]
    orderings = [run for run in runs.get("satimage", []) if run.cell == "TAN Subset K=8"]
    cells = ("TAN Subset K=2", "TAN Subset K=8")
    drawn = [run for run in runs.get("letter", []) if run.cell in cells and run.parameters["ordering"] == 0]
    by_subset = [f"subset {draw + 1}, {k}" for k in ("K=2", "K=8") for draw in range(5)]
    return {
        "(a) mnist, TAN Heuristic, by ordering": groups(heuristic, list("ABC"), lambda run: run.cell.split()[2]),
        "(b) mnist, TAN Heuristic, by K": groups(
            heuristic, ["K=1", "K=2", "K=5", "K=8"], lambda run: run.cell.split()[3]
        ),
        "(c) satimage, TAN Subset K=8, by ordering": groups(
            orderings, [f"ordering {i}" for i in range(5)], lambda run: f"ordering {run.parameters['ordering']}"
        ),
        "(d) letter, TAN Subset of one ordering, by subset": groups(
            [*drawn, *subsets], by_subset, lambda run: f"subset {run.parameters['draw'] + 1}, {run.cell.split()[2]}"
        ),
    }


def groups(runs, labels, label):
    """Return the points (decimal logarithm of the trade-off, test error in %) by label."""
    points = {name: [] for name in labels}
    for run in runs:
        if "trade_off" in run.parameters:  # closed forms have none
            points[label(run)].append((np.log10(run.parameters["trade_off"]), 100 * run.test))
    return {name: np.array(found) for name, found in points.items()}


def draw_groups(axes, title, grouped):
    """Draw points and hulls; the axis ends slightly above the highest minimum of all hulls."""
    axes.set(title=title, xlabel="log10 trade-off", ylabel="test error [%]")
    found = {name: points for name, points in grouped.items() if len(points)}
    if not found:
        axes.text(0.5, 0.5, "no complete runs", ha="center", transform=axes.transAxes)
        return
    n_colors = len(grouped) if len(grouped) <= len(COLORS) else len(grouped) // 2  # more labels are of two kinds
    for number, (name, points) in enumerate(grouped.items()):
        if name in found:
            second, color = divmod(number, n_colors)
            color, marker = COLORS[color], "^" if second else "o"
            axes.scatter(*points.T, s=14, color=color, marker=marker, alpha=0.7, linewidths=0)
            line = "--" if second else "-"
            axes.plot(*lower_hull(points).T, color=color, linestyle=line, marker=marker, markersize=4, label=name)
    lowest = [points[:, 1].min() for points in found.values()]
    axes.set_ylim(0.95 * min(lowest), 1.25 * max(lowest))
    axes.legend(fontsize="small", ncols=4, columnspacing=1, loc="upper center", bbox_to_anchor=(0.5, -0.12))


def lower_hull(points):
    """Return the corners of the lower part of the convex hull, from left to right."""
    x, y = points.T
    if len(points) < 3 or np.ptp(x) == 0:
        return points[np.argsort(x)]
    # Two points above all others close the hull, so that it has an area even if the points lie on a line.
    lid = [[x.min(), y.max() + 1], [x.max(), y.max() + 1]]
    corners = ConvexHull(np.vstack([points, lid])).vertices
    corners = corners[corners < len(points)]
    return points[corners[np.argsort(x[corners])]]
