"""Steps of a release that all budgets share: checks of losses, counts and seeds, and noise on the counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from tanlearn._warnings import warn
from tanlearn.counts.added_noise import AddedNoise
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.estimators.network_learning import count_pairs_in_trees
from tanlearn.estimators.table_counts import TableCounts
from tanlearn.privacy.noisy_counts import add_noise
from tanlearn.privacy.samplers import ExactSampler
from tanlearn.structures.structures import Structure, check_structure

__all__ = ["budget_is_spent", "check_seed", "make_sampler", "read_counts", "read_loss", "with_noise"]

#: Smallest epsilon. For smaller values, the noise would exceed any realistic number of rows.
_LEAST_EPSILON = 1e-12


def read_loss(epsilon: Any, delta: Any) -> tuple[Fraction, Fraction]:
    """Check epsilon and delta, and return them as fractions, converted from their decimal representations."""
    found = []
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, got {value!r}.")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}.")
        found.append(Fraction(value) if isinstance(value, Integral | Fraction) else Fraction(repr(float(value))))
    if found[0] < _LEAST_EPSILON:
        raise ValueError(
            f"epsilon must be at least {_LEAST_EPSILON:g}, got {epsilon}. Pass, for example, 0.5; smaller values "
            f"protect better."
        )
    if not 0 <= found[1] < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {delta}. Pass 0 or, for example, 1e-6.")
    return found[0], found[1]


def budget_is_spent(epsilon: Any) -> ValueError:
    """Return the error for a release from a budget that is spent."""
    return ValueError(
        f"the privacy budget (epsilon {epsilon}) is spent, so no more counts can be released. Use the counts that "
        f"were already released."
    )


def check_seed(random_state: Any) -> None:
    """Raise TypeError for a seed that is not an integer."""
    if random_state is not None and (isinstance(random_state, bool) or not isinstance(random_state, Integral)):
        raise TypeError(f"random_state must be None or an integer, got {random_state!r}.")


def make_sampler(random_state: Any) -> ExactSampler:
    """Return a sampler of noise. Warn if the sampler has a seed."""
    if random_state is None:
        return ExactSampler(None)
    warn(
        "random_state repeats the noise, so anyone who has the seed can subtract it, and these counts have no "
        "privacy guarantee. Use random_state=None for counts that you share."
    )
    return ExactSampler(int(random_state))


def with_noise(counts: TableCounts, own: Any, draw: Callable[[], int], noise: AddedNoise) -> TableCounts:
    """Return ``own`` with noise from ``draw`` and a record of it, and with the classes and encoder of ``counts``."""
    noisy = add_noise(own, draw)
    encoder = copy(counts.encoder)
    encoder.value_ranges_ = [None] * encoder.n_features_in_  # the ranges of the counted rows are not public
    noisy.noise = (noise,)
    return TableCounts(noisy, encoder=encoder, classes=counts.classes)


def read_counts(counts: Any, structure: Structure | None, encoder_is_public: bool) -> Any:
    """Check that noise can protect the counted rows, and return the counts to be released.

    If a structure is given, these are the counts of its families.
    """
    if not isinstance(counts, TableCounts):
        raise TypeError(
            f"counts must be a TableCounts, got {type(counts).__name__}. Pass the encoder and the classes with it."
        )
    if counts.noise:
        raise ValueError("the counts already have noise. Release exact counts of rows, and release them once.")
    own = counts.counts
    if not isinstance(own, PairCounts | FamilyCounts):
        raise TypeError(
            f"counts of type {type(own).__name__} cannot be released, because they contain only values that occur, "
            f"and thus reveal these values. Count pairs, or the families of a structure: "
            f"TableCounts.of_encoder(encoder, classes)."
        )
    if not counts.counts_rows_once or own.dtype.kind != "i":
        raise ValueError(
            "counts of a model and float counts cannot be released, because the rows may have weights, but noise "
            "protects only rows of weight 1. Count rows without weights: TableCounts.of_encoder(encoder, "
            "classes).update(X, y)."
        )
    if not getattr(counts.encoder, "is_declared_", False) and encoder_is_public is not True:
        raise ValueError(
            "categories and cut points were not declared. If they come from the counted rows, they reveal values of "
            "these rows in spite of the noise. Declare them: TableCounts.of_encoder(TableEncoder().declare({...}), "
            "classes). If the encoder was fitted to public data, pass encoder_is_public=True."
        )
    return own if structure is None else _families(own, structure)


def _families(counts: Any, structure: Structure) -> FamilyCounts:
    """Return the counts of the families of a structure."""
    check_structure(structure, counts.n_features)
    if isinstance(counts, PairCounts):
        layout, cells = count_pairs_in_trees(counts, structure)
        found = FamilyCounts(layout)
        found.cells = cells
        return found
    if not np.array_equal(Structure(counts.parents).parents, structure.parents):
        raise ValueError(
            f"the counts are counts of the families of {Structure(counts.parents)!r}, but structure is "
            f"{structure!r}. Pass counts of pairs, or leave structure out."
        )
    return counts
