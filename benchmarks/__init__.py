"""Commands that compute the figures of this project, run from its root with ``python -m``.

The commands read the published data sets from a folder next to the project, and write reports to their own folders."""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The published sets: raw/ and discretized/.
DATA = ROOT.parent / "shared" / "data"

#: Origin and format of the archives in each folder of ``DATA``.
ORIGINS = {
    "discretized": (
        "the discretized folds published with differentiable TAN (github.com/wroth8/bnc), arrays n_folds, x_tr_fold1, "
        "t_tr_fold1, x_te_fold1, t_te_fold1, ..., with codes from 1"
    ),
    "raw": (
        "the original table (UCI Machine Learning Repository; mnist of LeCun, usps of S. Roweis), arrays X, y, classes "
        "and is_categorical, as tanlearn.sources.datasets.load_npz reads them"
    ),
}


def command_line(description, spec):
    """Return the parser of a command from the docstring and the ``__spec__`` of its module.

    If data are missing, the command ends with one line about them.
    """
    sys.excepthook = _explain_missing_data
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def archives(folder):
    """Return the paths of all archives of a folder; end the command with one line if there are none."""
    found = sorted(folder.glob("*.npz"))
    if not found:
        raise FileNotFoundError(f"there is no file {folder / '*.npz'}")
    return found


def missing_data(path):
    """Return the sentence about data that do not exist: name, folder, origin, format and remedy."""
    name = "any data set" if path.stem == "*" else f"the data set {path.stem}"
    origin = ORIGINS.get(path.parent.name, "a published data set")
    return (
        f"There is no file {path}: {name} is not part of this repository. It is {origin}. Put it there, or pass "
        f"another folder with --data."
    )


def _explain_missing_data(kind, error, trace):
    """Print one line instead of a traceback if a data file does not exist."""
    found = re.search(r"(?:no file|directory:) '?(.*\.npz)", str(error))
    if issubclass(kind, FileNotFoundError) and found:
        print(missing_data(Path(found[1])), file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
