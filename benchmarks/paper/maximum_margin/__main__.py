"""Tables 1 to 7 of maximum margin Bayesian network classifiers, for all available data.

    python -m benchmarks.paper.maximum_margin run usps                  # resumes if interrupted
    python -m benchmarks.paper.maximum_margin run mnist --n-jobs 2 --verbose
    python -m benchmarks.paper.maximum_margin run convex --seeds 0 1 2  # tables 6 and 7, on a few rows of usps
    python -m benchmarks.paper.maximum_margin run kappa --seeds 0 1 2 3     # figure 5, on usps
    python -m benchmarks.paper.maximum_margin run variants --seeds 0 1 --tune-rows 4000
    python -m benchmarks.paper.maximum_margin report

Structures are learned once and are stored in the results. All settings are selected on five folds of the training rows:
lambda and kappa on at most --tune-rows rows, and the number of iterations on all rows. --rows limits the number of
training rows.

TIMIT is a licensed corpus, and the image of the Washington D.C. Mall was not found. If you have them, prepare archives
with X, y, train_idx and test_idx (see tanlearn.sources.datasets.load_npz); run --timit Ma+Fe-4.npz --dc-mall FILE then
computes the rows of tables 3 and 5. A file of TIMIT has the name of its row.
"""

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks.paper.order_based.learners import learn_structure
from benchmarks.shared.command import add_choices, add_experiments, execute, parsers
from benchmarks.shared.data import split, stream
from benchmarks.shared.results import Results, line_key, read
from tanlearn import EncodedData, Structure

from . import variants
from .data import FEW_ROWS, Excerpt, archive, mnist, usps
from .learners import CONVEX_VARIANTS, FIGURE_5, LEARNERS, PUBLISHED, STRUCTURES, TUNED, run_aode, run_svm
from .report import write_report

EXPERIMENTS = ("usps", "mnist", "kappa", "convex", "variants")
KEY = ("set", "structure", "parameters", "seed", "tune_rows")
key = line_key(*KEY)
PARAMETERS = ("ML", "ML, alpha=1", "CG-MM", "CG-CL", "HYB")
CONVEX = ("ML", "ML, alpha=1", "CG-MM", "CVX-MM", *CONVEX_VARIANTS, "CVX-MM, eq. 9")
#: Classifiers that are not a Bayesian network with one structure.
OTHERS = {"AODE": ("ML",), "SVM": (PUBLISHED, TUNED)}
#: The paper's sigma of the support vector machine (tables 1 to 3 and 5).
SIGMAS = {"usps": 0.005, "mnist": 0.01, "timit": 0.05, "dc-mall": 0.05}


def problems(arguments):
    """Yield all problems with their experiment, their seed, and the structures and parameters to learn."""
    every = {**dict.fromkeys(STRUCTURES, PARAMETERS), **OTHERS}
    naive = {name: every[name] for name in ("NB", "SVM")}
    experiments = arguments.experiments or (() if arguments.timit or arguments.dc_mall else EXPERIMENTS)
    for seed in arguments.seeds:
        whole = usps(arguments.data, seed, arguments.rows)
        for experiment in experiments:
            if experiment == "usps":
                yield experiment, whole, seed, every
            elif experiment == "mnist":
                yield experiment, mnist(arguments.data, arguments.rows), seed, every
            elif experiment == "kappa":
                yield experiment, whole, seed, dict.fromkeys(("NB", "TAN-CMI"), FIGURE_5)
            elif experiment == "variants":
                yield experiment, whole, seed, dict.fromkeys(variants.STRUCTURES, (variants.BASE, *variants.VARIANTS))
            else:
                for n_rows in FEW_ROWS:
                    yield experiment, Excerpt(whole, n_rows, seed), seed, {"NB": CONVEX}
        for experiment, paths in (("timit", arguments.timit), ("dc-mall", arguments.dc_mall)):
            for path in paths:
                yield experiment, archive(path, experiment), seed, naive


def plan(arguments):
    """Yield the experiment, the problem and the start of the line of everything to run."""
    for experiment, problem, seed, tasks in problems(arguments):
        for structure, every in tasks.items():
            if structure not in arguments.structures:
                continue
            for parameters in every:
                if arguments.parameters and parameters not in arguments.parameters:
                    continue
                is_sampled = parameters in LEARNERS and LEARNERS[parameters].is_sampled
                line = {"set": problem.name, "structure": structure, "parameters": parameters, "seed": seed}
                yield experiment, problem, {**line, "tune_rows": arguments.tune_rows if is_sampled else 0}


def search(problem, line, arguments):
    """Learn a structure; return its parents, edges and seconds."""
    learner, rng = STRUCTURES[line["structure"]], stream(problem.name, line["structure"], line["seed"])
    structure, seconds = learn_structure(learner, problem.part.data, rng, arguments.n_jobs, arguments.verbose)
    return {"parent": structure.parent.tolist(), "n_edges": structure.n_edges, "seconds": seconds}


def measure(experiment, problem, line, parent, arguments):
    """Train and test a classifier; return its results."""
    rng = stream(*key(line))
    if line["structure"] == "AODE":
        return run_aode(problem, arguments.n_jobs)
    if line["structure"] == "SVM":
        sigma = SIGMAS[experiment] if line["parameters"] == PUBLISHED else None
        return run_svm(problem, sigma, rng, arguments.n_jobs)
    structure = Structure.naive_bayes(problem.part.data.n_features) if parent is None else Structure(parent)
    return LEARNERS[line["parameters"]].run(problem.part, structure, rng, arguments)


def warm_up(todo, arguments):
    """Compile or load all kernels before times are measured."""
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3, (200, 4)), np.arange(200) % 3)
    problem = SimpleNamespace(name="warm-up", part=split(data, np.arange(190), np.arange(190, 200)))
    quiet = argparse.Namespace(**{**vars(arguments), "verbose": 0})
    for structure, parameters in dict.fromkeys((line["structure"], line["parameters"]) for _, _, line in todo):
        if structure != "SVM":
            line = {"set": "", "structure": structure, "parameters": parameters, "seed": 0, "tune_rows": 0}
            parent = search(problem, line, quiet)["parent"] if STRUCTURES.get(structure) else None
            measure("", problem, line, parent, quiet)


def sizes(part):
    """Return the sizes of the data."""
    return {"n_train": part.data.n_samples, "n_test": len(part.y), "n_features": part.data.n_features}


def progress(line):
    """Return a finished line in words."""
    found = f"{line['n_edges']} edges" if "parent" in line else f"{100 * (line['rate'] or 0):.2f} %"
    seconds = line["seconds"] + line.get("tuning_seconds", 0)
    what = ", ".join(str(line[name]) for name in KEY[:3])
    return f"{what}: {line.get('failure') or found} in {seconds:.1f} s"


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / "maximum_margin.jsonl", key)
    todo = [task for task in plan(arguments) if task[2] not in results]
    warm_up(todo, arguments)

    def finish(problem, start, found):
        line = {**start, **sizes(problem.part), **found, "n_jobs": arguments.n_jobs}
        results.append({name: round(value, 6) if isinstance(value, float) else value for name, value in line.items()})
        print(progress(line), flush=True)

    for number, (experiment, problem, line) in enumerate(todo, start=1):
        print(f"[{number}/{len(todo)}]", end=" ", flush=True)
        parent = None
        if STRUCTURES.get(line["structure"]):
            structure = {**line, "parameters": "structure", "tune_rows": 0}
            if structure not in results:
                finish(problem, structure, search(problem, line, arguments))
            parent = results[structure]["parent"]
        finish(problem, line, measure(experiment, problem, line, parent, arguments))


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / "maximum_margin.jsonl"), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_experiments(running, EXPERIMENTS, ())
    add_choices(running, "--structures", [*STRUCTURES, *OTHERS])
    names = sorted({*PARAMETERS, *FIGURE_5, *variants.VARIANTS, *CONVEX, *sum(OTHERS.values(), ())})
    add_choices(running, "--parameters", names, default=None)
    running.add_argument("--seeds", nargs="+", type=int, default=[0], help="of partitions, folds and samples")
    running.add_argument("--rows", type=int, help="train on so many rows only")
    running.add_argument(
        "--tune-rows", type=int, default=12_000, help="rows that lambda and kappa are tuned on, at most"
    )
    running.add_argument("--max-iter", type=int, default=100, help="iterations of conjugate gradient, at most")
    running.add_argument("--timit", nargs="+", type=Path, default=[], metavar="FILE")
    running.add_argument("--dc-mall", nargs="+", type=Path, default=[], metavar="FILE")
    running.add_argument("--n-jobs", type=int, default=1, help="threads of a learner")
    running.add_argument("--verbose", action="store_true", help="print every edge and every fold")
    execute(parser, argv)


if __name__ == "__main__":
    main()
