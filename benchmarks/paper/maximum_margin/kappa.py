"""Figure 5: rates as a function of kappa, the width of the smooth hinge."""

from benchmarks.shared.reports import markdown_table, paragraph

from .cells import mean
from .learners import FIGURE_5
from .variants import VARIANTS


def without_kappas(cells):
    """Return the cells of the other tables."""
    return {cell: lines for cell, lines in cells.items() if cell[1] not in (*FIGURE_5, *VARIANTS)}


def kappa_section(cells):
    """Return the rates on usps by kappa, compared with the paper's result; empty until all are finished."""
    rates = {
        structure: {kappa: 100 * mean(cells[structure, name], "rate") for name, kappa in FIGURE_5.items()}
        for structure in ("NB", "TAN-CMI")
        if all((structure, name) in cells for name in FIGURE_5)
    }
    if not rates:
        return ""
    table = markdown_table(
        ["kappa", *(f"{kappa:g}" for kappa in FIGURE_5.values())],
        [[structure, *(f"{rate:.2f}" for rate in found.values())] for structure, found in rates.items()],
    )
    moves = " ".join(
        f"For {structure}, the best rate (kappa {max(found, key=found.get):g}) is "
        f"{max(found.values()) - min(found.values()):.2f} points above the worst rate "
        f"(kappa {min(found, key=found.get):g})."
        for structure, found in rates.items()
    )
    n_draws = len(cells[next(iter(rates)), next(iter(FIGURE_5))])
    text = paragraph(
        f"""The table shows test rates of CG-MM on usps (in the paper: the image of the Washington D.C. Mall) with a
        lambda of 0.02. The number of iterations is selected on five folds, and rates are means over {n_draws} draws of
        the partition. {moves} The paper reports a moderate influence of kappa, with slightly better results for
        0.5."""
    )
    return f"## Figure 5: the influence of kappa\n\n{text}\n\n{table}"
