"""Learn from more rows than fit into memory: python -m benchmarks.speed.streams [--rows 5000000]

A table of 20 columns (ten categorical, nine numeric, and one with many missing values) is generated in batches. Rows
per second are measured for ``partial_fit`` alone. Memory is the peak of the process after the stated number of rows,
and should not grow."""

import resource
import time

import numpy as np
import pandas as pd

from benchmarks import command_line
from tanlearn import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.baselines import ChowLiu

CITIES = ["Graz", "Linz", "Salzburg", "Villach", "Wien"]
LEARNERS = {"naive Bayes": NaiveBayesClassifier(), "Chow-Liu TAN": BayesNetClassifier(structure=ChowLiu())}


def chunk(n_rows, seed):
    """Return the next rows: columns that depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_rows)
    columns = {}
    before = rng.integers(0, 5, n_rows)
    for i in range(10):
        before = np.where(rng.random(n_rows) < 0.6, before, (y + rng.integers(0, 3, n_rows)) % 5)
        columns[f"city{i}"] = pd.Categorical.from_codes(before, CITIES)
    for i in range(9):
        columns[f"size{i}"] = y * (i % 3) + 0.3 * before + rng.normal(size=n_rows)
    columns["rare"] = np.where(rng.random(n_rows) < 0.4, np.nan, y + rng.normal(size=n_rows))
    return pd.DataFrame(columns), y


def peak():
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Print a line after the first chunk, and for every fifth of the rows."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--chunk", type=int, default=50_000, help="rows at a time")
    arguments = parser.parse_args()
    X_test, y_test = chunk(20_000, -1 % 2**32)
    for name, model in LEARNERS.items():
        seconds, seen = 0.0, 0
        while seen < arguments.rows:
            X, y = chunk(min(arguments.chunk, arguments.rows - seen), seen)
            start = time.perf_counter()
            model.partial_fit(X, y, classes=range(4))
            seconds += time.perf_counter() - start
            seen += len(y)
            if seen == len(y) or seen % max(1, arguments.rows // 5) < len(y):
                print(
                    f"{name}: {seen:>9,} rows, {seen / seconds:>9,.0f} a second, peak {peak():.0f} MiB, "
                    f"{100 * model.score(X_test, y_test):.2f} % right"
                )


if __name__ == "__main__":
    main()
