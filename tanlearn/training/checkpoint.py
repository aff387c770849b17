"""The file from which a training by gradient goes on after an interruption, to the model of an uninterrupted one."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn._warnings import warn
from tanlearn.files.archive import ExplainedError, fields, pack, read_archive
from tanlearn.files.regular_files import CHECKPOINT, write_file
from tanlearn.files.values import Reader, Writer

__all__ = ["TrainingCheckpoint"]

#: Seconds between two writings at least: what a power cut may cost, beside an epoch.
INTERVAL = 10.0
#: And so many times what the last writing took, which keeps it below 2% of the time where disks are slow.
PAUSE = 50


class TrainingCheckpoint:
    """The last finished epoch of one training, in memory after every epoch and in a file from time to time.

    The file is an archive like that of a model (see :mod:`tanlearn.files.models`), replaced in whole at each writing.
    Nothing is locked: of two trainings that write to one path, the file is that of the later writer.

    In a ``with`` statement, what is kept is written at its end, and if an exception ends it, a failure to write becomes
    a note of that one.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        # path: Where; need not be there. fingerprint: What tells the training from others.
        self.path, self.fingerprint = path, fingerprint
        self._unwritten: Callable[[], Any] | None = None
        self._due = -math.inf

    def __enter__(self) -> TrainingCheckpoint:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.flush()
        except OSError as failure:
            if error is None:
                raise
            error.add_note(f"The epochs since the last writing are lost: {failure}")

    def restore(self, set_state: Callable[[Any], None]) -> None:
        """Hand over what the file holds, if there is one."""

        def hand_over(description: Any, arrays: dict[str, AnyArray]) -> None:
            fingerprint, state = fields(description, "fingerprint", "state")
            if fingerprint != self.fingerprint:
                raise ExplainedError(
                    "it is the checkpoint of a training with other data, settings or seed, or by another version of "
                    "tanlearn. Name another file, or remove this one to start anew."
                )
            reader = Reader(arrays)
            found = reader.decode(state)
            reader.finish()
            set_state(found)

        if os.path.exists(self.path):
            read_archive(self.path, hand_over, CHECKPOINT)

    def keep(self, get_state: Callable[[], Any]) -> None:
        """Take the state after an epoch, and write it if the last writing is long ago; the first is at once."""
        self._unwritten = get_state
        if time.monotonic() < self._due:
            return
        try:
            self.flush()
        except PermissionError as error:
            if self._due == -math.inf:
                raise
            self._unwritten, self._due = get_state, time.monotonic() + INTERVAL
            message = f"{error} The training goes on; it is tried again in {INTERVAL:g} seconds, and at the end."
            warn(message, RuntimeWarning)

    def flush(self) -> None:
        """Write what was kept last, unless it is in the file."""
        if self._unwritten is None:
            return
        started = time.monotonic()
        writer = Writer()
        state = writer.encode(self._unwritten(), "training", "state")
        content = pack({"fingerprint": self.fingerprint, "state": state}, writer.arrays, CHECKPOINT)
        try:
            write_file(self.path, content, CHECKPOINT)
        except OSError:
            self._unwritten = None  # who flushes on the way out does not fail twice
            raise
        self._unwritten = None
        now = time.monotonic()
        self._due = now + max(INTERVAL, PAUSE * (now - started))
