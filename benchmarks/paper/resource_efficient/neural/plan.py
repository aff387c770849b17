"""The selection of nets: a grid for every budget, whose best eighth is trained for eight times as many epochs.

The paper trains its whole grid for 500 epochs, several times; that takes months of one core. Here every family, budget,
fold and run is a race. All nets are trained on 80 % of the fold's training part for a 64th of the epochs, the eighth
with the lowest error on the other 20 % again for an eighth of the epochs, and the best eighth of these for all epochs.
The nets of the last heat are trained once more on the whole training part, for the test rows.

For 32 nets of letter (ReLU, real inputs, 15 kbit, both rates), validation errors after 8 and after 100 epochs have a
rank correlation of 0.93, and the selected eighth contains the four best nets after 100 epochs (ranks.py).
"""

from dataclasses import asdict, fields
from fractions import Fraction
from itertools import groupby, product

from .sizes import (
    CONVOLUTIONAL,
    DENSE,
    MEMORY,
    ONE_HOT,
    OPERATIONS,
    REAL,
    Net,
    counts,
    padded_width,
    solve_widths,
    target,
)

KINDS = (DENSE, CONVOLUTIONAL)
ACTIVATIONS = ("relu", "sign")
INPUTS = {DENSE: (REAL, ONE_HOT), CONVOLUTIONAL: (REAL,)}
N_LAYERS = {DENSE: range(2, 6), CONVOLUTIONAL: range(2, 4)}
BITS = range(1, 9)
LEARNING_RATES = (3e-3, 3e-2)
SHARE = 8
#: Bits per parameter of naive Bayes, or multiples of its operations. Figure 3 has 1 to 8 bits; 3, 5, 6 and 7 were left
#: out in favor of smaller and larger budgets. Figure 4 goes up to 256 times; 32 times already take an hour of a core.
MULTIPLES = {
    (DENSE, MEMORY): tuple(Fraction(2) ** power for power in range(-2, 5)),
    (CONVOLUTIONAL, MEMORY): tuple(Fraction(2) ** power for power in range(-2, 3)),
    (CONVOLUTIONAL, OPERATIONS): tuple(Fraction(2) ** power for power in (1, 3, 5)),
}
#: The fields that identify a race, in which the lowest errors are selected.
RACE = ("set", "kind", "activation", "inputs", "budget", "multiple", "run", "fold")
#: The fields that identify a line of the results.
KEY = (*RACE, "n_layers", "batch_norm", "bits", "learning_rate", "part", "epochs")
#: The common fields of nets that are trained at once.
ALIKE = ("kind", "activation", "inputs", "n_layers", "batch_norm", "run")
#: Largest number of units in the first layers of nets that are trained at once, so that a step fits into the cache.
UNITS = 512


def known_multiples(kinds):
    """Return the budgets of some kinds of nets."""
    return {multiple for (kind, _), multiples in MULTIPLES.items() if kind in kinds for multiple in multiples}


def grid(name, shape, run, multiples=None, kinds=KINDS):
    """Yield the lines of a data set's nets, without fold, part and epochs."""
    for (kind, budget), wanted in MULTIPLES.items():
        if kind not in kinds or (kind == CONVOLUTIONAL and shape.side is None):
            continue
        for multiple in wanted:
            if multiples and multiple not in multiples:
                continue
            amount = target(name, shape, budget, multiple)
            for activation, inputs, n_layers, batch_norm, bits in product(
                ACTIVATIONS, INPUTS[kind], N_LAYERS[kind], (False, True), BITS
            ):
                net = Net(kind, activation, inputs, n_layers, batch_norm)
                widths = solve_widths(net, bits, shape, budget, amount)
                if not widths:
                    continue
                found = counts(net, shape, widths)
                line = {
                    "set": name,
                    **asdict(net),
                    "bits": bits,
                    "budget": budget,
                    "multiple": float(multiple),
                    "run": run,
                    "widths": list(widths),
                    "parameters": found.parameters,
                    "model_bits": found.bits(bits),
                    "operations": found.operations,
                }
                for learning_rate in LEARNING_RATES:
                    yield {**line, "learning_rate": learning_rate}


def net_of(line):
    """Return the net of a line."""
    return Net(**{field.name: line[field.name] for field in fields(Net)})


def rungs(n_epochs):
    """Return the epochs of a race's heats."""
    return sorted({-(-n_epochs // SHARE**2), -(-n_epochs // SHARE), n_epochs})


def better_share(lines, errors):
    """Return the eighth of every race with the lowest errors, rounded up; the first ones in case of a tie."""
    races = {}
    for line, error in zip(lines, errors, strict=True):
        races.setdefault(tuple(line[name] for name in RACE), []).append((error, line))
    return [
        line
        for race in races.values()
        for _, line in sorted(race, key=lambda entry: entry[0])[: -(-len(race) // SHARE)]
    ]


def side_by_side(lines):
    """Yield lists of lines whose nets are trained at once: with the same layers and padded widths."""

    def group(line):
        return [*(line[name] for name in ALIKE), [padded_width(net_of(line), width) for width in line["widths"]]]

    for (*_, padded), alike in groupby(sorted(lines, key=group), group):
        alike = list(alike)
        n_nets = min(16, 2 ** (max(UNITS // padded[0], 1).bit_length() - 1))
        for first in range(0, len(alike), n_nets):
            yield alike[first : first + n_nets]
