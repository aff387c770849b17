"""Time to fit and to predict of our learners, compared with a random forest: python -m benchmarks.speed.forests

Each learner is fitted to published data sets with its defaults, on one thread. Rows beyond ``--rows`` are left out at
random. The peer is a random forest of 300 trees on the same columns; missing values stay missing, and categories are
numbers. Times are processor seconds. With ``--repeats``, the smallest of several times is reported. Predictions are
class probabilities of the training rows."""

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from benchmarks import DATA, command_line
from benchmarks.suite.shapes import make_mixed
from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BoostedTermsClassifier,
    KTreeClassifier,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.sources.datasets import load_npz

LEARNERS = {
    "TAN": TANClassifier(random_state=0),
    "k-tree": KTreeClassifier(random_state=0),
    "forest": BayesForestClassifier(random_state=0),
    "network of terms": TermNetClassifier(random_state=0),
    "boosted terms": BoostedTermsClassifier(random_state=0),
    "ensemble": BayesEnsembleClassifier(random_state=0),
    "RandomForest(300)": RandomForestClassifier(300, random_state=0),
}
#: Learners of the table by default.
SHOWN = [name for name in LEARNERS if name not in ("TAN", "k-tree")]
TABLES = ["cleve", "vehicle", "german", "segment", "satimage", "letter"]


def measure(model, X, y):
    """Return the processor times of a fit and of a prediction."""
    started = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    model.predict_proba(X)
    return fitted - started, time.process_time() - fitted


def main():
    """Read the command line, and print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("tables", nargs="*", default=TABLES, help="names of data sets, without extension")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the published sets")
    parser.add_argument("--rows", type=int, default=4_000, help="largest number of rows")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=SHOWN, help="columns of the table")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement; the minimum is printed")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_mixed(300, 0)
    learners = {name: LEARNERS[name] for name in arguments.learners}
    for learner in learners.values():
        measure(clone(learner), X, y)  # compiles the kernels
    print(f"| rows x columns | {' | '.join(f'{name}: fit | predict' for name in learners)} |")
    print("| --- |" + " ---: | ---: |" * len(learners))
    for name in arguments.tables:
        table = load_npz(arguments.data / "raw" / f"{name}.npz")
        rows = np.random.default_rng(0).permutation(len(table.y))[: arguments.rows]
        X, y = table.X[rows], table.y[rows]
        cells = []
        for learner in learners.values():
            model = clone(learner)
            if hasattr(model, "encoder"):
                model.set_params(encoder=TableEncoder(discrete_features=table.discrete_features))
            found = [measure(model, X, y) for _ in range(arguments.repeats)]
            cells += [f"{own:.2f}" for own in np.min(found, axis=0)]
        print(f"| {name}: {len(X):,} x {X.shape[1]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
