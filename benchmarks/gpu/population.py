"""Whole trainings on an NVIDIA device and on the CPU.

The trainings of a data set differ in seed, loss, rate and candidates, which are drawn by number with the paper's
protocol (settings "published" in paper/differentiable_tan/cells.py). They are the same on both devices.
"""

import contextlib
import time
from dataclasses import replace

import numpy as np
from scipy.stats import ks_2samp

from benchmarks.paper.differentiable_tan.cells import CELLS
from benchmarks.shared.data import Problem, load
from benchmarks.shared.reports import markdown_table
from benchmarks.shared.results import Results, line_key, read
from benchmarks.suite.shapes import make
from tanlearn import TANClassifier
from tanlearn.kernels._cuda import check_device, cupy
from tanlearn.search.runs import Part, Run, run_population

#: The paper's column: 100 losses, 2 rates and 25 draws of candidates for each of K = 2, 5 and 8.
COLUMN_RUNS, EPOCHS = 15_000, 500
SUBSET = {cell.name: cell for cell in CELLS if cell.family == "TAN Subset"}
SETS = ("letter", "usps")
key = line_key("device", "set", "seed", "epochs")


def require_device():
    """End the command if there is no device."""
    try:
        check_device("cuda")
    except (ImportError, RuntimeError) as error:
        raise SystemExit(str(error)) from None


def card():
    """Return the description of the device."""
    runtime = cupy().cuda.runtime
    found = runtime.getDeviceProperties(0)
    driver, own = (f"{n // 1000}.{n % 1000 // 10}" for n in (runtime.driverGetVersion(), runtime.runtimeGetVersion()))
    chip = f"{found['multiProcessorCount']} multiprocessors, {found['l2CacheSize'] / 1e6:.0f} MB of L2"
    return f"{found['name'].decode()}, {chip}, driver of CUDA {driver}, CuPy {cupy().__version__} of CUDA {own}"


def fold(name, arguments):
    """Return a label and a problem: the published parts, or generated rows of that shape."""
    if (arguments.data / "discretized" / f"{name}.npz").exists():
        (part,), origin = load(name, arguments.data).folds, "published"
    else:
        data, origin = make(name), "generated"
        first, last = np.split(np.arange(data.n_samples), [2 * data.n_samples // 3])
        part = Part(data.take(first), data.codes[:, last], data.y[last])
    part = replace(part, data=part.data.take(slice(arguments.rows)))
    return f"{name} ({origin}, {part.data.n_samples} rows)", Problem(name, (part,))


def make_runs(problem, cells, numbers, n_epochs):
    """Return the runs with some numbers, cell by cell."""
    data = problem.folds[0].data
    drawn = [(cell, cell.draw("published", problem.name, 0, number)) for number in numbers for cell in cells]
    return [Run(i, 0, cell.parameters(problem, data, values, n_epochs)) for i, (cell, values) in enumerate(drawn)]


def trained(problem, runs, device, n_jobs):
    """Yield results and the seconds since the previous one, after compilation."""
    estimator = TANClassifier(device=device, calibrate=False)
    for run in runs[:1]:
        list(run_population(estimator, problem.folds, [replace(run, parameters=run.parameters | {"n_epochs": 3})]))
    before = time.perf_counter()
    with contextlib.closing(run_population(estimator, problem.folds, runs, n_jobs=n_jobs)) as results:
        for result in results:
            if result.failure.split(":")[0].endswith("Error"):  # an error of the machine, such as full memory
                raise SystemExit(f"{result.failure}. Run the same command again to continue.")
            now = time.perf_counter()
            yield result, now - before
            before = now


def population(arguments):
    """Run all trainings that are not finished."""
    if arguments.device == "cuda":
        require_device()
    machine = card() if arguments.device == "cuda" else f"{arguments.n_jobs} threads"
    results = Results(arguments.results, key)
    for name in [name for name in arguments.sets if name in SETS]:
        label, problem = fold(name, arguments)
        place = {"device": arguments.device, "set": label, "epochs": arguments.epochs}
        seeds = [seed for seed in range(arguments.population) if {**place, "seed": seed} not in results]
        runs = make_runs(problem, [SUBSET["TAN Subset K=8"]], seeds, arguments.epochs)
        for result, seconds in trained(problem, runs, arguments.device, arguments.n_jobs):
            line = {
                **place,
                "seed": seeds[result.setting],
                "error": 1.0 if result.failure else round(1 - result.score, 8),  # 1 if diverged
                "wall": round(seconds, 3),
                "failure": result.failure,
                "machine": machine,
            }
            results.append(line)
            print(f"{label}, {arguments.device}, seed {line['seed']}: {100 * line['error']:.2f} %", flush=True)
    report(arguments)


def report(arguments):
    """Print times and errors of both devices, and whether the distributions of errors differ."""
    lines = read(arguments.results)
    if not lines:
        raise SystemExit(f"{arguments.results} holds no trainings: run population first.")
    header = ["data", "epochs", "trained on", "trainings", "diverged", "wall time [s]"]
    rows, texts = [], []
    for name, epochs in sorted({(line["set"], line["epochs"]) for line in lines}):
        found = {"cpu": {}, "cuda": {}}
        for line in lines:
            if (line["set"], line["epochs"]) == (name, epochs):
                found[line["device"]][line["seed"]] = line
        for device, by_seed in found.items():
            if by_seed:
                errors = [100 * line["error"] for line in by_seed.values()]
                quantiles = ", ".join(f"{error:.2f}" for error in np.quantile(errors, np.linspace(0, 1, 5)))
                machine = "; ".join(sorted({line["machine"] for line in by_seed.values()}))
                n_diverged = sum(bool(line["failure"]) for line in by_seed.values())
                row = [name, f"{epochs}", f"{device}: {machine}", f"{len(errors)}", f"{n_diverged}"]
                rows.append([*row, f"{wall(by_seed):.1f}", quantiles])
        texts += [f"{name}, {epochs} epochs: {text}" for text in compared(**found)]
    print(markdown_table([*header, "error [%]: least, quartiles, most"], rows, left=(0, 2, -1)))
    print("\n".join(texts))


def wall(by_seed):
    """Return the total seconds of trainings."""
    return sum(line["wall"] for line in by_seed.values())


def compared(cpu, cuda):
    """Yield sentences that compare the trainings of both devices, given by seed."""
    seeds = sorted(cpu.keys() & cuda.keys())
    if len(cpu) == len(cuda) == len(seeds):
        yield f"the device is {wall(cpu) / wall(cuda):.1f} times faster"
    else:
        yield f"times are not compared, since only {len(seeds)} of {len(cpu.keys() | cuda.keys())} seeds have both"
    if len(seeds) > 1:
        errors = 100 * np.array([[line[seed]["error"] for seed in seeds] for line in (cpu, cuda)])
        differences = errors[1] - errors[0]
        deviation = differences.std(ddof=1) / np.sqrt(len(seeds))
        p = ks_2samp(*errors).pvalue
        verdict = "no difference is seen" if p >= 0.05 else "the distributions DIFFER"
        yield f"errors of {len(seeds)} seeds, Kolmogorov-Smirnov p = {p:.3f}: {verdict}"
        yield (
            f"errors on cuda minus errors on cpu, seed by seed: {differences.mean():+.3f} +- {deviation:.3f} points, "
            f"at most {np.abs(differences).max():.2f}; {np.count_nonzero(differences == 0)} are equal"
        )


def extrapolated(seconds, n_runs, n_epochs):
    """Return the seconds of the published column, extrapolated from some of its trainings."""
    return seconds * COLUMN_RUNS / n_runs * EPOCHS / n_epochs


def column(arguments):
    """Time some trainings of the paper's column TAN Subset on usps, and extrapolate to all of them."""
    require_device()
    label, problem = fold("usps", arguments)
    runs = make_runs(problem, SUBSET.values(), range(arguments.slice), arguments.epochs)
    results = list(trained(problem, runs, "cuda", None))
    seconds = sum(since for _, since in results)
    n_diverged = sum(bool(result.failure) for result, _ in results)
    print(
        f"Measured: {len(runs)} trainings of TAN Subset, {arguments.slice} for each K = 2, 5 and 8, {arguments.epochs} "
        f"epochs, {label}, scored: {seconds:.2f} s on {card()}; {n_diverged} diverged, and ended early\n"
        f"EXTRAPOLATION, not measured: {COLUMN_RUNS:,} such trainings of {EPOCHS} epochs would take "
        f"{extrapolated(seconds, len(runs), arguments.epochs) / 3600:.2f} hours at this rate",
        flush=True,
    )
