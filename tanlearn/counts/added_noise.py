"""Record of noise that was added to counts for differential privacy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["AMOUNTS", "AddedNoise", "read_noise", "stored_noise"]

#: Numbers of a record, in the order of the fields of :class:`AddedNoise`.
AMOUNTS = ("standard_deviation", "epsilon", "delta")


@dataclass(frozen=True)
class AddedNoise:
    """Noise that was added to counts, and the privacy loss of this release.

    Parameters
    ----------
    mechanism : {"discrete Laplace", "discrete Gaussian"}
        Distribution of the noise.
    standard_deviation : float
        Standard deviation of the noise of each count.
    epsilon, delta : float
        Privacy loss of the release: the presence of one row changes the probability of any set of results at most by
        the factor exp(epsilon), plus delta.

    Examples
    --------
    >>> from tanlearn import PrivacyBudget, TableCounts, TableEncoder
    >>> encoder = TableEncoder().declare({"sex": ["female", "male"]})
    >>> counts = TableCounts.of_encoder(encoder, ["died", "survived"], pairs=False)
    >>> noise = PrivacyBudget(1).release(counts).noise[0]
    >>> noise.mechanism, round(noise.standard_deviation, 2)
    ('discrete Laplace', 2.8)
    """

    mechanism: str
    standard_deviation: float
    epsilon: float
    delta: float


def read_noise(stored: Any) -> tuple[AddedNoise, ...]:
    """Return the records from a file, a list of dictionaries. Raise ValueError for an invalid record."""
    names = {field.name for field in fields(AddedNoise)}
    if type(stored) is not list or any(type(own) is not dict or own.keys() != names for own in stored):
        raise ValueError(f"noise must be a list of objects with the keys {', '.join(sorted(names))}.")
    for own in stored:
        numbers = [own[name] for name in AMOUNTS]
        are_finite = all(type(one) is float and math.isfinite(one) for one in numbers)
        if type(own["mechanism"]) is not str or not are_finite:
            raise ValueError("the mechanism of noise must be a string, and its other values must be finite numbers.")
    return tuple(AddedNoise(**own) for own in stored)


def stored_noise(noise: tuple[AddedNoise, ...]) -> list[dict[str, Any]]:
    """Return records in the form that is stored in a file."""
    return [asdict(own) for own in noise]
