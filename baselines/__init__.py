"""The classic learners that gradient TAN is compared with, one a file."""

from tanlearn.baselines.chow_liu import ChowLiu

__all__ = ["ChowLiu"]
