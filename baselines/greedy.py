"""TAN-CR: always the edge that classifies best (Keogh and Pazzani 1999; maximum margin 2012, section 4.2).

Called the naive greedy heuristic of order-based learning (2008, section 5): the best of its structures and the
dearest, because every edge asks for the scores of all that remain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.structures import Structure
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

from .history import Edge
from .wrapper import ROUNDING, Families, StructureScorer, WrapperSearch, first_best, single_parents, try_many

__all__ = ["GreedySearch", "tree_labels"]


class GreedySearch(WrapperSearch):
    """Hill climbing over forests: from naive Bayes on, add the edge that improves the score most, while one does.

    Counts do not tell how rows are classified: all are needed at once, and an estimator has no ``fit_batches`` with
    this search.

    Parameters
    ----------
    score : {"accuracy", "margin", "conditional-likelihood"}, default="accuracy"
        What to improve: the classification rate, the mean lead of the class over the best other one up to
        ``gamma``, or the mean log-posterior of the class.
    gamma : float, default=1.0
        Where the margin ends, in nats, from 1e-6 to 1e6; for ``score="margin"`` only.
    validation : None, float or int, default=None
        Rows to score: the training rows, this share of them held out from the tables, or so many folds, each held
        out in turn. Cut points that depend on classes are fitted without the held-out rows.
    smoothing : MaximumLikelihood, optional
        Makes the tables during the search; by default ``MaximumLikelihood(alpha=1)``.
    initial : Structure, optional
        Where to start instead of naive Bayes, such as the ``structure_`` of an interrupted search.
    n_jobs : int, optional
        Threads, as in joblib. The structure does not depend on it.
    verbose : int, default=0
        1 prints every edge.

    Attributes
    ----------
    structure_ : Structure
        The structure so far; kept after every edge, so that an interrupted search leaves it (in an estimator, as
        ``structure_learner_.structure_``).
    score_ : float
        Its score.
    history_ : list of Edge
        The edges that were added, in this order: a step each.

    Notes
    -----
    The tables of all edges are kept for every part of the rows that is scored: 0.5 GB for 196 pixels of about 11
    values, and five times as much with ``validation=5``.

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
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # only together do 0 and 2 tell the class
    >>> search = GreedySearch()
    >>> search.learn(data, rng).parent.tolist(), search.history_
    ([2, -1, -1], [Edge(child=0, parents=(2,), score=1.0, step=1)])
    """

    def __init__(
        self,
        *,
        score: str = "accuracy",
        gamma: float = 1.0,
        validation: float | None = None,
        smoothing: MaximumLikelihood | None = None,
        initial: Structure | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.gamma = gamma
        self.validation = validation
        self.smoothing = smoothing
        self.initial = initial
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Return the forest.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Draws held-out rows and folds. Equal edges are ordered by the names of child and parent, without names by
            their numbers.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a value is missing, ``smoothing`` leaves zeros, there are fewer rows than folds, or ``initial`` is no
            forest of these features.
        TableMemoryError
            If the tables would need more memory than they may take (8 GiB, or 2 where rows cannot fill them).
        """
        self.climb(data, self._start(data, rng, self.initial))
        return self.structure_

    def climb(self, data: EncodedData, scorer: StructureScorer) -> None:
        """Add edges to the structure of a scorer as long as the score grows.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        scorer : StructureScorer
            Scorer at the first structure; afterwards at the last.
        """
        self._keep(scorer)
        self.history_ = []
        for step, (families, number, value) in enumerate(self._best_edges(scorer), start=1):
            if not value > scorer.value + ROUNDING:
                break
            scorer.take(families, number, value)
            child, parent = families.child, int(families.parents[number, 0])
            self.history_.append(Edge(child, (parent,), value, step))
            self._keep(scorer)
            self._tell(f"edge {step}, {parent} -> {child}", scorer)

    def _best_edges(self, scorer: StructureScorer) -> Iterator[tuple[Families, int, float]]:
        """Yield the edge to add next and the score with it, as long as there is one; the caller adds it."""
        parent = scorer.parents[:, 0]  # a view: it changes with every edge
        order = scorer.by_name
        scorer.check_memory()
        families = [scorer.families(i, single_parents(i, order)) for i in order[parent[order] < 0].tolist()]
        while len(families) > 1:
            tree = tree_labels(parent)
            tasks = [(own, np.flatnonzero(tree[own.parents[:, 0]] != tree[own.child])) for own in families]
            scores = try_many(scorer, tasks, self.n_jobs)
            best = first_best([values.max() for values in scores])
            number = first_best(scores[best])
            chosen, candidates = tasks[best]
            yield chosen, int(candidates[number]), float(scores[best][number])
            del families[best]


def tree_labels(parent: IntArray) -> IntArray:
    """Return the root of the tree that every feature stands in: an edge between two trees closes no cycle.

    Shapes: parent: (n_features,); result: (n_features,).
    """
    root = np.where(parent < 0, np.arange(len(parent)), parent)
    while not np.array_equal(root, root[root]):
        root = root[root]
    return root
