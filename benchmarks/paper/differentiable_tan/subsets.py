"""Figure 3 (d) of differentiable TAN: parent subsets of one ordering of letter, all with the same settings.

    python -m benchmarks.paper.differentiable_tan.subsets --budget 20    # resumes if interrupted

Each setting has the epochs and the ranges of the paper (random search II) with one of its two learning rates. It trains
five subsets of K = 2 and of K = 8 candidate parents. Subsets of 2 are contained in those of 8. The paper has 100
settings with both learning rates. Only settings with all ten trainings are shown.
"""

from pathlib import Path
from statistics import median

from benchmarks import DATA, command_line
from benchmarks.paper.claims import Claim
from benchmarks.shared.data import load
from benchmarks.shared.reports import markdown_table, paragraph
from benchmarks.shared.results import Results

from .cells import CELLS
from .complete_runs import complete_runs, key

RESULTS = Path(__file__).parent / "results" / "subsets.jsonl"
NAME, ORDERING, N_SUBSETS, N_EPOCHS, SEED = "letter", 0, 5, 500, 3
#: Settings without which the claims stay open.
FEWEST = 5
SIZES = {f"TAN Subset K={k}": f"K={k}" for k in (2, 8)}


def plan(problem, setting):
    """Yield the trainings of a setting."""
    from .__main__ import Training

    cells = [cell for cell in CELLS if cell.name in SIZES]
    drawn = cells[-1].draw("published", problem.name, SEED, setting)
    parts = [(fold, part) for fold, name, part in problem.parts() if name == "test"]
    for fold, part in parts:
        for draw in range(N_SUBSETS):
            for cell in cells:
                line = {"cell": cell.name, "settings": "published", "seed": SEED, "epochs": N_EPOCHS}
                line |= {"run": N_SUBSETS * setting + draw, "fold": fold, "part": "test", "n_folds": len(parts)}
                line |= {"rows": len(part.y), "parameters": {**drawn, "ordering": ORDERING, "draw": draw}}
                yield Training(cell, problem, part, line)


def complete_settings(lines):
    """Return the runs of the settings with all subsets of both sizes."""
    settings = {}
    for run in complete_runs(lines):
        settings.setdefault(run.run // N_SUBSETS, []).append(run)
    return [run for runs in settings.values() if len(runs) == len(SIZES) * N_SUBSETS for run in runs]


def by_subset(runs):
    """Return the errors in % by size and subset."""
    found = {}
    for run in runs:
        found.setdefault((SIZES[run.cell], run.parameters["draw"]), []).append(100 * run.test)
    return found


def subset_claims(runs):
    """Return the claims of section 4.5 on parent subsets."""
    larger, gap = (
        "K = 8 is better than K = 2 for each parent subset on letter",
        ("parent subsets differ less for K = 8 than for K = 2 on letter"),
    )
    found = by_subset(runs)
    if not found:
        return [Claim(larger, "", None), Claim(gap, "", None)]
    lowest = {size: [min(found[size, draw]) for draw in range(N_SUBSETS)] for size in SIZES.values()}
    small, large = lowest["K=2"], lowest["K=8"]
    spans = {size: max(errors) - min(errors) for size, errors in lowest.items()}
    n_settings = len(found["K=2", 0])
    decided = n_settings >= FEWEST
    each = f"K = 2 {min(small):.2f} to {max(small):.2f}, K = 8 {min(large):.2f} to {max(large):.2f}"
    better = all(b < a for a, b in zip(small, large, strict=True))
    ranges = f"K = 2 {spans['K=2']:.2f}, K = 8 {spans['K=8']:.2f}"
    return [
        Claim(larger, f"{n_settings} settings: {each}", better if decided else None),
        Claim(
            gap, f"{n_settings} settings, range in points: {ranges}", spans["K=8"] < spans["K=2"] if decided else None
        ),
    ]


def subsets_section(runs):
    """Return the table of parent subsets, or an empty string without results."""
    found = by_subset(runs)
    if not found:
        return ""
    n_settings = len(runs) // (len(SIZES) * N_SUBSETS)
    rows = [
        [f"{draw + 1}", *(f"{choose(found[size, draw]):.2f}" for size in SIZES.values() for choose in (min, median))]
        for draw in range(N_SUBSETS)
    ]
    header = ["subset", *(f"{size}, {what}" for size in SIZES.values() for what in ("lowest", "median"))]
    text = paragraph(
        f"""The table shows results of five parent subsets for one ordering of {NAME}, each trained with the same
        {n_settings} settings for {N_EPOCHS} epochs (the paper has 100 settings with two learning rates). The claims
        about subsets stay open below {FEWEST} settings. Figure 3 (d) shows these runs and all other runs with the same
        ordering. Errors are test errors in %. Command: `python -m benchmarks.paper.differentiable_tan.subsets`."""
    )
    return f"## Parent subsets\n\n{text}\n\n{markdown_table(header, rows)}"


def main(argv=None):
    """Append a line for each training that is not finished, setting by setting."""
    from .__main__ import train, unfinished

    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--budget", type=int, default=20, help="settings")
    parser.add_argument("--n-jobs", type=int, default=1, help="trainings at once")
    arguments = parser.parse_args(argv)
    results = {NAME: Results(arguments.results, key)}
    problem = load(NAME, arguments.data)
    for setting in range(arguments.budget):
        train(unfinished(plan(problem, setting), results), results, arguments.n_jobs)


if __name__ == "__main__":
    main()
