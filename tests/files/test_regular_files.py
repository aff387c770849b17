"""Writers of every kind of file: special files are refused, permissions are kept, and nothing is half written."""

import errno
import os
import socket
import stat

import numpy as np
import pytest
from support.system_calls import patch_system

from tanlearn import (
    GradientTraining,
    NaiveBayesClassifier,
    TableCounts,
    TANClassifier,
    read_bif,
    read_xmlbif,
    write_bif,
    write_xmlbif,
)
from tanlearn.c_export.header import export_c
from tanlearn.encoding.summaries import TableSummary
from tanlearn.files import regular_files
from tanlearn.files.regular_files import append_to_file, read_file, special_kind, write_file
from tanlearn.files.summaries import save_summary
from tanlearn.search.checkpoint import SearchCheckpoint
from tanlearn.sources.columns import read_columns

X, Y = [["sun"], ["rain"], ["rain"]], ["beach", "home", "home"]


def fitted():
    return NaiveBayesClassifier().fit(X, Y)


WRITERS = {
    "save": lambda path: fitted().save(path),
    "write_bif": lambda path: write_bif(fitted(), path),
    "write_xmlbif": lambda path: write_xmlbif(fitted(), path),
    "counts": lambda path: TableCounts.of_source([(X, Y)]).save(path),
    "summary": lambda path: save_summary(TableSummary().update(read_columns(X), Y), ["weather"], path),
    "header": lambda path: export_c(fitted().with_bits((2, 2)), path, name="outing"),
}
#: They read what is there first, so what is there must be their own.
CHECKPOINTS = {
    "training": lambda path: TANClassifier(
        candidates="all", n_epochs=1, training=GradientTraining(batch_size=2, checkpoint=path), random_state=0
    ).fit([[0, 1], [1, 1], [0, 0]], [1, 0, 0]),
    "search": lambda path: SearchCheckpoint(path, "digest"),
}
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
needs_permissions = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


@pytest.fixture
def special(tmp_path):
    """Yield paths of special files and links to them, with the words of messages."""
    pipe, listening = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    for target in (pipe, listening):
        target.with_suffix(".link").symlink_to(target)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening))
        yield [
            (pipe, "it is a named pipe"),
            (pipe.with_suffix(".link"), "it is a named pipe"),
            (listening, "it is a socket"),
            (listening.with_suffix(".link"), "it is a socket"),
        ]


def kinds(folder):
    """Return the kind of every file of a folder by its name."""
    return {path.name: stat.S_IFMT(path.lstat().st_mode) for path in folder.iterdir()}


@needs_pipes
@pytest.mark.parametrize("write", [*WRITERS.values(), *CHECKPOINTS.values()], ids=[*WRITERS, *CHECKPOINTS])
def test_special_files_are_refused_and_left_in_place(write, special, tmp_path):
    before = kinds(tmp_path)
    for path, message in special:
        with pytest.raises(OSError, match=message) as caught:
            write(path)
        assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(path))
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    assert kinds(tmp_path) == before


@needs_pipes
@pytest.mark.parametrize("read", [read_file, read_bif, read_xmlbif, TableCounts.load])
def test_special_files_are_not_read(read, special, tmp_path):
    for path, message in special:
        with pytest.raises(OSError, match=f"cannot be read .{message}, not a regular file"):
            read(path)


@needs_pipes
def test_special_files_of_unknown_kinds_are_refused(special, monkeypatch):
    monkeypatch.setattr(regular_files, "_SPECIAL", {})
    for path, _ in special:
        with pytest.raises(OSError, match="it is a special file, not a regular file"):
            read_file(path)
        with pytest.raises(OSError, match="it is a special file, but only regular files can be written"):
            write_file(path, b"")


@needs_permissions
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666, 0o755])
def test_replaced_file_keeps_its_permissions(write, mode, tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"earlier")
    path.chmod(mode)
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert b"earlier" != path.read_bytes() != b""
    assert kinds(tmp_path).keys() == {"file", "link"}


@needs_permissions
@pytest.mark.parametrize("write", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_checkpoint_keeps_its_permissions(write, tmp_path):
    path = tmp_path / "checkpoint"
    write(path)
    path.chmod(0o600)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@needs_permissions
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_new_file_has_the_permissions_of_the_process(mask, tmp_path):
    earlier = os.umask(mask)
    try:
        write_file(tmp_path / "new", b"content")
        append_to_file(tmp_path / "appended", b"content")
    finally:
        os.umask(earlier)
    for name in ("new", "appended"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~mask


@needs_permissions
def test_content_of_a_private_file_is_never_readable_by_others(tmp_path, monkeypatch):
    path, modes = tmp_path / "private", []
    path.touch(mode=0o600)
    path.chmod(0o644)

    def fsync(number):
        modes.append(stat.S_IMODE(os.fstat(number).st_mode))

    def chmod(beside, mode):
        modes.append(stat.S_IMODE(os.stat(beside).st_mode))
        os.chmod(beside, mode)

    patch_system(monkeypatch, fsync=fsync, chmod=chmod)
    write_file(path, b"content")
    assert modes[:2] == [0o600, 0o644]


@needs_permissions
def test_group_that_cannot_be_kept_gets_the_permissions_of_everybody(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def chown(path, uid, gid):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def of_another_group(asked):
        found = [*os.stat(asked)]
        found[5] += asked == path
        return os.stat_result(found)

    patch_system(monkeypatch, chown=chown, stat=of_another_group)
    for mode, narrower in ((0o660, 0o600), (0o664, 0o644), (0o640, 0o600), (0o666, 0o666)):
        path.write_bytes(b"")
        path.chmod(mode)
        write_file(path, b"content")
        assert stat.S_IMODE(path.stat().st_mode) == narrower


@needs_permissions
def test_file_systems_without_permissions_are_written_unless_that_widens_them(tmp_path, monkeypatch):
    def chmod(path, mode):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    path = tmp_path / "file"
    patch_system(monkeypatch, chmod=chmod)
    for mode in (0o644, 0o200):
        path.write_bytes(b"earlier")
        path.chmod(mode)
        if mode == 0o644:
            write_file(path, b"content")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        else:
            with pytest.raises(PermissionError):
                write_file(path, b"content")
    path.chmod(0o600)
    assert path.read_bytes() == b"earlier"
    assert [*kinds(tmp_path)] == ["file"]


def test_read_only_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"earlier")
    patch_system(monkeypatch, access=lambda path, mode: False)  # the tests may run as root, who may write all files
    with pytest.raises(PermissionError, match="the file is read-only"):
        write_file(path, b"content")
    assert path.read_bytes() == b"earlier"
    assert [*kinds(tmp_path)] == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="links need privileges on Windows")
def test_links_are_followed(tmp_path):
    loop, dangling = tmp_path / "loop", tmp_path / "dangling"
    loop.symlink_to(loop)
    dangling.symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="cannot be written") as caught:
        write_file(loop, b"content")
    assert caught.value.errno == errno.ELOOP
    write_file(dangling, b"content")
    assert dangling.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"content"


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_streams_are_refused(path):
    assert special_kind(path) == "a stream that is open already"
    with pytest.raises(OSError, match="a stream that is open already"):
        write_file(path, b"content")


def test_failed_append_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    append_to_file(path, b"one\n")

    def fsync(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch_system(monkeypatch, fsync=fsync)
    with pytest.raises(OSError, match=r"No space left.*Free some space"):
        append_to_file(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_model_that_replaces_a_private_one_is_the_same_model(tmp_path):
    path = tmp_path / "outing.bif"
    path.touch(mode=0o600)
    write_bif(fitted(), path)
    assert np.array_equal(read_bif(path).predict_proba(X), fitted().predict_proba(X))


def test_a_path_that_names_a_folder_is_refused_and_nothing_is_written(tmp_path):
    for write in (write_file, append_to_file):
        with pytest.raises(OSError, match="a folder"):
            write(f"{tmp_path / 'new.tan'}/", b"content")
    assert list(tmp_path.iterdir()) == []
