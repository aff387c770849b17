"""Cost of reading and encoding, compared with peers, in time and memory: python -m benchmarks.speed.encoding

Every row is measured in a separate process. The same generated table is processed by tanlearn and by a peer with the
same function: scikit-learn's CategoricalNB, KBinsDiscretizer and OrdinalEncoder and, if installed, LightGBM's Dataset.
Times are medians of wall-clock time, and of processor time, which depends less on other work. Memory is the increase
of the peak during the work (on Linux, where the peak can be reset). The processor time of reading the table is also
shown.
"""

import importlib.util
import json
import os
import subprocess
import sys

from benchmarks import ROOT, command_line

PREPARE = """
import gc, json, statistics, time, warnings
import numpy as np
from tanlearn import MDLPDiscretizer, NaiveBayesClassifier, TableEncoder
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d, n_jobs = {n}, {d}, {n_jobs}
y = rng.integers(0, 2, n)
"""
WHOLE = """
X = np.empty((n, d), np.int64)
for first in range(0, n, 100_000):
    X[first:first + 100_000] = rng.integers(0, 8, X[first:first + 100_000].shape)
"""
REAL = "X = rng.normal(size=(n, d)) + y[:, None] * np.linspace(0, 1, d)\n"
STRINGS = """
import pandas as pd
X = pd.DataFrame({{j: rng.choice([f"value {{i}}" for i in range(12)], n) for j in range(d)}})
"""
NAIVE_BAYES = "from sklearn.naive_bayes import CategoricalNB\n"
#: Name, rows, columns, table, what tanlearn does, the peer, and what that does
NB, CUTS = "NaiveBayesClassifier(n_jobs=n_jobs).fit(X, y)", "MDLPDiscretizer(n_jobs=n_jobs).fit(X, y)"
MODEL, OTHER = f"{WHOLE}model = {NB}\n", f"{NAIVE_BAYES}other = CategoricalNB(min_categories=8).fit(X[:1], y[:1])\n"
ENCODER = "from sklearn.preprocessing import OrdinalEncoder\npeer = lambda: OrdinalEncoder().fit_transform(X)"
BINS = """
from sklearn.preprocessing import KBinsDiscretizer
peer = lambda: KBinsDiscretizer(8, encode="ordinal", quantile_method="linear", subsample=None).fit(X)
"""
DATASET = "import lightgbm\npeer = lambda: lightgbm.Dataset(X, y, params=dict(verbose=-1)).construct()"
DOOR = f"{MODEL}door, row = model.row_predictor(), tuple(X[0].tolist())\n"
LINES = [
    ("fit, int64", 1_000_000, 50, WHOLE, NB, "CategoricalNB", NAIVE_BAYES + "peer = lambda: CategoricalNB().fit(X, y)"),
    ("predict, int64", 1_000_000, 50, MODEL, "model.predict(X)", "CategoricalNB",
     OTHER + "peer = lambda: other.predict(X)"),
    ("fit, int64", 4_000_000, 50, WHOLE, NB, None, ""),
    ("fit, strings in pandas", 200_000, 50, STRINGS, NB, "OrdinalEncoder", ENCODER),
    ("fit of cuts", 200_000, 50, REAL, CUTS, "KBinsDiscretizer", BINS),
    ("fit of cuts", 200_000, 50, REAL, CUTS, "lightgbm", DATASET),
    ("fit of cuts, one column", 10_000_000, 1, REAL, CUTS, None, ""),
    ("predict, one row", 10_000, 16, MODEL + "X = X[:1]\n", "model.predict(X)", "CategoricalNB",
     OTHER + "peer = lambda: other.predict(X)"),
    ("row_predictor().predict", 10_000, 16, DOOR, "door.predict(row)", None, ""),
]  # fmt: skip
MEASURE = """
def seconds(work):
    work()
    wall, used = [], []
    for _ in range({repeats}):
        started = time.perf_counter(), time.process_time()
        for _ in range({inner}):
            work()
        wall.append((time.perf_counter() - started[0]) / {inner})
        used.append((time.process_time() - started[1]) / {inner})
    return statistics.median(wall), statistics.median(used)
def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 2**10
ours = lambda: {ours}
gc.collect()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before = memory("VmRSS")
ours()
found = {{"memory": memory("VmHWM") - before, "ours": seconds(ours)}}
found["read"] = seconds(lambda: X.sum())[1] if isinstance(X, np.ndarray) else None
{peer}
found["peer"] = seconds(peer) if {has_peer} else None
print(json.dumps(found))
"""


def measure(line, n_jobs, repeats):
    """Return what a fresh process measured."""
    _, n, d, table, ours, peer, code = line
    inner = 500 if d == 16 else 1
    settings = {
        "n": n,
        "d": d,
        "n_jobs": n_jobs,
        "repeats": repeats,
        "inner": inner,
        "ours": ours,
        "has_peer": peer is not None,
    }
    text = (PREPARE + table).format(**settings) + MEASURE.format(peer=code, **settings)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, check=True, env=environment, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def spell(seconds):
    """Return a time with its unit."""
    return "" if seconds is None else f"{seconds:.3f} s" if seconds > 1e-3 else f"{seconds * 1e6:.1f} µs"


def main():
    """Read the command line, and print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement; the median is printed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads to measure with")
    arguments = parser.parse_args()
    print("| | rows x columns | threads | tanlearn | processor | beyond the table | reading it once | peer | | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for line in LINES:
        name, n, d, peer = *line[:3], line[5]
        if peer == "lightgbm" and importlib.util.find_spec(peer) is None:
            continue
        for n_jobs in arguments.threads[: 1 if d == 16 else None]:
            found = measure(line, n_jobs, arguments.repeats)
            wall, used = found["ours"]
            theirs, ratio = (spell(found["peer"][0]), f"{found['peer'][0] / wall:.1f}") if peer else ("", "")
            print(
                f"| {name} | {n:,} x {d} | {n_jobs} | {spell(wall)} | {spell(used)} | {found['memory']:.0f} MiB | "
                f"{spell(found['read'])} | {peer or ''} | {theirs} | {ratio} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
