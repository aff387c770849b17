"""Claims of the paper's text, checked with the rates and times here."""

import numpy as np

from benchmarks.paper.claims import Claim

#: The paper: TAN-CR takes 10 to 40 times as long as TAN-OMI-CR.
SPEED_UP = 10
SEARCHES = ("TAN-OMI-CR-ML", "TAN-OMISP-CR-ML", "TAN-CR-ML")
GENERATIVE, BEST_TREE = "TAN-CMI-ML", "2-tree-OMI-CR-ML"
#: Largest difference in points of CL from ML parameters that the paper has on mnist.
SMALL_STEP = 0.04


def _open(claim):
    """Return a claim whose runs are not complete."""
    return Claim(claim, "", None)


def t_tests(claim, small, pairs, significance, level, is_significant):
    """Check the one-sided paired t-tests over the data sets, of the second label of each pair above the first."""
    if len(small) < 2:
        return _open(claim)
    found = []
    for lower, higher in pairs:
        p = significance([rates[lower] for rates in small.values()], [rates[higher] for rates in small.values()])
        found.append((lower, higher, p, p is not None and 0 < p < level))
    listed = "; ".join(
        f"{higher} above {lower}: p = {p:.2g}" if p is not None and p > 0 else f"{higher} not above {lower}"
        for lower, higher, p, _ in found
    )
    return Claim(claim, listed, all(clear == is_significant for *_, clear in found))


def above_random(small):
    """Check that the ordering by information is above the mean of random orderings."""
    claim = "TAN-OMI-CR is above random orderings on the 25 data sets"
    if not small:
        return _open(claim)
    search, random = (
        float(np.mean([rates[label] for rates in small.values()])) for label in (SEARCHES[0], "TAN-RO-CR-ML Mean")
    )
    return Claim(claim, f"TAN-OMI-CR-ML {search:.2f}, random orderings {random:.2f}", search > random)


def best_tree(small, mnist):
    """Check that the 2-tree is above the search for trees."""
    claim, found = "the 2-tree is the best structure (ML parameters)", {}
    if small:
        found[f"{len(small)} data sets"] = {
            label: float(np.mean([rates[label] for rates in small.values()])) for label in (*SEARCHES, BEST_TREE)
        }
    if mnist and {*SEARCHES, BEST_TREE} <= mnist.keys():
        found["mnist"] = mnist
    if not found:
        return _open(claim)
    best = {name: max(SEARCHES, key=rates.get) for name, rates in found.items()}
    listed = "; ".join(f"{name}: {r[BEST_TREE]:.2f}, {best[name]} {r[best[name]]:.2f}" for name, r in found.items())
    return Claim(claim, listed, all(r[BEST_TREE] > r[best[name]] for name, r in found.items()))


def on_mnist(mnist):
    """Check that discriminative structures are above TAN-CMI on mnist by over two standard errors."""
    claim = "discriminative structures are significantly above TAN-CMI on mnist (ML parameters)"
    if not mnist or not {*SEARCHES, GENERATIVE} <= mnist.keys():
        return _open(claim)
    spread = 2 * (mnist[GENERATIVE] * (100 - mnist[GENERATIVE]) / 10_000) ** 0.5
    lowest = min(SEARCHES, key=mnist.get)
    listed = f"{GENERATIVE} {mnist[GENERATIVE]:.2f} (two standard errors {spread:.2f}), {lowest} {mnist[lowest]:.2f}"
    return Claim(claim, listed, mnist[lowest] > mnist[GENERATIVE] + spread)


def conditional_likelihood(mnist):
    """Check that CL parameters hardly change the rates on mnist."""
    claim = "CL parameters change the rate of ML on mnist by 0.04 points at most"
    steps = {
        label.removesuffix("-ML"): mnist[f"{label.removesuffix('-ML')}-CL"] - mnist[label]
        for label in ("NB-ML", GENERATIVE, *SEARCHES)
        if mnist and {label, f"{label.removesuffix('-ML')}-CL"} <= mnist.keys()
    }
    if not steps:
        return _open(claim)
    listed = ", ".join(f"{label} {step:+.2f}" for label, step in steps.items())
    return Claim(claim, listed, all(round(abs(step), 2) <= SMALL_STEP for step in steps.values()))


def speed(found, small, images, seconds):
    """Check that the greedy search takes 10 times as long as the ordered search."""
    claim = f"TAN-CR takes at least {SPEED_UP} times as long as TAN-OMI-CR"
    ratios = {}
    if small:
        sums = np.sum([seconds(found[name]) for name in small], axis=0)
        ratios[f"{len(small)} data sets"] = sums[2] / sums[1]
    for name in images:
        times = seconds(found[name])
        ratios[name] = times[2] / times[1]
    ratios = {name: ratio for name, ratio in ratios.items() if not np.isnan(ratio)}
    if not ratios:
        return _open(claim)
    listed = ", ".join(f"{name} {ratio:.1f} times" for name, ratio in ratios.items())
    return Claim(claim, listed, all(ratio >= SPEED_UP for ratio in ratios.values()))


def synthetic_problem(synthetic):
    """Check that the discriminative tree is above the generative one on the synthetic problem."""
    claim = "the discriminative tree is above the generative tree on the synthetic problem"
    if not synthetic:
        return _open(claim)
    points = {size: rates[SEARCHES[0]] - rates[GENERATIVE] for size, rates in synthetic.items()}
    listed = ", ".join(f"{size} rows {value:+.2f}" for size, value in points.items())
    return Claim(claim, f"difference in points: {listed}", all(value > 0 for value in points.values()))


def claims(small, found, rates, images, synthetic, significance, seconds, level):
    """Return all claims that results can decide."""
    mnist = rates.get("mnist", {})
    return [
        t_tests(
            "discriminative trees are significantly above TAN-CMI on the 25 data sets (ML parameters)",
            small,
            [(GENERATIVE, label) for label in SEARCHES],
            significance,
            level,
            is_significant=True,
        ),
        t_tests(
            "TAN-CR is not significantly above TAN-OMI-CR on the 25 data sets",
            small,
            [(SEARCHES[0], SEARCHES[2])],
            significance,
            level,
            is_significant=False,
        ),
        above_random(small),
        best_tree(small, mnist),
        on_mnist(mnist),
        conditional_likelihood(mnist),
        speed(found, small, images, seconds),
        synthetic_problem(synthetic),
    ]
