"""Structures of networks of terms on ten small raw data sets: edges by gain, and those of structure learners.

    python -m benchmarks.quality.term_structures run       # ten minutes; resumes if interrupted
    python -m benchmarks.quality.term_structures report    # writes term_structures.md
    python -m benchmarks.quality.term_structures pack

`TermNetClassifier` is trained with each structure on three stratified folds.
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import folded, joined, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import TermNetClassifier
from tanlearn.baselines import ChowLiu, GradientStructure, HillClimbing, KDependence

from .term_losses import judge

#: Data sets on which the best structure is chosen, and others.
CHOOSING = "glass", "tic-tac-toe", "heart", "monk-2", "vehicle"
HELD_OUT = "hayes-roth", "balance-scale", "lymphography", "ionosphere", "diabetes"
SETS = tuple(name for pair in zip(CHOOSING, HELD_OUT, strict=True) for name in pair)
DEFAULT = "gain"
#: Parameters of the classifier, for structures with at most one parent and at most two parents per feature.
STRUCTURES = {
    DEFAULT: {},
    "Chow-Liu": {"structure": ChowLiu()},
    "hill climbing": {"structure": HillClimbing(max_parents=1)},
    "gradient": {"structure": GradientStructure()},
    "gain, 2 parents": {"max_parents": 2},
    "KDB, 2 parents": {"max_parents": 2, "structure": KDependence(k=2)},
    "gradient, 2 parents": {"max_parents": 2, "structure": GradientStructure(candidates="gain", max_parents=2)},
}
N_FOLDS = 3
FILE = "term_structures.jsonl"
key = line_key("set", "fold", "structure")


def measure(X, y, train, test, structure):
    """Fit to training rows, and return the results on test rows."""
    started = time.process_time()
    model = TermNetClassifier(random_state=0, **STRUCTURES[structure]).fit(X[train], y[train])
    found = {"seconds": time.process_time() - started, "n_test": len(test), "n_edges": model.structure_.n_edges}
    found["error"], found["log_loss"] = judge(model, X[test], y[test])
    return found


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        X, y = load_table(name, arguments.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about rare classes, and columns with one interval
            folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
            for fold, (train, test) in enumerate(folds, start=1):
                for structure in STRUCTURES:
                    start = {"set": name, "fold": fold, "structure": structure}
                    if start not in results:
                        results.append(start | measure(X, y, train, test, structure))
        print(name, flush=True)


def mean(lines, names, structure, what):
    """Return the mean over data sets of the mean over test rows."""
    means = []
    for name in names:
        own = [one for one in lines if (one["set"], one["structure"]) == (name, structure)]
        means.append(np.average([one[what] for one in own], weights=[one["n_test"] for one in own]))
    return float(np.mean(means))


def best_on(lines, names):
    """Return the structure with the lowest mean log loss."""
    return min(STRUCTURES, key=lambda structure: mean(lines, names, structure, "log_loss"))


def comparison(lines, names, structure):
    """Return the comparison of a structure with the default, in words."""
    ours, default = (np.array([mean(lines, [name], one, "log_loss") for name in names]) for one in (structure, DEFAULT))
    if (ours == default).all():
        return f"With {structure}, the log loss is the same on each of them."
    largest = int(np.abs(ours - default).argmax())
    errors = [mean(lines, names, one, "error") for one in (DEFAULT, structure)]
    return (
        f"With {structure}, the mean log loss is {ours.mean():.3f} instead of {default.mean():.3f}, and the mean "
        f"error {errors[1]:.1f} instead of {errors[0]:.1f} %. The log loss is lower on {(ours < default).sum()} of "
        f"{len(names)} data sets, and higher on {(ours > default).sum()}. The largest difference is on "
        f"{names[largest]}, {ours[largest]:.3f} instead of {default[largest]:.3f}."
    )


def summary(lines, chosen_on, held_out):
    """Return the structure that was chosen on some data sets, and its results on the others, in words."""
    chosen = best_on(lines, chosen_on)
    text = f"On {joined(chosen_on)}, {chosen} has the lowest mean log loss."
    if chosen != DEFAULT:
        text += (
            f" The following results are on the held-out data sets {joined(held_out)}. "
            f"{comparison(lines, held_out, chosen)}"
        )
    return paragraph(text)


def per_structure(lines, parts):
    """Return the mean error and log loss of each structure, edges and processor seconds."""
    every = [name for names in parts for name in names]
    rows = []
    for structure in STRUCTURES:
        values = [
            f"{mean(lines, names, structure, what):.{digits}f}"
            for what, digits in (("error", 1), ("log_loss", 3))
            for names in parts
        ]
        others = [f"{mean(lines, every, structure, what):.1f}" for what in ("n_edges", "seconds")]
        rows.append([structure, *values, *others])
    header = [f"{what}, {part}" for what in ("error [%]", "log loss") for part in ("chosen on", "held out")]
    return markdown_table(["structure", *header, "edges", "seconds"], rows)


def per_set(lines, names):
    """Return the error and the log loss of each structure on each data set."""
    rows = []
    for name in names:
        values = [[mean(lines, [name], one, what) for what in ("error", "log_loss")] for one in STRUCTURES]
        rows.append([name, *(f"{error:.1f} / {log_loss:.3f}" for error, log_loss in values)])
    return markdown_table(["set", *STRUCTURES], rows)


def write_report(lines, path):
    """Write the report of lines."""
    wanted = N_FOLDS * len(STRUCTURES)
    finished = [name for name in SETS if len([line for line in lines if line["set"] == name]) == wanted]
    parts = [[name for name in names if name in finished] for names in (CHOOSING, HELD_OUT)]
    if not all(parts):
        raise SystemExit("no data set of one half is finished: the command run does it.")
    others = [structure for structure in STRUCTURES if structure != DEFAULT]
    sections = ["# Structures of networks of terms", summary(lines, *parts), per_structure(lines, parts)]
    sections += ["## Compared with edges by gain", f"On {joined(parts[1])}, which were held out:"]
    sections.append("\n".join(paragraph(f"- {comparison(lines, parts[1], structure)}", 2) for structure in others))
    sections.append(folded("Error [%] / log loss of each data set", per_set(lines, finished)))
    text = f"""All models are `TermNetClassifier`. "gain" is the default, edges selected by gain. "KDB" is
    `KDependence(k=2)`. "gradient" is `GradientStructure()`, with `candidates="gain"` for two parents. Hill climbing
    maximizes BDeu. Names without a number have at most one parent per feature. First parents by gain, and structures of
    other learners, are kept only if the held-out log loss falls by more than a standard error, so the mean number of
    edges includes networks without edges. Every data set has {N_FOLDS} stratified folds. Means over data sets are not
    weighted. Seconds are the processor time of one fit. The best structure is chosen on {joined(parts[0])} ("chosen
    on")."""
    if missing := [name for name in SETS if name not in finished]:
        text += f" These data sets of the command are not measured yet: {joined(missing)}."
    made = made_by(lines, "benchmarks.quality.term_structures run", "benchmarks.quality.term_structures report")
    write_sections(path, [*sections, "## How it was measured", paragraph(text), made])


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "term_structures.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
