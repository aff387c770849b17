"""Classic structure learners and ensembles that gradient TAN is compared with, and the registry of all learners.

Structure learners map encoded rows to a ``Structure``; AODE, AnDE and selective KDB are classifiers of their own.
``LEARNERS`` maps the names used in the papers to learners, for the command line, the benchmarks and the tests.
"""

from tanlearn.files.values import register

from .ande import AnDEClassifier
from .annealing import SimulatedAnnealing
from .aode import AODEClassifier
from .chow_liu import ChowLiu
from .explaining_away import ExplainingAway
from .greedy import GreedySearch
from .history import Edge
from .k_dependence import KDependence
from .order_search import OrderSearch
from .random_tree import RandomTree
from .registry import LEARNERS, Learner, find_learner
from .selective_k_dependence import SelectiveKDependenceClassifier
from .super_parent import SuperParent

__all__ = [
    "LEARNERS",
    "AODEClassifier",
    "AnDEClassifier",
    "ChowLiu",
    "Edge",
    "ExplainingAway",
    "GreedySearch",
    "KDependence",
    "Learner",
    "OrderSearch",
    "RandomTree",
    "SelectiveKDependenceClassifier",
    "SimulatedAnnealing",
    "SuperParent",
    "find_learner",
]

register(globals()[name] for name in __all__)  # files of models may name these classes
