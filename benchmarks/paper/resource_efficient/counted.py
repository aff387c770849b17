"""Networks with counted, rounded parameters: further models of this library for a budget.

    python -m benchmarks.paper.resource_efficient run counted --sets letter

Values are counted in 80 % of a fold's training part, and in the whole training part. Each network is scored in float32
and rounded to 48 formats."""

from benchmarks.shared.results import line_key
from tanlearn import BayesNetClassifier, FixedPoint, Structure, round_tables
from tanlearn.baselines import ChowLiu, KDependence

from .report import FORMATS
from .scoring import errors_of

LEARNERS = {"NB, counted": None, "Chow-Liu TAN, counted": ChowLiu(root=0), "KDB-2, counted": KDependence(k=2)}
key = line_key("set", "learner", "fold", "part", "bits")


def run_counted(problem, results):
    """Run everything that is not finished on a data set."""
    for fold, name, part in problem.parts():
        for learner, structure in LEARNERS.items():
            line = {"set": problem.name, "learner": learner, "fold": fold, "part": name}
            todo = results.missing({**line, "bits": bits} for bits in (None, *FORMATS))
            if not todo:
                continue
            if structure is None:
                structure = Structure.naive_bayes(problem.n_features)
            model = BayesNetClassifier(structure=structure).fit_encoded(part.data)
            for start in todo:
                bits = start["bits"]
                tables = round_tables(model.tables_, FixedPoint(*bits)) if bits else model.tables_
                found = {
                    **errors_of(model.structure_, part, problem.folds[fold - 1], tables),
                    "n_cells": model.tables_.layout.n_cells,
                    "n_folds": len(problem.folds),
                }
                results.append({**start, **found})
            print(f"{problem.name} {learner}, fold {fold}, part {name}: {len(todo)} lines", flush=True)
