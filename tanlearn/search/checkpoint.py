"""The file in which a search keeps what is finished: a line that names the search, then one line of JSON a training."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tanlearn.files.fingerprints import digest
from tanlearn.files.regular_files import CHECKPOINT, append_to_file, explain_failure, read_file
from tanlearn.search.runs import Part, Run, RunResult

__all__ = ["SearchCheckpoint", "fingerprint"]

_FORMAT = 2
#: Parameters that change nothing about the outcome of a training.
_IRRELEVANT = {"checkpoint", "n_jobs", "verbose"}


def fingerprint(estimator: Any, parts: Sequence[Part], runs: Sequence[Run]) -> str:
    """Return a digest of all that decides how a search turns out: estimator, data, runs, and the library's version."""
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _IRRELEVANT}
    # Files of searches that scored runs before calibration belong to other searches.
    return digest(
        "search", ["scores after calibration", type(estimator).__qualname__, parameters, list(runs), list(parts)]
    )


class SearchCheckpoint:
    """Finished trainings in a file, appended one by one.

    A file that ends in the middle of a line (the process or the machine was stopped) loses that line only.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)  # Where; made if it is not there
        self.finished: list[RunResult] = []  # What the file held
        header = {"tanlearn_search": _FORMAT, "fingerprint": digest}
        content = read_file(path, CHECKPOINT) if self.path.exists() else b""
        if _line(header).startswith(content) and not content.endswith(b"\n"):  # new, or stopped at once
            with explain_failure(path, CHECKPOINT):
                if content:
                    os.truncate(path, 0)
            self._write(header)
            return
        whole, _, unfinished = content.rpartition(b"\n")
        try:
            first, *lines = [json.loads(line) for line in whole.split(b"\n")]
            found = int(first["tanlearn_search"]), first["fingerprint"]
            results = [_read_result(line) for line in lines]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{self.path} is no search checkpoint, or is damaged ({error}). Name another file, or remove this one."
            ) from error
        if found[0] < _FORMAT:
            raise ValueError(
                f"{self.path} has format {found[0]}, which lacks what this version keeps. Name another file, or remove "
                f"this one to start anew."
            )
        if found[0] > _FORMAT:
            raise ValueError(
                f"{self.path} has format {found[0]}, this version reads up to {_FORMAT}: upgrade tanlearn."
            )
        if found[1] != digest:
            raise ValueError(
                f"{self.path} is the checkpoint of a search with other data, settings or seed. Name another file, or "
                f"remove this one to start anew."
            )
        self.finished = results
        if unfinished:
            with explain_failure(self.path, CHECKPOINT):
                os.truncate(self.path, len(whole) + 1)

    def append(self, result: RunResult) -> None:
        """Write a finished training, and see that it reaches the disk."""
        self._write(asdict(result))

    def _write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        append_to_file(self.path, _line(line), CHECKPOINT)


def _read_result(line: Any) -> RunResult:
    """Return what a line of the file holds, if its values are of the right types."""
    result = RunResult(**line)
    numbers = result.setting, result.part, result.n_parameters, result.size_bits, result.n_operations
    if not all(type(number) is int and number >= 0 for number in numbers) or type(result.failure) is not str:
        raise ValueError(f"{reprlib.repr(line)} is no result of a training")
    if not all(type(number) in (int, float) for number in (result.score, result.seconds)):
        raise ValueError(f"{reprlib.repr(line)} holds something else than numbers")
    return result


def _line(content: dict[str, Any]) -> bytes:
    """Return a line of the file."""
    return f"{json.dumps(content)}\n".encode()
