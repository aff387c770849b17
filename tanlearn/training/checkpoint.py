"""Checkpoint files: an interrupted gradient training resumes and gives the model of an uninterrupted one."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn._warnings import warn
from tanlearn.encoding.stored_values import fields
from tanlearn.files.archive import ExplainedError, pack, read_archive
from tanlearn.files.regular_files import CHECKPOINT, write_file
from tanlearn.files.values import Reader, Writer

__all__ = ["TrainingCheckpoint"]

#: Minimum time between two writes in seconds. A power failure loses at most this time plus one epoch.
INTERVAL = 10.0
#: The pause is also at least this multiple of the last write's duration: writes to slow disks take less than 2 % of the
#: time.
PAUSE = 50


class TrainingCheckpoint:
    """Latest finished epoch of one training, kept in memory and written to a file from time to time.

    The file is an archive in the format of a model file (see :mod:`tanlearn.files.models`). Each write replaces the
    whole file. The file is not locked. If two trainings write to one path, the file holds the state that was written
    last.

    Used as a context manager, it writes the pending state on exit. If an exception is already propagating, a failed
    write is attached to it as a note.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        # The file need not exist. The fingerprint identifies data, settings, seed and version of the training.
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
            error.add_note(f"The epochs since the last write are lost: {failure}")

    def restore(self, set_state: Callable[[Any], None]) -> None:
        """Pass the stored state to ``set_state``, if the file exists.

        Raises ValueError if the file belongs to another training, is damaged, or is from a newer version.
        """

        def hand_over(description: Any, arrays: dict[str, AnyArray]) -> None:
            fingerprint, state = fields(description, "fingerprint", "state")
            if fingerprint != self.fingerprint:
                raise ExplainedError(
                    "the file is a checkpoint of another training: the data, the settings, the seed or the version "
                    "of tanlearn differ. Name another file, or remove this one to start anew."
                )
            reader = Reader(arrays)
            found = reader.decode(state)
            reader.finish()
            set_state(found)

        if os.path.exists(self.path):
            read_archive(self.path, hand_over, CHECKPOINT)

    def keep(self, get_state: Callable[[], Any]) -> None:
        """Keep the state after an epoch, and write it to the file when a write is due; the first call always writes.

        ``get_state`` is called when the state is written. It must return the state at the time of this call, as values
        that :class:`~tanlearn.files.values.Writer` can encode. A failed write leaves the previous file unchanged. A
        PermissionError is raised on the first write only and is a RuntimeWarning later, because virus scanners may lock
        files briefly.
        """
        self._unwritten = get_state
        if time.monotonic() < self._due:
            return
        try:
            self.flush()
        except PermissionError as error:
            if self._due == -math.inf:
                raise
            self._unwritten, self._due = get_state, time.monotonic() + INTERVAL
            message = f"{error} Training continues; the write is retried in {INTERVAL:g} seconds, and at the end."
            warn(message, RuntimeWarning)

    def flush(self) -> None:
        """Write the state kept last, if it is not yet in the file.

        A failed write raises OSError and leaves the previous file unchanged.
        """
        if self._unwritten is None:
            return
        started = time.monotonic()
        writer = Writer()
        state = writer.encode(self._unwritten(), "training", "state")
        content = pack({"fingerprint": self.fingerprint, "state": state}, writer.arrays, CHECKPOINT)
        try:
            write_file(self.path, content, CHECKPOINT)
        except OSError:
            self._unwritten = None  # __exit__ flushes again and must not fail a second time
            raise
        self._unwritten = None
        now = time.monotonic()
        self._due = now + max(INTERVAL, PAUSE * (now - started))
