"""Gradient TAN on letter: choose the settings on a held-out fifth of the training part, then test once.

python benchmarks/letter.py search      # random settings, held-out error; resumable
python benchmarks/letter.py final       # the chosen settings on the test part, five seeds each
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from tanlearn import BayesNetClassifier, Hybrid, MaximumLikelihood, TableEncoder, TANClassifier
from tanlearn.baselines import ChowLiu

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data" / "discretized"
ENCODER = TableEncoder(discrete_features=True)

#: Chosen by `search`: the lowest held-out error of the random draws, for each kind of candidates.
CHOSEN = {
    "subset": {"trade_off": 100.0, "gamma": 1.5, "learning_rate": 0.01, "structure_learning_rate": 1e-3},
    "order-free": {"trade_off": 100.0, "gamma": 1.5, "learning_rate": 0.01, "structure_learning_rate": 1e-3},
}


def draw(rng):
    """Return one setting: what a first, wider search over the published ranges left as promising."""
    return {
        "trade_off": round(10 ** rng.uniform(1.5, 2.7), 1),
        "gamma": round(10 ** rng.uniform(-0.2, 0.5), 3),
        "eta": float(rng.choice([5, 10, 20])),
        "learning_rate": float(rng.choice([0.01, 0.02, 0.03])),
        "structure_learning_rate": float(rng.choice([5e-4, 1e-3, 2e-3])),
        "init": str(rng.choice(["uniform", "maximum-likelihood"])),
    }


def load(data):
    """Return the published training and test parts."""
    with np.load(data / "letter.npz") as file:
        return [file[f"{part}_fold1"] for part in ("x_tr", "t_tr", "x_te", "t_te")]


def classifier(candidates, seed, n_epochs, trade_off, gamma, eta=10.0, **settings):
    """Return gradient TAN with 8 candidate parents for `subset`, all 15 others for `order-free`."""
    return TANClassifier(
        candidates=candidates,
        loss=Hybrid(trade_off=trade_off, gamma=gamma, eta=eta),
        n_epochs=n_epochs,
        encoder=ENCODER,
        random_state=seed,
        **settings,
    )


def search(arguments):
    """Append one line a draw to the results; a repeated call goes on where the last one ended."""
    x, y, _, _ = load(arguments.data)
    held_out = np.random.default_rng(0).random(len(y)) < 0.2
    arguments.results.parent.mkdir(exist_ok=True)
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    done = [json.loads(line) for line in lines]
    for trial in range(len(done) // len(arguments.candidates), arguments.trials):
        setting = draw(np.random.default_rng(trial))
        for candidates in arguments.candidates:
            started = time.perf_counter()
            model = classifier(candidates, trial, arguments.epochs, **setting).fit(x[~held_out], y[~held_out])
            error = 100 * (1 - model.score(x[held_out], y[held_out]))
            done.append({"candidates": candidates, "error": round(error, 3), "trial": trial, **setting})
            done[-1] |= {"n_epochs": arguments.epochs, "seconds": round(time.perf_counter() - started, 1)}
            with arguments.results.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    for line in sorted(done, key=lambda line: line["error"])[:20]:
        print(json.dumps(line))


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
    parser.add_argument("--results", type=Path, default=HERE / "results" / "letter.jsonl")
    parser.add_argument("--candidates", nargs="+", choices=list(CHOSEN), default=list(CHOSEN))
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    {"search": search, "final": final}[arguments.what](arguments)


if __name__ == "__main__":
    main()
