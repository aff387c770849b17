"""Processor seconds of first fits and of their compilation: python -m benchmarks.speed.compilation

Each learner is fitted and predicts in a fresh process, in which no kernel is compiled (an empty NUMBA_CACHE_DIR). Time
is processor time, because other work on the machine matters less to it. A kernel that other kernels call is compiled as
a part of them; its seconds are listed under its own name, without the kernels that it calls. With --shared-cache, a
learner uses the kernels that were compiled for the learners before it, as for a user who tries several learners."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

from numba.core import event

from benchmarks import ROOT, command_line

IMPORT = "sklearn.naive_bayes and numba"
LEARNERS = ["naive Bayes", "Chow-Liu TAN", "gradient TAN", "gradient TAN, missing values", "forest", "k-tree", "terms"]
TABLES = ["iris", "20,000 x 20"]


def make(name):
    """Return an unfitted learner."""
    import tanlearn
    from tanlearn.baselines import ChowLiu

    return {
        "naive Bayes": lambda: tanlearn.NaiveBayesClassifier(),
        "Chow-Liu TAN": lambda: tanlearn.BayesNetClassifier(structure=ChowLiu()),
        "gradient TAN": lambda: tanlearn.TANClassifier(random_state=0),
        "gradient TAN, missing values": lambda: tanlearn.TANClassifier(random_state=0),
        "forest": lambda: tanlearn.BayesForestClassifier(random_state=0),
        "k-tree": lambda: tanlearn.KTreeClassifier(random_state=0),
        "terms": lambda: tanlearn.TermNetClassifier(random_state=0),
    }[name]()


def rows(table, has_missing):
    """Return X and y."""
    import numpy as np
    from sklearn.datasets import load_iris

    if table == "iris":
        X, y = load_iris(return_X_y=True)
    else:
        X = np.random.default_rng(0).normal(size=(20_000, 20)).round(2)
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
    if has_missing:
        X[::7, 1] = np.nan
    return X, y


class Kernels(event.Listener):
    """Own seconds of each function that Numba compiles."""

    def __init__(self):
        self.open, self.seconds = [], defaultdict(float)

    def on_start(self, event):
        """Note the time."""
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event):
        """Add a compilation, without the functions that it has compiled meanwhile."""
        begin, inner = self.open.pop()
        now = time.process_time()
        if self.open:
            self.open[-1][1] += now - begin
        function = event.data["dispatcher"].py_func
        place = function.__module__.removeprefix("tanlearn.kernels.")
        self.seconds[f"{place}.{function.__name__}"] += now - begin - inner


def measure(name, table):
    """Print the seconds of one learner in this process, as JSON."""
    kernels = Kernels()
    event.register("numba:compile", kernels)
    begin = time.process_time()
    learner = make(name)
    imported = time.process_time() - begin
    X, y = rows(table, "missing" in name)
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        learner.fit(X, y).predict_proba(X)
        seconds.append(time.process_time() - begin)
    print(json.dumps({"import": imported, "first": seconds[0], "second": seconds[1], "kernels": kernels.seconds}))


def run(arguments, cache):
    """Return what a fresh process prints."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, env=environment, capture_output=True, text=True).stdout


def imports(repeats=3):
    """Print the processor seconds of importing the library, and of importing what it is compared with."""
    statements = {
        "`import tanlearn` and a classifier": "import tanlearn; tanlearn.NaiveBayesClassifier()",
        f"`import` {IMPORT}": "import sklearn.naive_bayes, numba",
    }
    with tempfile.TemporaryDirectory() as cache:
        for name, statement in statements.items():
            code = f"import time; {statement}; print(time.process_time())"
            print(f"{name}: {min(float(run(['-c', code], cache)) for _ in range(repeats)):.2f} s")
        code = "import time; from tanlearn.cli import main\ntry: main()\nfinally: print(time.process_time())"
        seconds = min(float(run(["-c", code, "--version"], cache).split()[-1]) for _ in range(repeats))
        print(f"`tanlearn --version`: {seconds:.2f} s\n")


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS, metavar="NAME")
    parser.add_argument("--table", default=TABLES[0], choices=TABLES)
    parser.add_argument("--kernels", type=int, default=3, help="slowest kernels of each learner to list")
    parser.add_argument("--shared-cache", action="store_true", help="keep the kernels of one learner for the next")
    parser.add_argument("--here", action="store_true", help="measure the first learner in this process, print JSON")
    arguments = parser.parse_args()
    if arguments.here:
        measure(arguments.learners[0], arguments.table)
        return
    imports()
    print(f"| on {arguments.table} | first [s] | second [s] | compilation [s] | functions | slowest [s] |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    shared = tempfile.mkdtemp()
    for name in arguments.learners:
        with tempfile.TemporaryDirectory() as own:
            command = ["-m", __spec__.name, "--here", "--table", arguments.table, "--learners", name]
            found = json.loads(run(command, shared if arguments.shared_cache else own))
        kernels = found["kernels"]
        slowest = sorted(kernels, key=kernels.get, reverse=True)[: arguments.kernels]
        print(
            f"| {name} | {found['first']:.1f} | {found['second']:.2f} | {sum(kernels.values()):.1f} | {len(kernels)} | "
            f"{', '.join(f'{kernel} {kernels[kernel]:.1f}' for kernel in slowest)} |",
            flush=True,
        )
    shutil.rmtree(shared)


if __name__ == "__main__":
    main()
