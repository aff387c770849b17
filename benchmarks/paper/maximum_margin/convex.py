"""Tables 6 and 7: the convex relaxation on few rows."""

from statistics import fmean

import numpy as np

from benchmarks.shared.reports import markdown_table, paragraph, picture

from .cells import choice, mean, order
from .learners import CONVEX_VARIANTS

COLORS = {"ML": "#999999", "ML, alpha=1": "#000000", "CG-MM": "#0072b2", "CVX-MM": "#d55e00"}
COLORS |= {"CVX-MM, eq. 9": "#cc79a7", **dict(zip(CONVEX_VARIANTS, ("#f0c27b", "#e69f00"), strict=True))}
CONVEX_FIGURE = "figures/maximum-margin-convex.png"

CONVEX = """## Tables 6 and 7: convex relaxation

This section tests naive Bayes on every fourth pixel of usps, trained on few rows, with the cut points of table 2. The
rates are means and standard deviations over draws of the training rows, on all 3,000 test rows. CVX-MM keeps
probabilities above 1e-5 before they are normalized again. Eq. 9 has no such bound, so margins grow until the solver
stops. The slack B is 1, as in the paper for usps. *doubtful* counts solutions that the solver reports as inaccurate.

On complete data sets, the paper reports the following rates of CG-MM and CVX-MM: on usps, 95.23 % in 113 s and 90.90 %
in 21 hours, and on mnist, 91.82 % in 833 s and 92.04 % in 54 hours."""


def convex_table(convex):
    """Return a row for every number of training rows and learner."""
    header = [
        "training rows",
        "parameters",
        "rate",
        "s training",
        "s tuning",
        "runs",
        "not solved",
        "doubtful",
        "chosen",
    ]
    rows = []
    for cells in convex.values():
        for (_, parameters), lines in sorted(cells.items(), key=order):
            solved = [100 * line["rate"] for line in lines if line["rate"] is not None]
            rows.append(
                [
                    f"{lines[0]['n_train']:,}",
                    parameters,
                    f"{np.mean(solved):.2f} +- {np.std(solved):.2f}" if solved else "",
                    f"{mean(lines, 'seconds'):.2f}",
                    f"{mean(lines, 'tuning_seconds'):.2f}",
                    *(str(number) for number in (len(lines), len(lines) - len(solved))),
                    str(sum("inaccurate" in line.get("warning", "") for line in lines)),
                    "; ".join(dict.fromkeys(choice(line) for line in lines)),
                ]
            )
    return markdown_table(header, rows, left=(0, 1, -1))


def convex_against_frequencies(convex):
    """Return where the rate of CVX-MM is below that of frequencies, or an empty string if it is nowhere."""
    below, above = [], []
    for cells in convex.values():
        solved = {
            parameters: [100 * line["rate"] for line in lines if line["rate"] is not None]
            for (_, parameters), lines in cells.items()
        }
        rates = {parameters: fmean(found) for parameters, found in solved.items() if found}
        ours = rates.get("CVX-MM", np.inf)
        better = [f"*{name}* {rates[name]:.2f}" for name in ("ML", "ML, alpha=1") if rates.get(name, -np.inf) > ours]
        n_train = next(iter(cells.values()))[0]["n_train"]
        if better:
            below.append(f"{ours:.2f} % on {n_train:,} rows ({' and '.join(better)} %)")
        elif {"ML", "ML, alpha=1", "CVX-MM"} <= set(rates):
            above.append(f"{n_train:,}")
    if not below:
        return ""
    rest = f" It is above both on {' and '.join(above)} rows." if above else ""
    return paragraph(
        f"""In the paper, CVX-MM is above ML on every data set (usps: 90.90 instead of 87.10 %). Here, the rate of
        CVX-MM is below the rate of frequencies: {"; ".join(below)}.{rest}"""
    )


def convex_by_rows(convex):
    """Return the differences from frequencies by number of rows, and the effects of slack and floor."""
    found = {}
    for cells in convex.values():
        rates = {parameters: 100 * mean(lines, "rate") for (_, parameters), lines in cells.items()}
        if {"ML, alpha=1", *CONVEX_VARIANTS, "CVX-MM"} <= set(rates):
            found[next(iter(cells.values()))[0]["n_train"]] = rates
    if len(found) < 2:
        return ""
    rows = sorted(found)
    points = ", ".join(f"{found[n]['CVX-MM'] - found[n]['ML, alpha=1']:+.1f} on {n:,}" for n in rows)
    variants = "; ".join(
        f"{name}: {min(shifts):+.1f} to {max(shifts):+.1f}"
        for name in CONVEX_VARIANTS
        for shifts in [[found[n][name] - found[n]["CVX-MM"] for n in rows]]
    )
    return paragraph(
        f"""The differences from *ML, alpha=1* are {points} rows. In the paper, the difference from ML is +3.8 on 8,000
        rows. If there are few rows, they are separated with a wide margin for any slack, and the optimum depends only
        on the hardest rows. The paper reports the same for its 8,000 rows, where no solver setting exceeded 90.90 %. A
        smaller slack, or a higher lower bound of the probabilities, changes the rate by (in points): {variants}."""
    )


def draw_convex(convex, path):
    """Draw rates and seconds over the number of training rows."""
    names = dict.fromkeys(parameters for cells in convex.values() for _, parameters in sorted(cells))
    with picture(path, 9, 4) as figure:
        panels = figure.subplots(1, 2)
        for parameters in names:
            found = [lines for cells in convex.values() for (_, name), lines in cells.items() if name == parameters]
            for axes, field, unit in ((panels[0], "rate", 100), (panels[1], "seconds", 1)):
                points = [
                    (lines[0]["n_train"], unit * fmean(line[field] for line in lines if line[field] is not None))
                    for lines in found
                    if any(line[field] is not None for line in lines)
                ]
                if points:
                    axes.plot(*zip(*sorted(points), strict=True), "o-", color=COLORS[parameters], label=parameters)
        panels[0].set(xlabel="training rows", ylabel="classification rate [%]", xscale="log")
        panels[1].set(xlabel="training rows", ylabel="processor seconds of the training", xscale="log", yscale="log")
        panels[0].legend(fontsize="small")
