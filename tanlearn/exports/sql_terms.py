"""SQL expressions for the scores of boosted terms.

A term is a table over the sides of some splits. For each split, a query computes whether the value of a row agrees with
side 0 and with side 1, as 1 or 0. A missing value agrees with both sides.

- a complete row has one cell per term, whose number has the side of split s as its bit s;
- with missing values, the value of a term is ``sum_c agrees(c) weight(c) value(c) / sum_c agrees(c) weight(c)``, where
  a cell c agrees if all its sides do. These sums of products are nested, with one level per split.

Only differences to the values of the first class are written, because posteriors do not depend on a constant of the
row. Terms are added in groups, so that no query has too many columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import MISSING, RawColumn
from tanlearn.exports.sql_scores import Step
from tanlearn.models.boosted_terms import BoostedTerms, Term

__all__ = ["TermScores"]

#: Maximum number of columns for the splits and cells of a group of terms, unless the group is a single term.
_MOST_COLUMNS = 300
#: If there are more runs of values, the values are listed one by one.
_MOST_RUNS = 2


class TermScores:
    """Scores of the classes by boosted terms, as SQL expressions of the codes ``x0``, ``x1``, ...

    If ``is_exact``, missing values are averaged as in Python. Otherwise all scores are NULL if a feature of a term is
    missing.
    """

    has_log_joint = False
    has_zeros = False

    def __init__(self, terms: BoostedTerms, columns: Sequence[RawColumn], dialect: Dialect, *, is_exact: bool) -> None:
        self._terms, self._columns, self._dialect, self._is_exact = terms, columns, dialect, is_exact
        self.n_classes = len(terms.log_prior)

    def steps(self) -> Iterator[Step]:
        """Yield the columns of the queries, which add groups of terms to the scores ``p0``, ``p1``, ..."""
        yield {"p": self._zero_or_null()}, []
        prior = self._terms.log_prior.tolist()
        yield {f"p{y}": f"{self._dialect.number(own)} + p" for y, own in enumerate(prior)}, ["p"]
        for group in self._groups():
            yield from self._group_steps(group)

    def log_joint(self, y: int) -> str:
        """Return the score of a class."""
        return f"p{y}"

    def _zero_or_null(self) -> str:
        """Return 0, or NULL if a code of the row is NULL, or a missing value is not averaged."""
        codes = self._dialect.total([f"x{i}" for i in range(len(self._columns))])
        used = np.unique(self._terms.features[self._terms.features >= 0]).tolist()
        names = [f"x{i}" for i in used if self._columns[i].can_be_missing]
        if self._is_exact or not names:
            return f"0 * ({codes})"
        return f"CASE WHEN {MISSING} IN ({', '.join(names)}) THEN NULL ELSE 0 * ({codes}) END"

    def _groups(self) -> Iterator[list[Term]]:
        """Yield the terms in groups."""
        group: list[Term] = []
        splits: set[tuple[int, bytes]] = set()
        for term in self._terms.terms():
            wider = splits | set(_splits_of(term))
            if group and 2 * (len(wider) + len(group) + 1) > _MOST_COLUMNS:
                yield group
                group, wider = [], set(_splits_of(term))
            group, splits = [*group, term], wider
        if group:
            yield group

    def _group_steps(self, terms: list[Term]) -> Iterator[Step]:
        """Yield the columns of splits, of cells and of scores for a group of terms."""
        numbers: dict[tuple[int, bytes], int] = {}
        of_terms = [[numbers.setdefault(split, len(numbers)) for split in _splits_of(term)] for term in terms]
        is_averaged = [self._is_exact and bool(self._missing_columns(term)) for term in terms]
        with_low = {j for own, averaged in zip(of_terms, is_averaged, strict=True) if averaged for j in own}
        of_splits: dict[str, str] = {}
        for (i, side), j in numbers.items():
            sides = np.frombuffer(side, np.uint8)
            of_splits[f"d{j}"] = self._agrees(i, sides, 1)
            if j in with_low:
                of_splits[f"a{j}"] = self._agrees(i, sides, 0)
        yield of_splits, []
        cells: dict[str, str] = {}
        for t, (term, own, averaged) in enumerate(zip(terms, of_terms, is_averaged, strict=True)):
            cells[f"i{t}"] = " + ".join(f"{1 << s} * d{j}" if s else f"d{j}" for s, j in enumerate(own)) or "0"
            if averaged:
                cells[f"w{t}"] = self._total_weight(term, own)
        yield cells, []
        scores = {}
        for y in range(1, self.n_classes):
            triples = zip(terms, of_terms, is_averaged, strict=True)
            values = [self._value(t, *triple, y) for t, triple in enumerate(triples)]
            scores[f"p{y}"] = self._dialect.total([f"p{y}", *values])
        yield scores, [*of_splits, *cells]

    def _missing_columns(self, term: Term) -> list[int]:
        """Return the features of a term that can be missing."""
        return [i for i in np.unique(term.features).tolist() if self._columns[i].can_be_missing]

    def _agrees(self, i: int, sides: AnyArray, side: int) -> str:
        """Return 1 if the value of a feature is missing or on a side of a split, and 0 otherwise."""
        is_in, first = sides == side, 0
        if self._is_exact and self._columns[i].can_be_missing:
            is_in, first = np.append(True, is_in), MISSING
        return f"CASE WHEN {_is_among(f'x{i}', is_in, first)} THEN 1 ELSE 0 END"

    def _total_weight(self, term: Term, splits: list[int]) -> str:
        """Return the total weight of the cells that agree with a row with missing values, or NULL for complete rows.

        A total weight of 0 is replaced by 1, so that the value of the term is 0.
        """
        names = ", ".join(f"x{i}" for i in self._missing_columns(term))
        total = self._sum_of_agreeing(term.weights, splits)
        if (term.weights == 0).any():
            number = self._dialect.number
            total = f"coalesce(nullif({total}, {number(0.0)}), {number(1.0)})"
        return f"CASE WHEN {MISSING} IN ({names}) THEN {total} END"

    def _value(self, t: int, term: Term, splits: list[int], is_averaged: bool, y: int) -> str:
        """Return the value of a term for a class, minus its value for the first class."""
        values = term.values[:, y] - term.values[:, 0]
        branches = "".join(f" WHEN {c} THEN {self._dialect.number(own)}" for c, own in enumerate(values.tolist()))
        of_complete = f"CASE i{t}{branches} END"
        if not is_averaged:
            return of_complete
        mean = f"({self._sum_of_agreeing(term.weights * values, splits)}) / w{t}"
        return f"CASE WHEN w{t} IS NULL THEN {of_complete} ELSE {mean} END"

    def _sum_of_agreeing(self, numbers: FloatArray, splits: list[int]) -> str:
        """Return the sum of the numbers of all cells that agree with a row."""
        if not splits or not numbers.any():
            return self._dialect.number(float(numbers[0]))
        *others, last = splits
        low, high = np.split(numbers, 2)  # the last split is the highest bit
        parts = []
        for name, half in ((f"a{last}", low), (f"d{last}", high)):
            if half.any():
                own = self._sum_of_agreeing(half, others)
                parts.append(f"{name} * ({own})" if others else self._dialect.product(name, own))
        return " + ".join(parts)


def _splits_of(term: Term) -> list[tuple[int, bytes]]:
    """Return the feature and the sides of each split, which can be compared."""
    return [
        (i, np.asarray(side, np.uint8).tobytes()) for i, side in zip(term.features.tolist(), term.sides, strict=True)
    ]


def _is_among(name: str, is_in: AnyArray, first: int) -> str:
    """Return the condition that a number is in a set; ``is_in`` is the mask of the set, starting at ``first``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_in, [False]]).astype(np.int8))).reshape(-1, 2)
    if len(edges) > _MOST_RUNS:
        return f"{name} IN ({', '.join(str(first + k) for k in np.flatnonzero(is_in).tolist())})"
    conditions = []
    for start, stop in edges.tolist():
        low, high = first + start, first + stop - 1
        if low == high:
            conditions.append(f"{name} = {low}")
        elif start == 0:
            conditions.append(f"{name} <= {high}")
        elif stop == len(is_in):
            conditions.append(f"{name} >= {low}")
        else:
            conditions.append(f"{name} BETWEEN {low} AND {high}")
    return " OR ".join(conditions) or "1 = 0"
