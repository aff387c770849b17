"""What the reports share: tables in Markdown, pictures, and what made the figures."""

import os
import platform
import textwrap
from contextlib import contextmanager


def write_sections(path, sections):
    """Write a report; sections that are empty are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(filter(None, sections)).rstrip("\n") + "\n", encoding="utf-8")


@contextmanager
def picture(path, width, height):
    """Give a figure to draw in, and write it to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def markdown_table(header, rows, left=(0,)):
    """Return a table of strings; the columns numbered in ``left`` are words, all others numbers."""
    left = [place % len(header) for place in left]
    rule = ["---" if place in left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])


def made_with(lines):
    """Return versions and machine in words."""
    commits = {}
    for versions in sorted({line["versions"] for line in lines}):
        own, _, others = versions.partition(", ")
        release, _, commit = own.rpartition(" ")
        commits.setdefault((release, others), []).append(commit)
    versions = "; ".join(f"{release} {', '.join(found)}, {others}" for (release, others), found in commits.items())
    return f"{versions} on a {os.cpu_count()}-core {platform.machine()} machine"


def paragraph(text):
    """Return sentences in lines of at most 120 characters, wherever they were broken before."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)
