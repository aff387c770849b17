"""Claims of the paper's text, checked with the rates here."""

from itertools import pairwise

from scipy.stats import norm

from benchmarks.paper.claims import Claim

from .cells import mean
from .learners import PUBLISHED, TUNED

STRUCTURES = ("NB", "TAN-CMI", "TAN-OMI-CR", "TAN-CR")
#: Level of the one-sided tests of two rates.
LEVEL = 0.05
GENERATIVE, DISCRIMINATIVE = STRUCTURES[:2], STRUCTURES[2:]


class Rates:
    """Mean rates in %, by data set, structure and parameters."""

    def __init__(self, whole):
        self.cells = {
            (name, *cell): 100 * mean(lines, "rate")
            for name, cells in whole.items()
            for cell, lines in cells.items()
            if cell[1] != "structure"
        }
        self.sets = list(whole)
        #: Test rows of one draw by data set.
        self.n_test = {name: next(iter(cells.values()))[0]["n_test"] for name, cells in whole.items() if cells}

    def compared(self, pairs):
        """Return the data set and both rates of pairs of cells (structure, parameters) that are both finished."""
        return [
            (name, a, b, self.cells[name, *a], self.cells[name, *b])
            for name in self.sets
            for a, b in pairs
            if {(name, *a), (name, *b)} <= self.cells.keys()
        ]

    def networks(self, name):
        """Return the rates of the discriminatively trained networks of the paper on a data set."""
        return {
            (structure, parameters): rate
            for (other, structure, parameters), rate in self.cells.items()
            if other == name and structure in STRUCTURES and parameters in ("CG-MM", "CG-CL")
        }


def above(rates, claim, pairs, most=False):
    """Check that the first cell of each pair has a higher rate; with ``most``, that over half of the pairs do."""
    found = rates.compared(pairs)
    if not found:
        return Claim(claim, "", None)
    lost = [one for one in found if one[3] <= one[4]]
    n_won = len(found) - len(lost)
    shown = lost or [min(found, key=lambda one: one[3] - one[4])]
    listed = "; ".join(f"{name}: {' '.join(a)} {x:.2f}, {' '.join(b)} {y:.2f}" for name, a, b, x, y in shown)
    closest = "" if lost else "closest: "
    return Claim(claim, f"{n_won} of {len(found)}; {closest}{listed}", 2 * n_won > len(found) if most else not lost)


def p_value(higher, lower, n_test):
    """Return the p-value of the one-sided test that two rates in % on so many rows each are equal."""
    mean_rate = (higher + lower) / 2
    spread = (2 * mean_rate * (100 - mean_rate) / n_test) ** 0.5
    return float(norm.sf((higher - lower) / spread)) if spread else float(higher <= lower)


def significantly_above(rates, claim, pairs):
    """Check that the first cell of each pair has a significantly higher rate, by a test of two proportions."""
    found = [(p_value(x, y, rates.n_test[name]), name, a, b) for name, a, b, x, y in rates.compared(pairs)]
    if not found:
        return Claim(claim, "", None)
    n_clear = sum(p < LEVEL for p, *_ in found)
    p, name, a, b = max(found)
    listed = f"{n_clear} of {len(found)}; largest p-value: {p:.2g} ({name}: {' '.join(a)} and {' '.join(b)})"
    return Claim(claim, listed, n_clear == len(found))


def support_vectors(rates):
    """Check that the support vector machine is above all networks of the paper."""
    claim, machine = "the support vector machine is above all networks of the paper", ("SVM", TUNED)
    found = {
        name: (rates.cells[name, *machine], rates.networks(name))
        for name in rates.sets
        if (name, *machine) in rates.cells and rates.networks(name)
    }
    if not found:
        return Claim(claim, "", None)
    best = {name: max(networks, key=networks.get) for name, (_, networks) in found.items()}
    listed = "; ".join(
        f"{name}: SVM {rate:.2f}, {' '.join(best[name])} {networks[best[name]]:.2f}"
        for name, (rate, networks) in found.items()
    )
    return Claim(claim, listed, all(rate > networks[best[name]] for name, (rate, networks) in found.items()))


def sizes(whole, published):
    """Check that the support vector machine has at least as many times the parameters as in the paper."""
    claim, ratios = "the best network has 66 (usps) and 108 (mnist) times fewer parameters than the SVM", {}
    for name, cells in whole.items():
        networks = {cell: lines for cell, lines in cells.items() if cell[0] in STRUCTURES and cell[1] == "CG-MM"}
        if networks and ("SVM", PUBLISHED) in cells and name in published:
            best = max(networks.values(), key=lambda lines: mean(lines, "rate"))
            ratio = mean(cells["SVM", PUBLISHED], "n_parameters") / mean(best, "n_parameters")
            n_vectors, n_parameters = published[name]
            wanted = n_vectors * cells["SVM", PUBLISHED][0]["n_features"] / n_parameters
            ratios[name] = ratio, wanted
    listed = ", ".join(f"{name} {ratio:.0f} times" for name, (ratio, _) in ratios.items())
    return Claim(
        claim, listed, all(round(ratio) >= int(wanted) for ratio, wanted in ratios.values()) if ratios else None
    )


def convex_relaxation(convex):
    """Check that the convex relaxation is above frequencies with the zeros replaced as in the paper."""
    claim, names = "the convex relaxation is above ML", ("ML", "ML, alpha=1")
    points = {name: {} for name in names}
    for cells in convex.values():
        solved = {parameters: lines for (_, parameters), lines in cells.items()}
        if "CVX-MM" in solved and all(line["rate"] is not None for line in solved["CVX-MM"]):
            for name in solved.keys() & points.keys():
                difference = 100 * (mean(solved["CVX-MM"], "rate") - mean(solved[name], "rate"))
                points[name][solved[name][0]["n_train"]] = difference
    if not points["ML"]:
        return Claim(claim, "", None)
    listed = [
        f"from {name}: {', '.join(f'{n:,} rows {value:+.2f}' for n, value in sorted(found.items()))}"
        for name, found in points.items()
        if found
    ]
    return Claim(claim, f"difference in points {'; '.join(listed)}", all(v > 0 for v in points["ML"].values()))


def claims(whole, convex, published_sizes):
    """Return all claims that results can decide."""
    rates = Rates(whole)
    trained = [(structure, learner) for structure in STRUCTURES for learner in ("CG-MM", "CG-CL")]
    return [
        above(
            rates,
            "with ML, discriminative structures are above generative ones",
            [((a, "ML"), (b, "ML")) for a in DISCRIMINATIVE for b in GENERATIVE],
        ),
        above(
            rates,
            "with ML, more complex structures have higher rates (NB, TAN-CMI, TAN-OMI-CR, TAN-CR)",
            [((b, "ML"), (a, "ML")) for a, b in pairwise(STRUCTURES)],
        ),
        above(
            rates,
            "discriminative parameters are above ML on the same structure",
            [(cell, (cell[0], "ML")) for cell in trained],
        ),
        significantly_above(
            rates,
            "discriminative parameters are significantly above ML on the same structure",
            [(cell, (cell[0], "ML")) for cell in trained],
        ),
        above(
            rates,
            "maximum margin is above conditional likelihood in most cases",
            [((structure, "CG-MM"), (structure, "CG-CL")) for structure in STRUCTURES],
            most=True,
        ),
        support_vectors(rates),
        sizes(whole, published_sizes),
        convex_relaxation(convex),
    ]
