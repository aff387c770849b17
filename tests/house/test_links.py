"""Links between pages of the repository lead to files and headings that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"_build", "auto_examples", "generated"}
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in DOCS.rglob("*.md") if not GENERATED & {*page.relative_to(DOCS).parts}),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
INCLUDED = "(read from the repository"


def home_of(page: Path) -> Path:
    """Return the file whose text a page has: pages of the site may be read from elsewhere in the repository."""
    if not page.read_text(encoding="utf-8").startswith(f"# {INCLUDED}"):
        return page
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    assigned = {getattr(node.targets[0], "id", ""): node.value for node in tree.body if isinstance(node, ast.Assign)}
    names = {target: name for name, target in ast.literal_eval(assigned["PAGES"]).items()}
    return ROOT / names[page.relative_to(DOCS).with_suffix("").as_posix()]


def target_of(page: Path, path: str) -> Path | None:
    """Return the file that a link leads to, if there is one; links within the site may omit the suffix."""
    target = (page.parent / path).resolve() if path else page
    if "auto_examples" in target.parts:
        target = DOCS / "gallery" / target.name.removesuffix(".md")
    found = [target, *(target.with_name(target.name + suffix) for suffix in (".md", ".rst", ".py"))]
    return next((file for file in found if file.exists()), None)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def dead_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for path, anchor in LINK.findall(re.sub(r"`[^`]*`", "", text)):
        target = target_of(page, path)
        is_page = target is not None and target.suffix == ".md"
        if target is None or (is_page and anchor and anchor not in anchors_of(home_of(target))):
            dead.append(f"{path}#{anchor}".removesuffix("#"))
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_exist(page):
    assert dead_links(page) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# Two `words`, one\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other#two-words-one) [c](other.md#none) [d](gone.md) [e](https://x.org)\n", encoding="utf-8"
    )
    assert dead_links(page) == ["other.md#none", "gone.md"]
