"""TAN-CR: greedy addition of the edge that classifies best (Keogh, Pazzani 1999; maximum margin 2012, section 4.2).

Order-based learning (2008, section 5) calls this the naive greedy heuristic. In that comparison, its structures are the
best and the most expensive, because each step scores all remaining edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.knowledge import EdgeRules, Knowledge, initial_structure, read_rules
from tanlearn.structures.structures import Structure

from .structure_scores import ROUNDING, Families, StructureScorer, WrapperSearch, first_best, single_parents, try_many

__all__ = ["GreedySearch", "tree_labels"]


class GreedySearch(WrapperSearch):
    """Hill climbing over forests, from naive Bayes: add the best edge until no edge improves the score.

    The search needs all rows at once, because pair counts do not determine how rows are classified. An estimator with
    this search therefore has no ``fit_batches``.

    Parameters
    ----------
    score : {"accuracy", "margin", "conditional-likelihood"}, default="accuracy"
        Objective to maximize: the classification rate, the mean margin (log odds of the true class against the best
        other class, capped at ``gamma``), or the mean log posterior of the true class.
    gamma : float, default=1.0
        Maximum of the margin of a row, in nats, from 1e-6 to 1e6. It is used only if ``score="margin"``.
    validation : None, float or int, default=None
        Rows on which structures are scored: None for the training rows, a float for a held-out fraction of them, or an
        int for cross-validation with this number of folds. CPTs, and cut points that depend on classes, are fitted
        without the held-out rows.
    smoothing : MaximumLikelihood, optional
        Learner of the CPTs during the search. The default is ``MaximumLikelihood(alpha=1)``.
    initial : Structure, optional
        Initial structure, such as the ``structure_`` of an interrupted search. The default is naive Bayes.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The search starts with the required edges, and adds no excluded edge.
        ``initial`` must satisfy the knowledge too.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints one line per added edge.

    Attributes
    ----------
    structure_ : Structure
        Current structure, updated after each edge and kept if the search is interrupted (in an estimator, as
        ``structure_learner_.structure_``).
    score_ : float
        Score of ``structure_``.
    history_ : list of ParentChange
        The edges of ``initial`` (step 0) and the added edges, one per step.
    n_evaluations_ : int
        Number of structures that the search has scored.

    Notes
    -----
    The CPTs of all candidate edges are kept in memory: 0.5 GB for 196 pixels of about 11 values, and five times as much
    with ``validation=5``, because each fold has its own.

    References
    ----------
    Keogh, Pazzani: Learning augmented Bayesian classifiers: a comparison of distribution-based and
    classification-based approaches. AI and Statistics, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import GreedySearch
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> search = GreedySearch()
    >>> search.learn(data, rng).parent.tolist(), search.history_
    ([2, -1, -1], [ParentChange(child=0, parents=(2,), score=1.0, step=1, n_evaluations=6)])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WrapperSearch._parameter_constraints,
        "knowledge": [None, Knowledge],
    }

    def __init__(
        self,
        *,
        score: str = "accuracy",
        gamma: float = 1.0,
        validation: float | None = None,
        smoothing: MaximumLikelihood | None = None,
        initial: Structure | None = None,
        knowledge: Knowledge | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.gamma = gamma
        self.validation = validation
        self.smoothing = smoothing
        self.initial = initial
        self.knowledge = knowledge
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the forest.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Random numbers for the held-out rows and folds. Ties between edges are broken by the names of child and
            parent, or without names by their numbers.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a value is missing, ``smoothing`` allows zero probabilities, there are fewer rows than folds, ``initial``
            is not a forest over these features, or ``knowledge`` contradicts itself or does not fit ``initial`` or the
            columns.
        TableMemoryError
            If the CPTs exceed the memory limit: 8 GiB or half of the machine's memory, whichever is smaller. For arrays
            with more than 100 entries per training row, the limit is a quarter of that size. The environment variable
            ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
        """
        self._validate_params()
        rules = read_rules(self.knowledge, data, max_parents=1)
        self.climb(data, self._start(data, rng, initial_structure(self.initial, rules)))
        return self.structure_

    def climb(self, data: EncodedData, scorer: StructureScorer) -> None:
        """Add edges to the structure of a scorer while the score increases.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        scorer : StructureScorer
            Scorer of the initial structure. It is changed in place, to the final structure.
        """
        self._keep(scorer)
        self.history_ = scorer.changes(None, step=0)
        rules = read_rules(self.knowledge, data, max_parents=1)
        for step, (families, number, value) in enumerate(self._best_edges(scorer, rules), start=1):
            if not value > scorer.value + ROUNDING:
                break
            scorer.take(families, number, value)
            child, parent = families.child, int(families.parents[number, 0])
            self.history_.append(scorer.change(child, [parent], step))
            self._keep(scorer)
            self._report(f"edge {step}, {parent} -> {child}", scorer)
        self.n_evaluations_ = scorer.n_evaluations

    def _best_edges(self, scorer: StructureScorer, rules: EdgeRules | None) -> Iterator[tuple[Families, int, float]]:
        """Yield the best edge and the score with it; the caller adds the edge before the next step."""
        parent = scorer.parents[:, 0]  # a view: it changes with each edge
        order = scorer.by_name
        scorer.check_memory()
        orphans = order[parent[order] < 0].tolist()
        families = [scorer.families(i, parents) for i in orphans if len(parents := _candidates(i, order, rules))]
        while True:
            tree = tree_labels(parent)
            tasks = [(own, np.flatnonzero(tree[own.parents[:, 0]] != tree[own.child])) for own in families]
            tasks = [task for task in tasks if len(task[1])]
            if not tasks:
                return
            scores = try_many(scorer, tasks, self.n_jobs)
            best = first_best([values.max() for values in scores])
            number = first_best(scores[best])
            chosen, candidates = tasks[best]
            yield chosen, int(candidates[number]), float(scores[best][number])
            families = [own for own, _ in tasks if own is not chosen]  # no edge joins the others later either


def _candidates(child: int, features: IntArray, rules: EdgeRules | None) -> IntArray:
    """Return the families (n_families, 2) of a child with one allowed parent, in the order of the features."""
    families = single_parents(child, features)
    return families if rules is None else families[rules.allowed[child, families[:, 0]]]


def tree_labels(parent: IntArray) -> IntArray:
    """Return the root of the tree of each feature, given its parent (-1 for roots).

    An edge between two trees closes no cycle.
    """
    root = np.where(parent < 0, np.arange(len(parent)), parent)
    while not np.array_equal(root, root[root]):
        root = root[root]
    return root
