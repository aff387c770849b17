"""The pages about errors, bits and operations: verdicts, details, and how the figures were made."""

import numpy as np

from benchmarks.paper.claims import claims_in_words, claims_table
from benchmarks.shared.reports import paragraph, write_sections
from benchmarks.shared.versions import made_by

from . import fronts_claims, logistic
from .fronts import (
    best_points,
    chosen_points,
    draw_front,
    draw_memory,
    effort,
    front,
    of_bayes,
    of_nets,
    section,
)
from .report import figure_6, of_most_epochs

METHOD = """This page reproduces figures 3, 4 and 7 of "On resource-efficient Bayesian network classifiers and deep
neural networks". The paper shows these figures as plots without numbers, so the claims are from its text."""
TERMS = """\
- *Selection*. Each model is selected on 20 % of the training part of a fold, then trained on the whole training part,
  and tested.
- *Best on test*. The numbers in brackets are the lowest test errors of all trainings, as in the paper, as means over
  folds. Most of these trainings are on 80 % of the training part. For neural networks, only the trainings at the end of
  a race are included ([plan of the races](neural/plan.py)).
- *Budgets*. A model fits a budget if it exceeds the budget by at most 5 %. If no network of a family fits, a star marks
  the network whose widths were computed for the budget, as in the paper. Widths are rounded, which makes small networks
  larger.
- *Operations*. Networks for budgets of operations are convolutional, and networks for budgets of memory are dense. An
  operation is an addition, a multiplication with addition, or a normalized unit.
- *Memory*. Biases and the parameters of normalization take 32 bits each.
- *Families*. *small* trees have a size penalty and few bits. *counted* models have rounded smoothed frequencies.
  K-trees have up to two parents per feature and are trained by gradient (not in the paper, [code](pairs.py)).
- [BayesForest](../../quality/tables.md) is not included. It stores counts of millions of contexts, which cannot be
  represented with few bits."""
TABLE = """The table shows test errors in %. A memory budget is a multiple of the size of naive Bayes with 1 bit per
parameter, and a budget of operations is a multiple of the additions of a Bayesian network."""
ONCE = """Selected neural networks are trained once more on all rows, with other initial weights. Each result is
therefore a single draw. Very small networks are unstable, and their test errors can be far above their validation
errors. The largest difference between both errors is stated for each data set."""
COMMANDS = (
    "benchmarks.paper.resource_efficient run bits size small --budget 20",
    "benchmarks.paper.resource_efficient run counted k-trees logistic",
    "benchmarks.paper.resource_efficient run search --limit 10    # letter also with 2",
    "benchmarks.paper.resource_efficient run neural --budget 1    # mnist: see fronts_details.md",
    "benchmarks.paper.resource_efficient report",
)


#: Memory budgets of figure 3 in bits per parameter, and multiples of operations of figure 4, that were not run.
MISSING_BITS, MISSING_OPERATIONS = (3, 5, 6, 7), (4, 16, 64, 128, 256)
N_DRAWS = 100


def not_run(nets):
    """Return the budgets that were not run, with their estimated time from the time of other budgets."""
    hours = {}
    for line in nets:
        budget = line["kind"], line["budget"], line["multiple"]
        hours[budget] = hours.get(budget, 0.0) + line["seconds"] / 3600
    memory = sum(_interpolated(hours, kind, "memory", MISSING_BITS) for kind in ("dense", "convolutional"))
    operations = _interpolated(hours, "convolutional", "operations", MISSING_OPERATIONS)
    total = sum(hours.values())
    return paragraph(
        f"""Each budget has one draw of initial weights, with a race instead of the whole grid. All networks took
        {total:.1f} hours of a core; {N_DRAWS} draws would take about {total * N_DRAWS / 24:.0f} days. Not run, with
        estimates in hours of a core for one draw: memory budgets of 3, 5, 6 and 7 bits ({memory:.1f}), and 4, 16, 64,
        128 and 256 times the operations ({operations:.1f}). The paper reports that the errors of convolutional networks
        decrease up to 64 (usps) and 256 times the operations (mnist), which our budgets cannot show."""
    )


def _interpolated(hours, kind, budget, multiples):
    """Return the sum of the hours of some budgets: powers fitted to the hours of others, by multiple."""
    known = {multiple: value for (*what, multiple), value in hours.items() if what == [kind, budget] and value > 0}
    if len(known) < 2:
        return 0.0
    slope, start = np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)
    return float(np.exp(start + slope * np.log(multiples)).sum())


def write_fronts(lines, searched, counted, nets, folder, one_layer=()):
    """Write the summary and the page of details; sets without neural networks are left out.

    ``one_layer`` are the lines of logistic.py.
    """
    details, sets, fronts = [], {}, {}
    for name in dict.fromkeys(line["set"] for line in nets):
        own = [[line for line in found if line["set"] == name] for found in (lines, searched, counted, nets)]
        own[0] = of_most_epochs(own[0], figure_6)
        found = [*of_bayes(name, *own[:3]), *of_nets(own[3])]
        chosen = chosen_points(found)
        if not any(point.kind != "bayes" for point in chosen):
            continue
        finished = {(point.family, point.label) for point in chosen}  # races under way have test errors, too
        trainings = [training for training in found if training.column in finished]
        sets[name], fronts[name] = trainings, (front(chosen, "validation"), chosen)
        draw_memory(name, trainings, folder / f"figures/memory-{name}.png")
        draw_front(name, chosen, folder / f"figures/front-{name}.png")
        kinds = {point.kind for point in chosen}
        made_of = effort(*own[:3], [line for line in own[3] if line["kind"] in kinds])
        details.append(section(name, made_of, trainings, chosen, best_points(trainings)))
    if not sets:
        return
    best = fronts_claims.Best(sets)
    layers = logistic.claim(one_layer, *fronts_claims.of_one_layer(best))
    checked, shown = [*fronts_claims.claims(best, fronts), layers], list(sets)[-1]
    sections = [
        "# Errors, bits and operations of Bayesian and neural networks",
        fronts_claims.summary(best, claims_in_words(checked)),
        f"![{shown}: Pareto fronts of networks, Bayesian and neural](figures/front-{shown}.png)",
        f"{fronts_claims.table(best)}\n\n{paragraph(TABLE)}",
        f"## Claims of the paper\n\n{claims_table(checked, 'evidence (test errors in %)')}",
        "All families, budgets and fronts are on [a separate page](fronts_details.md).",
        f"## How it was measured\n\n{paragraph(METHOD)}\n\n{TERMS}",
        f"{paragraph(ONCE)}\n\n{not_run(nets)}",
        made_by([*lines, *nets], *COMMANDS),
    ]
    write_sections(folder / "fronts.md", sections)
    start = """The [summary](fronts.md) contains the main results, and explains families, budgets and selection. All
    errors are test errors in %, unless a column states otherwise."""
    heading = "# Errors, bits and operations of Bayesian and neural networks: details"
    write_sections(
        folder / "fronts_details.md", [heading, paragraph(start), *details, logistic.logistic_section(one_layer)]
    )
