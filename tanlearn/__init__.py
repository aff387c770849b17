"""Bayesian-network classifiers learnt by likelihood, margin and gradient, in NumPy and Numba."""

from tanlearn.candidates import CandidateSets
from tanlearn.convex_relaxation import ConvexRelaxation
from tanlearn.counts import CountState
from tanlearn.cross_tuning import CrossTuned
from tanlearn.discretize import MDLPDiscretizer
from tanlearn.encoded_data import EncodedData
from tanlearn.encoding import CategoryEncoder
from tanlearn.estimators import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.expectation_maximization import ExpectationMaximization
from tanlearn.extended_baum_welch import ExtendedBaumWelch
from tanlearn.gradient_tan import TANClassifier
from tanlearn.interchange import read_bif, read_xmlbif, write_bif, write_xmlbif
from tanlearn.losses import ConditionalNLL, HingeMargin, Hybrid, JointNLL, Margin
from tanlearn.model_selection import TANSearchCV
from tanlearn.parameters import LBFGS, ConjugateGradient, MaximumLikelihood, StochasticGradient
from tanlearn.pareto import pareto_search
from tanlearn.persistence import load, save
from tanlearn.quantization import FixedPoint, IntegerTables, round_tables
from tanlearn.serialization import register
from tanlearn.size_path import size_path
from tanlearn.structures import Structure
from tanlearn.table_encoder import TableEncoder
from tanlearn.tables import Tables
from tanlearn.training import EpochReport

__version__ = "0.1.0"

__all__ = [
    "LBFGS",
    "BayesNetClassifier",
    "CandidateSets",
    "CategoryEncoder",
    "ConditionalNLL",
    "ConjugateGradient",
    "ConvexRelaxation",
    "CountState",
    "CrossTuned",
    "EncodedData",
    "EpochReport",
    "ExpectationMaximization",
    "ExtendedBaumWelch",
    "FixedPoint",
    "HingeMargin",
    "Hybrid",
    "IntegerTables",
    "JointNLL",
    "MDLPDiscretizer",
    "Margin",
    "MaximumLikelihood",
    "NaiveBayesClassifier",
    "StochasticGradient",
    "Structure",
    "TANClassifier",
    "TANSearchCV",
    "TableEncoder",
    "Tables",
    "load",
    "pareto_search",
    "read_bif",
    "read_xmlbif",
    "round_tables",
    "save",
    "size_path",
    "write_bif",
    "write_xmlbif",
]

register(globals()[name] for name in __all__)  # files of models may name these classes
