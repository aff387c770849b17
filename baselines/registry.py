"""All learners under the names of the papers: one table for the command line, tests, benchmarks and the README.

A name is a structure and a way to learn parameters: ML is maximum likelihood, CG-CL and CG-MM are conjugate gradient
on the conditional likelihood and on the margin (maximum margin, section 5), HYB is stochastic gradient on the hybrid
loss (differentiable TAN, section 2.3).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from tanlearn.border import TableEncoder
from tanlearn.estimators import BayesNetClassifier, NaiveBayesClassifier, StructureLearner
from tanlearn.gradient_tan import TANClassifier
from tanlearn.losses import ConditionalNLL, Margin
from tanlearn.parameters import ConjugateGradient, MaximumLikelihood, ParameterLearner, StochasticGradient

from .chow_liu import ChowLiu
from .random_tree import RandomTree

__all__ = ["LEARNERS", "Learner", "find_learner"]

Classifier: TypeAlias = NaiveBayesClassifier | BayesNetClassifier | TANClassifier
#: ``factory(random_state, n_epochs, n_jobs, encoder)``
Factory: TypeAlias = Callable[[Any, int, int | None, TableEncoder | None], Classifier]


@dataclass(frozen=True)
class Learner:
    """One learner of the registry.

    Parameters
    ----------
    name : str
        What the papers call it.
    description : str
        What it does, in a line.
    citation : str
        Where it is described.
    factory : callable
        ``factory(random_state, n_epochs, n_jobs, encoder)`` returns an unfitted classifier.

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

    def make(
        self,
        *,
        random_state: Any = 0,
        n_epochs: int = 100,
        n_jobs: int | None = None,
        encoder: TableEncoder | None = None,
    ) -> Classifier:
        """Return an unfitted classifier.

        Parameters
        ----------
        random_state : int, RandomState instance or None, default=0
            Seed of learners that draw.
        n_epochs : int, default=100
            Passes over the data of learners by stochastic gradient; the others have no use for it.
        n_jobs : int, optional
            Threads, as in joblib.
        encoder : TableEncoder, optional
            How raw columns become codes; by default ``TableEncoder()``.

        Returns
        -------
        NaiveBayesClassifier, BayesNetClassifier or TANClassifier
        """
        return self.factory(random_state, n_epochs, n_jobs, encoder)


def find_learner(name: str) -> Learner:
    """Return a learner by its name, in capital or small letters.

    Parameters
    ----------
    name : str
        One of the keys of ``LEARNERS``.

    Returns
    -------
    Learner

    Raises
    ------
    ValueError
        If there is none of that name; the message has the nearest name and all of them.

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
    near = difflib.get_close_matches(key, by_key, n=1)
    hint = f" Did you mean {by_key[near[0]].name!r}?" if near else ""
    raise ValueError(f"there is no learner {name!r}.{hint} The learners are: {', '.join(LEARNERS)}.")


def _ml(n_epochs: int) -> ParameterLearner:
    """Return smoothed frequencies."""
    return MaximumLikelihood()


def _cg_cl(n_epochs: int) -> ParameterLearner:
    """Return conjugate gradient on the conditional likelihood."""
    return ConjugateGradient(loss=ConditionalNLL())


def _cg_mm(n_epochs: int) -> ParameterLearner:
    """Return conjugate gradient on the margin."""
    return ConjugateGradient(loss=Margin())


def _hyb(n_epochs: int) -> ParameterLearner:
    """Return stochastic gradient on the hybrid loss."""
    return StochasticGradient(n_epochs=n_epochs)


def _naive_bayes(
    parameters: Callable[[int], ParameterLearner],
    random_state: Any,
    n_epochs: int,
    n_jobs: int | None,
    encoder: TableEncoder | None,
) -> Classifier:
    """Return naive Bayes."""
    return NaiveBayesClassifier(
        parameters=parameters(n_epochs), encoder=encoder, n_jobs=n_jobs, random_state=random_state
    )


def _chow_liu(n_jobs: int | None) -> StructureLearner:
    """Return the most likely tree."""
    return ChowLiu(n_jobs=n_jobs)


def _random_tree(n_jobs: int | None) -> StructureLearner:
    """Return a random tree."""
    return RandomTree()


def _bayes_net(
    structure: Callable[[int | None], StructureLearner],
    parameters: Callable[[int], ParameterLearner],
    random_state: Any,
    n_epochs: int,
    n_jobs: int | None,
    encoder: TableEncoder | None,
) -> Classifier:
    """Return a structure first and its parameters second."""
    return BayesNetClassifier(
        structure=structure(n_jobs),
        parameters=parameters(n_epochs),
        encoder=encoder,
        n_jobs=n_jobs,
        random_state=random_state,
    )


def _gradient_tan(
    settings: dict[str, Any], random_state: Any, n_epochs: int, n_jobs: int | None, encoder: TableEncoder | None
) -> Classifier:
    """Return gradient TAN."""
    return TANClassifier(**settings, n_epochs=n_epochs, encoder=encoder, n_jobs=n_jobs, random_state=random_state)


_FRIEDMAN = "Friedman, Geiger, Goldszmidt 1997"
_MARGIN = "Pernkopf, Wohlmayr, Tschiatschek 2012"
_GRADIENT = "Roth, Pernkopf 2020"

#: Every learner by its name.
LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        Learner("NB ML", "naive Bayes, smoothed frequencies", _FRIEDMAN, partial(_naive_bayes, _ml)),
        Learner("NB CG-CL", "naive Bayes, conditional likelihood", _MARGIN, partial(_naive_bayes, _cg_cl)),
        Learner("NB CG-MM", "naive Bayes, margin", _MARGIN, partial(_naive_bayes, _cg_mm)),
        Learner("NB HYB", "naive Bayes, likelihood and margin", _GRADIENT, partial(_naive_bayes, _hyb)),
        Learner("TAN-CMI ML", "most likely tree, smoothed frequencies", _FRIEDMAN, partial(_bayes_net, _chow_liu, _ml)),
        Learner(
            "TAN-CMI CG-CL", "most likely tree, conditional likelihood", _MARGIN, partial(_bayes_net, _chow_liu, _cg_cl)
        ),
        Learner("TAN-CMI CG-MM", "most likely tree, margin", _MARGIN, partial(_bayes_net, _chow_liu, _cg_mm)),
        Learner(
            "TAN-CMI HYB", "most likely tree, likelihood and margin", _GRADIENT, partial(_bayes_net, _chow_liu, _hyb)
        ),
        Learner(
            "TAN Random HYB", "random tree, likelihood and margin", _GRADIENT, partial(_bayes_net, _random_tree, _hyb)
        ),
        Learner(
            "TAN Subset HYB",
            "gradient TAN, 8 random earlier features as candidate parents",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "subset", "n_candidates": 8}),
        ),
        Learner(
            "TAN All HYB",
            "gradient TAN, all earlier features as candidate parents",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "all"}),
        ),
        Learner(
            "TAN Order-free HYB",
            "gradient TAN, any tree without an ordering",
            "this library, after Roth, Pernkopf 2020",
            partial(_gradient_tan, {"candidates": "order-free"}),
        ),
        Learner(
            "Pseudo-TAN HYB",
            "gradient TAN with cycles allowed: a scorer, no Bayesian network",
            _GRADIENT,
            partial(_gradient_tan, {"candidates": "unconstrained"}),
        ),
    )
}
