"""Are the models of all learners the same, bit for bit, before and after a change, and do old files still load?

Fits every learner of the registry to the digits and to letter (where the published sets are), 20 epochs where there are
epochs, saves the models in FOLDER, and writes digests of structures, cells, log-probabilities and classes beside them.
With --before, another such folder, it also loads the files there, and names every model that is not the same.

Of this project it knows public names only, so that the file itself runs in an older checkout, too, for the other side:
cd OLDER && python ../tanlearn/benchmarks/quality/same_models.py FOLDER
"""

import argparse
import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tanlearn
from tanlearn.baselines import LEARNERS

LETTER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "discretized" / "letter.npz"
#: Rows of learners that solve a programme of the size of the table.
FEW = {"NB CVX-MM": 150}


def tables():
    """Return training rows, classes and test rows by the name of the set."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, _ = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    found = {"digits": (X, y, X_test)}
    if LETTER.exists():
        with np.load(LETTER) as file:
            found["letter"] = file["x_tr_fold1"], file["t_tr_fold1"], file["x_te_fold1"]
    return found


def digest(*arrays):
    """Return a short name of the types, shapes and bits of some arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def answers(model, X, X_test):
    """Return the bits of what a model says; of one with cycles, which asks for known values, on its training rows."""
    structure = getattr(model, "structure_", None)
    rows = X_test[:2000] if structure is None or structure.is_acyclic else X[:1000]
    return digest(model.predict_log_proba(rows), model.predict(rows))


def describe(model, X, X_test):
    """Return the digests of a fitted model; an ensemble is known by its answers."""
    found = {"answers": answers(model, X, X_test)}
    if hasattr(model, "tables_"):
        found |= {"parents": digest(model.structure_.parents), "cells": digest(model.tables_.cells)}
    return found


def file_name(name, learner):
    """Return the name of a model's file."""
    return f"{name}_{learner}.tan".replace(" ", "_")


def differing(found, before, data):
    """Return the models that are others than those in a folder, and the files there that answer otherwise now."""
    old = json.loads((before / "digests.json").read_text(encoding="utf-8"))
    others = [f"model of {key}" for key in sorted(found.keys() | old.keys()) if found.get(key) != old.get(key)]
    for key, digests in old.items():
        name, _, learner = key.partition("/")
        if name in data:
            X, _, X_test = data[name]
            if answers(tanlearn.load(before / file_name(name, learner)), X, X_test) != digests["answers"]:
                others.append(f"file of {key}")
    return others


def main(argv=None):
    """Fit, save, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), metavar="NAME")
    arguments = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message="discretisation left|nothing in")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found, data = {}, tables()
    for name, (X, y, X_test) in data.items():
        for learner in arguments.learners:
            n_rows = FEW.get(learner, len(X))
            model = LEARNERS[learner].make(n_epochs=20).fit(X[:n_rows], y[:n_rows])
            model.save(arguments.folder / file_name(name, learner))
            found[f"{name}/{learner}"] = describe(model, X, X_test)
            print(name, learner, *found[f"{name}/{learner}"].values(), flush=True)
    (arguments.folder / "digests.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    if arguments.before is not None:
        others = differing(found, arguments.before, data)
        print(f"{len(found)} models, {len(others)} differences", *others, sep="\n")
        raise SystemExit(bool(others))


if __name__ == "__main__":
    main()
