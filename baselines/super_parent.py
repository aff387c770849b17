"""SuperParent: choose the best common parent first, then its best child (Keogh, Pazzani 1999).

Each edge takes O(n_features) score evaluations, compared with O(n_features^2) for greedy search, and the structures are
slightly less accurate (maximum margin 2012, section 4.3). But each of these evaluations exchanges the families of all
orphans. The greedy search of this package keeps the log joint and exchanges one family at a time, and is faster
(satimage: 0.4 s instead of 2.3 s).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tanlearn._threads import in_threads
from tanlearn.structures.knowledge import EdgeRules

from .greedy import GreedySearch, tree_labels
from .structure_scores import Families, StructureScorer, first_best, try_many

__all__ = ["SuperParent"]


class SuperParent(GreedySearch):
    """Hill climbing over forests that chooses the parent of each edge before its child.

    An orphan is a feature without an augmenting parent. The super-parent is the feature whose structure scores best
    when it becomes the parent of all orphans for which this closes no cycle, even if the score is worse than the
    current one. The best edge from the super-parent to one of these orphans is added if it improves the score;
    otherwise the search ends. As for :class:`GreedySearch`, the search needs all rows at once.

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

    References
    ----------
    Keogh, Pazzani: Learning augmented Bayesian classifiers: a comparison of distribution-based and
    classification-based approaches. AI and Statistics, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import SuperParent
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> search = SuperParent()
    >>> search.learn(data, rng).parent.tolist(), search.history_
    ([-1, -1, 0], [ParentChange(child=2, parents=(0,), score=1.0, step=1, n_evaluations=5)])
    """

    def _best_edges(self, scorer: StructureScorer, rules: EdgeRules | None) -> Iterator[tuple[Families, int, float]]:
        """Yield the best edge of the super-parent and the score with it; the caller then adds the edge."""
        parent = scorer.parents[:, 0]  # a view: it changes with each edge
        order = scorer.by_name
        orphans = order[parent[order] < 0]
        while len(orphans) > 1:
            labels = tree_labels(parent)[order]  # an orphan is the root of its tree
            children = [orphans[orphans != root] for root in labels]
            if rules is not None:
                pairs = zip(order.tolist(), children, strict=True)
                children = [of_parent[rules.allowed[of_parent, number]] for number, of_parent in pairs]
            parents_of_orphans = np.flatnonzero([len(of_parent) for of_parent in children])
            if not len(parents_of_orphans):
                return
            adopted = []
            for k in parents_of_orphans.tolist():
                parents = scorer.parents.copy()
                parents[children[k], 0] = order[k]
                adopted.append(parents)
            scorer.n_evaluations += len(adopted)
            best = int(parents_of_orphans[first_best(in_threads(scorer.score, adopted, self.n_jobs))])
            edge = np.array([[order[best], -1]])
            tasks = [(scorer.families(i, edge), np.array([0])) for i in children[best].tolist()]
            values = np.concatenate(try_many(scorer, tasks, self.n_jobs))
            chosen = first_best(values)
            yield tasks[chosen][0], 0, float(values[chosen])
            orphans = order[parent[order] < 0]
