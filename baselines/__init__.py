"""Structure learners, classic ensembles, and the registry of all learners.

Structure learners map encoded rows to a ``Structure``; AODE, AnDE and selective KDB are classifiers of their own.
``LEARNERS`` maps the names used in the papers to learners, for the command line, the benchmarks and the tests.
"""

from typing import Any

from tanlearn._warnings import warn
from tanlearn.files.values import register
from tanlearn.structures.replay import structures_along

from .ande import AnDEClassifier
from .annealing import SimulatedAnnealing
from .aode import AODEClassifier
from .chow_liu import ChowLiu
from .discriminative_climbing import DiscriminativeHillClimbing
from .exact_search import ExactMarginSearch
from .explaining_away import ExplainingAway
from .gradient_structure import GradientStructure
from .greedy import GreedySearch
from .hill_climbing import HillClimbing
from .history import ParentChange
from .k2_search import K2Search
from .k_dependence import KDependence
from .local_search import LocalSearch, one_arc_away
from .markov_blanket import MarkovBlanketClassifier
from .model_averaging import ModelAveraging
from .multinet import MultinetClassifier
from .order_search import OrderSearch
from .random_tree import RandomTree
from .registry import LEARNERS, Learner, find_learner
from .selective_k_dependence import SelectiveKDependenceClassifier
from .semi_naive_bayes import SemiNaiveBayesClassifier
from .super_parent import SuperParent
from .weighted_naive_bayes import WeightedNaiveBayesClassifier

__all__ = [
    "LEARNERS",
    "AODEClassifier",
    "AnDEClassifier",
    "ChowLiu",
    "DiscriminativeHillClimbing",
    "ExactMarginSearch",
    "ExplainingAway",
    "GradientStructure",
    "GreedySearch",
    "HillClimbing",
    "K2Search",
    "KDependence",
    "Learner",
    "LocalSearch",
    "MarkovBlanketClassifier",
    "ModelAveraging",
    "MultinetClassifier",
    "OrderSearch",
    "ParentChange",
    "RandomTree",
    "SelectiveKDependenceClassifier",
    "SemiNaiveBayesClassifier",
    "SimulatedAnnealing",
    "SuperParent",
    "WeightedNaiveBayesClassifier",
    "find_learner",
    "one_arc_away",
    "structures_along",
]

register(globals()[name] for name in __all__)  # files of models may name these classes


def __getattr__(name: str) -> Any:
    if name == "Edge":
        warn("tanlearn.baselines.Edge is now ParentChange; the old name will be removed in version 0.4.", FutureWarning)
        return ParentChange
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
