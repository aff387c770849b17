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
    """Return a digest of all that decides how a search turns out: estimator, data, runs, and the library's version.

    Parameters
    ----------
    estimator : TANClassifier
        What the runs start from.
    parts : sequence of Part
        The data.
    runs : sequence of Run
        The trainings.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    ValueError
        If a parameter, such as a lambda, has no content that could be written down.
    """
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _IRRELEVANT}
    # Files of searches that scored runs before calibration belong to other searches.
    return digest(
        "search", ["scores after calibration", type(estimator).__qualname__, parameters, list(runs), list(parts)]
    )


class SearchCheckpoint:
    """Finished trainings in a file, appended one by one.

    A file that ends in the middle of a line (the process or the machine was stopped) loses that line only.

    Parameters
    ----------
    path : str or path
        Where; made if it is not there.
    digest : str
        The :func:`fingerprint` of the search.

    Attributes
    ----------
    finished : list of RunResult
        What the file held.

    Raises
    ------
    ValueError
        If the file is of another search, or no checkpoint at all.
    OSError
        If the file cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn.search.checkpoint import SearchCheckpoint
    >>> from tanlearn.search.runs import RunResult
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SearchCheckpoint(f"{folder}/search.jsonl", "digest").append(RunResult(0, 0, 0.9, 100, 1.5))
    ...     SearchCheckpoint(f"{folder}/search.jsonl", "digest").finished
    [RunResult(setting=0, part=0, score=0.9, n_parameters=100, seconds=1.5, failure='')]
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self.finished: list[RunResult] = []
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
        """Write a finished training, and see that it reaches the disk.

        Parameters
        ----------
        result : RunResult
            What to write.
        """
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
