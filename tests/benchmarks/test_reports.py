"""Parts of reports: commands and versions are folded, and paragraphs are wrapped."""

import re

from benchmarks.shared.reports import folded, paragraph
from benchmarks.shared.versions import made_by


def test_commands_and_versions_are_folded_and_grouped_by_release():
    versions = ("tanlearn 1.0 abc, numpy 2", "tanlearn 0.9 fed, numpy 2", "tanlearn 1.0 def, numpy 2")
    written = made_by([{"versions": version} for version in versions], "benchmarks.one run", "benchmarks.one report")
    assert written.startswith("<details>\n<summary>Commands and versions</summary>\n\n")
    assert written.endswith("\n\n</details>")
    assert "$ python -m benchmarks.one run\n$ python -m benchmarks.one report\n```" in written
    assert re.findall("^- .*", written, re.MULTILINE) == [
        "- tanlearn 0.9 (fed), numpy 2",
        "- tanlearn 1.0 (abc, def), numpy 2",
    ]


def test_folded_sections_are_separated_by_empty_lines_and_empty_ones_left_out():
    assert folded("More", "a", "", "b") == "<details>\n<summary>More</summary>\n\na\n\nb\n\n</details>"


def test_items_of_lists_are_indented():
    first, second = paragraph("- " + "word " * 30, indent=2).splitlines()
    assert len(first) <= 120
    assert second.startswith("  word")
