"""The parts of an SQL export that depend on the kind of model.

Each class has one method per kind, which :meth:`~tanlearn.models.model.Model.write_to` calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import RawColumn
from tanlearn.exports.sql_ensemble import EnsembleScores
from tanlearn.exports.sql_forest import ForestScores
from tanlearn.exports.sql_scores import NetworkScores
from tanlearn.exports.sql_terms import TermScores
from tanlearn.forest.ensemble import Ensemble
from tanlearn.forest.forest import Forest
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.boosted_terms import BoostedTerms

__all__ = ["LeastBytes", "ModelScores", "Remedies", "UsesOfNull"]

#: Maximum number of constants, so that an error is raised before a statement is written that is too large.
_MOST_CONSTANTS = 20_000_000
#: Minimum number of bytes of a parameter of a forest, or of boosted terms, in a statement.
_BYTES_PER_PARAMETER = 25


@dataclass(frozen=True)
class ModelScores:
    """The expressions of the scores of the classes."""

    columns: Sequence[RawColumn]
    names: Sequence[str]
    dialect: Dialect
    is_exact: bool

    def network(self, network: BayesNet) -> NetworkScores:
        """Return the expressions of a network. Raise ValueError if it cannot be exported."""
        _check_network(network, self.names, is_exact=self.is_exact)
        return NetworkScores(network, self.columns, self.dialect, is_exact=self.is_exact)

    def forest(self, forest: Forest) -> ForestScores:
        """Return the expressions of a forest."""
        return ForestScores(forest, self.dialect)

    def boosted_terms(self, terms: BoostedTerms) -> TermScores:
        """Return the expressions of boosted terms."""
        return TermScores(terms, self.columns, self.dialect, is_exact=self.is_exact)

    def ensemble(self, ensemble: Ensemble) -> EnsembleScores:
        """Return the expressions of an ensemble. Raise ValueError if its network cannot be exported."""
        if ensemble.weights[1]:
            _check_network(ensemble.network, self.names, is_exact=self.is_exact)
        return EnsembleScores(ensemble, self.columns, self.dialect, is_exact=self.is_exact)


class LeastBytes:
    """Lower bounds of the size of a statement, without writing it."""

    def network(self, network: BayesNet) -> int:
        """Return 0: statements of networks are written before their size is checked."""
        return 0

    def forest(self, forest: Forest) -> int:
        """Return the bytes of the gains."""
        return _BYTES_PER_PARAMETER * forest.n_parameters

    def boosted_terms(self, terms: BoostedTerms) -> int:
        """Return the bytes of the values."""
        return _BYTES_PER_PARAMETER * terms.n_parameters

    def ensemble(self, ensemble: Ensemble) -> int:
        """Return the bytes of all parts."""
        return sum(part.write_to(self) for _, part in ensemble.parts())


class Remedies:
    """Ways to fit a model with a shorter statement."""

    def network(self, network: BayesNet) -> list[str]:
        """Return the remedies for a network."""
        return ["use fewer columns", *["use NaiveBayesClassifier"] * bool(network.structure.n_edges)]

    def forest(self, forest: Forest) -> list[str]:
        """Return the remedies for a forest."""
        return ["decrease n_estimators of the forest", "use fewer columns", "use NaiveBayesClassifier"]

    def boosted_terms(self, terms: BoostedTerms) -> list[str]:
        """Return the remedies for boosted terms."""
        return ["decrease max_terms of the boosted terms", "use fewer columns", "use NaiveBayesClassifier"]

    def ensemble(self, ensemble: Ensemble) -> list[str]:
        """Return the remedies for all parts, each once."""
        return list(dict.fromkeys(remedy for _, part in ensemble.parts() for remedy in part.write_to(self)))


@dataclass(frozen=True)
class UsesOfNull:
    """Test of whether ``missing="null"`` shortens the statement, because marginalized columns may be missing."""

    columns: Sequence[RawColumn]

    def network(self, network: BayesNet) -> bool:
        """Return whether a parent can be missing."""
        return self._can_be_missing(network.structure.parents)

    def forest(self, forest: Forest) -> bool:
        """Return False: both settings give the same statement."""
        return False

    def boosted_terms(self, terms: BoostedTerms) -> bool:
        """Return whether a column of a term can be missing."""
        return self._can_be_missing(terms.features)

    def ensemble(self, ensemble: Ensemble) -> bool:
        """Return whether the statement of a part becomes shorter."""
        return any(part.write_to(self) for _, part in ensemble.parts())

    def _can_be_missing(self, numbers: AnyArray) -> bool:
        """Return whether one of the columns with these numbers can be missing; negative numbers are ignored."""
        return any(self.columns[i].can_be_missing for i in np.unique(numbers).tolist() if i >= 0)


def _check_network(network: BayesNet, names: Sequence[str], *, is_exact: bool) -> None:
    """Raise ValueError if missing values cannot be marginalized in SQL."""
    parents = network.structure.parents
    remedy = "Pass missing='null' for NULL in rows with such missing values, or fit a tree or naive Bayes."
    several = np.flatnonzero((parents[:, 1:] >= 0).any(axis=1))
    if is_exact and several.size:
        own = ", ".join(repr(names[j]) for j in parents[several[0]].tolist() if j >= 0)
        raise ValueError(
            f"SQL can marginalize missing values in trees only, but column {names[several[0]]!r} depends on several "
            f"other columns ({own}). {remedy}"
        )
    if is_exact and not network.structure.is_acyclic:
        raise ValueError(f"SQL can marginalize missing values only in trees, but this structure has a cycle. {remedy}")
    sizes = network.tables.layout.sizes()
    if network.tables.is_dense and sizes.sum() > _MOST_CONSTANTS:
        raise ValueError(
            f"the network has {int(sizes.sum()):,} CPT entries, too many for one SQL statement. Fit with fewer "
            f"columns, values or parents."
        )
