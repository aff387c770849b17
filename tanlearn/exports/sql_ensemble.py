"""SQL expressions for the log probabilities of an ensemble, weighted sums of the log probabilities of its models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import RawColumn
from tanlearn.exports.sql_forest import ForestScores, merged_codes
from tanlearn.exports.sql_scores import NetworkScores, Step
from tanlearn.exports.sql_terms import TermScores
from tanlearn.forest.ensemble import Ensemble

__all__ = ["EnsembleScores"]


class EnsembleScores:
    """Log probabilities of the classes by an ensemble, as SQL expressions of the codes ``x0``, ``x1``, ..."""

    has_log_joint = False
    has_zeros = False

    def __init__(self, ensemble: Ensemble, columns: Sequence[RawColumn], dialect: Dialect, *, is_exact: bool) -> None:
        self._ensemble, self._columns, self._dialect, self._is_exact = ensemble, columns, dialect, is_exact
        self.n_classes = len(ensemble.shift)

    def steps(self) -> Iterator[Step]:
        """Yield the columns of the queries of all models of nonzero weight, and of their weighted sum."""
        own, classes = self._ensemble, range(self.n_classes)
        of_forest, of_network, of_terms = own.weights.tolist()
        parts: list[list[str]] = [[] for _ in classes]
        if of_forest:
            forest = ForestScores(own.forest, self._dialect)
            yield from forest.steps()
            yield {f"f{y}": forest.log_joint(y) for y in classes}, []
            for y in classes:
                parts[y].append(f"{self._dialect.number(of_forest)} * f{y}")
        if of_network:
            yield merged_codes(own.discretization, "c"), []
            network = NetworkScores(own.network, self._columns, self._dialect, is_exact=self._is_exact, codes="c")
            yield from network.steps()
            yield {f"n{y}": network.log_joint(y) for y in classes}, []
            yield from self._normalize("n")
            for y in classes:
                parts[y].append(f"{self._dialect.number(of_network)} * (n{y} - nm - nl)")
        if of_terms:
            yield from TermScores(own.boosting, self._columns, self._dialect, is_exact=self._is_exact).steps()
            yield from self._normalize("p")
            for y in classes:
                parts[y].append(f"{self._dialect.number(of_terms)} * (p{y} - pm - pl)")
        yield {f"z{y}": " + ".join(parts[y]) for y in classes}, []
        yield from self._normalize("z")

    def log_joint(self, y: int) -> str:
        """Return the log probability of a class."""
        return f"z{y} - zm - zl + {self._dialect.number(float(self._ensemble.shift[y]))}"

    def _normalize(self, prefix: str) -> Iterator[Step]:
        """Yield the largest score, and the log of the sum of the exponentials of all scores relative to it."""
        names = [f"{prefix}{y}" for y in range(self.n_classes)]
        yield {f"{prefix}m": self._dialect.maximum(names)}, []
        total = self._dialect.total([self._dialect.exponential(f"{name} - {prefix}m") for name in names])
        yield {f"{prefix}l": f"ln({total})"}, []
