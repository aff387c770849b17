"""The estimator call of each reproduced cell of the papers, from the definitions that the experiments run.

python -m benchmarks.paper.calls    # writes calls.md
"""

from dataclasses import replace
from pathlib import Path

from benchmarks import command_line
from benchmarks.shared.data import Problem
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import read

from .differentiable_tan.cells import CELLS, CLOSED_FORM, SETS
from .differentiable_tan.choices import Expression, Learned, in_one_line
from .differentiable_tan.complete_runs import best_on_test, complete_runs
from .maximum_margin import __main__ as maximum_margin
from .maximum_margin import learners as margin
from .maximum_margin import variants
from .maximum_margin.cells import latest, mean
from .order_based import learners as order_based
from .resource_efficient import __main__ as resource_efficient
from .resource_efficient.report import NB, SUBSET, TAN, best_float

HERE = Path(__file__).parent
#: The sets of maximum margin with all rows. The numbers of their features, 256 and 196, give the same calls.
MARGIN_SETS, N_FEATURES = ("usps", "mnist"), 256


def code(text):
    """Return a command as a block of code."""
    return f"```console\n$ {text}\n```"


def inline(estimator):
    """Return the call that makes an estimator, as code in a sentence or a table."""
    return f"`{estimator if isinstance(estimator, str) else in_one_line(estimator)}`"


def of_differentiable_tan():
    """Return the sections of table 1: the best run of each row of the report."""
    sections = [
        "## Differentiable TAN, table 1",
        paragraph(
            """The rows are those of the [report](differentiable_tan/report.md), each with its run of the lowest test
            error, which the paper selects. The command trains all runs of a row of the table. Runs draw orderings and
            candidates by numbers of their own. The estimators draw them by `random_state`, so that their errors
            differ."""
        ),
        code("python -m benchmarks.paper.differentiable_tan run --sets SET --cells CELL --settings SETTINGS"),
    ]
    for name in SETS:
        runs = complete_runs(read(HERE / "differentiable_tan" / "results" / f"{name}.jsonl"))
        rows = []
        for cell in CELLS:
            for stages in ((CLOSED_FORM,), ("published",), ("narrow", "refined")):
                own = [run for run in runs if run.cell == cell.name and run.settings in stages]
                if own:
                    best = best_on_test(own)
                    call = cell.call(Problem(name, ()), best.parameters, best.epochs)
                    settings = "" if cell.is_closed_form else best.settings
                    rows.append([cell.name, settings, f"{100 * best.test:.2f}", inline(call)])
        header = ["CELL", "SETTINGS", "test error [%]", "estimator"]
        sections += [f"### {name}", markdown_table(header, rows, (0, 1, 3))]
    return sections


def of_maximum_margin():
    """Return the sections of tables 1, 2, 6 and 7 and figure 5."""
    cells = latest(read(HERE / "maximum_margin" / "results" / "maximum_margin.jsonl"))

    def rates(*key):
        return [f"{100 * mean(cells[name][key], 'rate'):.2f}" if key in cells[name] else "" for name in MARGIN_SETS]

    rows = [
        [name, parameters, *rates(name, parameters), inline(margin.call(name, parameters, N_FEATURES))]
        for name in margin.STRUCTURES
        for parameters in maximum_margin.PARAMETERS
    ]
    rows.append(["AODE", "ML", *rates("AODE", "ML"), inline(order_based.LEARNERS["AODE"].estimator)])
    for name in MARGIN_SETS:
        machine = margin.SVC(**margin.published_svm(maximum_margin.SIGMAS[name]))
        found = zip(MARGIN_SETS, rates("SVM", margin.PUBLISHED), strict=True)
        rows.append(["SVM", margin.PUBLISHED, *(rate if own == name else "" for own, rate in found), inline(machine)])
    several = (*margin.FIGURE_5, *variants.VARIANTS, *maximum_margin.CONVEX)
    further = [name for name in several if name not in maximum_margin.PARAMETERS]
    header = ["STRUCTURE", "PARAMETERS", *(f"{name}: rate [%]" for name in MARGIN_SETS), "estimator"]
    return [
        "## Maximum margin, tables 1, 2, 6 and 7 and figure 5",
        paragraph(
            """EXPERIMENT is usps (table 2), mnist (table 1), kappa (figure 5), variants (start, regularization, eta and
            lambda) or convex (tables 6 and 7). Conjugate gradient is cross-tuned. The experiments tune lambda and kappa
            on at most `--tune-rows` rows, and then the iterations on all. For HYB, they select gamma from 50 and 150,
            and the learning rate from 0.01 and 0.03, on a fifth of the rows. The support vector machine has
            standardized features. See the [report](maximum_margin/report.md)."""
        ),
        code("python -m benchmarks.paper.maximum_margin run EXPERIMENT --structures STRUCTURE --parameters PARAMETERS"),
        markdown_table(header, rows, (0, 1, 4)),
        paragraph(
            """Further parameters of kappa and variants (with NB and TAN-CMI) and of convex (with NB). RandomStart and
            Penalized are defined in `maximum_margin/variants.py`. The weight of a penalty is selected on folds:"""
        ),
        markdown_table(
            ["PARAMETERS", "estimator"],
            [[name, inline(margin.call("NB", name, N_FEATURES))] for name in further],
            (0, 1),
        ),
    ]


def of_order_based():
    """Return the sections of tables 1, 2 and 4 and figure 1."""
    rows = [[name, inline(learner.estimator)] for name, learner in order_based.LEARNERS.items()]
    return [
        "## Order-based structure learning, tables 1, 2 and 4 and figure 1",
        paragraph(
            f"""EXPERIMENT is uci (tables 1 and 2), mnist (table 4), synthetic (figure 1) or partitions. Rates named ML
            are those of the estimators. For rates named CL, `{in_one_line(order_based.CONDITIONAL)}` improves their
            parameters: `improve(model.tables_, data)`. FromThird is defined in `order_based/learners.py`.
            The support vector machine has codes as numbers. See the [report](order_based/report.md)."""
        ),
        code("python -m benchmarks.paper.order_based run EXPERIMENT --learners LEARNER"),
        markdown_table(["LEARNER", "estimator"], rows, (0, 1)),
    ]


def of_resource_efficient():
    """Return the sections of figures 5 and 6: the best runs of the first fold."""
    lines = read(HERE / "resource_efficient" / "results" / "resource_efficient.jsonl")
    sections = [
        "## Resource-efficient classifiers, figures 5 and 6",
        paragraph(
            """The runs have the lowest validation error of the first fold in float32. BITS is a number of bits, or a
            pair of integer and fraction bits (figure 6). WEIGHT is the weight of the size penalty (figure 5). See the
            [report](resource_efficient/report.md)."""
        ),
        code("python -m benchmarks.paper.resource_efficient run bits size --sets SET"),
    ]
    rows = []
    for name in SETS:
        problem, epochs = Problem(name, ()), resource_efficient.EPOCHS[name]
        own = [line for line in lines if (line["set"], line["epochs"]) == (name, epochs)]
        drawn = {
            learner: resource_efficient.LEARNERS[learner].draw(resource_efficient.SETTINGS, name, 0, found[1])
            for learner in (SUBSET, NB, TAN)
            if (found := best_float(own, learner))
        }
        if SUBSET not in drawn:
            continue
        subset = resource_efficient.LEARNERS[SUBSET]
        tree = Expression(f"{subset.call(problem, drawn[SUBSET], epochs)}.fit(X, y).structure_")
        sized = subset.call(problem, drawn[SUBSET], epochs, size_weight=Expression("WEIGHT"))
        rows.append([name, f"figure 5, {SUBSET}", inline(sized)])
        cells = {NB: resource_efficient.LEARNERS[NB], TAN: resource_efficient.LEARNERS[TAN]}
        cells[TAN] = replace(cells[TAN], choose=Learned(lambda *_, tree=tree: tree))
        for learner, cell in cells.items():
            if learner in drawn:
                call = cell.call(problem, drawn[learner], epochs, bits=Expression("BITS"))
                rows.append([name, f"figure 6, {learner}", inline(call)])
    return [*sections, markdown_table(["SET", "cell", "estimator"], rows, (0, 1, 2))]


def write(folder):
    """Write the page."""
    introduction = paragraph(
        """This page lists, for each cell of the papers that this project reproduces, the command that runs it and the
        estimator that it trains. Put the names of a row instead of the words in capitals, in quotes if they contain
        spaces. Names of the estimators are in `tanlearn`, `tanlearn.baselines` and `sklearn.svm`. Without the published
        data, the commands end with a line that names the missing file, its origin and its format."""
    )
    sections = [
        "# Commands and estimators of the reproduced cells",
        introduction,
        *of_differentiable_tan(),
        *of_resource_efficient(),
        *of_maximum_margin(),
        *of_order_based(),
        "Made by `python -m benchmarks.paper.calls` from the definitions of the experiments and their results.",
    ]
    write_sections(folder / "calls.md", sections)


def main(argv=None):
    """Parse the command line and write the page."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--output", type=Path, default=HERE, help="folder of the page")
    write(parser.parse_args(argv).output)


if __name__ == "__main__":
    main()
