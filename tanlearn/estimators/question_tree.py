"""Decision trees that contain the next feature to observe for all possible answers, computed in advance."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.c_export.questions import Leaf, Question, export_questions
from tanlearn.estimators.partial_rows import (
    PartialRows,
    best_features,
    class_probabilities,
    feature_index,
    read_costs,
    read_gain,
)

__all__ = ["QuestionTree", "question_tree"]

#: Number of rows whose next features are computed together.
_BLOCK = 4096


class QuestionTree:
    """Decision tree with the next features to observe, returned by :func:`question_tree`.

    Parameters
    ----------
    classifier : Classifier
        A fitted classifier with a single network.
    nodes : list
        Nodes of the tree: questions, and ends of paths. The first node is the root.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    n_questions : int
        Number of distinct questions. Equal subtrees are counted once.
    n_paths : int
        Number of distinct sequences of answers.
    depth : int
        Largest number of questions on a path.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import NaiveBayesClassifier, question_tree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = question_tree(NaiveBayesClassifier().fit(X, y), n_features=2)
    >>> tree.depth, tree.next_feature([]), tree.classify([0])
    (2, 3, (0, True))
    """

    def __init__(self, classifier: Any, nodes: list[Leaf | Question]) -> None:
        self._classifier, self._nodes = classifier, nodes
        self.classes_ = classifier.classes_
        self.n_questions = sum(isinstance(node, Question) for node in nodes)
        paths, depths = [1] * len(nodes), [0] * len(nodes)
        for k in range(len(nodes) - 1, -1, -1):  # children come after their parents
            if isinstance(node := nodes[k], Question):
                paths[k] = sum(paths[child] for child in node.children)
                depths[k] = 1 + max(depths[child] for child in node.children)
        self.n_paths, self.depth = paths[0], depths[0]

    def _node(self, answers: Iterable[int]) -> Leaf | Question:
        """Return the node that is reached by a sequence of answers."""
        node = self._nodes[0]
        for number, answer in enumerate(answers):
            if not isinstance(node, Question) or answer not in range(len(node.children)):
                raise ValueError(f"answer {number} must be a code of the requested feature, got {answer}.")
            node = self._nodes[node.children[int(answer)]]
        return node

    def next_feature(self, answers: Iterable[int]) -> Any:
        """Return the feature to observe next.

        Parameters
        ----------
        answers : iterable of int
            Codes of the features that have been observed so far, in the order of the questions. A code is the number of
            a category or interval, as returned by ``encoder_.transform`` of the classifier.

        Returns
        -------
        object
            Name of the feature, or column number if columns have no names, or None at the end of the questions.

        Raises
        ------
        ValueError
            If an answer is not a code of its feature, or if there are more answers than questions.
        """
        node = self._node(answers)
        if isinstance(node, Leaf):
            return None
        names = getattr(self._classifier, "feature_names_in_", range(self._classifier.n_features_in_))
        return names[node.feature]

    def classify(self, answers: Iterable[int]) -> tuple[Any, bool]:
        """Return the most probable class for a sequence of answers, and whether it is probable enough to stop.

        Parameters
        ----------
        answers : iterable of int
            Codes of the features that have been observed so far (see :meth:`next_feature`).

        Returns
        -------
        class : object
            Label of the most probable class.
        is_sure : bool
            Whether the questions end here because the class has the required probability.

        Raises
        ------
        ValueError
            If an answer is not a code of its feature, or if there are more answers than questions.
        """
        node = self._node(answers)
        return self.classes_.tolist()[node.best], isinstance(node, Leaf) and node.is_sure

    def export_c(self, path: str | os.PathLike[str], *, name: str | None = None, number_type: str = "double") -> None:
        """Write the tree as a C99 header with additions and comparisons only.

        A comment in the header describes its functions: ``name_feature(node)`` returns the number of the feature to
        measure, ``name_answer(&node, &value)`` sets ``node`` to the next node, and ``name_class(node)`` returns the
        class. Your program needs to store only the number of the node.

        Parameters
        ----------
        path : str or path
            Path of the header. An existing file is replaced.
        name : str, optional
            Prefix of all names in the header. By default, it is the file name without its extension.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            C type of the numbers (see :meth:`tanlearn.NaiveBayesClassifier.export_c`).

        Raises
        ------
        ValueError
            If the tree has no questions, a column has a category for missing values or had no value in training, a
            category or cut point cannot be represented in its C type, or ``name`` is not a C identifier. No file is
            written in these cases.
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        export_questions(self._classifier, self._nodes, path, name=name, number_type=number_type)

    def __repr__(self) -> str:
        return f"QuestionTree(depth={self.depth}, n_questions={self.n_questions}, n_paths={self.n_paths})"


def question_tree(
    classifier: Any,
    *,
    n_features: int = 4,
    confidence: Any = 0.95,
    gain: Any = "information",
    costs: Any = None,
    depth: int = 1,
    unanswered: Any = None,
    max_paths: int = 100_000,
) -> QuestionTree:
    """Compute a decision tree with the next feature to observe for all possible answers.

    Each question is the feature that ``next_feature`` of the classifier returns for the answers so far. The questions
    end if a class is probable enough, or after ``n_features`` answers.

    Parameters
    ----------
    classifier : Classifier
        A fitted classifier with a single network.
    n_features : int, default=4
        Maximum number of questions on a path, at least 1.
    confidence : float, default=0.95
        Probability of a class at which the questions end, above 0 and at most 1. If 1, they end only if a class is
        certain.
    gain : {"information", "accuracy"} or array-like of shape (n_classes, n_decisions), default="information"
        Measure of the gain from an answer (see :meth:`tanlearn.NaiveBayesClassifier.feature_gains`).
    costs : dict or array-like of shape (n_features,), optional
        Positive cost of observing each feature. The keys of a dict are names or column numbers, and all other features
        have the cost 1.
    depth : int, default=1
        Number of observations to plan ahead (see :meth:`tanlearn.NaiveBayesClassifier.feature_gains`).
    unanswered : list of features, optional
        Names or column numbers of features that are not available.
    max_paths : int, default=100_000
        Maximum number of paths. Each question multiplies the number of paths by the number of values of its feature.

    Returns
    -------
    QuestionTree

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    TypeError
        If the classifier does not have a single network.
    ValueError
        If a parameter is invalid, there are more than ``max_paths`` paths, or exact gains would take too many
        operations.

    Notes
    -----
    The search is greedy: each question has the largest expected gain per cost, or is the first question of the best
    plan of ``depth`` questions. Information is computed from the probabilities of the network, and confidence from the
    calibrated probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn import NaiveBayesClassifier, question_tree
    >>> X = pd.DataFrame({"fever": ["yes", "yes", "no", "no"], "cough": ["yes", "no", "yes", "no"]})
    >>> model = NaiveBayesClassifier().fit(X, ["flu", "flu", "cold", "cold"])
    >>> tree = question_tree(model, confidence=0.7)
    >>> tree
    QuestionTree(depth=1, n_questions=1, n_paths=2)
    >>> tree.next_feature([]), tree.next_feature([1]), tree.classify([1])  # the second category of fever is "yes"
    ('fever', None, ('flu', True))
    """
    check_is_fitted(classifier)
    if not hasattr(classifier, "next_feature"):
        raise TypeError(
            f"a tree of questions needs a classifier with a single network, got {type(classifier).__name__}. Fit a "
            f"NaiveBayesClassifier or TANClassifier."
        )
    _check_positive("n_features", n_features)
    _check_positive("max_paths", max_paths)
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) <= 1:
        raise ValueError(f"confidence must be above 0 and at most 1, got {confidence!r}.")
    search = _Search(classifier, float(confidence), read_gain(classifier, gain), read_costs(classifier, costs), depth)
    is_open = np.ones(classifier.n_features_in_, np.bool_)
    if unanswered is not None:
        if isinstance(unanswered, str) or not isinstance(unanswered, Iterable):
            raise TypeError(f"unanswered must be a list of features, got {unanswered!r}.")
        is_open[[feature_index(classifier, feature, "unanswered") for feature in unanswered]] = False
    return QuestionTree(classifier, search.nodes(is_open, int(n_features), int(max_paths)))


def _check_positive(name: str, value: Any) -> None:
    """Raise ValueError if a number is not an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")


class _Search:
    """Search for the questions after all possible answers, level by level."""

    def __init__(self, classifier: Any, confidence: float, gain: Any, costs: Any, depth: Any) -> None:
        self._classifier, self._confidence = classifier, confidence
        self._rule = gain, costs, depth
        self._n_states = classifier.model_.numbers_of_values()

    def nodes(self, is_open: AnyArray, n_features: int, max_paths: int) -> list[Leaf | Question]:
        """Return the nodes of the tree, parents before children. Equal subtrees are merged to one node."""
        dtype = codes_dtype(int(self._n_states.max()))
        codes: Codes = np.full((len(is_open), 1), missing_code(dtype), dtype)
        for i in np.flatnonzero(self._classifier.encoder_.has_missing_category_ & ~is_open).tolist():
            codes[i] = self._n_states[i] - 1
        levels, n_ended = [], 0
        for level in range(n_features + 1):
            best, is_sure, features = self._level(codes, is_open, is_last=level == n_features)
            levels.append((best, is_sure, features))
            rows = np.flatnonzero(features >= 0)
            n_ended += len(features) - len(rows)
            sizes = self._n_states[features[rows]]
            if n_ended + sizes.sum() > max_paths:
                raise ValueError(
                    f"the tree may have at most max_paths={max_paths:,} paths, but has more after {level + 1} "
                    f"questions. Decrease n_features or confidence, or discretize numeric columns into fewer intervals."
                )
            if not rows.size:
                break
            codes = np.repeat(codes[:, rows], sizes, axis=1)
            start = np.cumsum(sizes) - sizes
            codes[np.repeat(features[rows], sizes), np.arange(codes.shape[1])] = np.arange(codes.shape[1]) - np.repeat(
                start, sizes
            )
        return _joined(levels, self._n_states)

    def _level(self, codes: Codes, is_open: AnyArray, *, is_last: bool) -> tuple[IntArray, AnyArray, IntArray]:
        """Return the best class of each row, whether it is probable enough, and the next feature or -1."""
        n = codes.shape[1]
        best, features = np.zeros(n, np.intp), np.full(n, -1, np.intp)
        is_sure = np.zeros(n, np.bool_)
        for first in range(0, n, _BLOCK):
            own = codes[:, first : first + _BLOCK]
            probabilities, _ = class_probabilities(self._classifier, own)
            best[first : first + _BLOCK] = probabilities.argmax(axis=1)
            sure = probabilities.max(axis=1) >= self._confidence
            is_sure[first : first + _BLOCK] = sure
            rows = np.flatnonzero(~sure)
            if not is_last and rows.size:
                some = np.ascontiguousarray(own[:, rows])
                is_candidate = (some == missing_code(some.dtype)).T & is_open
                found = best_features(self._classifier, PartialRows(some, is_candidate), *self._rule)
                features[first + rows] = found
        return best, is_sure, features


def _joined(levels: list[tuple[IntArray, AnyArray, IntArray]], n_states: IntArray) -> list[Leaf | Question]:
    """Return the nodes of all levels, parents before children, with equal subtrees merged to one node."""
    found: dict[Leaf | Question, int] = {}  # in this dictionary, children come before parents
    below: list[int] = []
    for best, is_sure, features in reversed(levels):
        own, next_child = [], 0
        for answer, sure, feature in zip(best.tolist(), is_sure.tolist(), features.tolist(), strict=True):
            node: Leaf | Question
            if feature < 0:
                node = Leaf(answer, sure)
            else:
                end = next_child + int(n_states[feature])
                node = Question(feature, answer, tuple(below[next_child:end]))
                next_child = end
            own.append(found.setdefault(node, len(found)))
        below = own
    last = len(found) - 1
    nodes = list(found)[::-1]
    return [
        node._replace(children=tuple(last - child for child in node.children)) if isinstance(node, Question) else node
        for node in nodes
    ]
