"""Table 1 and figures 2 and 3 of differentiable TAN: random search of every cell, and the report.

    python -m benchmarks.paper.differentiable_tan run --sets letter --budget 40    # resumes if interrupted
    python -m benchmarks.paper.differentiable_tan report
    python -m benchmarks.paper.differentiable_tan pack    # what was run, to be committed

Every run is trained twice with the same settings: on the training part of a fold, for the test error, and on 80 % of
it, for the validation error on the other 20 %. The report can therefore choose settings by the test error, as the paper
does, and by the validation error. Runs of --settings published have the paper's ranges and are trained on the training
part alone; narrow and refined are our ranges (see cells.py). A larger --budget adds runs to the finished ones.
"""

import json
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import Problem, load
from benchmarks.shared.results import Results, read
from tanlearn.search.runs import Part, Run, run_population

from . import mdlp_states, recovery, stages, subsets
from .cells import CELLS, CLOSED_FORM, SETS, SETTINGS, TEST_PART_ONLY, Cell
from .complete_runs import best_on_test, complete_runs, key
from .report import write_report


@dataclass(frozen=True)
class Training:
    """A training, and the fields of its line of results that are known beforehand."""

    cell: Cell
    problem: Problem
    part: Part
    line: dict

    def parameters(self):
        """Return the parameters of the cell's estimator."""
        return self.cell.parameters(self.problem, self.part.data, self.line["parameters"], self.line["epochs"])


def plan(problems, cells, settings, budget, epochs, seed):
    """Yield all trainings, run by run: an interrupted search has equally many runs of each cell."""
    parts = {problem: list(problem.parts()) for problem in problems}
    for run in range(budget):
        for problem in problems:
            for cell in cells:
                if problem.name not in cell.sets or (cell.is_closed_form and run > 0):
                    continue
                if not cell.is_closed_form and not cell.is_drawn(settings, problem.name):
                    continue
                start = {"cell": cell.name, "settings": CLOSED_FORM, "seed": 0, "epochs": 0, "run": run}
                if not cell.is_closed_form:
                    n_epochs = epochs or cell.ranges(settings, problem.name)["n_epochs"]
                    start |= {"settings": settings, "seed": seed, "epochs": n_epochs}
                drawn = cell.draw(settings, problem.name, seed, run)
                for fold, name, part in parts[problem]:
                    if start["settings"] in TEST_PART_ONLY and name == "validation":
                        continue
                    place = {"fold": fold, "part": name, "n_folds": len(problem.folds), "rows": len(part.y)}
                    yield Training(cell, problem, part, {**start, **place, "parameters": drawn})


def unfinished(trainings, done):
    """Return the trainings without finished lines; reject lines of a distribution that has changed since."""
    todo = []
    for training in trainings:
        results = done[training.problem.name]
        if training.line not in results:
            todo.append(training)
        elif results[training.line]["parameters"] != json.loads(json.dumps(training.line["parameters"])):
            raise SystemExit(
                f"{training.problem.name}, {training.line['cell']}, run {training.line['run']}: the results hold other "
                f"parameters than {training.line['settings']!r} draws now. Give the changed settings a new name in "
                f"cells.py, or remove the results."
            )
    return todo


def train(trainings, results, n_jobs):
    """Train, and append a line for every finished training."""
    n_done = 0
    groups = defaultdict(list)
    for training in trainings:
        groups[type(training.cell.estimator)].append(training)
    for group in groups.values():
        runs = [Run(i, i, training.parameters()) for i, training in enumerate(group)]
        parts = [training.part for training in group]
        with closing(run_population(group[0].cell.estimator, parts, runs, n_jobs=n_jobs)) as outcomes:
            for result in outcomes:
                training = group[result.setting]
                if result.failure.split(":")[0].endswith("Error"):  # of the machine, as when a disk is full
                    print(f"{training.line}: {result.failure}; the same command tries again", flush=True)
                    continue
                line = {
                    **training.line,
                    "error": 1.0 if result.failure else round(1 - result.score, 8),  # what diverges gets nothing right
                    "n_parameters": result.n_parameters,
                    "seconds": round(result.seconds, 2),
                    "failure": result.failure,
                }
                name = training.problem.name
                results[name].append(line)
                n_done += 1
                print(f"[{n_done}/{len(trainings)}] {progress(name, line, results[name])}", flush=True)


def progress(name, line, lines):
    """Return a finished training in words, and the best run of its cell so far."""
    same = ("cell", "settings", "epochs")
    runs = complete_runs(other for other in lines if all(other[field] == line[field] for field in same))
    best = f"; best on test {100 * best_on_test(runs).test:.2f} % of {len(runs)} runs" if runs else ""
    what = f"{name} {line['cell']}, run {line['run']}, fold {line['fold']}, {line['part']}"
    how = line["failure"] or f"{100 * line['error']:.2f} %"
    return f"{what}: {how} in {line['seconds']:.0f} s{best}"


def run(arguments):
    """Run everything that is not finished."""
    results = {name: Results(arguments.results / f"{name}.jsonl", key) for name in arguments.sets}
    problems = [load(name, arguments.data) for name in arguments.sets]
    cells = [cell for cell in CELLS if cell.name in arguments.cells]
    trainings = plan(problems, cells, arguments.settings, arguments.budget, arguments.epochs, arguments.seed)
    train(unfinished(trainings, results), results, arguments.n_jobs)


def report(arguments):
    """Write the report."""
    lines = {name: read(arguments.results / f"{name}.jsonl") for name in SETS}
    others = (read(arguments.results / one.RESULTS.name) for one in (recovery, mdlp_states, subsets))
    write_report({name: found for name, found in lines.items() if found}, arguments.output, *others, stages.read())


def main(argv=None):
    """Parse the command line and run it."""
    parser, searching = parsers(__doc__, __spec__, run, report)
    add_choices(searching, "--sets", SETS)
    add_choices(searching, "--cells", [cell.name for cell in CELLS])
    searching.add_argument("--budget", type=int, default=40, help="runs of every cell")
    searching.add_argument("--settings", choices=list(SETTINGS), default="narrow")
    searching.add_argument("--epochs", type=int, help="instead of the number that belongs to the settings")
    searching.add_argument("--n-jobs", type=int, default=2, help="trainings at once")
    searching.add_argument("--seed", type=int, default=0)
    execute(parser, argv)


if __name__ == "__main__":
    main()
