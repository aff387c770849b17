"""Description of a fitted forest in numbers and strings, which can be read without any library.

*Version 1.* :func:`describe` returns a dictionary that ``json.dumps`` accepts, with the keys

- ``format``: ``"tanlearn forest description"``; ``version``: 1; ``tanlearn``: the version of the library;
- ``learner``: an object with ``class`` and ``parameters``, which lists non-default parameters in Python notation;
- ``classes``: the sorted classes, and ``class_probabilities`` in the same order, by training or by a class prior;
- ``n_parameters``: the number of stored parameters; predictions are sums of them;
- ``n_members``: the number of networks; ``n_contexts``: the number of contexts in all networks; ``n_levels``: one more
  than the largest number of parents of a feature;
- ``combined``: ``"averaged"`` if probabilities of networks are averaged, ``"added"`` if weighted scores are added;
- ``level_weights``: the weight of the gains of each level (without parents, with the first parent, and so on), as a
  mean over features, where 1 is the weight in a single network;
- ``doubt``: the weight of the uniform distribution that is mixed into the probabilities;
- ``features``: a list of objects by decreasing weight, with ``name``, ``kind`` (``"categorical"`` or ``"continuous"``),
  ``weight`` (the mean over levels) and ``importance`` (the increase in the log loss in nats if the feature is left out,
  or null).
"""

from __future__ import annotations

from typing import Any

from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from tanlearn._version import __version__
from tanlearn.files.description import as_json, feature_names, given_parameters
from tanlearn.forest.forest import Forest

__all__ = ["describe"]


def describe(model: Any) -> dict[str, Any]:
    """Describe a fitted forest as a dictionary for JSON. Raise NotFittedError if it has no encoder."""
    check_is_fitted(model)
    forest: Forest = model.forest_
    n_members, d, n_levels = forest.weights.shape
    weights = forest.weights.sum(axis=0) / (n_members if forest.is_average else 1)
    of_features = weights.mean(axis=1).tolist()
    importances = [None] * d if forest.importances is None else forest.importances.tolist()
    names, is_discrete = feature_names(model), model.encoder_.is_discrete_
    features = [
        {
            "name": names[i],
            "kind": "categorical" if is_discrete[i] else "continuous",
            "weight": of_features[i],
            "importance": importances[i],
        }
        for i in sorted(range(d), key=lambda i: -of_features[i])
    ]
    return {
        "format": "tanlearn forest description",
        "version": 1,
        "tanlearn": __version__,
        "learner": {"class": type(model).__name__, "parameters": given_parameters(model)},
        "classes": as_json(model.classes_, "classes"),
        "class_probabilities": softmax(forest.log_frequency + forest.shift).tolist(),
        "n_parameters": model.n_parameters_,
        "n_members": n_members,
        "n_contexts": sum(len(member.tables.trie.branch) for member in forest.members),
        "n_levels": n_levels,
        "combined": "averaged" if forest.is_average else "added",
        "level_weights": weights.mean(axis=0).tolist(),
        "doubt": float(forest.label_noise),
        "features": features,
    }
