"""Figures 3, 4 and 7: errors over memory and operations, networks of this library, compared with neural ones.

Every trained, counted or searched model is a :class:`Training`. In each fold, the training of a column with the lowest
validation error is chosen; a column with its choices is a :class:`Point`. The choice by test error, as in the paper,
gives other points. Budgets are filled with trainings rather than points, because a column whose best training is too
large may contain smaller ones.
"""

from dataclasses import dataclass
from math import nan
from statistics import mean

import numpy as np

from benchmarks.shared.reports import markdown_table, paragraph, picture
from tanlearn.search.pareto import not_dominated

from .neural.sizes import MEMORY, NAIVE_BAYES, OPERATIONS
from .report import FLOAT, NB, ORDER_FREE, SUBSET, TAN, best_float, errors_by_ratio, models
from .search import SEARCHED

#: Classes times features: additions of naive Bayes, and of every network of one table a feature ([RE] V-D).
ADDITIONS = {"letter": 26 * 16, "satimage": 6 * 36, "usps": 10 * 256, "mnist": 10 * 196}
MEMORY_BUDGETS = tuple(2.0**power for power in range(-2, 5))
OPERATION_BUDGETS = (1.0, 2.0, 8.0, 32.0)
#: Largest size of a model in a budget, relative to the budget. If no net fits, those whose widths were solved for the
#: budget are shown, as in the paper: widths are rounded, so the smallest nets are up to two thirds larger.
MOST = 1.05
#: The name of a budget in lines of nets, by its unit.
BUDGETS = {"bits": MEMORY, "operations": OPERATIONS}
LARGER = "*"
FLOAT_BITS = 32
COLORS = {"bayes": "#0072b2", "dense": "#d55e00", "convolutional": "#009e73"}


@dataclass(frozen=True)
class Training:
    """A finished training: its family, column, and errors on the rows of its part and on test rows.

    Nets have the budget that their widths were solved for, ``(unit, multiple)``.
    """

    family: str
    column: tuple
    name: tuple
    fold: int
    part: str
    error: float
    test_error: float | None
    bits: float
    operations: int
    n_folds: int
    made_for: tuple | None = None

    def fits(self, what, multiple, unit):
        """Return whether its size is within a budget."""
        return getattr(self, what) <= MOST * multiple * unit

    def was_made_for(self, what, multiple, _):
        """Return whether its widths were solved for a budget, even if rounding made it larger."""
        return self.made_for == (BUDGETS[what], multiple)

    @property
    def kind(self):
        """Return the kind of model, which determines its color and marker."""
        return next((kind for kind in ("dense", "convolutional") if self.family.startswith(kind)), "bayes")


@dataclass(frozen=True)
class Point:
    """A column with the choices of its folds: means over folds, errors in %; validation errors may be nan."""

    family: str
    kind: str
    label: str
    validation: float
    test: float
    bits: float
    operations: float


def of_bayes(name, lines, searched, counted):
    """Yield trainings of networks of this library."""

    def training(family, label, of_column, line, n_bits):
        # Test errors of what was trained on 80 % are not in the oldest lines.
        test_error = line["error"] if line["part"] == "test" else line.get("test_error")
        errors = line["fold"], line["part"], line["error"], test_error
        size = line["n_cells"] * n_bits, ADDITIONS[name], line["n_folds"]
        return Training(family, (family, label), of_column, *errors, *size)

    for model in models(lines):
        family = model.learner if model.way == FLOAT else f"{model.learner}, {model.way}"
        line = {**vars(model), "n_folds": lines[0]["n_folds"]}
        yield training(family, label(model.bits), (model.run, model.bits), line, n_bits(model.bits))
    best = best_float(lines, SUBSET)
    for line in lines:
        if line["learner"] == SUBSET and line["bits"] and line["run"] == best.get(line["fold"]):
            what = f"{label(line['bits'])}, penalty {line['size_weight']:.2g}"
            yield training(f"{SUBSET}, small", what, (line["run"],), line, n_bits(line["bits"]))
        elif line["learner"] == ORDER_FREE:
            yield training(f"{ORDER_FREE}, trained", label(line["bits"]), (line["run"],), line, n_bits(line["bits"]))
    for line in searched:
        family, what = f"{line['learner']}, {SEARCHED}", f"{bits_in_words(line['n_bits'])}, {line['limit']:g} s"
        yield training(family, what, (line["run"], line["margin"]), line, line["n_bits"])
    for line in counted:
        what = str(line["bits"]), str(line.get("choice"))
        yield training(line["learner"], label(line["bits"]), what, line, n_bits(line["bits"]))


def n_bits(split):
    """Return the bits of a number."""
    return sum(split) if split else FLOAT_BITS


def label(split):
    """Return the number format of a split in words."""
    return bits_in_words(sum(split)) if split else FLOAT


def bits_in_words(number):
    """Return a number of bits in words."""
    return "1 bit" if number == 1 else f"{number} bits"


def of_nets(lines):
    """Yield the trainings of neural networks in their last heat."""
    places = [(line["kind"], line["budget"], line["multiple"], line["fold"]) for line in lines]
    last = {}
    for place, line in zip(places, lines, strict=True):
        last[place] = max(last.get(place, 0), line["epochs"])
    for place, line in zip(places, lines, strict=True):
        if line["epochs"] != last[place]:
            continue
        family = f"{line['kind']}, {line['activation']}, {line['inputs']}"
        yield Training(
            family,
            (family, f"for {line['multiple']:g} x {line['budget']}"),
            (line["run"], line["n_layers"], line["batch_norm"], line["bits"], line["learning_rate"]),
            line["fold"],
            line["part"],
            line["validation_error"] if line["part"] == "validation" else line["test_error"],
            line["test_error"],
            line["model_bits"],
            line["operations"],
            line["n_folds"],
            (line["budget"], line["multiple"]),
        )


def chosen_points(trainings):
    """Return the points chosen by validation error, with the test errors of trainings on all rows."""
    return _points(trainings, _choose)


def best_points(trainings):
    """Return the points with the lowest test error in every fold, trained on either part."""
    known = [training for training in trainings if training.test_error is not None]
    return _points(known, lambda fold: (None, min(fold, key=lambda training: training.test_error)))


def _choose(fold):
    """Return the first training with the lowest validation error, and the same one on all rows."""
    scored = [training for training in fold if training.part == "validation"]
    choice = min(scored, key=lambda training: training.error, default=None)
    finals = [one for one in fold if one.part == "test" and choice and one.name == choice.name]
    return choice, next(iter(finals), None)


def _points(trainings, choose):
    """Return the points of all columns with a choice in every fold."""
    columns = {}
    for training in trainings:
        columns.setdefault(training.column, {}).setdefault(training.fold, []).append(training)
    found = []
    for (family, what), folds in columns.items():
        chosen = [(choice, final) for choice, final in map(choose, folds.values()) if final]
        if len(chosen) == next(iter(folds.values()))[0].n_folds:
            sizes = {name: mean(getattr(final, name) for _, final in chosen) for name in ("bits", "operations")}
            validation = 100 * mean(choice.error if choice else nan for choice, _ in chosen)
            test = 100 * mean(final.test_error for _, final in chosen)
            found.append(Point(family, chosen[0][1].kind, what, validation, test, **sizes))
    return found


def within(trainings, *budget):
    """Return the point that folds choose for a budget by validation rows, and the lowest test error in %; or two Nones.

    A budget is a unit, a multiple and a base. Folds choose among the choices of columns, because only these are trained
    on all rows. The label of the point is a star if it was made for the budget and is larger.
    """
    columns = {}
    for training in trainings:
        columns.setdefault((training.column, training.fold), []).append(training)
    of_columns = [(choice, final) for choice, final in map(_choose, columns.values()) if final]
    for fits, mark in ((Training.fits, ""), (Training.was_made_for, LARGER)):
        able = [training for training in trainings if fits(training, *budget)]
        choices = {}
        for choice, final in of_columns:
            if fits(final, *budget):
                choices.setdefault(final.fold, []).append((choice.error, final))
        if choices and len(choices) == trainings[0].n_folds:
            chosen = [min(own, key=lambda one: one[0]) for own in choices.values()]
            finals = [final for _, final in chosen]
            sizes = {name: mean(getattr(final, name) for final in finals) for name in ("bits", "operations")}
            errors = 100 * mean(error for error, _ in chosen), 100 * mean(final.test_error for final in finals)
            lowest = {}
            for one in able:
                if one.test_error is not None:
                    lowest[one.fold] = min(one.test_error, lowest.get(one.fold, 1.0))
            point = Point(finals[0].family, finals[0].kind, mark, *errors, **sizes)
            return point, 100 * mean(lowest.values())
    return None, None


def budget_table(trainings, what, unit, multiples):
    """Return a table of test errors by family and budget, chosen by validation error and best on test."""
    families = {training.family: [training.family] for training in trainings}
    for title, is_bayes in (("**any of this library**", True), ("**any neural network**", False)):
        families[title] = list(dict.fromkeys(one.family for one in trainings if (one.kind == "bayes") == is_bayes))
    rows = []
    for title, names in families.items():
        own = [training for training in trainings if training.family in names]
        cells = []
        for multiple in multiples:
            point, lowest = within(own, what, multiple, unit)
            cells.append(f"{point.test:.2f}{point.label} ({lowest:.2f})" if point else "")
        if any(cells):
            rows.append([title, *cells])
    return markdown_table(["family", *(f"{multiple:g}" for multiple in multiples)], rows)


def front(found, error):
    """Return the points that no other dominates in error, bits and operations, the smallest first."""
    kept = not_dominated([[getattr(point, error), point.bits, point.operations] for point in found])
    return sorted((found[place] for place in kept), key=lambda point: point.bits)


def effort(lines, searched, others, nets):
    """Return the trainings behind the figures of a data set, and the missing ones, in words."""
    done = []
    runs = 1 + max((line["run"] for line in lines if line["learner"] in (NB, TAN)), default=-1)
    if runs:
        done.append(f"{runs} runs of {lines[0]['epochs']} epochs per network of few bits")
    limits = sorted({f"{line['limit']:g}" for line in searched}, key=float)
    if limits:
        done.append(f"searches of {' and '.join(limits)} s")
    for kind in dict.fromkeys(line["kind"] for line in nets):
        heats = sorted({line["epochs"] for line in nets if line["kind"] == kind})
        done.append(f"{kind} networks of {', '.join(map(str, heats))} epochs")
    tried = [*lines, *others, *({"learner": f"{line['learner']}, {SEARCHED}"} for line in searched)]
    names = {line["learner"] for line in tried}
    small = any(line["learner"] == SUBSET and line["bits"] for line in lines)
    missing = [
        words
        for words, is_there in (
            ("trees with a size penalty and few bits", small),
            ("order-free trees of few bits", ORDER_FREE in names),
            ("searches", bool(searched)),
            ("k-trees", any("k-tree" in name for name in names)),
        )
        if not is_there
    ]
    return f"Results are from {'; '.join(done)}." + (f" Not run for this set: {', '.join(missing)}." if missing else "")


def section(name, made_of, trainings, chosen, best):
    """Return the section of a data set."""
    rows = [
        [
            *(point.family, point.label, f"{point.bits / 1000:.3g}", f"{point.operations:.0f}"),
            *(f"{error:.2f}" for error in (point.validation, point.test)),
        ]
        for point in front(chosen, "validation")
    ]
    by_test = front(best, "test")
    kinds = (("bayes", "of this library"), ("dense", "dense"), ("convolutional", "convolutional"))
    shares = ", ".join(
        f"{sum(point.kind == kind for point in by_test)} of {sum(point.kind == kind for point in best)} {words}"
        for kind, words in kinds
        if any(point.kind == kind for point in best)
    )
    header = ["family", "selection", "kbit", "operations", "validation", "test"]
    nets = [point for point in chosen if point.kind != "bayes"]
    step = max(nets, key=lambda point: point.test - point.validation)
    return f"""## {name}

{paragraph(made_of)}

### Memory (figure 3)

Each column is a memory budget: the number of bits times {NAIVE_BAYES[name]:,} parameters, the size of naive Bayes in
the paper.

{budget_table(trainings, "bits", NAIVE_BAYES[name], MEMORY_BUDGETS)}

![{name}: errors of all families over memory](figures/memory-{name}.png)

The model with the largest increase from validation to test error is "{step.family}, {step.label}": its error increases
from {step.validation:.2f} to {step.test:.2f} %.

### Operations (figure 4)

Each column is a multiple of the {ADDITIONS[name]:,} additions of a network of this library.

{budget_table(trainings, "operations", ADDITIONS[name], OPERATION_BUDGETS)}

### The front (figure 7)

The Pareto front contains each model for which no other model is better in validation error, bits and operations at
once. One model is selected per budget, size penalty and number of bits. The front of the paper contains all single
models, by test error:

{markdown_table(header, rows, left=(0, 1))}

By the lowest test error per family, budget, size penalty and number of bits, the front consists of {shares}.

![{name}: Pareto fronts of networks, Bayesian and neural](figures/front-{name}.png)"""


def draw_memory(name, trainings, path):
    """Draw figure 3: test errors of the models chosen by validation error, over budgets."""
    with picture(path, 8, 5) as figure:
        axes = figure.subplots()
        families = dict.fromkeys(training.family for training in trainings)
        styles = {"bayes": ("-", "o"), "dense": ("--", "s"), "convolutional": (":", "^")}
        for family in families:
            own = [training for training in trainings if training.family == family]
            points = [(budget, within(own, "bits", budget, NAIVE_BAYES[name])[0]) for budget in MEMORY_BUDGETS]
            drawn = [(budget, point.test) for budget, point in points if point]
            if len({test for _, test in drawn}) < 2:
                continue
            line, marker = styles[own[0].kind]
            axes.plot(*zip(*drawn, strict=True), linestyle=line, marker=marker, markersize=4, label=family)
        axes.set(title=name, xlabel="bits, of the parameters of naive Bayes", ylabel="test error [%]")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        errors_by_ratio(axes)
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))


def draw_front(name, found, path):
    """Draw figure 7: errors over operations and over bits, the other one as the area of a disk."""
    kept = front(found, "validation")
    with picture(path, 11, 4.5) as figure:
        for axes, x, area in zip(
            figure.subplots(1, 2, sharey=True), ("operations", "bits"), ("bits", "operations"), strict=True
        ):
            largest = max(getattr(point, area) for point in found)
            for chosen, alpha in ((found, 0.12), (kept, 0.75)):
                for kind, color in COLORS.items():
                    own = [point for point in chosen if point.kind == kind]
                    axes.scatter(
                        [getattr(point, x) for point in own],
                        [point.test for point in own],
                        s=[10 + 300 * np.sqrt(getattr(point, area) / largest) for point in own],
                        color=color,
                        alpha=alpha,
                        linewidths=0,
                        label={"bayes": "this library"}.get(kind, kind) if own and chosen is kept else None,
                    )
            axes.set(xlabel=x, title=f"{name}: disks grow with {area}")
            axes.set_xscale("log")
            errors_by_ratio(axes)
        figure.axes[0].set_ylabel("test error [%]")
        figure.axes[0].legend(fontsize="small")
