"""Populations of gradient TANs on an NVIDIA device: bytes that a step must move, and microseconds that it takes.

    python -m benchmarks.gpu floor --bandwidth 4300             # no device needed: bytes, and times at a bandwidth
    python -m benchmarks.gpu resources                          # no device needed, but nvcc: registers and floors
    python -m benchmarks.gpu measure                            # times of kernels and steps, and floors
    python -m benchmarks.gpu population --device cuda           # continues a stopped run; also --device cpu
    python -m benchmarks.gpu report                             # times and errors of both devices
    python -m benchmarks.gpu pack                               # compress the results for a commit
    python -m benchmarks.gpu column                             # estimated time of 15,000 trainings on usps
    python -m benchmarks.gpu --all --quick --output look.txt    # all commands of a device, in tiny sizes
    compute-sanitizer --tool memcheck python -m benchmarks.gpu --all --quick    # or racecheck, or initcheck

measure.py describes the counted bytes and measured times. population.py describes the trainings.
"""

import contextlib
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks import DATA, command_line
from benchmarks.shared.command import interruptible
from benchmarks.shared.results import pack
from tanlearn.kernels._cuda import cupy

from .measure import floor, measure
from .population import EPOCHS, column, population, report, require_device
from .resources import resources

RESULTS = Path(__file__).resolve().parent / "results"
#: The defaults with --quick.
QUICK = {
    "sets": ["letter", "usps"],
    "runs": [1, 4],
    "rows": 400,
    "short": 3,
    "mebibytes": 16,
    "repeats": 3,
    "epochs": 3,
    "population": 2,
    "slice": 1,
    "results": RESULTS / "quick.jsonl",
}


class Tee(NamedTuple):
    """File that writes to several files."""

    files: tuple

    def write(self, text):
        for file in self.files:
            file.write(text)

    def flush(self):
        for file in self.files:
            file.flush()


COMMANDS = {"floor": floor, "measure": measure, "population": population, "report": report, "column": column}
COMMANDS["resources"] = resources
COMMANDS["pack"] = lambda arguments: pack(arguments.results)
ON_DEVICE = ("measure", "population", "column")


def main(argv=None):
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("what", nargs="?", choices=COMMANDS)
    parser.add_argument("--all", action="store_true", help="measure, population and column on the device")
    parser.add_argument("--quick", action="store_true", help="tiny sizes by default")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=["letter", "usps", "mnist"], default=["letter", "usps", "mnist"])
    parser.add_argument("--runs", nargs="+", type=int, default=[1, 16, 64, 256], help="sizes of populations")
    parser.add_argument("--rows", type=int, help="number of training rows")
    parser.add_argument("--short", type=int, default=40, help="epochs of the short training")
    parser.add_argument("--bandwidth", type=float, help="GB/s, for floors in microseconds")
    parser.add_argument("--mebibytes", type=int, default=256, help="size of the arrays that are copied")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cuda", help="device of population; all others need cuda"
    )
    parser.add_argument("--n-jobs", type=int, default=2, help="threads of population on the CPU")
    parser.add_argument("--population", type=int, default=64, help="trainings of every set")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of population and column")
    parser.add_argument("--slice", type=int, default=85, help="trainings that column measures, for each of three K")
    parser.add_argument("--results", type=Path, default=RESULTS / "population.jsonl")
    parser.add_argument("--output", type=Path, help="file for what is printed")
    arguments = parser.parse_args(argv)
    if arguments.all == (arguments.what is not None):
        parser.error(f"name one of {', '.join(COMMANDS)}, or --all")
    if arguments.quick:
        parser.set_defaults(**QUICK)
        arguments = parser.parse_args(argv)
    if arguments.all:
        arguments.device = "cuda"
    if arguments.quick and (arguments.all or arguments.what in ON_DEVICE) and arguments.device == "cuda":
        require_device()
        cupy().cuda.set_allocator(None)  # separate arrays, so that a sanitizer finds errors at their ends
    with interruptible(arguments.results), contextlib.ExitStack() as stack:
        if arguments.output:
            file = stack.enter_context(arguments.output.open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(Tee((sys.stdout, file))))
        for name in ON_DEVICE if arguments.all else [arguments.what]:
            COMMANDS[name](arguments)


if __name__ == "__main__":
    main()
