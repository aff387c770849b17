"""The runs in their order, with one line of results per finished fold."""

import time
import warnings
from importlib import import_module, metadata
from itertools import groupby
from operator import attrgetter

import sklearn

from benchmarks.shared.results import Results, line_key
from benchmarks.shared.versions import VERSIONS

from ..runs import PUBLISHED, warm_up
from .fits import measure
from .learners import LEARNERS
from .sets import SEEDS, cells, load_set

FILE = "tables.jsonl"
key = line_key("set", "seed", "fold", "learner")


def versions():
    """Return the versions of all packages of the learners in words."""
    packages = sorted({learner.package for learner in LEARNERS.values() if learner.package and learner.is_installed})
    own = [f"{package} {_version(package)}" for package in packages]
    return ", ".join([VERSIONS, f"scikit-learn {sklearn.__version__}", *own])


def _version(package):
    """Return the version that a package states, or that it was installed with."""
    stated = getattr(import_module(package), "__version__", None)
    return stated or metadata.version(package)


def plan(sets, seeds, learners, size):
    """Return (seed, set, learners) in order: stages, seeds, and small sets first; published parts have one seed."""

    def order(name):
        return name.endswith(PUBLISHED), size.get(name.removesuffix(PUBLISHED), 0), name

    stage = attrgetter("stage")
    return [
        (seed, name, some)
        for some in [list(group) for _, group in groupby(sorted(learners, key=stage), stage)]
        for seed in seeds
        for name in sorted(sets, key=order)
        if seed == SEEDS[0] or not name.endswith(PUBLISHED)
    ]


def attempt(model, table, fold, jobs):
    """Return the results on a fold, or the failure."""
    train, test = table.folds[fold - 1]
    sizes = {
        "n_folds": len(table.folds),
        "n_train": len(train),
        "n_test": len(test),
        "n_features": len(table.is_categorical),
        "n_categorical": int(table.is_categorical.sum()),
        "jobs": jobs,
    }
    try:
        return sizes | measure(model, table, train, test, jobs)
    except Exception as error:  # each peer raises its own classes, and none of them may end days of work
        return sizes | {"failure": f"{type(error).__name__}: {error}"}


def unfinished(steps, results, folder, folds, jobs):
    """Yield all that is not finished: the progress so far, the table, the learner, and the start of its line."""
    for place, (seed, name, some) in enumerate(steps, 1):
        table = load_set(name, folder, seed)
        for learner in some:
            if not learner.is_run_on(table):
                continue
            todo = results.missing(
                {"set": name, "seed": seed, "fold": fold, "learner": learner.name}
                for fold in range(1, 1 + len(table.folds))
                if fold in folds
            )
            if todo and not learner.is_tuned:  # tuning on a few rows would take longer than compilation
                warm_up(learner.make(table, seed, jobs), table.X, table.y)
            for start in todo:
                yield f"{place}/{len(steps)}", table, learner, start


def in_words(line):
    """Return a finished line in words."""
    if "failure" in line:
        return line["failure"]
    return f"{line['error']:.2f} %, {line['log_loss']:.3f} nats in {line['fit_seconds']:.2f} s"


def run(arguments):
    """Run everything that is not finished."""
    started, jobs = time.monotonic(), arguments.jobs
    results = Results(arguments.results / FILE, key, versions())
    wanted = [LEARNERS[name] for name in arguments.learners]
    for learner in wanted:
        if not learner.is_installed:
            print(f'{learner.name} is left out: no {learner.package} here (pip install -e ".[peers]")', flush=True)
    steps = plan(arguments.sets, arguments.seeds, [one for one in wanted if one.is_installed], cells(arguments.data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rare classes, columns of one value, and early ends of iterations
        for place, table, learner, start in unfinished(steps, results, arguments.data, arguments.folds, jobs):
            if arguments.time_limit is not None and time.monotonic() - started > arguments.time_limit:
                print(f"stopped after {arguments.time_limit:g} s; the same command goes on", flush=True)
                break
            line = start | attempt(learner.make(table, start["seed"], jobs), table, start["fold"], jobs)
            results.append(line)
            where = f"{line['set']}, seed {line['seed']}, fold {line['fold']}"
            print(f"[{place}] {where}, {line['learner']}: {in_words(line)}", flush=True)
