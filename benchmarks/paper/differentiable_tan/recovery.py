"""Does gradient TAN find the Chow-Liu tree when trained with the joint likelihood alone (differentiable TAN, 4.6)?

The ordering is that of the Chow-Liu tree, so the tree is among the candidates. The joint NLL decomposes, so the most
likely structure is the optimum. The command prints the training log-likelihood per row of both structures with their
maximum-likelihood CPTs, and the number of equal edges. Structures of equal likelihood count as found. By default the
CPTs start at the smoothed frequencies, so that the first steps already contain information on the structure; the paper
starts at random (--init uniform).

    python -m benchmarks.paper.differentiable_tan.recovery --sets letter satimage
    python -m benchmarks.paper.differentiable_tan.recovery --sets usps --epochs 1500 --batch-size 500

The second has 32,896 CPTs and takes seven minutes. Two parents of usps differ by only 2e-4 nats per row, which needs
more epochs than the other sets; larger batches make an epoch cheaper.
"""

import time
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.data import BATCH_SIZES, published_folds
from tanlearn import CandidateSets, EncodedData, JointNLL, MaximumLikelihood
from tanlearn.baselines import ChowLiu
from tanlearn.models.log_joint import log_joint
from tanlearn.structures.candidate_kinds import Candidates, make_candidates
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train


def log_likelihood(structure, data):
    """Return the mean log joint of the rows under relative frequencies."""
    tables = MaximumLikelihood(alpha=0).fit(structure, data, np.random.default_rng(0))
    return log_joint(tables, structure, data.codes)[np.arange(data.n_samples), data.y].mean()


def main():
    """Print a line for each data set."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "discretized")
    parser.add_argument("--sets", nargs="+", default=["letter", "satimage", "usps"])
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--init", default="maximum-likelihood", choices=["uniform", "maximum-likelihood"])
    parser.add_argument("--batch-size", type=int, help="by default that of the paper")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--structure-learning-rate", type=float, default=1e-3)
    arguments = parser.parse_args()
    for name in arguments.sets:
        x, y, _, _ = next(published_folds(arguments.data / f"{name}.npz"))
        data = EncodedData.from_codes(x, y)
        rng = np.random.default_rng(arguments.seed)
        tree = ChowLiu(root=0).learn(data, rng)
        candidates: CandidateSets = make_candidates(Candidates("all", ordering=tree.order), data.n_features, rng=rng)
        settings = TrainingSettings(
            n_epochs=arguments.epochs,
            init=arguments.init,
            learning_rate=arguments.learning_rate,
            structure_learning_rate=arguments.structure_learning_rate,
            batch_size=arguments.batch_size or BATCH_SIZES[name],
        )
        started = time.perf_counter()
        learned = train(data, candidates, JointNLL(), settings, rng).structure
        seconds = time.perf_counter() - started
        reference, found = log_likelihood(tree, data), log_likelihood(learned, data)
        same = int((learned.parent == tree.parent).sum())
        print(
            f"{name}: log-likelihood a row {found:.6f} learned, {reference:.6f} Chow-Liu "
            f"(difference {reference - found:.2e}); {same} of {data.n_features} parents agree; "
            f"{candidates.n_tables} tables, {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
