"""Writes iris.h, a classifier of iris in C, into the examples: `python examples/iris_header.py`."""

from pathlib import Path

from sklearn.datasets import load_iris

from tanlearn import NaiveBayesClassifier

EXAMPLES = Path(__file__).parent
PLACES = [EXAMPLES / "arduino" / "iris" / "iris.h", EXAMPLES / "zephyr" / "iris" / "src" / "iris.h"]


def write(path: Path) -> None:
    """Learn iris and write it."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    model = NaiveBayesClassifier().fit(X, names).with_bits((3, 2))
    model.export_c(path, name="iris", number_type="float")


if __name__ == "__main__":
    for place in PLACES:
        write(place)
