"""Hill climbing with any score and any moves, for experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._clock import learning_clock
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import EdgeRules, Knowledge, initial_structure, read_rules
from tanlearn.structures.structures import Structure, check_structure, padded_parents

from .family_scores import FAMILY_SCORES, make_score
from .history import ParentChange
from .scored_families import FamilyScorer

__all__ = ["LocalSearch", "one_arc_away"]

Score: TypeAlias = Callable[[Structure, EncodedData], float]


class LocalSearch(BaseEstimator):
    """Hill climbing with a score and moves of your own: go to the best neighbor while the score increases.

    Each step scores all neighbors from scratch. Searches such as :class:`~tanlearn.baselines.GreedySearch` and
    :class:`~tanlearn.baselines.HillClimbing` are much faster, but have a fixed list of scores and moves.

    Parameters
    ----------
    score : callable or str, default="bdeu"
        Function ``score(structure, data)`` that returns a number to be maximized, for a :class:`~tanlearn.Structure`
        and an :class:`~tanlearn.EncodedData`; or the name of a score of :class:`~tanlearn.baselines.HillClimbing`.
    neighbors : callable, optional
        Function ``neighbors(structure)`` that returns all structures after one move. By default, these are the
        structures with one arc added, removed or reversed.
    max_parents : int, default=1
        Maximum number of augmenting parents of each feature in the default moves, at least 1.
    initial : Structure, optional
        Initial structure; by default naive Bayes.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The search starts with the required edges, and scores only
        neighbors with all required and no excluded edges. ``initial`` must satisfy the knowledge too.
    max_steps : int, optional
        Maximum number of steps; by default there is no limit.
    verbose : int, default=0
        1 prints one line per step.

    Attributes
    ----------
    structure_ : Structure
        Current structure, kept if the search is interrupted.
    score_ : float
        Score of ``structure_``.
    history_ : list of ParentChange
        The features whose parents changed. The changes of one step have equal ``step`` and ``score``.
    n_evaluations_ : int
        Number of structures that were scored.

    Examples
    --------
    A score that prefers edges between an even-numbered and an odd-numbered feature:

    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import LocalSearch
    >>> def mixed_edges(structure, data):
    ...     child = np.flatnonzero(structure.parent >= 0)
    ...     return float(np.sum((child + structure.parent[child]) % 2) - 0.1 * len(child))
    >>> data = EncodedData.from_codes([[0, 1, 0], [1, 0, 0]], [0, 1])
    >>> search = LocalSearch(mixed_edges)
    >>> search.learn(data, np.random.default_rng(0)).parent.tolist(), search.n_evaluations_
    ([1, 2, -1], 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [callable, StrOptions(set(FAMILY_SCORES))],
        "neighbors": [callable, None],
        "max_parents": [Interval(Integral, 1, None, closed="left")],
        "initial": [Structure, None],
        "knowledge": [Knowledge, None],
        "max_steps": [Interval(Integral, 0, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    structure_: Structure
    score_: float
    history_: list[ParentChange]
    n_evaluations_: int

    def __init__(
        self,
        score: str | Score = "bdeu",
        *,
        neighbors: Callable[[Structure], Iterable[Structure]] | None = None,
        max_parents: int = 1,
        initial: Structure | None = None,
        knowledge: Knowledge | None = None,
        max_steps: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.neighbors = neighbors
        self.max_parents = max_parents
        self.initial = initial
        self.knowledge = knowledge
        self.max_steps = max_steps
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the structure.

        Parameters
        ----------
        data : EncodedData
            Training rows.
        rng : numpy.random.Generator
            Ignored. Among neighbors with equal scores, the first is taken.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If the score is not a finite number, a structure has other features than the data, or ``knowledge``
            contradicts itself or does not fit ``initial`` or the columns.
        TypeError
            If a neighbor is not a Structure.
        """
        self._validate_params()
        started = learning_clock()
        score = decomposable(self.score, data) if isinstance(self.score, str) else self.score
        rules = read_rules(self.knowledge, data, max_parents=self.max_parents if self.neighbors is None else None)
        current = initial_structure(self.initial, rules) or Structure.naive_bayes(data.n_features)
        check_structure(current, data.n_features)
        known: dict[Structure, float] = {}
        self.structure_, self.score_, self.history_ = current, self._value(current, data, score, known), []
        self._record(Structure.naive_bayes(data.n_features), 0, started)
        step = 0
        while self.max_steps is None or step < self.max_steps:
            found = list(self._neighbors(current, rules))
            values = [self._value(neighbor, data, score, known) for neighbor in found]
            if not values or not max(values) > self.score_:
                break
            before, step = current, step + 1
            current = found[values.index(max(values))]
            self.structure_, self.score_ = current, max(values)
            self._record(before, step, started)
            if self.verbose:
                print(f"LocalSearch: step {step}, score {self.score_:.6g}", flush=True)  # noqa: T201
        return self.structure_

    def _neighbors(self, structure: Structure, rules: EdgeRules | None) -> Iterable[Structure]:
        """Return the permitted structures that one move leads to."""
        move = partial(one_arc_away, max_parents=self.max_parents) if self.neighbors is None else self.neighbors
        found = move(structure)
        return found if rules is None else [one for one in found if _is_permitted(one, rules)]

    def _value(self, structure: Structure, data: EncodedData, score: Score, known: dict[Structure, float]) -> float:
        """Return the score of a structure, computed once."""
        if not isinstance(structure, Structure):
            raise TypeError(f"neighbors must return structures, got an object of type {type(structure).__name__}.")
        check_structure(structure, data.n_features)
        if structure not in known:
            value = float(score(structure, data))
            if not math.isfinite(value):
                raise ValueError(
                    f"score must return a finite number, got {value} for parents {structure.parents.tolist()}. Return "
                    f"a very low score for structures that must not be chosen."
                )
            known[structure] = value
            self.n_evaluations_ = len(known)
        return known[structure]

    def _record(self, before: Structure, step: int, started: float) -> None:
        """Record the features whose parents differ from those before the step."""
        for child in range(before.n_features):
            old, new = ([j for j in s.parents[child].tolist() if j >= 0] for s in (before, self.structure_))
            if old != new:
                seconds = learning_clock() - started
                change = ParentChange(child, tuple(new), self.score_, step, self.n_evaluations_, seconds)
                self.history_.append(change)


def _is_permitted(structure: Structure, rules: EdgeRules) -> bool:
    """Return whether rules permit a neighbor; neighbors with a wrong type or number of features are rejected later."""
    has_features = isinstance(structure, Structure) and structure.n_features == len(rules.tier)
    return not has_features or rules.permits(structure)


def decomposable(name: str, data: EncodedData) -> Score:
    """Return a decomposable score of the rows, by its name; families are scored once."""
    scorer = FamilyScorer(data, make_score(name, 1.0))
    return lambda structure, _: scorer.total([[j for j in row if j >= 0] for row in structure.parents.tolist()])


def one_arc_away(structure: Structure, max_parents: int = 1) -> Iterator[Structure]:
    """Yield all acyclic structures with one arc removed, added or reversed, by child and parent.

    Parameters
    ----------
    structure : Structure
        The structure to start from.
    max_parents : int, default=1
        Maximum number of augmenting parents of a feature that gets a parent, at least 1.

    Yields
    ------
    Structure

    Examples
    --------
    >>> from tanlearn import Structure
    >>> from tanlearn.baselines import one_arc_away
    >>> [found.parent.tolist() for found in one_arc_away(Structure([-1, 0]))]
    [[-1, -1], [1, -1]]
    """
    parents = [[j for j in row if j >= 0] for row in structure.parents.tolist()]

    def changed(child: int, of_child: list[int], parent: int, of_parent: list[int]) -> Structure | None:
        table = [of_child if i == child else of_parent if i == parent else row for i, row in enumerate(parents)]
        found = Structure(padded_parents(table), allow_cycles=True)
        return found if found.is_acyclic else None

    for child, own in enumerate(parents):
        for parent, other in enumerate(parents):
            less = [j for j in own if j != parent]
            found: list[Structure | None] = []
            if parent in own:
                found.append(changed(child, less, parent, other))
                if len(other) < max_parents:
                    found.append(changed(child, less, parent, [*other, child]))
            elif parent != child and len(own) < max_parents:
                found.append(changed(child, [*own, parent], parent, other))
            yield from (one for one in found if one is not None)
