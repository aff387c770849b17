"""setuptools' build backend, which here builds the same bytes from the same files, whenever and wherever they lie.

It writes times of files into archives, and its source archives keep those of folders made just now, whatever
SOURCE_DATE_EPOCH says.
"""

import gzip
import io
import os
import tarfile
from pathlib import Path

import setuptools.build_meta
from setuptools.build_meta import *  # noqa: F403

#: What files are as old as, if the builder does not say: the first time that a zip archive knows.
os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")


def build_sdist(sdist_directory, config_settings=None):
    """Build a source archive, of which names, contents and modes alone are kept."""
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
