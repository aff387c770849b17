"""Growing a forest, and weighing it by what it says of rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.forest.drawing import Grain
from tanlearn.forest.forest import Forest
from tanlearn.forest.member import Member, grow_member
from tanlearn.forest.reading import left_out_importances
from tanlearn.forest.views import Views, grow_views
from tanlearn.forest.weighing import doubt_of, first_rows, weigh

__all__ = ["Settings", "learn_forest"]

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
    has_gaps = (data.codes == missing_code(data.codes.dtype)).any(axis=1)
    seeds = rng.integers(2**32, size=settings.n_members).tolist()

    def grow(part: EncodedData, seed: int) -> Member:
        smoothing, least = settings.smoothing, settings.min_samples
        return grow_member(part, is_ordered, has_gaps, settings.grain, seed, smoothing=smoothing, min_samples=least)

    members = in_threads(lambda seed: grow(data, seed), seeds, n_jobs)
    n_levels = max(member.tables.n_levels for member in members)
    is_nested = settings.weights is not None
    views = grow_views(
        data, seeds, grow, n_folds=settings.n_folds, n_levels=n_levels, is_nested=is_nested, rng=rng, n_jobs=n_jobs
    )
    prior = np.bincount(data.y, data.weights, data.n_classes) + 1.0
    log_prior = np.log(prior / prior.sum())
    no_shift = np.zeros(data.n_classes)
    if settings.weights is None:
        used, doubt = _choose_levels(views, say)
        weights = np.zeros((settings.n_members, data.n_features, n_levels))
        weights[:, :, :used] = 1.0
        return _with_importances(Forest(members, log_prior, log_prior, no_shift, weights, doubt, True), views, 1.0)
    found = weigh(views, settings.weights, settings.ridge, say)
    forest = Forest(members, found.of_prior * log_prior, log_prior, no_shift, found.weights, found.doubt, False)
    return _with_importances(forest, views, found.of_prior)


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
