"""The summary of figures 5 and 6: verdicts, claims of the paper, and how the figures were made."""

from benchmarks.paper.claims import claims_in_words, claims_table
from benchmarks.shared.reports import paragraph, write_sections
from benchmarks.shared.versions import made_by

from . import verdicts
from .report import NB, TAN, cost_ratio, details, figures, size_points

TABLE = """The table shows errors after training for few bits, and in brackets the errors after float32 parameters are
rounded. Runs and splits are selected on validation rows."""
METHOD = """This page reproduces figures 5 and 6 of "On resource-efficient Bayesian network classifiers and deep neural
networks". A run draws the settings of the hybrid loss and the learning rates. For each fold, a run and a split into
integer and fraction bits are selected on 20 % of the training part, and are then trained on the whole training part.
The paper reports the best of 100 runs by test error. Runs have fewer epochs than the 500 epochs of the paper. Errors
are therefore higher than in [table 1](../differentiable_tan/report.md), whose trainings and searches are longer. The
comparisons with branch and bound use the results with the longest time limit. The paper plots the errors of branch and
bound without numbers, so they are not shown here."""
COMMANDS = (
    "benchmarks.paper.resource_efficient run bits size --budget 20",
    "benchmarks.paper.resource_efficient run search --limit 10    # letter also with 2; satimage --bits 1 2 3 4",
    "benchmarks.paper.resource_efficient report",
)


#: Draws of the settings in the paper.
N_DRAWS = 100


def draws(lines):
    """Return the number of draws and the time of the trainings, and an estimate for the draws of the paper."""
    drawn = {}
    for line in lines:
        if not line.get("size_weight") and line["learner"] in (NB, TAN):
            drawn.setdefault((line["set"], line["learner"]), set()).add(line["run"])
    if not drawn:
        return ""
    fewest = min(map(len, drawn.values()))
    hours = sum(line["seconds"] for line in lines) / 3600
    return paragraph(
        f"""Each learner has {fewest} draws of its settings on each data set, compared to {N_DRAWS} in the paper. All
        trainings took {hours:.0f} hours of a core. With {N_DRAWS} draws, they would take about
        {hours * N_DRAWS / fewest:.0f} hours, which was not run."""
    )


def write_report(lines, folder, more, searched):
    """Write the summary and the page of details.

    ``more(name, lines)`` returns a further section of a data set, and ``searched`` contains the errors in % of branch
    and bound by data set, and by learner and number of bits.
    """
    bits, sizes = figures(lines)
    columns = {name: found for name, (_, _, found) in bits.items()}
    points = {name: size_points(prices) for name, (_, _, prices) in sizes.items()}
    ratios = {learner: [cost_ratio(trained, learner) for trained, _, _ in bits.values()] for learner in (NB, TAN)}
    checked = verdicts.claims(columns, points, searched, {name: found for name, found in ratios.items() if found})
    written = list(details(lines, bits, sizes, folder, more))
    shown = next(iter(bits), None)
    sections = [
        "# Few bits and size penalty",
        verdicts.summary(columns, points, searched, claims_in_words(checked)),
        f"![Errors over bits on {shown}](figures/few-bits-{shown}.png)" if shown else "",
        f"{verdicts.table(columns)}\n\n{paragraph(TABLE)}" if columns else "",
        f"## Claims of the paper\n\n{claims_table(checked, 'evidence')}",
        paragraph("""All errors, splits, sizes and searches are on [a separate page](report_details.md). For the
        comparison with neural networks, see [errors, bits and operations](fronts.md)."""),
        f"## How it was measured\n\n{paragraph(METHOD)}",
        draws(lines),
        made_by(lines, *COMMANDS),
    ]
    write_sections(folder / "report.md", sections)
    write_sections(folder / "report_details.md", written)
