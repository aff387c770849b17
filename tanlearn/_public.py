"""The public names of the package, each imported when it is first used."""

from typing import TYPE_CHECKING

from tanlearn._lazy_names import lazy_names

if TYPE_CHECKING:
    from tanlearn._warmup import warmup
    from tanlearn.counts.pair_counts import PairCounts
    from tanlearn.density.density import TANDensity
    from tanlearn.density.drift import drift_report
    from tanlearn.density.imputer import TANImputer
    from tanlearn.encoding.categories import CategoryEncoder
    from tanlearn.encoding.column_warnings import ColumnKindWarning
    from tanlearn.encoding.encoded_data import EncodedData
    from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
    from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
    from tanlearn.encoding.table_encoder import TableEncoder
    from tanlearn.encoding.weights import scale_weights
    from tanlearn.estimators.bayes_ensemble import BayesEnsembleClassifier
    from tanlearn.estimators.bayes_forest import BayesForestClassifier
    from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier
    from tanlearn.estimators.bif_and_xmlbif import read_bif, read_xmlbif, write_bif, write_xmlbif
    from tanlearn.estimators.boosted_terms import BoostedTermsClassifier
    from tanlearn.estimators.conformal import ConformalClassifier
    from tanlearn.estimators.gradient_tan import TANClassifier
    from tanlearn.estimators.impossible_rows import ImpossibleRowsWarning
    from tanlearn.estimators.k_tree import KTreeClassifier
    from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
    from tanlearn.estimators.question_tree import question_tree
    from tanlearn.estimators.semi_supervised import SemiSupervisedClassifier
    from tanlearn.estimators.table_counts import TableCounts
    from tanlearn.estimators.term_net import TermNetClassifier
    from tanlearn.exports.javascript import to_javascript
    from tanlearn.exports.onnx_model import to_onnx
    from tanlearn.exports.sql import to_sql
    from tanlearn.files.models import load, save
    from tanlearn.models.calibration import Calibration
    from tanlearn.models.marginalization_limits import InexactMarginalizationWarning
    from tanlearn.models.quantization import FixedPoint, IntegerTables, round_tables
    from tanlearn.models.tables import Tables
    from tanlearn.parameters.back_off_ridge import BackOffRidge
    from tanlearn.parameters.batch_gradient import LBFGS, ConjugateGradient
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
    from tanlearn.parameters.stochastic_gradient import StochasticGradient
    from tanlearn.privacy.budget import PrivacyBudget
    from tanlearn.privacy.concentrated import ConcentratedBudget
    from tanlearn.search.pareto import pareto_search
    from tanlearn.search.random_search import TANSearchCV
    from tanlearn.search.size_path import size_path
    from tanlearn.sources.file_source import read_table
    from tanlearn.sources.table_files import open_table
    from tanlearn.sources.unlabeled_rows import UnlabeledRowsWarning
    from tanlearn.structures.candidate_kinds import Candidates
    from tanlearn.structures.candidate_sets import CandidateSets
    from tanlearn.structures.knowledge import Knowledge
    from tanlearn.structures.structures import Structure
    from tanlearn.training.gradient_training import GradientTraining
    from tanlearn.training.history import EpochReport, Iteration
    from tanlearn.training.losses import ConditionalNLL, HingeMargin, Hybrid, JointNLL, Margin, SoftHybrid
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "LBFGS": "tanlearn.parameters.batch_gradient",
            "BackOffRidge": "tanlearn.parameters.back_off_ridge",
            "BayesEnsembleClassifier": "tanlearn.estimators.bayes_ensemble",
            "BayesForestClassifier": "tanlearn.estimators.bayes_forest",
            "BayesNetClassifier": "tanlearn.estimators.bayes_net_classifier",
            "BoostedTermsClassifier": "tanlearn.estimators.boosted_terms",
            "Calibration": "tanlearn.models.calibration",
            "CandidateSets": "tanlearn.structures.candidate_sets",
            "Candidates": "tanlearn.structures.candidate_kinds",
            "CategoryEncoder": "tanlearn.encoding.categories",
            "ColumnKindWarning": "tanlearn.encoding.column_warnings",
            "ConcentratedBudget": "tanlearn.privacy.concentrated",
            "ConditionalNLL": "tanlearn.training.losses",
            "ConformalClassifier": "tanlearn.estimators.conformal",
            "ConjugateGradient": "tanlearn.parameters.batch_gradient",
            "ConvexRelaxation": "tanlearn.parameters.convex_relaxation",
            "CrossTuned": "tanlearn.parameters.cross_tuning",
            "EncodedData": "tanlearn.encoding.encoded_data",
            "EpochReport": "tanlearn.training.history",
            "ExpectationMaximization": "tanlearn.parameters.expectation_maximization",
            "ExtendedBaumWelch": "tanlearn.parameters.extended_baum_welch",
            "FixedCPTs": "tanlearn.parameters.fixed_cpts",
            "FixedPoint": "tanlearn.models.quantization",
            "GradientTraining": "tanlearn.training.gradient_training",
            "HierarchicalDirichlet": "tanlearn.parameters.hierarchical_dirichlet",
            "HierarchicalSmoothing": "tanlearn.parameters.hierarchical_smoothing",
            "HingeMargin": "tanlearn.training.losses",
            "Hybrid": "tanlearn.training.losses",
            "HybridCV": "tanlearn.parameters.hybrid_cv",
            "ImpossibleRowsWarning": "tanlearn.estimators.impossible_rows",
            "InexactMarginalizationWarning": "tanlearn.models.marginalization_limits",
            "IntegerBranchAndBound": "tanlearn.parameters.branch_and_bound",
            "IntegerTables": "tanlearn.models.quantization",
            "Iteration": "tanlearn.training.history",
            "JointNLL": "tanlearn.training.losses",
            "KTreeClassifier": "tanlearn.estimators.k_tree",
            "Knowledge": "tanlearn.structures.knowledge",
            "MDLPDiscretizer": "tanlearn.encoding.mdlp_discretizer",
            "Margin": "tanlearn.training.losses",
            "MaximumLikelihood": "tanlearn.parameters.maximum_likelihood",
            "MonotoneLikelihood": "tanlearn.parameters.monotone_likelihood",
            "NaiveBayesClassifier": "tanlearn.estimators.naive_bayes",
            "PairCounts": "tanlearn.counts.pair_counts",
            "PrivacyBudget": "tanlearn.privacy.budget",
            "QuantileDiscretizer": "tanlearn.encoding.quantile_discretizer",
            "SemiSupervisedClassifier": "tanlearn.estimators.semi_supervised",
            "SoftHybrid": "tanlearn.training.losses",
            "StochasticGradient": "tanlearn.parameters.stochastic_gradient",
            "Structure": "tanlearn.structures.structures",
            "TANClassifier": "tanlearn.estimators.gradient_tan",
            "TANDensity": "tanlearn.density.density",
            "TANImputer": "tanlearn.density.imputer",
            "TANSearchCV": "tanlearn.search.random_search",
            "TableCounts": "tanlearn.estimators.table_counts",
            "TableEncoder": "tanlearn.encoding.table_encoder",
            "Tables": "tanlearn.models.tables",
            "TermNetClassifier": "tanlearn.estimators.term_net",
            "UnlabeledRowsWarning": "tanlearn.sources.unlabeled_rows",
            "drift_report": "tanlearn.density.drift",
            "load": "tanlearn.files.models",
            "open_table": "tanlearn.sources.table_files",
            "pareto_search": "tanlearn.search.pareto",
            "question_tree": "tanlearn.estimators.question_tree",
            "read_bif": "tanlearn.estimators.bif_and_xmlbif",
            "read_table": "tanlearn.sources.file_source",
            "read_xmlbif": "tanlearn.estimators.bif_and_xmlbif",
            "round_tables": "tanlearn.models.quantization",
            "save": "tanlearn.files.models",
            "scale_weights": "tanlearn.encoding.weights",
            "size_path": "tanlearn.search.size_path",
            "to_javascript": "tanlearn.exports.javascript",
            "to_onnx": "tanlearn.exports.onnx_model",
            "to_sql": "tanlearn.exports.sql",
            "warmup": "tanlearn._warmup",
            "write_bif": "tanlearn.estimators.bif_and_xmlbif",
            "write_xmlbif": "tanlearn.estimators.bif_and_xmlbif",
        },
    )

__all__ = [
    "LBFGS",
    "BackOffRidge",
    "BayesEnsembleClassifier",
    "BayesForestClassifier",
    "BayesNetClassifier",
    "BoostedTermsClassifier",
    "Calibration",
    "CandidateSets",
    "Candidates",
    "CategoryEncoder",
    "ColumnKindWarning",
    "ConcentratedBudget",
    "ConditionalNLL",
    "ConformalClassifier",
    "ConjugateGradient",
    "ConvexRelaxation",
    "CrossTuned",
    "EncodedData",
    "EpochReport",
    "ExpectationMaximization",
    "ExtendedBaumWelch",
    "FixedCPTs",
    "FixedPoint",
    "GradientTraining",
    "HierarchicalDirichlet",
    "HierarchicalSmoothing",
    "HingeMargin",
    "Hybrid",
    "HybridCV",
    "ImpossibleRowsWarning",
    "InexactMarginalizationWarning",
    "IntegerBranchAndBound",
    "IntegerTables",
    "Iteration",
    "JointNLL",
    "KTreeClassifier",
    "Knowledge",
    "MDLPDiscretizer",
    "Margin",
    "MaximumLikelihood",
    "MonotoneLikelihood",
    "NaiveBayesClassifier",
    "PairCounts",
    "PrivacyBudget",
    "QuantileDiscretizer",
    "SemiSupervisedClassifier",
    "SoftHybrid",
    "StochasticGradient",
    "Structure",
    "TANClassifier",
    "TANDensity",
    "TANImputer",
    "TANSearchCV",
    "TableCounts",
    "TableEncoder",
    "Tables",
    "TermNetClassifier",
    "UnlabeledRowsWarning",
    "drift_report",
    "load",
    "open_table",
    "pareto_search",
    "question_tree",
    "read_bif",
    "read_table",
    "read_xmlbif",
    "round_tables",
    "save",
    "scale_weights",
    "size_path",
    "to_javascript",
    "to_onnx",
    "to_sql",
    "warmup",
    "write_bif",
    "write_xmlbif",
]
