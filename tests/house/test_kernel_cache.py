"""What is compiled once must not stand in the way of a later version."""

import pickle

import pytest

from tanlearn.kernels import _jit
from tanlearn.kernels.scores import log_joint

FILES = getattr(getattr(log_joint, "_cache", None), "_cache_file", None)
needs_cache = pytest.mark.skipif(not hasattr(FILES, "_load_index"), reason="kernels are not cached here")


class Gone:
    """Stands for a class that a later version does not have."""


@needs_cache
def test_the_index_of_another_version_is_left_unread(tmp_path, monkeypatch):
    path = tmp_path / "kernel.nbi"
    rest = pickle.dumps(Gone()).replace(b"Gone", b"Lost")  # cannot be read any more
    with pytest.raises(AttributeError):
        pickle.loads(rest)
    monkeypatch.setattr(FILES, "_index_path", str(path))
    for version in (
        "0.68.1",
        (*FILES._version[:2], (("train.py", 1, 2),)),
        (FILES._version[0], not _jit.IS_SHORTENED, _jit._STAMP),
    ):
        path.write_bytes(pickle.dumps(version) + rest)
        assert FILES._load_index() == {}


@needs_cache
def test_an_index_of_this_version_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(FILES, "_index_path", str(tmp_path / "kernel.nbi"))
    FILES._save_index({"key": "file"})
    assert FILES._load_index() == {"key": "file"}
    assert FILES._version[1:] == (_jit.IS_SHORTENED, _jit._STAMP)
    assert {"_jit.py", "_lanes.py", "train.py"} <= {name for name, *_ in _jit._STAMP}
