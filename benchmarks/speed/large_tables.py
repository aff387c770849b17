"""Seconds, memory and errors of default estimators on unusual tables.

    python -m benchmarks.speed.large_tables run       # resumes if interrupted
    python -m benchmarks.speed.large_tables report    # writes large_tables.md
    python -m benchmarks.speed.large_tables pack

Each table is extreme in one respect: thousands of values per column, thousands of columns, hundreds of classes, or all
of these at once. Every fit runs in a new process, with kernels that an earlier process has compiled. The process may
use 6 GiB of addresses and ``--seconds`` of processor time."""

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
from benchmarks import ROOT
from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by


def random_forest():
    """Return a random forest of scikit-learn on ordinal codes of categories."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    is_text = make_column_selector(dtype_exclude=np.number)
    columns = make_column_transformer((encoder, is_text), remainder="passthrough")
    return make_pipeline(FunctionTransformer(pd.DataFrame), columns, RandomForestClassifier(random_state=0))


LEARNERS = {
    "NaiveBayes": lambda: tanlearn.NaiveBayesClassifier(),
    "TAN": lambda: tanlearn.TANClassifier(random_state=0),
    "KTree": lambda: tanlearn.KTreeClassifier(random_state=0),
    "TermNet": lambda: tanlearn.TermNetClassifier(),
    "BoostedTerms": lambda: tanlearn.BoostedTermsClassifier(random_state=0),
    "BayesForest": lambda: tanlearn.BayesForestClassifier(random_state=0),
    "BayesEnsemble": lambda: tanlearn.BayesEnsembleClassifier(random_state=0),
    "RandomForest": random_forest,
}
#: Addresses that a process may use, in bytes.
MOST_ADDRESSES = 6 * 2**30
#: Rows of each table for testing.
N_TEST = 500
#: Probabilities below are raised to this, so that one row cannot decide the mean.
LEAST_PROBABILITY = 1e-6
FILE = "large_tables.jsonl"
key = line_key("table", "learner")
SETUP = f"""The last {N_TEST} rows of each table are used for testing. Every fit runs in a new process, which may use
{MOST_ADDRESSES // 2**30} GiB of addresses and 120 s of processor time. Seconds are processor time of one thread,
without the compilation of kernels. The column "predict" contains the time to predict the test rows. Peak memory is
measured for the process, in which imports and kernels take about 300 MiB. Below each table, warnings list what was left
out. RandomForest is from scikit-learn and uses ordinal codes of categories. For 500 classes with five rows each, the
discretizer of NaiveBayes, TAN and KTree finds no cut point, and a warning names the columns. The command draws the
tables at random, and they were not used to choose defaults. Other programs ran on the machine at the same time."""
#: Beginnings of warnings about what a fit did less of.
LESS = ("the forest has", "predict the class best alone", "were not tried", "the search ended", "CPTs were left out")


def make_values(rng, n_rows, n_columns, n_values, n_numbers):
    """Return columns of thousands of categories, each with an effect, and numeric ones."""
    codes, effect = rng.integers(0, n_values, (n_rows, n_columns)), rng.normal(size=(n_columns, n_values))
    numbers = rng.normal(size=(n_rows, n_numbers))
    score = sum(own[code] for own, code in zip(effect, codes.T, strict=True)) + numbers[:, 0]
    names = {f"id{j}": np.char.add("v", own.astype(str)) for j, own in enumerate(codes.T)}
    frame = pd.DataFrame({**names, **{f"number{j}": own for j, own in enumerate(numbers.T)}})
    return frame, (score + rng.normal(size=n_rows) > 0).astype(int)


def make_ids(rng, n_rows):
    """Return a column whose strings are all distinct, and five numeric columns."""
    frame, y = make_values(rng, n_rows, 1, 2, 5)
    return frame.assign(id0=np.char.add("v", rng.permutation(n_rows).astype(str))), y


def make_columns(rng, n_rows, n_columns=5000):
    """Return thousands of columns, one half numeric, the other binary."""
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, :20] += 0.6 * y[:, np.newaxis]
    X[:, 1::2] = X[:, 1::2] > 0
    return X, y


def make_classes(rng, n_rows, n_classes=500):
    """Return ten numeric columns, and hundreds of classes."""
    y = rng.permutation(np.arange(n_rows) % n_classes)
    return rng.normal(size=(n_classes, 10))[y] + 0.5 * rng.normal(size=(n_rows, 10)), y


def make_product(rng, n_rows, n_columns=300, n_values=50, n_classes=20):
    """Return many columns of many categories, and many classes."""
    y = rng.integers(0, n_classes, n_rows)
    favorite = rng.integers(0, n_values, (n_classes, n_columns))[y]
    is_random = rng.random((n_rows, n_columns)) < 0.9
    codes = np.where(is_random, rng.integers(0, n_values, (n_rows, n_columns)), favorite)
    return np.char.add("v", codes.astype(str)), y


TABLES = {
    "6,000 rows, 3 columns of 3,000 values": lambda rng: make_values(rng, 6000 + N_TEST, 3, 3000, 5),
    "100,000 rows, 2 columns of 20,000 values": lambda rng: make_values(rng, 100_000 + N_TEST, 2, 20_000, 3),
    "3,000 rows, a column of ids": lambda rng: make_ids(rng, 3000 + N_TEST),
    "300 rows, 5,000 columns": lambda rng: make_columns(rng, 300 + N_TEST),
    "2,500 rows, 500 classes": lambda rng: make_classes(rng, 2500 + N_TEST),
    "2,000 rows, 300 columns of 50 values, 20 classes": lambda rng: make_product(rng, 2000 + N_TEST),
}


def load_kernels(learner):
    """Fit a learner to few rows, so that its kernels are compiled, or loaded if they were compiled before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = np.random.default_rng(0).normal(size=(200, 6)), np.arange(200) % 3
        LEARNERS[learner]().fit(X, y).predict_proba(X)


def fit_one(learner, table, seconds):
    """Fit a learner in this process, and print what it took as JSON."""
    X, y = TABLES[table](np.random.default_rng(0))
    X, X_test, y, y_test = X[:-N_TEST], X[-N_TEST:], y[:-N_TEST], y[-N_TEST:]
    load_kernels(learner)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    until = seconds + int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (until, until + 5))
    found, started = {}, time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = LEARNERS[learner]().fit(X, y)
            found["fit"] = time.process_time() - started
            proba = model.predict_proba(X_test)
            found["predict"] = time.process_time() - started - found["fit"]
            own = proba[np.arange(N_TEST), np.searchsorted(model.classes_, y_test)]
            found["error"] = 100 * float((model.classes_[proba.argmax(axis=1)] != y_test).mean())
            found["log_loss"] = -float(np.log(np.maximum(own, LEAST_PROBABILITY)).mean())
        except Exception as error:
            found |= {"fit": time.process_time() - started, "stopped": f"{type(error).__name__}: {error}"}
    found["notes"] = list(dict.fromkeys(str(one.message) for one in caught))
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps(found))


def measure(learner, table, seconds):
    """Return the measures of a fit in a fresh process."""
    arguments = ["--fit", learner, table, "--seconds", str(seconds)]
    command = [sys.executable, "-m", "benchmarks.speed.large_tables", "run", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        is_late = done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}
        return {"stopped": f"stopped after {seconds} s" if is_late else f"exit {done.returncode}: {done.stderr[-200:]}"}
    return json.loads(done.stdout.splitlines()[-1])


def run(arguments):
    """Measure everything that is not finished."""
    if arguments.fit:
        fit_one(*arguments.fit, arguments.seconds)
        return
    results = Results(arguments.results / FILE, key)
    starts = [{"table": table, "learner": name} for table in arguments.tables for name in arguments.learners]
    missing = results.missing(starts)
    for name in {start["learner"] for start in missing}:
        load_kernels(name)
    for start in missing:
        line = results.append(start | measure(start["learner"], start["table"], arguments.seconds))
        print(", ".join(f"{name} {value}" for name, value in line.items() if name != "versions"), flush=True)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "large_tables.md")


def write_report(lines, path):
    """Write the report of some lines."""
    found = {key(line): line for line in lines}
    sections = ["# Unusual tables", paragraph(verdict(found))]
    for table in TABLES:
        own = [found[table, name] for name in LEARNERS if (table, name) in found]
        if own:
            header = ["learner", "fit [s]", "predict [s]", "peak [MiB]", "error [%]", "log loss"]
            sections += [f"## {table}", markdown_table(header, [cells(line) for line in own])]
            sections.append("\n".join(f"- {line['learner']}: {note}" for line in own for note in notes(line)))
            missing = [name for name in LEARNERS if (table, name) not in found]
            sections.append(f"Not measured: {', '.join(missing)}." if missing else "")
    made = made_by(lines, "benchmarks.speed.large_tables run", "benchmarks.speed.large_tables report")
    write_sections(path, [*sections, "## How it was measured", paragraph(SETUP), made])


def verdict(found):
    """Return the first sentences of the report: fits that were stopped, and the largest time and memory of others."""
    stopped = [line for line in found.values() if "stopped" in line]
    ours = [line for line in found.values() if "stopped" not in line and line["learner"] != "RandomForest"]
    slowest, largest = (max(ours, key=lambda line: line[name]) for name in ("fit", "peak"))
    words = ", ".join(f"{line['learner']} ({line['table']})" for line in stopped)
    first = f"Not finished: {words}. Of the other fits" if stopped else "All measured fits finished. Of these fits"
    return f"""{first}, except RandomForest, {slowest["learner"]} takes longest, {slowest["fit"]:.0f} s for the table of
    {slowest["table"]}. {largest["learner"]} takes most memory, {largest["peak"]:,.0f} MiB for the table of
    {largest["table"]}."""


def cells(line):
    """Return the cells of a row of the report."""
    values = [("fit", ".1f"), ("predict", ".2f"), ("peak", ",.0f"), ("error", ".1f"), ("log_loss", ".3f")]
    shown = [format(line[name], form) if name in line else "" for name, form in values]
    return [line["learner"], *shown]


def notes(line):
    """Return the reason why a fit did not finish, or warnings about what was left out."""
    if "stopped" in line:
        return [line["stopped"]]
    return [note for note in line["notes"] if any(start in note for start in LESS)]


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, data=False)
    add_choices(running, "--tables", TABLES)
    add_choices(running, "--learners", LEARNERS)
    running.add_argument("--seconds", type=int, default=120, help="processor time of a fit with its predictions")
    running.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
