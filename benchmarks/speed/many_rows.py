"""Time and memory to fit forests on many rows, compared with LightGBM: python -m benchmarks.speed.many_rows

The table is generated: half of the columns are numeric, half are categorical, and there are four classes. Each column
depends on an earlier one, and every third also on the class. A tenth of the classes is random. Every fit runs in a new
process on one thread, with compiled kernels. Times are processor time. Memory is the largest memory of the process
during the fit, in MiB above the memory before the fit. Error and log loss are computed on 20,000 other rows."""

import json
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd

from benchmarks import ROOT, command_line
from benchmarks.speed.memory import measured
from tanlearn import BayesForestClassifier

N_CLASSES, N_VALUES, N_TEST = 4, 12, 20_000


def make_table(n_rows, n_columns, seed=0):
    """Return a frame of numeric and categorical columns, and classes."""
    rng, drawn = np.random.default_rng(0), np.random.default_rng([1, seed])
    y = drawn.integers(0, N_CLASSES, n_rows)
    columns, codes = {}, [drawn.integers(0, N_VALUES, n_rows)]
    for j in range(n_columns):
        before, is_copied = codes[rng.integers(max(0, j - 8), j + 1)], drawn.random(n_rows) < 0.5
        own = (N_VALUES * drawn.random(n_rows) ** 2).astype(np.intp)  # a shift by the class changes frequencies
        if j % 3 == 0:
            own += y * rng.integers(1, 4) * (drawn.random(n_rows) < 0.2)
        codes.append(np.where(is_copied, before, own) % N_VALUES)
        if j % 2:
            columns[f"n{j}"] = codes[-1] + drawn.normal(size=n_rows)
        else:
            columns[f"c{j}"] = pd.Categorical.from_codes(codes[-1], [f"v{v}" for v in range(N_VALUES)])
    y = np.where(drawn.random(n_rows) < 0.1, drawn.integers(0, N_CLASSES, n_rows), y)
    return pd.DataFrame(columns), y


def light_gbm():
    """Return LightGBM with its defaults, on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


LEARNERS = {"forest": lambda: BayesForestClassifier(random_state=0, n_jobs=1), "LightGBM": light_gbm}


def do_one(learner, n_rows, n_columns):
    """Fit and test a learner in this process, and print the results as JSON."""
    warnings.simplefilter("ignore")
    model = LEARNERS[learner]()
    few = make_table(3_000, n_columns)
    model.fit(*few).predict_proba(few[0])
    X, y = make_table(n_rows, n_columns)
    found = measured(lambda: model.fit(X, y))
    new, classes = make_table(N_TEST, n_columns, seed=1)
    started = time.process_time()
    p = model.predict_proba(new)
    found["predict"] = time.process_time() - started
    found["error"] = 100 * float((p.argmax(axis=1) != classes).mean())
    found["log_loss"] = float(-np.log(p[np.arange(N_TEST), classes]).mean())
    print(json.dumps(found))


def main():
    """Read the command line, and print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 300_000], help="rows of training")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--inside", action="store_true", help="fit in this process, and print JSON")
    arguments = parser.parse_args()
    if arguments.inside:
        do_one(arguments.learners[0], arguments.rows[0], arguments.columns)
        return
    print("| rows | learner | fit [s] | predict [s] | memory [MiB] | error [%] | log loss |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for n_rows in arguments.rows:
        for learner in arguments.learners:
            options = ["--rows", str(n_rows), "--columns", str(arguments.columns), "--learners", learner, "--inside"]
            command = [sys.executable, "-m", "benchmarks.speed.many_rows", *options]
            own = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
            memory = own["peak"] - own["before"]
            print(
                f"| {n_rows:,} | {learner} | {own['seconds']:.1f} | {own['predict']:.2f} | {memory:,.0f} | "
                f"{own['error']:.2f} | {own['log_loss']:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
