"""TAN-OMI-CR: parents chosen along an ordering of the features (order-based 2008, section 4).

With a fixed ordering, no edge closes a cycle, so the parents of each feature are chosen only once. One parent per
feature takes O(n_features^2) score evaluations, compared with O(n_features^3) for greedy search, and the structures are
nearly as accurate. The search starts at the second feature, which may have the first as its parent. The papers start at
the third (section 4.2; maximum margin, section 4.3: "j in {3, ..., N}") and do not define the parents of the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._threads import in_threads, number_of_threads
from tanlearn._typing import FloatArray, IntArray
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.knowledge import EdgeRules, Knowledge, read_rules
from tanlearn.structures.orderings import check_ordering
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

from .feature_orderings import all_parents_ordering, single_parent_ordering
from .structure_scores import ROUNDING, StructureScorer, WrapperSearch, first_best

__all__ = ["OrderSearch"]

#: Maximum number of CPT entries held at once per thread and validation fold: 32 MB, unless one family has more.
_MAX_CELLS = 2**22


class OrderSearch(WrapperSearch):
    """Search along a feature ordering: each feature gets the earlier parents that improve the score most, if any do.

    The search needs all rows at once, because pair counts determine neither how rows are classified nor which rows
    agree on all earlier features (for "cmi"). An estimator with this search therefore has no ``fit_batches``.

    Parameters
    ----------
    ordering : {"cmi", "cmisp", "random"} or array-like of shape (n_features,), default="cmi"
        Ordering of the features. ``"cmi"`` (OMI) appends the feature with the largest information about the class given
        all features before it, and ``"cmisp"`` (OMISP) given the best single feature before it. ``"random"`` (RO)
        appends a random feature. An array contains the indices of the features in this order.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The orderings ``"cmi"``, ``"cmisp"`` and ``"random"`` are changed so
        that required parents come before their children, and earlier tiers come first. An array must have required
        parents first. A feature with required parents gets them even if they lower the score.
    max_parents : {1, 2}, default=1
        Maximum number of augmenting parents per feature. With 2, all pairs of earlier features are evaluated as well.
    n_candidates : int, optional
        Number of earlier features that are evaluated as parents of a feature. These features have the largest
        information about the feature given the class. By default, all are evaluated. The search then takes O(n_features
        * n_candidates ** max_parents) score evaluations, which makes two parents feasible for hundreds of features.
    score : {"accuracy", "margin", "conditional-likelihood"}, default="accuracy"
        Objective to maximize: the classification rate (CR), the mean margin (log odds of the true class against the
        best other class, capped at ``gamma``), or the mean log posterior of the true class (CL).
    gamma : float, default=1.0
        Maximum of the margin of a row, in nats, from 1e-6 to 1e6. It is used only if ``score="margin"``.
    validation : None, float or int, default=None
        Rows on which structures are scored: None for the training rows, a float for a held-out fraction of them, or an
        int for cross-validation with this number of folds. CPTs, and cut points that depend on classes, are fitted
        without the held-out rows. Two parents overfit the training rows; the paper uses five folds for them.
    smoothing : MaximumLikelihood, optional
        Learner of the CPTs during the search. The default is ``MaximumLikelihood(alpha=1)``. The paper uses
        ``MaximumLikelihood(alpha=0, epsilon=1e-5)``.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints one line per added edge.

    Attributes
    ----------
    ordering_ : ndarray of shape (n_features,)
        The ordering.
    structure_ : Structure
        Current structure, updated after each feature that got parents and kept if the search is interrupted (in an
        estimator, as ``structure_learner_.structure_``).
    score_ : float
        Score of ``structure_``.
    history_ : list of ParentChange
        One record per feature that got parents; ``ordering_[step]`` is this feature.
    n_evaluations_ : int
        Number of structures that the search has scored.

    References
    ----------
    Pernkopf, Bilmes: Order-based discriminative structure learning for Bayesian network classifiers. International
    Symposium on Artificial Intelligence and Mathematics, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import OrderSearch
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> OrderSearch().learn(data, rng).to_networkx().edges
    OutEdgeView([('C', 0), ('C', 1), ('C', 2), (2, 0)])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WrapperSearch._parameter_constraints,
        "ordering": [StrOptions({"cmi", "cmisp", "random"}), "array-like"],
        "knowledge": [None, Knowledge],
        "max_parents": [Interval(Integral, 1, 2, closed="both")],
        "n_candidates": [None, Interval(Integral, 1, None, closed="left")],
    }
    #: Position in the ordering of the first feature that may get a parent.
    _first: ClassVar[int] = 1

    def __init__(
        self,
        *,
        ordering: Any = "cmi",
        knowledge: Knowledge | None = None,
        max_parents: int = 1,
        n_candidates: int | None = None,
        score: str = "accuracy",
        gamma: float = 1.0,
        validation: float | None = None,
        smoothing: MaximumLikelihood | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ordering = ordering
        self.knowledge = knowledge
        self.max_parents = max_parents
        self.n_candidates = n_candidates
        self.score = score
        self.gamma = gamma
        self.validation = validation
        self.smoothing = smoothing
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the structure along the ordering.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Random numbers for the held-out rows, the folds and the random ordering. Among families with equal scores,
            the one with fewer parents, then with earlier parents, is chosen.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a value is missing, ``smoothing`` allows zero probabilities, there are fewer rows than folds,
            ``ordering`` is not a permutation of the features, or ``knowledge`` contradicts itself or does not fit the
            ordering or the columns.
        TableMemoryError
            If the CPTs exceed the memory limit: 8 GiB or half of the machine's memory, whichever is smaller. For arrays
            with more than 100 entries per training row, the limit is a quarter of that size. The environment variable
            ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
        """
        self._validate_params()
        rules = read_rules(self.knowledge, data, max_parents=self.max_parents)
        scorer = self._start(data, rng)
        self.ordering_ = self._order(data, rng)
        if rules is not None:
            if isinstance(self.ordering, str):
                self.ordering_ = rules.ordered(self.ordering_)
            rules.check_ordering(self.ordering_)
        self.climb(data, scorer)
        return self.structure_

    def climb(self, data: EncodedData, scorer: StructureScorer) -> None:
        """Choose the parents of each feature in turn along ``ordering_``.

        Parameters
        ----------
        data : EncodedData
            Complete rows.
        scorer : StructureScorer
            Scorer of naive Bayes, or of the required edges. It is changed in place, to the final structure.
        """
        self.history_ = []
        self._keep(scorer)
        n_threads = number_of_threads(self.n_jobs)

        def score(child: int, parents: IntArray) -> FloatArray:
            return scorer.try_families(scorer.families(child, parents))

        rules = read_rules(self.knowledge, data, max_parents=self.max_parents)
        for position, earlier in self._earlier(data, rules):
            child = int(self.ordering_[position])
            candidates = _families(earlier, self.max_parents)
            is_required = False
            if rules is not None:
                is_required = bool(rules.required[child].any())
                candidates = candidates[[rules.permits_family(child, own[own >= 0].tolist()) for own in candidates]]
            shares = _shares(data, child, candidates, n_threads)
            scorer.n_evaluations += len(candidates)
            values = np.concatenate(in_threads(partial(score, child), shares, n_threads))
            number = first_best(values)
            if is_required or values[number] > scorer.value + ROUNDING:
                scorer.take(scorer.families(child, candidates[number : number + 1]), 0, float(values[number]))
                parents = [j for j in candidates[number].tolist() if j >= 0]
                self.history_.append(scorer.change(child, parents, position))
                self._keep(scorer)
                self._report(f"feature {position + 1} of {data.n_features}, {parents} -> {child}", scorer)
        self.n_evaluations_ = scorer.n_evaluations

    def _order(self, data: EncodedData, rng: np.random.Generator) -> IntArray:
        """Return the ordering, first feature first."""
        if not isinstance(self.ordering, str):
            return check_ordering(self.ordering, data.n_features)
        if self.ordering == "random":
            return rng.permutation(data.n_features)
        if self.ordering == "cmi":
            return all_parents_ordering(data, n_jobs=self.n_jobs)
        state = PairCounts.of_features(data).update(data, n_jobs=self.n_jobs)
        return single_parent_ordering(state)

    def _earlier(self, data: EncodedData, rules: EdgeRules | None) -> Iterator[tuple[int, IntArray]]:
        """Yield each position in the ordering with the candidate parents before it, in their order, if there are any.

        All required parents are candidates, whatever ``n_candidates`` is.
        """
        ordering, positions = self.ordering_, range(self._first, data.n_features)
        for position, priority in self._priorities(data):
            if position not in positions:
                continue
            child, earlier = ordering[position], ordering[:position]
            if rules is not None:
                priority = priority + np.where(rules.required[child, earlier], np.inf, 0.0)
                priority[~rules.allowed[child, earlier]] = -np.inf
            most = np.argsort(-priority, kind="stable")[: self.n_candidates]
            most = most[priority[most] > -np.inf]
            if len(most):
                yield position, earlier[np.sort(most)]

    def _priorities(self, data: EncodedData) -> Iterator[tuple[int, FloatArray]]:
        """Yield each position in the ordering with the priorities of all earlier features as candidate parents."""
        if self.n_candidates is None:
            yield from ((position, np.zeros(position)) for position in range(data.n_features))
            return
        for first, information in Information.of_rows(data, n_jobs=self.n_jobs).of_pairs(self.ordering_):
            yield from ((position, row[:position]) for position, row in enumerate(information, start=first))


def _families(earlier: IntArray, max_parents: int) -> IntArray:
    """Return the candidate families (n_families, 2), with single parents first, then all pairs."""
    single = np.stack([earlier, np.full(len(earlier), -1)], axis=1)
    if max_parents == 1 or len(earlier) == 1:
        return single
    return np.concatenate([single, np.array(list(combinations(earlier, 2)))])


def _shares(data: EncodedData, child: int, parents: IntArray, n_threads: int) -> list[IntArray]:
    """Split the families of a child into one group per thread, or into more groups if their CPTs are large."""
    layout = TableLayout(np.full(len(parents), child), parents, data.n_states, data.n_classes)
    n_shares = max(n_threads, layout.n_cells // _MAX_CELLS + 1)
    return np.array_split(parents, min(n_shares, len(parents)))
