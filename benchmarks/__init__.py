"""Commands that compute the figures of this project, run from its root with ``python -m``.

They read the published data sets, which are expected beside the project, and write reports to their own folders.
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The published sets: raw/ and discretized/.
DATA = ROOT.parent / "shared" / "data"


def command_line(description, spec):
    """Return the parser of a command from the docstring and the ``__spec__`` of its module."""
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
