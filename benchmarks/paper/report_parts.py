"""What the reports share: tables in Markdown, and what made the figures."""

import os
import platform


def markdown_table(header, rows, left=(0,)):
    """Return a table of strings; the columns numbered in ``left`` are words, all others numbers."""
    left = [place % len(header) for place in left]
    rule = ["---" if place in left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])


def made_with(lines):
    """Return versions and machine in words."""
    versions = "; ".join(sorted({line["versions"] for line in lines}))
    return f"{versions} on a {os.cpu_count()}-core {platform.machine()} machine"
