"""Checkpoint of a search: a line that identifies the search, and a line of JSON for each finished training."""

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
#: Parameters that do not affect the outcome of a training.
_IRRELEVANT = {"checkpoint", "n_jobs", "verbose"}


def fingerprint(estimator: Any, parts: Sequence[Part], runs: Sequence[Run]) -> str:
    """Return a SHA-256 digest of the inputs of a search: estimator, data, runs and library version.

    Raises ValueError if a parameter, such as a lambda, cannot be serialized.
    """
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _IRRELEVANT}
    # This string distinguishes searches from searches of older versions, which scored runs before calibration.
    return digest(
        "search", ["scores after calibration", type(estimator).__qualname__, parameters, list(runs), list(parts)]
    )


class SearchCheckpoint:
    """File of finished trainings, to which each result is appended.

    If the process or the machine was stopped while it wrote a line, only that line is lost. Raises ValueError if the
    file belongs to another search or is not a checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)  # created if it does not exist
        self.finished: list[RunResult] = []  # results that the file already contained
        header = {"tanlearn_search": _FORMAT, "fingerprint": digest}
        content = read_file(path, CHECKPOINT) if self.path.exists() else b""
        if _line(header).startswith(content) and not content.endswith(b"\n"):  # new, or interrupted during the header
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
                f"{self.path} is not a search checkpoint, or is damaged ({error}). Pass another path, or remove "
                f"this file."
            ) from error
        if found[0] < _FORMAT:
            raise ValueError(
                f"{self.path} has format {found[0]}, but this version reads only format {_FORMAT}. Pass another path, "
                f"or remove this file to start a new search."
            )
        if found[0] > _FORMAT:
            raise ValueError(
                f"{self.path} has format {found[0]}, but this version reads only format {_FORMAT}. Upgrade tanlearn."
            )
        if found[1] != digest:
            raise ValueError(
                f"{self.path} is the checkpoint of a search with other data, settings or seed. Pass another path, "
                f"or remove this file to start a new search."
            )
        self.finished = results
        if unfinished:
            with explain_failure(self.path, CHECKPOINT):
                os.truncate(self.path, len(whole) + 1)

    def append(self, result: RunResult) -> None:
        """Append a finished training and flush it to the disk."""
        self._write(asdict(result))

    def _write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        append_to_file(self.path, _line(line), CHECKPOINT)


def _read_result(line: Any) -> RunResult:
    """Return the result in a line of the file. Raise ValueError if a value has the wrong type."""
    result = RunResult(**line)
    numbers = result.setting, result.part, result.n_parameters, result.size_bits, result.n_operations
    if not all(type(number) is int and number >= 0 for number in numbers) or type(result.failure) is not str:
        raise ValueError(f"{reprlib.repr(line)} is not the result of a training")
    if not all(type(number) in (int, float) for number in (result.score, result.seconds)):
        raise ValueError(f"the score or the seconds of {reprlib.repr(line)} are not numbers")
    return result


def _line(content: dict[str, Any]) -> bytes:
    """Return the content as a line of JSON."""
    return f"{json.dumps(content)}\n".encode()
