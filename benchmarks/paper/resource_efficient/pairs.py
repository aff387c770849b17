"""Gradient k-trees, with two parents per feature, in few bits: further models of this library for a budget.

    python -m benchmarks.paper.resource_efficient run k-trees --sets letter

Loss and number of candidates are chosen by the validation error of each fold: for float32, and for every number of bits
after rounding. The settings for float32 are also trained in some formats. The best models are trained on the whole
training part.
"""

import itertools
import time

from benchmarks.shared.results import line_key
from tanlearn import Candidates, ConditionalNLL, FixedPoint, KTreeClassifier, Margin, round_tables

from .report import FORMATS, N_BITS
from .scoring import errors_of

TRAINED, ROUNDED = "k-tree, trained", "k-tree, rounded"
LOSSES = {"likelihood": ConditionalNLL(), "margin": Margin(scale=0.03, kappa=1, eta=10)}
#: Losses, and numbers of candidates: fewer candidates lead to other parents, and to larger or smaller CPTs.
CHOICES = tuple(itertools.product(LOSSES, (4, 8, 14)))
#: Integer and fraction bits; scores are shifted below zero, so that all bits are those of a magnitude.
TRAINED_FORMATS = tuple(
    (integer_bits, n_bits - integer_bits) for n_bits in (1, 2, 3, 4, 8) for integer_bits in (3, 4, 5)
)
key = line_key("set", "learner", "fold", "part", "bits", "choice")


def run_pairs(problem, results):
    """Run everything that is not finished on a data set."""
    for fold, parts in itertools.groupby(problem.parts(), key=lambda found: found[0]):
        parts = {name: part for _, name, part in parts}
        test, common = problem.folds[fold - 1], {"set": problem.name, "fold": fold, "n_folds": len(problem.folds)}

        def train(choice, name, bits=None, parts=parts, test=test, common=common):
            line = {**common, "learner": TRAINED, "part": name, "bits": bits, "choice": choice}
            if line not in results:
                for found in _trained(line, parts[name], test):
                    results.append(found)
            return results[line]

        floats = [train(choice, "validation") for choice in CHOICES]
        chosen = min(floats, key=_error)["choice"]
        wanted = [chosen]
        scored = {**common, "learner": ROUNDED, "part": "validation"}
        for n_bits in N_BITS:
            formats = [format_ for format_ in FORMATS if sum(format_) == n_bits]
            names = itertools.product(formats, CHOICES)
            rounded = [results[{**scored, "bits": bits, "choice": choice}] for bits, choice in names]
            wanted.append(min(rounded, key=_error)["choice"])
        for choice in wanted:
            train(choice, "test")
        for _, formats in itertools.groupby(TRAINED_FORMATS, key=sum):
            best = min((train(chosen, "validation", bits) for bits in formats), key=_error)
            train(chosen, "test", best["bits"])


def _error(line):
    """Return the error of a line."""
    return line["error"]


def _trained(line, part, test):
    """Train a k-tree; return the lines of its rounded formats if it is a float one, then its own line."""
    (loss, n_candidates), bits = line["choice"], line["bits"] and tuple(line["bits"])
    candidates = Candidates("information", n_candidates=n_candidates)
    model = KTreeClassifier(candidates=candidates, loss=LOSSES[loss], bits=bits, calibrate=False, random_state=0)
    started = time.thread_time()  # the machine is shared
    model.fit_encoded(part.data)
    line = {**line, "n_cells": model.tables_.layout.n_cells}
    line |= {"seconds": round(time.thread_time() - started, 3)}
    found = {**line, **errors_of(model.structure_, part, test, model.tables_)}
    what = f"fold {line['fold']}, part {line['part']}, {loss}, {n_candidates} candidates, bits {bits}"
    print(f"{line['set']} k-tree, {what}: {100 * found['error']:.2f} % in {line['seconds']:.1f} s", flush=True)
    rounded = []
    for format_ in FORMATS if bits is None else ():
        tables = round_tables(model.tables_, FixedPoint(*format_))
        errors = errors_of(model.structure_, part, test, tables)
        rounded.append({**line, "learner": ROUNDED, "bits": format_, **errors})
    return [*rounded, found]
