"""Branch and bound, training and rounding, on the folds and structures of figure 6 (section V-C's comparison).

    python -m benchmarks.paper.resource_efficient run bits --sets letter --budget 2    # first: structures, rivals
    python -m benchmarks.paper.resource_efficient run search --sets letter --limit 60
    python -m benchmarks.paper.resource_efficient report

A search starts from rounded frequencies and ends after --limit seconds. For every number of bits and fold it is run
with several margins on 80 % of the training part. The margin with the fewest errors on the rest is used for a search on
the whole training part, for the test rows. The tree is that of a run that the fold chose. The results of training and
rounding on these folds are in the lines of bits. Every line is written when its search ends, and the same command
continues. The progress of a search within its time depends on the machine and its load.
"""

import time
from dataclasses import dataclass

from benchmarks.shared.reports import markdown_table
from benchmarks.shared.results import append_all, line_key, pooled_error
from tanlearn import IntegerBranchAndBound, Structure
from tanlearn.search.runs import Part

from .report import FLOAT, N_BITS, NB, ROUNDED, SUBSET, TAN, TRAINED, best_float, figure_6, mean_error
from .scoring import errors_of

#: Margins to choose from, relative to the largest magnitude.
FACTORS = (0.125, 0.25, 0.5, 1, 2)
KEY = ("set", "learner", "run", "fold", "part", "n_bits", "margin", "limit", "max_nodes")
key = line_key(*KEY)
SEARCHED = "searched"


@dataclass(frozen=True)
class Search:
    """A search: its rows, its structure, and the fields of its line of results that are known beforehand."""

    part: Part
    test: Part
    structure: Structure
    line: dict

    def measure(self):
        """Search; return the finished line."""
        line, n_bits = self.line, self.line["n_bits"]
        split = min(3, n_bits), max(0, n_bits - 3)  # used only for the rounding at the start
        learner = IntegerBranchAndBound(
            bits=split, margin=line["margin"], max_nodes=line["max_nodes"], time_limit=line["limit"]
        )
        started = time.monotonic()
        tables = learner.fit(self.structure, self.part.data, None)
        found = {
            **errors_of(self.structure, self.part, self.test, tables),
            "rows": len(self.part.y),
            "objective": learner.objective_,
            "start": learner.history_[0].loss,
            "bound": learner.bound_,
            "gap": learner.gap_,
            "n_nodes": learner.n_nodes_,
            "seconds": round(time.monotonic() - started, 1),
            "n_cells": tables.n_cells,
        }
        return {**line, **found}


def margins(n_bits):
    """Return the margins to choose from, in steps."""
    return sorted({max(1, round(factor * (2**n_bits - 1))) for factor in FACTORS})


def structures(problem, lines):
    """Return run and structure by learner, fold and part, from the lines of bits.

    The tree is that of the run with the lowest validation error whose tree was also learned on the whole training part,
    which is the case for the runs that are chosen in a column of figure 6.
    """
    found = {}
    floats = [line for line in lines if line["set"] == problem.name and line["bits"] is None]
    trees = {(line["fold"], line["run"]) for line in floats if line["learner"] == SUBSET and line["part"] == "test"}
    able = [line for line in floats if (line["fold"], line["run"]) in trees]
    for fold, run in best_float(able, TAN).items():
        for line in floats:
            if (line["learner"], line["run"], line["fold"]) == (SUBSET, run, fold) and not line["size_weight"]:
                found[TAN, fold, line["part"]] = run, Structure(line["parent"])
    for fold in range(1, len(problem.folds) + 1):
        for part in ("validation", "test"):
            found[NB, fold, part] = 0, Structure.naive_bayes(problem.folds[0].data.n_features)
    return found


def best_margins(lines):
    """Return the smallest margin with the fewest errors for every learner, run, fold and number of bits."""
    best = {}
    for line in lines:
        if line["part"] == "validation":
            place = line["learner"], line["run"], line["fold"], line["n_bits"]
            best[place] = min(best.get(place, (1.0, 0)), (line["error"], line["margin"]))
    return {place: margin for place, (_, margin) in best.items()}


def batches(problem, known, results, arguments):
    """Yield lists of searches: first on validation parts, then with the chosen margins."""
    parts = {(fold, name): part for fold, name, part in problem.parts()}
    found = structures(problem, known)
    if all(learner == NB for learner, _, _ in found):
        print(f"{problem.name}: no tree is there. `run bits` finds some; naive Bayes only.", flush=True)

    def search(learner, fold, part, n_bits, margin):
        run, structure = found[learner, fold, part]
        line = {"set": problem.name, "learner": learner, "run": run, "fold": fold, "part": part}
        line |= {"n_bits": n_bits, "margin": margin, "limit": arguments.limit, "max_nodes": arguments.max_nodes}
        return Search(parts[fold, part], problem.folds[fold - 1], structure, {**line, "n_folds": len(problem.folds)})

    for learner, fold, part in found:
        if part == "validation":
            yield [search(learner, fold, part, n, margin) for n in arguments.bits for margin in margins(n)]
    same = {"set": problem.name, "limit": arguments.limit, "max_nodes": arguments.max_nodes}
    mine = [line for line in results if same.items() <= line.items()]
    for (learner, run, fold, n_bits), margin in best_margins(mine).items():
        if found.get((learner, fold, "test"), (None,))[0] == run and n_bits in arguments.bits:
            yield [search(learner, fold, "test", n_bits, margin)]


def run_searches(problem, known, results, arguments):
    """Run everything that is not finished, in processes, because much of a search is Python code."""
    for batch in batches(problem, known, results, arguments):
        todo = [one for one in batch if one.line not in results]
        for number, line in append_all(results, [one.measure for one in todo], arguments.n_jobs):
            what = ", ".join(f"{name} {line[name]}" for name in KEY[3:7])
            print(
                f"[{number}/{len(todo)}] {problem.name} {line['learner']}, {what}: {100 * line['error']:.2f} %, "
                f"gap {100 * line['gap']:.1f} % after {line['n_nodes']} nodes",
                flush=True,
            )


def figure(lines):
    """Return the test lines of all folds for every learner and number of bits, if they are complete.

    If there are lines of several runs, because more runs of bits chose another tree, the last run is used.
    """
    chosen = best_margins(lines)
    columns = {}
    for line in lines:
        place = line["learner"], line["run"], line["fold"], line["n_bits"]
        if line["part"] == "test" and chosen.get(place) == line["margin"]:
            columns.setdefault((line["learner"], line["n_bits"]), {})[line["fold"]] = line
    found = {column: list(folds.values()) for column, folds in columns.items()}
    return {column: folds for column, folds in found.items() if len(folds) == folds[0]["n_folds"]}


def longest(searched):
    """Return the errors in % with the longest time limit, by data set, and by learner and number of bits."""
    found = {}
    for name in dict.fromkeys(line["set"] for line in searched):
        own = [line for line in searched if line["set"] == name]
        limit = max(line["limit"] for line in own)
        columns = figure([line for line in own if line["limit"] == limit])
        found[name] = {column: 100 * pooled_error(folds) for column, folds in columns.items()}
    return found


def section(name, searched, lines):
    """Return the section of a data set, one table per time limit, with training and rounding on the same folds."""
    _, others = figure_6(lines) if lines else (0, {})
    texts = []
    for limit in sorted({line["limit"] for line in searched}):
        columns = figure([line for line in searched if line["limit"] == limit])
        rows = []
        for learner in (NB, TAN):
            if not any(one == learner for one, _ in columns):
                continue
            for way in (TRAINED, ROUNDED):
                cells = [others.get((learner, way, n_bits)) for n_bits in N_BITS]
                rows.append([f"{learner}, {way}", *(f"{mean_error(one):.2f}" if one else "" for one in cells)])
            cells = [columns.get((learner, n_bits)) for n_bits in N_BITS]
            rows.append([f"{learner}, {SEARCHED}", *(f"{100 * pooled_error(one):.2f}" if one else "" for one in cells)])
            distances = (f"{_mean(one, 'gap', 100):.0f}" if one else "" for one in cells)
            rows.append(["distance to the bound [%]", *distances])
            rows.append(["nodes", *(f"{_mean(one, 'n_nodes'):.0f}" if one else "" for one in cells)])
        if rows:
            table = markdown_table(["bits", *map(str, N_BITS)], rows)
            how = f"Searches of {limit:g} s, with one of {len(FACTORS)} margins, while other programs were running:"
            texts.append(f"{how}\n\n{table}")
    if not texts:
        return ""
    plain = {learner: others[learner, FLOAT, None] for learner in (NB, TAN) if (learner, FLOAT, None) in others}
    floats = ", ".join(f"{learner} {mean_error(folds):.2f}" for learner, folds in plain.items())
    return "\n\n".join(
        [
            f"""## Search: {name}

Branch and bound maximizes the margin, starting from rounded frequencies. It is compared with the same structure trained
for few bits and rounded. {f"Errors with float32 CPTs: {floats}. " if floats else ""}*nodes* is the number of boxes of
CPTs that were examined. *distance to the bound* is the difference between the mean hinge loss on training rows and its
lower bound, in % of this loss: 0 means that the CPTs are optimal. Both columns are means over folds. If few nodes are
examined, the result is determined by rounding and by descent from a relaxation.""",
            *texts,
        ]
    )


def _mean(folds, name, factor=1):
    """Return the mean of a field of lines."""
    return factor * sum(line[name] for line in folds) / len(folds)
