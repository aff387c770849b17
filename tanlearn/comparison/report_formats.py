"""Sections of a report in two formats: Markdown that is readable as plain text, and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["ReportTable", "Section", "as_latex", "as_markdown", "markdown_table"]

_ESCAPED = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "±": r"$\pm$",
}


@dataclass(frozen=True)
class ReportTable:
    """Table of strings. The first ``n_left`` columns are left-aligned, and ``**`` encloses bold fields."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_left: int = 1


@dataclass(frozen=True)
class Section:
    """Section of a report: a title, a table, sentences about the table, and list items."""

    title: str
    table: ReportTable | None = None
    text: str = ""
    items: Sequence[str] = ()
    level: int = 2  # 1 for the title of the report


def as_markdown(sections: Iterable[Section]) -> str:
    """Format sections in Markdown."""
    parts = []
    for section in sections:
        parts.append(f"{'#' * section.level} {section.title}")
        if section.table is not None:
            parts.append(markdown_table(section.table.header, section.table.rows, section.table.n_left))
        parts += [section.text] if section.text else []
        parts += ["\n".join(f"- {item}" for item in section.items)] if section.items else []
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Return a Markdown table with padded columns. The first ``n_left`` columns are left-aligned."""
    lines = [[str(field).replace("|", "\\|") for field in row] for row in (header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if j < n_left else "-" * (width - 1) + ":" for j, width in enumerate(widths)]
    lines.insert(1, rule)
    return "\n".join(
        "| "
        + " | ".join(
            field.ljust(width) if j < n_left else field.rjust(width)
            for j, (field, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    )


def as_latex(sections: Iterable[Section]) -> str:
    """Format sections in LaTeX for the package booktabs. The sentences about a table become its caption."""
    parts = ["% needs \\usepackage{booktabs}"]
    for section in sections:
        title, text = _latex(section.title), _latex(section.text)
        if section.table is not None:
            parts.append(_latex_table(section.table, f"{title}. {text}".strip()))
            continue
        command = "section*" if section.level == 1 else "subsection*"
        parts.append(f"\\{command}{{{title}}}" + (f"\n{text}" if text else ""))
        if section.items:
            items = "\n".join(f"\\item {_latex(item)}" for item in section.items)
            parts.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
    return "\n\n".join(parts) + "\n"


def _latex_table(table: ReportTable, caption: str) -> str:
    """Return a floating table with its caption."""
    header, *rows = [" & ".join(map(_latex, row)) + r" \\" for row in (table.header, *table.rows)]
    columns = "l" * table.n_left + "r" * (len(table.header) - table.n_left)
    body = "\n".join([r"\toprule", header, r"\midrule", *rows, r"\bottomrule"])
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n\\begin{{tabular}}{{{columns}}}\n{body}\n"
        f"\\end{{tabular}}\n\\end{{table}}"
    )


def _latex(text: str) -> str:
    """Convert Markdown text to LaTeX: special characters, bold text, code, and minus signs before numbers."""
    text = "".join(_ESCAPED.get(character, character) for character in str(text))
    text = re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text)
    text = re.sub(r"`(.*?)`", r"\\texttt{\1}", text)
    return re.sub(r"(?<![\w)])-(?=\d)", "$-$", text)
