"""Spelling of code and pages, by codespell's list of common misspellings."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "tanlearn", "baselines", "benchmarks", "docs", "examples", "packaging", "tests"
SUFFIXES = {".md", ".py", ".rst", ".cu", ".h", ".c", ".cfg", ".toml", ".yml"}
GENERATED = {"_build", "auto_examples", "generated", "__pycache__"}
#: Words that are right here: a town, names, operators, and the words of tests about misspellings.
KNOWN = ["linz", "caf", "notin", "te", "sise", "summar", "sould", "discret", "columm", "nd", "zar", "ot", "hart", "iif"]


def test_words_are_spelled_right(capsys):
    codespell = pytest.importorskip("codespell_lib", reason="needs the extra `dev`")
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    paths += [path for path in ROOT.glob("*.*") if path.suffix in SUFFIXES]
    read = sorted(str(path) for path in paths if not GENERATED & {*path.relative_to(ROOT).parts})
    assert len(read) > 800
    found = codespell.main("--ignore-words-list", ",".join(KNOWN), *read)
    assert found == 0, capsys.readouterr().out
