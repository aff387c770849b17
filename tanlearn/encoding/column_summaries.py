"""Mergeable summary of one column (the weight of each distinct value in each class), and its format in files."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.column_kinds import check_n_categories
from tanlearn.encoding.value_counts import Block, ValueCounts, add_block, collect, compress, merge_counts, sum_by_key
from tanlearn.sources.table import Column, shorten

__all__ = ["ColumnSummary", "Limits", "from_state", "summarize", "to_state"]

_KINDS = ("nothing", "numbers", "strings", "bytes", "declared")

# A column is exact up to this multiple of n_points distinct values. By default, that is one value more than the largest
# number of categories, so that a compressed column cannot be categorical.
_EXACT_MULTIPLE = 8


class Limits(NamedTuple):
    """Size limits of the summary of a numeric column."""

    n_points: int  # points per block; up to eight times as many distinct values are kept exactly
    exact: bool  # whether all distinct values are kept

    @property
    def largest(self) -> int:
        """Largest number of distinct values that are kept exactly unless ``exact`` is set."""
        return _EXACT_MULTIPLE * self.n_points

    def hold(self, counts: ValueCounts) -> bool:
        """Return whether counts are within the limits, and thus need no compression."""
        return self.exact or len(counts.values) <= self.largest or counts.n_values <= self.largest


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Immutable summary of a column, with the weight of each distinct value in each class."""

    label: str  # name of the column in messages
    kind: str  # "numbers", "strings", "bytes", "declared", or "nothing" if all values so far are missing
    counts: ValueCounts  # exact counts of numbers, or of indices into names
    names: AnyArray | None = None  # (n_names,) distinct strings, sorted, or declared categories in their order
    is_ordered: bool = False  # whether declared categories are ordered
    # (n_names,) number of rows with each string; None for other kinds, and in files of earlier versions
    n_rows: IntArray | None = None
    blocks: tuple[Block, ...] = ()  # compressed counts, in addition to counts
    # Smallest and largest of the compressed values, because the points do not contain them
    bounds: tuple[float, float] | None = None

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Smallest and largest value of a numeric column, or (nan, nan) if it has no values.

        In summaries from files of earlier versions, it is None if values are compressed.
        """
        if self.blocks and self.bounds is None:
            return None
        known = [] if self.bounds is None else [self.bounds]
        if self.kind == "numbers" and len(self.counts.values):
            known.append((float(self.counts.values[0]), float(self.counts.values[-1])))
        if not known:
            return float("nan"), float("nan")
        return min(low for low, _ in known) + 0.0, max(high for _, high in known) + 0.0  # zeros have no sign

    @property
    def total(self) -> float:
        """Total weight of the rows that have a value."""
        return sum(counts.weights.sum().item() for counts in self._all_counts())

    @property
    def rank_error(self) -> float:
        """Bound for the error of the rank of any number, as a fraction of the total weight."""
        if not self.blocks:
            return 0.0
        return max(sum(block.under for block in self.blocks), sum(block.over for block in self.blocks)) / self.total

    def merge(self, other: ColumnSummary, limits: Limits, n_classes: int) -> ColumnSummary:
        """Return the summary of the rows of both summaries.

        Raises ``ValueError`` if there are too many distinct strings, or if no 64-bit type can represent all integers.
        Raises ``TypeError`` if strings and numbers are mixed, or if categories are declared in different orders.
        """
        if "nothing" in (self.kind, other.kind):
            known = other if self.kind == "nothing" else self
            if known.kind == "nothing":
                dtypes = [part.counts.values.dtype for part in (self, other)]
                # The object dtype of a column without values must not replace a numeric dtype.
                dtype = np.result_type(*([one for one in dtypes if one.kind != "O"] or dtypes))
                return replace(known, counts=_blank(dtype))
            return known.within(limits, n_classes)
        if self.kind != other.kind:
            raise _mixed(self, other)
        if self.kind == "numbers":
            return self._merge_numbers(other, limits, n_classes)
        if self.kind == "declared":
            return self._merge_declared(other, n_classes)
        return self._merge_strings(other, n_classes)

    def within(self, limits: Limits, n_classes: int) -> ColumnSummary:
        """Return the summary after compression, as far as the limits require."""
        if self.kind in ("strings", "bytes") and self.names is not None:
            check_n_categories(len(self.names), self.label)
        if self.kind != "numbers":
            return self
        summary, blank = self, _blank(np.dtype(np.float64))
        if not limits.hold(self.counts):
            blocks = _add_compressed(self.blocks, self.counts, limits, n_classes)
            summary = replace(self, counts=blank, blocks=blocks, bounds=self.value_range)
        return summary._cast(np.dtype(np.float64), n_classes) if summary.blocks else summary

    def renumber(self, classes: IntArray, n_classes: int) -> ColumnSummary:
        """Return the summary with class ``c`` renumbered to ``classes[c]``.

        ``classes`` (n_old_classes,) must not decrease.
        """

        def with_new(counts: ValueCounts) -> ValueCounts:
            return collect(counts.values, classes[counts.classes], counts.weights, n_classes, are_sorted_runs=True)

        blocks = tuple(block._replace(counts=with_new(block.counts)) for block in self.blocks)
        return replace(self, counts=with_new(self.counts), blocks=blocks)

    def as_column(self) -> Column:
        """Return a column that contains each distinct value (or point) once, or one missing value if there are none."""
        if self.kind == "nothing":
            blank = np.full(1, np.nan) if self.counts.values.dtype.kind == "f" else np.zeros(1)
            return Column(blank.astype(self.counts.values.dtype), np.ones(1, np.bool_), None, self.label)
        if self.names is None:
            values = np.unique(np.concatenate([counts.values for counts in self._all_counts()]))
            return Column(values, None, None, self.label)
        is_empty = not len(self.counts.values)  # categories are declared, but missing in every row
        values = np.full(1, -1) if is_empty else self.counts.values[self.counts.is_first]
        missing = np.ones(1, np.bool_) if is_empty else None
        return Column(values, missing, self.names, self.label, self.kind == "declared", self.is_ordered)

    def pooled(self, n_classes: int) -> ValueCounts:
        """Return exact and compressed counts added together."""
        return merge_counts(self._all_counts(), n_classes)

    def as_rows(self, n_classes: int) -> tuple[Column, IntArray, FloatArray]:
        """Return weighted rows ``(column, y, weights)``, each of shape (n_rows,), that represent a numeric column.

        For each class, three rows with a missing value are added, so that every class occurs and, as in real data, most
        rows share their class with other rows. Raises ``TypeError`` for a column that is not numeric.
        """
        if self.kind not in ("nothing", "numbers"):
            self.as_column().numbers()  # raises an error unless all values are missing
            return replace(self, kind="nothing", names=None).as_rows(n_classes)
        counts = self.pooled(n_classes)
        values = counts.values if self.kind == "numbers" else np.empty(0)
        n_pairs, n_rows = len(values), len(values) + 3 * n_classes
        filled = np.zeros(n_rows, values.dtype)
        filled[:n_pairs] = values
        if values.dtype.kind == "f":
            filled[n_pairs:] = np.nan
        missing = np.arange(n_rows) >= n_pairs
        y = np.append(counts.classes, np.repeat(np.arange(n_classes), 3)).astype(np.intp)
        return Column(filled, missing, None, self.label), y, np.append(counts.weights, np.ones(3 * n_classes))

    def _all_counts(self) -> list[ValueCounts]:
        """Return the exact counts, followed by the counts of all blocks."""
        return [self.counts, *(block.counts for block in self.blocks)]

    def _merge_numbers(self, other: ColumnSummary, limits: Limits, n_classes: int) -> ColumnSummary:
        """Merge numbers in a common dtype."""
        dtype = _common_type(self, other)
        merged, more = self._cast(dtype, n_classes), other._cast(dtype, n_classes)
        blocks = merged.blocks
        for block in more.blocks:
            blocks = add_block(blocks, block, limits.n_points, n_classes)
        # Counts beyond the limits become a separate block, so that small parts are not sorted together with large
        # parts.
        parts = [merged.counts, more.counts]
        large = [part for part in parts if not limits.hold(part)]
        for part in large:
            blocks = _add_compressed(blocks, part, limits, n_classes)
        small = [part for part in parts if limits.hold(part)]
        counts = merge_counts(small or [_blank(dtype)], n_classes)
        bounds = None
        ranges = self.value_range, other.value_range
        if blocks and ranges[0] is not None and ranges[1] is not None:
            bounds = min(ranges[0][0], ranges[1][0]), max(ranges[0][1], ranges[1][1])
        return replace(self, counts=counts, blocks=blocks, bounds=bounds).within(limits, n_classes)

    def _cast(self, dtype: np.dtype[Any], n_classes: int) -> ColumnSummary:
        """Return the summary with numbers of another dtype. Values that become equal are merged."""

        def cast(counts: ValueCounts) -> ValueCounts:
            if counts.values.dtype == dtype:
                return counts
            return collect(counts.values.astype(dtype), counts.classes, counts.weights, n_classes, are_sorted_runs=True)

        blocks = tuple(block._replace(counts=cast(block.counts)) for block in self.blocks)
        return replace(self, counts=cast(self.counts), blocks=blocks)

    def _merge_strings(self, other: ColumnSummary, n_classes: int) -> ColumnSummary:
        """Merge strings or bytes. Only new ones are inserted into the sorted names."""
        names = np.asarray(self.names)
        own, theirs = names.tolist(), np.asarray(other.names).tolist()
        number = dict(zip(own, count(), strict=False))
        codes = np.fromiter((number.get(name, -1) for name in theirs), np.intp, len(theirs))
        mine, new, moves = self.counts, np.flatnonzero(codes < 0), np.arange(len(own))
        if len(new):
            positions = np.array([bisect_left(own, theirs[k]) for k in new.tolist()])
            names = np.insert(names, positions, np.asarray(other.names)[new])
            check_n_categories(len(names), self.label)
            before = np.cumsum(np.bincount(positions, minlength=len(own)))  # number of new names before each old name
            codes += np.append(before, 0)[codes]
            codes[new] = positions + np.arange(len(new))
            moves += before[: len(own)]
            mine = mine._replace(values=moves[mine.values])
        # Both lists of names are sorted, so the new indices also increase.
        moved = other.counts._replace(values=codes[other.counts.values])
        n_rows = None
        if self.n_rows is not None and other.n_rows is not None:
            n_rows = np.zeros(len(names), np.int64)
            n_rows[moves] += self.n_rows
            n_rows[codes] += other.n_rows
        return replace(self, names=names, counts=merge_counts([mine, moved], n_classes), n_rows=n_rows)

    def _merge_declared(self, other: ColumnSummary, n_classes: int) -> ColumnSummary:
        """Merge declared categories. New unordered categories are appended. Ordered categories must be equal."""
        own, theirs = ([] if column.names is None else column.names.tolist() for column in (self, other))
        is_same = self.is_ordered == other.is_ordered
        if not is_same or (self.is_ordered and own != theirs):
            ordered = ["ordered" if column.is_ordered else "unordered" for column in (self, other)]
            raise TypeError(
                f"{self.label} declares the {ordered[0]} categories {shorten(own)} in one part and the {ordered[1]} "
                f"{shorten(theirs)} in another. Declare the same categories in the same order in every part, or cast "
                "the "
                f"column to str."
            )
        names, moved = self.names, other.counts
        if own[: len(theirs)] != theirs:
            number = dict(zip(own, count(), strict=False))
            known = np.array([name in number for name in theirs])
            number |= dict(zip((name for name in theirs if name not in number), count(len(own)), strict=False))
            names = np.concatenate([np.asarray(self.names), np.asarray(other.names)[~known]])
            check_n_categories(len(names), self.label)
            values = _codes_of(theirs, number)[moved.values]
            moved = collect(values, moved.classes, moved.weights, n_classes)
        return replace(self, names=names, counts=merge_counts([self.counts, moved], n_classes))


def summarize(column: Column, classes: IntArray, weights: AnyArray, n_classes: int) -> ColumnSummary:
    """Count the values of a column by class.

    ``classes`` are class codes and ``weights`` are positive, each of shape (n_samples,).
    """
    values, label = column.values, column.label
    if column.missing is not None:
        present = column.present
        values, classes, weights = values[present], classes[present], weights[present]
    if column.categories is not None and column.is_declared:
        check_n_categories(len(column.categories), label)
        counts = _count_codes(values, classes, weights, len(column.categories), n_classes)
        return ColumnSummary(label, "declared", counts, column.categories, column.is_ordered)
    if not len(values):
        dtype = np.dtype(object) if column.categories is not None else values.dtype
        return ColumnSummary(label, "nothing", _blank(dtype))
    if column.categories is None and values.dtype.kind in "biuf":
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if values.dtype.kind == "f":
            values = values + values.dtype.type(0)  # -0.0 is 0.0
        return ColumnSummary(label, "numbers", collect(values, classes, weights, n_classes))
    categories = column.categories
    if categories is None:
        number = dict(zip(dict.fromkeys(values.tolist()), count()))
        values = np.fromiter(map(number.__getitem__, values.tolist()), np.intp, len(values))
        categories = np.array(list(number), dtype=object)
    counts = _count_codes(values, classes, weights, len(categories), n_classes)
    # Keep only the strings that occur, in sorted order.
    occurring = counts.values[counts.is_first]
    known = categories[occurring].tolist()
    names = np.array(sorted(known), dtype=object)
    number = dict(zip(names.tolist(), count()))
    target = np.zeros(len(categories), np.intp)
    target[occurring] = _codes_of(known, number)
    n_rows = np.zeros(len(names), np.int64)
    n_rows[target[occurring]] = np.bincount(values, minlength=len(categories))[occurring]
    kind = "bytes" if isinstance(known[0], bytes) else "strings"
    counts = collect(target[counts.values], counts.classes, counts.weights, n_classes)
    return ColumnSummary(label, kind, counts, names, n_rows=n_rows)


def _count_codes(values: AnyArray, classes: IntArray, weights: AnyArray, n_values: int, n_classes: int) -> ValueCounts:
    """Count the codes of categories without sorting the rows."""
    keys, sums = sum_by_key(values * np.intp(n_classes) + classes, weights, n_values * n_classes)
    value, own = np.divmod(keys, n_classes)
    return ValueCounts(value.astype(np.intp), own.astype(np.int32), sums)


def _add_compressed(
    blocks: tuple[Block, ...], counts: ValueCounts, limits: Limits, n_classes: int
) -> tuple[Block, ...]:
    """Compress counts to points and add them to the blocks."""
    return add_block(blocks, Block(0, *compress(counts, limits.n_points, n_classes)), limits.n_points, n_classes)


def _codes_of(names: list[Any], number: dict[Any, int]) -> IntArray:
    """Look up the number of each name in a dictionary."""
    return np.fromiter(map(number.__getitem__, names), np.intp, len(names))


def _blank(dtype: np.dtype[Any]) -> ValueCounts:
    """Return empty counts of a dtype."""
    return ValueCounts(np.empty(0, dtype), np.empty(0, np.int32), np.empty(0, np.int64))


def _mixed(one: ColumnSummary, other: ColumnSummary) -> TypeError:
    """Return the error for parts with values of different kinds."""
    found = f"{_example(one)} in one part and {_example(other)} in another"
    if one.label == "y":
        return TypeError(
            f"y holds {found}, which cannot be compared: classes must be all strings or all numbers. Cast the "
            f"classes to str."
        )
    return TypeError(
        f"{one.label} holds {found}, which cannot be compared: the argument must be all strings or all numbers in "
        f"every column. Cast the column to str if it is categorical, or to float if it is continuous."
    )


def _example(one: ColumnSummary) -> str:
    """Describe the kind of the values in a column, with an example."""
    if one.kind == "declared":
        return "declared categories"
    counts = next(counts for counts in one._all_counts() if len(counts.values))
    value = (counts.values if one.names is None else one.names[counts.values])[:1].tolist()[0]
    return f"{type(value).__name__} ({shorten(value)})"


def _common_type(one: ColumnSummary, other: ColumnSummary) -> np.dtype[Any]:
    """Return the common dtype of the numbers of two parts, as for a column of Python objects."""
    values = one.counts.values, other.counts.values
    dtype = np.result_type(*values)
    if dtype.kind != "f" or any(part.dtype.kind == "f" for part in values):
        return dtype
    # NumPy would convert a mix of signed and unsigned 64-bit integers to floats.
    low = min(int(part[0]) for part in values)
    high = max(int(part[-1]) for part in values)
    if high < 2**63:
        return np.dtype(np.int64)
    if low >= 0:
        return np.dtype(np.uint64)
    raise ValueError(
        f"{one.label} holds {low} in one part and {high} in another. No 64-bit integer type can hold both, and floats "
        f"may round them. Cast the column to float if it is a quantity, or to str if it is a name."
    )


def to_state(column: ColumnSummary, name: str, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    """Return the JSON part of a summary, and add its arrays to ``arrays`` in place, with keys prefixed by ``name``.

    Raises ``TypeError`` if a declared category is neither a string nor bytes nor a number.
    """
    for part, counts in enumerate([column.counts, *(block.counts for block in column.blocks)]):
        if counts.values.dtype.kind in "OUS":  # empty
            counts = counts._replace(values=np.empty(0))
        arrays |= {f"{name}_{part}_{field}": values for field, values in counts._asdict().items()}
    if column.n_rows is not None:
        arrays[f"{name}_rows"] = column.n_rows
    is_text = column.kind == "nothing" and column.counts.values.dtype.kind in "OUS"
    names = None
    if column.names is not None:
        names = [column.names.dtype.str, [_to_json(value, column.label) for value in column.names.tolist()]]
    return {
        "place": column.label,
        "kind": column.kind,
        "is_text": is_text,
        "names": names,
        "is_ordered": column.is_ordered,
        "blocks": [[block.level, block.under, block.over] for block in column.blocks],
        **({} if column.bounds is None else {"bounds": list(column.bounds)}),
    }


def from_state(state: dict[str, Any], name: str, arrays: dict[str, AnyArray], n_classes: int) -> ColumnSummary:
    """Restore a summary from the output of :func:`to_state`. Raise ValueError if it is inconsistent."""
    label, kind, is_ordered = state["place"], state["kind"], state["is_ordered"]
    names = None if state["names"] is None else _read_names(*state["names"])
    if not isinstance(label, str) or kind not in _KINDS or not isinstance(is_ordered, bool):
        raise ValueError("a column has no name or no kind")
    if (names is None) != (kind in ("nothing", "numbers")) or (state["blocks"] and kind != "numbers"):
        raise ValueError(f"{label} holds {kind}, but has fields of another kind")
    parts = [
        ValueCounts(*(arrays[f"{name}_{part}_{field}"] for field in ValueCounts._fields))
        for part in range(1 + len(state["blocks"]))
    ]
    for counts in parts:
        _check_counts(counts, label, n_classes)
    own, *others = parts
    if names is not None:
        values, is_known = own.values, kind == "declared" or sorted(set(names.tolist())) == names.tolist()
        if not is_known or values.dtype.kind != "i" or (len(values) and not 0 <= values[0] <= values[-1] < len(names)):
            raise ValueError(f"{label} has categories that do not match its counts")
    if (kind == "nothing" and len(own.values)) or (kind == "numbers" and not sum(len(c.values) for c in parts)):
        raise ValueError(f"{label} holds {kind}, but counts {len(own.values)} pairs")
    if state["is_text"]:
        own = own._replace(values=np.empty(0, object))
    blocks: list[Block] = []
    for (level, under, over), counts in zip(state["blocks"], others, strict=True):
        is_later = type(level) is int and level > (blocks[-1].level if blocks else -1)
        if not is_later or not (0 <= under < np.inf and 0 <= over < np.inf) or not len(counts.values):
            raise ValueError(f"{label} has a block without a level or a bound")
        blocks.append(Block(level, counts, under, over))
    n_rows = arrays.get(f"{name}_rows")  # absent in files of earlier versions
    if n_rows is not None and (names is None or n_rows.dtype != np.int64 or n_rows.shape != names.shape):
        raise ValueError(f"{label} has row counts of an invalid type or shape")
    if n_rows is not None and len(n_rows) and not n_rows.min() > 0:
        raise ValueError(f"{label} has strings without rows")
    bounds = _read_bounds(state.get("bounds"), label)
    return ColumnSummary(label, kind, own, names, is_ordered, n_rows, tuple(blocks), bounds)


def _read_bounds(bounds: Any, label: str) -> tuple[float, float] | None:
    """Validate the smallest and the largest value of a column, which are absent in files of earlier versions."""
    if bounds is None:
        return None
    if (
        type(bounds) is not list
        or list(map(type, bounds)) != [float, float]
        or not -np.inf < bounds[0] <= bounds[1] < np.inf
    ):
        raise ValueError(f"{label} has bounds that are not two increasing numbers")
    return bounds[0], bounds[1]


def _to_json(value: Any, label: str) -> Any:
    """Return a category as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, str | int | float):
        return value
    raise TypeError(
        f"{label} declares the category {shorten(value)} of type {type(value).__name__}, but only strings, bytes and "
        f"numbers can be stored. Cast the column to str."
    )


def _read_names(dtype: str, values: list[Any]) -> AnyArray:
    """Validate stored names, and return them as an array of a dtype."""
    known = [value["bytes"].encode("latin-1") if isinstance(value, dict) else value for value in values]
    if not all(isinstance(value, str | bytes | int | float) for value in known) or np.dtype(dtype).kind not in "Obiuf":
        raise ValueError("a category is not a string, a number or a boolean")
    return np.array(known, dtype=dtype)


def _check_counts(counts: ValueCounts, label: str, n_classes: int) -> None:
    """Raise ValueError unless the arrays contain increasing pairs of value and class with positive weights."""
    values, classes, weights = counts
    if not values.ndim == 1 or not values.shape == classes.shape == weights.shape:
        raise ValueError(f"the counts of {label} must be three one-dimensional arrays of the same length")
    if values.dtype.kind not in "biuf" or classes.dtype != np.int32 or weights.dtype not in (np.int64, np.float64):
        raise ValueError(f"{label} has counts of invalid types")
    same, less = values[1:] == values[:-1], values[1:] > values[:-1]
    if not (less | (same & (classes[1:] > classes[:-1]))).all() or not np.isfinite(values).all():
        raise ValueError(f"{label} has values that do not increase")
    if len(classes) and not 0 <= classes.min() <= classes.max() < n_classes:
        raise ValueError(f"{label} has a class that does not exist")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"{label} has weights that are not positive and finite")
