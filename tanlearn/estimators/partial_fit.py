"""Learning chunk by chunk, where all that is learnt from a chunk is its counts.

Counts of unweighted or integer-weighted rows are integers, and add up to the same in any partition of the rows, so a
model of chunks is, to the last bit, that of all rows with the same encoding.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from tanlearn._typing import AnyArray
from tanlearn.data.border import encode_chunk, forget, generator
from tanlearn.data.columns import shorten
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.validation import read_labels
from tanlearn.estimators.batches import BatchFitMixin, refuse_what_needs_all_rows
from tanlearn.estimators.counts_state import why_no_counts
from tanlearn.estimators.from_counts import FromCountsMixin
from tanlearn.kernels._cuda import check_device
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.counts import CountState
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.structures import Structure, check_structure
from tanlearn.network.tables import TableLayout
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["PartialFitMixin", "forest_counts"]


def forest_counts(state: CountState, structure: Structure) -> tuple[TableLayout, AnyArray]:
    """Return the counts of the tables of a forest, out of pair counts.

    Shapes: result cells: (n_cells,).
    """
    if (structure.parents[:, 1] >= 0).any():
        raise ValueError(
            "features with several augmenting parents need counts of three values and more at a time, and a stream "
            "keeps those of pairs. Learn a forest, as with ChowLiu() or KDependence(k=1), or give the structure itself."
        )
    layout = TableLayout.of_parents(structure.parents, state.n_states, state.n_classes)
    families = enumerate(structure.parents[:, 0].tolist())
    tables = [(state.feature(i) if j < 0 else state.pair(i, j)).ravel() for i, j in families]
    return layout, np.concatenate([state.class_counts, *tables])


class PartialFitMixin(FromCountsMixin, BatchFitMixin):
    """``partial_fit`` for classifiers whose structure and tables follow from counts."""

    random_state: Any

    @available_if(lambda estimator: refuse_what_needs_all_rows(estimator, of_contexts=False))  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a chunk of rows, in addition to those before.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values. The first chunk decides on categories and cuts, so let it be a representative one of some
            thousand rows, or declare the categories (pandas ``category``, polars ``Enum``): a category that it does not
            have counts as missing later, with a warning, or raises, as ``handle_unknown`` of the encoder says.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,)
            All classes that will ever come; needed in the first call, and left out or the same in others.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; 0 is as good as an absent row.

        Returns
        -------
        object
            The estimator itself, ready to predict.

        Raises
        ------
        AttributeError
            If the estimator's learners need all rows at once.
        ValueError
            If a class is not among ``classes``, ``classes`` is missing or changes, the classifier is fitted and
            has no counts, or a column, ``y`` or the weights break a rule of the border. Nothing is changed then.

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
        # All is done to a copy, with counts of its own, so that a chunk that breaks a rule changes nothing.
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
        """Return what the counts of chunks are added to: pairs for a learner of structures, else the tables."""
        structure = getattr(self, "structure", None)
        if hasattr(structure, "from_counts"):
            return CountState(data.n_states, data.n_classes)
        given = Structure.naive_bayes(data.n_features) if structure is None else structure
        check_structure(given, data.n_features)
        return FamilyCounts(TableLayout.of_parents(given.parents, data.n_states, data.n_classes))

    def _learn_counts(self, counts: Any) -> None:
        """Decide on the structure again if it is learnt, and take the smoothed frequencies."""
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
            f"structure is {structure!r}, but the chunks so far were counted for another one. Begin with a new "
            f"classifier: clone(model).partial_fit(...)."
        )


def _no_rows() -> EncodedData:
    """Say that counts are all that there is."""
    raise ValueError(
        "m='auto' is chosen by leaving rows out, and counts have no rows. Name m, as m=1.0, or use "
        "HierarchicalDirichlet()."
    )


def _read_all_classes(classes: Any) -> AnyArray:
    """Return the classes that the user names, sorted."""
    try:
        return np.unique(read_labels(classes))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"classes must be a list of all classes that will ever come, got {shorten(classes)}: {error}"
        ) from error


def _read_chunk(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> EncodedData:
    """Check whether ``partial_fit`` can go on, and encode what it was given."""
    is_first = not hasattr(estimator, "counts_")
    if is_first and estimator.__sklearn_is_fitted__():  # what a fit that failed has left does not count
        raise ValueError(
            f"partial_fit adds to counts, but {why_no_counts(estimator)}. Begin with a new classifier, "
            f"clone(model).partial_fit(...), or count the earlier rows first: "
            f"model.from_counts(TableCounts.of_source(..., like=model)) makes a classifier that partial_fit adds to."
        )
    if not is_first and not hasattr(estimator, "encoder_"):
        raise ValueError(
            "this classifier was learnt from counts of codes, and knows no categories and cuts. Pass encoder and "
            "classes to from_counts."
        )
    if is_first and classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all that will ever come.")
    if estimator.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once. Pass weights by class, or class_prior with equal ones."
        )
    known = estimator.classes_ if classes is None else _read_all_classes(classes)
    if is_first:
        forget(estimator)
    elif not np.array_equal(known, estimator.classes_):
        raise ValueError(
            f"classes is {known.tolist()}, but the first call had {estimator.classes_.tolist()}. Leave it out after "
            f"the first call; for other classes begin anew: clone(model).partial_fit(...)."
        )
    return encode_chunk(estimator, X, y, known, sample_weight)
