"""Incremental fitting with ``partial_fit``, for classifiers that keep only counts of each chunk.

Counts of rows with integer weights, or without weights, are integers and do not depend on how the rows are divided into
chunks. The fitted model is therefore equal, bit for bit, to one fitted to all rows with the same encoding.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from tanlearn._typing import AnyArray
from tanlearn.data.columns import shorten
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.estimator_input import delete_fitted_attributes, encode_chunk, generator
from tanlearn.data.validation import read_labels
from tanlearn.estimators.batches import BatchFitMixin, refuse_what_needs_all_rows
from tanlearn.estimators.from_counts import FromCountsMixin
from tanlearn.estimators.table_counts import why_no_counts
from tanlearn.kernels._cuda import check_device
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.counts import CountState
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.structures import Structure, check_structure
from tanlearn.network.table_layout import TableLayout
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["PartialFitMixin", "forest_counts"]


def forest_counts(state: CountState, structure: Structure) -> tuple[TableLayout, AnyArray]:
    """Return layout and counts of the CPTs of a forest of trees, from counts of pairs.

    Shapes: result cells: (n_cells,).
    """
    if (structure.parents[:, 1] >= 0).any():
        raise ValueError(
            "features with several augmenting parents need counts of three values and more, but only counts of pairs "
            "are available. Learn a tree, as with ChowLiu() or KDependence(k=1), or pass a fixed structure."
        )
    layout = TableLayout.of_parents(structure.parents, state.n_states, state.n_classes)
    families = enumerate(structure.parents[:, 0].tolist())
    tables = [(state.feature(i) if j < 0 else state.pair(i, j)).ravel() for i, j in families]
    return layout, np.concatenate([state.class_counts, *tables])


class PartialFitMixin(FromCountsMixin, BatchFitMixin):
    """``partial_fit`` for classifiers that are determined by counts."""

    random_state: Any

    @available_if(lambda estimator: refuse_what_needs_all_rows(estimator, of_contexts=False))  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add the counts of a chunk of rows and fit to all counts so far.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values. The first chunk determines categories and cut points. It should be a representative sample of
            some thousand rows, or declare the categories (pandas ``category``, polars ``Enum``). In later chunks,
            unseen categories count as missing, with a warning, or raise an error, according to ``handle_unknown`` of
            the encoder.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,)
            All class labels of this and later chunks. Required in the first call; in later calls None, or the same.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. Rows of weight 0 are ignored.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        ValueError
            If a label is not in ``classes``, ``classes`` is missing or changes, the classifier is fitted but has no
            counts, or a column, ``y`` or the weights are invalid. The estimator is then unchanged.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier()
        >>> for chunk in ([["a"], ["b"]], [["b"], ["b"]]):
        ...     model = model.partial_fit(chunk, ["no", "yes"], classes=["no", "yes"])
        >>> model.counts_.cells.tolist()  # no, yes; a with no, a with yes; b with no, b with yes
        [2, 2, 1, 0, 1, 2]
        """
        self._validate_params()  # type: ignore[attr-defined]
        check_device(self.device)
        # All changes are made to a copy with its own counts, so that an invalid chunk changes nothing.
        twin = copy(self)
        data = _read_chunk(twin, X, y, classes, sample_weight)
        twin.counts_ = deepcopy(self.counts_) if hasattr(self, "counts_") else twin._new_counts(data)
        twin.counts_.update(data, n_jobs=self.n_jobs)
        twin._learn_counts(twin.counts_)
        twin._end(data.n_classes)  # type: ignore[attr-defined]
        vars(self).clear()
        vars(self).update(vars(twin))
        return self

    def _new_counts(self, data: EncodedData) -> Any:
        """Return empty counts: of pairs for structure learners, otherwise of the families of the structure."""
        structure = getattr(self, "structure", None)
        if hasattr(structure, "from_counts"):
            return CountState.of_features(data)
        given = Structure.naive_bayes(data.n_features) if structure is None else structure
        check_structure(given, data.n_features)
        return FamilyCounts(TableLayout.of_parents(given.parents, data.n_states, data.n_classes))

    def _learn_counts(self, counts: Any) -> None:
        """Learn the structure from the counts, unless it is fixed, and fit the parameters."""
        structure, parameters = getattr(self, "structure", None), getattr(self, "parameters", None)
        self.parameters_ = MaximumLikelihood() if parameters is None else clone(parameters)
        self.parameters_._validate_params()
        if isinstance(counts, ContextCounts) and hasattr(parameters, "from_contexts"):
            self.structure_ = Structure(counts.parents)
            self.tables_ = self.parameters_.from_contexts(counts, _no_rows)
            return
        if isinstance(counts, FamilyCounts) and not hasattr(structure, "from_counts"):
            self.structure_ = Structure(counts.layout.parents)
            given = Structure.naive_bayes(self.structure_.n_features) if structure is None else structure
            if given == self.structure_:
                self.tables_ = self.parameters_.from_counts(counts.layout, counts.cells)
                return
        elif isinstance(counts, CountState) and hasattr(structure, "from_counts"):
            self.structure_learner_ = clone(structure)
            counts.names = getattr(self, "feature_names_in_", None)
            self.structure_ = self.structure_learner_.from_counts(counts, generator(self.random_state))
            self.tables_ = self.parameters_.from_counts(*forest_counts(counts, self.structure_))
            return
        raise ValueError(
            f"structure is {structure!r}, but the chunks so far were counted for another one. Start with a new "
            f"classifier: clone(model).partial_fit(...)."
        )


def _no_rows() -> EncodedData:
    """Raise the error for parameter learners that need rows in addition to counts."""
    raise ValueError(
        "m='auto' is chosen by leaving rows out, but counts have no rows. Set m, as m=1.0, or use "
        "HierarchicalDirichlet()."
    )


def _read_all_classes(classes: Any) -> AnyArray:
    """Return the sorted labels in ``classes``."""
    try:
        found = np.unique(read_labels(classes))
        with np.errstate(invalid="ignore"):  # it casts floats of any size to integers
            check_classification_targets(np.tile(found, 2))  # twice: it warns if most labels differ
        return found
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"classes must be a list of the classes of all chunks, got {shorten(classes)}: {error}"
        ) from error


def _read_chunk(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> EncodedData:
    """Check whether ``partial_fit`` can continue, and encode the chunk."""
    is_first = not hasattr(estimator, "counts_")
    if is_first and estimator.__sklearn_is_fitted__():  # a failed fit may have left attributes
        raise ValueError(
            f"partial_fit adds to counts, but {why_no_counts(estimator)}. Start with a new classifier, "
            f"clone(model).partial_fit(...), or count the earlier rows first: "
            f"model.from_counts(TableCounts.of_source(..., like=model)) makes a classifier that partial_fit adds to."
        )
    if not is_first and not hasattr(estimator, "encoder_"):
        raise ValueError(
            "this classifier was fitted from counts of codes, without categories and cut points. Pass encoder and "
            "classes to from_counts."
        )
    if is_first and classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit: the classes of all chunks.")
    if estimator.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once. Pass weights by class, or an equal class_prior."
        )
    known = estimator.classes_ if classes is None else _read_all_classes(classes)
    if is_first:
        delete_fitted_attributes(estimator)
    elif not np.array_equal(known, estimator.classes_):
        raise ValueError(
            f"classes is {known.tolist()}, but the first call had {estimator.classes_.tolist()}. Leave it out after "
            f"the first call; for other classes use a new classifier: clone(model).partial_fit(...)."
        )
    return encode_chunk(estimator, X, y, known, sample_weight)
