"""Checkpoint files, from which an interrupted gradient training resumes. The model is as without interruption."""

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

#: Minimum time between two writes, in seconds. After a power failure, at most this time plus one epoch is lost.
INTERVAL = 10.0
#: Minimum time between two writes, as a multiple of the duration of the last write. Writes to slow disks then take less
#: than 2 % of the time.
PAUSE = 50


class TrainingCheckpoint:
    """State of one training after its last finished epoch, kept in memory and written to a file from time to time.

    The file is an archive in the format of a model file (see :mod:`tanlearn.files.models`). Each write replaces the
    whole file. The file is not locked. If two trainings write to one path, the file contains the state that was written
    last.

    At the end of a ``with`` block, the pending state is written. If the block was left by an exception, the error of a
    failed write is added to the exception as a note.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        # The file may not exist yet. The fingerprint identifies data, settings, seed and version of the training.
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
        """Pass the stored state to ``set_state`` if the file exists.

        Raises ValueError if the file belongs to another training, is damaged, or was written by a newer version.
        """

        def hand_over(description: Any, arrays: dict[str, AnyArray]) -> None:
            fingerprint, state = fields(description, "fingerprint", "state")
            if fingerprint != self.fingerprint:
                raise ExplainedError(
                    "the file is a checkpoint of another training: the data, the settings, the seed or the version "
                    "of tanlearn differ. Name another file, or remove this file to start again."
                )
            reader = Reader(arrays)
            found = reader.decode(state)
            reader.finish()
            set_state(found)

        if os.path.exists(self.path):
            read_archive(self.path, hand_over, CHECKPOINT)

    def keep(self, get_state: Callable[[], Any]) -> None:
        """Keep the state after an epoch, and write it to the file if a write is due. The first call always writes.

        ``get_state`` is called when the state is written. It must return the state at the time of this call, as values
        that :class:`~tanlearn.files.values.Writer` can encode. A failed write leaves the previous file unchanged. A
        PermissionError is raised only in the first write. Later, it becomes a RuntimeWarning, because virus scanners
        may lock files briefly.
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
        """Write the last kept state if the file does not contain it yet.

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
