"""Selection of ridges on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._progress import Report, silent
from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import Ridges
from tanlearn.terms.joint_fitting import build_fit
from tanlearn.terms.losses import held_out_temperature
from tanlearn.training.losses import Loss

__all__ = ["HeldOutSearch", "log_softmax", "search_bytes"]

#: Factor between neighboring ridges, and the range of ridges.
STEP, LEAST, MOST = 4.0, 4.0**-3, 4.0**5
#: Maximum number of iterations of a fit on the training rows of a fold, and the relative decrease in the objective that
#: ends it. At 1e-4, the log loss on chess, where ridges are small, is 0.039 instead of 0.031.
MAX_ITER, LEAST_DECREASE = 60, 3e-5
#: A ridge is changed if the held-out loss falls by this fraction.
LEAST_GAIN = 1e-3


#: Number of parameter vectors in an L-BFGS search, and number kept by the search over ridges: about ten evaluations of
#: three folds.
_VECTORS = 30 + 30


def search_bytes(n_parameters: int) -> float:
    """Return the memory in bytes of a search over the ridges of a network with ``n_parameters`` parameters."""
    return 8.0 * _VECTORS * n_parameters


class SearchResult(NamedTuple):
    """Ridges with their held-out loss, and with the parameters and held-out scores of each fold."""

    ridges: Ridges
    loss: float
    parameters: list[FloatArray]
    scores: list[FloatArray]


class HeldOutSearch:
    """Coordinate search over the ridges of a network, by the log loss of held-out rows.

    If the training loss does not lead to probabilities, the scores are divided by the temperature with the lowest log
    loss. Each fit starts from the parameters for the closest ridges that have been tried.
    """

    def __init__(
        self,
        parts: Sequence[tuple[EncodedData, EncodedData]],
        resolutions: Sequence[Resolutions],
        networks: Sequence[TermStructure],
        loss: Loss,
        *,
        starts: Sequence[FloatArray] | None = None,
        n_jobs: int | None = None,
        report: Report = silent,
    ) -> None:
        # parts: training and held-out rows of each fold; resolutions, networks, starts: one entry for each fold.
        self._parts, self._loss, self._n_jobs, self._report = parts, loss, n_jobs, report
        bases = [TermBasis(*one) for one in zip(resolutions, networks, strict=True)]
        self._fits = [build_fit(basis, rest, loss) for basis, (rest, _) in zip(bases, parts, strict=True)]
        self._held_out_cells = [basis.encode(held_out.codes) for basis, (_, held_out) in zip(bases, parts, strict=True)]
        self._starts = [fit.start for fit in self._fits]
        if starts is not None:
            self._starts = [fit.warm_start(start) for fit, start in zip(self._fits, starts, strict=True)]
        self.results: dict[Ridges, SearchResult] = {}

    def loss(self, ridges: Ridges) -> float:
        """Return the mean log loss of the held-out rows of all folds."""
        if ridges not in self.results:
            starts = self._starts
            if self.results:
                starts = self.results[min(self.results, key=lambda one: _distance(one, ridges))].parameters

            def run(fold: int) -> tuple[FloatArray, FloatArray]:
                fit = self._fits[fold]
                found = fit.minimize(starts[fold], ridges, max_iter=MAX_ITER, least_decrease=LEAST_DECREASE).x
                return found, fit.scores_of_cells(found, self._held_out_cells[fold])

            found = in_threads(run, range(len(self._parts)), self._n_jobs)
            rows = [held_out for _, held_out in self._parts]
            temperature = held_out_temperature(self._loss, rows, [scores for _, scores in found])
            total = weight = 0.0
            for (_, scores), (_, held_out) in zip(found, self._parts, strict=True):
                losses = -log_softmax(scores / temperature)[np.arange(held_out.n_samples), held_out.y]
                total += float((held_out.weights * losses).sum())
                weight += float(held_out.weights.sum())
            self.results[ridges] = SearchResult(
                ridges, total / weight, [one for one, _ in found], [one for _, one in found]
            )
            shown = ", ".join(f"{ridge:.4g}" for ridge in ridges)
            self._report(f"ridges {shown}: held-out log loss {total / weight:.4f}", 2)
        return self.results[ridges].loss

    def result(self, ridges: Ridges) -> SearchResult:
        """Return the results of all folds for the given ridges."""
        self.loss(ridges)
        return self.results[ridges]

    def best(self, ridges: Ridges, moves: Sequence[tuple[int, ...]]) -> SearchResult:
        """Return the results with the best ridges that :meth:`climb` finds."""
        return self.result(self.climb(ridges, moves))

    def climb(self, ridges: Ridges, moves: Sequence[tuple[int, ...]]) -> Ridges:
        """Multiply or divide ridges of kinds of terms by 4 as long as the held-out loss falls.

        Each entry of ``moves`` lists kinds with ridges that change together.
        """
        best, waiting = self.loss(ridges), list(moves)
        while waiting:
            kinds, improved = waiting.pop(0), False
            for factor in (1 / STEP, STEP):
                while True:
                    trial = _scaled(ridges, kinds, factor)
                    if trial == ridges or self.loss(trial) >= best * (1 - LEAST_GAIN):
                        break
                    ridges, best, improved = trial, self.loss(trial), True
                if improved:
                    break
            if improved:
                waiting += [other for other in moves if other != kinds and other not in waiting]
        return ridges


def _scaled(ridges: Ridges, kinds: tuple[int, ...], factor: float) -> Ridges:
    """Return ridges multiplied by a factor for some kinds of terms, limited to the range of ridges."""
    return tuple(min(max(one * factor, LEAST), MOST) if kind in kinds else one for kind, one in enumerate(ridges))


def _distance(a: Ridges, b: Ridges) -> float:
    """Return the distance of two choices of ridges, on a logarithmic scale."""
    return float(np.abs(np.log(np.array(a) / np.array(b))).sum())


def log_softmax(scores: FloatArray) -> FloatArray:
    """Return the log posterior (n_samples, n_classes) of finite scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result
