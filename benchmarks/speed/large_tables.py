"""Seconds and memory of default estimators on unusual tables: python -m benchmarks.speed.large_tables

Each table is extreme in one respect: thousands of values per column, thousands of columns, hundreds of classes, or all
of these at once. Every fit is in a fresh process, whose kernels have been compiled by a process before. The process may
use 6 GiB of addresses and ``--seconds`` of processor time. Times are those of the processor, which are more reliable
on a shared machine. Peak memory is what the system reports for the process, with the imports and the table. The last
column has the warnings of the fit, or its error.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd

import tanlearn
from benchmarks import ROOT, command_line

LEARNERS = {
    "NaiveBayes": lambda: tanlearn.NaiveBayesClassifier(),
    "TAN": lambda: tanlearn.TANClassifier(random_state=0),
    "KTree": lambda: tanlearn.KTreeClassifier(random_state=0),
    "TermNet": lambda: tanlearn.TermNetClassifier(),
    "BayesForest": lambda: tanlearn.BayesForestClassifier(random_state=0),
    "BayesEnsemble": lambda: tanlearn.BayesEnsembleClassifier(random_state=0),
}
#: Addresses that a process may use, in bytes.
MOST_ADDRESSES = 6 * 2**30


def make_values(rng, n_rows=6000, n_values=3000):
    """Return three columns of thousands of categories, and five numeric ones."""
    codes, effect = rng.integers(0, n_values, (n_rows, 3)), rng.normal(size=(3, n_values))
    numbers = rng.normal(size=(n_rows, 5))
    score = sum(own[code] for own, code in zip(effect, codes.T, strict=True)) + numbers[:, 0]
    names = {f"id{j}": np.char.add("v", own.astype(str)) for j, own in enumerate(codes.T)}
    frame = pd.DataFrame({**names, **{f"number{j}": own for j, own in enumerate(numbers.T)}})
    return frame, (score + rng.normal(size=n_rows) > 0).astype(int)


def make_columns(rng, n_rows=500, n_columns=5000):
    """Return thousands of columns, one half numeric, the other binary."""
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, :20] += 0.6 * y[:, np.newaxis]
    X[:, 1::2] = X[:, 1::2] > 0
    return X, y


def make_classes(rng, n_rows=3000, n_classes=500):
    """Return ten numeric columns, and hundreds of classes."""
    y = rng.permutation(np.arange(n_rows) % n_classes)
    return rng.normal(size=(n_classes, 10))[y] + 0.5 * rng.normal(size=(n_rows, 10)), y


def make_product(rng, n_rows=2000, n_columns=300, n_values=50, n_classes=20):
    """Return many columns of many categories, and many classes."""
    y = rng.integers(0, n_classes, n_rows)
    favorite = rng.integers(0, n_values, (n_classes, n_columns))[y]
    is_random = rng.random((n_rows, n_columns)) < 0.9
    codes = np.where(is_random, rng.integers(0, n_values, (n_rows, n_columns)), favorite)
    return np.char.add("v", codes.astype(str)), y


TABLES = {
    "3 columns of 3,000 values": make_values,
    "5,000 columns": make_columns,
    "500 classes": make_classes,
    "300 columns of 50 values, 20 classes": make_product,
}


def fit_one(learner, table, seconds):
    """Fit a learner in this process, and print what it took as JSON."""
    X, y = TABLES[table](np.random.default_rng(0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    until = seconds + int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (until, until + 5))
    notes, spent, started = [], [], time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = LEARNERS[learner]().fit(X, y)
            spent.append(time.process_time() - started)
            model.predict_proba(X[:500])
            spent.append(time.process_time() - started - spent[0])
        except Exception as error:
            spent += [time.process_time() - started] * (not spent)
            notes.append(f"{type(error).__name__}: {error}")
    notes += sorted({str(one.message) for one in caught})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps({"spent": spent, "peak": peak, "notes": notes}))


def measure(learner, table, seconds):
    """Return a row of the report for a fit in a fresh process."""
    arguments = ["--fit", learner, table, "--seconds", str(seconds)]
    command = [sys.executable, "-m", "benchmarks.speed.large_tables", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        is_late = done.returncode == -signal.SIGXCPU or done.returncode == -signal.SIGKILL
        outcome = f"stopped after {seconds} s" if is_late else f"exit {done.returncode}: {done.stderr[-200:]}"
        return f"| {table} | {learner} | | | | {outcome} |"
    found = json.loads(done.stdout.splitlines()[-1])
    fit, predict = [f"{own:.1f}" for own in found["spent"]] + [""] * (2 - len(found["spent"]))
    return f"| {table} | {learner} | {fit} | {predict} | {found['peak']:.0f} | {' '.join(found['notes'])} |"


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument(
        "--seconds", type=int, default=120, help="processor time of a fit with its predictions, at most"
    )
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit_one(*arguments.fit, arguments.seconds)
        return
    warnings.simplefilter("ignore")
    X, y = np.random.default_rng(0).normal(size=(200, 6)), np.arange(200) % 3
    for make in LEARNERS.values():
        make().fit(X, y).predict_proba(X)  # compiles the kernels
    print("| table | learner | fit [s] | predict 500 rows [s] | peak [MiB] | warnings or error |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for table in arguments.tables:
        for learner in arguments.learners:
            print(measure(learner, table, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
