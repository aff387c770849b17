"""Hill climbing over arcs between features by a decomposable score, with the class as parent of every feature.

The search of Heckerman, Geiger and Chickering (1995, section 6.2) and, with a tabu list, of Glover (1989), restricted
to augmented naive Bayes structures (Friedman, Geiger, Goldszmidt 1997; Keogh, Pazzani 1999).
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import Knowledge
from tanlearn.structures.structures import Structure

from .arc_moves import Climber, FamilyMoves, first_graph, structure_of
from .family_scores import FAMILY_SCORES, make_score
from .history import ParentChange
from .scored_families import FamilyScorer

__all__ = ["HillClimbing"]


class HillClimbing(BaseEstimator):
    """Hill climbing over arcs between features: add, remove or reverse the arc that increases the score most.

    The class is a parent of every feature. The change in the score by one arc depends only on the parents of one
    feature, so each step scores only the families of the features that the last step changed.

    Parameters
    ----------
    score : {"bdeu", "bic", "aic", "k2", "log-likelihood"}, default="bdeu"
        Score to maximize, in nats: the log marginal likelihood with Dirichlet priors ("bdeu", "k2"), or the maximum log
        likelihood minus log(N) / 2 ("bic", which is minus the description length, MDL), 1 ("aic") or 0
        ("log-likelihood") per free parameter, where N is the weight of all rows.
    equivalent_sample_size : float, default=1.0
        Weight of the prior of "bdeu", in rows, above 0. Larger values lead to more arcs.
    max_parents : int or None, default=2
        Maximum number of augmenting parents per feature, at least 1; None for no limit.
    initial : Structure, optional
        Initial structure, such as the ``structure_`` of an interrupted search. The default is naive Bayes.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The search starts with the required edges, and makes only steps that
        keep them and add no excluded edge. ``initial`` must satisfy the knowledge too.
    tabu_length : int, default=0
        Number of recent structures to which the search must not return (tabu search). With 0, the search ends when no
        step increases the score. Otherwise, it makes the best step even if the score decreases, and ends after
        ``tabu_length`` steps in sequence without a new best score.
    n_restarts : int, default=0
        Number of further climbs, each from the best structure after ``n_random_moves`` random steps.
    n_random_moves : int, default=10
        Number of random steps before each further climb, at least 1.
    max_steps : int, optional
        Maximum number of steps of all climbs; by default there is no limit.
    n_jobs : int, optional
        Number of threads for counting, as in joblib. The structure does not depend on ``n_jobs``.
    verbose : int, default=0
        1 prints one line per step.

    Attributes
    ----------
    structure_ : Structure
        Best structure so far, kept if the search is interrupted (in an estimator, as
        ``structure_learner_.structure_``).
    score_ : float
        Score of ``structure_``, with the contribution of the class.
    history_ : list of ParentChange
        The arcs of ``initial`` (step 0), and all changes. A reversal changes two features, and a restart changes many;
        their records have the same step, and the score after the whole step. ``n_evaluations`` is the number of
        families that were scored.
    n_evaluations_ : int
        Number of families that the search has scored.

    Notes
    -----
    With n_xh rows of value x in context h (values of the augmenting parents and the class), r values, q contexts, and
    the equivalent sample size a, a feature contributes ::

        BDeu = sum_xh log G(n_xh + a/rq) / G(a/rq) - sum_h log G(n_h + a/q) / G(a/q)
        K2   = sum_xh log n_xh! - sum_h log (n_h + r - 1)! / (r - 1)!
        BIC  = sum_xh n_xh log n_xh / n_h - log(N) / 2 (r - 1) q

    where G is the gamma function.

    Families with far more CPT entries than rows are counted sparsely, so memory does not grow with the number of
    values. Pairs of features are counted at once if their counts take at most 0.5 GiB.

    References
    ----------
    Heckerman, Geiger, Chickering: Learning Bayesian networks: the combination of knowledge and statistical data.
    Machine Learning 20, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import HillClimbing
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 3))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 2])  # features 0 and 2 are informative only together
    >>> search = HillClimbing(score="bic")
    >>> search.learn(data, rng).parent.tolist(), round(search.score_, 1)
    ([2, -1, -1], -436.6)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [StrOptions(set(FAMILY_SCORES))],
        "equivalent_sample_size": [Interval(Real, 1e-6, 1e6, closed="both")],
        "max_parents": [None, Interval(Integral, 1, None, closed="left")],
        "initial": [None, Structure],
        "knowledge": [None, Knowledge],
        "tabu_length": [Interval(Integral, 0, None, closed="left")],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "n_random_moves": [Interval(Integral, 1, None, closed="left")],
        "max_steps": [None, Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    structure_: Structure
    score_: float
    history_: list[ParentChange]
    n_evaluations_: int

    def __init__(
        self,
        *,
        score: str = "bdeu",
        equivalent_sample_size: float = 1.0,
        max_parents: int | None = 2,
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
        self.equivalent_sample_size = equivalent_sample_size
        self.max_parents = max_parents
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
            Training rows. A row in which a parent of a feature is missing is scored without the augmenting parents of
            this feature; a row in which the feature is missing does not count for it.
        rng : numpy.random.Generator
            Random numbers for the random steps. Ties between steps are broken by the kind of step (removal, addition,
            reversal) and the names of child and parent, or, without names, by their indices.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a parameter is invalid, ``initial`` has other features, a cycle or too many parents, or ``knowledge``
            contradicts itself or does not fit ``initial`` or the columns.
        """
        self._validate_params()
        order = data.by_name
        graph = first_graph(self.initial, data, self.max_parents, self.knowledge)
        score = make_score(self.score, self.equivalent_sample_size)
        scorer = FamilyScorer(data.take_features(order), score, n_jobs=self.n_jobs)
        if not graph.arcs.any():  # all families with one parent are scored in the first step
            scorer.add_pairs()

        def report(event: str, value: float) -> None:
            if self.verbose:
                print(f"HillClimbing: {event}; {self.score} {value:.6g}", flush=True)  # noqa: T201

        climber = Climber(order, tabu_length=self.tabu_length, max_steps=self.max_steps, on_step=report)
        self.history_ = climber.history
        moves = partial(FamilyMoves, scorer=scorer)
        try:
            climber.search(graph, moves, self.n_restarts, self.n_random_moves, rng)
        finally:  # an interrupted search keeps its best structure
            self.structure_, self.score_ = structure_of(climber.best.all_parents(), order), climber.best_value
            self.n_evaluations_ = scorer.n_evaluations
        return self.structure_
