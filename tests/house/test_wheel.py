"""What is shipped: a wheel of the tree, and one of the source archive, hold the package and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import tanlearn

ROOT = Path(__file__).parents[2]
FOLDERS = {"tanlearn": "tanlearn", "baselines": "tanlearn/baselines"}
SHIPPED = {".py", ".cu", ".js", ".typed"}
# What a tree without git (an unpacked archive) may hold beside its sources; see .gitignore.
UNTRACKED = shutil.ignore_patterns(".venv*", "__pycache__", "*.egg-info", "build", "dist", ".*_cache", "env", "_build")


def source_tree(destination: Path) -> Path:
    """Copy what git tracks or would track, links as links; without git, all but build outputs."""
    if not (ROOT / ".git").exists():
        return Path(shutil.copytree(ROOT, destination, symlinks=True, ignore=UNTRACKED))
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.rstrip("\0").split("\0"):
        if (ROOT / name).exists():  # git lists a deleted file until the deletion is staged
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, destination / name, follow_symlinks=False)
    return destination


def shipped_files(tree: Path) -> dict[str, bytes]:
    """Return the files that a wheel of this tree must hold, under their installed names."""
    return {
        f"{installed}/{path.relative_to(tree / folder).as_posix()}": path.read_bytes()
        for folder, installed in FOLDERS.items()
        for path in (tree / folder).rglob("*")
        if path.is_file() and path.suffix in SHIPPED
    }


def build(source: Path, destination: Path, *options: str) -> Path:
    """Build with the installed setuptools, so that no network is needed, and return the wheel."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(destination), *options]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = destination.glob("*.whl")
    return wheel


def package_files(wheel: Path) -> dict[str, bytes]:
    """Return the files of the wheel outside its metadata folder."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def metadata_lines(wheel: Path, name: str) -> list[str]:
    """Return the lines of one file of the wheel's metadata folder."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (entry for entry in archive.namelist() if entry.endswith(f".dist-info/{name}"))
        return archive.read(path).decode().splitlines()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return source_tree(tmp_path_factory.mktemp("tree") / "tanlearn")


@pytest.fixture(scope="module")
def wheel(tree, tmp_path_factory):
    return build(tree, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def wheel_of_archive(tree, tmp_path_factory):
    """Return the wheel that is built, as pip builds it, from the source archive, which lies beside it."""
    return build(tree, tmp_path_factory.mktemp("archive"))


def source_archive(wheel: Path) -> Path:
    """Return the source archive beside a wheel."""
    (archive,) = wheel.parent.glob("*.tar.gz")
    return archive


def test_wheel_holds_the_package_and_nothing_else(wheel, tree):
    expected = shipped_files(tree)
    assert {str(Path(name).parent) for name in expected} >= {*FOLDERS.values(), "tanlearn/kernels"}
    assert sorted(package_files(wheel)) == sorted(expected)
    assert package_files(wheel) == expected


def test_wheel_of_the_source_archive_equals_the_wheel_of_the_tree(wheel, wheel_of_archive):
    assert sorted(package_files(wheel_of_archive)) == sorted(package_files(wheel))
    assert package_files(wheel_of_archive) == package_files(wheel)


def test_source_archive_holds_what_a_wheel_is_built_of_and_what_a_reader_wants(wheel_of_archive, tree):
    folders = {installed: folder for folder, installed in FOLDERS.items()}
    sources = {
        f"{folders.get(str(Path(name).parent), Path(name).parent.as_posix())}/{Path(name).name}"
        for name in shipped_files(tree)
    }
    said = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"}
    made = {"PKG-INFO", "setup.cfg", "MANIFEST.in", "pyproject.toml", "packaging/reproducible.py"}
    with tarfile.open(source_archive(wheel_of_archive)) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert {name for name in files if not name.startswith("tanlearn.egg-info/")} == sources | said | made


def test_other_times_and_another_folder_build_the_same_bytes(wheel_of_archive, tree, tmp_path):
    other = Path(shutil.copytree(tree, tmp_path / "elsewhere", symlinks=True))
    for number, path in enumerate(sorted(other.rglob("*.py"))):
        os.utime(path, (1_700_000_000 + number,) * 2)
    again = build(other, tmp_path / "built")
    assert again.read_bytes() == wheel_of_archive.read_bytes()
    assert source_archive(again).read_bytes() == source_archive(wheel_of_archive).read_bytes()


def test_wheel_needs_no_link_to_the_baselines(wheel, tree, tmp_path):
    # Some checkouts cannot hold links; there the mapping in setup.cfg alone must find the folder.
    linkless = shutil.copytree(tree, tmp_path / "linkless", symlinks=True)
    (linkless / "tanlearn" / "baselines").unlink()
    assert package_files(build(linkless, tmp_path, "--wheel")) == package_files(wheel)


def test_editable_installation_prints_no_advice(tree, tmp_path):
    copy = Path(shutil.copytree(tree, tmp_path / "editable", symlinks=True))
    command = [sys.executable, "-c", f"import reproducible; reproducible.build_editable({str(tmp_path)!r})"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "packaging")}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=True)
    assert len(list(tmp_path.glob("*.whl"))) == 1
    assert "Editable installation" not in done.stdout + done.stderr


def test_wheel_has_one_top_level_package(wheel):
    assert metadata_lines(wheel, "top_level.txt") == ["tanlearn"]


def test_metadata_say_licence_versions_and_the_same_as_the_citation(wheel):
    lines = metadata_lines(wheel, "METADATA")
    assert {"License-Expression: BSD-3-Clause", "Requires-Python: >=3.11", f"Version: {tanlearn.__version__}"} <= {
        *lines
    }
    assert f"version: {tanlearn.__version__}" in (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    assert f"## [{tanlearn.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_wheel_installs_the_command(wheel):
    assert "tanlearn = tanlearn.cli:main" in metadata_lines(wheel, "entry_points.txt")


def test_unpacked_wheel_imports_its_own_baselines(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-c", "import tanlearn.baselines; print(tanlearn.baselines.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == tmp_path / "tanlearn" / "baselines" / "__init__.py"
