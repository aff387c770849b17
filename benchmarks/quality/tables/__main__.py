"""All learners, compared with forests, boosting, logistic regression and support vector machines, on all raw sets.

    pip install -e ".[peers]"
    python -m benchmarks.quality.tables run                 # a day or two; resumes if interrupted
    python -m benchmarks.quality.tables run --sets car chess --learners AODE RandomForest --seeds 0 --time-limit 600
    python -m benchmarks.quality.tables report              # writes tables.md, its picture, details and CSV
    python -m benchmarks.quality.tables pack

What counts, and defaults of peers, go first, then trainings, then what chooses settings on folds; each on small sets
first, and on all sets with the first seed before the second. Five stratified folds a seed, of 50,000 rows at most.
To measure anew after a change of a learner, remove its lines from results/tables.jsonl and results/tables.jsonl.xz.
"""

from pathlib import Path

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.results import read

from ..runs import N_FOLDS
from .learners import ENSEMBLE, LEARNERS
from .report import write_report
from .run import FILE, run
from .sets import LATER, PARTS, RAW, SEEDS


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.judge, arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    judge = {"default": ENSEMBLE, "choices": LEARNERS, "metavar": "LEARNER", "help": "whom verdicts are for"}
    output = Path(__file__).parents[1]
    parser, running = parsers(__doc__, __spec__, run, report, output=output, options={"--judge": judge})
    sets, folds = (*RAW, *PARTS, *LATER), range(1, 1 + N_FOLDS)
    add_choices(running, "--sets", sets, help="by default all")
    add_choices(running, "--learners", LEARNERS)
    running.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="of folds and learners; by default 0 1")
    running.add_argument("--folds", type=int, nargs="+", choices=folds, default=folds, help="by default 1 2 3 4 5")
    running.add_argument("--jobs", type=int, default=2, help="threads of a learner that can use them; by default 2")
    running.add_argument("--time-limit", type=float, metavar="SECONDS", help="begin no fit after that")
    execute(parser, argv)


if __name__ == "__main__":
    main()
