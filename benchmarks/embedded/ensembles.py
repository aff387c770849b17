"""Boosted terms and forests for microcontrollers: errors with floats and with integers, and bytes, on three data sets.

    python -m benchmarks.embedded.ensembles                   # bytes of constants
    python -m benchmarks.embedded.ensembles --tools FOLDER    # and of programs; see benchmarks.embedded.toolchain

Two thirds of the rows are used for training, and the other rows for the errors. All models are exported to C, and the
test programs compare the classes of all test rows with Python. The flash is measured for a program for ATmega2560, with
cut points. Forests are too large for this microcontroller."""

import re
import subprocess
import tempfile
from pathlib import Path

from sklearn.model_selection import train_test_split

from benchmarks import DATA, command_line
from benchmarks.embedded.toolchain import Missing, prepare
from benchmarks.shared.reports import markdown_table
from tanlearn import BayesForestClassifier, BoostedTermsClassifier, NaiveBayesClassifier
from tanlearn.sources.datasets import load_dataset

NAMES = ("vehicle", "spambase", "satimage")
COLUMNS = ["data set", "model", "error, floats [%]", "error, integers [%]", "constants [bytes]", "AVR's flash [bytes]"]
PROGRAM = """#include "{name}.h"
int main(void)
{{
    static {name}_value row[{macro}_N_FEATURES];
    return {name}_predict(row);
}}
"""
#: Most terms and bits of boosted terms.
TERMS = ((100, 8), (100, 4), (20, 8))


def error(model, X, y):
    """Return the error in %."""
    return 100 * (1 - model.score(X, y))


def constants(folder, model, X, **options):
    """Export a model, compare it with Python on rows, and return the bytes of its constants."""
    model.export_c(Path(folder, "m.h"), number_type="float", test_rows=X, **options)
    subprocess.run(["cc", "-std=c99", "-O1", "-w", "m_test.c", "-o", "m_test"], cwd=folder, check=True)
    subprocess.run(["./m_test"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found = re.search(r"Constants take ([\d,]+) bytes", Path(folder, "m.h").read_text())[1]
    return int(found.replace(",", ""))


def flash(folder, compiler):
    """Return the bytes of flash of a program with the model that was exported last; None without a compiler."""
    if compiler is None:
        return None
    Path(folder, "part.c").write_text(PROGRAM.format(name="m", macro="M"))
    command = [compiler, "-mmcu=atmega2560", "-std=c99", "-Os", "-w", "part.c", "-o", "part.elf"]
    subprocess.run(command, cwd=folder, check=True)
    size = compiler.with_name("avr-size")
    listing = subprocess.run([size, "part.elf"], cwd=folder, check=True, capture_output=True, text=True).stdout
    text, data, *_ = listing.splitlines()[1].split()
    return int(text) + int(data)


def rows(X, y, folder, compiler, n_estimators=10, terms=TERMS):
    """Yield the model, errors with floats and integers, bytes of constants, and bytes of flash or None."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    model = NaiveBayesClassifier().fit(X, y)
    small = model.with_bits((3, 1))
    n_bytes = constants(folder, small, X_test)
    yield (
        "naive Bayes, 4 bits",
        error(model, X_test, y_test),
        error(small, X_test, y_test),
        n_bytes,
        flash(folder, compiler),
    )
    fitted = {}
    for n_terms, bits in terms:
        if n_terms not in fitted:
            fitted[n_terms] = BoostedTermsClassifier(max_terms=n_terms, random_state=0).fit(X, y)
        model = fitted[n_terms]
        n_bytes = constants(folder, model, X_test, bits=bits)
        title = f"boosted terms, {model.n_terms_}, {bits} bits"
        small = model.with_bits(bits)
        yield title, error(model, X_test, y_test), error(small, X_test, y_test), n_bytes, flash(folder, compiler)
    model = BayesForestClassifier(n_estimators=n_estimators, random_state=0).fit(X, y)
    small = model.with_bits(8)
    n_bytes = constants(folder, model, X_test)
    title = f"Bayes forest, {n_estimators} networks, 8 bits"
    yield title, error(model, X_test, y_test), error(small, X_test, y_test), n_bytes, None


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "raw", help="folder of data sets")
    parser.add_argument("--tools", type=Path, help="folder to unpack a compiler for AVR into")
    arguments = parser.parse_args()
    try:
        compiler = prepare("avr-gcc", arguments.tools)
    except Missing as missing:
        print(f"{missing}.")
        compiler = None
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            data = load_dataset(arguments.data / f"{name}.npz")
            for title, *errors, n_bytes, n_flash in rows(data.X, data.y, folder, compiler):
                spelt = ["-" if number is None else f"{number:,}" for number in (n_bytes, n_flash)]
                lines.append([name, title, *(f"{own:.1f}" for own in errors), *spelt])
    print(markdown_table(COLUMNS, lines))


if __name__ == "__main__":
    main()
