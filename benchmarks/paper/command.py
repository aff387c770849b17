"""What the commands of this folder share: run, which goes on where it was stopped, and report."""

import argparse
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
from data import FOLDER

import tanlearn

HERE = Path(__file__).resolve().parent
COMMIT = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
VERSIONS = f"tanlearn {tanlearn.__version__} {COMMIT.stdout.strip()}, numpy {np.__version__}, numba {numba.__version__}"


def parsers(description, run, report):
    """Return a command line with ``run`` and ``report``, and the part of ``run``, to be filled in."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="run | report")
    running = commands.add_parser("run", help="do what is not finished yet")
    running.set_defaults(do=run)
    running.add_argument("--data", type=Path, default=FOLDER)
    reporting = commands.add_parser("report", help="write tables and figures of what is finished")
    reporting.set_defaults(do=report)
    reporting.add_argument("--output", type=Path, default=HERE, help="folder of the report and of figures/")
    for command in (running, reporting):
        command.add_argument("--results", type=Path, default=HERE / "results")
    return parser, running


def check_experiments(parser, wanted, known):
    """Refuse what is no experiment."""
    unknown = set(wanted) - set(known)
    if unknown:
        parser.error(f"the experiments are {', '.join(known)}; got {', '.join(sorted(unknown))}.")


@contextmanager
def interruptible(place):
    """Say what becomes of a command that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what is finished is in {place}, and the same command goes on") from None
