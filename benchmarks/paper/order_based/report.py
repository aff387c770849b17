"""The report on order-based learning: tables in Markdown and figure 1."""

from itertools import combinations

import numpy as np
from scipy.stats import ttest_rel

from benchmarks.paper.claims import claims_in_words, claims_table
from benchmarks.paper.maximum_margin.report import RATES as MARGIN_RATES
from benchmarks.shared.reports import decimals, markdown_table, paragraph, picture, write_sections
from benchmarks.shared.versions import made_by

from .claims import claims
from .data import CROSS_VALIDATED, SYNTHETIC_SIZES, UCI, Simulation, synthetic_probabilities
from .learners import FIGURE_1, LEARNERS, TABLE_1
from .orderings import draw_orderings, orderings_section, ways_section
from .rates import labels, latest, row_name, set_rates

#: Table 1 of the paper, in %: 25 sets, TIMIT-4/6, TIMIT-39, mnist. The last row is from the text.
PUBLISHED = {
    "NB-ML": (83.82, 85.04, 61.70, 83.73),
    "NB-CL": (84.10, 85.13, 61.73, 83.77),
    "TAN-CMI-ML": (85.00, 86.47, 65.40, 91.28),
    "TAN-CMI-CL": (85.09, 86.48, 65.41, 91.28),
    "TAN-RO-CR-ML Mean": (85.59, 87.62, None, None),
    "TAN-RO-CR-ML Min": (85.51, 87.77, None, None),
    "TAN-RO-CR-ML Max": (85.42, 87.60, None, None),
    "TAN-OMI-CR-ML": (85.72, 87.72, 66.61, 92.01),
    "TAN-OMI-CR-CL": (85.74, 87.73, 66.62, 92.01),
    "TAN-OMISP-CR-ML": (85.56, 87.42, 66.77, 92.10),
    "TAN-OMISP-CR-CL": (85.61, 87.42, 66.77, 92.10),
    "TAN-CR-ML": (85.79, 87.78, 66.78, 92.58),
    "TAN-CR-CL": (85.78, 87.78, 66.78, 92.58),
    "2-tree-RO-CR-ML Mean": (None, 88.05, None, None),
    "2-tree-RO-CR-ML Min": (None, 88.04, None, None),
    "2-tree-RO-CR-ML Max": (None, 88.07, None, None),
    "2-tree-OMI-CR-ML": (85.74, 88.21, 66.94, 92.69),
    "2-tree-OMI-CR-CL": (85.83, 88.21, 66.94, 92.69),
    "2-tree-OMI-CR smoothed-ML": (None, None, None, 93.74),
}
#: The classifiers of table 2, and its figures: one-sided significances, negative where the row is the better one.
COMPARED = (
    *("NB-ML", "TAN-CMI-ML", "TAN-RO-CR-ML Max", "TAN-OMI-CR-ML", "TAN-OMISP-CR-ML", "TAN-CR-ML"),
    "2-tree-OMI-CR-ML",
)
PUBLISHED_TESTS = (
    (0.0977, 0.0300, 0.0242, 0.0371, 0.0154, 0.0316),
    (0.120, 0.0154, 0.0277, 0.0140, 0.0271),
    (0.144, 0.184, 0.0446, 0.148),
    (-0.153, 0.190, 0.197),
    (0.141, 0.167),
    (-0.194,),
)
LEVEL = 0.05
#: Points up to which a mean rate counts as near to the published one.
NEAR = 0.7
#: Table 4, in % of the time of TAN-CR.
TIMED = ("TAN-CMI", "TAN-OMI-CR", "TAN-CR")
PUBLISHED_TIMES = {"25 sets": (0.649, 3.155, 100.0), "mnist": (0.21, 2.23, 100.0)}
FIGURE_1_PATH = "figures/order-based-figure1.png"
ORDERINGS_PATH = "figures/order-based-orderings.png"
COMMANDS = (
    "benchmarks.paper.order_based run",
    "benchmarks.paper.order_based run uci --orderings 1000 --learners TAN-RO-CR 2-tree-RO-CR",
    "benchmarks.paper.order_based run partitions",
    "benchmarks.paper.order_based run mnist",
    "benchmarks.paper.order_based report",
)


def write_report(lines, folder):
    """Write the summary ``report.md``, the page of details and figure 1 of the finished lines into a folder."""
    found = latest(lines)
    rates = {name: set_rates(learners) for name, learners in found.items()}
    small = {name: rates[name] for name in UCI if name in rates and set(labels(TABLE_1)) <= set(rates[name])}
    files = {name: rates[name] for name in rates if name.startswith("timit")}
    images = [name for name in rates if name.startswith("mnist")]
    synthetic = {size: rates[Simulation(size).name] for size in SYNTHETIC_SIZES if Simulation(size).name in rates}
    checked = claims(small, found, rates, images, synthetic, significance, _seconds, LEVEL)
    sections = ["# Order-based structure learning: tables 1, 2 and 4 and figure 1", summary(small, rates, checked)]
    if synthetic:
        draw_figure_1(synthetic, folder / FIGURE_1_PATH)
        sections.append(f"![Figure 1: rates of all learners over the training rows]({FIGURE_1_PATH})")
    if small or files or images:
        sections.append(f"## Table 1: classification rates in %\n\n{table_1(small, files, rates.get('mnist'))}")
    sections += [
        f"## Claims of the paper\n\n{claims_table(checked, 'evidence (rates in %)')}",
        "Tests, times, random orderings and rates per data set are on [a separate page](report_details.md).",
        f"## How it was measured\n\n{_METHOD}",
        method(lines),
        _data_section(small, found),
        made_by(lines, *COMMANDS),
    ]
    write_sections(folder / "report.md", sections)
    details = ["# Order-based structure learning: details", _DETAILS]
    if small:
        details.append(f"## Table 2: one-sided paired t-tests\n\n{_TESTS}\n\n{table_2(small)}")
        details += [against_the_paper(small), orderings_section(found)]
        if draw_orderings(found, folder / ORDERINGS_PATH):
            details.append(f"![Mean rates of random orderings, and of the ordering by information]({ORDERINGS_PATH})")
        details.append(ways_section(found))
    details += [f"## {name}\n\n{table_mnist(found[name], rates[name])}" for name in images]
    details.append(f"## Table 4: time for structures\n\n{_TIMES}\n\n{table_4(small, images, found)}")
    details.append(_synthetic_section(synthetic, found) if synthetic else "")
    if small:
        details.append(f"## Rates per data set, ML parameters\n\n{every_set(small)}")
    write_sections(folder / "report_details.md", details)


def summary(small, rates, checked):
    """Return the verdicts in sentences."""
    text = []
    if small:
        points = {
            label: np.mean([found[label] for found in small.values()]) - PUBLISHED[label][0]
            for label in labels(TABLE_1)
            if PUBLISHED.get(label, (None,))[0] is not None
        }
        low, high = min(points, key=points.get), max(points, key=points.get)
        n_near = sum(abs(value) <= NEAR for value in points.values())
        text.append(
            f"On {len(small)} data sets, {n_near} of {len(points)} mean rates of table 1 differ from the paper by at "
            f"most {NEAR:g} points. The differences range from {points[low]:+.2f} ({low}) to {points[high]:+.2f} "
            f"({high})."
        )
    text.append(mnist_in_words(rates.get("mnist", {})))
    text.append(claims_in_words(checked))
    return paragraph(" ".join(filter(None, text)) or "No data set is finished yet.")


def mnist_in_words(rates):
    """Return the agreement on mnist in sentences, and the rate of NB-CL, compared with both papers."""
    points = {label: rates[label] - figures[3] for label, figures in PUBLISHED.items() if figures[3] and label in rates}
    likelihood = [label for label in points if label.endswith("-ML")]
    if not likelihood:
        return ""
    far = max(likelihood, key=lambda label: abs(points[label]))
    text = f"On mnist, the {len(likelihood)} rates of ML parameters differ by {abs(points[far]):.2f} points at most."
    if "NB-CL" in points:
        later = MARGIN_RATES["mnist"]["NB"]["CG-CL"]
        text += (
            f" NB-CL has {rates['NB-CL']:.2f} % on mnist where the paper has {PUBLISHED['NB-CL'][3]:.2f} %; the "
            f"maximum-margin paper of 2012 reports {later:.2f} % for the same model."
        )
    return text


def table_1(small, files, mnist=None):
    """Return the averages over the small sets, and the published ones, mnist, and the user's files of TIMIT."""
    header = ["learner", "published", f"ours, {len(small)} sets"]
    if mnist:
        header += ["published, mnist", "ours, mnist"]
    if files:
        header += ["published, TIMIT-4/6", "published, TIMIT-39", *files]
    rows = []
    for label in labels(TABLE_1):
        uci, timit_6, timit_39, image = PUBLISHED.get(label, (None,) * 4)
        mean = np.mean([rates[label] for rates in small.values()]) if small else None
        row = [label, decimals(uci), decimals(mean)]
        if mnist:
            row += [decimals(image), decimals(mnist.get(label))]
        if files:
            row += [decimals(value) for value in (timit_6, timit_39, *(rates.get(label) for rates in files.values()))]
        rows.append(row)
    return markdown_table(header, rows)


def table_2(small):
    """Return the tests of all pairs, with the published ones in brackets."""
    if len(small) < 2:
        return "(There is nothing to test before two sets are complete.)"
    columns = {label: [rates[label] for rates in small.values()] for label in COMPARED}
    rows = []
    for i, label in enumerate(COMPARED[:-1]):
        tests = (significance(columns[label], columns[other]) for other in COMPARED[i + 1 :])
        pairs = zip(tests, PUBLISHED_TESTS[i], strict=True)
        rows.append([label, *[""] * i, *(f"{arrow(ours)} ({arrow(published)})" for ours, published in pairs)])
    return markdown_table(["learner", *COMPARED[1:]], rows)


def significance(row, column):
    """Return the significance of the one-sided paired t-test, negative where the row is better; None: no difference."""
    row, column = np.asarray(row), np.asarray(column)
    if np.array_equal(row, column):
        return None
    if column.mean() >= row.mean():
        return float(ttest_rel(column, row, alternative="greater").pvalue)
    return -float(ttest_rel(row, column, alternative="greater").pvalue)


def against_the_paper(small):
    """Return the differences from the paper: search and random orderings, and significant pairs."""
    if len(small) < 2:
        return ""
    columns = {label: [rates[label] for rates in small.values()] for label in labels(TABLE_1)}
    means = {label: np.mean(rates) for label, rates in columns.items()}
    search, sentences = "TAN-OMI-CR-ML", []
    for random in (f"TAN-RO-CR-ML {choice}" for choice in ("Mean", "Max", "Min")):
        if means[random] > means[search]:
            p = abs(significance(columns[search], columns[random]))
            printed = PUBLISHED[search][0] - PUBLISHED[random][0]
            sentences.append(
                f"{search} is {means[random] - means[search]:.2f} points below {random} (p = {p:.2g}). In the paper, "
                f"it is {printed:.2f} points above."
            )
    if sentences:
        sentences.append(
            "On these data sets, an ordering by information is therefore not better than a random ordering."
        )
    pairs = list(combinations(COMPARED, 2))
    published = [p for row in PUBLISHED_TESTS for p in row]
    ours = [significance(columns[row], columns[column]) for row, column in pairs]
    for where, some, others in (("in the paper only", published, ours), ("here only", ours, published)):
        found = [
            f"{row} and {column}"
            for (row, column), p, other in zip(pairs, some, others, strict=True)
            if is_significant(p) and not is_significant(other)
        ]
        if found:
            sentences.append(f"The following differences are significant {where}: {'; '.join(found)}.")
    return paragraph(f"Differences from the paper: {' '.join(sentences)}") if sentences else ""


def is_significant(p):
    """Return whether a difference is significant at the level of table 2."""
    return p is not None and abs(p) < LEVEL


def arrow(p):
    """Return a significance as in the paper: an arrow to the better learner, a double arrow below 0.05."""
    if p is None:
        return "="
    if p > 0:
        return ("\N{UPWARDS DOUBLE ARROW}" if p < LEVEL else "\N{UPWARDS ARROW}") + f"{p:#.3g}"
    return ("\N{LEFTWARDS DOUBLE ARROW}" if p > -LEVEL else "\N{LEFTWARDS ARROW}") + f"{-p:#.3g}"


def table_mnist(learners, rates):
    """Return the rates on mnist with their standard errors."""
    rows = []
    for learner in filter(learners.get, LEARNERS):
        (line,) = learners[learner]
        for label in labels([learner]):
            error = np.sqrt(rates[label] * (100 - rates[label]) / line["n_test"])
            published = decimals(PUBLISHED.get(label, (None,) * 4)[3])
            rows.append([label, published, f"{rates[label]:.2f} +- {error:.2f}", f"{np.mean(line['seconds']):.1f}"])
    return markdown_table(["learner", "published", "ours", "processor seconds for the structure"], rows)


def table_4(small, images, found):
    """Return times as shares of TAN-CR's, and seconds."""
    header = ["data", *(f"{name}, % (published)" for name in TIMED), *(f"{name}, s" for name in TIMED)]
    rows = []
    if small:
        seconds = np.array([_seconds(found[name]) for name in small])
        published = PUBLISHED_TIMES["25 sets"]
        rows.append(_time_row(f"{len(small)} sets, sum of seconds", published, seconds.sum(axis=0)))
        shares = 100 * (seconds / seconds[:, -1:]).mean(axis=0)
        rows.append([f"{len(small)} sets, mean of shares", *map(_share, shares, published), "", "", ""])
    rows += [_time_row(name, PUBLISHED_TIMES["mnist"], _seconds(found[name])) for name in images]
    return markdown_table(header, rows)


def every_set(small):
    """Return the rates on every data set."""
    shown = [label for label in labels(TABLE_1) if "-CL" not in label and " Min" not in label]
    return markdown_table(
        ["set", *shown], [[name, *(decimals(rates[label]) for label in shown)] for name, rates in small.items()]
    )


def table_synthetic(synthetic, found):
    """Return the rates on the synthetic problem, and the frequency of the edge between X1 and X3."""
    shown, learnt = labels(FIGURE_1), ("TAN-CMI", "TAN-OMI-CR")
    rows = []
    for size, rates in synthetic.items():
        lines = [found[Simulation(size).name][name][0] for name in learnt]
        joined = (f"{100 * line['join_x1_x3'] / line['n_runs']:.0f} %" for line in lines)
        rows.append([str(size), *(decimals(rates[label]) for label in shown), *joined])
    return markdown_table(["training rows", *shown, *(f"{name} joins X1, X3" for name in learnt)], rows)


def draw_figure_1(synthetic, path):
    """Draw the rates over the number of training rows: ML parameters solid, CL parameters dashed."""
    names = {"TAN-CMI": "generative TAN", "TAN-OMI-CR": "discriminative TAN"}
    with picture(path, 7, 5) as figure:
        axes = figure.subplots()
        for name, color in zip(FIGURE_1, ("#999999", "#e69f00", "#0072b2", "#009e73"), strict=True):
            for parameter in LEARNERS[name].parameters:
                text = name if parameter == name else f"{names.get(name, name)}, {parameter}"
                rates = [found[row_name(name, parameter)] for found in synthetic.values()]
                style = "--" if parameter == "CL" else "-"
                axes.plot(list(synthetic), rates, style, color=color, marker="o", markersize=4, label=text)
        axes.axhline(100 * best_rate(), color="black", linestyle=":", linewidth=1, label="best possible")
        axes.set(xscale="log", xlabel="training rows", ylabel="classification rate [%]", title="Synthetic problem")
        axes.set_xticks(list(synthetic), [str(size) for size in synthetic])
        axes.minorticks_off()
        axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))


def best_rate():
    """Return the Bayes-optimal rate on the synthetic problem."""
    return float(synthetic_probabilities().max(axis=0).sum())


def method(lines):
    """Return how the figures were made."""
    trees, two_trees = (_orderings(lines, name) for name in ("TAN-RO-CR", "2-tree-RO-CR"))
    return f"""- *ML* parameters are frequencies with zeros replaced by 1e-5, also in the search. *CL* parameters are
    the result of 20 iterations of conjugate gradient that start at these frequencies.
- *RO* draws {trees} orderings per data set and fold for trees (1,000 in the paper) and {two_trees} for 2-trees (in the
  paper 100, on TIMIT-4/6 only). *Max* and *Min* are the test rates of the structures with the highest and the lowest
  rate on the training rows.
- 2-trees are scored by five-fold cross-validation on the training rows. All random orderings of a data set and fold
  have the same folds.
- TAN-OM (order-based, with margins of at most 10 nats) and AODE are not in the paper."""


def _orderings(lines, learner):
    """Return the largest number of orderings per data set of table 1, or their range, in words."""
    most = {}
    for line in lines:
        if line["learner"] == learner and line["set"] in UCI:
            most[line["set"]] = max(line["n_runs"], most.get(line["set"], 0))
    low, high = min(most.values(), default=0), max(most.values(), default=0)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _data_section(small, found):
    """Return the rows of the data sets."""
    folds = {name: found[name]["NB"] for name in small}
    crossed = [f"{name} {sum(line['n_test'] for line in folds[name]):,}" for name in small if name in CROSS_VALIDATED]
    others = [
        f"{name} {line['n_train']:,} + {line['n_test']:,}"
        for name in small
        if name not in CROSS_VALIDATED
        for line in folds[name]
    ]
    absent = [name for name in UCI if name not in small]
    return f"""### Data

The 25 data sets are those of Friedman, Geiger and Goldszmidt (1997). Their partitions are not published, so ours
differ. Numeric features are discretized on the training rows. Rows with missing values are left out, except in vote,
where "?" is a third answer. shuttle-small was not found and is replaced by a sample of shuttle. The training rows of
segment are drawn at random.

- Five folds: {", ".join(crossed) or "none"}.
- Training and test rows: {", ".join(others) or "none"}.
- Not run, or not completely: {", ".join(absent) or "none"}.

mnist has its 60,000 training and 10,000 test rows, with every other pixel of every other line. These pixels were chosen
because they give the published rates of NB-ML and TAN-CMI-ML (see shared/mnist.py), so these two rates are no evidence
of agreement. TIMIT is licensed and not included: `run timit --timit FILE` accepts a copy."""


_METHOD = "A rate is the fraction of correctly classified test rows."
_DETAILS = "The [summary](report.md) contains the main results and table 1, and explains learners and data."
_TESTS = """Each entry is the p-value over the data sets of table 1, with the published p-value in brackets. An arrow
points to the better learner: an arrow up points to the learner of the column, and an arrow to the left points to the
learner of the row. A double arrow marks significance at the level of 0.05."""

_TIMES = """The table shows processor seconds of structure learning and percentages of the time of TAN-CR, with the
published percentages in brackets. The percentages are larger than in the paper because our greedy search (TAN-CR) is
faster. It computes the CPTs of all edges once, and examines only rows whose class an edge can change. On small data
sets, fixed costs also matter."""


def _synthetic_section(synthetic, found):
    """Return the table and the picture of the synthetic problem."""
    line = found[Simulation(max(synthetic)).name]["NB"][0]
    return f"""## Figure 1: the synthetic problem of section 3

Rates are means of {line["n_runs"]} simulations with {line["n_test"]:,} test rows, in %. The best possible rate is
{100 * best_rate():.0f} %. The SVM has C = 3 and a radial basis function with sigma = 1; in scikit-learn, gamma =
1 / (2 sigma^2) = 0.5.

{table_synthetic(synthetic, found)}"""


def _seconds(learners):
    """Return the seconds of a run of every timed learner over all folds, or nan."""
    return np.array(
        [sum(np.mean(line["seconds"]) for line in learners[name]) if name in learners else np.nan for name in TIMED]
    )


def _time_row(name, published, seconds):
    """Return the shares of the last learner's time, and the seconds."""
    shown = ["" if np.isnan(found) else f"{found:.2f}" for found in seconds]
    return [name, *map(_share, 100 * seconds / seconds[-1], published), *shown]


def _share(ours, published):
    """Return a share in %, or a question mark if it is nan, and the published one."""
    return f"{'?' if np.isnan(ours) else f'{ours:.3g}'} ({published:g})"
