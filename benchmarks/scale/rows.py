"""Tables of any size, partition by partition, with the same rows in any partitions."""

import numpy as np

#: Numbers of values of the categorical columns; there are equally many numeric columns.
N_VALUES = (3, 4, 5, 8, 12, 16, 22, 30)
N_FEATURES = 2 * len(N_VALUES)
TARGET = "class"
#: Rows that one seed draws; partitions consist of parts of blocks.
BLOCK = 2**14


def bounds(n_rows, n_partitions):
    """Return the starts of partitions, and the end of the last one."""
    return [n_rows * k // n_partitions for k in range(n_partitions + 1)]


def make_rows(first, last, n_classes, seed=0):
    """Return the rows of an endless table in a range of row numbers, as a DataFrame."""
    import pandas as pd

    blocks = [_block(number, n_classes, seed) for number in range(first // BLOCK, -(-last // BLOCK))]
    skipped = first // BLOCK * BLOCK
    return pd.concat(blocks, ignore_index=True).iloc[first - skipped : last - skipped].reset_index(drop=True)


def _block(number, n_classes, seed):
    """Return a block, in which every column depends on the class and on the column before it.

    Half of the numeric columns have distinct real values; the others have two decimals.
    """
    import pandas as pd

    rng = np.random.default_rng([seed, number])
    y = rng.integers(0, n_classes, BLOCK)
    before, columns = rng.random(BLOCK), {}  # in [0, 1), whatever column it was
    for i in range(len(N_VALUES)):
        value = 2 * before + y * (0.3 + 0.1 * i) + rng.normal(size=BLOCK)
        columns[f"number{i}"] = value if i % 2 else value.round(2)
        before = value % 1
    for n_values in N_VALUES:
        is_kept = rng.random(BLOCK) < 0.5
        before = (np.where(is_kept, before, rng.random(BLOCK)) + 0.2 * y) % 1
        columns[f"category{n_values}"] = _words("value", n_values)[(n_values * before).astype(np.intp)]
    return pd.DataFrame({**columns, TARGET: _words("class", n_classes)[y]})


def _words(word, n_words):
    """Return names."""
    return np.array([f"{word} {k}" for k in range(n_words)], dtype=object)


def write_table(folder, n_rows, n_partitions, n_classes, n_jobs=1):
    """Write a table in Parquet files, one per partition, except for existing files."""
    from joblib import Parallel, delayed

    folder.mkdir(parents=True, exist_ok=True)
    ends = bounds(n_rows, n_partitions)
    paths = [folder / f"part{number:05}.parquet" for number in range(n_partitions)]
    Parallel(n_jobs)(
        delayed(_write)(path, first, last, n_classes)
        for path, first, last in zip(paths, ends, ends[1:], strict=False)
        if not path.exists()
    )


def _write(path, first, last, n_classes):
    """Write a partition, all or nothing."""
    begun = path.with_suffix(".begun")
    make_rows(first, last, n_classes).to_parquet(begun, index=False)
    begun.rename(path)
