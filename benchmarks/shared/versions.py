"""Versions of the software that computes results, as lines of results and reports have them."""

import os
import platform
import subprocess

import numba
import numpy as np

import tanlearn
from benchmarks import ROOT

COMMIT = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
VERSIONS = f"tanlearn {tanlearn.__version__} {COMMIT.stdout.strip()}, numpy {np.__version__}, numba {numba.__version__}"


def made_with(lines):
    """Return the versions of all lines, and this machine, in words."""
    commits = {}
    for versions in sorted({line["versions"] for line in lines}):
        own, _, others = versions.partition(", ")
        release, _, commit = own.rpartition(" ")
        commits.setdefault((release, others), []).append(commit)
    versions = "; ".join(f"{release} {', '.join(found)}, {others}" for (release, others), found in commits.items())
    return f"{versions} on a {os.cpu_count()}-core {platform.machine()} machine"
