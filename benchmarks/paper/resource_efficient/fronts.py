"""Figures 3, 4 and 7: errors over memory and operations, networks of this library beside neural ones.

Whatever was trained, counted or searched becomes a :class:`Training`. Those of a column compete on validation rows, by
every fold for itself, and a column with its choices is a :class:`Point`: a model that one could take.
"""

from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks.paper.shared.report_parts import made_with, markdown_table, picture, write_sections
from tanlearn.search.pareto import not_dominated

from .neural.sizes import MEMORY, NAIVE_BAYES, OPERATIONS
from .report import FLOAT, SUBSET, figure_6, models, of_most_epochs
from .search import SEARCHED

#: Classes times features: additions of naive Bayes, and of every network of one table a feature ([RE] V-D).
ADDITIONS = {"letter": 26 * 16, "satimage": 6 * 36, "usps": 10 * 256, "mnist": 10 * 196}
MEMORY_BUDGETS = tuple(2.0**power for power in range(-2, 5))
OPERATION_BUDGETS = (1.0, 2.0, 8.0, 32.0, 128.0)
FLOAT_BITS = 32
SMALL = "small"
COLOURS = {"bayes": "#0072b2", "dense": "#d55e00", "convolutional": "#009e73"}


HEAD = """# Errors, bits and operations, beside neural networks

Figures 3, 4 and 7 of "On resource-efficient Bayesian network classifiers and deep neural networks". Test errors in %.
Made by

    python -m benchmarks.paper.resource_efficient run bits size small counted search neural
    python -m benchmarks.paper.resource_efficient report

with {made_with}.

Every model was chosen on 20 % of a fold's training part, then trained on all of it and tested. In brackets, and as best
on test, is what the paper reports: the lowest test error of all that was trained, most of it on 80 % of the training
part; of neural networks only what reached the end of a race ([how](neural/plan.py)), of several folds the mean of what
each finds. A budget holds what needs no more; networks that were built for it count as within it, as in the paper, for
their widths are rounded. An operation is an addition, a multiplication with addition, or a normalised unit. Parameters
that are normalised or biases count as 32 bits. Trees that are small have a price for size and few bits at once; what is
counted has smoothed frequencies, rounded.
"""


@dataclass(frozen=True)
class Training:
    """What came of a training: its family, what it competes with, and its errors on its part's rows and test rows.

    A net's room is its budget, which its bits or operations meet but for rounding: multiples of naive Bayes.
    """

    family: str
    column: tuple
    name: tuple
    fold: int
    part: str
    error: float
    test_error: float
    bits: float
    operations: int
    memory: float
    effort: float
    n_folds: int

    @property
    def kind(self):
        """What it is drawn as."""
        return next((kind for kind in ("dense", "convolutional") if self.family.startswith(kind)), "bayes")


@dataclass(frozen=True)
class Point:
    """A column with what its folds chose: means over folds, errors in %."""

    family: str
    kind: str
    label: str
    validation: float
    test: float
    best: float
    bits: float
    operations: float
    memory: float
    effort: float


def of_bayes(name, lines, searched, counted):
    """Yield trainings of networks of this library."""
    n_folds = {line["n_folds"] for line in lines}

    def training(family, label, name_, line, n_cells, n_bits):
        bits = n_cells * n_bits
        fold, part, error, test_error = line
        size = bits, ADDITIONS[name], bits / NAIVE_BAYES[name], 1.0
        return Training(family, (family, label), name_, fold, part, error, test_error, *size, max(n_folds, default=1))

    def label(bits):
        return f"{sum(bits)} bits" if bits else FLOAT

    for model in models(lines):
        family = model.learner if model.way == FLOAT else f"{model.learner}, {model.way}"
        found = model.fold, model.part, model.error, model.test_error
        n_bits = sum(model.bits) if model.bits else FLOAT_BITS
        yield training(family, label(model.bits), (model.run, model.bits), found, model.n_cells, n_bits)
    for line in lines:
        if line["learner"] == SUBSET and line["bits"]:
            found = [line[key] for key in ("fold", "part", "error", "test_error")]
            price = f"{label(line['bits'])}, price {line['size_weight']:.2g}"
            yield training(f"{SUBSET}, {SMALL}", price, (), found, line["n_cells"], sum(line["bits"]))
    for line in searched:
        found = [line[key] for key in ("fold", "part", "error", "test_error")]
        family, n_bits = f"{line['learner']}, {SEARCHED}", line["n_bits"]
        yield training(family, f"{n_bits} bits", (line["margin"],), found, line["n_cells"], n_bits)
    for line in counted:
        found = [line[key] for key in ("fold", "part", "error", "test_error")]
        n_bits = sum(line["bits"]) if line["bits"] else FLOAT_BITS
        yield training(line["learner"], label(line["bits"]), (str(line["bits"]),), found, line["n_cells"], n_bits)


def of_nets(name, lines):
    """Yield trainings of neural networks, those of the last heat."""
    last = {}
    for line in lines:
        place = line["kind"], line["budget"], line["multiple"], line["fold"]
        last[place] = max(last.get(place, 0), line["epochs"])
    for line in lines:
        if line["epochs"] != last[line["kind"], line["budget"], line["multiple"], line["fold"]]:
            continue
        family = f"{line['kind']}, {line['activation']}, {line['inputs']}"
        is_scored = line["part"] == "validation"
        memory, effort = line["model_bits"] / NAIVE_BAYES[name], line["operations"] / ADDITIONS[name]
        yield Training(
            family,
            (family, f"{line['multiple']:g} x {line['budget']}"),
            (line["run"], line["n_layers"], line["batch_norm"], line["bits"], line["learning_rate"]),
            line["fold"],
            line["part"],
            line["validation_error"] if is_scored else line["test_error"],
            line["test_error"],
            line["model_bits"],
            line["operations"],
            line["multiple"] if line["budget"] == MEMORY else memory,
            line["multiple"] if line["budget"] == OPERATIONS else effort,
            line["n_folds"],
        )


def points(trainings):
    """Return the columns that are complete: of every fold a choice by validation rows, trained on all rows."""
    columns = {}
    for training in trainings:
        columns.setdefault(training.column, {}).setdefault(training.fold, []).append(training)
    found = []
    for column, folds in columns.items():
        chosen = [(choice, final) for choice, final in map(choose, folds.values()) if final]
        if len(chosen) == next(iter(folds.values()))[0].n_folds:
            finals = [final for _, final in chosen]
            found.append(
                Point(
                    family=column[0],
                    kind=finals[0].kind,
                    label=column[1],
                    validation=100 * mean(choice.error for choice, _ in chosen),
                    test=100 * mean(final.error for final in finals),
                    best=100 * mean(min(one.test_error for one in fold) for fold in folds.values()),
                    **{
                        what: mean(getattr(final, what) for final in finals)
                        for what in ("bits", "operations", "memory", "effort")
                    },
                )
            )
    return found


def choose(trainings):
    """Return the training with the lowest validation error, of equals the first, and the same one on all rows."""
    scored = [training for training in trainings if training.part == "validation"]
    choice = min(scored, key=lambda training: training.error, default=None)
    finals = [one for one in trainings if one.part == "test" and choice and one.name == choice.name]
    return choice, next(iter(finals), None)


def fitting(found, what, budget):
    """Return the point with the lowest validation error within a budget, and the lowest test error of any within it."""
    able = [point for point in found if getattr(point, what) <= budget * 1.0001]
    if not able:
        return None
    return min(able, key=lambda point: point.validation), min(point.best for point in able)


def budget_table(found, what, budgets):
    """Return a table of test errors by family and budget: of what validation rows chose, and best on test."""
    families = list(dict.fromkeys(point.family for point in found))
    groups = {family: [point for point in found if point.family == family] for family in families}
    groups["**any of this library**"] = [point for point in found if point.kind == "bayes"]
    groups["**any neural network**"] = [point for point in found if point.kind != "bayes"]
    rows = []
    for family, able in groups.items():
        cells = [fitting(able, what, budget) for budget in budgets]
        if any(cells):
            rows.append([family, *(f"{cell[0].test:.2f} ({cell[1]:.2f})" if cell else "" for cell in cells)])
    return markdown_table(["", *(f"{budget:g}" for budget in budgets)], rows)


def front(found, error):
    """Return the points that no other beats in error, bits and operations, the smallest first."""
    kept = not_dominated([[getattr(point, error), point.bits, point.operations] for point in found])
    return sorted((found[place] for place in kept), key=lambda point: point.bits)


def section(name, found):
    """Return the tables of a set."""
    kept = front(found, "validation")
    rows = [
        [
            *(point.family, point.label, f"{point.bits / 1000:.3g}", f"{point.operations:.0f}"),
            *(f"{error:.2f}" for error in (point.validation, point.test, point.best)),
        ]
        for point in kept
    ]
    by_test = front(found, "best")
    shares = ", ".join(
        f"{sum(point.kind == kind for point in by_test)} of {sum(point.kind == kind for point in found)} {words}"
        for kind, words in (("bayes", "of this library"), ("dense", "dense"), ("convolutional", "convolutional"))
        if any(point.kind == kind for point in found)
    )
    header = ["family", "", "kbit", "operations", "validation", "test", "best on test"]
    return f"""## {name}

### Memory (figure 3)

Budgets are {NAIVE_BAYES[name]:,} parameters of naive Bayes times so many bits.

{budget_table(found, "memory", MEMORY_BUDGETS)}

![Errors over memory](figures/memory-{name}.png)

### Operations (figure 4)

Budgets are multiples of the {ADDITIONS[name]:,} additions of a network of this library.

{budget_table(found, "effort", OPERATION_BUDGETS)}

### The front (figure 7)

What no other beats in validation error, bits and operations at once:

{markdown_table(header, rows, left=(0, 1))}

By the lowest test errors, as in the paper, the front consists of {shares}.

![Fronts](figures/front-{name}.png)"""


def draw_memory(name, found, path):
    """Draw figure 3 of a set: test errors of what validation rows chose, over budgets."""
    with picture(path, 8, 5) as figure:
        axes = figure.subplots()
        families = dict.fromkeys(point.family for point in found)
        styles = {"bayes": ("-", "o"), "dense": ("--", "s"), "convolutional": (":", "^")}
        for family in families:
            own = [point for point in found if point.family == family]
            if len({point.memory for point in own if point.memory <= MEMORY_BUDGETS[-1]}) < 2:
                continue
            cells = [(budget, fitting(own, "memory", budget)) for budget in MEMORY_BUDGETS]
            drawn = [(budget, cell[0].test) for budget, cell in cells if cell]
            line, marker = styles[own[0].kind]
            axes.plot(*zip(*drawn, strict=True), linestyle=line, marker=marker, markersize=4, label=family)
        axes.set(title=name, xlabel="bits, of the parameters of naive Bayes", ylabel="test error [%]")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which("{x:g}")
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))


def draw_front(name, found, path):
    """Draw figure 7 of a set: errors over operations and over bits, the other one as the area of a disk."""
    kept = front(found, "validation")
    with picture(path, 11, 4.5) as figure:
        for axes, x, area in zip(
            figure.subplots(1, 2, sharey=True), ("operations", "bits"), ("bits", "operations"), strict=True
        ):
            largest = max(getattr(point, area) for point in found)
            for chosen, alpha in ((found, 0.12), (kept, 0.75)):
                for kind, colour in COLOURS.items():
                    own = [point for point in chosen if point.kind == kind]
                    axes.scatter(
                        [getattr(point, x) for point in own],
                        [point.test for point in own],
                        s=[10 + 300 * np.sqrt(getattr(point, area) / largest) for point in own],
                        color=colour,
                        alpha=alpha,
                        linewidths=0,
                        label={"bayes": "this library"}.get(kind, kind) if own and chosen is kept else None,
                    )
            axes.set(xlabel=x, title=f"{name}: disks grow with {area}")
            axes.set_xscale("log")
            axes.set_yscale("log")
            for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
                which("{x:g}")
        figure.axes[0].set_ylabel("test error [%]")
        figure.axes[0].legend(fontsize="small")


def write_fronts(lines, searched, counted, nets, folder):
    """Write the report of all lines to a folder; sets without neural networks are left out."""
    sections = []
    for name in dict.fromkeys(line["set"] for line in nets):
        own = [[line for line in found if line["set"] == name] for found in (lines, searched, counted, nets)]
        own[0] = of_most_epochs(own[0], figure_6)
        found = points([*of_bayes(name, *own[:3]), *of_nets(name, own[3])])
        if not any(point.kind != "bayes" for point in found):
            continue
        draw_memory(name, found, folder / f"figures/memory-{name}.png")
        draw_front(name, found, folder / f"figures/front-{name}.png")
        sections.append(section(name, found))
    if sections:
        write_sections(folder / "fronts.md", [HEAD.format(made_with=made_with([*lines, *nets])), *sections])
