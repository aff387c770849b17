"""Growing a forest, and weighing it by what it says of rows that it has not seen."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tanlearn._tasks import in_order
from tanlearn._typing import AnyArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.forest.drawing import Grain
from tanlearn.forest.forest import Forest
from tanlearn.forest.member import Member, grow_member
from tanlearn.forest.reading import left_out_importances
from tanlearn.forest.views import Grow, Views, grow_views, log_frequencies
from tanlearn.forest.weighing import doubt_of, first_rows, weigh

__all__ = ["Grown", "Settings", "grow_forest", "learn_forest", "weigh_forest"]

#: Rows at most that say what leaving features out costs.
_IMPORTANCE_ROWS = 1024


@dataclass(frozen=True)
class Settings:
    """How a forest is grown and weighed.

    Parameters
    ----------
    n_members : int
    grain : Grain
        What is drawn of every member.
    smoothing : float
        m on every level.
    min_samples : int
        Rows that a context has at least.
    weights : {"auto", "shared", None}
        What is weighed: levels, features and families, all but families, or nothing, and members are averaged.
    ridge : float or None
        How hard weights are pulled to where they start; None lets left-out rows choose.
    n_folds : int
        Folds that are left out.
    """

    n_members: int = 32
    grain: Grain = field(default_factory=Grain)
    smoothing: float = 1.0
    min_samples: int = 5
    weights: str | None = "auto"
    ridge: float | None = None
    n_folds: int = 5


@dataclass(frozen=True, eq=False)
class Grown:
    """Members that have not been weighed yet.

    Parameters
    ----------
    origin : tuple
        What members are made of besides seeds: settings, and checksums of the rows.
    seeds : list of int
        One a member.
    members : list of Member
    """

    origin: tuple[Any, ...]
    seeds: list[int]
    members: list[Member]


def learn_forest(
    data: EncodedData,
    is_ordered: AnyArray,
    settings: Settings,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> Forest:
    """Grow a forest and its twins without every fold, and weigh it by these.

    Parameters
    ----------
    data : EncodedData
        Rows.
    is_ordered : ndarray of shape (n_features,), bool
        Which codes have an order.
    settings : Settings
        How.
    rng : numpy.random.Generator
        Where seeds and folds are drawn from.
    n_jobs : int, optional
        Threads, as in joblib. The forest does not depend on it.
    say : callable
        What is told of progress.

    Returns
    -------
    Forest
    """
    grown = grow_forest(data, is_ordered, settings, rng, n_jobs=n_jobs)
    return weigh_forest(data, is_ordered, settings, grown, rng, n_jobs=n_jobs, say=say)


def grow_forest(
    data: EncodedData,
    is_ordered: AnyArray,
    settings: Settings,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    before: Grown | None = None,
) -> Grown:
    """Grow the members of a forest.

    Parameters
    ----------
    data : EncodedData
        Rows.
    is_ordered : ndarray of shape (n_features,), bool
        Which codes have an order.
    settings : Settings
        How.
    rng : numpy.random.Generator
        Where seeds are drawn from; it gives those of the first members of more as it would those of fewer.
    n_jobs : int, optional
        Threads, as in joblib.
    before : Grown, optional
        Members to keep, if they are made of the same rows in the same way.

    Returns
    -------
    Grown
    """
    seeds = rng.integers(2**32, size=settings.n_members).tolist()
    arrays = data.codes, data.y, data.weights, is_ordered, data.n_states
    rows = [zlib.crc32(np.ascontiguousarray(own).data) for own in arrays]
    shape = data.codes.shape, data.codes.dtype.str, data.n_classes
    origin = settings.grain, settings.smoothing, settings.min_samples, *shape, *rows
    members: list[Member] = []
    if before is not None and before.origin == origin:
        members = before.members[: settings.n_members]
        seeds[: len(members)] = before.seeds[: len(members)]
    grow = _grower(data, is_ordered, settings)
    members = members + in_order(grow, [(data, (seed,)) for seed in seeds[len(members) :]], n_jobs)
    return Grown(origin, seeds, members)


def weigh_forest(
    data: EncodedData,
    is_ordered: AnyArray,
    settings: Settings,
    grown: Grown,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> Forest:
    """Weigh the members of a forest by what twins of them say of rows that they have not seen.

    Parameters
    ----------
    data : EncodedData
        The rows that they are grown from.
    is_ordered : ndarray of shape (n_features,), bool
        Which codes have an order.
    settings : Settings
        How.
    grown : Grown
        The members.
    rng : numpy.random.Generator
        Where folds are drawn from.
    n_jobs : int, optional
        Threads, as in joblib. The forest does not depend on it.
    say : callable
        What is told of progress.

    Returns
    -------
    Forest
    """
    members, n_members = grown.members, len(grown.members)
    n_levels = max(member.tables.n_levels for member in members)
    views = grow_views(
        data,
        grown.seeds,
        _grower(data, is_ordered, settings),
        n_folds=settings.n_folds,
        n_levels=n_levels,
        is_nested=settings.weights is not None,
        rng=rng,
        n_jobs=n_jobs,
    )
    log_prior = log_frequencies(np.bincount(data.y, data.weights, data.n_classes))
    no_shift = np.zeros(data.n_classes)
    if settings.weights is None:
        used, doubt = _choose_levels(views, say)
        weights = np.zeros((n_members, data.n_features, n_levels))
        weights[:, :, :used] = 1.0
        forest = Forest(members, log_prior, log_prior, no_shift, weights, doubt, True)
        members = [replace(member, tables=member.tables.first_levels(used)) for member in members]
        return replace(_with_importances(forest, views, 1.0), members=members, weights=weights[:, :, :used].copy())
    found = weigh(views, settings.weights, settings.ridge, say)
    forest = Forest(members, found.of_prior * log_prior, log_prior, no_shift, found.weights, found.doubt, False)
    return _with_importances(forest, views, found.of_prior)


def _grower(data: EncodedData, is_ordered: AnyArray, settings: Settings) -> Grow:
    """Return what grows a member from some of the rows."""
    has_gaps = (data.codes == missing_code(data.codes.dtype)).any(axis=1)

    def grow(part: EncodedData, seed: int) -> Member:
        smoothing, least = settings.smoothing, settings.min_samples
        return grow_member(part, is_ordered, has_gaps, settings.grain, seed, smoothing=smoothing, min_samples=least)

    return grow


def _with_importances(forest: Forest, views: Views, of_prior: float) -> Forest:
    """Return the forest with what leaving features out costs rows that its twins have not seen."""
    left_out, data = views.outer, views.outer.data
    priors = of_prior * left_out.log_prior
    twins = [replace(forest, members=own, log_prior=p) for own, p in zip(left_out.members, priors, strict=True)]
    rows = first_rows(views.rows[:_IMPORTANCE_ROWS], data.n_features * left_out.n_levels * data.n_classes)
    found = left_out_importances(twins, data, left_out.fold, rows, n_jobs=left_out.n_jobs)
    return replace(forest, importances=found)


def _choose_levels(views: Views, say: Callable[[str], None]) -> tuple[int, float]:
    """Return how many levels left-out rows are best off with when members are averaged, and the doubt that is left."""
    data = views.outer.data
    rows = first_rows(views.rows, views.outer.n_levels * data.n_classes)
    own = views.outer.level_probabilities(rows)[:, np.arange(len(rows)), data.y[rows]]
    losses = np.average(-np.log(own), axis=1, weights=data.weights[rows])
    say(f"log loss by number of parents: {losses.round(4).tolist()}")
    best = int(losses.argmin())
    return 1 + best, doubt_of(own[best], data.weights[rows], data.n_classes)
