"""A release has absolute links in its README and the addresses of the project in its settings."""

import configparser
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.org/owner/tanlearn"


@pytest.fixture
def released(tmp_path):
    """Return a folder with README.md and setup.cfg as a release has them."""
    spec = importlib.util.spec_from_file_location("absolute_links", ROOT / "packaging" / "absolute_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("README.md", "setup.cfg"):
        shutil.copy(ROOT / name, tmp_path)
    module.main([f"{REPOSITORY}/", "v1.2.3", "--folder", str(tmp_path)])
    return tmp_path


def test_links_lead_to_files_of_the_tag(released):
    before, after = ((folder / "README.md").read_text("utf-8") for folder in (ROOT, released))
    targets = re.findall(r"\]\(([^)]+)\)", after)
    assert [target for target in targets if not target.startswith("https://")] == []
    own = re.findall(rf"{REPOSITORY}/(?:raw|blob)/v1\.2\.3/([^)#]+)", after)
    assert len(own) >= 20
    assert [name for name in own if not (ROOT / name).exists()] == []
    assert f"({REPOSITORY}/raw/v1.2.3/benchmarks/quality/tables_times.png)" in after
    assert after.startswith("# tanlearn\n\n[![tests](")
    assert "https://hbiostat.org/data/repo/titanic3.csv" in after
    plain = re.sub(r"\]\([^)]+\)", "]", after.partition("\n\n")[2].partition("\n\n")[2])
    assert plain == re.sub(r"\]\([^)]+\)", "]", before.partition("\n\n")[2])


def test_settings_have_the_addresses_of_the_project(released):
    settings = configparser.ConfigParser()
    settings.read(released / "setup.cfg", "utf-8")
    addresses = settings["metadata"]["project_urls"].split("\n")
    assert addresses[1:] == [
        f"Source = {REPOSITORY}",
        f"Changelog = {REPOSITORY}/blob/v1.2.3/CHANGELOG.md",
        f"Issues = {REPOSITORY}/issues",
    ]
    before = configparser.ConfigParser()
    before.read(ROOT / "setup.cfg", "utf-8")
    assert dict(before["metadata"]) == {key: settings["metadata"][key] for key in before["metadata"]}


def test_the_readme_can_be_rendered_by_a_package_index(released):
    renderer = pytest.importorskip("readme_renderer.markdown", reason="pip install 'readme-renderer[md]'")
    rendered = renderer.render((released / "README.md").read_text("utf-8"))
    assert rendered
    assert f'src="{REPOSITORY}/raw/v1.2.3/benchmarks/quality/tables_times.png"' in rendered
    assert re.findall(r'(?:href|src)="(?!https://|#)[^"]*"', rendered) == []
