"""Time to read networks from BIF files, compared with pyAgrum: python -m benchmarks.speed.networks

The files are generated. Each feature has the class and up to two earlier features as parents. ``--states`` lists
numbers of values per variable. A file with more values has fewer variables, so that all files have about 1.2 million
probabilities. Times are processor seconds, medians of several runs that alternate between the two libraries."""

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import command_line
from benchmarks.suite.bench_files import network
from tanlearn import read_bif

#: Probabilities of a file, about.
N_NUMBERS = 1_200_000


def readers():
    """Return the functions that read a file, by library; pyAgrum only if it is installed."""
    found = {"tanlearn": read_bif}
    try:
        import pyagrum
    except ImportError:
        print('pyAgrum is left out, because it is not installed: pip install -e ".[peers]"')
    else:
        found["pyAgrum"] = lambda path: pyagrum.loadBN(str(path))
    return found


def seconds(read, path):
    """Return the processor seconds that a function takes to read a file."""
    started = time.process_time()
    read(path)
    return time.process_time() - started


def main():
    """Read the command line, and print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--states", type=int, nargs="+", default=[4, 8, 16], help="values per variable")
    parser.add_argument("--numbers", type=int, default=N_NUMBERS, help="probabilities of a file, about")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each library")
    arguments = parser.parse_args()
    functions = readers()
    print(f"| values | variables | size [MB] | {' | '.join(functions)} |")
    print("| ---: | ---: | ---: |" + " ---: |" * len(functions))
    with tempfile.TemporaryDirectory() as folder:
        for n_states in arguments.states:
            n_features = max(3, round(arguments.numbers / n_states**4))
            path = Path(folder, f"{n_states}.bif")
            path.write_text(network(n_states, n_features=n_features), encoding="utf-8")
            found = {name: [] for name in functions}
            for _ in range(arguments.repeats):
                for name, read in functions.items():
                    found[name].append(seconds(read, path))
            cells = [f"{statistics.median(own):.2f}" for own in found.values()]
            size = f"{path.stat().st_size / 1e6:.1f}"
            print(f"| {n_states} | {n_features + 1} | {size} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
