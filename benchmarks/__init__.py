"""Where the figures of this project come from: commands, run from its root with ``python -m``.

In come data (the published sets lie beside the project), out come tables, and reports in the folders of the commands.
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The published sets: raw/ and discretized/.
DATA = ROOT.parent / "shared" / "data"


def command_line(description, spec):
    """Return the parser of a command: its docstring is the help, the ``__spec__`` of its module says how it is run."""
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
