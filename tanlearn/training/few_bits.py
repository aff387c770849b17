"""Training for tables of a few bits, whose split into integer and fraction bits is searched ([RE]).

[RE] Roth, Schindler, Froening, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.quantization import MAX_BITS, FixedPoint
from tanlearn.training.cuda_training import train_together
from tanlearn.training.losses import Loss
from tanlearn.training.settings import TrainingOutcome, TrainingSettings
from tanlearn.training.training import Training, error_rate, train

__all__ = ["best_split", "read_bits", "train_in_bits", "trainings_in_bits"]

#: Integer bits to choose from where only the total is given ([RE] V-B).
INTEGER_BITS = range(1, 7)


def read_bits(bits: Any) -> list[FixedPoint | None]:
    """Return the formats that a user's ``bits`` leave to choose from."""
    if bits is None:
        return [None]
    if isinstance(bits, (int, np.integer)) and type(bits) is not bool and 1 <= bits <= MAX_BITS:
        return [FixedPoint(integer_bits, int(bits) - integer_bits) for integer_bits in INTEGER_BITS]
    if isinstance(bits, Sequence) and not isinstance(bits, str) and len(bits) == 2:
        return [FixedPoint(*bits)]
    raise ValueError(
        f"bits must be None, a number of bits from 1 to {MAX_BITS}, or a tuple of integer and fraction bits whose sum "
        f"is such a number; got {bits!r}."
    )


def train_in_bits(
    bits: Any,
    data: EncodedData,
    candidates: CandidateSets,
    loss: Loss,
    settings: TrainingSettings,
    rng: np.random.Generator,
    *,
    validation: EncodedData | None = None,
    n_jobs: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    checkpoint: Any = None,
    start: Any = None,
    verbose: int = 0,
) -> TrainingOutcome:
    """Train as :func:`tanlearn.training.training.train` does, for numbers of so many bits.

    If the split is open, every one is trained, from the same random numbers, and the one with the fewest errors is
    kept: on the validation rows, or without any on the training rows. Of equals, the one with the lowest last loss.
    """
    formats = read_bits(bits)
    options = {"validation": validation, "callback": callback, "start": start}
    if len(formats) == 1:
        chosen = replace(settings, fixed_point=formats[0])
        return train(data, candidates, loss, chosen, rng, n_jobs=n_jobs, checkpoint=checkpoint, **options)
    if checkpoint is not None:
        raise ValueError(
            f"bits={bits} trains {len(formats)} splits, and a checkpoint is of one training: name integer and fraction "
            f"bits, such as bits=({min(3, bits)}, {bits - min(3, bits)}), or leave the checkpoint out."
        )

    def train_split(fixed_point: FixedPoint | None) -> TrainingOutcome:
        chosen = replace(settings, fixed_point=fixed_point)
        return train(data, candidates, loss, chosen, copy.deepcopy(rng), n_jobs=1, **options)

    outcomes: Sequence[TrainingOutcome | Exception]
    if data.device == "cuda":
        outcomes = train_together(list(trainings_in_bits(bits, data, candidates, loss, settings, rng, **options)))
    else:  # each is made in its thread, since it takes memory for all candidates' tables
        outcomes = in_threads(train_split, formats, n_jobs)
    return best_split(outcomes, data, validation, verbose=verbose)


def trainings_in_bits(
    bits: Any,
    data: EncodedData,
    candidates: CandidateSets,
    loss: Loss,
    settings: TrainingSettings,
    rng: np.random.Generator,
    **options: Any,
) -> Iterator[Training]:
    """Yield the trainings, not begun, that :func:`train_in_bits` chooses from."""
    for fixed_point in read_bits(bits):
        chosen = replace(settings, fixed_point=fixed_point)
        yield Training(data, candidates, loss, chosen, copy.deepcopy(rng), **options)


def best_split(
    outcomes: Sequence[TrainingOutcome | Exception],
    data: EncodedData,
    validation: EncodedData | None = None,
    *,
    verbose: int = 0,
) -> TrainingOutcome:
    """Return the outcome with the fewest errors, of equals the one with the lowest last loss."""
    sound = []
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
        sound.append(outcome)
    if len(sound) == 1:
        return sound[0]
    rows = data if validation is None else validation
    ranks = [(error_rate(one.structure, one.tables, rows), one.history[-1].loss) for one in sound]
    best = sound[ranks.index(min(ranks))]
    if verbose:
        where = "training" if validation is None else "validation"
        integer_bits, fraction_bits = best.tables.bits or (0, 0)
        lines = [
            f"{integer_bits + fraction_bits} bits: {integer_bits} integer and {fraction_bits} fraction bits chosen, "
            f"for the fewest errors on {where} rows, of equals the lowest loss:"
        ]
        for one, (error, loss) in zip(sound, ranks, strict=True):
            lines.append(f"  {one.tables.bits}: error {error:.2%}, loss {loss:.4g}{', chosen' * (one is best)}")
        print("\n".join(lines))  # noqa: T201
    return best
