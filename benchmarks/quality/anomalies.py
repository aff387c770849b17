"""Outliers without labels: TANDensity and learners of scikit-learn and PyOD, with a rare class as the anomaly.

    python -m benchmarks.quality.anomalies run --pyod OTHER/bin/python   # ten minutes; resumes if interrupted
    python -m benchmarks.quality.anomalies report                        # writes anomalies.md from what is finished
    python -m benchmarks.quality.anomalies pack

PyOD runs in a separate environment, which --pyod names. Without this option, the learners of PyOD are left out. To
repeat all runs after a change of TANDensity, remove results/anomalies.jsonl and results/anomalies.jsonl.xz."""

import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import TableEncoder, TANDensity

from .imputation import Indicators, categorical_columns, impute_base

#: Tables of mostly categorical columns, and of mostly numeric ones.
CATEGORICAL = (
    *("mushroom", "chess", "vote", "soybean-large", "car", "lymphography", "breast", "adult", "german", "flare"),
    *("tic-tac-toe", "dermatology"),
)
NUMERIC = ("page-blocks", "ann-thyroid", "wine-quality-white", "segment", "vehicle", "diabetes")
MOST_ROWS, RARE, SEEDS, FEWEST = 2_000, 0.05, (0, 1), 5
OURS = "TANDensity"
PYOD = ("ECOD", "COPOD", "HBOS")
LEARNERS = (OURS, "IsolationForest", "LocalOutlierFactor", *PYOD)
key = line_key("set", "seed", "learner")
#: Run by the interpreter of PyOD: the AUC and the seconds of a learner on the rows of a file.
PROGRAM = """
import importlib, json, sys, time
import numpy as np
from sklearn.metrics import roc_auc_score
path, name = sys.argv[1:]
with np.load(path) as file:
    Z, is_rare = file["Z"], file["is_rare"]
kind = getattr(importlib.import_module(f"pyod.models.{name.lower()}"), name)
started = time.process_time()
model = kind().fit(Z)
seconds = time.process_time() - started
print(json.dumps({"auc": float(roc_auc_score(is_rare, model.decision_scores_)), "seconds": seconds}))
"""


def load(name, seed, folder):
    """Return rows of which about one in twenty has the rare class, a mask of them, and that of categorical columns."""
    with np.load(folder / "raw" / f"{name}.npz") as file:
        X, y, is_categorical = file["X"].astype(float), file["y"], file["is_categorical"]
        if "missing" in file:
            X[file["missing"]] = np.nan
    rng = np.random.default_rng(seed)
    classes, counts = np.unique(y, return_counts=True)
    rare = min((count, c) for c, count in zip(classes.tolist(), counts.tolist(), strict=True) if count >= FEWEST)[1]
    others, own = rng.permutation(np.flatnonzero(y != rare)), rng.permutation(np.flatnonzero(y == rare))
    others = others[: round(MOST_ROWS * (1 - RARE))]
    own = own[: max(FEWEST, round(len(others) * RARE / (1 - RARE)))]
    rows = rng.permutation(np.concatenate([others, own]))
    return X[rows], y[rows] == rare, categorical_columns(X[rows], is_categorical)


def measure(learner, X, is_rare, is_categorical, pyod):
    """Return the AUC and the seconds of a learner; all but TANDensity get indicators, and no missing values."""
    if learner == OURS:
        model = TANDensity(encoder=TableEncoder(discrete_features=is_categorical), random_state=0)
        started = time.process_time()
        scores = -model.fit(X).decision_function(X)
    else:
        Z = Indicators(X, is_categorical).encode(impute_base(X, is_categorical))
        if learner in PYOD:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.npz"
                np.savez(path, Z=Z, is_rare=is_rare)
                run = subprocess.run(
                    [pyod, "-c", PROGRAM, path, learner], check=True, capture_output=True, text=True, env={}
                )
            return json.loads(run.stdout.splitlines()[-1])
        started = time.process_time()
        if learner == "IsolationForest":
            scores = -IsolationForest(random_state=0).fit(Z).score_samples(Z)
        else:
            scores = -LocalOutlierFactor().fit(Z).negative_outlier_factor_
    return {"auc": float(roc_auc_score(is_rare, scores)), "seconds": round(time.process_time() - started, 3)}


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / "anomalies.jsonl", key)
    for name in arguments.sets:
        for learner in arguments.learners:
            if learner in PYOD and arguments.pyod is None:
                continue
            for start in results.missing({"set": name, "seed": seed, "learner": learner} for seed in SEEDS):
                X, is_rare, is_categorical = load(name, start["seed"], arguments.data)
                with warnings.catch_warnings(action="ignore"):  # of columns with a single value
                    found = measure(learner, X, is_rare, is_categorical, arguments.pyod)
                kinds = {"n_categorical": int(is_categorical.sum()), "n_numeric": int((~is_categorical).sum())}
                counts = {"n_samples": len(X), "n_rare": int(is_rare.sum())}
                line = results.append({**start, **counts, **kinds, **found})
                print(
                    f"{name}, {learner}, seed {start['seed']}: {line['auc']:.3f}, {line['seconds']:.1f} s", flush=True
                )


def table(lines, names):
    """Return a row of mean AUC for each table, with the best learner in bold, the mean, and seconds."""
    rows = []
    for name in names:
        own = [line for line in lines if line["set"] == name]
        means = [
            np.mean([line["auc"] for line in own if line["learner"] == learner] or [np.nan]) for learner in LEARNERS
        ]
        if not own or np.isnan(means).any():
            continue
        best = max(round(value, 3) for value in means)
        cells = [f"**{value:.3f}**" if round(value, 3) == best else f"{value:.3f}" for value in means]
        shape = own[0]
        columns = f"{shape['n_categorical']} + {shape['n_numeric']}"
        rows.append([name, f"{shape['n_samples']:,}", str(shape["n_rare"]), columns, *cells])
    return markdown_table(["data set", "rows", "rare", "categorical + numeric", *LEARNERS], rows) if rows else ""


def complete_means(lines, names):
    """Return the mean AUC of all learners on each table on which all of them are complete, (n_tables, n_learners)."""
    found = []
    for name in names:
        own = {who: [x["auc"] for x in lines if (x["set"], x["learner"]) == (name, who)] for who in LEARNERS}
        if all(len(values) == len(SEEDS) for values in own.values()):
            found.append([np.mean(values) for values in own.values()])
    return np.array(found)


def summary(lines, kinds):
    """Return the table of the mean AUC of all learners, with the numbers of data sets on which each is the best."""
    header, columns = ["learner"], []
    for kind, names in kinds.items():
        found = complete_means(lines, names)
        if len(found):
            best = (found.round(3) == found.round(3).max(axis=1, keepdims=True)).sum(axis=0)
            header.append(f"{len(found)} data sets with mostly {kind} columns")
            columns.append([f"{mean:.3f} (best on {n})" for mean, n in zip(found.mean(axis=0), best, strict=True)])
    return markdown_table(header, [list(row) for row in zip(LEARNERS, *columns, strict=True)]) if columns else ""


def write_report(lines, path):
    """Write the report of lines."""
    seconds = [
        np.median([line["seconds"] for line in lines if line["learner"] == name] or [np.nan]) for name in LEARNERS
    ]
    intro = f"""Each learner is fitted to rows without their classes, and ranks the same rows. About {100 * RARE:.0f} %
    of the rows have the rare class, which is the smallest class with at least {FEWEST} rows. The rule of `TANDensity`
    for missing values was adopted after its AUC on these data sets was known."""
    made = f"""Results are means over {len(SEEDS)} draws of up to {MOST_ROWS:,} rows. All learners have their defaults.
    Learners other than `TANDensity` get categories as indicators, standardized numbers, and the most frequent category
    or the mean for missing values."""
    commands = "benchmarks.quality.anomalies run --pyod OTHER/bin/python", "benchmarks.quality.anomalies report"
    times = ", ".join(f"{name} {value:.2f}" for name, value in zip(LEARNERS, seconds, strict=True))
    advice = """Use `TANDensity` to find rows with an improbable combination of values. It misses a rare class that
    forms a homogeneous group, as in the data set vote, because a latent class can represent the group. The learners of
    PyOD find rows with rare values of single columns. The table shows mean areas under the ROC curve (AUC; higher is
    better):"""
    sections = ["# Outliers without labels", paragraph(advice)]
    sections += [summary(lines, {"categorical": CATEGORICAL, "numeric": NUMERIC}), paragraph(intro)]
    sections += ["## Data sets with mostly categorical columns", table(lines, CATEGORICAL)]
    sections += ["## Data sets with mostly numeric columns", table(lines, NUMERIC)]
    sections += ["## Times", paragraph(f"Median seconds of processor time for a fit with scores: {times}.")]
    sections += ["## How it was measured", paragraph(made), made_by(lines, *commands)]
    write_sections(path, sections)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "anomalies.jsonl"), arguments.output / "anomalies.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", (*CATEGORICAL, *NUMERIC))
    add_choices(running, "--learners", LEARNERS)
    running.add_argument("--pyod", help="interpreter of an environment with PyOD")
    execute(parser, argv)


if __name__ == "__main__":
    main()
