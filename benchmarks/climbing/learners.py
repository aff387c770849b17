"""The learners of the comparison, grouped by kind of search."""

from dataclasses import replace
from functools import partial

from tanlearn import BayesNetClassifier
from tanlearn.baselines import LEARNERS, HillClimbing, Learner

#: Structure and parameters trained together by gradient.
GRADIENT = ("TAN Subset HYB", "TAN Order-free HYB", "K-tree")
#: Climbing by a score of arcs, a classification score, or a score of trees, with maximum-likelihood parameters.
CLIMBERS = (
    *("HC-BDeu ML", "HC-BIC ML", "HC-AIC ML", "HC-K2 ML", "Tabu-BDeu ML", "K2 ML"),
    *("BNC-2P ML", "HC-MM ML", "HC-CR ML", "MMHC", "Markov blanket"),
    *("TAN-CR ML", "TAN-CV-CR ML", "TAN-CL ML", "TAN-MM ML", "TAN-SP-CR ML", "TAN-OMI-CR ML", "TAN-SA-MM ML"),
)
#: The same searches, with parameters of a hybrid loss selected on held-out rows, as in gradient TAN.
DISCRIMINATIVE = ("NB HYB", "TAN-CMI HYB", "HC-BDeu HYB", "HC-MM HYB", "TAN-OMI-MM HYB", "TAN Random HYB")
#: Learners without a search, weighted naive Bayes, and ensembles, for orientation.
OTHERS = (
    *("NB ML", "WANBIA CL", "AWNB", "MANB", "NB-FSSJ ML", "NB-BSEJ ML"),
    *("TAN-CMI ML", "FAN-CMI ML", "TAN-EAR ML", "Multinet ML", "KDB-2 ML", "SKDB", "AODE", "BayesForest"),
)
#: Epochs of gradient TAN, and restarts of tabu search, for equal seconds.
EPOCHS, RESTARTS = (10, 30, 100, 300), (3, 10, 30)
#: For equal seconds: settings of a kind of search, each of them more expensive than the one before.
BUDGETED = {
    "gradient TAN": (*(f"TAN Subset HYB, {n} epochs" for n in EPOCHS), "TAN Subset HYB"),
    "climbing by likelihood": ("HC-BDeu ML", *(f"Tabu-BDeu ML, {n} restarts" for n in RESTARTS)),
    "climbing by classification": ("TAN-OMI-CR ML", "TAN-CR ML", "TAN-CL ML", "TAN-SA-MM ML"),
}


def _trained_for(name, epochs, random_state, n_epochs, n_jobs, encoder):
    """Return a gradient learner with a fixed loss and number of epochs."""
    return LEARNERS[name].make(random_state=random_state, n_epochs=epochs, n_jobs=n_jobs, encoder=encoder)


def _restarted(n_restarts, random_state, n_epochs, n_jobs, encoder):
    """Return tabu search with random restarts, with maximum-likelihood parameters."""
    search = HillClimbing(tabu_length=20, n_restarts=n_restarts)
    return BayesNetClassifier(structure=search, random_state=random_state, n_jobs=n_jobs, encoder=encoder)


def all_learners():
    """Return the entries of all learners by name, those of the registry first."""
    found = {name: LEARNERS[name] for name in (*OTHERS, *CLIMBERS, *DISCRIMINATIVE, *GRADIENT)}
    for name in GRADIENT[:2]:
        for epochs in EPOCHS:
            entry = replace(
                LEARNERS[name], name=f"{name}, {epochs} epochs", factory=partial(_trained_for, name, epochs)
            )
            found[entry.name] = entry
    for n in RESTARTS:
        name = f"Tabu-BDeu ML, {n} restarts"
        found[name] = Learner(
            name, "tabu search with restarts", LEARNERS["Tabu-BDeu ML"].citation, partial(_restarted, n)
        )
    return found
