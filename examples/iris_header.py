"""Write iris.h, a C classifier for iris, into both examples: `python examples/iris_header.py`."""

from pathlib import Path

from sklearn.datasets import load_iris

from tanlearn import NaiveBayesClassifier

EXAMPLES = Path(__file__).parent
PLACES = [EXAMPLES / "arduino" / "iris" / "iris.h", EXAMPLES / "zephyr" / "iris" / "src" / "iris.h"]


def write(path: Path) -> None:
    """Fit a classifier to iris, and write it as C code."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    model = NaiveBayesClassifier().fit(X, names).with_bits((3, 2))
    model.export_c(path, name="iris", number_type="float")


if __name__ == "__main__":
    for place in PLACES:
        write(place)
