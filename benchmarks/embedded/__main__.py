"""Letter on small devices: a TAN of integers in C, compared with floats and logistic regressions.

    python -m benchmarks.embedded                                        # of this machine: bytes, nanoseconds, errors
    python -m benchmarks.embedded --cross "avr-gcc -mmcu=atmega1284p"    # and bytes for another one
    python -m benchmarks.embedded.report                                 # writes the pages

Trained on the published training part; errors are those that the C programs make on the test part. All functions take
codes. The logistic regression is one of ones and zeros, a one for the value of every feature: written by hand, it adds
a row of single-precision weights a feature. m2cgen (`pip install "tanlearn[peers]"`) writes all of its multiplications
out, in double precision, of ones and zeros that are made before the clock starts; without it, that row is left out.
"""

import re
import shlex
import statistics
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks import DATA, command_line
from benchmarks.embedded import classifiers
from benchmarks.embedded.programs import PRELUDE
from benchmarks.paper.differentiable_tan.letter import CHOSEN, base, load
from benchmarks.shared.results import Results, line_key, pack

BITS = (3, 1)
LEVELS = ("-Os", "-O2")
#: Names of compilers in results.
NAMES = {"cc": "x86_64", "avr-gcc": "AVR", "arm-none-eabi-gcc": "Cortex-M0+"}
#: Sections of functions and constants in an object file; AVR's compiler puts constants into named sections.
SECTIONS = {"code": r"\.text(?!\S*_cells)\S*", "tables": r"\.(rodata|data|progmem|text\S*_cells)\S*"}

WRITTEN_OUT = """#include <stdint.h>
{score}
typedef double value;
enum {{ LENGTH = {length} }};
static int predict(const value *row)
{{
    double scores[{n_classes}];
    int best = 0;
    score((double *)row, scores);
    for (int c = 1; c < {n_classes}; ++c) if (scores[c] > scores[best]) best = c;
    return best;
}}
"""
USED = """int used(const value *row);
int used(const value *row) { return predict(row); }
"""
CLOCK = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
{model}
static const value rows[][LENGTH] = {{{rows}}};
static const uint8_t wanted[] = {{{wanted}}};
int main(void)
{{
    struct timespec start, end;
    int n = (int)sizeof wanted, errors = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (int repeat = 0; repeat < {repeats}; ++repeat)
        for (int row = 0; row < n; ++row) errors += predict(rows[row]) != wanted[row];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    printf("%d %d %.3f\\n", errors / {repeats}, n, 1e9 * seconds / n / {repeats});
    return 0;
}}
"""


def listed(values):
    """Return numbers as an initializer."""
    return ", ".join(map(str, values))


def sizes(compiler, source, folder):
    """Return the bytes of code and of tables in an object file, or dashes if arrays are too large for the device."""
    Path(folder, "model.c").write_text(f"{source}\n{USED}")
    command = [*compiler, "-std=c99", "-w", "-Os", "-c", "model.c"]
    if subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode != 0:
        return ["-"] * len(SECTIONS)
    listing = subprocess.run(["size", "-A", "model.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^(\S+) +(\d+)", listing, re.MULTILINE)
    totals = (sum(int(n) for section, n in found if re.fullmatch(kind, section)) for kind in SECTIONS.values())
    return [f"{total:,}" for total in totals]


def timing(source, rows, labels, level, folder, repeats):
    """Return the error in % and the median nanoseconds of a prediction, in processor time: machines are shared."""
    spelt = ",\n".join(f"{{{listed(row)}}}" for row in rows.tolist())
    text = CLOCK.format(model=source, rows=spelt, wanted=listed(labels), repeats=20)
    Path(folder, "clock.c").write_text(text)
    subprocess.run(["cc", "-std=c99", level, "-w", "clock.c", "-o", "clock"], cwd=folder, check=True)
    runs = [subprocess.run(["./clock"], cwd=folder, check=True, capture_output=True, text=True) for _ in range(repeats)]
    errors, n, _ = runs[0].stdout.split()
    return 100 * int(errors) / int(n), statistics.median(float(done.stdout.split()[2]) for done in runs)


def sources(arguments, folder):
    """Yield name, source of the model, rows and classes."""
    x, y, x_test, y_test = load(arguments.data)
    make = base("order-free", arguments.epochs).set_params(**CHOSEN["order-free"], random_state=0)
    integers = make.set_params(bits=BITS).fit(x, y)
    codes = np.ascontiguousarray(integers.encoder_.encode(x_test).T)
    labels = np.searchsorted(integers.classes_, y_test)
    for packed in (True, False):
        title = f"TAN, {sum(BITS)} bits, {'packed' if packed else 'a byte each'}"
        found = classifiers.integers(title, integers, codes, Path(folder), packed=packed)
        yield title, PRELUDE + found.source, codes, labels
    found = classifiers.floats("TAN, 32-bit floats", make.set_params(bits=None).fit(x, y), codes)
    yield found.name, PRELUDE + found.source, codes, labels
    n_states = integers.tables_.layout.n_states
    encoder = OneHotEncoder(categories=[np.arange(n) for n in n_states], sparse_output=False, dtype=np.uint8)
    ones = encoder.fit_transform(integers.encoder_.encode(x).T)
    regression = LogisticRegression(max_iter=1000).fit(ones, np.searchsorted(integers.classes_, y))
    weights = np.vstack([regression.intercept_, regression.coef_.T]).astype(np.float32)
    found = classifiers.linear("logistic regression, one-hot, 32-bit floats", weights, codes, n_states)
    yield found.name, PRELUDE + found.source, codes, labels
    if find_spec("m2cgen") is None:
        print('m2cgen is not installed (pip install "tanlearn[peers]"): its logistic regression is left out.')
        return
    import m2cgen

    score = m2cgen.export_to_c(regression)
    text = WRITTEN_OUT.format(score=score, length=ones.shape[1], n_classes=len(integers.classes_))
    yield "the same, by m2cgen", text, encoder.transform(codes), labels


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "discretized")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=7, help="runs of every program")
    parser.add_argument("--cross", nargs="*", default=[], help="commands of other compilers")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder of results")
    arguments = parser.parse_args()
    compilers = {"cc": ["cc"], **{shlex.split(command)[0]: shlex.split(command) for command in arguments.cross}}
    results = Results(arguments.results / "computer.jsonl", line_key("model"))
    with tempfile.TemporaryDirectory() as folder:
        for name, source, rows, labels in sources(arguments, folder):
            n_bytes = {
                NAMES.get(compiler, compiler): [int(n.replace(",", "")) for n in found]
                for compiler, command in compilers.items()
                if "-" not in (found := sizes(command, source, folder))
            }
            timed = [timing(source, rows, labels, level, folder, arguments.repeats) for level in LEVELS]
            line = {"model": name, "error": round(timed[0][0], 4), "bytes": n_bytes}
            print(results.append({**line, "nanoseconds": [round(ns, 1) for _, ns in timed]}), flush=True)
    pack(results.path)


if __name__ == "__main__":
    main()
