"""Structures and candidates of the cells of table 1.

A choice is called with a problem, its training rows, and the numbers of an ordering and of a draw. It returns the
structure or the candidate sets of a run. ``recipe`` returns the same choice as an argument of an estimator, which draws
its own ordering."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.shared.data import stream
from tanlearn import Candidates, GradientTraining, Hybrid, Structure, TANClassifier
from tanlearn.baselines import GreedySearch, OrderSearch
from tanlearn.structures.candidate_kinds import make_candidates

#: Data sets of few features, whose margins are smaller.
FEW_FEATURES = ("letter", "satimage")


def _ordering(problem, number):
    """Return one of the random orderings that TAN Random, TAN Subset and TAN All share."""
    return stream(problem.name, "ordering", number).permutation(problem.n_features)


@dataclass(frozen=True)
class NoEdges:
    """Naive Bayes."""

    is_structure = True

    def __call__(self, problem, data, ordering, draw):
        """Return the structure."""
        return Structure.naive_bayes(data.n_features)

    def recipe(self, problem, draw):
        """Return the structure of an estimator, whose default is naive Bayes."""


@dataclass(frozen=True)
class Learned:
    """The structure that a learner finds; ``recipe(problem, draw)`` returns the learner without an ordering."""

    recipe: Callable
    is_structure = True

    def __call__(self, problem, data, ordering, draw):
        """Return the structure."""
        learner = self.recipe(problem, draw)
        if ordering is not None:
            learner.set_params(ordering=_ordering(problem, ordering))
        return learner.learn(data, stream(problem.name, "draw", ordering, draw))


def _structure_margin(problem, draw):
    """Return the margin in nats up to which a structure is rewarded; like gamma, it grows with the features."""
    return ((2, 5, 10) if problem.name in FEW_FEATURES else (30, 100, 300))[draw]


def order_search(problem, draw):
    """Return an order search by margin."""
    return OrderSearch(score="margin", gamma=_structure_margin(problem, draw))


def greedy_search(problem, draw):
    """Return a greedy search by margin."""
    return GreedySearch(score="margin", gamma=_structure_margin(problem, draw))


@dataclass(frozen=True)
class Drawn:
    """Candidate sets; smaller sets of one draw are contained in larger ones."""

    kind: str
    n_candidates: int | None = None
    pixels: str | None = None
    is_structure = False

    def __call__(self, problem, data, ordering, draw):
        """Return the candidate sets."""
        wanted = self.recipe(problem, draw)
        if ordering is not None:
            wanted = wanted.set_params(ordering=_ordering(problem, ordering))
        return make_candidates(wanted, data.n_features, rng=stream(problem.name, "draw", ordering, draw))

    def recipe(self, problem, draw):
        """Return the candidates of an estimator."""
        image_shape = problem.image_shape if self.kind == "heuristic" else None
        return Candidates(self.kind, n_candidates=self.n_candidates, ordering=self.pixels, image_shape=image_shape)


#: Settings of trees that are trained with other parameters: the middle of the good ones of order-free cells.
_TREES = {
    "letter": (Hybrid(trade_off=200, gamma=4, eta=5), 0.015, 0.001, (3.0, 0.1), 400),
    "satimage": (Hybrid(trade_off=20, gamma=30, eta=2), 0.016, 0.002, (1.0, 0.1), 150),
    "usps": (Hybrid(trade_off=300, gamma=60, eta=2.5), 0.03, 0.005, (3.0, 0.1), 100),
}


@dataclass(frozen=True)
class Trained:
    """The tree of a training with order-free candidates: all other features, or 8 for images."""

    is_structure = True

    def __call__(self, problem, data, ordering, draw):
        """Return the structure."""
        candidates = self._candidates(problem)(problem, data, None, draw)
        return self._model(problem, draw).set_params(candidates=candidates).fit_encoded(data).structure_

    def recipe(self, problem, draw):
        """Return the structure of an estimator, as an expression with training rows X and y."""
        model = self._model(problem, draw).set_params(candidates=self._candidates(problem).recipe(problem, draw))
        return Expression(f"{in_one_line(model)}.fit(X, y).structure_")

    def _candidates(self, problem):
        return Drawn("order-free", 8 if problem.image_shape else None)

    def _model(self, problem, draw):
        loss, learning_rate, structure_learning_rate, temperature, n_epochs = _TREES[problem.name]
        return TANClassifier(
            loss=loss,
            training=GradientTraining(
                learning_rate=learning_rate,
                structure_learning_rate=structure_learning_rate,
                temperature=temperature,
                batch_size=problem.batch_size,
            ),
            n_epochs=n_epochs,
            calibrate=False,
            random_state=draw,
        )


@dataclass(frozen=True, repr=False)
class Expression:
    """A Python expression as an argument of an estimator."""

    text: str

    def __repr__(self):
        return self.text


def in_one_line(estimator):
    """Return the call that makes an estimator."""
    return " ".join(estimator.__repr__(N_CHAR_MAX=10**6).split())
