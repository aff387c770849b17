"""Versions of the software that computes results, for lines of results and for reports."""

import os
import platform
import subprocess

import numba
import numpy as np

import tanlearn
from benchmarks import ROOT

from .reports import console, folded, paragraph

COMMIT = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
VERSIONS = f"tanlearn {tanlearn.__version__} {COMMIT.stdout.strip()}, numpy {np.__version__}, numba {numba.__version__}"


def made_by(lines, *commands):
    """Return the commands and versions behind a report, folded at its end; commands are modules with options."""
    commits = {}
    for versions in sorted({line["versions"] for line in lines}):
        own, _, others = versions.partition(", ")
        release, _, commit = own.rpartition(" ")
        commits.setdefault((release, others), []).append(commit)
    how = f"""The results were computed on a {os.cpu_count()}-core {platform.machine()} machine with these versions;
    commits are in brackets:"""
    return folded(
        "Commands and versions",
        console(*commands),
        paragraph(how),
        "\n".join(
            paragraph(f"- {own} ({', '.join(found)}), {others}", indent=2) for (own, others), found in commits.items()
        ),
    )
