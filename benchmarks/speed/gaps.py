"""Cost of missing values: seconds of a training with missing values, and on the same table with imputed values.

    python -m benchmarks.speed.gaps                       # adult as it is, and with missing values in half of its rows
    python -m benchmarks.speed.gaps --whole               # soybean-large and mushroom, with default learners
    python -m benchmarks.speed.gaps --learners LBFGS EM   # some of them

Missing values are imputed by the most frequent value of the column. Values are removed independently at random, so that
half of all rows have missing values. Tables are encoded beforehand. The two trainings alternate; the first of each is
not counted, and medians are printed. The search of a batch learner may have more evaluations on one table than on the
other, so one evaluation of the loss and its gradient, on the tree of the imputed table, is also timed.
"""

import time
from pathlib import Path

import numpy as np
from joblib import parallel_config
from sklearn.base import clone

from benchmarks import DATA, command_line
from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    EncodedData,
    ExpectationMaximization,
    HybridCV,
    MaximumLikelihood,
    StochasticGradient,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu
from tanlearn.training.losses import Hybrid
from tanlearn.training.objectives import Objective

LOSS = ConditionalNLL()


def tree(parameters):
    """Return a classifier on a Chow-Liu tree."""
    return BayesNetClassifier(structure=ChowLiu(), parameters=parameters, random_state=0)


LEARNERS = {
    "CG": tree(ConjugateGradient(loss=LOSS, max_iter=100, calibrate=False)),
    "LBFGS": tree(LBFGS(loss=LOSS, max_iter=100, calibrate=False)),
    "SGD": tree(StochasticGradient(n_epochs=20, calibrate=False)),
    "subset": TANClassifier(loss=Hybrid(), n_epochs=20, calibrate=False, random_state=0),
    "order-free": TANClassifier(loss=Hybrid(), candidates="order-free", n_epochs=20, calibrate=False, random_state=0),
    "EM": tree(ExpectationMaximization()),
}
WHOLE = {"TANClassifier()": TANClassifier(random_state=0), "HybridCV": tree(HybridCV())}


def load(name, folder):
    """Return a table as codes, -1 where something is missing, and its classes."""
    with np.load(folder / f"{name}.npz") as file:
        rows = file["train_idx"] if "train_idx" in file else slice(None)
        X, y = file["X"][rows].astype(float), file["y"][rows].astype(np.intp)
        X[file["missing"][rows]] = np.nan
        codes = TableEncoder(discrete_features=file["is_categorical"]).fit(X, y).transform(X)
    return np.where(np.isnan(codes), -1, codes).astype(int), y


def fill(codes):
    """Return a copy with the most frequent values instead of what is missing."""
    filled = codes.copy()
    for column in filled.T:
        column[column < 0] = np.bincount(column[column >= 0]).argmax()
    return filled


def remove(codes, share):
    """Return a copy in which about such a share of the rows misses something."""
    rng = np.random.default_rng(0)
    return np.where(rng.random(codes.shape) < 1 - (1 - share) ** (1 / codes.shape[1]), -1, codes)


def medians(runs, n_times):
    """Return the median times of two runs in turns, the median of their ratios, and what they returned last.

    The first turn is to compile.
    """
    seconds = np.empty((n_times + 1, len(runs)))
    for times in seconds:
        results = []
        for i, run in enumerate(runs):
            started = time.perf_counter()
            results.append(run())
            times[i] = time.perf_counter() - started
    plain, slow = seconds[1:].T
    return np.median(plain), np.median(slow), np.median(slow / plain), results


def compare(title, learners, gaps, filled, n_times):
    """Print a line a learner."""
    share = 100 * gaps.is_incomplete.mean()
    print(f"\n{title}: {gaps.n_samples:,} rows, {gaps.n_features} columns, {share:.0f} % of the rows miss something\n")
    print("| learner | filled in [s] | with gaps [s] | times | iterations, filled and with gaps |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, model in learners.items():
        runs = [lambda data=data, model=model: clone(model).fit_encoded(data) for data in (filled, gaps)]
        plain, slow, ratio, models = medians(runs, n_times)
        iterations = ", ".join(str(n_iterations(found)) for found in models)
        print(f"| {name} | {plain:.2f} | {slow:.2f} | {ratio:.2f} | {iterations} |", flush=True)


def n_iterations(model):
    """Return how many iterations or epochs a model was trained."""
    return getattr(getattr(model, "parameters_", None), "n_iter_", getattr(model, "n_epochs_", 0))


def evaluations(gaps, filled):
    """Print the time of one evaluation of the objective, on the tree of the filled table."""
    rng = np.random.default_rng(0)
    structure = ChowLiu().learn(filled, rng)
    runs = []
    for data in (filled, gaps):
        tables = MaximumLikelihood().fit(structure, data, rng)
        objective = Objective(tables.layout, data, LOSS)
        runs.append(lambda objective=objective, rho=tables.cells: objective(rho))
    plain, slow, ratio, _ = medians(runs, 15)
    print(f"| one evaluation | {plain:.4f} | {slow:.4f} | {ratio:.2f} | |", flush=True)


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "raw")
    parser.add_argument("--whole", action="store_true", help="default learners on small sets, instead of adult")
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--times", type=int, default=3, help="trainings that are counted")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    arguments = parser.parse_args()
    with parallel_config(n_jobs=arguments.jobs):
        if arguments.whole:
            for name in ("soybean-large", "mushroom"):
                codes, y = load(name, arguments.data)
                gaps, filled = (EncodedData.from_codes(table, y) for table in (codes, fill(codes)))
                compare(name, WHOLE, gaps, filled, arguments.times)
            return
        codes, y = load("adult", arguments.data)
        whole = fill(codes)
        filled = EncodedData.from_codes(whole, y)
        learners = {name: LEARNERS[name] for name in arguments.learners}
        for title, table in (("adult", codes), ("adult, half", remove(whole, 0.5))):
            gaps = EncodedData.from_codes(table, y, n_states=filled.n_states)
            compare(title, learners, gaps, filled, arguments.times)
            evaluations(gaps, filled)


if __name__ == "__main__":
    main()
