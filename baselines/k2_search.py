"""K2: the parents of each feature among the features before it, by a decomposable score (Cooper, Herskovits 1992).

With a fixed ordering, no arc closes a cycle, so the parents of each feature are chosen once, by greedy addition.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._clock import learning_clock
from tanlearn._typing import IntArray
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import EdgeRules, Knowledge, read_rules
from tanlearn.structures.orderings import check_ordering
from tanlearn.structures.structures import Structure, padded_parents

from .family_scores import FAMILY_SCORES, make_score
from .history import ParentChange
from .scored_families import FamilyScorer

__all__ = ["K2Search"]


class K2Search(BaseEstimator):
    """K2 search along a feature ordering: add the best earlier feature as a parent while this increases the score.

    The class is a parent of every feature.

    Parameters
    ----------
    ordering : {"mi", "random"} or array-like of shape (n_features,), default="mi"
        Ordering of the features. ``"mi"`` sorts them by decreasing mutual information with the class, as KDB does. An
        array contains the indices of the features in this order.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. Each feature starts with its required parents, and gets no excluded
        one. The orderings "mi" and "random" are changed so that required parents come before their children, and
        earlier tiers come first. An array must have required parents first.
    max_parents : int or None, default=2
        Maximum number of augmenting parents per feature, at least 1; None for no limit.
    score : {"bdeu", "bic", "aic", "k2", "log-likelihood"}, default="k2"
        Score to maximize, in nats, as in :class:`~tanlearn.baselines.HillClimbing`.
    equivalent_sample_size : float, default=1.0
        Weight of the prior of "bdeu", in rows, above 0.
    n_jobs : int, optional
        Number of threads for counting, as in joblib. The structure does not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints each added parent.

    Attributes
    ----------
    ordering_ : ndarray of shape (n_features,)
        The ordering.
    structure_ : Structure
        Current structure, kept if the search is interrupted (in an estimator, as ``structure_learner_.structure_``).
    score_ : float
        Score of ``structure_``, with the contribution of the class.
    history_ : list of ParentChange
        The added parents. ``ordering_[step]`` is the feature, and ``n_evaluations`` the number of scored families.
    n_evaluations_ : int
        Number of families that the search has scored.

    References
    ----------
    Cooper, Herskovits: A Bayesian method for the induction of probabilistic networks from data. Machine Learning 9,
    1992.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import K2Search
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> K2Search(ordering=[2, 1, 0]).learn(data, rng).parent.tolist()
    [2, -1, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ordering": [StrOptions({"mi", "random"}), "array-like"],
        "knowledge": [None, Knowledge],
        "max_parents": [None, Interval(Integral, 1, None, closed="left")],
        "score": [StrOptions(set(FAMILY_SCORES))],
        "equivalent_sample_size": [Interval(Real, 1e-6, 1e6, closed="both")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    ordering_: IntArray
    structure_: Structure
    score_: float
    history_: list[ParentChange]
    n_evaluations_: int

    def __init__(
        self,
        *,
        ordering: Any = "mi",
        knowledge: Knowledge | None = None,
        max_parents: int | None = 2,
        score: str = "k2",
        equivalent_sample_size: float = 1.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ordering = ordering
        self.knowledge = knowledge
        self.max_parents = max_parents
        self.score = score
        self.equivalent_sample_size = equivalent_sample_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the structure along the ordering.

        Parameters
        ----------
        data : EncodedData
            Training rows. A row in which a parent of a feature is missing is scored without the augmenting parents of
            this feature; a row in which the feature is missing does not count for it.
        rng : numpy.random.Generator
            Random numbers for the random ordering. Among parents with equal scores, the one earlier in the ordering is
            chosen.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a parameter is invalid, ``ordering`` is not a permutation of the features, or ``knowledge`` contradicts
            itself or does not fit the ordering or the columns.
        """
        self._validate_params()
        started = learning_clock()
        rules = read_rules(self.knowledge, data, max_parents=self.max_parents)
        self.ordering_ = self._order(data, rng, rules)
        score = make_score(self.score, self.equivalent_sample_size)
        scorer = FamilyScorer(data, score, n_jobs=self.n_jobs)
        scorer.add_pairs()
        parents: list[list[int]] = [[] for _ in range(data.n_features)] if rules is None else rules.parents()
        self.structure_, self.score_ = Structure(padded_parents(parents)), scorer.total(parents)
        self.history_ = []
        for child, required in enumerate(parents):
            if required:
                seconds = learning_clock() - started
                change = ParentChange(child, tuple(required), self.score_, 0, scorer.n_evaluations, seconds)
                self.history_.append(change)
        for position, child in enumerate(self.ordering_.tolist()):
            earlier = self.ordering_[:position]
            if rules is not None:
                earlier = earlier[rules.allowed[child, earlier]]
            for gain in self._add_parents(scorer, child, parents[child], earlier.tolist()):
                self.structure_, self.score_ = Structure(padded_parents(parents)), self.score_ + gain
                seconds, given = learning_clock() - started, tuple(parents[child])
                change = ParentChange(child, given, self.score_, position, scorer.n_evaluations, seconds)
                self.history_.append(change)
                if self.verbose:
                    label = f"feature {position + 1} of {data.n_features}, {parents[child]} -> {child}"
                    print(f"K2Search: {label}; {self.score} {self.score_:.6g}", flush=True)  # noqa: T201
        self.n_evaluations_ = scorer.n_evaluations
        return self.structure_

    def _add_parents(self, scorer: FamilyScorer, child: int, given: list[int], earlier: list[int]) -> Iterator[float]:
        """Add the best of the earlier features to the parents while this increases the score; yield each gain.

        The parents that are given are among the earlier features.
        """
        most = len(earlier) if self.max_parents is None else min(self.max_parents, len(earlier))
        own = float(scorer(child, [given])[0])
        while len(given) < most:
            others = [j for j in earlier if j not in given]
            values = scorer(child, [[*given, j] for j in others])
            best = int(values.argmax())
            if values[best] <= own:
                return
            gain, own = float(values[best]) - own, float(values[best])
            given.append(others[best])
            yield gain

    def _order(self, data: EncodedData, rng: np.random.Generator, rules: EdgeRules | None) -> IntArray:
        """Return the ordering, first feature first."""
        if not isinstance(self.ordering, str):
            order = check_ordering(self.ordering, data.n_features)
            if rules is not None:
                rules.check_ordering(order)
            return order
        if self.ordering == "random":
            order = rng.permutation(data.n_features)
        else:
            order = Information.of_rows(data, n_jobs=self.n_jobs).by_class
        return order if rules is None else rules.ordered(order)
