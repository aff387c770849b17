"""Gradient TAN on letter: choose the settings on a held-out fifth of the training part, then test once.

python benchmarks/letter.py search      # every setting of a grid, two seeds; goes on where it was stopped
python benchmarks/letter.py final       # the chosen settings on the test part, five seeds each
"""

import argparse
import collections
import itertools
import json
import time
from pathlib import Path

import numpy as np

from tanlearn import BayesNetClassifier, Hybrid, MaximumLikelihood, TableEncoder, TANClassifier
from tanlearn.baselines import ChowLiu

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data" / "discretized"
ENCODER = TableEncoder(discrete_features=True)

GRID = {"trade_off": [30.0, 100.0, 300.0], "gamma": [1.0, 1.5, 3.0], "learning_rate": [0.01, 0.03]}
#: Chosen by `search`: the lowest mean held-out error of two seeds, for each kind of candidates (letter.jsonl).
CHOSEN = {
    "subset": {"trade_off": 300.0, "gamma": 3.0, "learning_rate": 0.01},
    "order-free": {"trade_off": 300.0, "gamma": 1.5, "learning_rate": 0.01},
}


def load(data):
    """Return the published training and test parts."""
    with np.load(data / "letter.npz") as file:
        return [file[f"{part}_fold1"] for part in ("x_tr", "t_tr", "x_te", "t_te")]


def classifier(candidates, seed, n_epochs, trade_off, gamma, learning_rate):
    """Return gradient TAN with 8 candidate parents for `subset`, all 15 others for `order-free`."""
    return TANClassifier(
        candidates=candidates,
        loss=Hybrid(trade_off=trade_off, gamma=gamma),
        learning_rate=learning_rate,
        n_epochs=n_epochs,
        encoder=ENCODER,
        random_state=seed,
    )


def search(arguments):
    """Append one line a training to the results, and leave out what is there already."""
    x, y, _, _ = load(arguments.data)
    held_out = np.random.default_rng(0).random(len(y)) < 0.2
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    done = [json.loads(line) for line in lines]
    for candidates, *values, seed in itertools.product(arguments.candidates, *GRID.values(), range(2)):
        setting = {**dict(zip(GRID, values, strict=True)), "seed": seed, "n_epochs": arguments.epochs}
        key = {"candidates": candidates, **setting}
        if any(key.items() <= line.items() for line in done):
            continue
        started = time.perf_counter()
        model = classifier(candidates, **setting).fit(x[~held_out], y[~held_out])
        error = 100 * (1 - model.score(x[held_out], y[held_out]))
        done.append({**key, "error": round(error, 3), "seconds": round(time.perf_counter() - started, 1)})
        with arguments.results.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    for candidates in arguments.candidates:
        errors = collections.defaultdict(list)
        for line in done:
            if line["candidates"] == candidates and line["n_epochs"] == arguments.epochs:
                errors[tuple(line[name] for name in GRID)].append(line["error"])
        for values, of_seeds in sorted(errors.items(), key=lambda item: np.mean(item[1]))[:5]:
            print(f"{candidates}: held-out {np.mean(of_seeds):.2f} %, {dict(zip(GRID, values, strict=True))}")


def final(arguments):
    """Print the test errors of the chosen settings."""
    x, y, x_test, y_test = load(arguments.data)
    classic = BayesNetClassifier(structure=ChowLiu(), parameters=MaximumLikelihood(alpha=1), encoder=ENCODER)
    print(f"TAN-CMI ML: {100 * (1 - classic.fit(x, y).score(x_test, y_test)):.2f} %")
    for candidates in arguments.candidates:
        errors = []
        started = time.perf_counter()
        for seed in range(arguments.seeds):
            model = classifier(candidates, seed, arguments.epochs, **CHOSEN[candidates]).fit(x, y)
            errors.append(100 * (1 - model.score(x_test, y_test)))
            print(f"  {candidates} seed {seed}: {errors[-1]:.2f} %", flush=True)
        seconds = (time.perf_counter() - started) / arguments.seeds
        print(
            f"{candidates}: mean {np.mean(errors):.2f} %, worst {max(errors):.2f} % of {arguments.seeds} seeds, "
            f"{seconds:.0f} s a fit; {CHOSEN[candidates]}"
        )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["search", "final"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=HERE / "letter.jsonl")
    parser.add_argument("--candidates", nargs="+", choices=list(CHOSEN), default=list(CHOSEN))
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    {"search": search, "final": final}[arguments.what](arguments)


if __name__ == "__main__":
    main()
