"""Hill climbing over arcs between features by a classification score, with the class as parent of every feature.

BNC-2P (Grossman, Domingos 2004) maximizes the conditional likelihood with at most two parents per feature; Pernkopf and
Wohlmayr (2013) maximize the margin. These scores are not sums over families, so all moves are scored again in each
step. The CPTs of candidate families are computed again only if the parents of their feature changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.knowledge import Knowledge
from tanlearn.structures.structures import Structure

from .arc_moves import ArcGraph, Climber, Move, first_graph, structure_of
from .structure_scores import ROUNDING, Families, StructureScorer, WrapperSearch, try_many

__all__ = ["DiscriminativeHillClimbing"]

#: Maximum number of CPT entries of a child's candidate families that are kept for the next step: 32 MiB per fold.
_MAX_CELLS = 2**22


class DiscriminativeHillClimbing(WrapperSearch):
    """Hill climbing by conditional likelihood, margin or accuracy: add, remove or reverse the best arc.

    The class is a parent of every feature. In contrast to :class:`~tanlearn.baselines.GreedySearch`, arcs can also be
    removed and reversed, and features can have two augmenting parents.

    Parameters
    ----------
    score : {"accuracy", "margin", "conditional-likelihood"}, default="conditional-likelihood"
        Objective to maximize: the classification rate, the mean margin (log odds of the true class against the best
        other class, capped at ``gamma``), or the mean log posterior of the true class.
    gamma : float, default=1.0
        Maximum of the margin of a row, in nats, from 1e-6 to 1e6. It is used only if ``score="margin"``.
    max_parents : {1, 2}, default=2
        Maximum number of augmenting parents per feature.
    validation : None, float or int, default=None
        Rows on which structures are scored: None for the training rows, a float for a held-out fraction of them, or an
        int for cross-validation with this number of folds. CPTs, and cut points that depend on classes, are fitted
        without the held-out rows.
    smoothing : MaximumLikelihood, optional
        Learner of the CPTs during the search. The default is ``MaximumLikelihood(alpha=1)``.
    initial : Structure, optional
        Initial structure, such as the ``structure_`` of an interrupted search. The default is naive Bayes.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The search starts with the required edges, and makes only steps that
        keep them and add no excluded edge. ``initial`` must satisfy the knowledge too.
    tabu_length : int, default=0
        Number of recent structures to which the search must not return, as in
        :class:`~tanlearn.baselines.HillClimbing`.
    n_restarts : int, default=0
        Number of further climbs, each from the best structure after ``n_random_moves`` random steps.
    n_random_moves : int, default=10
        Number of random steps before each further climb, at least 1.
    max_steps : int, optional
        Maximum number of steps of all climbs; by default there is no limit.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints one line per step.

    Attributes
    ----------
    structure_ : Structure
        Best structure so far, kept if the search is interrupted (in an estimator, as
        ``structure_learner_.structure_``).
    score_ : float
        Score of ``structure_``.
    history_ : list of ParentChange
        The arcs of ``initial`` (step 0), and all changes. A reversal changes two features, and a restart changes many;
        their records have the same step, and the score after the whole step. ``n_evaluations`` is the number of
        structures that were scored.
    n_evaluations_ : int
        Number of structures that the search has scored.

    Notes
    -----
    Each step scores about d^2 structures of d features on all rows, so a search computes O(d^3) scores.

    References
    ----------
    Grossman, Domingos: Learning Bayesian network classifiers by maximizing conditional likelihood. International
    Conference on Machine Learning, 2004.

    Pernkopf, Wohlmayr: Stochastic margin-based structure learning of Bayesian network classifiers. Pattern Recognition
    46, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import DiscriminativeHillClimbing
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> search = DiscriminativeHillClimbing(score="accuracy")
    >>> search.learn(data, rng).parent.tolist(), search.score_
    ([2, -1, -1], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WrapperSearch._parameter_constraints,
        "knowledge": [None, Knowledge],
        "max_parents": [Interval(Integral, 1, 2, closed="both")],
        "tabu_length": [Interval(Integral, 0, None, closed="left")],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "n_random_moves": [Interval(Integral, 1, None, closed="left")],
        "max_steps": [None, Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        score: str = "conditional-likelihood",
        gamma: float = 1.0,
        max_parents: int = 2,
        validation: float | None = None,
        smoothing: MaximumLikelihood | None = None,
        initial: Structure | None = None,
        knowledge: Knowledge | None = None,
        tabu_length: int = 0,
        n_restarts: int = 0,
        n_random_moves: int = 10,
        max_steps: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.gamma = gamma
        self.max_parents = max_parents
        self.validation = validation
        self.smoothing = smoothing
        self.initial = initial
        self.knowledge = knowledge
        self.tabu_length = tabu_length
        self.n_restarts = n_restarts
        self.n_random_moves = n_random_moves
        self.max_steps = max_steps
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the structure.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Random numbers for the held-out rows, the folds and the random steps. Ties between steps are broken by the
            kind of step (removal, addition, reversal) and the names of child and parent, or, without names, by their
            indices.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a value is missing, ``smoothing`` allows zero probabilities, there are fewer rows than folds, ``initial``
            has other features, a cycle or too many parents, or ``knowledge`` contradicts itself or does not fit
            ``initial`` or the columns.
        TableMemoryError
            If the CPTs of the candidate parents of a feature exceed the memory limit: 8 GiB or half of the machine's
            memory, whichever is smaller. For arrays with more than 100 entries per training row, the limit is a quarter
            of that size. The environment variable ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
        """
        order = data.by_name
        scorer = self._start(data.take_features(order), rng)
        graph = first_graph(self.initial, data, self.max_parents, self.knowledge)
        climber = Climber(
            order,
            tabu_length=self.tabu_length,
            max_steps=self.max_steps,
            tolerance=ROUNDING,
            on_step=lambda event, _: self._report(event, scorer),
        )
        self.history_ = climber.history
        moves = partial(_StructureMoves, scorer=scorer, n_jobs=self.n_jobs)
        try:
            climber.search(graph, moves, self.n_restarts, self.n_random_moves, rng)
        finally:  # an interrupted search keeps its best structure
            self.structure_, self.score_ = structure_of(climber.best.all_parents(), order), climber.best_value
            self.n_evaluations_ = scorer.n_evaluations
        return self.structure_


class _StructureMoves:
    """Changes in a classification score for the moves of a graph, each of which is scored on all rows."""

    def __init__(self, graph: ArcGraph, scorer: StructureScorer, n_jobs: int | None) -> None:
        self._graph, self._scorer, self._n_jobs = graph, scorer, n_jobs
        # Candidate families of a child, and the parent that each adds or removes.
        self._candidates: dict[int, tuple[Families, IntArray]] = {}
        for i, given in enumerate(graph.all_parents()):
            if given != [j for j in scorer.parents[i].tolist() if j >= 0]:
                self._take(i)

    @property
    def n_evaluations(self) -> int:
        """Number of structures that were scored."""
        return self._scorer.n_evaluations

    def value(self) -> float:
        """Return the score of the graph."""
        return self._scorer.value

    def gains(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the changes in the score for removals, additions and reversals, with -inf for illegal moves."""
        graph, value = self._graph, self._scorer.value
        removals, additions = graph.removals(), graph.additions()
        legal = removals | additions
        children = np.flatnonzero(legal.any(axis=1)).tolist()
        found = [self._families(i) for i in children]
        tasks = [
            (families, np.flatnonzero(legal[i, others])) for i, (families, others) in zip(children, found, strict=True)
        ]
        change = np.full(graph.arcs.shape, -np.inf)
        scores = try_many(self._scorer, tasks, self._n_jobs)
        for i, (_, others), (_, tried), values in zip(children, found, tasks, scores, strict=True):
            change[i, others[tried]] = values - value
        reversals = np.full(graph.arcs.shape, -np.inf)
        arcs = np.argwhere(graph.reversals())
        self._scorer.n_evaluations += len(arcs)
        for (i, j), reversed_value in zip(arcs, in_threads(self._try_reversal, arcs, self._n_jobs), strict=True):
            reversals[i, j] = reversed_value - value
        return np.where(removals, change, -np.inf), np.where(additions, change, -np.inf), reversals

    def moved(self, move: Move) -> None:
        """Update the score after a move of the graph."""
        for i in move.changed:
            self._candidates.pop(i, None)
            self._take(i)

    def _families(self, child: int) -> tuple[Families, IntArray]:
        """Return the families of a child with one parent added or removed, and this parent of each family."""
        if child in self._candidates:
            return self._candidates[child]
        given = set(self._graph.parents(child))
        is_full = len(given) == self._graph.max_parents
        others = [j for j in range(len(self._graph.arcs)) if j != child and (j in given or not is_full)]
        families = self._scorer.families(child, _columns([sorted(given ^ {j}) for j in others]))
        candidates = families, np.array(others)
        if sum(layout.n_cells for layout in families.layouts) <= _MAX_CELLS * len(families.layouts):
            self._candidates[child] = candidates
        return candidates

    def _try_reversal(self, arc: IntArray) -> float:
        """Return the score after the reversal of an arc (child, parent)."""
        child, parent = arc.tolist()
        trial = self._scorer.copy()
        without = [j for j in self._graph.parents(child) if j != parent]
        _take(trial, child, without)
        families = trial.families(parent, _columns([sorted([*self._graph.parents(parent), child])]))
        return float(trial.try_families(families)[0])

    def _take(self, child: int) -> None:
        """Give the scorer the parents that a child has in the graph."""
        _take(self._scorer, child, self._graph.parents(child))


def _take(scorer: StructureScorer, child: int, parents: Sequence[int]) -> None:
    """Set the parents of a child in the structure of a scorer."""
    families = scorer.families(child, _columns([parents]))
    scorer.take(families, 0, float(scorer.try_families(families)[0]))


def _columns(parents: Sequence[Sequence[int]]) -> IntArray:
    """Return sets of at most two parents as an array (n_sets, 2), with -1 for none."""
    return np.array([[*given, -1, -1][:2] for given in parents], dtype=np.intp)
