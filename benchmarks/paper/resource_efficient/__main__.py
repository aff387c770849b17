"""Resource-efficient Bayesian network classifiers: parameters of few bits, size penalties, and neural networks.

    python -m benchmarks.paper.resource_efficient run bits --sets letter --budget 2    # resumes if interrupted
    python -m benchmarks.paper.resource_efficient run size --sets letter --budget 2
    python -m benchmarks.paper.resource_efficient run small --sets letter --budget 2    # few bits and a size penalty
    python -m benchmarks.paper.resource_efficient run search --sets letter --limit 60    # see search.py
    python -m benchmarks.paper.resource_efficient run counted --sets letter
    python -m benchmarks.paper.resource_efficient run k-trees --sets letter
    python -m benchmarks.paper.resource_efficient run logistic --sets letter
    python -m benchmarks.paper.resource_efficient run neural --sets letter --budget 1    # asks for the extra neural
    python -m benchmarks.paper.resource_efficient report

A run of bits (figure 6) or of size (figure 5) draws its settings from the ranges that are called narrow in
differentiable_tan/cells.py. It is trained on 80 % of a fold's training part and scored on the rest: in float32 and, for
bits, in three formats of every number of bits. Models trained in float32 are rounded to 48 formats. The model with the
best score of each fold is then trained on the whole training part, for the test rows. The TAN of bits has the most
probable structure of TAN Subset K=8, trained on the same rows with the settings of that run.

The paper reports the best test error of all runs. Every training therefore has a test error, which is reported in
separate columns.

There are fewer epochs than the 500 of the paper, because a run of bits is fifty trainings. A larger --budget adds runs
to the finished ones.

The neural networks are used for figures 3, 4 and 7. neural/plan.py describes which networks are trained for how many
epochs. Their training uses one core. To use another core, start the command again with other sets."""

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.paper.differentiable_tan.cells import CELLS, SETS, Cell
from benchmarks.shared.command import add_choices, add_experiments, execute, parsers
from benchmarks.shared.data import Problem, load
from benchmarks.shared.results import Results, append_all, line_key, read
from tanlearn import EncodedData, FixedPoint, GradientTraining, Hybrid, Structure, TANClassifier, round_tables
from tanlearn.search.runs import Part
from tanlearn.structures.table_layout import TableLayout

from . import counted, logistic, pairs, search
from .fronts_report import write_fronts
from .neural import plan as neural_plan
from .report import (
    FORMATS,
    N_BITS,
    NB,
    ORDER_FREE,
    PRICES,
    SUBSET,
    TAN,
    TRAINED_FORMATS,
    best_float,
    choices,
)
from .scoring import errors_of
from .summary import write_report

SETTINGS = "narrow"
EPOCHS = {"letter": 300, "satimage": 300, "usps": 300, "mnist": 60}
KEY = ("set", "learner", "run", "fold", "part", "bits", "size_weight", "epochs")
key = line_key(*KEY)
#: Settings of the experiment small: runs of order-free trees, bits, and size penalties. Three integer bits are chosen
#: most often by the folds.
ORDER_FREE_RUNS, SMALL_BITS = 5, (1, 2, 3, 4, 8)
SMALL_PRICES = tuple(price for price in PRICES if 1e-3 <= price <= 0.25)
LEARNERS = {
    **{name: cell for name in (NB, SUBSET, ORDER_FREE) for cell in CELLS if cell.name == name},
    TAN: Cell(TAN, "TAN Random", lambda *_: None),  # the run determines the fixed structure
}


@dataclass(frozen=True)
class Task:
    """A training: its rows, and the fields of its line of results that are known beforehand."""

    problem: Problem
    part: Part
    test: Part
    line: dict

    def measure(self, results):
        """Return the finished line; the trees of other trainings are in their results."""
        line, data = self.line, self.part.data
        cell = LEARNERS[line["learner"]]
        drawn = cell.draw(SETTINGS, self.problem.name, seed=0, run=line["run"])
        if cell.name == TAN:
            structure = Structure(results[{**line, "learner": SUBSET, "bits": None}]["parent"])
            cell = replace(cell, choose=lambda *_: structure)
        parameters = cell.parameters(self.problem, data, drawn, line["epochs"])
        model = TANClassifier(**parameters, bits=line["bits"], size_weight=line["size_weight"], calibrate=False)
        started = time.thread_time()  # the machine is shared
        model.fit_encoded(data)
        seconds = time.thread_time() - started
        errors = partial(errors_of, model.structure_, self.part, self.test)
        naive_bayes = TableLayout.of_parents(
            Structure.naive_bayes(data.n_features).parents, data.n_states, data.n_classes
        )
        found = {
            **errors(model.tables_),
            "rows": len(self.part.y),
            "n_cells": model.tables_.layout.n_cells,
            "naive_bayes_cells": naive_bayes.n_cells,
            "seconds": round(seconds, 3),
        }
        if cell.name == SUBSET and not line["bits"]:
            found["parent"] = model.structure_.parent.tolist()
        elif not line["bits"]:
            rounded = [errors(round_tables(model.tables_, FixedPoint(*bits))) for bits in FORMATS]
            found["rounded"] = [one["error"] for one in rounded]
            found["test_rounded"] = [one["test_error"] for one in rounded]
        return {**line, **found, "n_folds": len(self.problem.folds), "parameters": drawn}


def warm_up():
    """Compile or load the kernels before times are measured."""
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3, (60, 4)), np.arange(60) % 3)
    for bits in (None, (3, 1)):
        settings = {"n_epochs": 1, "training": GradientTraining(batch_size=10), "calibrate": False, "random_state": 0}
        TANClassifier(loss=Hybrid(), bits=bits, **settings).fit_encoded(data)


def batches(experiment, problem, budget, results):
    """Yield lists of tasks, each of which needs results of those before."""
    parts = {(fold, name): part for fold, name, part in problem.parts()}
    folds = range(1, len(problem.folds) + 1)
    runs = range(budget)

    def task(learner, run, fold, part, bits=None, size_weight=0.0):
        line = {"set": problem.name, "learner": learner, "run": run, "fold": fold, "part": part, "bits": bits}
        epochs = EPOCHS[problem.name]
        line |= {"size_weight": size_weight, "epochs": epochs}
        return Task(problem, parts[fold, part], problem.folds[fold - 1], line)

    for run in runs:
        yield [task(SUBSET, run, fold, "validation") for fold in folds]
        if experiment == "bits":
            yield [
                task(name, run, fold, "validation", bits)
                for fold in folds
                for name in (NB, TAN)
                for bits in (None, *TRAINED_FORMATS)
            ]
    same = {"set": problem.name, "epochs": EPOCHS[problem.name]}
    found = [line for line in results if same.items() <= line.items() and line["run"] < budget]
    best = best_float(found, SUBSET)
    if experiment == "size":
        yield [task(SUBSET, best[fold], fold, "test", None, weight) for fold in folds for weight in PRICES]
        return
    if experiment == "small":
        yield [
            task(SUBSET, best[fold], fold, part, (3, n_bits - 3), weight)
            for fold in folds
            for part in ("validation", "test")
            for n_bits in SMALL_BITS
            for weight in SMALL_PRICES
        ]
        scored = [
            task(ORDER_FREE, run, fold, "validation", (3, n_bits - 3))
            for fold in folds
            for run in runs[:ORDER_FREE_RUNS]
            for n_bits in SMALL_BITS
        ]
        yield scored
        lowest = {}
        for one in sorted(scored, key=lambda one: results[one.line]["error"]):
            lowest.setdefault((one.line["fold"], one.line["bits"]), one.line["run"])
        yield [task(ORDER_FREE, run, fold, "test", bits) for (fold, bits), run in lowest.items()]
        return
    wanted = dict.fromkeys(
        (choice.learner, choice.run, fold, choice.bits if choice.way == "trained" else None)
        for (fold, _), choice in choices(found).items()
    )
    trees = dict.fromkeys((run, fold) for name, run, fold, _ in wanted if name == TAN)
    yield [task(SUBSET, run, fold, "test") for run, fold in trees]
    yield [task(name, run, fold, "test", bits) for name, run, fold, bits in wanted]


def run(arguments):
    """Run everything that is not finished."""
    for experiment in arguments.experiments:
        EXPERIMENTS[experiment](arguments, experiment)


def run_trainings(arguments, experiment):
    """Run the trainings of figure 5 or 6, or those of small trees."""
    results = Results(arguments.results / "resource_efficient.jsonl", key)
    warm_up()
    for problem in problems(arguments):
        for batch in batches(experiment, problem, arguments.budget, results):
            todo = [task for task in batch if task.line not in results]
            calls = [partial(task.measure, results) for task in todo]
            for number, line in append_all(results, calls, arguments.n_jobs, prefer="threads"):
                what = ", ".join(f"{name} {line[name]}" for name in KEY[2:7])
                print(
                    f"[{number}/{len(todo)}] {line['set']} {line['learner']}, {what}: "
                    f"{100 * line['error']:.2f} % in {line['seconds']:.1f} s",
                    flush=True,
                )


def run_searches(arguments, _):
    """Run the searches."""
    results = Results(arguments.results / "search.jsonl", search.key)
    lines = read(arguments.results / "resource_efficient.jsonl")
    for problem in problems(arguments):
        known = [line for line in lines if line["epochs"] == EPOCHS[problem.name]]
        search.run_searches(problem, known, results, arguments)


def run_counts(arguments, _):
    """Count and round."""
    results = Results(arguments.results / "counted.jsonl", counted.key)
    for problem in problems(arguments):
        counted.run_counted(problem, results)


def run_pairs(arguments, _):
    """Train gradient k-trees."""
    results = Results(arguments.results / "pairs.jsonl", pairs.key)
    for problem in problems(arguments):
        pairs.run_pairs(problem, results)


def run_logistic(arguments, _):
    """Fit logistic regressions."""
    results = Results(arguments.results / "logistic.jsonl", logistic.key)
    for problem in problems(arguments):
        logistic.run_logistic(problem, results)


def run_nets(arguments, _):
    """Train neural networks."""
    known = neural_plan.known_multiples(arguments.kinds)
    if not known.issuperset(arguments.multiples or []):
        raise SystemExit(f"--multiples of {', '.join(arguments.kinds)} nets are {', '.join(map(str, sorted(known)))}.")
    if arguments.epochs < 1:
        raise SystemExit(f"--epochs must be at least 1; got {arguments.epochs}.")
    from .neural.runs import open_results, run_neural

    results = open_results(arguments.results / "neural.jsonl")
    for problem in problems(arguments):
        run_neural(arguments, problem, results)


def problems(arguments):
    """Yield the data sets."""
    return (load(name, arguments.data) for name in arguments.sets)


EXPERIMENTS = {
    **dict.fromkeys(("bits", "size", "small"), run_trainings),
    "search": run_searches,
    "counted": run_counts,
    "k-trees": run_pairs,
    "logistic": run_logistic,
    "neural": run_nets,
}


def report(arguments):
    """Write the reports."""
    files = ("resource_efficient", "search", "counted", "pairs", "neural", "logistic")
    lines, searched, counts, of_pairs, nets, one_layer = (read(arguments.results / f"{name}.jsonl") for name in files)

    def search_section(name, found):
        return search.section(name, [line for line in searched if line["set"] == name], found)

    write_report(lines, arguments.output, search_section, search.longest(searched))
    write_fronts(lines, searched, [*counts, *of_pairs], nets, arguments.output, one_layer)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    default = ("bits", "size")
    add_experiments(running, EXPERIMENTS, default, help=f"{', '.join(EXPERIMENTS)}; by default the first two")
    add_choices(running, "--sets", SETS)
    running.add_argument("--budget", type=int, default=2, help="runs of every learner")
    running.add_argument("--n-jobs", type=int, default=2, help="trainings at once, or searches, in processes")
    searches = running.add_argument_group("of search")
    searches.add_argument("--limit", type=float, default=60.0, help="seconds of a search")
    searches.add_argument("--max-nodes", type=int, help="boxes of a search; by default any number in its time")
    searches.add_argument("--bits", type=int, nargs="+", default=N_BITS, choices=N_BITS)
    nets = running.add_argument_group("of neural")
    nets.add_argument("--epochs", type=int, default=500, help="of the last heat; those before it have fewer")
    nets.add_argument("--multiples", nargs="+", type=Fraction, help="budgets, as 1/4 or 2; by default all of them")
    nets.add_argument("--kinds", nargs="+", choices=neural_plan.KINDS, default=neural_plan.KINDS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
