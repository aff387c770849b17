"""Simulated annealing over forests, on the margin (Pernkopf and Wohlmayr 2013; maximum margin 2012, section 4.2).

Each step evaluates one family, whereas greedy search evaluates all candidate edges before it adds one. A step may
decrease the score, which lets the search leave the local optima of greedy search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._memory import TableMemoryError
from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import exp, exp_all, log
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.knowledge import EdgeRules, Knowledge, initial_structure, read_rules
from tanlearn.structures.structures import Structure

from .feature_orderings import all_parents_ordering
from .greedy import GreedySearch
from .history import ParentChange
from .order_search import OrderSearch
from .structure_scores import ROUNDING, StructureScorer, WrapperSearch, first_best

__all__ = ["SimulatedAnnealing"]

#: Probability that a step reverses an edge.
_REVERSALS = 0.25
#: Number of random moves from which the first temperature is estimated.
_N_SAMPLED = 100
#: Last temperature, as a fraction of the first.
_LAST = 1e-3


class SimulatedAnnealing(WrapperSearch):
    """Random changes of a forest at a decreasing temperature, starting from the result of greedy search.

    The result is the best forest of all steps, so its score is at least the score of the initial structure.

    The search needs all rows at once, because pair counts do not determine how rows are classified. An estimator with
    this search therefore has no ``fit_batches``.

    Parameters
    ----------
    n_steps : int, default=20_000
        Number of steps of each chain. Three of four steps draw a feature and a new parent for it, or no parent. The
        others draw an edge and reverse it: the parent becomes the child, and the child takes over the parent of its
        parent. A step that would close a cycle is rejected without a redraw, so that a move is as likely as its
        reverse.
    temperature : "auto" or tuple of (float, float), default="auto"
        Temperature of the first and of the last step, in units of the score. It decreases geometrically. ``"auto"``
        uses the median absolute change in the score over 100 random changes of a parent at the start, and a thousandth
        of this median.
    n_chains : int, default=1
        Number of independent chains. The best forest of all chains is returned.
    score : {"accuracy", "margin", "conditional-likelihood"}, default="margin"
        Objective to maximize: the classification rate, the mean margin (log odds of the true class against the best
        other class, capped at ``gamma``), or the mean log posterior of the true class.
    gamma : float, default=3.0
        Maximum of the margin of a row, in nats, from 1e-6 to 1e6. It is used only if ``score="margin"``. Use larger
        values for more features.
    validation : None, float or int, default=None
        Rows on which structures are scored: None for the training rows, a float for a held-out fraction of them, or an
        int for cross-validation with this number of folds. CPTs, and cut points that depend on classes, are fitted
        without the held-out rows.
    smoothing : MaximumLikelihood, optional
        Learner of the CPTs during the search. The default is ``MaximumLikelihood(alpha=1)``.
    initial : "auto", Structure or None, default="auto"
        Initial structure of each chain. ``"auto"`` uses the result of :class:`GreedySearch` with the same score if that
        search evaluates at most ``n_steps`` families (about d^3 / 3 for d features), otherwise the result of
        :class:`OrderSearch` (d^2 / 2). ``None`` is naive Bayes.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. Steps that remove a required edge or add an excluded one are rejected.
        ``None`` and the searches for ``initial`` start with the required edges. An initial structure must agree with
        the knowledge.
    n_jobs : int, optional
        Number of threads for the chains, as in joblib. The structure does not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints the final score of each chain.

    Attributes
    ----------
    structure_ : Structure
        The best structure.
    score_ : float
        Score of ``structure_``.
    history_ : list of ParentChange
        The edges of the initial structure (step 0), and the changes of the best chain at each new best score. All
        changes since the previous best score are recorded with the step of the new best score.
    n_evaluations_ : int
        Number of structures that the search has scored.

    Notes
    -----
    A move that changes the score by ``gain`` is accepted with probability ``min(1, exp(gain / temperature))``.

    The defaults of ``gamma`` and ``n_steps`` have the lowest error, or an error that exceeds it only by noise, on a
    held-out fifth of the training rows. Errors with ``gamma`` 1, 3, 10, 30 are 15.2, 14.5, 15.3, 15.9 % on letter (16
    features), 12.1, 11.8, 11.8, 12.9 % on satimage (36) and 5.3, 5.0, 5.0, 4.1 % on usps (256). With ``gamma=10`` and
    5,000, 20,000, 60,000 steps they are 5.3, 5.0, 4.7 % on usps. These are means of three draws with maximum-likelihood
    CPTs, ``initial=None`` and ``temperature=(1e-2, 1e-5)``, measured with an earlier version whose steps did not
    reverse edges.

    References
    ----------
    Pernkopf, Wohlmayr: Stochastic margin-based structure learning of Bayesian network classifiers. Pattern
    Recognition 46, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import SimulatedAnnealing
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> SimulatedAnnealing(score="accuracy", n_steps=50).learn(data, rng).n_edges
    1
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WrapperSearch._parameter_constraints,
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "temperature": [StrOptions({"auto"}), tuple, list],
        "initial": [StrOptions({"auto"}), Structure, None],
        "knowledge": [None, Knowledge],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_steps: int = 20_000,
        temperature: str | tuple[float, float] = "auto",
        n_chains: int = 1,
        score: str = "margin",
        gamma: float = 3.0,
        validation: float | None = None,
        smoothing: MaximumLikelihood | None = None,
        initial: str | Structure | None = "auto",
        knowledge: Knowledge | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_steps = n_steps
        self.temperature = temperature
        self.n_chains = n_chains
        self.score = score
        self.gamma = gamma
        self.validation = validation
        self.smoothing = smoothing
        self.initial = initial
        self.knowledge = knowledge
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return the best forest of all chains.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Random numbers for the held-out rows and folds, which all chains share. Each chain uses a generator spawned
            from it.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a value is missing, ``smoothing`` allows zero probabilities, there are fewer rows than folds,
            ``temperature`` increases or is not positive, ``initial`` is not a forest over these features, or
            ``knowledge`` contradicts itself or does not fit ``initial`` or the columns.
        """
        self._validate_params()
        initial = None if isinstance(self.initial, str) else self.initial
        if not isinstance(self.temperature, str):
            self._schedule(self.temperature)
        rules = read_rules(self.knowledge, data, max_parents=1)
        scorer = self._start(data, rng, initial_structure(initial, rules))
        if isinstance(self.initial, str):
            self._climb(data, scorer, rules)
        may_have = _without_rules(data.n_features) if rules is None else rules.choices()
        limits = _typical_change(scorer, may_have, rng) if isinstance(self.temperature, str) else self.temperature
        temperatures = self._schedule(limits)

        def search(chain: tuple[int, np.random.Generator]) -> tuple[StructureScorer, list[ParentChange], int]:
            number, own = chain
            current = scorer.copy()
            best, history = _anneal(current, temperatures, own, may_have)
            self._report(f"chain {number + 1} of {self.n_chains}", best)
            return best, history, current.n_evaluations - scorer.n_evaluations

        chains = in_threads(search, enumerate(rng.spawn(self.n_chains)), self.n_jobs)
        best, self.history_, _ = chains[first_best([own.value for own, *_ in chains])]
        self.n_evaluations_ = scorer.n_evaluations + sum(count for *_, count in chains)
        self._keep(best)
        return self.structure_

    def _climb(self, data: EncodedData, scorer: StructureScorer, rules: EdgeRules | None) -> None:
        """Move the scorer to the result of greedy search, or of the cheaper search along an ordering."""
        search: GreedySearch | OrderSearch = GreedySearch(knowledge=self.knowledge)
        if data.n_features**3 > 3 * self.n_steps:
            search = OrderSearch(knowledge=self.knowledge, n_jobs=self.n_jobs)
            ordering = all_parents_ordering(data, n_jobs=self.n_jobs)
            search.ordering_ = ordering if rules is None else rules.ordered(ordering)
        search.n_jobs = self.n_jobs
        try:
            search.climb(data, scorer)
        except TableMemoryError:
            if self.verbose:
                print("SimulatedAnnealing: the CPTs of the initial search are too large")  # noqa: T201

    def _schedule(self, limits: Sequence[float]) -> FloatArray:
        """Return the temperature of each step. Shape: (n_steps,)."""
        positive = all(isinstance(t, (int, float, np.number)) and 0 < t < math.inf for t in limits)
        if len(limits) != 2 or not positive or limits[0] < limits[1]:
            raise ValueError(
                f"temperature must contain two positive numbers, for the first and the last step, and the second must "
                f"not be larger, got {limits}."
            )
        first, last = (float(temperature) for temperature in limits)
        schedule = np.linspace(0.0, log(last / first), self.n_steps)
        exp_all(schedule, schedule)
        return first * schedule


def _anneal(
    scorer: StructureScorer, temperatures: FloatArray, rng: np.random.Generator, may_have: AnyArray | None = None
) -> tuple[StructureScorer, list[ParentChange]]:
    """Run one chain from the current structure, and return the best scorer with the changes that led to it.

    ``may_have`` (n_features, n_features + 1) is true where a feature may have a parent, or none (the last column); by
    default everywhere.
    """
    if may_have is None:
        may_have = _without_rules(len(scorer.parents))
    parent = scorer.parents[:, 0]  # a view: it changes with every step
    best, history = scorer.copy(), scorer.changes(None, step=0)
    for step, temperature in enumerate(temperatures.tolist(), start=1):
        child, chosen = int(rng.integers(len(parent))), int(rng.integers(-1, len(parent)))
        if rng.random() < _REVERSALS:
            upper = int(parent[child])
            if upper >= 0 and may_have[child, parent[upper]] and may_have[upper, child]:
                _reverse(scorer, child, temperature, rng)
        elif chosen != parent[child] and may_have[child, chosen] and not _is_below(parent, chosen, child):
            families = scorer.families(child, np.array([[chosen, -1]]))
            scorer.n_evaluations += 1
            value = float(scorer.try_families(families)[0])
            if value >= scorer.value or rng.random() < exp((value - scorer.value) / temperature):
                scorer.take(families, 0, value)
        if scorer.value > best.value:
            history += scorer.changes(best.parents, step)
            best = scorer.copy()
    return best, history


def _without_rules(n_features: int) -> AnyArray:
    """Return a mask that allows each feature any parent or none. Shape: (n_features, n_features + 1)."""
    return np.ones((n_features, n_features + 1), np.bool_)


def _reverse(scorer: StructureScorer, child: int, temperature: float, rng: np.random.Generator) -> None:
    """Reverse the edge into a child with Metropolis acceptance; the child takes over the parent of its parent."""
    upper = int(scorer.parents[child, 0])
    moved = scorer.families(child, scorer.parents[[upper]].copy())
    turned = scorer.families(upper, np.array([[child, -1]]))
    trial = scorer.copy()
    trial.take(moved, 0, float(trial.try_families(moved)[0]))
    value = float(trial.try_families(turned)[0])
    scorer.n_evaluations += 1
    if value >= scorer.value or rng.random() < exp((value - scorer.value) / temperature):
        scorer.take(moved, 0, trial.value)
        scorer.take(turned, 0, value)


def _typical_change(scorer: StructureScorer, may_have: AnyArray, rng: np.random.Generator) -> tuple[float, float]:
    """Return the median absolute change in the score over random changes of a parent, and a thousandth of it."""
    parent, changes = scorer.parents[:, 0], []
    for _ in range(_N_SAMPLED):
        child, chosen = int(rng.integers(len(parent))), int(rng.integers(-1, len(parent)))
        if chosen != parent[child] and may_have[child, chosen] and not _is_below(parent, chosen, child):
            scorer.n_evaluations += 1
            value = float(scorer.try_families(scorer.families(child, np.array([[chosen, -1]])))[0])
            changes.append(abs(value - scorer.value))
    first = max(float(np.median(changes)) if changes else 0.0, ROUNDING)
    return first, first * _LAST


def _is_below(parent: IntArray, feature: int, ancestor: int) -> bool:
    """Return whether a feature (-1 for none) is ``ancestor`` or one of its descendants in the forest."""
    while feature not in (-1, ancestor):
        feature = int(parent[feature])
    return feature == ancestor
