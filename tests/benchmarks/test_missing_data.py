"""Commands that need published data end with one line where these are absent, and never with a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import archives, missing_data

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "name", "origin"),
    [
        ("paper.differentiable_tan run --sets letter --budget 1", "discretized/letter.npz", "github.com/wroth8/bnc"),
        ("paper.order_based run uci", "raw/australian.npz", "UCI Machine Learning Repository"),
        ("quality.tables run", "raw/*.npz", "any data set is not part of this repository"),
    ],
)
def test_the_missing_file_its_origin_and_the_remedy_are_named(command, name, origin, tmp_path):
    module, *arguments = command.split()
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            f"benchmarks.{module}",
            *arguments,
            "--data",
            tmp_path,
            "--results",
            tmp_path / "results",
        ],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    line = run.stderr.splitlines()[-1]
    assert line.startswith(f"There is no file {tmp_path}/{name}: ")
    assert origin in line
    assert line.endswith("pass another folder with --data.")


def test_every_folder_of_data_has_an_origin():
    for kind in ("raw", "discretized"):
        assert "a published data set" not in missing_data(Path(f"data/{kind}/letter.npz"))


def test_archives_are_listed_by_name(tmp_path):
    for name in ("b.npz", "a.npz", "c.csv"):
        (tmp_path / name).touch()
    assert [path.name for path in archives(tmp_path)] == ["a.npz", "b.npz"]
