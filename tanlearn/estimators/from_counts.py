"""Learning from counts that are at hand already: those of other models, of other places, of files."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from tanlearn.data.border import forget
from tanlearn.estimators.batches import refuse_what_needs_all_rows
from tanlearn.estimators.table_counts import TableCounts
from tanlearn.kernels._cuda import check_device
from tanlearn.network.structures import Structure

__all__ = ["FromCountsMixin"]


def _learns_from_counts(estimator: Any) -> bool:
    """Return whether all that an estimator learns follows from counts that somebody can have, or say what does not."""
    structure = getattr(estimator, "structure", None)
    return refuse_what_needs_all_rows(estimator, of_contexts=structure is None or isinstance(structure, Structure))


class FromCountsMixin:
    """``from_counts`` for classifiers that learn from counts alone."""

    #: What the classifier counts in.
    _counted: ClassVar[tuple[type, ...]] = ()

    class_weight: Any
    device: str

    @available_if(_learns_from_counts)  # type: ignore[untyped-decorator]
    def from_counts(self, counts: Any, *, encoder: Any = None, classes: Any = None) -> Self:
        """Learn from counts, which may be the sum of those of many places.

        Parameters
        ----------
        counts : TableCounts or object
            Counts of a table, with its categories, cuts and classes; or counts of codes, which are left as they are:
            of pairs (:class:`~tanlearn.CountState`) for naive Bayes, learners of structures with a parent a feature at
            most, such structures themselves, and AODE; of families
            (:class:`~tanlearn.network.family_counts.FamilyCounts`) for the structure whose families they are; what
            ``counts_`` of such a classifier holds for all others.
        encoder : TableEncoder, optional
            What has made the codes, fitted; a :class:`~tanlearn.TableCounts` has it.
        classes : array-like of shape (n_classes,), optional
            The classes, sorted. Without encoder and classes, the model is one of codes, as ``fit_encoded`` makes
            it, which predicts no raw values.

        Returns
        -------
        object
            The fitted estimator itself: to the last bit that of the counted rows, where weights are whole. With an
            encoder, ``partial_fit`` goes on from it, where there is one.

        Raises
        ------
        AttributeError
            If the estimator's learners need all rows at once.
        TypeError
            If the estimator counts in something else.
        ValueError
            If the counts are of other families or numbers of values, of fewer than two classes with rows, or
            ``class_weight`` is given, as rows are weighed when they are counted. The estimator stays as it was.

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
                f"Use class_weight=None, and count with such weights, or say how frequent classes are by class_prior."
            )
        if isinstance(counts, TableCounts):
            if encoder is not None or classes is not None:
                raise ValueError("counts of a table bring encoder and classes along: leave encoder and classes out.")
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
        forget(twin)
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
        """Return counts as the classifier has them, or refuse them."""
        self._check_kind(counts, *self._counted)
        return counts

    def _check_kind(self, counts: Any, *kinds: type) -> None:
        """Refuse counts of other kinds."""
        if not isinstance(counts, kinds):
            known = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(
                f"{self!r} learns from counts in {known}, got {type(counts).__name__}. Count rows in that: counts_ of "
                f"such a classifier holds it after fit_batches or partial_fit."
            )
