"""Claims of the paper's text, checked with the lowest test errors here: which hold, and which do not."""

from statistics import median

from benchmarks.paper.claims import Claim

from .cells import CLOSED_FORM, FEW_FEATURES, IMAGES

#: Compared runs: those with our ranges, which all cells have in similar numbers.
COMPARED = (CLOSED_FORM, "narrow", "refined")
NEIGHBORS = (1, 2, 5, 8)
SUBSET, PSEUDO = "TAN Subset K={}", "Pseudo-TAN K=8"
#: Improvement of the pseudo-TAN on letter in the paper, in points.
PSEUDO_GAIN = 0.75


class Lowest:
    """Test errors of the compared runs in %, by data set and cell."""

    def __init__(self, runs):
        self._errors, self._n_rows = {}, {}
        for name, found in runs.items():
            for run in found:
                if run.settings in COMPARED:
                    self._errors.setdefault((name, run.cell), []).append(100 * run.test)
                    self._n_rows[name] = sum(rows for _, _, rows in run.folds)
        self.sets = list(self._n_rows)

    def has(self, name, *cells):
        """Return whether all cells have runs on a data set."""
        return all((name, cell) in self._errors for cell in cells)

    def errors(self, name, cells):
        """Return the errors of all runs of some cells."""
        return [error for cell in cells for error in self._errors.get((name, cell), [])]

    def best(self, name, *cells):
        """Return the lowest error of some cells together."""
        return min(self.errors(name, cells))

    def spread(self, name, error):
        """Return two standard errors of an error, the typical change with other test rows."""
        return 2 * (error * (100 - error) / self._n_rows[name]) ** 0.5


def lower(lowest, claim, pairs, sets):
    """Check that the first cell of each pair has a lower error than the second on all data sets."""
    found = [(name, a, b) for name in sets for a, b in pairs if lowest.has(name, a, b)]
    if not found:
        return Claim(claim, "", None)
    lost = [one for one in found if lowest.best(one[0], one[1]) >= lowest.best(one[0], one[2])]
    shown = lost or [min(found, key=lambda one: lowest.best(one[0], one[2]) - lowest.best(one[0], one[1]))]
    listed = "; ".join(
        f"{name}: {a} {lowest.best(name, a):.2f}, {b} {lowest.best(name, b):.2f}" for name, a, b in shown
    )
    return Claim(claim, f"{len(found) - len(lost)} of {len(found)} comparisons; {listed}", not lost)


def similar(lowest, claim, a, b, sets):
    """Check that the error of one cell is not lower than that of another by over two standard errors."""
    found = [name for name in sets if lowest.has(name, a, b)]
    gains = {name: lowest.best(name, b) - lowest.best(name, a) for name in found}
    holds = all(gain <= lowest.spread(name, lowest.best(name, b)) for name, gain in gains.items())
    listed = ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items())
    return Claim(claim, f"error lower by (points): {listed}", holds if found else None)


def heuristic(pixels=("A", "B", "C"), neighbors=NEIGHBORS):
    """Return the heuristic cells with some orderings of pixels and numbers of neighbors."""
    return [f"TAN Heuristic {one} K={k}" for one in pixels for k in neighbors]


def pixel_orderings(lowest):
    """Check that the center-out ordering C is better than B, and B better than A, on mnist."""
    claim = "pixel ordering C is slightly better than B, and B better than A, on mnist"
    if not lowest.has("mnist", *heuristic()):
        return Claim(claim, "", None)
    errors = {pixels: lowest.errors("mnist", heuristic(pixels)) for pixels in "ABC"}
    middle = {pixels: median(found) for pixels, found in errors.items()}
    listed = ", ".join(f"{pixels} {middle[pixels]:.2f} ({min(errors[pixels]):.2f})" for pixels in "CBA")
    return Claim(claim, f"median (and lowest) errors: {listed}", middle["C"] < middle["B"] < middle["A"])


def orderings_beside_subsets(lowest):
    """Check that each pixel ordering is better than the random orderings of TAN Subset on mnist."""
    claim = "each pixel ordering is better than the random orderings of TAN Subset on mnist"
    subsets = [SUBSET.format(k) for k in (2, 5, 8)]
    if not lowest.has("mnist", *heuristic(), *subsets):
        return Claim(claim, "", None)
    best = {pixels: lowest.best("mnist", *heuristic(pixels)) for pixels in "ABC"}
    other = lowest.best("mnist", *subsets)
    listed = ", ".join(f"{pixels} {error:.2f}" for pixels, error in best.items())
    return Claim(claim, f"{listed}, TAN Subset {other:.2f}", max(best.values()) < other)


def neighbors(lowest):
    """Check that the step from 1 to 2 neighbors lowers the error on mnist, and that from 5 to 8 is marginal."""
    claims = (
        "a choice of K = 2 neighboring pixels is better than K = 1 on mnist",
        "the step from K = 5 to 8 neighboring pixels is marginal on mnist",
    )
    if not lowest.has("mnist", *heuristic()):
        return [Claim(claim, "", None) for claim in claims]
    best = {k: lowest.best("mnist", *heuristic(neighbors=[k])) for k in NEIGHBORS}
    step, spread = best[5] - best[8], lowest.spread("mnist", best[5])
    return [
        Claim(claims[0], f"K = 1 {best[1]:.2f}, K = 2 {best[2]:.2f}", best[2] < best[1]),
        Claim(claims[1], f"K = 5 {best[5]:.2f}, K = 8 {best[8]:.2f}, two standard errors {spread:.2f}", step < spread),
    ]


def steps(lowest):
    """Check that TAN Subset gains more from the step from 5 to 8 candidates than the heuristic structures."""
    claim = "the step from K = 5 to 8 lowers the error of TAN Subset more than that of TAN Heuristic"
    found = {}
    for name in IMAGES:
        cells = [SUBSET.format(5), SUBSET.format(8)]
        if lowest.has(name, *cells, *heuristic()):
            subset = lowest.best(name, cells[0]) - lowest.best(name, cells[1])
            five, eight = (lowest.best(name, *heuristic(neighbors=[k])) for k in (5, 8))
            found[name] = subset, five - eight
    listed = "; ".join(f"{name}: {subset:.2f} and {other:.2f} points" for name, (subset, other) in found.items())
    return Claim(claim, listed, all(subset > other for subset, other in found.values()) if found else None)


def no_benefit(lowest):
    """Check that heuristic structures have no benefit on usps."""
    claim = "heuristic structures have no benefit on usps"
    subset = SUBSET.format(8)
    if not lowest.has("usps", subset, *heuristic()):
        return Claim(claim, "", None)
    best, other = lowest.best("usps", *heuristic()), lowest.best("usps", subset)
    spread = lowest.spread("usps", other)
    listed = f"TAN Heuristic {best:.2f}, {subset} {other:.2f}, two standard errors {spread:.2f}"
    return Claim(claim, listed, other - best <= spread)


def pseudo_tan(lowest):
    """Check that edges against the ordering lower the error on letter as much as in the paper."""
    claim, subset = f"the pseudo-TAN lowers the error on letter by {PSEUDO_GAIN:g} points", SUBSET.format(8)
    if not lowest.has("letter", subset, PSEUDO):
        return Claim(claim, "", None)
    gain = lowest.best("letter", subset) - lowest.best("letter", PSEUDO)
    return Claim(claim, f"by {gain:.2f} points, to {lowest.best('letter', PSEUDO):.2f}", gain >= PSEUDO_GAIN - 0.005)


def claims(runs):
    """Return all claims that results can decide, in the order of the paper."""
    lowest = Lowest(runs)
    sets, subset = lowest.sets, SUBSET.format(8)
    ml = [("NB HYB", "NB ML"), ("Chow-Liu HYB", "Chow-Liu ML")]
    return [
        lower(lowest, "discriminative training has lower errors than maximum likelihood", ml, sets),
        lower(lowest, "TAN Random is better than naive Bayes", [("TAN Random HYB", "NB HYB")], sets),
        lower(lowest, "Chow-Liu is worse than TAN Random on usps", [("TAN Random HYB", "Chow-Liu HYB")], ["usps"]),
        lower(
            lowest,
            "TAN Subset is better than TAN Random and Chow-Liu",
            [(subset, "TAN Random HYB"), (subset, "Chow-Liu HYB")],
            sets,
        ),
        lower(lowest, "K = 8 is the best of TAN Subset", [(subset, SUBSET.format(k)) for k in (2, 5)], sets),
        similar(lowest, "TAN All has no benefit over TAN Subset with K = 8", "TAN All", subset, FEW_FEATURES),
        lower(
            lowest,
            "the best heuristic structure on mnist has ordering C and is better than TAN Subset",
            [("TAN Heuristic C K=8", cell) for cell in (subset, *heuristic("AB"))],
            ["mnist"],
        ),
        pixel_orderings(lowest),
        orderings_beside_subsets(lowest),
        *neighbors(lowest),
        steps(lowest),
        no_benefit(lowest),
        pseudo_tan(lowest),
        similar(
            lowest,
            "the pseudo-TAN has similar errors on the other data sets",
            PSEUDO,
            subset,
            [name for name in sets if name != "letter"],
        ),
    ]
