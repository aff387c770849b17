"""Milliseconds per step of gradient TAN (TAN Subset, K = 8, hybrid loss, float32), and simultaneous runs.

    python -m benchmarks.speed.training                  # the published sets; generated data for the shape of mnist
    python -m benchmarks.speed.training --population 32  # letter trainings on one thread and on all cores
    python -m benchmarks.speed.training --bits           # what training for tables of four bits costs a step

A step is timed in the first epochs, where every table is updated, on one thread and on two, and over a whole training
(one thread), at the end of which most candidates have negligible weights. The first times are medians, the last is a
mean; compilation is not counted.
"""

import os
import time
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.data import published_folds
from benchmarks.suite.shapes import SHAPES, make
from tanlearn import EncodedData, FixedPoint, Hybrid, TANClassifier
from tanlearn.search.runs import Part, Run, run_population
from tanlearn.structures.candidate_kinds import Candidates, make_candidates
from tanlearn.training.engines import FusedEngine
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.tan_state import State, plan_epoch
from tanlearn.training.training import train

#: ms a step, measured once and typed in here: of a plain Numba prototype on one thread and on two, and of the authors'
#: TensorFlow code on two cores.
PROTOTYPE = {"letter": "0.25", "satimage": "0.17, 0.14", "usps": "1.35, 0.70", "mnist": "8.6, 3.1"}
TENSORFLOW = {"letter": 5.6, "usps": 150.0}
#: The origin of these constants.
MEASURED_ONCE = """Prototype and TensorFlow are constants, measured once on a shared 2-core machine (AVX-512, znver5),
on 2026-11-21 or before, and not by this command: on another machine, use only their order of magnitude.
TensorFlow is the code of the authors of differentiable TAN, one epoch after tracing (letter 0.75 s, 133 steps; usps
11 s, 73 steps, and before it 226 s of tracing). The version of TensorFlow, the command and the day are not known."""
LOSS = Hybrid(trade_off=100, gamma=1.5)


def load(name, folder):
    """Return the training part of the published first fold, or generated data of the shape."""
    path = folder / f"{name}.npz"
    if not path.exists():
        return make(name, min(SHAPES[name][0], 10_000)), "generated"
    x, y, _, _ = next(published_folds(path))
    return EncodedData.from_codes(x, y), "published"


def sets_of(data):
    """Return eight random earlier features as candidates of every feature."""
    rng = np.random.default_rng(0)
    return make_candidates(Candidates("subset", n_candidates=8), data.n_features, rng=rng)


def first_steps(data, batch_size, n_threads, formats=(None,), n_epochs=5):
    """Return the median times of a step in the first epochs, for every format, in turns."""
    rng = np.random.default_rng(0)
    sets, weights = sets_of(data), np.ones(data.n_samples, np.float32)
    states = [State(data, sets, "uniform", "float32", rng, fixed_point) for fixed_point in formats]
    engines = [FusedEngine(state, data, weights, LOSS, batch_size, n_threads) for state in states]
    seconds = np.empty((n_epochs + 1, len(formats)))
    for times in seconds:
        plan = plan_epoch(data.n_samples, batch_size, sets.n_tables, rng)
        for i, engine in enumerate(engines):
            started = time.perf_counter()
            engine.epoch(plan, (0.01, 1e-3), 10.0)
            times[i] = (time.perf_counter() - started) / len(plan.order)
    return (1000 * np.median(seconds[1:], axis=0)).tolist()


def whole_training(data, batch_size, n_epochs):
    """Return the mean time of a step over a training."""
    settings = TrainingSettings(learning_rate=0.01, n_epochs=n_epochs, batch_size=batch_size)
    started = time.perf_counter()
    train(data, sets_of(data), LOSS, settings, np.random.default_rng(0))
    return 1000 * (time.perf_counter() - started) / n_epochs / (data.n_samples // batch_size)


def steps(arguments):
    """Print a line a data set."""
    print("| data | cells | 1 thread [ms] | 2 threads [ms] | whole training [ms] | prototype [ms] | TensorFlow [ms] |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in arguments.sets:
        data, origin = load(name, arguments.data)
        cells = sets_of(data).layout(data.n_states, data.n_classes).n_cells
        (one,), (two,) = (first_steps(data, SHAPES[name][3], n_threads) for n_threads in (1, 2))
        whole = whole_training(data, SHAPES[name][3], arguments.epochs) if origin == "published" else None
        print(
            f"| {name} ({origin}) | {cells:,} | {one:.2f} | {two:.2f} | "
            f"{'' if whole is None else format(whole, '.2f')} | {PROTOTYPE[name]} | {TENSORFLOW.get(name, '')} |",
            flush=True,
        )
    print(f"\n{MEASURED_ONCE}")


def bits(arguments):
    """Print a line a data set: steps in float32 and of four bits, one thread."""
    print("| data | float32 [ms] | four bits [ms] | times |")
    print("| --- | ---: | ---: | ---: |")
    for name in arguments.sets:
        data, origin = load(name, arguments.data)
        plain, rounded = first_steps(data, SHAPES[name][3], 1, (None, FixedPoint(3, 1)), 15)
        print(f"| {name} ({origin}) | {plain:.2f} | {rounded:.2f} | {rounded / plain:.2f} |", flush=True)


def population(arguments):
    """Print the time of the same trainings on one thread and on all cores, in turns."""
    data, origin = load("letter", arguments.data)
    part = Part(data, np.ascontiguousarray(data.codes[:, :1000]), data.y[:1000])
    runs = [Run(i, 0, {"random_state": i}) for i in range(arguments.population)]
    estimator = TANClassifier(loss=LOSS, n_epochs=arguments.epochs, calibrate=False)
    seconds = {}
    n_cores = max(2, os.cpu_count() or 1)
    for n_jobs in (1, n_cores):
        started = time.perf_counter()
        scores = sorted(
            (result.setting, result.score) for result in run_population(estimator, [part], runs, n_jobs=n_jobs)
        )
        seconds[n_jobs] = time.perf_counter() - started
        print(
            f"{len(runs)} letter ({origin}) trainings of {arguments.epochs} epochs, {n_jobs} threads: "
            f"{seconds[n_jobs]:.1f} s"
        )
        print(f"  digest of the scores: {hash(tuple(scores))}")
    print(f"{seconds[1] / seconds[n_cores]:.2f} times faster on {n_cores} threads")


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "discretized")
    parser.add_argument("--sets", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--population", type=int, help="number of trainings side by side")
    parser.add_argument("--bits", action="store_true", help="time steps for tables of four bits")
    arguments = parser.parse_args()
    (population if arguments.population else bits if arguments.bits else steps)(arguments)


if __name__ == "__main__":
    main()
