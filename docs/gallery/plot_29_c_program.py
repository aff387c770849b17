"""
From a classifier to a C program
================================

Export networks of one to eight bits per parameter as C without floating point, compile the programs, and plot the error
over the size.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

X, y = load_digits(return_X_y=True)
X = X.astype(np.int16)[:, X.std(axis=0) > 2]  # integers, as from a sensor, of pixels that vary
X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
encoder = TableEncoder(discrete_features=False)
compiler = shutil.which("cc")

program = """#include <stdio.h>
#include "digits.h"
int main(void)
{
    static int16_t row[DIGITS_N_FEATURES];
    while (fread(row, sizeof row, 1, stdin) == 1) printf("%d\\n", digits_predict(row));
    return 0;
}
"""


def run_in_c(model):
    """Return the classes that the compiled program predicts for the test rows."""
    with tempfile.TemporaryDirectory() as folder:
        model.export_c(Path(folder, "digits.h"), number_type="int16")
        Path(folder, "main.c").write_text(program)
        subprocess.run([compiler, "-std=c99", "-Os", "main.c", "-o", "main"], cwd=folder, check=True)
        printed = subprocess.run([Path(folder, "main")], input=X_test.tobytes(), capture_output=True, check=True).stdout
    return np.array(printed.split(), dtype=int)


models = {
    "naive Bayes": NaiveBayesClassifier(encoder=encoder),
    "Chow-Liu tree": BayesNetClassifier(structure=ChowLiu(), encoder=encoder),
}
figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
figure.suptitle("Digits: error of C programs over the size of their CPTs")
for name, model in models.items():
    model.fit(X, y)
    rounded = [model.with_bits(bits, X, y) for bits in range(1, 9)]
    sizes = [small.size_bits_ / 8 for small in rounded]
    if compiler:
        predictions = [run_in_c(small) for small in rounded]
        equal = all(np.array_equal(small.predict(X_test), p) for small, p in zip(rounded, predictions, strict=True))
        print(f"{name}: predictions of all programs equal those of Python: {equal}")
    else:
        predictions = [small.predict(X_test) for small in rounded]
        print(f"{name}: no C compiler found, predictions of Python")
    errors = [100 * (p != y_test).mean() for p in predictions]
    ax.plot(sizes, errors, marker="o", label=name)
    for bits, size, error in zip(range(1, 9), sizes, errors, strict=True):
        ax.annotate(str(bits), (size, error), xytext=(0, 6), textcoords="offset points", ha="center")
    floats = 100 * (model.predict(X_test) != y_test).mean()
    print(f"{name}: error {errors[3]:.1f} % in {sizes[3]:,.0f} bytes with 4 bits, {floats:.1f} % with floats")
ax.set(xlabel="bytes of CPTs (numbers at the points: bits per entry)", ylabel="error on test rows [%]")
ax.legend()
ax.grid(alpha=0.3)

# %%
# The compiled programs return the same classes as Python on every test row. Four bits per entry are enough: with them,
# the tree has an error of 5.2 % in 2,700 bytes, the same as with floats. If only 600 bytes are available, naive Bayes
# with three bits has an error of 11.0 %.
#
# The header uses additions and comparisons only, so the same file runs on a microcontroller. The :doc:`benchmark of
# microcontrollers </benchmarks/embedded>` counts bytes and cycles of such programs in simulators of AVR and Cortex-M,
# and :doc:`/small` goes through all steps.
