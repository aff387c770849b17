"""The classic learners that gradient TAN is compared with, one a file, and the registry of all learners."""

from .chow_liu import ChowLiu
from .random_tree import RandomTree
from .registry import LEARNERS, Learner, find_learner

__all__ = ["LEARNERS", "ChowLiu", "Learner", "RandomTree", "find_learner"]
