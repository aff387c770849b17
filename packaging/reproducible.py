"""The build backend of setuptools, changed so that the same files always give identical archives.

setuptools stores the times of files in archives. In source archives, it also stores the times of folders that it has
just created, and ignores SOURCE_DATE_EPOCH for them.
"""

import gzip
import io
import os
import tarfile
import warnings
from pathlib import Path

import setuptools.build_meta
from setuptools.build_meta import *  # noqa: F403

#: Default time of all files in archives: 1980-01-01, the earliest time that a zip archive can store.
os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")


def build_sdist(sdist_directory, config_settings=None):
    """Build a source archive that contains only names, contents and modes, all with the same time."""
    name = setuptools.build_meta.build_sdist(sdist_directory, config_settings)
    path, packed = Path(sdist_directory, name), io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.linkname = member.type, member.size, member.linkname
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            clean.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
            new.addfile(clean, old.extractfile(member) if member.isreg() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=int(os.environ["SOURCE_DATE_EPOCH"])))
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build an editable wheel without the general advice of setuptools, which pip prints as a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*Editable installation")
        return setuptools.build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
