"""Choices of folds by validation error, and the tables and figures of figures 5 and 6."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.shared.reports import markdown_table, picture
from benchmarks.shared.results import pooled_error
from tanlearn.search.pareto import not_dominated

NB, TAN, SUBSET, ORDER_FREE = "NB HYB", "TAN of Subset K=8", "TAN Subset K=8", "TAN Order-free K=8"
N_BITS = range(1, 9)
#: Integer and fraction bits ([RE] V-B).
FORMATS = tuple((integer_bits, n_bits - integer_bits) for n_bits in N_BITS for integer_bits in range(1, 7))
#: Formats of trainings. The best of these three splits has 0 to 0.06 points of validation error more than the best of
#: all six, in means over two runs of naive Bayes and TAN on four sets (20 to 100 epochs); with 3 to 5, up to 0.08.
TRAINED_FORMATS = tuple(bits for bits in FORMATS if 2 <= bits[0] <= 4)
#: Size penalties of a parameter. They range from unpenalized trees to naive Bayes; the weight of the margin matters.
PRICES = (0.0, 1e-6, 1e-5, *(float(f"{price:.2g}") for price in np.geomspace(1e-4, 1, 13)), 100.0)
FLOAT, TRAINED, ROUNDED = "float32", "trained", "rounded"
COLORS = {NB: "#d55e00", TAN: "#0072b2"}


@dataclass(frozen=True)
class Model:
    """One of the classifiers of figure 6 on a part of a fold."""

    learner: str
    way: str
    bits: tuple | None
    run: int
    fold: int
    part: str
    error: float
    test_error: float | None
    n_cells: int
    rows: int

    @property
    def column(self):
        """Return the column, in which models compete: learner, way, and number of bits."""
        return self.learner, self.way, self.bits and sum(self.bits)

    @property
    def name(self):
        """Return the identity of the model."""
        return self.learner, self.way, self.bits, self.run, self.fold


def models(lines):
    """Yield the classifiers of lines; one that is trained in float32 is also rounded to every format."""
    for line in lines:
        if line["learner"] in (NB, TAN):
            common = [line[name] for name in ("run", "fold", "part")]
            bits = line["bits"] and tuple(line["bits"])
            errors, sizes = (line["error"], line.get("test_error")), (line["n_cells"], line["rows"])
            yield Model(line["learner"], TRAINED if bits else FLOAT, bits, *common, *errors, *sizes)
            rounded = line.get("rounded", [])
            test_rounded = line.get("test_rounded", [None] * len(rounded))
            for found, *errors in zip(FORMATS, rounded, test_rounded, strict=False):
                yield Model(line["learner"], ROUNDED, found, *common, *errors, *sizes)


def choices(lines):
    """Return the first classifier with the lowest validation error for every fold and column."""
    best = {}
    for model in models(line for line in lines if line["part"] == "validation"):
        place = model.fold, model.column
        if place not in best or model.error < best[place].error:
            best[place] = model
    return best


def best_float(lines, learner):
    """Return the run with the lowest validation error for every fold."""
    errors = {}
    for line in lines:
        if line["learner"] == learner and line["part"] == "validation" and line["bits"] is None:
            errors.setdefault(line["fold"], []).append((line["error"], line["run"]))
    return {fold: min(found)[1] for fold, found in errors.items()}


def budgets(lines):
    """Yield numbers of runs, the largest first, with their lines."""
    for budget in range(max((line["run"] for line in lines), default=-1) + 1, 0, -1):
        yield budget, [line for line in lines if line["run"] < budget]


def figure_6(lines):
    """Return the largest number of complete runs, and the models chosen by the folds for every column."""
    for budget, found in budgets(lines):
        tests = {model.name: model for model in models(line for line in found if line["part"] == "test")}
        chosen = choices(found)
        scored = models(line for line in found if line["part"] == "validation")
        n_trained = sum(model.way != ROUNDED and model.bits in (None, *TRAINED_FORMATS) for model in scored)
        is_complete = n_trained == budget * found[0]["n_folds"] * 2 * (1 + len(TRAINED_FORMATS))
        if is_complete and all(model.name in tests for model in chosen.values()):
            columns = {}
            for (_, column), model in chosen.items():
                columns.setdefault(column, []).append(tests[model.name])
            return budget, columns
    return 0, {}


def of_most_epochs(lines, figure):
    """Return the lines of the largest number of epochs with which a figure is complete."""
    for epochs in sorted({line["epochs"] for line in lines}, reverse=True):
        found = [line for line in lines if line["epochs"] == epochs]
        if figure(found)[0]:
            return found
    return []


def best_on_test(lines):
    """Return the lowest test error in % of all runs and formats for every column, which the paper reports.

    Nearly all of these trainings are on 80 % of the training part. The errors of several folds are averaged.
    """
    errors = {}
    for model in models(lines):
        if model.test_error is not None:
            errors.setdefault(model.column, {}).setdefault(model.fold, []).append(model.test_error)
    return {column: 100 * float(np.mean([min(fold) for fold in folds.values()])) for column, folds in errors.items()}


def figure_5(lines):
    """Return the largest number of complete runs, and the lines of the chosen runs for every size penalty."""
    for budget, found in budgets([line for line in lines if line["learner"] == SUBSET and line["bits"] is None]):
        best = best_float(found, SUBSET)
        prices = {price: [] for price in PRICES}
        for line in found:
            if line["part"] == "test" and line["run"] == best.get(line["fold"]) and line["size_weight"] in prices:
                prices[line["size_weight"]].append(line)
        n_folds, n_scored = found[0]["n_folds"], sum(line["part"] == "validation" for line in found)
        is_complete = n_scored == budget * n_folds and all(len(folds) == n_folds for folds in prices.values())
        if is_complete:
            return budget, prices
    return 0, {}


def cost_ratio(lines, learner):
    """Return the processor time of a training for few bits relative to one in float32 on the same rows."""
    scored = [line for line in lines if line["learner"] == learner and line["part"] == "validation"]
    plain = {(line["run"], line["fold"]): line["seconds"] for line in scored if line["bits"] is None}
    return float(np.median([line["seconds"] / plain[line["run"], line["fold"]] for line in scored if line["bits"]]))


def mean_error(folds):
    """Return wrong rows over rows of the models of all folds, in %."""
    return 100 * pooled_error([vars(model) for model in folds])


def figures(lines):
    """Return the lines and figure 6, and the lines and figure 5, of every data set that has them."""
    bits, sizes = {}, {}
    for name in dict.fromkeys(line["set"] for line in lines):
        found = [line for line in lines if line["set"] == name]
        trained, priced = of_most_epochs(found, figure_6), of_most_epochs(found, figure_5)
        if trained:
            bits[name] = trained, *figure_6(trained)
        if priced:
            sizes[name] = priced, *figure_5(priced)
    return bits, sizes


def details(lines, bits, sizes, folder, more):
    """Yield the sections of the page of details, and draw their figures."""
    yield "# Few bits and size penalty: details"
    yield "The [summary](report.md) contains the main results. All errors are test errors in %."
    for name in dict.fromkeys(line["set"] for line in lines):
        if name in bits:
            trained, budget, columns = bits[name]
            image = f"figures/few-bits-{name}.png"
            draw_bits(name, columns, folder / image)
            yield f"{bits_section(name, trained, budget, columns)}\n\n![Errors over bits on {name}]({image})"
        if name in sizes:
            priced, budget, prices = sizes[name]
            image, points = f"figures/size-{name}.png", size_points(prices)
            draw_sizes(name, points, folder / image)
            section = size_section(name, budget, priced[0]["epochs"], points)
            yield f"{section}\n\n![Errors over sizes on {name}]({image})"
        yield more(name, bits[name][0] if name in bits else [])


def bits_section(name, lines, budget, columns):
    """Return the tables of figure 6."""
    rows, splits = [], []
    lowest = best_on_test([line for line in lines if line["run"] < budget])
    for learner in (NB, TAN):
        plain = f"{mean_error(columns[learner, FLOAT, None]):.2f}"
        for way in (TRAINED, ROUNDED):
            found = [columns[learner, way, n_bits] for n_bits in N_BITS]
            rows.append([f"{learner}, {way}", *(f"{mean_error(folds):.2f}" for folds in found), plain])
            splits.append([f"{learner}, {way}", *map(split_names, found)])
            best = [lowest.get(column) for column in [*((learner, way, n) for n in N_BITS), (learner, FLOAT, None)]]
            if None not in best:
                rows.append([f"{learner}, {way}, best on test", *(f"{error:.2f}" for error in best)])
    ratios = ", ".join(f"{learner} {cost_ratio(lines, learner):.2f}" for learner in (NB, TAN))
    return f"""## Bits: {name}

Each learner has {budget} runs of {lines[0]["epochs"]} epochs. *trained* is quantization-aware training, and *rounded*
is training in float32 with rounding afterwards. *best on test* is the lowest test error of all runs and splits, as in
the paper, as a mean over folds. Nearly all of these runs were trained on 80 % of the training rows.

{markdown_table(["bits", *map(str, N_BITS), FLOAT], rows)}

The next table shows the selected splits, B_I and B_F (number of folds in brackets):

{markdown_table(["bits", *map(str, N_BITS)], splits, left=range(9))}

Relative to float32, the median processor time of a training for few bits is: {ratios}."""


def split_names(folds):
    """Return the formats of models, the most frequent first."""
    counts = Counter(f"{model.bits[0]}{model.bits[1]:+d}" for model in folds)
    return ", ".join(split if len(folds) == 1 else f"{split} ({n})" for split, n in counts.most_common())


def size_points(prices):
    """Return an array of penalty, error in %, cells relative to naive Bayes, edges per fold, and front membership."""
    points = np.array(
        [
            [
                price,
                100 * pooled_error(folds),
                sum(line["n_cells"] for line in folds) / sum(line["naive_bayes_cells"] for line in folds),
                sum(parent >= 0 for line in folds for parent in line["parent"]) / len(folds),
            ]
            for price, folds in prices.items()
        ]
    )
    on_front = np.isin(np.arange(len(points)), not_dominated(points[:, 1:3]))
    return np.column_stack([points, on_front])


def size_section(name, budget, epochs, points):
    """Return the table of figure 5."""
    rows = [
        [f"{price:.2g}", f"{error:.2f}", f"{size:.2f}", f"{edges:.1f}", "yes" if on_front else ""]
        for price, error, size, edges, on_front in points
    ]
    header = ["size penalty", "test error", "CPT entries relative to naive Bayes", "edges", "on the front"]
    return f"""## Size: {name}

The best of {budget} runs of {SUBSET} with {epochs} epochs and no penalty is trained again with each penalty. The
Pareto front uses test errors, as in the paper. An edge from a feature with a single value adds no entries. The penalty
is added to the mean loss of the rows. The lambda of the paper is added to the sum of the losses (eq. 17) and is larger
by a factor of the number of rows.

{markdown_table(header, rows)}"""


def draw_bits(name, columns, path):
    """Draw figure 6: errors over bits, with those of float32 as horizontal lines."""
    with picture(path, 7, 4.5) as figure:
        axes = figure.subplots()
        for learner, color in COLORS.items():
            axes.axhline(
                mean_error(columns[learner, FLOAT, None]), color=color, linewidth=1, label=f"{learner}, float32"
            )
            for way, style in ((TRAINED, "-"), (ROUNDED, ":")):
                errors = [mean_error(columns[learner, way, n_bits]) for n_bits in N_BITS]
                axes.plot(N_BITS, errors, color=color, linestyle=style, marker="o", label=f"{learner}, {way}")
        axes.set(title=name, xlabel="bits of a number", ylabel="test error [%]")
        errors_by_ratio(axes)
        axes.legend(fontsize="small")


def errors_by_ratio(axes):
    """Set a logarithmic axis of errors with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")


def draw_sizes(name, points, path):
    """Draw figure 5: errors and sizes over the size penalty, and errors over sizes."""
    prices, errors, sizes, _, on_front = points.T
    front = points[on_front == 1]
    with picture(path, 10, 4.5) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(prices, errors, color="#d55e00", marker="o")
        left.set(title=name, xlabel="price of a cell")
        left.set_xscale("symlog", linthresh=1e-6)
        left.set_ylabel("test error [%]", color="#d55e00")
        other = left.twinx()
        other.plot(prices, sizes, color="#0072b2", marker="^")
        other.set_ylabel("cells, of naive Bayes", color="#0072b2")
        right.scatter(sizes, errors, color="#999999")
        right.plot(*front[np.argsort(front[:, 2])][:, [2, 1]].T, color="#0072b2", marker="o", label="Pareto front")
        right.set(title=f"{name}: {SUBSET}", xlabel="cells, of naive Bayes", ylabel="test error [%]")
        right.legend()
