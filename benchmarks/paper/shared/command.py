"""What the commands of papers share: run, which goes on where it was stopped, report, and pack."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np

import tanlearn
from benchmarks import DATA, ROOT, command_line

from .results import pack

COMMIT = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
VERSIONS = f"tanlearn {tanlearn.__version__} {COMMIT.stdout.strip()}, numpy {np.__version__}, numba {numba.__version__}"


def parsers(description, spec, run, report, output=None, options=None, data=True):
    """Return a command line with ``run``, ``report`` and ``pack``, and the part of ``run``, to be filled in.

    Reports are for the folder ``output``, by default that of the command, and have ``options``, if any: their names,
    and what ``add_argument`` takes. ``data`` says whether runs read the published sets.
    """
    here = Path(spec.origin).parent
    parser = command_line(description, spec)
    commands = parser.add_subparsers(required=True, metavar="run | report | pack")
    running = commands.add_parser("run", help="do what is not finished yet")
    running.set_defaults(do=run)
    if data:
        running.add_argument("--data", type=Path, default=DATA)
    reporting = commands.add_parser("report", help="write tables and figures of what is finished")
    reporting.set_defaults(do=report)
    reporting.add_argument("--output", type=Path, default=output or here, help="folder of the report and of figures/")
    for name, keywords in (options or {}).items():
        reporting.add_argument(name, **keywords)
    packing = commands.add_parser("pack", help="compress what runs have appended, to be committed")
    packing.set_defaults(do=pack_all)
    for command in (running, reporting, packing):
        command.add_argument("--results", type=Path, default=here / "results", help="folder of results")
    return parser, running


def pack_all(arguments):
    """Pack every file of results to which something was appended."""
    for path in sorted(arguments.results.glob("*.jsonl")):
        pack(path)


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
