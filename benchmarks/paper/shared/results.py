"""Finished trainings as lines of JSON: what is committed is packed, and what runs append lies beside it.

``letter.jsonl.xz`` is packed and in git. ``letter.jsonl``, which git ignores, gets a line whenever a training ends, so
runs may be stopped at any time. The results are both together; ``pack`` joins them.
"""

import fcntl
import json
import lzma
import os

from tanlearn.files.regular_files import Kind, write_file

_KIND = Kind("file of results", "Name another file", "Take it from git again")


def packed(path):
    """Return where the packed lines of a file of results are."""
    return path.with_name(f"{path.name}.xz")


def read(path):
    """Return the finished trainings; a last line that was not written to its end does not count."""
    return [json.loads(line) for line in _lines(path)]


def reopen(path):
    """Make room for a file of results, or cut off a last line that was not written to its end; return all lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    if not content.endswith(b"\n") and content:
        os.truncate(path, content.rfind(b"\n") + 1)
    return read(path)


def append(path, line):
    """Write a finished training, and see that it reaches the disk."""
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def pack(path):
    """Join appended lines with the packed ones, all or none, and say how many there are."""
    if not path.exists():  # nothing was appended
        return
    with path.open("a", encoding="utf-8") as appended:
        fcntl.flock(appended, fcntl.LOCK_EX)  # a run that is not stopped waits, and then appends to an empty file
        lines = _lines(path)
        write_file(packed(path), lzma.compress(b"".join(lines), preset=9 | lzma.PRESET_EXTREME), _KIND)
        appended.truncate(0)
    print(f"{packed(path)}: {len(lines):,} lines")


def _lines(path):
    """Return the packed lines, and those appended since; a pack that was stopped leaves lines that are both."""
    try:
        before = lzma.decompress(packed(path).read_bytes()).splitlines(keepends=True)
    except FileNotFoundError:
        before = []
    except lzma.LZMAError as error:
        raise SystemExit(f"{packed(path)} is damaged ({error}). {_KIND.damaged}, {path.name} may stay.") from error
    content = path.read_bytes() if path.exists() else b""
    known = set(before)
    appended = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    return before + [line for line in appended if line not in known]
