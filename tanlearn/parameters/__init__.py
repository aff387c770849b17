"""Parameter learners, one per module.

The input of a learner consists of a structure, encoded rows and a random generator. It returns CPTs. The common
interface is :class:`~tanlearn.parameters.parameter_learner.ParameterLearner`.
"""

from typing import TYPE_CHECKING

from tanlearn._lazy_names import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "LBFGS": "tanlearn.parameters.batch_gradient",
            "BackOffRidge": "tanlearn.parameters.back_off_ridge",
            "BatchLearner": "tanlearn.parameters.batch_gradient",
            "ConjugateGradient": "tanlearn.parameters.batch_gradient",
            "ConvexRelaxation": "tanlearn.parameters.convex_relaxation",
            "CrossTuned": "tanlearn.parameters.cross_tuning",
            "ExpectationMaximization": "tanlearn.parameters.expectation_maximization",
            "ExtendedBaumWelch": "tanlearn.parameters.extended_baum_welch",
            "FixedCPTs": "tanlearn.parameters.fixed_cpts",
            "HierarchicalDirichlet": "tanlearn.parameters.hierarchical_dirichlet",
            "HierarchicalSmoothing": "tanlearn.parameters.hierarchical_smoothing",
            "HybridCV": "tanlearn.parameters.hybrid_cv",
            "IntegerBranchAndBound": "tanlearn.parameters.branch_and_bound",
            "MaximumLikelihood": "tanlearn.parameters.maximum_likelihood",
            "MonotoneLikelihood": "tanlearn.parameters.monotone_likelihood",
            "ParameterLearner": "tanlearn.parameters.parameter_learner",
            "StochasticGradient": "tanlearn.parameters.stochastic_gradient",
            "check_learner_device": "tanlearn.parameters.parameter_learner",
        },
    )

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
