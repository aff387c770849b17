"""Registry of all learners by the names used in the papers, for the command line, tests, benchmarks and the site.

A name combines a structure with a parameter learner. Parameter learners: ML is maximum likelihood; CG-CL and CG-MM are
conjugate gradient on the conditional likelihood and on the margin (maximum margin, section 5); EBW-CL is extended
Baum-Welch on the conditional likelihood; CVX-MM is the convex relaxation of the margin; HYB is a hybrid loss of
likelihood and margin (differentiable TAN, section 2.3), selected on held-out rows. In the names of structures, CMI, CR
and MM are the criteria for edges: conditional mutual information, classification rate and margin.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.bayes_forest import BayesForestClassifier
from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier, StructureLearner
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.estimators.k_tree import KTreeClassifier
from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
from tanlearn.parameters.batch_gradient import ConjugateGradient
from tanlearn.parameters.convex_relaxation import ConvexRelaxation
from tanlearn.parameters.extended_baum_welch import ExtendedBaumWelch
from tanlearn.parameters.hierarchical_dirichlet import HierarchicalDirichlet
from tanlearn.parameters.hierarchical_smoothing import HierarchicalSmoothing
from tanlearn.parameters.hybrid_cv import HybridCV
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import ParameterLearner
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.training.losses import ConditionalNLL, Hybrid, Margin

from .ande import AnDEClassifier
from .annealing import SimulatedAnnealing
from .aode import AODEClassifier
from .chow_liu import ChowLiu
from .discriminative_climbing import DiscriminativeHillClimbing
from .exact_search import ExactMarginSearch
from .explaining_away import ExplainingAway
from .greedy import GreedySearch
from .hill_climbing import HillClimbing
from .k2_search import K2Search
from .k_dependence import KDependence
from .markov_blanket import MarkovBlanketClassifier
from .model_averaging import ModelAveraging
from .multinet import MultinetClassifier
from .order_search import OrderSearch
from .random_tree import RandomTree
from .selective_k_dependence import SelectiveKDependenceClassifier
from .semi_naive_bayes import SemiNaiveBayesClassifier
from .super_parent import SuperParent
from .weighted_naive_bayes import WeightedNaiveBayesClassifier

__all__ = ["LEARNERS", "Learner", "find_learner"]

Classifier: TypeAlias = (
    NaiveBayesClassifier
    | BayesNetClassifier
    | TANClassifier
    | KTreeClassifier
    | AODEClassifier
    | AnDEClassifier
    | SelectiveKDependenceClassifier
    | MarkovBlanketClassifier
    | SemiNaiveBayesClassifier
    | WeightedNaiveBayesClassifier
    | MultinetClassifier
    | BayesForestClassifier
)
#: ``factory(random_state, n_epochs, n_jobs, encoder)``
Factory: TypeAlias = Callable[[Any, int | None, int | None, TableEncoder | None], Classifier]


@dataclass(frozen=True)
class Learner:
    """Entry of the learner registry: name, description, citation and factory.

    Parameters
    ----------
    name : str
        Name used in the papers.
    description : str
        Description of the method in one line.
    citation : str
        Paper that describes the method.
    factory : callable
        Function ``factory(random_state, n_epochs, n_jobs, encoder)`` that returns an unfitted classifier.
    cost : int, default=0
        Rank of the computational cost, used to run cheap learners first: 0 counts rows once, 1 evaluates candidate
        parents, 2 makes repeated passes over all rows, 3 does so for several losses, 4 also samples structures, 5
        solves a convex program with one variable per CPT entry.

    Examples
    --------
    >>> from tanlearn.baselines import LEARNERS
    >>> LEARNERS["NB ML"].make()
    NaiveBayesClassifier(parameters=MaximumLikelihood(), random_state=0)
    """

    name: str
    description: str
    citation: str
    factory: Factory = field(repr=False)
    cost: int = field(default=0, repr=False)

    def make(
        self,
        *,
        random_state: Any = 0,
        n_epochs: int | None = None,
        n_jobs: int | None = None,
        encoder: TableEncoder | None = None,
    ) -> Classifier:
        """Create an unfitted classifier.

        Parameters
        ----------
        random_state : int, RandomState instance or None, default=0
            Seed of randomized learners.
        n_epochs : int, optional
            Number of epochs of HYB, gradient TANs and k-trees, which are then trained with a fixed loss:
            ``ConditionalNLL()`` for k-trees, ``Hybrid()`` for the others. By default, the loss is selected on held-out
            rows, and HYB also selects its number of iterations. Other learners ignore it.
        n_jobs : int, optional
            Number of threads, as in joblib.
        encoder : TableEncoder, optional
            Encoder of raw columns; by default ``TableEncoder()``.

        Returns
        -------
        object
            A classifier of :mod:`tanlearn` or :mod:`tanlearn.baselines`.
        """
        return self.factory(random_state, n_epochs, n_jobs, encoder)


def find_learner(name: str) -> Learner:
    """Return a learner by its name, ignoring case.

    Parameters
    ----------
    name : str
        A key of ``LEARNERS``.

    Returns
    -------
    Learner

    Raises
    ------
    ValueError
        If no learner has this name; the message lists all names and suggests the nearest.

    Examples
    --------
    >>> from tanlearn.baselines import find_learner
    >>> find_learner("tan-cmi ml")
    Learner(name='TAN-CMI ML', description='...', citation='...')
    >>> find_learner("Chow-Liu")
    Traceback (most recent call last):
    ...
    ValueError: there is no learner 'Chow-Liu'. The learners are: NB ML, ...
    """
    by_key = {known.casefold(): learner for known, learner in LEARNERS.items()}
    key = " ".join(name.casefold().split())
    if key in by_key:
        return by_key[key]
    near = difflib.get_close_matches(key, by_key, n=1)
    hint = f" Did you mean {by_key[near[0]].name!r}?" if near else ""
    raise ValueError(f"there is no learner {name!r}.{hint} The learners are: {', '.join(LEARNERS)}.")


_FRIEDMAN = "Friedman, Geiger, Goldszmidt 1997"
_LUCAS = "Lucas 2004"
_EXACT = "Peharz, Pernkopf 2012"
_PAZZANI = "Pazzani 1996"
_ZAIDI = "Zaidi, Cerquides, Carman, Webb 2013"
_HALL = "Hall 2007"
_AVERAGING = "Dash, Cooper 2002"
_EXPLAINING_AWAY = "Pernkopf, Bilmes 2005"
_GROSSMAN = "Grossman, Domingos 2004"
_KEOGH = "Keogh, Pazzani 1999"
_SAHAMI = "Sahami 1996"
_WEBB = "Webb, Boughton, Wang 2005"
_WEBB_2012 = "Webb, Boughton, Zheng, Ting, Salem 2012"
_GUO = "Guo, Wilkinson, Schuurmans 2005"
_DIRICHLET = "Petitjean et al. 2018"
_HECKERMAN = "Heckerman, Geiger, Chickering 1995"
_LAM = "Lam, Bacchus 1994"
_AKAIKE = "Akaike 1974"
_GROSSMAN = "Grossman, Domingos 2004"
_MMHC = "Tsamardinos, Brown, Aliferis 2006"
_GLOVER = "Glover 1989"
_COOPER = "Cooper, Herskovits 1992"
_SELECTIVE = "Martinez, Webb, Chen, Zaidi 2016"
_ORDER = "Pernkopf, Bilmes 2008"
_BAUM_WELCH = "Pernkopf, Wohlmayr 2009"
_MARGIN = "Pernkopf, Wohlmayr, Tschiatschek 2012"
_ANNEALING = "Pernkopf, Wohlmayr 2013"
_GRADIENT = "Roth, Pernkopf 2020"
_OURS = "this library, after "

#: Structure learners by name: description, citation, and a factory that takes the number of threads.
_STRUCTURES: dict[str, tuple[str, str, Callable[[int | None], StructureLearner | None]]] = {
    "NB": ("naive Bayes", _FRIEDMAN, lambda n_jobs: None),
    "TAN-CMI": ("most likely tree", _FRIEDMAN, lambda n_jobs: ChowLiu(root=0, n_jobs=n_jobs)),
    "FAN-CMI": ("most likely forest by AIC", _LUCAS, lambda n_jobs: ChowLiu(penalty="aic", n_jobs=n_jobs)),
    "TAN-EAR": (
        "forest of maximum explaining-away residual",
        _EXPLAINING_AWAY,
        lambda n_jobs: ExplainingAway(n_jobs=n_jobs),
    ),
    "TAN Random": ("random tree", _GRADIENT, lambda n_jobs: RandomTree()),
    "TAN-RO-CR": (
        "parents by accuracy, in random order",
        _ORDER,
        lambda n_jobs: OrderSearch(ordering="random", n_jobs=n_jobs),
    ),
    "TAN-OMI-CR": (
        "parents by accuracy, in order of information",
        _ORDER,
        lambda n_jobs: OrderSearch(n_jobs=n_jobs),
    ),
    "TAN-OMISP-CR": (
        "parents by accuracy, in order of information given one",
        _ORDER,
        lambda n_jobs: OrderSearch(ordering="cmisp", n_jobs=n_jobs),
    ),
    "2-tree-OMI-CR": (
        "up to two parents by accuracy on folds",
        _ORDER,
        lambda n_jobs: OrderSearch(max_parents=2, validation=5, n_jobs=n_jobs),
    ),
    "TAN-CR": ("edges by accuracy, greedily", _KEOGH, lambda n_jobs: GreedySearch(n_jobs=n_jobs)),
    "TAN-CV-CR": (
        "edges by accuracy on folds, greedily",
        _KEOGH,
        lambda n_jobs: GreedySearch(validation=5, n_jobs=n_jobs),
    ),
    "TAN-CL": (
        "edges by conditional likelihood, greedily",
        _GROSSMAN,
        lambda n_jobs: GreedySearch(score="conditional-likelihood", n_jobs=n_jobs),
    ),
    "TAN-MM": (
        "edges by margin, greedily",
        _ANNEALING,
        lambda n_jobs: GreedySearch(score="margin", gamma=10.0, n_jobs=n_jobs),
    ),
    "TAN-SP-CR": ("edges of the best super-parent", _KEOGH, lambda n_jobs: SuperParent(n_jobs=n_jobs)),
    "TAN-OMI-MM": (
        "parents by margin, in order of information",
        _OURS + _ORDER,
        lambda n_jobs: OrderSearch(score="margin", gamma=10.0, n_jobs=n_jobs),
    ),
    "TAN-SA-MM": ("margin by simulated annealing", _ANNEALING, lambda n_jobs: SimulatedAnnealing(n_jobs=n_jobs)),
    "TAN-BB-MM": (
        "best margin of all forests by branch and bound, up to 12 features",
        _EXACT,
        lambda n_jobs: ExactMarginSearch(gamma=10.0),
    ),
    "KDB-1": (
        "most informative earlier feature as parent",
        _SAHAMI,
        lambda n_jobs: KDependence(k=1, n_jobs=n_jobs),
    ),
    "KDB-2": (
        "two most informative earlier features as parents",
        _SAHAMI,
        lambda n_jobs: KDependence(k=2, n_jobs=n_jobs),
    ),
    "KDB-5": (
        "five most informative earlier features as parents",
        _SAHAMI,
        lambda n_jobs: KDependence(k=5, n_jobs=n_jobs),
    ),
    "HC-BDeu": (
        "up to two parents by BDeu, climbing over arcs",
        _HECKERMAN,
        lambda n_jobs: HillClimbing(score="bdeu", n_jobs=n_jobs),
    ),
    "HC-BIC": (
        "up to two parents by description length, climbing over arcs",
        _LAM,
        lambda n_jobs: HillClimbing(score="bic", n_jobs=n_jobs),
    ),
    "HC-AIC": (
        "up to two parents by AIC, climbing over arcs",
        _AKAIKE,
        lambda n_jobs: HillClimbing(score="aic", n_jobs=n_jobs),
    ),
    "HC-K2": (
        "up to two parents by K2 score, climbing over arcs",
        _COOPER,
        lambda n_jobs: HillClimbing(score="k2", n_jobs=n_jobs),
    ),
    "Tabu-BDeu": (
        "up to two parents by BDeu, tabu search over arcs",
        f"{_GLOVER}; {_HECKERMAN}",
        lambda n_jobs: HillClimbing(score="bdeu", tabu_length=10, n_jobs=n_jobs),
    ),
    "BNC-2P": (
        "up to two parents by conditional likelihood, climbing over arcs",
        _GROSSMAN,
        lambda n_jobs: DiscriminativeHillClimbing(n_jobs=n_jobs),
    ),
    "HC-MM": (
        "up to two parents by margin, climbing over arcs",
        _OURS + _ANNEALING,
        lambda n_jobs: DiscriminativeHillClimbing(score="margin", gamma=10.0, n_jobs=n_jobs),
    ),
    "HC-CR": (
        "up to two parents by accuracy, climbing over arcs",
        _OURS + _KEOGH,
        lambda n_jobs: DiscriminativeHillClimbing(score="accuracy", n_jobs=n_jobs),
    ),
    "K2": (
        "up to two parents by K2 score, in order of information",
        _COOPER,
        lambda n_jobs: K2Search(n_jobs=n_jobs),
    ),
}


def _hybrid(n_epochs: int | None) -> ParameterLearner:
    """Return the learner of a hybrid loss, selected on held-out rows or trained for a fixed number of epochs."""
    return HybridCV() if n_epochs is None else StochasticGradient(n_epochs=n_epochs)


#: Parameter learners by name: description, citation, and a factory that takes the number of epochs.
_PARAMETERS: dict[str, tuple[str, str | None, Callable[[int | None], ParameterLearner]]] = {
    "ML": ("smoothed frequencies", None, lambda n_epochs: MaximumLikelihood()),
    "HS": ("hierarchical smoothing by leave-one-out", None, lambda n_epochs: HierarchicalSmoothing()),
    "HDP": ("hierarchical Dirichlet smoothing", _DIRICHLET, lambda n_epochs: HierarchicalDirichlet()),
    "CG-CL": ("conditional likelihood", _MARGIN, lambda n_epochs: ConjugateGradient(loss=ConditionalNLL())),
    "EBW-CL": ("conditional likelihood by extended Baum-Welch", _BAUM_WELCH, lambda n_epochs: ExtendedBaumWelch()),
    "CG-MM": ("margin", _MARGIN, lambda n_epochs: ConjugateGradient(loss=Margin())),
    "CVX-MM": ("margin by convex relaxation", _GUO, lambda n_epochs: ConvexRelaxation()),
    "HYB": ("likelihood and margin", _GRADIENT, _hybrid),
}

#: Parameter learners combined with each structure; their order is that of result tables.
_COMBINATIONS: dict[str, tuple[str, ...]] = {
    "NB": ("ML", "CG-CL", "CG-MM", "CVX-MM", "HYB"),
    "TAN-CMI": ("ML", "CG-CL", "EBW-CL", "CG-MM", "HYB"),
    "FAN-CMI": ("ML",),
    "TAN-EAR": ("ML",),
    "KDB-1": ("ML",),
    "KDB-2": ("ML",),
    "KDB-5": ("HS", "HDP"),
    "HC-BDeu": ("ML", "CG-CL", "HYB"),
    "HC-BIC": ("ML",),
    "HC-AIC": ("ML",),
    "HC-K2": ("ML",),
    "Tabu-BDeu": ("ML",),
    "K2": ("ML",),
    "BNC-2P": ("ML",),
    "HC-MM": ("ML", "HYB"),
    "HC-CR": ("ML",),
    "TAN-RO-CR": ("ML",),
    "TAN-OMI-CR": ("ML", "CG-CL", "CG-MM"),
    "TAN-OMISP-CR": ("ML",),
    "2-tree-OMI-CR": ("ML",),
    "TAN-CR": ("ML", "CG-CL", "CG-MM"),
    "TAN-CV-CR": ("ML",),
    "TAN-CL": ("ML",),
    "TAN-MM": ("ML",),
    "TAN-SP-CR": ("ML",),
    "TAN-SA-MM": ("ML",),
    "TAN-BB-MM": ("ML",),
    "TAN-OMI-MM": ("ML", "HYB"),
    "TAN Random": ("HYB",),
}


#: ``Learner.cost`` of structure and parameter learners that need more than one count of the rows.
_COSTS = {
    **dict.fromkeys(("TAN-RO-CR", "TAN-OMI-CR", "TAN-OMISP-CR", "TAN-OMI-MM"), 1),
    **dict.fromkeys(("HC-BDeu", "HC-BIC", "HC-AIC", "HC-K2", "Tabu-BDeu", "K2"), 1),
    **dict.fromkeys(
        (
            "2-tree-OMI-CR",
            "BNC-2P",
            "HC-MM",
            "HC-CR",
            "TAN-CR",
            "TAN-CV-CR",
            "TAN-CL",
            "TAN-MM",
            "TAN-SP-CR",
            "TAN-SA-MM",
            "CG-CL",
            "EBW-CL",
            "CG-MM",
        ),
        2,
    ),
    "HYB": 3,
    **dict.fromkeys(("CVX-MM", "TAN-BB-MM"), 5),
}
_GRADIENT_COST = 4


def _two_steps(
    structure: str,
    parameters: str,
    random_state: Any,
    n_epochs: int | None,
    n_jobs: int | None,
    encoder: TableEncoder | None,
) -> Classifier:
    """Return a classifier that learns a structure first and its parameters second."""
    learner, others = _STRUCTURES[structure][2](n_jobs), _PARAMETERS[parameters][2](n_epochs)
    common: dict[str, Any] = {"encoder": encoder, "n_jobs": n_jobs, "random_state": random_state}
    if learner is None:
        return NaiveBayesClassifier(parameters=others, **common)
    return BayesNetClassifier(structure=learner, parameters=others, **common)


def _gradient_tan(
    settings: dict[str, Any], random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted gradient TAN classifier."""
    if n_epochs is not None:
        settings = {**settings, "loss": Hybrid(), "n_epochs": n_epochs}
    return TANClassifier(**settings, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _k_tree(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted gradient k-tree classifier."""
    settings: dict[str, Any] = {} if n_epochs is None else {"loss": ConditionalNLL(), "n_epochs": n_epochs}
    return KTreeClassifier(**settings, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _aode(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted AODE classifier."""
    return AODEClassifier(encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _ande(
    n: int, random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted AnDE classifier."""
    return AnDEClassifier(n=n, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _selective(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted selective KDB classifier."""
    return SelectiveKDependenceClassifier(encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _blanket(
    settings: dict[str, Any], random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted classifier with the Markov blanket of the class."""
    return MarkovBlanketClassifier(**settings, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _forest(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted forest of Bayesian networks."""
    return BayesForestClassifier(encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _semi_naive(
    direction: str, random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted semi-naive Bayes classifier."""
    return SemiNaiveBayesClassifier(direction=direction, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _weighted(
    weighting: str, random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted weighted naive Bayes classifier."""
    return WeightedNaiveBayesClassifier(weighting=weighting, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _averaged(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted model-averaged naive Bayes classifier."""
    common: dict[str, Any] = {"encoder": encoder, "n_jobs": n_jobs, "random_state": random_state}
    return NaiveBayesClassifier(parameters=ModelAveraging(), **common)


def _multinet(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Classifier:
    """Return an unfitted multinet of trees."""
    return MultinetClassifier(encoder=encoder, n_jobs=n_jobs, random_state=random_state)


def _in_two_steps(structure: str, parameters: str) -> Learner:
    """Return the registry entry of a structure learner combined with a parameter learner."""
    what, described_by, _ = _STRUCTURES[structure]
    how, extended_by, _ = _PARAMETERS[parameters]
    citation = "; ".join(dict.fromkeys(filter(None, (described_by, extended_by))))  # one paper may describe both
    factory = partial(_two_steps, structure, parameters)
    cost = max(_COSTS.get(structure, 0), _COSTS.get(parameters, 0))
    return Learner(f"{structure} {parameters}", f"{what}, {how}", citation, factory, cost)


#: All learners by name.
LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        *(_in_two_steps(structure, how) for structure, ways in _COMBINATIONS.items() for how in ways),
        Learner("AODE", "average of all trees with one common parent, smoothed frequencies", _WEBB, _aode),
        Learner(
            "A2DE",
            "average over all pairs of super-parents, counted in prediction",
            _WEBB_2012,
            partial(_ande, 2),
        ),
        Learner(
            "A3DE",
            "average over all triples of super-parents, counted in prediction",
            _WEBB_2012,
            partial(_ande, 3),
            1,
        ),
        Learner(
            "SKDB",
            "parents and features by leave-one-out, hierarchical smoothing",
            _SELECTIVE,
            _selective,
            1,
        ),
        Learner(
            "Markov blanket",
            "general network by BDeu, climbing over arcs of features and class, smoothed frequencies",
            _HECKERMAN,
            partial(_blanket, {}),
            1,
        ),
        Learner(
            "MMHC",
            "general network by BDeu, tabu search over arcs that independence tests allow, smoothed frequencies",
            _MMHC,
            partial(_blanket, {"candidates": "mmpc", "initial": "empty", "tabu_length": 10}),
            1,
        ),
        Learner(
            "NB-FSSJ ML",
            "features added and joined by accuracy on folds, smoothed frequencies",
            _PAZZANI,
            partial(_semi_naive, "forward"),
            2,
        ),
        Learner(
            "NB-BSEJ ML",
            "features removed and joined by accuracy on folds, smoothed frequencies",
            _PAZZANI,
            partial(_semi_naive, "backward"),
            2,
        ),
        Learner("MANB", "average of naive Bayes over all subsets of features, in closed form", _AVERAGING, _averaged),
        Learner(
            "WANBIA CL",
            "naive Bayes with feature weights of maximum conditional likelihood",
            _ZAIDI,
            partial(_weighted, "conditional-likelihood"),
            2,
        ),
        Learner(
            "WANBIA MSE",
            "naive Bayes with feature weights of minimum squared error",
            _ZAIDI,
            partial(_weighted, "squared-error"),
            2,
        ),
        Learner(
            "AWNB",
            "naive Bayes with feature weights from the depths of tests in decision trees",
            _HALL,
            partial(_weighted, "trees"),
            1,
        ),
        Learner("Multinet ML", "most likely tree of each class, smoothed frequencies", _FRIEDMAN, _multinet),
        Learner(
            "TAN Subset HYB",
            "gradient TAN, 8 random earlier features as candidate parents",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "subset"}),
            _GRADIENT_COST,
        ),
        Learner(
            "TAN All HYB",
            "gradient TAN, all earlier features as candidate parents",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "all"}),
            _GRADIENT_COST,
        ),
        Learner(
            "TAN Order-free HYB",
            "gradient TAN, any tree without an ordering",
            _OURS + _GRADIENT,
            partial(_gradient_tan, {"candidates": "order-free"}),
            _GRADIENT_COST,
        ),
        Learner(
            "Pseudo-TAN HYB",
            "gradient TAN with cycles allowed: a scorer, no Bayesian network",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "unconstrained"}),
            _GRADIENT_COST,
        ),
        Learner(
            "K-tree",
            "gradient k-tree, up to two of the 8 to 14 most informative features as parents",
            _OURS + _GRADIENT,
            _k_tree,
            _GRADIENT_COST,
        ),
        Learner(
            "BayesForest",
            "32 random networks of up to four parents, weighed by left-out rows",
            _OURS + _SAHAMI,
            _forest,
            2,
        ),
    )
}
