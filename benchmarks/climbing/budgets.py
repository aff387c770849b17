"""Mean errors of kinds of search that have the same time for a fit."""

import numpy as np

from benchmarks.shared.reports import decimals, markdown_table, paragraph, picture

from .learners import BUDGETED
from .tables import TWINS

#: Seconds of a fit in the comparison of equal budgets.
BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0)
STYLES = dict(zip(BUDGETED, (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^")), strict=True))


def budget_curves(comparison):
    """Return the mean error of each kind of search at each budget on each data set, NaN where no setting is in time.

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
    """Return the table of mean errors at equal budgets, where all kinds of search have a setting in time."""
    common = ~np.isnan(np.stack(list(curves.values()))).any(axis=0)
    rows = []
    for b, budget in enumerate(BUDGETS):
        own = common[b]
        values = [decimals(curve[b, own].mean() if own.any() else None) for curve in curves.values()]
        rows.append([f"{budget:g}", str(int(own.sum())), *values])
    text = paragraph(
        "On each data set, each kind of search uses the most expensive setting whose fit takes at most the given "
        "time. Errors are not used to select settings. The table shows mean errors in percent over the data sets on "
        "which all three kinds of search have such a setting. With 10 to 300 epochs, gradient TAN has a fixed loss "
        "and length of training. With defaults, it selects both on held-out rows."
    )
    return f"{text}\n\n{markdown_table(['seconds of a fit', 'data sets', *curves], rows)}"


def draw_budgets(curves, path):
    """Draw the mean errors over the budgets, on the data sets that all kinds finish in the smallest budget."""
    common = ~np.isnan(np.stack(list(curves.values()))[:, 0]).any(axis=0)
    with picture(path, 6, 4) as figure:
        ax = figure.subplots()
        for kind, curve in curves.items():
            color, marker = STYLES[kind]
            ax.plot(BUDGETS, curve[:, common].mean(axis=1), color=color, marker=marker, label=kind)
        ax.set(xscale="log", xlabel="seconds of a fit", ylabel=f"mean error over {common.sum()} data sets [%]")
        ax.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
        ax.minorticks_off()
        ax.legend(frameon=False)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
