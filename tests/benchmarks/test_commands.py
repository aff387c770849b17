"""Command lines of long experiments: help, and rejected options."""

import importlib

import pytest

from benchmarks import ROOT

PARSERS = [path for path in sorted((ROOT / "benchmarks").rglob("*.py")) if "= parsers(" in path.read_text()]


@pytest.mark.parametrize("path", PARSERS, ids=lambda path: path.relative_to(ROOT / "benchmarks").as_posix())
def test_every_run_has_help(path, capsys):
    command = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    with pytest.raises(SystemExit) as ended:
        command.main(["run", "--help"])
    assert ended.value.code == 0
    assert "--results" in capsys.readouterr().out
