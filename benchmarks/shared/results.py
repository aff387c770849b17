"""Files of results: a line of JSON for each finished training.

``letter.jsonl.xz`` is packed and in git. A line is appended to ``letter.jsonl``, which git ignores, whenever a training
ends, so that runs can be stopped at any time. The results are in both files, and ``pack`` joins them."""

import fcntl
import json
import lzma
import os

from joblib import Parallel, delayed

from tanlearn.files.regular_files import Kind, write_file

from .versions import VERSIONS

_KIND = Kind("file of results", "Name another file", "Take it from git again")


def line_key(*fields):
    """Return a function from a line to the values of the fields that identify it, with tuples instead of lists."""

    def key(line):
        return tuple(tuple(value) if isinstance(value, list) else value for value in (line[name] for name in fields))

    return key


class Results:
    """The finished lines of a file, found by their keys; ``append`` adds one to both."""

    def __init__(self, path, key, versions=VERSIONS):
        self.path, self._key, self._versions = path, key, versions
        self._lines = {key(line): line for line in reopen(path)}

    def __contains__(self, line):
        """Return whether a line with the same key is finished."""
        return self._key(line) in self._lines

    def __getitem__(self, line):
        """Return the finished line with the same key."""
        return self._lines[self._key(line)]

    def __iter__(self):
        return iter(list(self._lines.values()))

    def missing(self, lines):
        """Return the lines that are not finished."""
        return [line for line in lines if line not in self]

    def append(self, line):
        """Append a finished line, with the versions that computed it, and return it."""
        line = {**line, "versions": self._versions}
        append(self.path, line)
        self._lines[self._key(line)] = line
        return line


def append_all(results, calls, n_jobs, prefer=None):
    """Call functions in parallel; append each line when it is returned, and yield its number and the line."""
    parallel = Parallel(n_jobs, prefer=prefer, return_as="generator_unordered")
    for number, line in enumerate(parallel(delayed(call)() for call in calls), start=1):
        yield number, results.append(line)


def pooled_error(lines):
    """Return the wrong rows of several folds over their rows."""
    return sum(line["error"] * line["rows"] for line in lines) / sum(line["rows"] for line in lines)


def packed(path):
    """Return the path of the packed lines of a file of results."""
    return path.with_name(f"{path.name}.xz")


def read(path):
    """Return the finished lines; an incomplete last line is ignored."""
    return [json.loads(line) for line in _lines(path)]


def reopen(path):
    """Create the folder of a file of results, or truncate an incomplete last line; return all lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    if not content.endswith(b"\n") and content:
        os.truncate(path, content.rfind(b"\n") + 1)
    return read(path)


def append(path, line):
    """Append a finished line, and wait until it is on the disk."""
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def pack(path):
    """Join appended lines with the packed ones, all or none, and print their number."""
    if not path.exists():  # nothing was appended
        return
    with path.open("a", encoding="utf-8") as appended:
        fcntl.flock(appended, fcntl.LOCK_EX)  # a run that is not stopped waits, and then appends to an empty file
        lines = _lines(path)
        write_file(packed(path), lzma.compress(b"".join(lines), preset=9 | lzma.PRESET_EXTREME), _KIND)
        appended.truncate(0)
    print(f"{packed(path)}: {len(lines):,} lines")


def _lines(path):
    """Return the packed lines and those appended since; an interrupted pack leaves some in both files."""
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
