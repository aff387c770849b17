"""The command: trainings fold by fold and heat by heat, one line of results per net."""

import json
import time

from benchmarks.shared.data import stream
from benchmarks.shared.results import Results, line_key
from benchmarks.shared.versions import VERSIONS

from .plan import KEY, better_share, grid, net_of, rungs, side_by_side
from .sizes import Shape

try:
    import jax

    from .training import Run, train
except ImportError as error:
    raise SystemExit(
        f'Neural networks need jax and optax ({error}). Install them by: pip install ".[neural]"'
    ) from error

key = line_key(*KEY)
WHAT = ("fold", "part", "epochs", "kind", "activation", "inputs", "n_layers", "batch_norm")


def open_results(path):
    """Return the results in a file."""
    return Results(path, key, f"{VERSIONS}, jax {jax.__version__}")


def run_neural(arguments, problem, results):
    """Run everything that is not finished on a data set."""
    parts = {(fold, name): part for fold, name, part in problem.parts()}
    for run in range(arguments.budget):
        for fold, test in enumerate(problem.folds, start=1):
            shape = shape_of(problem, test.data)
            entered = [
                {**line, "fold": fold} for line in grid(problem.name, shape, run, arguments.multiples, arguments.kinds)
            ]
            for epochs in rungs(arguments.epochs):
                heat = [{**line, "part": "validation", "epochs": epochs} for line in entered]
                run_heat(problem, shape, parts[fold, "validation"], test, heat, results)
                entered = better_share(heat, [results[line]["validation_error"] for line in heat])
            final = [{**line, "part": "test"} for line in heat]
            run_heat(problem, shape, parts[fold, "test"], test, final, results)


def run_heat(problem, shape, part, test, heat, results):
    """Train the nets of a heat that are not finished."""
    todo = list(side_by_side(results.missing(heat)))
    for number, together in enumerate(todo, start=1):
        if number == 1 or net_of(together[0]) != net_of(todo[number - 2][0]):
            jax.clear_caches()  # a compiled program takes 14 MB, and a heat on letter has 430
        finished = measure(problem, shape, part, test, together)
        for line in finished:
            results.append(line)
        first = finished[0]
        errors = [100 * line["test_error"] for line in finished]
        what = ", ".join(f"{name} {first[name]}" for name in WHAT)
        print(
            f"[{number}/{len(todo)}] {problem.name} {what}: {len(errors)} nets, "
            f"{min(errors):.2f} to {max(errors):.2f} %, {first['seconds']:.1f} s each",
            flush=True,
        )


def measure(problem, shape, part, test, together):
    """Train nets at once; return their finished lines."""
    first = together[0]
    net = net_of(first)
    runs = [
        Run(tuple(line["widths"]), line["bits"], line["learning_rate"], stream("weights", seed(line)))
        for line in together
    ]
    shared = stream("batches", problem.name, first["run"], first["fold"], first["part"], first["epochs"])
    started = time.process_time()  # the machine is shared
    wrong = train(net, shape, runs, part, problem.batch_size, first["epochs"], shared)
    test_wrong = wrong(test.codes, test.y)
    is_scored = first["part"] == "validation"
    validation_wrong = wrong(part.codes, part.y) if is_scored else [None] * len(together)
    seconds = (time.process_time() - started) / len(together)
    return [
        {
            **line,
            "validation_error": round(int(validation) / len(part.y), 8) if is_scored else None,
            "validation_rows": len(part.y) if is_scored else None,
            "test_error": round(int(tested) / len(test.y), 8),
            "rows": len(test.y),
            "seconds": round(seconds, 3),
            "n_folds": len(problem.folds),
        }
        for line, tested, validation in zip(together, test_wrong, validation_wrong, strict=True)
    ]


def seed(line):
    """Return the seed of a net's weights."""
    return json.dumps([line[name] for name in KEY])


def shape_of(problem, data):
    """Return the shape of a data set for nets."""
    side = problem.image_shape and problem.image_shape[0]
    return Shape(data.n_features, int(data.n_states.sum()), data.n_classes, side)
