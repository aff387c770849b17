"""Kinds of candidate parents, from which candidate sets are created.

Four kinds are from differentiable TAN: "all" and "subset" (section 4.2), "heuristic" (section 4.4), and "unconstrained"
(section 4.5, a pseudo-TAN). The other kinds are "order-free", "information" (the parents with the most information
about a feature given the class), and "gain" (the parents whose interaction with a feature predicts the class best).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import FloatArray, IntArray
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.knowledge import EdgeRules, Knowledge
from tanlearn.structures.orderings import PIXEL_ORDERINGS, check_ordering, pixel_ordering

__all__ = ["CANDIDATE_KINDS", "Candidates", "make_candidates"]

#: Kinds of candidate sets, and the parameters that each kind uses.
_PARAMETERS = {
    "all": ("ordering",),
    "subset": ("n_candidates", "ordering"),
    "heuristic": ("n_candidates", "ordering", "image_shape"),
    "information": ("n_candidates", "ordering"),
    "gain": ("n_candidates", "ordering"),
    "unconstrained": ("n_candidates",),
    "order-free": ("n_candidates",),
}
CANDIDATE_KINDS = tuple(_PARAMETERS)
#: Default number of candidate parents per feature. In [DT], 8 are sufficient on every data set.
DEFAULT_SUBSET = 8


class Candidates(BaseEstimator):
    """Kind and number of the candidate parents of each feature, for gradient classifiers.

    Parameters
    ----------
    kind : str, default="subset"
        Candidate parents of each feature, besides no parent:

        - ``"all"``: every earlier feature in the ordering;
        - ``"subset"``: at most ``n_candidates`` random earlier features;
        - ``"heuristic"``: the ``n_candidates`` nearest earlier pixels, for images;
        - ``"information"``: the ``n_candidates`` features with the largest conditional mutual information given the
          class, among the earlier features, or among all features without an ordering;
        - ``"gain"``: the same for the largest gain, which is the estimated decrease in the held-out log loss if an
          interaction of both features is added to a model without interactions;
        - ``"order-free"``: all other features, or at most ``n_candidates`` random features;
        - ``"unconstrained"``: as ``"order-free"``, but structures may have cycles (pseudo-TAN, section 4.5).

        ``"information"``, ``"gain"`` and ``"order-free"`` exclude constant features.
    n_candidates : int, optional
        Maximum number of candidate parents per feature, for all kinds except ``"all"``. The default is 8 for
        ``"subset"``, ``"heuristic"``, ``"information"`` and ``"gain"``. There is no limit by default for
        ``"unconstrained"`` and ``"order-free"``. For a fixed ``random_state`` of the classifier, smaller sets are
        subsets of larger sets.
    ordering : array-like of shape (n_features,) or {"A", "B", "C"}, optional
        Order of the features for ``"all"`` and ``"subset"`` (random by default), and ``"information"`` and ``"gain"``
        (none by default), or the pixel order for ``"heuristic"`` (C by default).
    image_shape : tuple of (height, width), optional
        Image size for ``"heuristic"``. Pixel (row, column) is feature ``row * width + column``.
    knowledge : Knowledge, optional
        Required and forbidden edges, tiers, and monotone columns. The log odds are monotone only for rows without
        missing values. Excluded edges and edges from monotone columns are not candidates. Each choice for a feature
        contains its required parents, regardless of ``n_candidates``. :class:`~tanlearn.TANClassifier` allows one
        required parent per feature, and :class:`~tanlearn.KTreeClassifier` two. Random orderings begin with required
        parents and earlier tiers. If edges are required, k-trees always use an ordering.

    See Also
    --------
    tanlearn.CandidateSets : Explicit candidate sets of parents of each feature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import Candidates, TANClassifier
    >>> model = TANClassifier(candidates=Candidates("information", n_candidates=2), n_epochs=1, random_state=0)
    >>> model.fit(*load_iris(return_X_y=True)).candidates_
    CandidateSets(n_features=4, n_tables=12, draws='arborescence')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions(set(CANDIDATE_KINDS))],
        "n_candidates": [None, Interval(Integral, 1, None, closed="left")],
        "ordering": [None, "array-like", StrOptions({"A", "B", "C"})],
        "image_shape": [None, tuple, list],
        "knowledge": [None, Knowledge],
    }

    def __init__(
        self,
        kind: str = "subset",
        *,
        n_candidates: int | None = None,
        ordering: Any = None,
        image_shape: tuple[int, int] | None = None,
        knowledge: Knowledge | None = None,
    ) -> None:
        self.kind = kind
        self.n_candidates = n_candidates
        self.ordering = ordering
        self.image_shape = image_shape
        self.knowledge = knowledge

    def _validate_params(self) -> None:
        """Validate the parameters, and raise ValueError for a parameter that the kind does not use."""
        super()._validate_params()
        for name, value in self.get_params(deep=False).items():
            if value is not None and name not in ("kind", "knowledge", *_PARAMETERS[self.kind]):
                raise ValueError(
                    f"candidates of kind {self.kind!r} do not use {name}, got {name}={value!r}. Leave it out."
                )


def make_candidates(
    candidates: Any,
    n_features: int,
    *,
    rng: np.random.Generator,
    information: Callable[[], FloatArray] | None = None,
    gains: Callable[[], FloatArray] | None = None,
    n_states: IntArray | None = None,
    n_parents: int = 1,
    rules: EdgeRules | None = None,
) -> CandidateSets:
    """Create candidate sets of a kind (a string or :class:`Candidates`), or validate candidates that are passed.

    With the same ``rng``, the sets for a smaller ``n_candidates`` are subsets of the sets for a larger
    ``n_candidates``. "information" needs the function ``information``, which returns I(X_i; X_j | C). "gain" needs the
    function ``gains``, which returns gains of pairs. Both return shape (n_features, n_features). If ``n_states``
    (n_features,) is given, "order-free", "information" and "gain" leave out features with a single value, as children
    and as parents.

    With ``rules``, only allowed parents are candidates, and only sets with all required parents can be selected.
    Required parents are candidates in addition to ``n_candidates``. Random orderings begin with required parents and
    earlier tiers. If edges are required, pairs of parents always have an ordering, because random parents without an
    ordering could close a cycle with the required edges.
    """
    given = Candidates(candidates) if isinstance(candidates, str) else candidates
    if not isinstance(given, Candidates):
        sets = given if isinstance(given, CandidateSets) else CandidateSets.from_lists(given, n_parents=n_parents)
        if sets.n_features != n_features:
            raise ValueError(f"candidates must have {n_features} features, got {sets.n_features}.")
        return sets
    given._validate_params()
    kind, limit = given.kind, given.n_candidates
    is_ordered = kind in ("all", "subset") or (n_parents == 2 and rules is not None and bool(rules.required.any()))
    order = _order(given, n_features, rules, rng if is_ordered else None)
    among = _allowed(_others(n_features) if order is None else _before(order), rules)
    lists: Sequence[Sequence[int]]
    if kind == "heuristic":
        lists = _nearest(among, given.image_shape, limit or DEFAULT_SUBSET)
    elif kind == "order-free":
        lists = _subsets(_varied(among, n_states), limit, rng)
    elif kind in ("information", "gain"):
        scores, of_pairs = (information, "I(X_i; X_j | C)") if kind == "information" else (gains, "gains of pairs")
        if scores is None:
            raise ValueError(f"candidates={kind!r} needs counts of rows. Pass a function that returns {of_pairs}.")
        lists = _best(scores(), _varied(among, n_states), limit or DEFAULT_SUBSET)
    else:
        lists = _subsets(among, limit or (DEFAULT_SUBSET if kind == "subset" else None), rng)
    allow_cycles = kind == "unconstrained"
    if rules is None or not rules.required.any():
        return CandidateSets.from_lists(lists, allow_cycles=allow_cycles, n_parents=n_parents)
    required = rules.parents()
    lists = [own + [j for j in found if j not in own] for own, found in zip(required, lists, strict=True)]
    return CandidateSets.from_lists(lists, allow_cycles=allow_cycles, n_parents=n_parents).requiring(required)


def _order(
    given: Candidates, n_features: int, rules: EdgeRules | None, rng: np.random.Generator | None
) -> IntArray | None:
    """Return the given ordering of the features or, by default, a random ordering. Without ``rng``, return None."""
    if given.kind == "heuristic":
        order = _pixel_order(given, n_features)
    elif given.ordering is not None:
        order = check_ordering(given.ordering, n_features)
    elif rng is None:
        return None
    else:
        order = rng.permutation(n_features)
        return order if rules is None else rules.ordered(order)
    if rules is not None:
        rules.check_ordering(order)
    return order


def _allowed(lists: Sequence[IntArray], rules: EdgeRules | None) -> Sequence[IntArray]:
    """Remove parents that the rules do not allow from the lists."""
    return lists if rules is None else [parents[rules.allowed[i, parents]] for i, parents in enumerate(lists)]


def _others(n_features: int) -> list[IntArray]:
    """Return, for each feature, all other features."""
    return [np.delete(np.arange(n_features), i) for i in range(n_features)]


def _before(order: IntArray) -> list[IntArray]:
    """Return, for each feature, the features that come before it in an order."""
    return [order[: np.flatnonzero(order == i)[0]] for i in range(len(order))]


def _varied(lists: Sequence[IntArray], n_states: IntArray | None) -> Sequence[IntArray]:
    """Remove features with a single value from the lists, and empty their own lists."""
    if n_states is None:
        return lists
    return [parents[(n_states[parents] > 1) & (n_states[i] > 1)] for i, parents in enumerate(lists)]


def _best(scores: FloatArray, among: Sequence[IntArray], limit: int) -> list[list[int]]:
    """Return the parents with the largest scores for each feature. Ties are broken by the first parent."""
    return [
        sorted(parents[np.lexsort((parents, -scores[i, parents]))[:limit]].tolist()) for i, parents in enumerate(among)
    ]


def _subsets(lists: Sequence[IntArray], limit: int | None, rng: np.random.Generator) -> list[list[int]]:
    """Draw at most ``limit`` random entries from each list. The whole list is shuffled, so smaller sets are subsets."""
    return [sorted(rng.permutation(parents)[:limit].tolist()) for parents in lists]


def _pixel_order(given: Candidates, n_features: int) -> IntArray:
    """Return the ordering of the pixels of an image."""
    image_shape: Any = given.image_shape
    sizes = [int(size) for size in image_shape or () if isinstance(size, (int, np.integer)) and size > 0]
    if len(sizes) != 2 or len(image_shape) != 2 or sizes[0] * sizes[1] != n_features:
        raise ValueError(
            f"candidates='heuristic' needs image_shape=(height, width) with height * width = {n_features} features, "
            f"got image_shape={image_shape}. Pass candidates=Candidates('heuristic', image_shape=(height, width))."
        )
    name: Any = "C" if given.ordering is None else given.ordering
    if isinstance(name, str) and name in PIXEL_ORDERINGS:
        return pixel_ordering(name, image_shape)
    return check_ordering(name, n_features)


def _nearest(lists: Sequence[IntArray], image_shape: Any, limit: int) -> list[list[int]]:
    """Return the nearest pixels in each list. Ties are broken by the order of the list."""
    pixels = np.stack(np.divmod(np.arange(len(lists)), image_shape[1]), axis=1)
    found = []
    for i, before in enumerate(lists):
        distance = ((pixels[before] - pixels[i]) ** 2).sum(axis=1)
        found.append(sorted(before[np.argsort(distance, kind="stable")[:limit]].tolist()))
    return found
