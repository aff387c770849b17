"""Registry of all learners by the names used in the papers, for the command line, tests, benchmarks and the site.

A name combines a structure with a parameter learner. Parameter learners: ML is maximum likelihood; CG-CL and CG-MM are
conjugate gradient on the conditional likelihood and on the margin (maximum margin, section 5); EBW-CL is extended
Baum-Welch on the conditional likelihood; CVX-MM is the convex relaxation of the margin; HYB is a hybrid loss of
likelihood and margin (differentiable TAN, section 2.3), selected on held-out rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from sklearn.base import clone

from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.bayes_ensemble import BayesEnsembleClassifier
from tanlearn.estimators.bayes_forest import BayesForestClassifier
from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier
from tanlearn.estimators.boosted_terms import BoostedTermsClassifier
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.estimators.k_tree import KTreeClassifier
from tanlearn.estimators.naive_bayes import NaiveBayesClassifier
from tanlearn.estimators.term_net import TermNetClassifier
from tanlearn.parameters.batch_gradient import ConjugateGradient
from tanlearn.parameters.convex_relaxation import ConvexRelaxation
from tanlearn.parameters.extended_baum_welch import ExtendedBaumWelch
from tanlearn.parameters.hierarchical_dirichlet import HierarchicalDirichlet
from tanlearn.parameters.hierarchical_smoothing import HierarchicalSmoothing
from tanlearn.parameters.hybrid_cv import HybridCV
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import ParameterLearner
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.training.losses import ConditionalNLL, Hybrid, Loss, Margin

from .ande import AnDEClassifier
from .aode import AODEClassifier
from .hill_climbing import HillClimbing
from .markov_blanket import MarkovBlanketClassifier
from .model_averaging import ModelAveraging
from .multinet import MultinetClassifier
from .registered_structures import FRIEDMAN, GRADIENT, HECKERMAN, OURS, SAHAMI, STRUCTURES, RegisteredStructure
from .selective_k_dependence import SelectiveKDependenceClassifier
from .semi_naive_bayes import SemiNaiveBayesClassifier
from .weighted_naive_bayes import WeightedNaiveBayesClassifier

__all__ = ["LEARNERS", "Learner", "find_learner"]

Classifier: TypeAlias = (
    NaiveBayesClassifier
    | BayesNetClassifier
    | TANClassifier
    | KTreeClassifier
    | TermNetClassifier
    | AODEClassifier
    | AnDEClassifier
    | SelectiveKDependenceClassifier
    | MarkovBlanketClassifier
    | SemiNaiveBayesClassifier
    | WeightedNaiveBayesClassifier
    | MultinetClassifier
    | BayesForestClassifier
    | BoostedTermsClassifier
    | BayesEnsembleClassifier
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
            Encoder of raw columns. The default is ``TableEncoder()``.

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
        If no learner has this name; the message suggests the nearest names, or lists all names.

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
    near = [known for known, own in by_key.items() if type(own.make()).__name__.casefold() == key][:3]
    near = (
        near or difflib.get_close_matches(key, by_key, n=1) or [known for known in by_key if key and key in known][:3]
    )
    if not near and (letters := _letters(key)):
        near = [known for known, own in by_key.items() if letters in _letters(own.description)][:3]
    if near:
        names = " or ".join(repr(by_key[known].name) for known in near)
        raise ValueError(
            f"there is no learner {name!r}. Did you mean {names}? tanlearn compare --list prints all names."
        )
    raise ValueError(f"there is no learner {name!r}. The learners are: {', '.join(LEARNERS)}.")


def _letters(text: str) -> str:
    """Return the letters of a text, in lower case."""
    return "".join(filter(str.isalpha, text.casefold()))


_MARGIN = "Pernkopf, Wohlmayr, Tschiatschek 2012"
_PAZZANI = "Pazzani 1996"
_WEBB = "Webb, Boughton, Zheng, Ting, Salem 2012"
_ZAIDI = "Zaidi, Cerquides, Carman, Webb 2013"


def _hybrid(n_epochs: int | None) -> ParameterLearner:
    """Return the learner of a hybrid loss, selected on held-out rows or trained for a fixed number of epochs."""
    return HybridCV() if n_epochs is None else StochasticGradient(n_epochs=n_epochs)


class _Parameters(NamedTuple):
    """A parameter learner of the registry."""

    description: str
    citation: str | None
    make: Callable[[int | None], ParameterLearner]  # takes the number of epochs
    cost: int = 0  # as in Learner


#: Parameter learners by name.
_PARAMETERS = {
    "ML": _Parameters("smoothed frequencies", None, lambda n_epochs: MaximumLikelihood()),
    "HS": _Parameters("hierarchical smoothing by leave-one-out", None, lambda n_epochs: HierarchicalSmoothing()),
    "HDP": _Parameters(
        "hierarchical Dirichlet smoothing", "Petitjean et al. 2018", lambda n_epochs: HierarchicalDirichlet()
    ),
    "CG-CL": _Parameters(
        "conditional likelihood", _MARGIN, lambda n_epochs: ConjugateGradient(loss=ConditionalNLL()), 2
    ),
    "EBW-CL": _Parameters(
        "conditional likelihood by extended Baum-Welch",
        "Pernkopf, Wohlmayr 2009",
        lambda n_epochs: ExtendedBaumWelch(),
        2,
    ),
    "CG-MM": _Parameters("margin", _MARGIN, lambda n_epochs: ConjugateGradient(loss=Margin()), 2),
    "CVX-MM": _Parameters(
        "margin by convex relaxation", "Guo, Wilkinson, Schuurmans 2005", lambda n_epochs: ConvexRelaxation(), 5
    ),
    "HYB": _Parameters("likelihood and margin", GRADIENT, _hybrid, 3),
}
_GRADIENT_COST = 4


def _in_two_steps(structure: RegisteredStructure, name: str) -> Learner:
    """Return the registry entry of a structure learner combined with a parameter learner."""
    parameters = _PARAMETERS[name]
    # One paper may describe both.
    citation = "; ".join(dict.fromkeys(filter(None, (structure.citation, parameters.citation))))
    return Learner(
        f"{structure.name} {name}",
        f"{structure.description}, {parameters.description}",
        citation,
        partial(_two_steps, structure.learner, name),
        max(structure.cost, parameters.cost),
    )


def _two_steps(
    structure: Any,
    parameters: str,
    random_state: Any,
    n_epochs: int | None,
    n_jobs: int | None,
    encoder: TableEncoder | None,
) -> Classifier:
    """Return a classifier that learns a structure first and its parameters second."""
    made = _PARAMETERS[parameters].make(n_epochs)  # looked up here: entries are pickled, and a lambda cannot be
    common: dict[str, Any] = {"encoder": encoder, "n_jobs": n_jobs, "random_state": random_state}
    if structure is None:
        return NaiveBayesClassifier(parameters=made, **common)
    learner = clone(structure)
    if "n_jobs" in learner.get_params(deep=False):
        learner.set_params(n_jobs=n_jobs)
    return BayesNetClassifier(structure=learner, parameters=made, **common)


def _copy(
    estimator: Any, random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return an unfitted copy of a classifier that is not trained in epochs."""
    made: Classifier = clone(estimator).set_params(encoder=encoder, n_jobs=n_jobs, random_state=random_state)
    return made


def _trained(
    estimator: Any,
    loss: Loss,
    random_state: Any,
    n_epochs: int | None,
    n_jobs: int | None,
    encoder: TableEncoder | None,
) -> Classifier:
    """Return an unfitted copy of a gradient classifier.

    If ``n_epochs`` is given, ``loss`` replaces the classifier's own loss.
    """
    made = _copy(estimator, random_state, n_epochs, n_jobs, encoder)
    return made if n_epochs is None else made.set_params(loss=clone(loss), n_epochs=n_epochs)


def _gradient_tan(candidates: str) -> Factory:
    """Return the factory of gradient TAN with a kind of candidates."""
    return partial(_trained, TANClassifier(candidates=candidates), Hybrid())


_MMHC = MarkovBlanketClassifier(
    search=HillClimbing(max_parents=None, tabu_length=10), initial="empty", candidates="mmpc"
)
#: All learners by name.
LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        *(_in_two_steps(structure, how) for structure in STRUCTURES for how in structure.parameters),
        Learner(
            "AODE",
            "average of all trees with one common parent, smoothed frequencies",
            "Webb, Boughton, Wang 2005",
            partial(_copy, AODEClassifier()),
        ),
        Learner(
            "A2DE",
            "average over all pairs of super-parents, counted in prediction",
            _WEBB,
            partial(_copy, AnDEClassifier(n=2)),
        ),
        Learner(
            "A3DE",
            "average over all triples of super-parents, counted in prediction",
            _WEBB,
            partial(_copy, AnDEClassifier(n=3)),
            1,
        ),
        Learner(
            "SKDB",
            "parents and features by leave-one-out, hierarchical smoothing",
            "Martinez, Webb, Chen, Zaidi 2016",
            partial(_copy, SelectiveKDependenceClassifier()),
            1,
        ),
        Learner(
            "Markov blanket",
            "general network by BDeu, climbing over arcs of features and class, smoothed frequencies",
            HECKERMAN,
            partial(_copy, MarkovBlanketClassifier()),
            1,
        ),
        Learner(
            "MMHC",
            "general network by BDeu, tabu search over arcs that independence tests allow, smoothed frequencies",
            "Tsamardinos, Brown, Aliferis 2006",
            partial(_copy, _MMHC),
            1,
        ),
        Learner(
            "NB-FSSJ ML",
            "features added and joined by accuracy on folds, smoothed frequencies",
            _PAZZANI,
            partial(_copy, SemiNaiveBayesClassifier(direction="forward")),
            2,
        ),
        Learner(
            "NB-BSEJ ML",
            "features removed and joined by accuracy on folds, smoothed frequencies",
            _PAZZANI,
            partial(_copy, SemiNaiveBayesClassifier(direction="backward")),
            2,
        ),
        Learner(
            "MANB",
            "average of naive Bayes over all subsets of features, in closed form",
            "Dash, Cooper 2002",
            partial(_copy, NaiveBayesClassifier(parameters=ModelAveraging())),
        ),
        Learner(
            "WANBIA CL",
            "naive Bayes with feature weights of maximum conditional likelihood",
            _ZAIDI,
            partial(_copy, WeightedNaiveBayesClassifier(weighting="conditional-likelihood")),
            2,
        ),
        Learner(
            "WANBIA MSE",
            "naive Bayes with feature weights of minimum squared error",
            _ZAIDI,
            partial(_copy, WeightedNaiveBayesClassifier(weighting="squared-error")),
            2,
        ),
        Learner(
            "AWNB",
            "naive Bayes with feature weights from the depths of tests in decision trees",
            "Hall 2007",
            partial(_copy, WeightedNaiveBayesClassifier(weighting="trees")),
            1,
        ),
        Learner(
            "Multinet ML",
            "most likely tree of each class, smoothed frequencies",
            FRIEDMAN,
            partial(_copy, MultinetClassifier()),
        ),
        Learner(
            "TAN Subset HYB",
            "gradient TAN, 8 random earlier features as candidate parents",
            GRADIENT,
            _gradient_tan("subset"),
            _GRADIENT_COST,
        ),
        Learner(
            "TAN All HYB",
            "gradient TAN, all earlier features as candidate parents",
            GRADIENT,
            _gradient_tan("all"),
            _GRADIENT_COST,
        ),
        Learner(
            "TAN Order-free HYB",
            "gradient TAN, any tree without an ordering",
            OURS + GRADIENT,
            _gradient_tan("order-free"),
            _GRADIENT_COST,
        ),
        Learner(
            "Pseudo-TAN HYB",
            "gradient TAN with cycles allowed: a scorer, no Bayesian network",
            GRADIENT,
            _gradient_tan("unconstrained"),
            _GRADIENT_COST,
        ),
        Learner(
            "K-tree",
            "gradient k-tree, up to two of the 8 to 14 most informative features as parents",
            OURS + GRADIENT,
            partial(_trained, KTreeClassifier(), ConditionalNLL()),
            _GRADIENT_COST,
        ),
        *(
            Learner(
                name,
                f"{parents}, log parameters as sums of terms with ridges",
                "this library",
                partial(_copy, TermNetClassifier(max_parents=max_parents)),
                3,
            )
            for name, max_parents, parents in (
                ("Term-NB", 0, "naive Bayes"),
                ("Term-TAN", 1, "tree by gain"),
                ("Term-BN", 5, "5 parents by gain"),
            )
        ),
        Learner(
            "BayesForest",
            "32 random networks of up to four parents, weighted by out-of-fold predictions",
            OURS + SAHAMI,
            partial(_copy, BayesForestClassifier()),
            2,
        ),
        Learner(
            "BoostedTerms",
            "small tables over up to five splits, fitted to residuals one after another",
            "this library, after Friedman 2001",
            partial(_copy, BoostedTermsClassifier()),
            2,
        ),
        Learner(
            "BayesEnsemble",
            "BayesForest, Term-TAN and BoostedTerms, weighted by out-of-fold predictions",
            "this library",
            partial(_copy, BayesEnsembleClassifier()),
            3,
        ),
    )
}
