"""Files of results as tests read and cut them."""

import json


def appended(path, without=()):
    """Return the lines that were appended to a file of results, without some of their fields."""
    lines = map(json.loads, path.read_text().splitlines())
    return [{name: value for name, value in line.items() if name not in without} for line in lines]


def write(path, lines):
    """Write lines to a file of results."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def cut_after(path, n_lines):
    """Keep the first lines of a file of results and a part of the next, as after an interruption."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:n_lines]) + lines[n_lines][:15])
