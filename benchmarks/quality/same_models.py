"""Are models, descriptions and files the same, bit for bit, before and after a change, and do old files still load?

Fits every learner of the registry and every public estimator to eleven small tables of different kinds, saves the
models in FOLDER, and writes digests of predictions, structures, parameters, descriptions and files next to them. With
--before, another such folder, it also loads the files there, and names everything that differs. An error is a result,
too: its words are compared.

It uses public names only, so that the same file also runs in an older checkout:
cd OLDER && python ../tanlearn/benchmarks/quality/same_models.py FOLDER
"""

import argparse
import hashlib
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris, load_wine

import tanlearn
from tanlearn.baselines import LEARNERS, AnDEClassifier, AODEClassifier, SelectiveKDependenceClassifier

#: Estimators with settings that no learner of the registry has; each is a function, so that each fit has its own.
ESTIMATORS = {
    "naive Bayes, class weights": lambda: tanlearn.NaiveBayesClassifier(class_weight="balanced"),
    "naive Bayes, quantiles": lambda: tanlearn.NaiveBayesClassifier(
        encoder=tanlearn.TableEncoder(discretizer=tanlearn.QuantileDiscretizer(max_bins=4))
    ),
    "naive Bayes, LBFGS": lambda: tanlearn.NaiveBayesClassifier(parameters=tanlearn.LBFGS(max_iter=20)),
    "TAN, subset, bits": lambda: tanlearn.TANClassifier(bits=(3, 2), n_epochs=5, random_state=0),
    "TAN, hybrid": lambda: tanlearn.TANClassifier(loss=tanlearn.Hybrid(), n_epochs=5, random_state=0),
    "k-tree": lambda: tanlearn.KTreeClassifier(loss=tanlearn.ConditionalNLL(), n_epochs=5, random_state=0),
    "forest": lambda: tanlearn.BayesForestClassifier(n_estimators=4, random_state=0),
    "forest, average": lambda: tanlearn.BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
    "AODE, class weights": lambda: AODEClassifier(class_weight="balanced"),
    "A2DE, subsumption": lambda: AnDEClassifier(subsumption=True),
    "selective KDB, sparse": lambda: SelectiveKDependenceClassifier(sparse=True),
}
#: Training rows of learners that solve a program of the size of the table.
FEW = {"NB CVX-MM": 60}


class Rows(NamedTuple):
    """Rows to fit and to predict."""

    X: Any
    y: Any
    weight: Any
    X_test: Any


def tables():
    """Return tables of different kinds: numbers, categories, both, missing values, weights, classes, sizes."""
    rng = np.random.default_rng(0)
    n = 240
    town = rng.choice(["Graz", "Linz", "Wien"], n)
    size, rooms = rng.normal(80, 30, n).round(1), rng.integers(1, 7, n)
    sold = np.where(rng.random(n) < 0.2 + 0.6 * ((town == "Wien") ^ (size > 80)), "yes", "no")
    mixed = pd.DataFrame({"town": town, "size": size, "rooms": rooms, "garden": rng.random(n) < 0.4})
    gaps = mixed.astype({"town": object, "rooms": float, "garden": object}).mask(rng.random(mixed.shape) < 0.1)
    words = pd.DataFrame(rng.choice(list("abcd"), (n, 6)), columns=list("uvwxyz"))
    names = pd.DataFrame({"name": [f"n{i}" for i in rng.integers(0, 400, 900)], "x": rng.integers(0, 3, 900)})
    digits, iris, wine = (load(return_X_y=True) for load in (load_digits, load_iris, load_wine))
    parity = (words == "a").sum(axis=1) % 2
    classes = rng.integers(0, 26, 400)
    letters = classes[:, np.newaxis] + rng.normal(0, 2, (400, 5))
    wide = rng.integers(0, 3, (40, 60))
    return {
        "digits": _split(digits[0][:600, 2:62:4], digits[1][:600]),
        "numbers": _split(*iris),
        "words": _split(words, parity),
        "mixed": _split(mixed, sold),
        "gaps": _split(gaps, sold),
        "whole weights": _split(*wine, rng.integers(0, 3, len(wine[1]))),
        "real weights": _split(*wine, rng.uniform(0.5, 1.5, len(wine[1]))),
        "many classes": _split(letters, classes),
        "many categories": _split(names, names["name"].str[1:].astype(int).to_numpy() % 2),
        "wide": _split(wide, wide[:, 0] % 2),
        "tiny": Rows([["sun", 1.5], ["rain", 2.5], ["sun", 3.5], ["rain", 0.5]], [0, 1, 0, 1], None, [["sun", None]]),
    }


def _split(X, y, weight=None):
    """Return two thirds of the rows to fit, and the others to predict."""
    fitted = np.random.default_rng(1).permutation(len(y)) % 3 > 0
    return Rows(X[fitted], np.asarray(y)[fitted], None if weight is None else weight[fitted], X[~fitted])


def _rows_of(rows, model):
    """Return the rows that a model is fitted to."""
    few = slice(FEW.get(model))
    return Rows(rows.X[few], rows.y[few], None if rows.weight is None else rows.weight[few], rows.X_test)


def digest(*parts):
    """Return a short name of the types, shapes and bits of arrays, or of bytes."""
    found = hashlib.sha256()
    for part in parts:
        if not isinstance(part, bytes):
            found.update(f"{part.dtype}{part.shape}".encode())
            part = np.ascontiguousarray(part).tobytes()
        found.update(part)
    return found.hexdigest()[:16]


def result(ask):
    """Return the digest of a function's result, or its error message."""
    try:
        answer = ask()
    except (ValueError, TypeError, ArithmeticError) as error:
        return f"{type(error).__name__}: {error}"
    return digest(*answer) if isinstance(answer, tuple) else digest(answer)


def answers(model, rows):
    """Return the results of predictions for new rows and for training rows."""
    return {
        f"answers, {name}": result(lambda X=X: (model.predict_log_proba(X), model.predict(X)))
        for name, X in (("new", rows.X_test), ("known", rows.X))
    }


def describe(model, rows, path):
    """Return the results of a fitted model, and save it to a file."""
    model.save(path)
    found = {**answers(model, rows), "file": digest(path.read_bytes())}
    if hasattr(model, "tables_") and hasattr(model, "structure_"):
        found |= {"parents": digest(model.structure_.parents), "cells": digest(model.tables_.cells)}
    if hasattr(model, "describe"):
        found["description"] = result(lambda: json.dumps(model.describe()).encode())
    return found


def differing(found, before, data):
    """Return the differences from a folder, including predictions of the files there."""
    old = json.loads((before / "digests.json").read_text(encoding="utf-8"))
    others = []
    for key in sorted(found.keys() | old.keys()):
        now, then = found.get(key, {}), old.get(key, {})
        names = [name for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name)]
        others += [f"{key}: {', '.join(names)}"] if names else []
        path = before / f"{key.replace('/', ' ')}.tan"
        if path.exists():
            table, _, model = key.partition("/")
            again = answers(tanlearn.load(path), _rows_of(data[table], model))
            others += [f"{key}: {name}, of the file" for name in again if again[name] != then[name]]
    return others


def main(argv=None):
    """Fit, save, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--models", nargs="+", default=[*LEARNERS, *ESTIMATORS], metavar="NAME")
    parser.add_argument("--tables", nargs="+", default=list(tables()), metavar="NAME")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found, data = {}, tables()
    for table in arguments.tables:
        for name in arguments.models:
            rows = _rows_of(data[table], name)
            key = f"{table}/{name}"
            model = ESTIMATORS[name]() if name in ESTIMATORS else LEARNERS[name].make(n_epochs=5)
            try:
                model.fit(rows.X, rows.y, sample_weight=rows.weight)
            except (ValueError, TypeError) as error:
                found[key] = {"fit": f"{type(error).__name__}: {error}"}
            else:
                found[key] = describe(model, rows, arguments.folder / f"{key.replace('/', ' ')}.tan")
            print(key, *found[key].values(), flush=True)
    (arguments.folder / "digests.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    if arguments.before is not None:
        others = differing(found, arguments.before, data)
        print(f"{len(found)} models, {len(others)} differences", *others, sep="\n")
        raise SystemExit(bool(others))


if __name__ == "__main__":
    main()
