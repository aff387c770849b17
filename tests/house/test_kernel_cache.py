"""What is compiled once must not stand in the way of a later version."""

import pickle

import pytest

from tanlearn.kernels import _jit
from tanlearn.kernels.scores import log_joint

FILES = getattr(getattr(log_joint, "_cache", None), "_cache_file", None)
needs_cache = pytest.mark.skipif(not hasattr(FILES, "_load_index"), reason="kernels are not cached here")


class Gone:
    """Stands for a class that a later version does not have."""


class KernelCode:
    """Stands for a compiled kernel."""

    codegen = None


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


@needs_cache
@pytest.mark.parametrize("step", ["ensure_cache_path", "save"])
def test_a_folder_that_is_not_writable_any_more_is_no_error(step, tmp_path, monkeypatch):
    """The kernel is used without being stored, and the reason is kept for the warning."""

    def fail(*arguments):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    cache = log_joint._cache
    monkeypatch.setattr(log_joint, "cache_failure", None)
    monkeypatch.setattr(cache._impl, "check_cachable", lambda data: True)
    monkeypatch.setattr(cache._impl.locator, "ensure_cache_path", lambda: None)
    monkeypatch.setattr(cache._impl, "reduce", lambda data: data)
    monkeypatch.setattr(cache, "_index_key", lambda *arguments: "key")
    monkeypatch.setattr(FILES, "save", lambda key, data: None)
    monkeypatch.setattr(cache._impl.locator if step == "ensure_cache_path" else FILES, step, fail)
    cache.save_overload("signature", KernelCode())
    assert "Permission denied" in log_joint.cache_failure
