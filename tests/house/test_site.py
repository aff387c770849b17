"""The site's sources fit the library: examples use public names, pages that conf.py reads exist, names are listed."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import tanlearn
import tanlearn.baselines
import tanlearn.displays

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_the_gallery_take_public_names_and_draw(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert re.match(r".+\n=+\n\n\S", ast.get_docstring(tree)), "a title, and what is to be seen"
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = [node for node in imports if node.module.startswith("tanlearn")]
    assert imported
    for node in imported:
        module = importlib.import_module(node.module)
        assert {alias.name for alias in node.names} <= {*module.__all__}
    assert "plt." in source or "Display" in source


def test_there_are_at_least_twelve_examples():
    assert len(EXAMPLES) >= 12


def test_every_public_name_has_a_page():
    listed = {
        line.strip()
        for page in (DOCS / "api").glob("*.rst")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("   ")
    }
    public = {*tanlearn.__all__, *tanlearn.baselines.__all__, *tanlearn.displays.__all__} - {"LEARNERS"}
    assert public <= listed


def test_pages_that_are_read_from_elsewhere_exist():
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (pages,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PAGES"
    )
    assert [name for name in pages if not (ROOT / name).exists()] == []
    stubs = [page for page in pages.values() if page and page != "index"]
    assert [page for page in stubs if not (DOCS / f"{page}.md").exists()] == []


def test_ranks_of_the_readme_are_those_of_the_report():
    report = (ROOT / "benchmarks" / "quality" / "tables.md").read_text(encoding="utf-8")
    section = report.partition("## Mean ranks: all learners")[2].partition("\n## ")[0].replace("**", "")
    found = {line.split(" | ")[0]: line.split(" | ") for line in section.splitlines()}
    rows = [
        line.split(" | ")
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ][2:]
    assert len(rows) == 5
    for learner, error, log_loss in rows:
        assert [error, log_loss.removesuffix(" |")] == [found[learner][1], found[learner][4]]


def test_the_readme_is_of_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 80
