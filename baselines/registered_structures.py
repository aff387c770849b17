"""Structure learners of the registry: their names, papers, costs and the parameter learners they are combined with.

In the names, CMI, CR, MM and CL are the criteria for edges: conditional mutual information, classification rate, margin
and conditional likelihood.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .annealing import SimulatedAnnealing
from .chow_liu import ChowLiu
from .discriminative_climbing import DiscriminativeHillClimbing
from .exact_search import ExactMarginSearch
from .explaining_away import ExplainingAway
from .greedy import GreedySearch
from .hill_climbing import HillClimbing
from .k2_search import K2Search
from .k_dependence import KDependence
from .order_search import OrderSearch
from .random_tree import RandomTree
from .super_parent import SuperParent

__all__ = ["ANNEALING", "FRIEDMAN", "GRADIENT", "HECKERMAN", "OURS", "SAHAMI", "STRUCTURES", "RegisteredStructure"]

FRIEDMAN = "Friedman, Geiger, Goldszmidt 1997"
GRADIENT = "Roth, Pernkopf 2020"
HECKERMAN = "Heckerman, Geiger, Chickering 1995"
SAHAMI = "Sahami 1996"
ANNEALING = "Pernkopf, Wohlmayr 2013"
OURS = "this library, after "
_COOPER = "Cooper, Herskovits 1992"
_GROSSMAN = "Grossman, Domingos 2004"
_KEOGH = "Keogh, Pazzani 1999"
_ORDER = "Pernkopf, Bilmes 2008"


class RegisteredStructure(NamedTuple):
    """A structure learner with its entry in the registry."""

    name: str
    description: str
    citation: str
    learner: Any  # unfitted structure learner; None is naive Bayes
    parameters: tuple[str, ...] = ("ML",)  # names of parameter learners, in the order of result tables
    cost: int = 0  # as in Learner


#: In the order of result tables.
STRUCTURES = (
    RegisteredStructure("NB", "naive Bayes", FRIEDMAN, None, ("ML", "CG-CL", "CG-MM", "CVX-MM", "HYB")),
    RegisteredStructure(
        "TAN-CMI", "most likely tree", FRIEDMAN, ChowLiu(root=0), ("ML", "CG-CL", "EBW-CL", "CG-MM", "HYB")
    ),
    RegisteredStructure("FAN-CMI", "most likely forest by AIC", "Lucas 2004", ChowLiu(penalty="aic")),
    RegisteredStructure(
        "TAN-EAR", "forest of maximum explaining-away residual", "Pernkopf, Bilmes 2005", ExplainingAway()
    ),
    RegisteredStructure("KDB-1", "most informative earlier feature as parent", SAHAMI, KDependence(k=1)),
    RegisteredStructure("KDB-2", "two most informative earlier features as parents", SAHAMI, KDependence(k=2)),
    RegisteredStructure(
        "KDB-5", "five most informative earlier features as parents", SAHAMI, KDependence(k=5), ("HS", "HDP")
    ),
    RegisteredStructure(
        "HC-BDeu",
        "up to two parents by BDeu, climbing over arcs",
        HECKERMAN,
        HillClimbing(score="bdeu"),
        ("ML", "CG-CL", "HYB"),
        1,
    ),
    RegisteredStructure(
        "HC-BIC",
        "up to two parents by description length, climbing over arcs",
        "Lam, Bacchus 1994",
        HillClimbing(score="bic"),
        cost=1,
    ),
    RegisteredStructure(
        "HC-AIC", "up to two parents by AIC, climbing over arcs", "Akaike 1974", HillClimbing(score="aic"), cost=1
    ),
    RegisteredStructure(
        "HC-K2", "up to two parents by K2 score, climbing over arcs", _COOPER, HillClimbing(score="k2"), cost=1
    ),
    RegisteredStructure(
        "Tabu-BDeu",
        "up to two parents by BDeu, tabu search over arcs",
        f"Glover 1989; {HECKERMAN}",
        HillClimbing(score="bdeu", tabu_length=10),
        cost=1,
    ),
    RegisteredStructure("K2", "up to two parents by K2 score, in order of information", _COOPER, K2Search(), cost=1),
    RegisteredStructure(
        "BNC-2P",
        "up to two parents by conditional likelihood, climbing over arcs",
        _GROSSMAN,
        DiscriminativeHillClimbing(),
        cost=2,
    ),
    RegisteredStructure(
        "HC-MM",
        "up to two parents by margin, climbing over arcs",
        OURS + ANNEALING,
        DiscriminativeHillClimbing(score="margin", gamma=10.0),
        ("ML", "HYB"),
        2,
    ),
    RegisteredStructure(
        "HC-CR",
        "up to two parents by accuracy, climbing over arcs",
        OURS + _KEOGH,
        DiscriminativeHillClimbing(score="accuracy"),
        cost=2,
    ),
    RegisteredStructure(
        "TAN-RO-CR", "parents by accuracy, in random order", _ORDER, OrderSearch(ordering="random"), cost=1
    ),
    RegisteredStructure(
        "TAN-OMI-CR",
        "parents by accuracy, in order of information",
        _ORDER,
        OrderSearch(),
        ("ML", "CG-CL", "CG-MM"),
        1,
    ),
    RegisteredStructure(
        "TAN-OMISP-CR",
        "parents by accuracy, in order of information given one",
        _ORDER,
        OrderSearch(ordering="cmisp"),
        cost=1,
    ),
    RegisteredStructure(
        "2-tree-OMI-CR",
        "up to two parents by accuracy on folds",
        _ORDER,
        OrderSearch(max_parents=2, validation=5),
        cost=2,
    ),
    RegisteredStructure("TAN-CR", "edges by accuracy, greedily", _KEOGH, GreedySearch(), ("ML", "CG-CL", "CG-MM"), 2),
    RegisteredStructure(
        "TAN-CV-CR", "edges by accuracy on folds, greedily", _KEOGH, GreedySearch(validation=5), cost=2
    ),
    RegisteredStructure(
        "TAN-CL",
        "edges by conditional likelihood, greedily",
        _GROSSMAN,
        GreedySearch(score="conditional-likelihood"),
        cost=2,
    ),
    RegisteredStructure(
        "TAN-MM", "edges by margin, greedily", ANNEALING, GreedySearch(score="margin", gamma=10.0), cost=2
    ),
    RegisteredStructure("TAN-SP-CR", "edges of the best super-parent", _KEOGH, SuperParent(), cost=2),
    RegisteredStructure("TAN-SA-MM", "margin by simulated annealing", ANNEALING, SimulatedAnnealing(), cost=2),
    RegisteredStructure(
        "TAN-BB-MM",
        "best margin of all forests by branch and bound, up to 12 features",
        "Peharz, Pernkopf 2012",
        ExactMarginSearch(gamma=10.0),
        cost=5,
    ),
    RegisteredStructure(
        "TAN-OMI-MM",
        "parents by margin, in order of information",
        OURS + _ORDER,
        OrderSearch(score="margin", gamma=10.0),
        ("ML", "HYB"),
        1,
    ),
    RegisteredStructure("TAN Random", "random tree", GRADIENT, RandomTree(), ("HYB",)),
)
