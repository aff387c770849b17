"""Gradient TAN, k-trees and hill climbing on 44 tables, two times five folds.

    python -m benchmarks.climbing run                              # resumes if interrupted
    python -m benchmarks.climbing run --sets vehicle --learners "TAN-CMI ML" "HC-BDeu ML"
    python -m benchmarks.climbing report                           # writes README.md and its pictures
    python -m benchmarks.climbing pack

Each cell runs in its own process with one thread, so that times are comparable. A cell fails if it takes longer than
--limit seconds."""

import lzma
from collections import Counter
from pathlib import Path

from benchmarks import DATA
from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.results import packed
from tanlearn.comparison import Comparison, compare

from .learners import all_learners
from .report import Shape, write
from .tables import NAMES, load

FILE = "comparison.csv"
N_FOLDS, N_REPEATS = 5, 2


def run(arguments):
    """Run everything that is not finished, one table after another."""
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = unpacked(arguments.results / FILE)
    learners = all_learners()
    for name in arguments.sets:
        compare(
            [load(name, arguments.data)],
            {learner: learners[learner] for learner in arguments.learners},
            n_folds=N_FOLDS,
            n_repeats=N_REPEATS,
            path=path,
            n_jobs=arguments.jobs,
            cell_time_limit=arguments.limit,
            progress=True,
        )


def unpacked(path):
    """Return the path of a results file, after unpacking the committed cells if nothing was appended since."""
    if packed(path).exists() and not (path.exists() and path.stat().st_size):
        path.write_bytes(lzma.decompress(packed(path).read_bytes()))
    return path


def report(arguments):
    """Write the report and its pictures; the kinds of features come from the tables."""
    comparison = finished(Comparison.load(unpacked(arguments.results / FILE)))
    n_train = {cell.dataset: cell.n_train for cell in comparison.cells}
    shapes = {name: Shape(load(name, arguments.data), n) for name, n in n_train.items()}
    write(comparison, shapes, arguments.output)


def finished(comparison):
    """Return the cells of the data sets on which every learner has run every fold."""
    n_cells = Counter(cell.dataset for cell in comparison.cells)
    whole = len(comparison.learners) * N_FOLDS * N_REPEATS
    return Comparison(cell for cell in comparison.cells if n_cells[cell.dataset] == whole)


def main(argv=None):
    """Parse the command line and run it."""
    data = {"--data": {"type": Path, "default": DATA, "help": "folder of the published data sets"}}
    parser, running = parsers(__doc__, __spec__, run, report, options=data)
    add_choices(running, "--sets", NAMES)
    add_choices(running, "--learners", tuple(all_learners()))
    running.add_argument("--jobs", type=int, default=1, help="cells at the same time")
    running.add_argument("--limit", type=float, default=120.0, help="time limit of a cell, in seconds")
    execute(parser, argv)


if __name__ == "__main__":
    main()
