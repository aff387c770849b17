"""Reading and atomic writing of regular files, with errors that contain a remedy.

All files of tanlearn are written by this module. Named pipes, sockets, devices and standard streams are rejected,
because replacing one of them with a file would disconnect the program at its other end. A replaced file keeps its
owner, group, permissions and access control list if the system permits it. Otherwise, the permissions become narrower,
never wider. A symbolic link is kept, and its target is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CHECKPOINT",
    "COUNTS",
    "MODEL",
    "SUMMARY",
    "Kind",
    "append_to_file",
    "explain_failure",
    "read_file",
    "special_kind",
    "write_file",
]

_REMEDIES = {
    errno.ENOSPC: "Free some space, or name a path elsewhere.",
    errno.EDQUOT: "Free some space, or name a path elsewhere.",
    errno.ENOENT: "Make the folder first, or correct the path.",
    errno.EISDIR: "Name a file in it.",
}
_SPECIAL = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: Names of open streams. If a stream belongs to a regular file that is replaced, it would still refer to the old file.
_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


class Kind(NamedTuple):
    """Kind of a file, with the remedies for messages."""

    name: str  # name in messages and manifests
    other: str  # remedy for a file of another kind
    damaged: str  # remedy for a damaged file

    @property
    def format(self) -> str:
        """Value of ``format`` in the manifest."""
        return f"tanlearn {self.name}"


MODEL = Kind("model", "Name a file that tanlearn's save has written", "Use an intact copy, or save the model again")
COUNTS = Kind("counts file", "Name a file that tanlearn counts has written", "Use an intact copy, or count again")
SUMMARY = Kind(
    "summary", "Name a file that tanlearn counts --summary has written", "Use an intact copy, or make it again"
)
CHECKPOINT = Kind("checkpoint", "Name another file", "Use an intact copy, or remove it to start again")


def special_kind(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a path, such as "a named pipe", or None for a regular or absent file.

    Symbolic links are followed. OSError is raised if the system cannot determine the kind.
    """
    if Path(path).absolute().as_posix().startswith(_STREAMS):
        return "a stream that is open already"
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if stat.S_ISREG(mode) else _SPECIAL.get(stat.S_IFMT(mode), "a special file")


def read_file(path: str | os.PathLike[str], kind: Kind = MODEL) -> bytes:
    """Return the content of a regular file. An OSError contains the error number of the system and a remedy."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):  # reading from a pipe may never end
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(number, f"it is {_SPECIAL.get(stat.S_IFMT(mode), 'a special file')}, not a regular file")
        return Path(path).read_bytes()
    except OSError as error:
        message = f"the {kind.name} cannot be read ({error.strerror or error}). {kind.other}"
        raise OSError(error.errno, message, os.fspath(path)) from error


@contextlib.contextmanager
def explain_failure(path: str | os.PathLike[str], kind: Kind) -> Iterator[None]:
    """Within this context, which writes a file, add a remedy to each OSError. An existing file must stay unchanged."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "Name a file in a folder that you may write to.")
        reason = error.strerror or error
        message = f"the {kind.name} cannot be written ({reason}). An existing file is unchanged. {remedy}"
        raise OSError(error.errno, message, os.fspath(path)) from error


def write_file(path: str | os.PathLike[str], content: bytes, kind: Kind = MODEL) -> None:
    """Write a regular file atomically, by writing, syncing and renaming a new file in the same folder.

    An existing file is replaced, and its permissions are kept. For a symbolic link, its target is replaced. If the path
    is not a regular file, is read-only or cannot be written, OSError is raised, and an existing file is unchanged.
    """
    with explain_failure(path, kind):
        _refuse_special(path)
        target = Path(os.path.realpath(path))
        beside = target.with_name(f".tanlearn-{secrets.token_hex(8)}.tmp")
        replaced = os.stat(target) if target.exists() else None
        if replaced is not None and not os.access(target, os.W_OK):
            raise OSError(errno.EACCES, "the file is read-only")
        # The content of a private file must not be readable by others, not even while it is written.
        mode = 0o666 if replaced is None else 0o600
        try:
            with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                file.write(content)
                file.flush()
                if replaced is not None:
                    _keep_permissions(target, replaced, beside)
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
    _sync_folder(target.parent)


def append_to_file(path: str | os.PathLike[str], content: bytes, kind: Kind = MODEL) -> None:
    """Append to a regular file, or create it, and sync it. After an OSError, its length is unchanged."""
    with explain_failure(path, kind):
        _refuse_special(path)
        with open(path, "ab", buffering=0) as file:
            length = file.seek(0, os.SEEK_END)
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    file.truncate(length)
                raise


#: Trailing characters of a path that names a folder.
_SEPARATORS = tuple(separator for separator in (os.sep, os.altsep) if separator)


def _refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise OSError if the path exists and is not a regular file."""
    found = "a folder" if os.fspath(path).endswith(_SEPARATORS) else special_kind(path)
    if found is not None:
        number = errno.EISDIR if found == "a folder" else errno.EINVAL
        raise OSError(number, f"it is {found}, but only regular files can be written")


def _keep_permissions(target: Path, replaced: os.stat_result, beside: Path) -> None:
    """Copy owner, group, permissions and access control list from the replaced file to the new file."""
    made, mode = os.stat(beside), replaced.st_mode & 0o777
    if made.st_uid != replaced.st_uid:
        with contextlib.suppress(OSError):  # only a privileged user may change the owner
            os.chown(beside, replaced.st_uid, -1)
    if made.st_gid != replaced.st_gid:
        try:
            os.chown(beside, -1, replaced.st_gid)
        except OSError:  # the new file's group then has at most the permissions of all users
            mode &= ~0o070 | (mode & 0o007) << 3
    if made.st_mode & 0o777 != mode:
        try:
            os.chmod(beside, mode)
        except OSError:  # some file systems do not support permissions
            if made.st_mode & 0o777 & ~mode:
                raise
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # not all file systems have access control lists
            name = "system.posix_acl_access"
            if name in os.listxattr(target):
                os.setxattr(beside, name, os.getxattr(target, name))


def _sync_folder(folder: Path) -> None:
    """Sync a folder after a rename, on systems that support it (not Windows or some network drives)."""
    with contextlib.suppress(OSError):  # the file itself has been renamed already
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
