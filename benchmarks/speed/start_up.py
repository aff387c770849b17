"""Seconds of imports and first fits, and memory of trainings: python -m benchmarks.speed.start_up

Everything is measured in fresh processes. Compiled kernels are kept in a temporary folder (NUMBA_CACHE_DIR), empty at
the first fit of every learner and full at the next. Peak memory is what the system reports for the process, so it
counts the imports, too; the encoded data are made by another process and only loaded. The parent process stays small,
because Linux includes the memory of the parent in the peak of the child."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import ROOT, command_line

#: Seconds from the start of a process to its first small gradient fit, with the kernels on disk.
TARGET = 2.0
IMPORTS = [
    "import sklearn.naive_bayes, numba",
    "import tanlearn",
    "import tanlearn; tanlearn.NaiveBayesClassifier",
    "import tanlearn; tanlearn.TANClassifier",
    "from tanlearn import *",
]
LEARNERS = {
    "naive Bayes": "tanlearn.NaiveBayesClassifier()",
    "Chow-Liu TAN": "tanlearn.BayesNetClassifier(structure=tanlearn.baselines.ChowLiu())",
    "gradient TAN, 2 epochs": "tanlearn.TANClassifier(n_epochs=2)",
}
FIT = "import numpy, tanlearn.baselines; X = numpy.eye(4)[numpy.arange(40) % 4]; {}.fit(X, numpy.arange(40) % 4)"
MAKE = """
import numpy as np
from benchmarks.suite.shapes import make
data = make("mnist")
np.savez({path!r}, codes=data.codes, n_states=data.n_states, y=data.y, n_classes=data.n_classes)
print(data.codes.nbytes)
"""
LOAD = """
import numpy as np
from tanlearn import EncodedData, GradientTraining, Hybrid, TANClassifier
from tanlearn.search.runs import Part, Run, run_population
with np.load({path!r}) as file:
    data = EncodedData(file["codes"], file["n_states"], file["y"], int(file["n_classes"]))
training = GradientTraining(batch_size=250)
model = TANClassifier(loss=Hybrid(), n_epochs={n_epochs}, training=training, calibrate=False, random_state=0)
part = Part(data, np.ascontiguousarray(data.codes[:, :1000]), data.y[:1000])
runs = [Run(i, 0, {{"random_state": i}}) for i in range(4)]
"""
MEMORY = {
    "imports and data": "",
    "one training": "model.fit_encoded(data)",
    "population of 4, 1 thread": "assert not any(r.failure for r in run_population(model, [part], runs, n_jobs=1))",
    "population of 4, 2 threads": "assert not any(r.failure for r in run_population(model, [part], runs, n_jobs=2))",
}
PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
TIMED = "import time; started = time.perf_counter(); {}; print(time.perf_counter() - started)"


def run(code, cache):
    """Return the number that a fresh process prints."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, env=environment, capture_output=True, text=True)
    return float(done.stdout)


def median(code, cache, repeats):
    """Return the median of some processes."""
    return statistics.median(run(code, cache) for _ in range(repeats))


def seconds(repeats):
    """Print the times."""
    print(f"| in a fresh process | nothing compiled [s] | compiled before, median of {repeats} [s] |")
    print("| --- | ---: | ---: |")
    for statement in IMPORTS:
        with tempfile.TemporaryDirectory() as cache:
            run(TIMED.format(statement), cache)  # the files of the packages come from memory from here on
            print(f"| `{statement}` | | {median(TIMED.format(statement), cache, repeats):.2f} |", flush=True)
    for name, learner in LEARNERS.items():
        code = TIMED.format(FIT.format(learner))
        with tempfile.TemporaryDirectory() as cache:
            cold = run(code, cache)
            warm = median(code, cache, repeats)
        print(f"| import and first fit, {name} | {cold:.1f} | {warm:.2f} |", flush=True)
    print(f"\nTarget: at most {TARGET:g} s with compiled kernels; {warm:.2f} s for {name}.")


def memory(n_epochs):
    """Print the peaks."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "mnist.npz")
        codes = run(MAKE.format(path=path), folder)
        print(f"\nTrainings of {n_epochs} epochs in the shape of mnist; its codes take {codes / 2**20:.1f} MiB.\n")
        print("| | peak [MiB] | beyond imports and data [MiB] | in multiples of the codes |")
        print("| --- | ---: | ---: | ---: |")
        load = LOAD.format(path=path, n_epochs=n_epochs)
        run(f"{load}{MEMORY['population of 4, 1 thread']}\nprint(0)", folder)  # compile: the compiler takes memory, too
        start = None
        for name, code in MEMORY.items():
            peak = run(f"{load}{code}{PEAK}", folder) * 2**10
            start = peak if start is None else start
            beyond = peak - start
            print(f"| {name} | {peak / 2**20:.0f} | {beyond / 2**20:.0f} | {beyond / codes:.1f} |", flush=True)


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--repeats", type=int, default=5, help="warm processes of every kind")
    parser.add_argument("--epochs", type=int, default=2, help="epochs of the trainings whose memory is measured")
    arguments = parser.parse_args()
    seconds(arguments.repeats)
    memory(arguments.epochs)


if __name__ == "__main__":
    main()
