"""Rows without a class label: the label is missing, or it is -1 and there are two or more classes from 0."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tanlearn._warnings import warn

__all__ = ["UNLABELED", "UnlabeledRowsWarning", "marks_unlabeled", "warn_of_unlabeled"]

#: Label of rows without a class, as in :mod:`sklearn.semi_supervised`.
UNLABELED = -1


class UnlabeledRowsWarning(UserWarning):
    """Warning that the label -1 is treated as a class, although the other classes are two or more integers from 0.

    scikit-learn marks rows without a class by -1. A binary target of -1 and 1 does not raise the warning.

    Parameters
    ----------
    n_unlabeled : int or float
        Number of rows with the label -1, or their weight.
    classes : sequence of int
        The other labels.

    Examples
    --------
    >>> from tanlearn import UnlabeledRowsWarning
    >>> str(UnlabeledRowsWarning(20, [0, 1]))[:66]
    'y holds -1 in 20 row(s), and the classes 0, 1 in other rows. -1 co'
    """

    def __init__(self, n_unlabeled: float, classes: Any) -> None:
        self.n_unlabeled, self.classes = n_unlabeled, classes
        shown = ", ".join(map(str, classes[:5])) + (f" and {len(classes) - 5:,} more" if len(classes) > 5 else "")
        super().__init__(
            f"y holds {UNLABELED} in {n_unlabeled:,.6g} row(s), and the classes {shown} in other rows. {UNLABELED} "
            f"counts as a class here, but scikit-learn marks rows without a class by {UNLABELED}. Drop these rows, "
            f"or fit "
            f"SemiSupervisedClassifier(...) to learn from them. If {UNLABELED} is a class, cast y to str, or ignore "
            f"this warning."
        )

    def __reduce__(self) -> Any:
        return type(self), (self.n_unlabeled, self.classes)


def marks_unlabeled(classes: NDArray[Any]) -> bool:
    """Return whether -1 marks rows without a class, given the sorted distinct labels ``classes`` (n_labels,).

    The other labels must be at least two, all of them integers from 0.
    """
    if classes.dtype.kind not in "if" or len(classes) < 3 or classes[0] != UNLABELED:
        return False
    return bool(classes[1] >= 0 and (classes % 1 == 0).all())


def warn_of_unlabeled(classes: NDArray[Any], weights: NDArray[Any]) -> None:
    """Warn if -1 marks rows without a class, for learners that treat it as a class.

    Shapes: classes: (n_classes,), sorted labels; weights: (n_classes,), number or weight of the rows of each label.
    """
    if marks_unlabeled(classes):
        warn(UnlabeledRowsWarning(weights.tolist()[0], classes[1:].tolist()))
