"""Variants of CG-MM that the paper mentions: initialization, regularization instead of early stopping, eta and
lambda."""

import numpy as np

from benchmarks.paper.claims import Claim
from benchmarks.shared.reports import markdown_table, paragraph
from tanlearn import ConjugateGradient
from tanlearn.models.tables import Tables
from tanlearn.training.parametrizations import Normalized

STRUCTURES = ("NB", "TAN-CMI")
#: CG-MM with lambda 0.02, kappa 0.5 and eta 10 from Laplace's frequencies; one of the cells of figure 5.
BASE = "CG-MM, kappa 0.5"
FROM_ML, FROM_RANDOM = "CG-MM, start at ML", "CG-MM, random start"
ETAS = {f"CG-MM, eta {eta:g}": eta for eta in (1, 2, 5, 20, 50)}
LAMBDAS = {f"CG-MM, lambda {scale:g}": scale for scale in (0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)}
NORMS = {"CG-MM, l1 penalty": 1, "CG-MM, l2 penalty": 2}
#: Weights of the penalties, relative to the sum of the losses of all rows.
WEIGHTS = (0.01, 0.1, 1.0)
#: Width of the smoothed kink of the absolute value, in nats.
KINK = 1e-3
#: From this value of eta on, the paper finds the same rates.
LARGE_ETA = 5


class RandomStart(ConjugateGradient):
    """Conjugate gradient that starts at random CPTs, the same for all folds."""

    def start(self, structure, data, rng):
        """Return CPTs of uniform random numbers, normalized."""
        layout = super().start(structure, data, rng).layout
        drawn = np.random.default_rng(0).uniform(0.01, 1, layout.n_cells)
        return Tables(layout, Normalized(layout).forward(np.log(drawn)))


class Penalized(ConjugateGradient):
    """Conjugate gradient on the sum of the losses and a penalty of the unconstrained log parameters."""

    def __init__(self, *, loss=None, max_iter=None, tol=1e-6, alpha=1.0, calibrate=True, norm=2, weight=1.0):
        super().__init__(loss=loss, max_iter=max_iter, tol=tol, alpha=alpha, calibrate=calibrate)
        self.norm = norm
        self.weight = weight

    def _search(self, tables, objective_of, total, callback, n_iter, data=None):
        def penalized(loss):
            return PenalizedObjective(objective_of(loss), self.norm, self.weight / total)

        return super()._search(tables, penalized, total, callback, n_iter, data)


class PenalizedObjective:
    """Mean loss of the rows, and a penalty of the log parameters: half their squares, or their smoothed magnitudes."""

    def __init__(self, objective, norm, weight):
        self._objective, self._norm, self._weight = objective, norm, weight
        self.theta = objective.theta

    def __call__(self, rho):
        """Return value and gradient."""
        value, gradient = self._objective(rho)
        if self._norm == 1:
            length = np.sqrt(rho**2 + KINK**2)
            return value + self._weight * float((length - KINK).sum()), gradient + self._weight * rho / length
        return value + self._weight * float((rho**2).sum()) / 2, gradient + self._weight * rho


VARIANTS = (FROM_ML, FROM_RANDOM, *NORMS, *ETAS, *LAMBDAS)
TABLES = {
    "start": {FROM_ML: "ML", BASE: "Laplace", FROM_RANDOM: "random"},
    "regularization": {BASE: "early stopping", **{name: name.removeprefix("CG-MM, ") for name in NORMS}},
    "eta": {name: f"{eta:g}" for name, eta in sorted({**ETAS, BASE: 10}.items(), key=lambda item: item[1])},
    "lambda": {name: f"{scale:g}" for name, scale in sorted({**LAMBDAS, BASE: 0.02}.items(), key=lambda item: item[1])},
}


def paired_rates(cells, structure, names):
    """Return the mean rates in % of some cells over the draws that all of them have, and the number of draws."""
    found = [{line["seed"]: line["rate"] for line in cells.get((structure, name), [])} for name in names]
    seeds = set.intersection(*map(set, found))
    rates = {
        name: 100 * float(np.mean([rates[seed] for seed in seeds]))
        for name, rates in zip(names, found, strict=True)
        if seeds
    }
    return rates, len(seeds)


def variants_section(cells):
    """Return the tables of the variants on usps; tables without finished cells are left out."""
    sections = []
    for title, names in TABLES.items():
        rows = []
        for structure in STRUCTURES:
            rates, n_draws = paired_rates(cells, structure, names)
            if rates:
                rows.append([structure, str(n_draws), *(f"{rates[name]:.2f}" for name in names)])
        if rows:
            table = markdown_table(["structure", "draws", *(f"{title} {label}" for label in names.values())], rows)
            sections.append(table)
    if not sections:
        return ""
    text = paragraph(
        f"""The tables show test rates of CG-MM on usps. Unless a column names another setting, lambda is 0.02, kappa
        0.5 and eta 10, and training starts at Laplace's frequencies. The number of iterations is selected on five
        folds. A random start draws all probabilities from U(0.01, 1) and normalizes them. Penalties are computed from
        the unconstrained log parameters: half the sum of squares (l2), or the sum of magnitudes (l1). The weights of
        the penalties, {", ".join(f"{weight:g}" for weight in WEIGHTS)} relative to the sum of the losses, are selected
        on five folds, and the search then performs all its iterations. Each table uses the draws of the partition for
        which all cells of the table are available."""
    )
    return "\n\n".join(["## Initialization, regularization, eta and lambda", text, *sections])


def variant_claims(cells, spread):
    """Return the claims on the variants; ``spread`` is the standard error in points of a rate."""
    return [_start(cells, spread), _regularization(cells, spread), _eta(cells, spread)]


def _compared(cells, table):
    """Return the paired rates of a table by structure."""
    found = {structure: paired_rates(cells, structure, TABLES[table])[0] for structure in STRUCTURES}
    return {structure: rates for structure, rates in found.items() if rates}


def _listed(cells, found, table, names):
    """Return rates of some cells, and the number of draws, in words."""
    listed = "; ".join(
        f"{structure}: " + ", ".join(f"{TABLES[table][name]} {rates[name]:.2f}" for name in names)
        for structure, rates in found.items()
    )
    draws = {paired_rates(cells, structure, TABLES[table])[1] for structure in found}
    return f"{listed} (draws of the partition: {', '.join(map(str, sorted(draws)))})"


def _start(cells, spread):
    """Check that the start at ML is better than a random one: open up to two standard errors."""
    claim, found = "the start at ML is better than a random start", _compared(cells, "start")
    gains = [(rates[FROM_ML] - rates[FROM_RANDOM], 2 * spread(rates[FROM_ML])) for rates in found.values()]
    is_better, is_worse = any(gain > limit for gain, limit in gains), any(-gain > limit for gain, limit in gains)
    holds = None if is_better == is_worse else is_better
    return Claim(claim, _listed(cells, found, "start", (FROM_ML, FROM_RANDOM)), holds)


def _regularization(cells, spread):
    """Check that no penalty is better than early stopping by over two standard errors."""
    claim, found = "regularization has no significant advantage over early stopping", _compared(cells, "regularization")
    holds = all(rates[name] - rates[BASE] <= 2 * spread(rates[BASE]) for rates in found.values() for name in NORMS)
    return Claim(claim, _listed(cells, found, "regularization", (BASE, *NORMS)), holds if found else None)


def _eta(cells, spread):
    """Check that rates are equal up to a standard error for large eta, and that eta 1 is not better."""
    claim, found = f"eta has no influence from {LARGE_ETA} on, and 1 is slightly worse", _compared(cells, "eta")
    values = {**ETAS, BASE: 10}
    large = [name for name, eta in values.items() if eta >= LARGE_ETA]
    one = next(name for name, eta in values.items() if eta == 1)
    holds = all(
        max(rates[name] for name in large) - min(rates[name] for name in large) <= spread(rates[BASE])
        and rates[one] < min(rates[name] for name in large)
        for rates in found.values()
    )
    return Claim(claim, _listed(cells, found, "eta", TABLES["eta"]), holds if found else None)
