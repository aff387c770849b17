"""Fitting from existing counts: of other models, of several sites, or from files."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from tanlearn.data.estimator_input import delete_fitted_attributes
from tanlearn.estimators.batches import refuse_what_needs_all_rows
from tanlearn.estimators.table_counts import TableCounts
from tanlearn.kernels._cuda import check_device
from tanlearn.network.structures import Structure

__all__ = ["FromCountsMixin"]


def _learns_from_counts(estimator: Any) -> bool:
    """Return True if counts determine all that an estimator learns; otherwise raise an AttributeError."""
    structure = getattr(estimator, "structure", None)
    return refuse_what_needs_all_rows(estimator, of_contexts=structure is None or isinstance(structure, Structure))


class FromCountsMixin:
    """``from_counts`` for classifiers that are determined by counts."""

    #: Types of counts that the classifier accepts.
    _counted: ClassVar[tuple[type, ...]] = ()

    class_weight: Any
    device: str

    @available_if(_learns_from_counts)  # type: ignore[untyped-decorator]
    def from_counts(self, counts: Any, *, encoder: Any = None, classes: Any = None) -> Self:
        """Fit the classifier to counts, which may be sums of counts of several sites.

        Parameters
        ----------
        counts : TableCounts or object
            Counts of raw data, with their categories, cut points and classes; or counts of codes, which are not
            modified:

            - counts of pairs (:class:`~tanlearn.CountState`) for naive Bayes, structure learners and structures with at
              most one augmenting parent per feature, and AODE;
            - counts of families (:class:`~tanlearn.network.family_counts.FamilyCounts`) for the structure of these
              families;
            - the type of ``counts_`` of the same classifier for all others.
        encoder : TableEncoder, optional
            Fitted encoder of the codes; not needed with :class:`~tanlearn.TableCounts`.
        classes : array-like of shape (n_classes,), optional
            Class labels in sorted order. Without encoder and classes, the model is one of codes, as from
            ``fit_encoded``, and cannot predict raw values.

        Returns
        -------
        object
            The fitted estimator. With integer weights, it is equal to one fitted on the counted rows, bit for bit. With
            an encoder, ``partial_fit`` can continue from it, if the classifier has this method.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        TypeError
            If the estimator needs counts of another type.
        ValueError
            If families or numbers of values differ, fewer than two classes have rows, or ``class_weight`` is set,
            because weights apply when rows are counted. The estimator is then unchanged.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier, TableCounts
        >>> here = TableCounts.of_source([([["a"], ["b"], ["b"]], ["no", "yes", "yes"])])
        >>> there = here.empty().update([["a"], ["a"]], ["no", "yes"])
        >>> model = NaiveBayesClassifier().from_counts(here.merge(there))
        >>> model.predict([["a"], ["b"]]).tolist()
        ['no', 'yes']
        """
        self._validate_params()  # type: ignore[attr-defined]
        check_device(self.device)
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} weighs rows when they are counted, and these are counted already. "
                f"Use class_weight=None, and count with such weights, or set the class frequencies by class_prior."
            )
        if isinstance(counts, TableCounts):
            if encoder is not None or classes is not None:
                raise ValueError("TableCounts contain encoder and classes: leave encoder and classes out.")
            table = counts
        elif encoder is not None or classes is not None:
            table = TableCounts(counts, encoder=encoder, classes=classes)
        else:
            table = None
        own = deepcopy(self._as_own(counts if table is None else table.counts))
        n_with_rows = np.count_nonzero(own.class_counts)
        if n_with_rows < 2:
            raise ValueError(
                f"the counts hold rows of {n_with_rows} class(es), and a classifier needs at least two. Merge counts "
                f"of other rows."
            )
        twin = copy(self)
        delete_fitted_attributes(twin)
        if table is not None:
            twin.encoder_, twin.classes_ = table.encoder, table.classes  # type: ignore[attr-defined]
            twin.n_features_in_ = table.encoder.n_features_in_  # type: ignore[attr-defined]
            if table.names is not None:
                twin.feature_names_in_ = table.names  # type: ignore[attr-defined]
        twin.counts_ = own  # type: ignore[attr-defined]
        twin._learn_counts(own)  # type: ignore[attr-defined]
        twin._end(own.n_classes)  # type: ignore[attr-defined]
        vars(self).clear()
        vars(self).update(vars(twin))
        return self

    def _as_own(self, counts: Any) -> Any:
        """Return counts converted to the type that the classifier needs, or raise an error."""
        self._check_kind(counts, *self._counted)
        return counts

    def _check_kind(self, counts: Any, *kinds: type) -> None:
        """Raise a TypeError for counts of other types."""
        if not isinstance(counts, kinds):
            known = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(
                f"{self!r} learns from counts in {known}, got {type(counts).__name__}. Use counts_ of such a "
                f"classifier after fit_batches or partial_fit."
            )
