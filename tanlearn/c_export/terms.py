"""C99 code that sums the magnitudes of boosted terms without multiplications.

The cells of a term are consecutive rows of magnitudes. If the value of a feature is on side 1 of a split, the position
increases by the stride of the split. The stride doubles from split to split. The next term starts one stride after the
last split, so positions need not be stored. A split of ordered values is stored as two numbers: its feature, and the
first code on side 1. For a split of categories, the second number is the position of its bits, one bit per category.
Cut points that no split uses are left out. The first class has no cells, because the cells of every other class contain
its scores minus the scores of the first class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype
from tanlearn.c_export.cells import add_cells
from tanlearn.c_export.encoder import ColumnKind
from tanlearn.c_export.scores import CHECK
from tanlearn.c_export.text import CText, unsigned_type
from tanlearn.models.boosted_terms import BoostedTerms, Term
from tanlearn.models.rounded_terms import round_terms

__all__ = ["TermSums"]

_SUMS = """
/* Write the sum of magnitudes of each class. The log odds of class c against the first class are sums[0] - sums[c],
   times @step@; rounding changed them by at most @bound@. Return 0; or -1, without writing, if a code is invalid. */
static inline int16_t model_sums(const model_code *codes, model_sum *sums)
{
@check@
    for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {
        sums[c] = @initial@;
    }@terms@
    return 0;
}"""
_TERMS = """
    model_position start = 0;
    @split_type@ split = 0;
    for (@term_type@ i = 0; i < @n_terms@u; ++i) {
        model_position at = start;
        model_position stride = @row@u;
        for (uint_fast8_t left = @n_splits@; left > 0u; --left) {
            const model_code code = codes[@feature@];
            const @test_type@ test = @test@;
            if (@condition@) {
                at = (model_position)(at + stride);
            }
            stride = (model_position)(stride << 1u);
            ++split;
        }
        model_add(at, &sums[1]);
        start = (model_position)(start + stride);
    }"""
_IS_ABOVE = "code >= test"
_IS_IN_SET = "((@set@ >> (code & 7u)) & 1) != 0"


class TermSums:
    """Sums of magnitudes for boosted terms whose numbers are rounded to a few bits."""

    def __init__(self, terms: BoostedTerms, bits: int, groups: list[IntArray]) -> None:
        """Round the terms. ``groups`` contains, for each feature, a map from codes of the encoder to codes in C."""
        rounded, self._step = round_terms(terms, bits)
        self._terms = [_of_groups(term, groups) for term in rounded.terms()] if len(rounded.log_prior) > 1 else []
        self._bits, self._groups = bits, groups
        self.n_code_arrays = 1
        self.n_classes = len(rounded.log_prior)
        self.n_states = [int(group[-1]) + 1 for group in groups]
        self.title = f"{len(self._terms)} boosted terms with {bits}-bit integers"
        values = [np.rint(term.values[:, 1:] / self._step).astype(np.int64) for term in self._terms]
        prior = np.rint(rounded.log_prior / self._step).astype(np.int64)
        highest = prior.copy()
        for own in values:
            highest[1:] += own.max(axis=0)
        self._cells = [own.max(axis=0) - own for own in values]
        self._initial = highest.max() - highest  # sums of magnitudes are then never negative
        self.largest_sum = int(self._initial.max()) + sum(int(own.max()) for own in self._cells)

    @classmethod
    def of(cls, terms: BoostedTerms, bits: int, kinds: list[ColumnKind]) -> tuple[TermSums, list[ColumnKind]]:
        """Return the scores, and the encoding of the columns without the cut points that no split uses."""
        groups, used_kinds = [], []
        is_used = [np.zeros(int(size) - 1, np.bool_) for size in terms.n_states]
        for term in terms.terms():
            for i, sides in zip(term.features.tolist(), term.sides, strict=True):
                is_used[i] |= sides[1:] != sides[:-1]
        for kind, own in zip(kinds, is_used, strict=True):
            if kind.name == "cuts" and len(kind.values) == len(own):
                cut_points = [cut for cut, used in zip(kind.values, own.tolist(), strict=True) if used]
                used_kinds.append(replace(kind, values=cut_points))
                groups.append(np.append(0, own.cumsum()))
            else:
                used_kinds.append(kind)
                groups.append(np.arange(len(own) + 1))
        return cls(terms, bits, groups), used_kinds

    def codes(self, codes: Codes) -> Codes:
        """Convert codes of the encoder to codes in C. The code of a missing value is invalid."""
        dtype = codes_dtype(max(self.n_states))
        found: Codes = np.stack(
            [group.take(own, mode="clip") for group, own in zip(self._groups, codes, strict=True)]
        ).astype(dtype)
        return found

    def sums(self, codes: Codes) -> IntArray:
        """Return the sums that the C code computes for complete rows.

        Shapes: codes: (n_features, n_rows), as in C; result: (n_rows, n_classes).
        """
        sums = np.tile(self._initial, (codes.shape[1], 1))
        for term, cells in zip(self._terms, self._cells, strict=True):
            cell = np.zeros(codes.shape[1], np.intp)
            for s, (i, sides) in enumerate(zip(term.features.tolist(), term.sides, strict=True)):
                cell += sides[codes[i]].astype(np.intp) << s
            sums[:, 1:] += cells[cell]
        return sums

    def add(self, text: CText, n_states: str, *, packed: bool) -> None:
        """Append the terms and ``model_sums`` (see :meth:`tanlearn.c_export.scores.Scores.add`)."""
        terms = self._add_terms(text, packed) if self._terms else ""
        text.array("initial", unsigned_type(int(self._initial.max())), self._initial.tolist())
        bound = f"{(len(self._terms) + 1) * self._step / 2:g}"
        check, initial = text.rename(CHECK, n_states=n_states), text.read("initial", "c")
        text.add(_SUMS, check=check, step=f"{self._step:g}", bound=bound, initial=initial, terms=terms)

    def _add_terms(self, text: CText, packed: bool) -> str:
        """Append the arrays of the terms, and return C code that sums the terms."""
        n_columns = self.n_classes - 1
        text.add("\n/* Magnitudes of each term as [sides of its splits, the last one first][class from the second]. */")
        columns = n_columns, text.rename("(MODEL_N_CLASSES - 1u)")
        unit = add_cells(text, np.concatenate(self._cells).ravel(), self._bits, columns, packed=packed)
        text.add(
            "\n/* Splits of each term: the feature, and the first code on side 1, or the position of a set of codes. */"
        )
        n_splits = text.column("n_splits", [len(term.features) for term in self._terms])
        features = [i for term in self._terms for i in term.features.tolist()]
        text.array("features", unsigned_type(max(features, default=0)), features)
        tests, condition = self._add_tests(text)
        text.array("tests", unsigned_type(max(tests, default=0)), tests)
        return text.rename(
            _TERMS,
            split_type=unsigned_type(len(features)),
            term_type=unsigned_type(len(self._terms)),
            n_terms=len(self._terms),
            row=n_columns * unit,
            n_splits=n_splits,
            feature=text.read("features", "split"),
            test_type=text.types["tests"],
            test=text.read("tests", "split"),
            condition=condition,
        )

    def _add_tests(self, text: CText) -> tuple[list[int], str]:
        """Append the sets of categories. Return a number for each split, and the condition that a code is on side 1.

        A number below the limit is the first code on side 1. Any other number, minus the limit, is the position of a
        set.
        """
        splits = [sides for term in self._terms for sides in term.sides]
        thresholds = [_threshold(sides) for sides in splits]
        limit = max((first + 1 for first in thresholds if first is not None), default=0)
        starts: dict[bytes, int] = {}
        pool = b""
        tests = []
        for first, sides in zip(thresholds, splits, strict=True):
            if first is None:
                own = np.packbits(sides, bitorder="little").tobytes()
                if own not in starts:
                    starts[own] = len(pool)
                    pool += own
                first = limit + starts[own]
            tests.append(first)
        if not pool:
            return tests, _IS_ABOVE
        text.array("sets", "uint8_t", list(pool))
        position = f"test - {limit}u + ((unsigned int)code >> 3u)" if limit else "test + ((unsigned int)code >> 3u)"
        in_set = text.rename(_IS_IN_SET, set=text.read("sets", position))
        return tests, f"(test < {limit}u) ? ({_IS_ABOVE}) : ({in_set})" if limit else in_set


def _of_groups(term: Term, groups: Sequence[IntArray]) -> Term:
    """Return the term for groups of codes. If the sides of ordered values are monotone, they become ascending."""
    sides, values = [], term.values
    for s, (i, own) in enumerate(zip(term.features.tolist(), term.sides, strict=True)):
        first = np.flatnonzero(np.diff(groups[i], prepend=-1))
        grouped = own[first]
        if (np.diff(grouped.astype(np.int8)) <= 0).all() and grouped[0] == 1:
            grouped = 1 - grouped
            values = values[np.arange(len(values)) ^ (1 << s)]
        sides.append(grouped)
    return term._replace(sides=sides, values=values)


def _threshold(sides: AnyArray) -> int | None:
    """Return the first code on side 1 if all later codes are also on side 1, and otherwise None."""
    first = len(sides) - int(sides.sum())
    return first if sides[first:].all() else None
