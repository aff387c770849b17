"""Boosting of terms, which are small tables. Each new term is fitted to the residuals of all previous terms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.kernels import boosting as kernels
from tanlearn.models.boosted_terms import BoostedTerms, Term
from tanlearn.structures.monotone_columns import numbers_of_ranked
from tanlearn.terms.gains import strongest_features
from tanlearn.terms.monotone import MonotoneFeatures

__all__ = ["Booster", "BoostingSettings"]

#: Fraction of the rows, and of the features, that a term is fitted to. LEAST_FEATURES and MOST_FEATURES limit the
#: number of features.
ROWS_PER_TERM, FEATURES_PER_TERM, LEAST_FEATURES, MOST_FEATURES = 0.7, 0.5, 3, 128
#: Maximum numbers of rows that the values and the splits of a term are fitted to, and of classes of the splits.
MOST_ROWS_OF_VALUES, MOST_ROWS_OF_SPLITS, MOST_CLASSES_OF_SPLITS = 2**17, 2**15, 8
#: Least gain of a split, so that rounding errors do not add splits.
LEAST_GAIN = 1e-9
#: Lower limit of the variance of a class in a row.
LEAST_VARIANCE = 1e-12
#: Largest Newton step of a score, or of the log odds of two classes. In a cell where half of 1,000 rows are of a class
#: with a probability of 0.001, the step is 250, and the odds would swing between extremes.
MOST_CHANGE = 4.0


class BoostingSettings(NamedTuple):
    """Settings of the terms."""

    n_splits: int  # maximum number per term
    learning_rate: float  # factor of the values of each term
    ridge: float  # penalty of squared values, which is added to the variance of each cell
    directions: IntArray | None = None  # (n_features,), 1 and -1: rising and falling log odds of two classes


class Booster:
    """Algorithm that fits terms to some rows, one after another.

    A term divides the rows by up to ``n_splits`` splits. Each split divides the values of one feature into two sides.
    The split with the largest gain is selected: the largest increase of ``sum g^2 / (h + ridge)`` over cells and
    classes. A cell is a combination of sides, g is the sum of the residuals of its rows, and h is the sum of their
    variances. The value of a cell is ``g / (h + ridge)`` (a Newton step for the conditional likelihood, at most
    :data:`MOST_CHANGE`) times the learning rate. Each term uses random rows and features, which makes terms less
    dependent. If features are monotone, the values of cells are adjusted by isotonic regression, so that they have the
    required order.
    """

    def __init__(self, data: EncodedData, settings: BoostingSettings, rng: np.random.Generator) -> None:
        self._settings, self._rng = settings, rng
        self._codes, self._y, self._n_states = data.codes, data.y, data.n_states
        self._weights: FloatArray = np.asarray(data.in_whole_rows().weights, np.float64)
        self._log_frequency = log_frequencies(data.class_totals())
        self._scores = np.tile(self._log_frequency, (data.n_samples, 1))
        is_ordered = np.zeros(data.n_features, np.bool_) if data.is_ordered is None else data.is_ordered
        has_missing, by_name = data.has_missing_category, data.by_name
        #: Ordered features with a category for missing values, which is randomly put first or last.
        is_with_missing = is_ordered & (False if has_missing is None else has_missing)
        self._with_missing = by_name[is_with_missing[by_name]]
        self._is_by_residual = ~is_ordered & (data.n_states > 2)
        #: Features that can be split, sorted by name, so that random choices and ties do not depend on the order of
        #: columns.
        is_used = np.isin(by_name, strongest_features(data, settings.directions)) & (data.n_states[by_name] > 1)
        self._candidates = by_name[is_used]
        #: Order of the values of each feature. A feature whose order changes has its own row; the others share the
        #: first row.
        changing = np.append(np.flatnonzero(self._is_by_residual), self._with_missing)
        self._order_of = np.zeros(data.n_features, np.intp)
        self._order_of[changing] = 1 + np.arange(len(changing))
        self._orders = np.tile(np.arange(int(data.n_states.max(initial=1))), (1 + len(changing), 1))
        self._terms: list[Term] = []
        self._monotone: MonotoneFeatures | None = None
        if settings.directions is not None and settings.directions.any():
            self._monotone = MonotoneFeatures(settings.directions, numbers_of_ranked(data))

    @property
    def n_terms(self) -> int:
        """Number of terms since the last :meth:`forget`."""
        return len(self._terms)

    def model(self, n_terms: int | None = None, first: int = 0) -> BoostedTerms:
        """Return the model of the terms ``first`` to ``n_terms``, by default all since the last :meth:`forget`."""
        return BoostedTerms.of_terms(self._terms[first:n_terms], self._n_states, self._log_frequency)

    def forget(self) -> None:
        """Delete the terms so far; the scores of the rows still contain their values."""
        self._terms = []

    def grow(self, n_terms: int) -> None:
        """Add ``n_terms`` terms."""
        for _ in range(n_terms):
            self._terms.append(self._next_term())
            self.model(first=self.n_terms - 1).add_terms(self._codes, self._scores)

    def _next_term(self) -> Term:
        """Fit a term to the residuals of random rows."""
        settings, n_classes = self._settings, len(self._log_frequency)
        selected, others = self._draw_rows()
        rows = self._residuals(selected)
        n_outputs = rows.shape[1] // 2
        of_splits, rows_of_splits = (_at_most(one, MOST_ROWS_OF_SPLITS) for one in (selected, rows))
        classes = self._draw_classes(rows_of_splits)
        self._order_missing_categories()
        features = self._draw_features()
        self._sort_values(features, _at_most(others, MOST_ROWS_OF_SPLITS), classes)
        splits, cells = self._find_splits(features, of_splits, _columns(rows_of_splits, classes))
        if len(cells) < len(selected):
            cells = np.zeros(len(selected), np.intp)
            for level, (i, side) in enumerate(splits):
                kernels.split_cells(self._codes[i][selected], side, level, cells)
        sums = np.zeros((1 << len(splits), 2 * n_outputs))
        kernels.add_cell_rows(cells, rows, sums)
        steps = sums[:, :n_outputs] / (sums[:, n_outputs:] + settings.ridge)
        # With variances as weights, the mean over several cells is about the Newton step of all their rows. With
        # numbers of rows as weights, a row without any value would get the mean log odds of a rare class in addition to
        # its prior.
        weights = sums[:, n_outputs:].sum(axis=1)
        features, sides = np.array([i for i, _ in splits], np.intp), [side for _, side in splits]
        if self._monotone is not None:
            steps[:, 0] = self._monotone.isotonic_steps(features, sides, steps[:, 0], weights + settings.ridge)
            weights = self._monotone.weights(features, sides, weights)
        values = settings.learning_rate * np.clip(steps, -MOST_CHANGE, MOST_CHANGE)
        if n_classes == 2:  # half of the log odds for each of two classes
            values = np.hstack([-values, values]) / 2
        return Term(features, sides, weights, values)

    def _draw_rows(self) -> tuple[IntArray, IntArray]:
        """Return the random rows of a term and the other rows, in order; both are all rows if one would be empty."""
        n_samples = len(self._y)
        is_drawn = self._rng.random(n_samples) < min(ROWS_PER_TERM, MOST_ROWS_OF_VALUES / n_samples)
        selected, others = np.flatnonzero(is_drawn), np.flatnonzero(~is_drawn)
        every = np.arange(n_samples)
        return selected if selected.size else every, others if others.size else every

    def _residuals(self, selected: IntArray) -> FloatArray:
        """Return weighted residuals and variances (n_selected, 2 K) for the given rows. K is 1 for two classes."""
        n_classes = len(self._log_frequency)
        rows: FloatArray = np.empty((len(selected), 2 * (1 if n_classes == 2 else n_classes)))
        kernels.write_residuals(self._scores, self._y, self._weights, selected, LEAST_VARIANCE, rows)
        return rows

    def _draw_features(self) -> IntArray:
        """Draw the features of a term."""
        n_features = len(self._candidates)
        n_drawn = max(min(n_features, LEAST_FEATURES), int(np.ceil(FEATURES_PER_TERM * n_features)))
        n_drawn = min(n_drawn, MOST_FEATURES)
        if not n_features:
            return self._candidates
        chosen: IntArray = self._candidates[np.sort(self._rng.choice(n_features, n_drawn, replace=False))]
        return chosen

    def _draw_classes(self, rows: FloatArray) -> IntArray | None:
        """Return the columns of residuals that are used to select splits: a random subset, or None for all.

        Classes with large residuals are drawn more often.
        """
        n_outputs = rows.shape[1] // 2
        if n_outputs <= MOST_CLASSES_OF_SPLITS:
            return None
        size = np.empty(n_outputs)
        kernels.sum_squares(rows, n_outputs, LEAST_VARIANCE, size)
        drawn: IntArray = self._rng.choice(n_outputs, MOST_CLASSES_OF_SPLITS, replace=False, p=size / size.sum())
        return np.sort(drawn)

    def _order_missing_categories(self) -> None:
        """Put the category for missing values of each ordered feature first or last, at random."""
        for i in self._with_missing.tolist():
            n_values = int(self._n_states[i])
            self._orders[self._order_of[i], :n_values] = np.roll(np.arange(n_values), int(self._rng.integers(2)))

    def _sort_values(self, features: IntArray, others: IntArray, classes: IntArray | None) -> None:
        """Sort the values of unordered features by residual per variance in the given rows.

        The residuals of the class with the largest gain are used. ``others`` are the rows to which the term is not
        fitted (all rows if there are none). If the rows of the term were used, a value with few rows would be sorted by
        the noise of these rows: with an added column of random ids, each in two rows, the log loss on german is .571
        instead of .474. For two classes and without a ridge, the best of all divisions of the values divides the sorted
        values in two (Fisher 1958).
        """
        without_order = features[self._is_by_residual[features]]
        if not without_order.size:
            return
        rows = _columns(self._residuals(others), classes)
        n_values = self._n_states[without_order]
        ratios, scratch = np.empty(int(n_values.sum())), np.empty(int(n_values.max()) * rows.shape[1])
        kernels.value_ratios(self._codes, without_order, n_values, others, rows, self._settings.ridge, scratch, ratios)
        last = np.cumsum(n_values)
        for row, first, end in zip(self._order_of[without_order], last - n_values, last, strict=True):
            self._orders[row, : end - first] = ratios[first:end].argsort(kind="stable")

    def _find_splits(
        self, features: IntArray, selected: IntArray, rows: FloatArray
    ) -> tuple[list[tuple[int, AnyArray]], IntArray]:
        """Return the features and sides of the best splits, and the cells of the selected rows."""
        n_splits = self._settings.n_splits if len(features) else 0
        cells = np.zeros(len(selected), np.intp)
        splits: list[tuple[int, AnyArray]] = []
        n_values, orders = self._n_states[features], self._orders[self._order_of[features]]
        own_codes: AnyArray = np.empty((len(features), len(selected)), self._codes.dtype)
        kernels.take_codes(self._codes, features, selected, own_codes)
        most_cells = 1 << max(n_splits - 1, 0)
        scratch = np.empty(most_cells * int(n_values.max(initial=1)) * rows.shape[1])
        left, total = np.empty((2, most_cells, rows.shape[1]))
        gains, lengths = np.empty(len(features)), np.empty(len(features), np.intp)
        for level in range(n_splits):
            where = own_codes, n_values, orders, cells, 1 << level, rows
            kernels.find_splits(*where, self._settings.ridge, scratch, left, total, gains, lengths)
            self._restrict_gains(features, own_codes, cells, 1 << level, rows, gains, lengths)
            best = int(gains.argmax())
            if gains[best] <= LEAST_GAIN:
                break
            side = np.ones(int(n_values[best]), np.uint8)
            side[orders[best, : lengths[best]]] = 0
            splits.append((int(features[best]), side))
            kernels.split_cells(own_codes[best], side, level, cells)
        return splits, cells

    def _restrict_gains(
        self,
        features: IntArray,
        own_codes: AnyArray,
        cells: IntArray,
        n_cells: int,
        rows: FloatArray,
        gains: FloatArray,
        lengths: IntArray,
    ) -> None:
        """Replace the gains and lengths of monotone features by those under the restriction to the right order."""
        if self._monotone is None:
            return
        for j in np.flatnonzero(self._monotone.directions[features]).tolist():
            i = int(features[j])
            own = np.zeros((n_cells, int(self._n_states[i]), rows.shape[1]))
            kernels.add_value_rows(own_codes[j], cells, rows, own)
            order = self._orders[self._order_of[i], : self._n_states[i]]
            of_lengths = self._monotone.split_gains(i, order, own, self._settings.ridge)
            best = int(of_lengths.argmax())
            gains[j], lengths[j] = of_lengths[best], best + 1


def _columns(rows: FloatArray, classes: IntArray | None) -> FloatArray:
    """Return contiguous residuals and variances of the given classes, or of all classes."""
    if classes is None:
        return np.ascontiguousarray(rows)
    return np.take(rows, np.append(classes, rows.shape[1] // 2 + classes), axis=1)


def _at_most(rows: AnyArray, most: int) -> AnyArray:
    """Return every k-th row, with k such that at most the given number of rows remains."""
    return rows[:: -(-len(rows) // most)]
