"""Parts of reports: sections, tables and paragraphs in Markdown, numbers as text, pictures."""

import textwrap
from contextlib import contextmanager


def write_sections(path, sections):
    """Write a report; empty sections are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(filter(None, sections)).rstrip("\n") + "\n", encoding="utf-8")


@contextmanager
def picture(path, width, height):
    """Yield a figure to draw in, and save it to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def markdown_table(header, rows, left=(0,)):
    """Return a table of strings; the columns with the indices ``left`` are aligned left, all others right."""
    return "\n".join([*table_head(header, left), *map(table_row, rows)])


def table_head(header, left=(0,)):
    """Return the two lines above the rows of a table."""
    left = [column % len(header) for column in left]
    return [table_row(header), table_row("---" if column in left else "---:" for column in range(len(header)))]


def table_row(cells):
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def decimals(value, digits=2, missing=""):
    """Return a number with so many decimals, or the text for a missing one."""
    return missing if value is None else f"{value:.{digits}f}"


def joined(words):
    """Return words with commas, and "and" before the last one: "10, 30 and 100"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def paragraph(text, indent=0):
    """Return sentences in lines of at most 120 characters; lines after the first are indented by some spaces."""
    words, wrapped = " ".join(text.split()), {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(words, 120, subsequent_indent=" " * indent, **wrapped)


def console(*commands):
    """Return a block of commands that run modules with options."""
    return "\n".join(["```console", *(f"$ python -m {command}" for command in commands), "```"])


def folded(summary, *sections):
    """Return sections that readers unfold by a click on the summary; they have no headings."""
    inner = "\n\n".join(filter(None, sections))
    return f"<details>\n<summary>{summary}</summary>\n\n{inner}\n\n</details>"
