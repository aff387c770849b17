"""Does a short training predict the best nets of a long one? Validation errors after few and after many epochs.

python -m benchmarks.paper.resource_efficient.neural.ranks --activation relu
"""

from fractions import Fraction

import numpy as np
from scipy.stats import spearmanr

from benchmarks import command_line
from benchmarks.shared.data import load

from .plan import ACTIVATIONS, KEY, grid, side_by_side
from .runs import measure, shape_of
from .sizes import DENSE, REAL

EPOCHS = (4, 8, 20, 100)
N_NETS, BEST = 32, 4


def main(argv=None):
    """Train the same nets, drawn from the grid of four bits a parameter, for each number of epochs."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--activation", choices=ACTIVATIONS, default=ACTIVATIONS[0])
    activation = parser.parse_args(argv).activation
    problem = load("letter")
    part = next(part for _, name, part in problem.parts() if name == "validation")
    shape = shape_of(problem, part.data)
    lines = grid("letter", shape, 0, [Fraction(4)], [DENSE])
    lines = [line for line in lines if line["activation"] == activation and line["inputs"] == REAL]
    drawn = [lines[place] for place in np.random.default_rng(0).permutation(len(lines))[:N_NETS]]
    errors = np.empty((N_NETS, len(EPOCHS)))
    for column, epochs in enumerate(EPOCHS):
        heat = [{**line, "fold": 1, "part": "validation", "epochs": epochs} for line in drawn]
        places = {tuple(line[name] for name in KEY): place for place, line in enumerate(heat)}
        for together in side_by_side(heat):
            for line in measure(problem, shape, part, problem.folds[0], together):
                errors[places[tuple(line[name] for name in KEY)], column] = line["validation_error"]
        print(
            f"{epochs} epochs: {100 * errors[:, column].min():.2f} to {100 * errors[:, column].max():.2f} %", flush=True
        )
    ranks = errors.argsort(axis=0).argsort(axis=0) + 1
    best = errors[:, -1].argsort()[:BEST]
    for column, epochs in enumerate(EPOCHS[:-1]):
        correlation = spearmanr(errors[:, column], errors[:, -1]).statistic
        print(
            f"{epochs} epochs and {EPOCHS[-1]}: rank correlation {correlation:.2f}; the {BEST} best had the ranks "
            f"{ranks[best, column].tolist()} of {N_NETS}"
        )


if __name__ == "__main__":
    main()
