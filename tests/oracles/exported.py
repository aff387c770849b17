"""Class scores of a row of raw values, by enumeration, from a description as JSON. Nothing here knows tanlearn."""

import itertools
import math


def code_of(feature, value):
    """Code of a raw value; None is a value to be enumerated."""
    if value is None or value != value:
        if feature.get("has_missing_category"):
            return len(feature["categories"]) if "categories" in feature else len(feature["cut_points"]) + 1
        return None
    if "cut_points" in feature:
        return sum(1 for cut in feature["cut_points"] if value > cut)
    for code, category in enumerate(feature["categories"]):
        if category == value:
            return code
    return None


def n_values(feature):
    """Number of codes of a feature."""
    known = len(feature["cut_points"]) + 1 if "cut_points" in feature else max(1, len(feature["categories"]))
    return known + bool(feature.get("has_missing_category"))


def log_joint(description, row):
    """Log of the sum of p(class, all features) over all codes of the missing features, for each class."""
    features = description["features"]
    place = {feature["name"]: i for i, feature in enumerate(features)}
    seen = [code_of(feature, value) for feature, value in zip(features, row, strict=True)]
    choices = [range(n_values(f)) if code is None else [code] for f, code in zip(features, seen, strict=True)]
    sums = [0.0] * len(description["classes"])
    for codes in itertools.product(*choices):
        for y, p in enumerate(description["class_probabilities"]):
            for i, feature in enumerate(features):
                table = feature["probabilities"][codes[i]]
                for parent in feature["parents"]:
                    table = table[codes[place[parent]]]
                p *= table[y]
            sums[y] += p
    return [math.log(p) if p > 0 else -math.inf for p in sums]
