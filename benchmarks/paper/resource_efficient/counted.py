"""Networks that are counted and rounded: what else of the library may fit into a budget.

    python -m benchmarks.paper.resource_efficient run counted --sets letter

Counts are of 80 % of a fold's training part and of all of it; each is scored in float32 and rounded to 48 formats.
"""

import json

from benchmarks.paper.shared.command import VERSIONS
from benchmarks.paper.shared.results import append
from tanlearn import BayesNetClassifier, FixedPoint, Structure, round_tables
from tanlearn.baselines import ChowLiu, KDependence

from .report import FORMATS
from .scoring import errors_of

LEARNERS = {"NB, counted": None, "Chow-Liu TAN, counted": ChowLiu(root=0), "KDB-2, counted": KDependence(k=2)}
#: What makes a line.
KEY = ("set", "learner", "fold", "part", "bits")


def key(line):
    """Return what names a line."""
    return json.dumps([line[name] for name in KEY])


def run_counted(problem, done, path):
    """Count what is not counted yet."""
    for fold, name, part in problem.parts():
        for learner, structure in LEARNERS.items():
            line = {"set": problem.name, "learner": learner, "fold": fold, "part": name}
            todo = [bits for bits in (None, *FORMATS) if key({**line, "bits": bits}) not in done]
            if not todo:
                continue
            if structure is None:
                structure = Structure.naive_bayes(problem.n_features)
            model = BayesNetClassifier(structure=structure).fit_encoded(part.data)
            for bits in todo:
                tables = round_tables(model.tables_, FixedPoint(*bits)) if bits else model.tables_
                found = {
                    **errors_of(model.structure_, part, problem.folds[fold - 1], tables),
                    "n_cells": model.tables_.layout.n_cells,
                    "n_folds": len(problem.folds),
                }
                append(path, {**line, "bits": bits, **found, "versions": VERSIONS})
            print(f"{problem.name} {learner}, fold {fold}, part {name}: {len(todo)} lines", flush=True)
