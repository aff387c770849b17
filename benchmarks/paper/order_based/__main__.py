"""Tables 1, 2 and 4 and figure 1 of order-based structure learning.

    python -m benchmarks.paper.order_based run                # 25 sets and section 3; resumes if interrupted
    python -m benchmarks.paper.order_based run uci --orderings 1000 --learners TAN-RO-CR
    python -m benchmarks.paper.order_based run uci --orderings 1000 --learners 2-tree-RO-CR
    python -m benchmarks.paper.order_based run partitions     # the 25 sets split in 20 other ways
    python -m benchmarks.paper.order_based run mnist --n-jobs 2 --verbose
    python -m benchmarks.paper.order_based run mnist --learners "2-tree-OMI-CR smoothed" --n-jobs 2 --verbose
    python -m benchmarks.paper.order_based report

TIMIT is a licensed corpus and is not part of this project. If you have it, prepare an archive with X, y, train_idx and
test_idx (see tanlearn.sources.datasets.load_npz) and pass it: run timit --timit FILE. The same learners then run on it.
All orderings of 2-tree-RO-CR share the validation folds of a data set and its fold, and the CPTs of all families.
The learner "2-tree-OMI-CR smoothed" (section 5.2) is the most expensive and runs only when it is named.
"""

from pathlib import Path

import numpy as np

from benchmarks.shared.command import add_choices, add_experiments, execute, parsers
from benchmarks.shared.data import split, stream
from benchmarks.shared.mnist import N_TRAIN
from benchmarks.shared.results import Results, line_key, read
from tanlearn import EncodedData

from .data import SYNTHETIC_SIZES, UCI, Simulation, mnist, timit, uci
from .learners import FIGURE_1, LEARNERS, ORDERINGS, TABLE_1, TABLE_4, WAYS
from .many_orderings import MAX_BYTES, CandidateTables
from .report import write_report

EXPERIMENTS = {
    "uci": (*TABLE_1, *WAYS),
    "partitions": ORDERINGS,
    "synthetic": FIGURE_1,
    "mnist": TABLE_4,
    "timit": TABLE_1,
}
#: Learners whose orderings share validation folds and CPTs.
SHARED = ("2-tree-RO-CR",)
#: Files of results: those of 1,000 orderings of 2-trees are apart.
FILES = ("order_based", "two_trees")
key = line_key("set", "fold", "learner", "n_runs")


def file_of(learner):
    """Return the name of the file of results of a learner."""
    return FILES[learner.name in SHARED]


def problems(experiment, arguments):
    """Return the data sets of an experiment."""
    if experiment == "uci":
        return [uci(name, arguments.data) for name in arguments.sets]
    if experiment == "partitions":
        numbers = range(1, arguments.partitions + 1)
        return [uci(name, arguments.data, number) for number in numbers for name in arguments.sets]
    if experiment == "synthetic":
        return [Simulation(n_train) for n_train in SYNTHETIC_SIZES]
    if experiment == "mnist":
        return [mnist(arguments.data, arguments.rows, arguments.n_jobs)]
    return [timit(path) for path in arguments.timit]


def plan(arguments):
    """Yield the problem, the learner and the start of the line of everything to run."""
    for experiment in arguments.experiments:
        for problem in problems(experiment, arguments):
            for name in arguments.learners or EXPERIMENTS[experiment]:
                learner = LEARNERS[name]
                n_runs = arguments.orderings if learner.is_random else 1
                if experiment == "synthetic":
                    n_runs = arguments.simulations
                for fold in range(1, problem.n_folds + 1):
                    line = {"set": problem.name, "fold": fold, "n_folds": problem.n_folds}
                    yield problem, learner, {**line, "learner": name, "n_runs": n_runs}


def measure(problem, learner, line, n_jobs, verbose):
    """Return the finished line of a learner on a fold, with all its runs."""
    outcomes, shared = [], {}
    fold, n_runs = line["fold"], line["n_runs"]
    streams = [stream(problem.name, fold, learner.name, run) for run in range(n_runs)]
    part = problem.part(fold, 0)
    if learner.name in SHARED and CandidateTables.n_bytes(part.data, learner.structure.validation) <= MAX_BYTES:
        shared = {"shared_folds": True}
        folds = stream(problem.name, fold, learner.name, "validation")
        outcomes = list(learner.run_orderings(part, folds, streams))
    else:
        for run, rng in enumerate(streams):
            part = problem.part(fold, run)
            outcomes.append(learner.run(part, rng, n_jobs=n_jobs, verbose=verbose))
    seconds = [outcome.seconds for outcome in outcomes]
    data = part.data
    return {
        **line,
        "n_train": data.n_samples,
        "n_test": len(part.y),
        "n_features": data.n_features,
        "n_classes": data.n_classes,
        "training": [round(outcome.training, 6) for outcome in outcomes],
        "test": {name: [round(outcome.test[name], 6) for outcome in outcomes] for name in learner.parameters},
        "seconds": [round(value, 6) for value in ([np.mean(seconds)] if shared else seconds)],
        **shared,
        **problem.remarks([outcome.structure for outcome in outcomes if outcome.structure is not None]),
        "n_jobs": n_jobs,
    }


def warm_up(learners):
    """Compile or load all kernels before times are measured."""
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3, (60, 4)), np.arange(60) % 3)
    for learner in learners:
        part = split(data, np.arange(50), np.arange(50, 60))
        learner.run(part, rng)
        if learner.name in SHARED:
            list(learner.run_orderings(part, rng, [rng]))


def run(arguments):
    """Run everything that is not finished."""
    if ("timit" in arguments.experiments) != bool(arguments.timit):
        raise SystemExit("the experiment timit and the option --timit FILE belong together: the corpus is licensed.")
    files = {name: Results(arguments.results / f"{name}.jsonl", key) for name in FILES}
    todo = [task for task in plan(arguments) if task[2] not in files[file_of(task[1])]]
    warm_up({learner.name: learner for _, learner, _ in todo}.values())
    for number, (problem, learner, start) in enumerate(todo, start=1):
        line = measure(problem, learner, start, arguments.n_jobs, arguments.verbose)
        line = files[file_of(learner)].append(line)
        rates = ", ".join(f"{name} {100 * np.mean(found):.2f} %" for name, found in line["test"].items())
        what = f"{line['set']}, fold {line['fold']}, {line['learner']}"
        print(f"[{number}/{len(todo)}] {what}: {rates} in {sum(line['seconds']):.2f} s", flush=True)


def report(arguments):
    """Write the report."""
    lines = [line for name in FILES for line in read(arguments.results / f"{name}.jsonl")]
    write_report(lines, arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_experiments(running, EXPERIMENTS, ("uci", "synthetic"))
    add_choices(running, "--sets", UCI, help="of uci; by default all 25")
    add_choices(running, "--learners", LEARNERS, default=None)
    running.add_argument("--orderings", type=int, default=20, help="random orderings, of which the paper has 1,000")
    running.add_argument(
        "--simulations", type=int, default=100, help="of every number of rows of the synthetic problem"
    )
    running.add_argument("--partitions", type=int, default=20, help="other ways to split the 25 sets")
    running.add_argument("--rows", type=int, default=N_TRAIN, help="of mnist's training part")
    running.add_argument("--timit", nargs="+", type=Path, default=[], metavar="FILE")
    running.add_argument("--n-jobs", type=int, default=1, help="threads of a learner")
    running.add_argument("--verbose", action="store_true", help="print every edge that a search adds")
    execute(parser, argv)


if __name__ == "__main__":
    main()
