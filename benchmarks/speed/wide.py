"""Seconds and memory of trees over thousands of features: python -m benchmarks.speed.wide

Every row of the table is measured in a new process, with kernels that an earlier process has compiled. Seconds are for
`BayesNetClassifier(structure=ChowLiu(n_jobs=n), n_jobs=n).fit(X, y)`, including the encoder and the CPTs. On a shared
machine, processor time is more reliable. Peak memory is reported by the system for the process, and is compared with
the value before `fit`, which includes the imports and X (one byte per value)."""

import os
import subprocess
import sys

from benchmarks import ROOT, command_line

SHAPES = [(2000, 2000, 4), (2000, 4000, 4), (2000, 20_000, 2)]
CODE = """
import resource, time
import numpy as np
from tanlearn import BayesNetClassifier
from tanlearn.baselines import ChowLiu
from benchmarks.suite.shapes import make_wide

def fit(X, y):
    BayesNetClassifier(structure=ChowLiu(n_jobs={n_jobs}), n_jobs={n_jobs}).fit(X, y)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

fit(*make_wide({n_samples}, 20, {n_states}))
X, y = make_wide({n_samples}, {n_features}, {n_states})
before, wall, processor = peak(), time.perf_counter(), time.process_time()
fit(X, y)
print(time.perf_counter() - wall, time.process_time() - processor, before, peak())
"""


def measure(n_samples, n_features, n_states, n_jobs):
    """Return seconds by the clock and of the processor, and MiB before and at the peak, of a fresh process."""
    code = CODE.format(n_samples=n_samples, n_features=n_features, n_states=n_states, n_jobs=n_jobs)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, env=environment, capture_output=True, text=True)
    return [float(number) for number in done.stdout.split()]


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--n-jobs", type=int, nargs="+", default=[1, 2], help="threads")
    arguments = parser.parse_args()
    measure(2000, 20, 2, 1)  # compiles
    print("| rows x features | values | threads | fit [s] | processor [s] | before fit [MiB] | peak [MiB] |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_samples, n_features, n_states in SHAPES:
        for n_jobs in arguments.n_jobs:
            wall, processor, before, peak = measure(n_samples, n_features, n_states, n_jobs)
            shape = f"{n_samples:,} x {n_features:,} | {n_states} | {n_jobs}"
            print(f"| {shape} | {wall:.2f} | {processor:.2f} | {before:.0f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
