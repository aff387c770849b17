"""Training of fixed-point parameters with few bits, including a search for the number of fraction bits ([RE]).

[RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tanlearn._progress import print_line
from tanlearn._threads import in_threads
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.quantization import MAX_BITS, FixedPoint
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.training.cuda_training import train_together
from tanlearn.training.losses import Loss
from tanlearn.training.settings import TrainingOutcome, TrainingSettings
from tanlearn.training.training import Training, error_rate, train

__all__ = ["best_split", "read_bits", "train_in_bits", "trainings_in_bits"]

#: Candidates for the number of integer bits if only the total number of bits is given ([RE] V-B).
INTEGER_BITS = range(1, 7)


def read_bits(bits: Any) -> list[FixedPoint | None]:
    """Return the fixed-point formats that ``bits`` allows.

    ``None`` means no rounding; the result is ``[None]``. For an integer, the total number of bits, the result contains
    one format per split. For a tuple of integer and fraction bits, it contains only this format. Any other value raises
    ValueError.
    """
    if bits is None:
        return [None]
    if isinstance(bits, (int, np.integer)) and type(bits) is not bool and 1 <= bits <= MAX_BITS:
        return [FixedPoint(integer_bits, int(bits) - integer_bits) for integer_bits in INTEGER_BITS]
    if isinstance(bits, Sequence) and not isinstance(bits, str) and len(bits) == 2:
        return [FixedPoint(*bits)]
    raise ValueError(
        f"bits must be None, a number of bits from 1 to {MAX_BITS}, or a tuple of integer and fraction bits whose sum "
        f"is such a number, got {bits!r}."
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
    is_format_given: bool = True,
) -> TrainingOutcome:
    """Train like :func:`tanlearn.training.training.train`, with parameters rounded to ``bits``.

    If ``bits`` is only the total, every split is trained with the same random numbers. The outcome with the lowest
    error on the validation rows, or on the training rows if there are no validation rows, is returned. Ties are broken
    by the lowest final loss. ``n_jobs`` is the number of threads for one training, or for several splits with one
    thread each. The outcome does not depend on it. The callback is called by every training. A checkpoint requires a
    single split; otherwise, ValueError is raised. With ``verbose=1``, the splits are printed with their errors and
    losses.
    """
    formats = read_bits(bits)
    options: dict[str, Any] = {"validation": validation, "callback": callback, "start": start}
    if len(formats) == 1:
        chosen = replace(settings, fixed_point=formats[0])
        options |= {"checkpoint": checkpoint, "is_format_given": is_format_given}
        return train(data, candidates, loss, chosen, rng, n_jobs=n_jobs, **options)
    if checkpoint is not None:
        raise ValueError(
            f"a checkpoint can store only one training, but bits={bits} trains {len(formats)} splits into integer and "
            f"fraction bits. Set both numbers, such as bits=({min(3, bits)}, {bits - min(3, bits)}), or omit the "
            f"checkpoint."
        )

    def train_split(fixed_point: FixedPoint | None) -> TrainingOutcome:
        chosen = replace(settings, fixed_point=fixed_point)
        return Training(data, candidates, loss, chosen, copy.deepcopy(rng), **options).run(1)

    outcomes: Sequence[TrainingOutcome | Exception]
    if data.device != "cpu":
        outcomes = train_together(list(trainings_in_bits(bits, data, candidates, loss, settings, rng, **options)))
    else:  # trainings are created in the threads, because each one allocates the CPTs of all candidates
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
    """Yield one training for each split of :func:`train_in_bits`, before it begins, with its own copy of ``rng``."""
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
    """Return the outcome with the lowest error on the validation rows, or on ``data`` if there are no such rows.

    Ties are broken by the lowest final loss. If a training failed, its exception is raised.
    """
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
            f"which have the lowest error on {where} rows (ties are broken by the loss):"
        ]
        for one, (error, loss) in zip(sound, ranks, strict=True):
            lines.append(f"  {one.tables.bits}: error {error:.2%}, loss {loss:.4g}{', chosen' * (one is best)}")
        print_line("\n".join(lines))
    return best
