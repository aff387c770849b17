"""Classification with the Markov blanket of the class, in a network that treats features and class as equal nodes.

The network is found by hill climbing (Heckerman, Geiger, Chickering 1995), over all arcs or over the candidate arcs of
max-min hill-climbing (Tsamardinos, Brown, Aliferis 2006). Only the Markov blanket of the class influences a prediction:
its parents, its children, and the other parents of its children.

Models of this library have the class as root. The same posterior is obtained by arc reversal (Shachter 1986): the
parents of the class become its children, each with all earlier ones as parents. With the joint counts of the class and
its parents smoothed by alpha, all CPTs of this clique are conditionals of one joint distribution.
"""

from __future__ import annotations

import math
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure, padded_parents
from tanlearn.structures.table_layout import TableLayout

from .arc_moves import ArcGraph, Climber, FamilyMoves
from .family_scores import make_score
from .hill_climbing import HillClimbing
from .history import ParentChange
from .parents_and_children import parents_and_children
from .scored_families import FamilyScorer, with_class_as_feature

__all__ = ["MarkovBlanketClassifier"]


class MarkovBlanketClassifier(NetworkClassifier):
    """General Bayesian network over features and class, found by hill climbing; predicts with the Markov blanket.

    Parameters
    ----------
    search : HillClimbing, optional
        Settings of the search over arcs between features and class as equal nodes: score, maximum number of parents
        (including the class), tabu list, restarts and steps. The default is ``HillClimbing(max_parents=None)``. Its
        ``initial`` must be None.
    initial : {"naive-bayes", "empty"}, default="naive-bayes"
        Initial network: arcs from the class to all features, or no arcs.
    candidates : {"mmpc"} or None, default=None
        Arcs that may be added: all arcs (None), or only arcs between a node and its candidate parents and children,
        which are found by tests of conditional independence ("mmpc", the first phase of max-min hill-climbing).
    significance : float, default=0.05
        Significance level of the tests of "mmpc".
    smoothing : float, default=1.0
        Count added to each entry of the CPTs of the children of the class, and of the joint counts of the class and its
        parents. 0 gives plain frequencies.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu"}, default="cpu"
        Accepted for compatibility with other classifiers. There are no CUDA kernels.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random steps, and for sampling rows from the model.

    Attributes
    ----------
    network_ : list of tuple of int
        Parents of each feature and, as last entry, of the class. The index of the class is the number of features.
    blanket_ : ndarray of shape (n_blanket,)
        Features of the Markov blanket of the class. The other features do not influence predictions, because their CPTs
        are equal for all classes.
    network_score_ : float
        Score of ``network_``, in nats.
    history_ : list of ParentChange
        The arcs of the initial network (step 0), and all changes of the network, as in
        :class:`~tanlearn.baselines.HillClimbing`.
    n_evaluations_ : int
        Number of families that the search has scored.
    structure_ : Structure
        The Markov blanket with the class as root; its posterior equals the posterior of ``network_`` for complete rows.
        Features with missing values are marginalized in this structure.
    tables_ : Tables
        Log probabilities of each feature given its parents and the class.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of stored parameters.

    References
    ----------
    Tsamardinos, Brown, Aliferis: The max-min hill-climbing Bayesian network structure learning algorithm. Machine
    Learning 65, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import HillClimbing, MarkovBlanketClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (400, 5))
    >>> y = X[:, 0] & X[:, 1]  # no other feature is informative
    >>> model = MarkovBlanketClassifier(search=HillClimbing(score="bic")).fit(X, y)
    >>> model.blanket_.tolist(), model.score(X, y)
    ([0, 1], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "search": [None, HillClimbing],
        "initial": [StrOptions({"naive-bayes", "empty"})],
        "candidates": [None, StrOptions({"mmpc"})],
        "significance": [Interval(Real, 0, 1, closed="neither")],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "device": [StrOptions({"cpu"})],
    }

    network_: list[tuple[int, ...]]
    blanket_: IntArray
    network_score_: float
    history_: list[ParentChange]
    n_evaluations_: int

    def __init__(
        self,
        *,
        search: HillClimbing | None = None,
        initial: str = "naive-bayes",
        candidates: str | None = None,
        significance: float = 0.05,
        smoothing: float = 1.0,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.search = search
        self.initial = initial
        self.candidates = candidates
        self.significance = significance
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _histories(self) -> dict[str, list[Any]]:
        """Return the history of the search."""
        return {"structure": getattr(self, "history_", [])}

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Search the network, and fit the CPTs of the Markov blanket of the class."""
        self._search(data, rng)
        structure, self.blanket_ = class_rooted(self.network_)
        self.model_ = BayesNet(structure, fit_tables(structure, self.network_, data, float(self.smoothing)))

    def _search(self, data: EncodedData, rng: np.random.Generator) -> None:
        """Set the network, its score and the history; an interrupted search keeps its best network."""
        search = HillClimbing(max_parents=None) if self.search is None else self.search
        search._validate_params()
        if search.initial is not None:
            raise ValueError(
                f"search.initial must be None, because the class is the root of a structure, got {search.initial}. "
                f"Choose the initial network with MarkovBlanketClassifier(initial='naive-bayes') or initial='empty'."
            )
        if search.knowledge is not None:
            raise ValueError(
                f"search.knowledge must be None, because knowledge does not cover edges into the class, got "
                f"{search.knowledge}. Use BayesNetClassifier(structure=HillClimbing(knowledge=...)) instead."
            )
        order = np.append(data.by_name, data.n_features)  # nodes in the order of their names, the class last
        nodes = with_class_as_feature(data.take_features(data.by_name))
        scorer = FamilyScorer(nodes, make_score(search.score, search.equivalent_sample_size), n_jobs=self.n_jobs)
        allowed = None
        if self.candidates is not None:
            allowed = parents_and_children(nodes, self.significance, n_jobs=self.n_jobs)
        else:
            scorer.add_pairs()
        target = data.n_features
        parents: list[list[int]] = [[] for _ in order]
        if self.initial == "naive-bayes":
            parents[:target] = [[target] if allowed is None or allowed[i, target] else [] for i in range(target)]

        def report(event: str, value: float) -> None:
            if search.verbose:
                print(f"MarkovBlanketClassifier: {event}; {search.score} {value:.6g}", flush=True)  # noqa: T201

        climber = Climber(order, tabu_length=search.tabu_length, max_steps=search.max_steps, on_step=report)
        self.history_ = climber.history
        graph = ArcGraph(parents, search.max_parents, allowed)
        moves = partial(FamilyMoves, scorer=scorer)
        try:
            climber.search(graph, moves, search.n_restarts, search.n_random_moves, rng)
        finally:
            found = zip(order.tolist(), climber.best.all_parents(), strict=True)
            of_node = {int(i): tuple(order[given].tolist()) for i, given in found}
            self.network_ = [of_node[i] for i in range(len(order))]
            self.network_score_, self.n_evaluations_ = climber.best_value, scorer.n_evaluations


def class_rooted(network: list[tuple[int, ...]]) -> tuple[Structure, IntArray]:
    """Return the structure with the class as root and the same posterior, and the Markov blanket of the class.

    Each parent of the class has all earlier ones as augmenting parents. Children of the class keep their other parents.
    All other features have no augmenting parents.
    """
    target = len(network) - 1
    clique = network[target]
    parents: list[list[int]] = [[] for _ in range(target)]
    for position, i in enumerate(clique):
        parents[i] = list(clique[:position])
    blanket = set(clique)
    for i, given in enumerate(network[:target]):
        if target in given:
            parents[i] = [j for j in given if j != target]
            blanket |= {i, *parents[i]}
    return Structure(padded_parents(parents)), np.array(sorted(blanket), dtype=np.intp)


def fit_tables(structure: Structure, network: list[tuple[int, ...]], data: EncodedData, alpha: float) -> Tables:
    """Fit the CPTs of a structure of :func:`class_rooted`.

    CPTs of the parents of the class are conditionals of their joint counts with the class, with ``alpha`` added to each
    count. Features that are neither parents nor children of the class have CPTs that are equal for all classes.
    """
    target = len(network) - 1
    clique = network[target]
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    layout.check_memory(data.n_samples, data.label)
    counts: FloatArray = layout.count(data.codes, data.y, data.weights).astype(np.float64)
    n_joint = math.prod(data.n_states[list(clique)].tolist())
    counts[: data.n_classes] += alpha * n_joint
    for i in range(target):
        cells: AnyArray = counts[layout.offset[i] : layout.offset[i + 1]]
        if i in clique:  # the cells of a marginal contain those of all values of the later parents
            later = clique[clique.index(i) + 1 :]
            cells += alpha * math.prod(data.n_states[list(later)].tolist())
        elif target in network[i]:
            cells += alpha
        else:
            of_value = cells.reshape(-1, data.n_classes)
            of_value[:] = of_value.sum(axis=1, keepdims=True) + alpha
    return MaximumLikelihood(alpha=0).from_counts(layout, counts)
