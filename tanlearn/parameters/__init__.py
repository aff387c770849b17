"""Parameter learners, one per module.

Input: a structure, encoded rows and a random generator. Output: CPTs. The common interface is
:class:`~tanlearn.parameters.parameter_learner.ParameterLearner`.
"""

from tanlearn.parameters.back_off_ridge import BackOffRidge
from tanlearn.parameters.batch_gradient import LBFGS, BatchLearner, ConjugateGradient
from tanlearn.parameters.branch_and_bound import IntegerBranchAndBound
from tanlearn.parameters.convex_relaxation import ConvexRelaxation
from tanlearn.parameters.cross_tuning import CrossTuned
from tanlearn.parameters.expectation_maximization import ExpectationMaximization
from tanlearn.parameters.extended_baum_welch import ExtendedBaumWelch
from tanlearn.parameters.fixed_cpts import FixedCPTs
from tanlearn.parameters.hierarchical_dirichlet import HierarchicalDirichlet
from tanlearn.parameters.hierarchical_smoothing import HierarchicalSmoothing
from tanlearn.parameters.hybrid_cv import HybridCV
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.monotone_likelihood import MonotoneLikelihood
from tanlearn.parameters.parameter_learner import ParameterLearner, check_learner_device
from tanlearn.parameters.stochastic_gradient import StochasticGradient

__all__ = [
    "LBFGS",
    "BackOffRidge",
    "BatchLearner",
    "ConjugateGradient",
    "ConvexRelaxation",
    "CrossTuned",
    "ExpectationMaximization",
    "ExtendedBaumWelch",
    "FixedCPTs",
    "HierarchicalDirichlet",
    "HierarchicalSmoothing",
    "HybridCV",
    "IntegerBranchAndBound",
    "MaximumLikelihood",
    "MonotoneLikelihood",
    "ParameterLearner",
    "StochasticGradient",
    "check_learner_device",
]
