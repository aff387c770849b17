"""Checkpoints that cannot be written, for a moment or at all, and what is said of them."""

import errno
import os
import stat

import pytest
from support.interrupted_trainings import N_EPOCHS, assert_same_model, count_writings, files, fit, on_call
from support.system_calls import patch_system

from tanlearn.files import regular_files
from tanlearn.kernels import train as kernels
from tanlearn.search.checkpoint import SearchCheckpoint
from tanlearn.search.runs import RunResult
from tanlearn.training.checkpoint import TrainingCheckpoint

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
HELD = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
#: What a file in the place of a folder is to POSIX systems and to Windows.
NO_FOLDER = (NotADirectoryError, FileNotFoundError)


def test_paths_that_cannot_be_written_are_errors_before_the_first_epoch(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(kernels, "train_epoch", on_call(1, print, error=AssertionError))
    cases = [
        (tmp_path / "none" / "training", FileNotFoundError, "the checkpoint cannot be written.*Make the folder first"),
        (tmp_path / "file" / "training", NO_FOLDER, "Name a file in a folder that you may write to|Make the folder"),
        (tmp_path, IsADirectoryError, "the checkpoint cannot be read.*Name another file"),
    ]
    for path, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            fit(checkpoint=path)
        assert caught.value.filename == str(path)
    for error, message in ((FULL, r"No space left.*Free some space"), (HELD, r"Permission denied.*Name a file")):
        patch_system(monkeypatch, replace=on_call(1, os.replace, error=error))
        with pytest.raises(OSError, match=message) as caught:
            fit(checkpoint=tmp_path / "training")
        assert (caught.value.errno, caught.value.filename) == (error.errno, str(tmp_path / "training"))
    assert list(files(tmp_path)) == ["file"]


def test_disk_that_gets_full_ends_the_training_and_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    count_writings(monkeypatch, 0.0)
    path = tmp_path / "training"
    with monkeypatch.context() as patch:
        patch_system(patch, replace=on_call(4, os.replace, error=FULL))
        with pytest.raises(OSError, match=r"the checkpoint cannot be written .*No space") as e:
            fit(checkpoint=path)
    assert e.value.filename == str(path)
    assert list(files(tmp_path)) == ["training"]
    seen = []
    assert_same_model(fit(checkpoint=path, callback=seen.append), fit())
    assert seen[0].epoch == 3  # the fourth writing was that of the third epoch


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FloatingPointError("training diverged")])
def test_what_ends_a_training_leaves_it_where_the_disk_is_full_too(error, tmp_path, monkeypatch):
    def callback(report):
        raise error

    patch_system(monkeypatch, replace=on_call(2, os.replace, error=FULL))
    with pytest.raises(type(error)) as caught:
        fit(checkpoint=tmp_path / "training", callback=callback)
    assert caught.value is error
    (note,) = error.__notes__
    assert "The epochs since the last write are lost" in note
    assert "No space left" in note
    assert str(tmp_path / "training") in note


@pytest.mark.parametrize("error", [FULL, HELD])
def test_last_writing_that_fails_is_an_error(error, tmp_path, monkeypatch):
    patch_system(monkeypatch, replace=on_call(2, os.replace, error=error))
    with pytest.raises(type(error), match="the checkpoint cannot be written"):
        fit(checkpoint=tmp_path / "training")
    seen = []
    assert_same_model(fit(checkpoint=tmp_path / "training", callback=seen.append), fit())
    assert len(seen) == N_EPOCHS


@pytest.mark.parametrize("number", [2, 1 + N_EPOCHS])
def test_file_that_is_held_for_a_moment_ends_no_training(number, tmp_path, monkeypatch):
    path = tmp_path / "training"
    count_writings(monkeypatch, 0.0)
    patch_system(monkeypatch, replace=on_call(number, os.replace, error=HELD))
    with pytest.warns(RuntimeWarning, match=r"cannot be written.*Training continues; the write is retried") as caught:
        found = fit(checkpoint=path)
    assert [repr(str(path)) in str(warning.message) for warning in caught] == [True]
    before = files(tmp_path)
    assert_same_model(found, fit())
    assert_same_model(fit(checkpoint=path), found)
    assert files(tmp_path) == before


def test_file_that_is_held_is_tried_again_after_the_interval_and_states_are_made_to_be_written(tmp_path, monkeypatch):
    now = iter([0.0, 0.0, 0.0, 100.0, 100.0, 100.0, 109.9, 110.0, 110.0, 110.0])
    monkeypatch.setattr("tanlearn.training.checkpoint.time.monotonic", now.__next__)
    patch_system(monkeypatch, replace=on_call(2, os.replace, error=HELD))
    made, found = [], []
    checkpoint = TrainingCheckpoint(tmp_path / "training", "fingerprint")
    for epoch in range(4):
        get_state = lambda epoch=epoch: made.append(epoch) or epoch  # noqa: E731
        if epoch == 1:
            with pytest.warns(RuntimeWarning, match="retried in 10 seconds"):
                checkpoint.keep(get_state)
        else:
            checkpoint.keep(get_state)
        TrainingCheckpoint(tmp_path / "training", "fingerprint").restore(found.append)
    assert made == [0, 1, 3]
    assert found == [0, 0, 0, 3]


@pytest.mark.parametrize("fails", [False, True])
def test_new_name_of_a_file_is_brought_to_the_disk_where_that_can_be_done(fails, tmp_path, monkeypatch):
    synchronised = []
    patch_system(monkeypatch, fsync=lambda number: synchronised.append(stat.S_ISDIR(os.fstat(number).st_mode)))
    if fails:
        patch_system(monkeypatch, open=on_call(2, os.open, error=PermissionError))
    regular_files.write_file(tmp_path / "file", b"content")
    assert files(tmp_path) == {"file": b"content"}
    assert synchronised == ([False] if fails or os.name == "nt" else [False, True])  # Windows opens no folders


def test_file_of_a_search_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"the checkpoint cannot be written.*Make the folder first"):
        SearchCheckpoint(tmp_path / "none" / "search", "d")
    with pytest.raises(IsADirectoryError, match=r"the checkpoint cannot be read.*Name another file"):
        SearchCheckpoint(tmp_path, "d")
    checkpoint = SearchCheckpoint(tmp_path / "search", "d")
    patch_system(monkeypatch, fsync=on_call(1, os.fsync, error=FULL))
    with pytest.raises(OSError, match=r"No space left.*Free some space"):
        checkpoint.append(RunResult(0, 0, 0.5, 1, 1.0))
    (tmp_path / "search").write_bytes(b'{"tanlearn_search": 2, "fingerprint": "d"}\n{"setting": 0')
    with monkeypatch.context() as patch:
        patch.setattr("tanlearn.search.checkpoint.os.truncate", on_call(1, os.truncate, error=FULL))
        with pytest.raises(OSError, match=r"the checkpoint cannot be written.*No space left.*Free some space"):
            SearchCheckpoint(tmp_path / "search", "d")
    for version in (b'"x"', b"Infinity", b"NaN", b"[]"):
        content = b'{"tanlearn_search": %s, "fingerprint": "d"}\n' % version
        (tmp_path / "search").write_bytes(content)
        with pytest.raises(ValueError, match="not a search checkpoint, or is damaged"):
            SearchCheckpoint(tmp_path / "search", "d")
    (tmp_path / "search").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="not a search checkpoint, or is damaged"):
        SearchCheckpoint(tmp_path / "search", "d")
