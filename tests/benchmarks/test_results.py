"""Files of results: the same lines before and after they are packed, wherever that is stopped, and whatever breaks."""

import fcntl
import lzma
import threading

import pytest
from support.processes import await_end, await_event
from support.system_calls import patch_system

from benchmarks import ROOT
from benchmarks.shared import results
from tanlearn.files import regular_files

LINES = [
    {"cell": f"NB, \N{GREEK SMALL LETTER GAMMA} {i}", "error": i / 7, "bits": [i, 1], "failure": None} for i in range(5)
]


@pytest.fixture
def path(tmp_path):
    """Return where results are: three lines are packed, two appended since."""
    path = tmp_path / "letter.jsonl"
    for line in LINES[:3]:
        results.append(path, line)
    results.pack(path)
    for line in LINES[3:]:
        results.append(path, line)
    return path


def contents(path):
    """Return the bytes of the packed and of the appended lines."""
    return results.packed(path).read_bytes(), path.read_bytes()


def test_lines_are_those_of_a_file_that_was_never_packed(path, capsys):
    plain = path.with_name("plain.jsonl")
    for line in LINES:
        results.append(plain, line)
    assert len(path.read_bytes().splitlines()) == 2
    assert results.read(path) == results.reopen(path) == results.read(plain) == LINES
    results.pack(path)
    assert results.read(path) == results.reopen(path) == LINES
    assert lzma.decompress(results.packed(path).read_bytes()) == plain.read_bytes()
    assert path.read_bytes() == b""
    assert capsys.readouterr().out.endswith("letter.jsonl.xz: 5 lines\n")


def test_the_same_lines_are_the_same_bytes_whenever_and_in_however_many_steps_they_are_packed(path):
    results.pack(path)
    once = path.with_name("once.jsonl")
    for line in LINES:
        results.append(once, line)
    results.pack(once)
    assert results.packed(path).read_bytes() == results.packed(once).read_bytes()
    results.pack(path)  # nothing was appended
    assert results.packed(path).read_bytes() == results.packed(once).read_bytes()


def test_where_nothing_was_appended_nothing_is_written(tmp_path):
    results.pack(tmp_path / "none.jsonl")
    assert results.read(tmp_path / "none.jsonl") == list(tmp_path.iterdir()) == []


def test_a_last_line_that_was_not_written_to_its_end_does_not_count(path):
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"cell": "NB')
    assert results.read(path) == LINES
    assert results.reopen(path) == LINES
    assert path.read_bytes() == whole
    path.write_bytes(whole + b'{"cell": "NB')
    results.pack(path)
    assert results.read(path) == LINES


def test_a_pack_that_is_stopped_after_the_new_file_is_there_counts_no_line_twice(path):
    appended = path.read_bytes()
    results.pack(path)
    path.write_bytes(appended)
    assert results.reopen(path) == LINES
    results.append(path, {"cell": "new"})
    assert results.read(path) == [*LINES, {"cell": "new"}]
    results.pack(path)
    assert results.read(path) == [*LINES, {"cell": "new"}]


@pytest.mark.parametrize(("name", "error"), [("fsync", KeyboardInterrupt()), ("replace", OSError(28, "disk is full"))])
def test_a_pack_that_is_stopped_before_changes_nothing(path, monkeypatch, name, error):
    def stop(*arguments):
        raise error

    before = contents(path)
    with monkeypatch.context() as patch:
        patch_system(patch, **{name: stop})
        with pytest.raises(type(error)):
            results.pack(path)
    assert contents(path) == before
    assert results.read(path) == LINES
    assert len(list(path.parent.iterdir())) == 2


def test_a_line_that_comes_while_others_are_packed_is_not_lost(path, monkeypatch):
    order, has_asked, lock = [], threading.Event(), fcntl.flock

    def append():
        results.append(path, {"cell": "late"})
        order.append("appended")
        has_asked.set()

    def flock(file, how):
        if threading.current_thread() is run:
            try:
                lock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                order.append("waits")
            has_asked.set()
        lock(file, how)

    def write_file(*arguments):
        run.start()
        await_event(has_asked)
        regular_files.write_file(*arguments)
        order.append("packed")

    run = threading.Thread(target=append)
    monkeypatch.setattr(results.fcntl, "flock", flock)
    monkeypatch.setattr(results, "write_file", write_file)
    results.pack(path)
    await_end(run)
    assert order == ["waits", "packed", "appended"]
    assert results.read(path) == [*LINES, {"cell": "late"}]
    assert path.read_text() == '{"cell": "late"}\n'


@pytest.mark.parametrize("damage", ["one bit", "cut off", "emptied"])
def test_a_damaged_file_is_named_and_stays_as_it_is(path, damage):
    content = bytearray(results.packed(path).read_bytes())
    if damage == "one bit":
        content[len(content) // 2] ^= 1
    results.packed(path).write_bytes({"one bit": content, "cut off": content[:-9], "emptied": b""}[damage])
    before = contents(path)
    for touch in (results.read, results.reopen, results.pack):
        with pytest.raises(
            SystemExit, match=r"letter\.jsonl\.xz is damaged .* Take it from git again, letter\.jsonl may"
        ):
            touch(path)
        assert contents(path) == before


def test_committed_results_are_packed_and_every_line_of_them_stands_once():
    found = [file.with_suffix("") for file in (ROOT / "benchmarks").rglob("*.jsonl.xz")]
    assert len(found) >= 9
    for file in found:
        lines = lzma.decompress(results.packed(file).read_bytes()).splitlines()
        assert len(set(lines)) == len(lines) >= 3  # the smallest has the three learners that ran on two workers
        assert all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
