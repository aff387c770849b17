"""Does gradient TAN find the Chow-Liu tree when trained with the joint likelihood alone (differentiable TAN, 4.6)?

The ordering is that of the Chow-Liu tree, so the tree is among the candidates. The joint NLL decomposes, so the most
likely structure is the optimum. A line of results contains the difference of the training log-likelihood per row
between both structures with their maximum-likelihood CPTs, and the number of equal parents. Structures of equal
likelihood count as recovered. The command continues where it was stopped, and the report of the package shows its
results.

    python -m benchmarks.paper.differentiable_tan.recovery --settings paper --seeds 0 1 2
    python -m benchmarks.paper.differentiable_tan.recovery --settings slow frequencies
    python -m benchmarks.paper.differentiable_tan.recovery --settings frequencies --sets usps --epochs 1500 \\
        --batch-size 500

*paper* has the start of the paper, U(-0.1, 0.1), and the larger of its two learning rates. *slow* has the smaller one.
*frequencies* starts at the smoothed frequencies, so that the first steps already contain information on the structure.
The last command trains 32,896 CPTs and takes seven minutes. Two parents of usps differ by only 2e-4 nats per row, which
needs more epochs than the other sets; larger batches make an epoch faster. Sets other than letter, satimage and usps
are raw tables, discretized on all rows.
"""

import time
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.paper.claims import Claim
from benchmarks.shared.data import BATCH_SIZES, encode_split, load_table, published_folds
from benchmarks.shared.reports import console, markdown_table, paragraph
from benchmarks.shared.results import Results, line_key
from tanlearn import CandidateSets, EncodedData, JointNLL, MaximumLikelihood
from tanlearn.baselines import ChowLiu
from tanlearn.models.log_joint import log_joint
from tanlearn.structures.candidate_kinds import Candidates, make_candidates
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train

RESULTS = Path(__file__).parent / "results" / "recovery.jsonl"
#: Start, learning rate and epochs.
SETTINGS = {
    "paper": {"init": "uniform", "learning_rate": 3e-2, "n_epochs": 500},
    "slow": {"init": "uniform", "learning_rate": 3e-3, "n_epochs": 500},
    "frequencies": {"init": "maximum-likelihood", "learning_rate": 3e-3, "n_epochs": 300},
}
PUBLISHED = ("letter", "satimage", "usps")
KEY = ("set", "init", "learning_rate", "structure_learning_rate", "n_epochs", "batch_size", "seed")
#: Largest difference of log-likelihoods per row, in nats, that is due to rounding.
ROUNDING = 1e-9


def rows_of(name, folder):
    """Return the rows of the first published fold, or those of a raw table."""
    if name in PUBLISHED:
        x, y, _, _ = next(published_folds(folder / "discretized" / f"{name}.npz"))
        return EncodedData.from_codes(x, y)
    X, y = load_table(name, folder)
    every = np.ones(len(y), bool)
    return encode_split(X, y, every, every).data


def log_likelihood(structure, data):
    """Return the mean log joint of the rows under relative frequencies."""
    tables = MaximumLikelihood(alpha=0).fit(structure, data, np.random.default_rng(0))
    return log_joint(tables, structure, data.codes)[np.arange(data.n_samples), data.y].mean()


def recover(data, line):
    """Train with the settings of a line; return the comparison with the Chow-Liu tree."""
    rng = np.random.default_rng(line["seed"])
    tree = ChowLiu(root=0).learn(data, rng)
    candidates: CandidateSets = make_candidates(Candidates("all", ordering=tree.order), data.n_features, rng=rng)
    settings = TrainingSettings(**{name: line[name] for name in KEY[1:-1]})
    started = time.process_time()
    learned = train(data, candidates, JointNLL(), settings, rng).structure
    seconds = time.process_time() - started
    return {
        "difference": float(log_likelihood(tree, data) - log_likelihood(learned, data)),
        "n_equal": int((learned.parent == tree.parent).sum()),
        "n_features": data.n_features,
        "n_tables": int(candidates.n_tables),
        "seconds": round(seconds, 1),
    }


def is_recovered(line):
    """Return whether the structure of a training has the likelihood of the Chow-Liu tree."""
    return line["difference"] < ROUNDING


def is_papers(line):
    """Return whether a training has the start, the learning rates and the epochs of the paper."""
    return line["structure_learning_rate"] == 1e-3 and all(
        line[name] == value for name, value in SETTINGS["paper"].items()
    )


def recovery_claim(lines):
    """Check that all trainings with the settings of the paper find the Chow-Liu structure of its data sets."""
    claim = "the method recovers the Chow-Liu structure consistently"
    found = {}
    for line in filter(is_papers, lines):
        found.setdefault(line["set"], []).append(is_recovered(line))
    own = {name: some for name, some in found.items() if name in PUBLISHED}
    if not own:
        return Claim(claim, "", None)
    evidence = f"trainings that recover it: {_listed(own)}"
    others = {name: some for name, some in found.items() if name not in PUBLISHED}
    if others:
        evidence += f"; on smaller tables that are not in the paper: {_listed(others)}"
    return Claim(claim, evidence, all(map(all, own.values())))


def _listed(found):
    """Return the numbers of recovered structures in words."""
    return ", ".join(f"{name} {sum(some)} of {len(some)}" for name, some in found.items())


def recovery_section(lines):
    """Return the table of all settings; empty without results."""
    if not lines:
        return ""
    groups = {}
    for line in lines:
        groups.setdefault(tuple(line[name] for name in KEY[:-1]), []).append(line)
    starts = {"uniform": "U(-0.1, 0.1)", "maximum-likelihood": "frequencies"}
    rows = []
    for (name, init, rate, structure_rate, epochs, batch), found in sorted(groups.items()):
        worst = max(found, key=lambda line: line["difference"])
        rows.append(
            [
                name,
                starts[init],
                *(f"{rate:g}", f"{structure_rate:g}", f"{epochs}", f"{batch}"),
                f"{sum(map(is_recovered, found))} of {len(found)}",
                "0" if is_recovered(worst) else f"{worst['difference']:.2g}",
                f"{min(line['n_equal'] for line in found)} of {found[0]['n_features']}",
                f"{found[0]['n_tables']:,}",
                f"{fmean(line['seconds'] for line in found):.0f}",
            ]
        )
    header = ["set", "start", "learning rate", "of the structure", "epochs", "batch", "recovered"]
    header += ["largest difference [nats per row]", "fewest equal parents", "CPTs", "seconds"]
    absent = [
        name for name in (*PUBLISHED, "mnist") if not any(is_papers(line) and line["set"] == name for line in lines)
    ]
    text = paragraph(
        f"""The table shows trainings with the joint likelihood alone, on the first fold, with the ordering of the
        Chow-Liu tree (section 4.6). A structure is recovered if its training log-likelihood equals the log-likelihood
        of the Chow-Liu tree, because several structures can have equal likelihood. The paper draws initial parameters
        from U(-0.1, 0.1), trains for 500 epochs with a learning rate of 0.003 or 0.03 for the CPTs and 0.001 for the
        structure, and reports the better of both results. Raw tables (other than letter, satimage and usps) are
        discretized on all rows. Seconds are processor time.
        {f"Not run with the settings of the paper: {', '.join(absent)}." if absent else ""}"""
    )
    command = "benchmarks.paper.differentiable_tan.recovery --settings paper --seeds 0 1 2"
    more = "benchmarks.paper.differentiable_tan.recovery --settings slow frequencies"
    table = markdown_table(header, rows, left=(0, 1))
    return "\n\n".join(("## Recovery of the Chow-Liu structure", text, table, console(command, more), CALL))


CALL = """The estimator is

```python
TANClassifier(
    candidates=Candidates("all", ordering=ORDERING),
    loss=JointNLL(),
    n_epochs=500,
    calibrate=False,
    training=GradientTraining(learning_rate=0.03, batch_size=BATCH),
)
```"""


def main(argv=None):
    """Append a line for each training that is not finished."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sets", nargs="+", default=["letter", "satimage"])
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=["paper"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, help="by default those of the settings")
    parser.add_argument("--batch-size", type=int, help="by default that of the paper, and 50 for raw tables")
    parser.add_argument("--structure-learning-rate", type=float, default=1e-3)
    arguments = parser.parse_args(argv)
    results = Results(arguments.results, line_key(*KEY))
    for name in arguments.sets:
        data = rows_of(name, arguments.data)
        for settings in arguments.settings:
            for seed in arguments.seeds:
                line = {"set": name, **SETTINGS[settings], "seed": seed}
                line["structure_learning_rate"] = arguments.structure_learning_rate
                line["n_epochs"] = arguments.epochs or line["n_epochs"]
                line["batch_size"] = arguments.batch_size or BATCH_SIZES.get(name, 50)
                if line not in results:
                    line = results.append({**line, **recover(data, line)})
                    print(", ".join(f"{key} {value}" for key, value in line.items()), flush=True)


if __name__ == "__main__":
    main()
