"""The file in which a search keeps what is finished: a line that names the search, then one line of JSON a training."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tanlearn.population import Part, Run, RunResult

__all__ = ["SearchCheckpoint", "fingerprint"]

_FORMAT = 1
#: Parameters that change nothing about the outcome of a training.
_IRRELEVANT = {"n_jobs", "verbose"}


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
    digest = hashlib.sha256(version("tanlearn").encode())
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _IRRELEVANT}
    _feed(digest, [type(estimator).__qualname__, parameters, list(runs), list(parts)])
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest by its content: representations abbreviate, and name addresses."""
    digest.update(f"<{type(value).__module__}.{type(value).__qualname__}".encode())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digest.update(repr(value).encode())
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        digest.update(f"{value.dtype}{np.shape(value)}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple, np.ndarray)):
        for item in value:
            _feed(digest, item)
    elif isinstance(value, dict):
        for key in sorted(value):
            _feed(digest, key)
            _feed(digest, value[key])
    elif hasattr(value, "get_params"):
        _feed(digest, value.get_params(deep=False))
    elif hasattr(value, "__dict__") and not callable(value):
        _feed(digest, vars(value))
    else:
        try:
            digest.update(pickle.dumps(value))
        except Exception as error:
            raise ValueError(
                f"a checkpoint cannot tell this search from another, because {value!r} cannot be written down "
                f"({error}). Leave the checkpoint out, or define it at the top of a module."
            ) from error
    digest.update(b">")


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
    >>> from tanlearn.checkpoint import SearchCheckpoint
    >>> from tanlearn.population import RunResult
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SearchCheckpoint(f"{folder}/search.jsonl", "digest").append(RunResult(0, 0, 0.9, 100, 1.5))
    ...     SearchCheckpoint(f"{folder}/search.jsonl", "digest").finished
    [RunResult(setting=0, part=0, score=0.9, n_parameters=100, seconds=1.5, failure='')]
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self.finished: list[RunResult] = []
        header = {"tanlearn_search": _FORMAT, "fingerprint": digest}
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        if (json.dumps(header) + "\n").startswith(text) and not text.endswith("\n"):  # new, or stopped at once
            self.path.write_text("", encoding="utf-8")
            self._write(header)
            return
        whole, _, unfinished = text.rpartition("\n")
        try:
            first, *lines = [json.loads(line) for line in whole.split("\n")]
            found = first["tanlearn_search"], first["fingerprint"]
            results = [RunResult(**line) for line in lines]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{self.path} is no search checkpoint, or is damaged ({error}). Name another file, or remove this one."
            ) from error
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
            os.truncate(self.path, len((whole + "\n").encode()))

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
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
